//! This program as the init of every container: a volume, named by its content and mounted read-only. Images do not contain
//! it, so any version can use them. The volume includes the loader and libraries, so it runs in any image.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::{ContainerArchiveInfoOptionsBuilder, RemoveContainerOptionsBuilder};
use sha2::{Digest, Sha256};

use super::builder::{create_alone, upload};
use super::engine::{Engine, is_missing};
use super::libraries;
use super::pack::{self, Style};
use crate::error::{Error, Result};
use autoexperiment_init::MARKER;

/// Where the volume is mounted.
const PLACE: &str = "/autoexperiment";
/// The last file to arrive.
const COMPLETE: &str = "/autoexperiment/complete";

/// The installed program.
#[derive(Debug)]
pub(super) struct Tools {
    volume: String,
    /// What a container runs as its first process.
    pub(super) command: Vec<String>,
}

impl Tools {
    /// Finds or makes the volume for `exe`.
    pub(super) async fn install(engine: &Engine, base: &str, exe: &Path) -> Result<Self> {
        let exe = exe.canonicalize().map_err(|error| Error::io("find", exe, error))?;
        let found = exe.clone();
        let (needed, digest) = tokio::task::spawn_blocking(move || examine(&found))
            .await
            .map_err(|error| Error::internal("the digest was not finished").because(error))?
            .map_err(|error| Error::io("read", &exe, error))?;
        let loader = needed.iter().filter_map(|path| path.file_name()).find(|name| is_loader(name));
        let program = format!("{PLACE}/bin/autoexperiment");
        let mut command = match loader {
            Some(loader) => {
                let loader = format!("{PLACE}/lib/{}", loader.to_string_lossy());
                vec![loader, "--library-path".into(), format!("{PLACE}/lib"), program]
            }
            None => vec![program],
        };
        command.push(MARKER.into());
        let tools = Self { volume: format!("autoexperiment-init-{digest}"), command };
        tools.fill(engine, base, &exe, &needed).await?;
        Ok(tools)
    }

    /// The mount that every container gets.
    pub(super) fn mount(&self, read_only: bool) -> Mount {
        Mount {
            target: Some(PLACE.into()),
            source: Some(self.volume.clone()),
            typ: Some(MountType::VOLUME),
            read_only: Some(read_only),
            ..Mount::default()
        }
    }

    async fn fill(&self, engine: &Engine, base: &str, exe: &Path, needed: &[PathBuf]) -> Result<()> {
        let failed = |what: &'static str| move |error: bollard::errors::Error| engine.failed(what, &error);
        let request = VolumeCreateRequest {
            name: Some(self.volume.clone()),
            labels: Some(engine.labels("init", false)),
            ..VolumeCreateRequest::default()
        };
        engine.docker.create_volume(request).await.map_err(failed("create a volume"))?;
        let body = ContainerCreateBody {
            image: Some(base.to_owned()),
            cmd: Some(vec!["true".into()]),
            labels: Some(engine.labels("build", true)),
            host_config: Some(HostConfig { mounts: Some(vec![self.mount(false)]), ..HostConfig::default() }),
            ..ContainerCreateBody::default()
        };
        // The name prevents others from filling the same volume at the same time.
        let lock = format!("autoexperiment-build-{}", self.volume);
        let id = create_alone(engine, &lock, body).await?;
        let filled = self.fill_through(engine, &id, exe, needed).await;
        let force = RemoveContainerOptionsBuilder::default().force(true).build();
        engine.builder.remove_container(&id, Some(force)).await.map_err(failed("remove a container"))?;
        filled
    }

    async fn fill_through(&self, engine: &Engine, id: &str, exe: &Path, needed: &[PathBuf]) -> Result<()> {
        let asked = ContainerArchiveInfoOptionsBuilder::default().path(COMPLETE).build();
        match engine.docker.get_container_archive_info(id, Some(asked)).await {
            Ok(_) => return Ok(()),
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(engine.failed("look into a volume", &error)),
        }
        let (exe, needed) = (exe.to_owned(), needed.to_owned());
        upload(engine, id, PLACE, move |archive| {
            let style = Style { owner: 0, stamped: false };
            archive.tree(&exe, Path::new("bin/autoexperiment"), style)?;
            for library in &needed {
                let name = library.file_name().unwrap_or_default();
                archive.tree(&library.canonicalize()?, &Path::new("lib").join(name), style)?;
            }
            Ok(())
        })
        .await?;
        upload(engine, id, PLACE, |archive| archive.file(Path::new("complete"), b"")).await
    }
}

/// The program's libraries and the digest of them all.
fn examine(exe: &Path) -> io::Result<(Vec<PathBuf>, String)> {
    let needed: Vec<PathBuf> = libraries::of(&[exe.to_path_buf()]).into_iter().collect();
    let mut hasher = Sha256::new();
    for path in [exe.to_path_buf()].into_iter().chain(needed.iter().cloned()) {
        pack::digest_tree(&mut hasher, &path.canonicalize()?, &|_| false)?;
    }
    Ok((needed, pack::short(hasher)))
}

fn is_loader(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("ld-")
}
