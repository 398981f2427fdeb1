//! Lists, pushes and removes this program's objects in an engine. Objects without this program's label are never
//! touched.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveImageOptionsBuilder, RemoveVolumeOptionsBuilder,
};
use serde::Serialize;

use super::engine::{Engine, KIND, LABEL, OWNER, Owner, is_conflict, is_missing};
use super::{forgotten, registry};
use crate::error::{Error, FailureKind, Result};

/// An image or volume of this program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineObject {
    /// Name of the object, or the id of an image that has lost its name.
    pub name: String,
    /// Purpose of the object: `base`, `env`, `repo` or `init`.
    pub kind: String,
    /// Size in bytes, including the images below; unknown for volumes.
    pub size: Option<u64>,
    /// Time of creation in seconds since 1970; unknown for volumes.
    pub created: Option<i64>,
}

/// The result of removing the containers of dead processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SweepResult {
    /// Number of containers that were removed.
    pub containers: usize,
    /// A sentence for each container that could not be removed, with the reason.
    pub failures: Vec<String>,
}

/// Access to this program's images and volumes in an engine.
pub struct EngineStore {
    engine: Arc<Engine>,
}

/// Filter for objects with this program's label.
fn labelled() -> HashMap<&'static str, Vec<&'static str>> {
    HashMap::from([("label", vec![LABEL])])
}

impl EngineStore {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Lists all images and volumes, by kind and name.
    ///
    /// # Errors
    /// Returns an error of kind `Infrastructure` if the engine fails.
    pub async fn list(&self) -> Result<Vec<EngineObject>> {
        let options = ListImagesOptionsBuilder::default().filters(&labelled()).build();
        let images = self.engine.docker.list_images(Some(options)).await;
        let images = images.map_err(|error| self.engine.failed("list images", &error))?;
        let mut objects: Vec<EngineObject> = images
            .into_iter()
            // Some engines ignore the filter.
            .filter(|image| image.labels.contains_key(LABEL))
            .flat_map(|image| {
                let mut names: Vec<String> =
                    image.repo_tags.iter().filter(|tag| !tag.starts_with("<none>")).cloned().collect();
                if names.is_empty() {
                    names.push(image.id.clone());
                }
                names.into_iter().map(move |name| EngineObject {
                    name,
                    kind: image.labels.get(KIND).cloned().unwrap_or_default(),
                    size: u64::try_from(image.size).ok(),
                    created: Some(image.created),
                })
            })
            .collect();
        for volume in self.volumes().await? {
            objects.push(EngineObject { name: volume, kind: "init".into(), size: None, created: None });
        }
        objects.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        Ok(objects)
    }

    async fn volumes(&self) -> Result<Vec<String>> {
        let options = ListVolumesOptionsBuilder::default().filters(&labelled()).build();
        let volumes = self.engine.docker.list_volumes(Some(options)).await;
        let volumes = volumes.map_err(|error| self.engine.failed("list volumes", &error))?.volumes.unwrap_or_default();
        Ok(volumes.into_iter().filter(|volume| volume.labels.contains_key(LABEL)).map(|volume| volume.name).collect())
    }

    /// Pushes an image to a registry with the credentials that the engine's own command-line program has stored.
    /// Returns the image's name in the registry.
    ///
    /// # Errors
    /// Returns an error of kind `Infrastructure` if the engine or the registry refuses.
    pub async fn push(&self, image: &str, registry: &str) -> Result<String> {
        registry::push(&self.engine, image, registry).await.map_err(|error| {
            self.engine.failed("push an image", &error).hint(format!(
                "log in with `{} login`, or save it with `{0} save {image}` and load it where it is needed",
                self.engine.kind.name()
            ))
        })
    }

    /// Removes all images and volumes that no container uses. Returns the removed objects.
    ///
    /// # Errors
    /// Returns an error of kind `Infrastructure` if the engine fails.
    pub async fn prune(&self) -> Result<Vec<EngineObject>> {
        let mut objects = self.list().await?;
        // An image can be removed only after the images that are built on it. So begin with the kinds that are built on
        // others and, because images of one kind may be built on each other, try again until no more can be removed.
        let rank = |object: &EngineObject| ["repo", "env", "init", "base"].iter().position(|kind| object.kind == *kind);
        objects.sort_by_key(rank);
        let mut removed = Vec::new();
        loop {
            let before = objects.len();
            objects = self.remove_unused(objects, &mut removed).await?;
            if objects.is_empty() || objects.len() == before {
                return Ok(removed);
            }
        }
    }

