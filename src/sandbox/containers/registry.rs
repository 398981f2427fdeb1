//! Pulls images from a registry and pushes images to it, with the credentials that the engine's own command-line
//! program has stored.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use bollard::query_parameters::{
    CreateImageOptionsBuilder, PushImageOptionsBuilder, RemoveImageOptionsBuilder, TagImageOptionsBuilder,
};
use futures_util::TryStreamExt;

use super::engine::{Engine, EngineKind, is_missing};

/// Environment variable that names a registry and a path in it, such as `registry.example/me`. An image that exists
/// there is pulled instead of being built.
pub(super) const VARIABLE: &str = "AUTOEXPERIMENT_REGISTRY";
/// Time limit for pulling one image.
const PATIENCE: Duration = Duration::from_mins(5);

type EngineResult<T> = std::result::Result<T, bollard::errors::Error>;

/// The registry named by the user, if any.
pub(super) fn named() -> Option<String> {
    std::env::var(VARIABLE).ok().map(|name| name.trim_end_matches('/').to_owned()).filter(|name| !name.is_empty())
}

/// Returns the name of an image in a registry: the registry, followed by the last part of the image's own name, with
/// its tag.
pub(super) fn name_in(registry: &str, image: &str) -> String {
    format!("{}/{}", registry.trim_end_matches('/'), image.rsplit('/').next().unwrap_or(image))
}

/// Splits a name into repository and tag; the tag is empty if the name has no tag or has a digest.
fn split(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        Some((repo, tag)) if !tag.contains('/') && !image.contains('@') => (repo, tag),
        _ => (image, ""),
    }
}

/// Pulls an image unless the engine has it. Returns whether it was pulled.
pub(super) async fn pull(engine: &Engine, image: &str) -> EngineResult<bool> {
    match engine.docker.inspect_image(image).await {
        Ok(_) => return Ok(false),
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(error),
    }
    let (repo, tag) = split(image);
    let mut options = CreateImageOptionsBuilder::default().from_image(repo);
    if !tag.is_empty() {
        options = options.tag(tag);
    }
    let mut told = Box::pin(engine.builder.create_image(Some(options.build()), None, credentials(engine, image)));
    let pulled = async {
        while told.try_next().await?.is_some() {}
        Ok(())
    };
    tokio::time::timeout(PATIENCE, pulled).await.unwrap_or(Err(bollard::errors::Error::RequestTimeoutError))?;
    engine.docker.inspect_image(image).await.map(|_| true)
}

/// Fetches an image from a registry and gives it this program's own name.
pub(super) async fn fetch(engine: &Engine, registry: &str, name: &str) -> EngineResult<()> {
    let there = name_in(registry, name);
    let is_new = pull(engine, &there).await?;
    rename(engine, &there, name, is_new).await
}

/// Gives an image another name, and removes the first name if `is_unwanted`.
pub(super) async fn rename(engine: &Engine, from: &str, to: &str, is_unwanted: bool) -> EngineResult<()> {
    let (repo, tag) = split(to);
    let options = TagImageOptionsBuilder::default().repo(repo).tag(tag).build();
    engine.docker.tag_image(from, Some(options)).await?;
    if is_unwanted {
        engine.docker.remove_image(from, Some(RemoveImageOptionsBuilder::default().build()), None).await?;
    }
    Ok(())
}

/// Pushes an image to a registry and returns its name there.
pub(super) async fn push(engine: &Engine, image: &str, registry: &str) -> EngineResult<String> {
    let name = name_in(registry, image);
    let was_there = engine.docker.inspect_image(&name).await.is_ok();
    rename(engine, image, &name, false).await?;
    let (repo, tag) = split(&name);
    let options = PushImageOptionsBuilder::default().tag(tag).build();
    let sent = async {
        let mut told = Box::pin(engine.builder.push_image(repo, Some(options), credentials(engine, &name)));
        while told.try_next().await?.is_some() {}
        Ok(())
    }
    .await;
    if !was_there {
        engine.docker.remove_image(&name, Some(RemoveImageOptionsBuilder::default().build()), None).await?;
    }
    sent.map(|()| name)
}

/// Returns the credentials for an image's registry that `docker login` has stored. Podman finds its credentials by
/// itself. Passwords in a credential helper cannot be read.
fn credentials(engine: &Engine, image: &str) -> Option<DockerCredentials> {
    if engine.kind == EngineKind::Podman {
        return None;
    }
    let folder = std::env::var_os("DOCKER_CONFIG")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".docker")))?;
    let stored = std::fs::read_to_string(folder.join("config.json")).ok()?;
    stored_for(&serde_json::from_str(&stored).ok()?, host(image)?)
}

/// Returns the registry's host and port. A name without host and port belongs to the engine's default registry, which
/// needs no password.
fn host(image: &str) -> Option<&str> {
    let (host, _) = image.split_once('/')?;
    (host.contains(['.', ':']) || host == "localhost").then_some(host)
}

fn stored_for(config: &serde_json::Value, host: &str) -> Option<DockerCredentials> {
    let bytes = STANDARD.decode(config["auths"][host]["auth"].as_str()?).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (username, password) = text.split_once(':')?;
    Some(DockerCredentials {
        username: Some(username.to_owned()),
        password: Some(password.to_owned()),
        serveraddress: Some(host.to_owned()),
        ..DockerCredentials::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_names_are_split_at_the_tag_and_not_at_the_port_or_the_digest() {
        assert_eq!(split("127.0.0.1:5000/me/base:1"), ("127.0.0.1:5000/me/base", "1"));
        assert_eq!(split("127.0.0.1:5000/me/base"), ("127.0.0.1:5000/me/base", ""));
        assert_eq!(split("debian@sha256:abc"), ("debian@sha256:abc", ""));
        assert_eq!(name_in("r.example/me/", "localhost/autoexperiment/env:abc"), "r.example/me/env:abc");
        assert_eq!(host("127.0.0.1:5000/me/base:1"), Some("127.0.0.1:5000"));
        assert_eq!(host("debian:bookworm-slim"), None);
    }

    #[test]
    fn a_stored_log_in_is_found_by_its_registry() {
        let config = serde_json::json!({ "auths": { "r.example:5000": { "auth": STANDARD.encode("me:a:word") } } });
        let found = stored_for(&config, "r.example:5000").unwrap();
        assert_eq!((found.username.as_deref(), found.password.as_deref()), (Some("me"), Some("a:word")));
        assert!(stored_for(&config, "other.example").is_none());
        assert!(stored_for(&serde_json::json!({ "credsStore": "pass" }), "r.example:5000").is_none());
    }
}