    /// Removes those of the objects that nothing uses, and adds them to `removed`. Returns the others.
    async fn remove_unused(
        &self,
        objects: Vec<EngineObject>,
        removed: &mut Vec<EngineObject>,
    ) -> Result<Vec<EngineObject>> {
        let mut in_use = Vec::new();
        for object in objects {
            let result = if object.kind == "init" {
                let options = RemoveVolumeOptionsBuilder::default().build();
                self.engine.docker.remove_volume(&object.name, Some(options)).await
            } else {
                let options = RemoveImageOptionsBuilder::default().build();
                self.engine.docker.remove_image(&object.name, Some(options), None).await.map(drop)
            };
            match result {
                Ok(()) => removed.push(object),
                Err(error) if is_missing(&error) => {}
                Err(error) if is_conflict(&error) || is_in_use(&error) => in_use.push(object),
                Err(error) => return Err(self.engine.failed("remove an image", &error)),
            }
        }
        Ok(in_use)
    }
}

fn is_in_use(error: &bollard::errors::Error) -> bool {
    matches!(error, bollard::errors::Error::DockerResponseServerError { message, .. } if message.contains("in use") || message.contains("being used"))
}

/// Removes labelled containers whose owner was a process of this machine that has ended. If a container cannot be
/// removed, the other containers are still removed.
pub(super) async fn sweep(engine: &Engine) -> Result<SweepResult> {
    let mut swept = SweepResult::default();
    for container in labelled_containers(engine).await? {
        let labels = container.labels.unwrap_or_default();
        let owner = labels.get(OWNER).filter(|_| labels.contains_key(LABEL)).and_then(|text| Owner::parse(text));
        let (Some(id), true) = (container.id, owner.is_some_and(|owner| owner.is_dead(engine.is_local))) else {
            continue;
        };
        match remove_all(engine, &id).await {
            Ok(()) => swept.containers += 1,
            Err(error) => {
                let id = id.get(..12).unwrap_or(&id);
                swept.failures.push(format!("container {id} of a process that is gone is still there: {error}"));
            }
        }
    }
    Ok(swept)
}

/// Lists the containers of this program. If podman was killed while it removed a container, it fails to list any
/// containers until that removal is requested again. This function requests it.
async fn labelled_containers(engine: &Engine) -> Result<Vec<ContainerSummary>> {
    const LISTINGS: usize = 20;
    for _ in 0..LISTINGS {
        let options = ListContainersOptionsBuilder::default().all(true).filters(&labelled()).build();
        let error = match engine.docker.list_containers(Some(options)).await {
            Ok(containers) => return Ok(containers),
            Err(error) => error,
        };
        let Some(id) = half_removed(&error) else { return Err(engine.failed("list containers", &error)) };
        remove_all(engine, &id).await?;
    }
    let message = format!("{} failed to list containers {LISTINGS} times", engine.kind.name());
    Err(Error::new(FailureKind::Infrastructure, message))
}

/// If podman failed to list containers because the files of one container are already removed, returns the id of this
/// container. It has the labels in the request, because podman checks the labels first.
fn half_removed(error: &bollard::errors::Error) -> Option<String> {
    let bollard::errors::Error::DockerResponseServerError { message, .. } = error else { return None };
    let (_, rest) = message.split_once("getting container from store \"")?;
    let (id, reason) = rest.split_once('"')?;
    let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && reason.contains("container not known")).then(|| id.to_owned())
}

/// Removes a container that did not end normally. Also ends those of its processes that still run although the engine
/// no longer knows the container.
async fn remove_all(engine: &Engine, id: &str) -> Result<()> {
    remove(engine, id).await?;
    forgotten::end(id).await;
    Ok(())
}

/// Removes a container. Repeats failed requests, and gives up after half an hour.
pub(super) async fn remove_persistently(engine: &Engine, id: &str) -> Result<(), String> {
    const LONGEST: Duration = Duration::from_mins(30);
    let begun = Instant::now();
    let mut pause = Duration::from_millis(500);
    loop {
        match remove_all(engine, id).await {
            Ok(()) => return Ok(()),
            Err(error) if begun.elapsed() > LONGEST => return Err(error.message),
            // An engine that does not answer may come back.
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_secs(10));
    }
}

/// Kills and removes a container and waits until it is gone. Succeeds if it is already gone.
pub(super) async fn remove(engine: &Engine, id: &str) -> Result<()> {
    let options = || RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    for _ in 0..200 {
        match engine.docker.remove_container(id, Some(options())).await {
            Ok(()) => return Ok(()),
            Err(error) if is_missing(&error) => {
                forgotten::end(id).await;
                return Ok(());
            }
            // The engine is already removing the container, so wait.
            Err(error) if is_conflict(&error) => tokio::time::sleep(Duration::from_millis(25)).await,
            Err(error) => return Err(engine.failed("remove a container", &error)),
        }
    }
    Err(Error::new(FailureKind::Infrastructure, format!("{} failed to remove a container", engine.kind.name())))
}

#[cfg(test)]
mod tests {
    use bollard::Docker;
    use bollard::models::SystemInfo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::sandbox::containers::engine::EngineKind;

    /// An engine that gives each request the status and the body that `answer` returns. The tests need answers
    /// that a real engine cannot be made to give.
    async fn engine_that(mut answer: impl FnMut(&str) -> (&'static str, String) + Send + 'static) -> Engine {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(stream.read_u8().await.unwrap());
                }
                let request = String::from_utf8(request).unwrap();
                let (status, body) = answer(&request);
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
                     Connection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let docker = Docker::connect_with_host(&address).unwrap().with_timeout(Duration::from_secs(10));
        Engine::over(EngineKind::Docker, &address, &docker, SystemInfo::default())
    }

    /// Containers of a dead process, as an engine lists them.
    fn listed(ids: &[&str]) -> String {
        let labels = HashMap::from([(LABEL, "1".to_owned()), (OWNER, Owner::dead().to_string())]);
        let containers = ids.iter().map(|id| serde_json::json!({"Id": id, "Labels": labels}));
        containers.collect::<serde_json::Value>().to_string()
    }

    #[tokio::test]
    async fn leftovers_that_cannot_be_removed_are_reported_and_other_leftovers_are_removed() {
        let engine = engine_that(|request| match request {
            list if list.starts_with("GET") => ("200 OK", listed(&["stuck-container", "second", "third"])),
            removal if removal.contains("stuck") => ("500 Oh", r#"{"message": "device or resource busy"}"#.to_owned()),
            _ => ("204 No Content", String::new()),
        });
        let swept = sweep(&engine.await).await.unwrap();
        assert_eq!(swept.containers, 2);
        let [failure] = &swept.failures[..] else { panic!("{swept:?}") };
        assert!(failure.contains("stuck-contai") && failure.contains("device or resource busy"), "{failure}");
    }

    #[tokio::test]
    async fn a_container_that_podman_removed_in_part_is_removed_and_the_others_are_found() {
        let half = "ab".repeat(32);
        let mut is_there = true;
        let engine = engine_that(move |request| {
            if request.starts_with("GET") && is_there {
                let message = format!("getting container from store \"{half}\": container not known");
                return ("500 Oh", serde_json::json!({"message": message}).to_string());
            }
            if request.starts_with("GET") {
                return ("200 OK", listed(&["second"]));
            }
            is_there &= !request.contains(&half);
            ("204 No Content", String::new())
        });
        assert_eq!(sweep(&engine.await).await.unwrap(), SweepResult { containers: 1, failures: vec![] });
    }

    #[tokio::test]
    async fn an_engine_that_cannot_list_its_containers_is_not_asked_to_remove_any() {
        let engine = engine_that(|request| {
            assert!(request.starts_with("GET"), "{request}");
            ("500 Oh", r#"{"message": "getting container from store \"not-an-id\": container not known"}"#.to_owned())
        });
        let error = sweep(&engine.await).await.unwrap_err();
        assert!(error.message.contains("not-an-id"), "{error:?}");
    }
}
