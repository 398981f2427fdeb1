//! The volume with the init, the first process of every container. The volume's name contains a digest of its content,
//! and it is mounted read-only. Images do not contain the init, so all versions of this program can use the same
//! images. An init that is not linked statically gets its loader and libraries in the same volume, so that it runs in
//! any image.

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
use crate::sandbox::program;

/// Mount point of the volume in containers.
const PLACE: &str = "/autoexperiment";
/// The last file of the volume to be written: if it exists, the volume is complete.
const COMPLETE: &str = "/autoexperiment/complete";

/// The installed init.
#[derive(Debug)]
pub(super) struct Tools {
    volume: String,
    /// The command line of a container's first process.
    pub(super) command: Vec<String>,
}

impl Tools {
    /// Finds the volume with the init, or makes it.
    pub(super) async fn install(engine: &Engine, base: &str) -> Result<Self> {
        let (needed, digest) = tokio::task::spawn_blocking(examine)
            .await
            .map_err(|error| Error::internal("computing the digest was aborted").because(error))?
            .map_err(|error| Error::machine("failed to unpack the sandbox's first process").because(error))?;
        let loader = needed.iter().filter_map(|path| path.file_name()).find(|name| is_loader(name));
        let program = format!("{PLACE}/bin/autoexperiment-init");
        let command = match loader {
            Some(loader) => {
                let loader = format!("{PLACE}/lib/{}", loader.to_string_lossy());
                vec![loader, "--library-path".into(), format!("{PLACE}/lib"), program]
            }
            None => vec![program],
        };
        let tools = Self { volume: format!("autoexperiment-init-{digest}"), command };
        tools.fill(engine, base, &needed).await?;
        Ok(tools)
    }

    /// Returns the mount of the volume.
    pub(super) fn mount(&self, read_only: bool) -> Mount {
        Mount {
            target: Some(PLACE.into()),
            source: Some(self.volume.clone()),
            typ: Some(MountType::VOLUME),
            read_only: Some(read_only),
            ..Mount::default()
        }
    }

    async fn fill(&self, engine: &Engine, base: &str, needed: &[PathBuf]) -> Result<()> {
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
        // The container's name prevents other processes from filling the same volume at the same time.
        let lock = format!("autoexperiment-build-{}", self.volume);
        let id = create_alone(engine, &lock, body).await?;
        let filled = self.fill_through(engine, &id, needed).await;
        let force = RemoveContainerOptionsBuilder::default().force(true).build();
        engine.builder.remove_container(&id, Some(force)).await.map_err(failed("remove a container"))?;
        filled
    }

    async fn fill_through(&self, engine: &Engine, id: &str, needed: &[PathBuf]) -> Result<()> {
        let asked = ContainerArchiveInfoOptionsBuilder::default().path(COMPLETE).build();
        match engine.docker.get_container_archive_info(id, Some(asked)).await {
            Ok(_) => return Ok(()),
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(engine.failed("look into a volume", &error)),
        }
        let needed = needed.to_owned();
        upload(engine, id, PLACE, move |archive| {
            let style = Style { owner: 0, stamped: false };
            archive.folder(Path::new("bin"), 0)?;
            archive.file_with(Path::new("bin/autoexperiment-init"), program::BYTES, 0o755)?;
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

/// Returns the init's libraries and the digest of the init and its libraries.
fn examine() -> io::Result<(Vec<PathBuf>, String)> {
    let needed: Vec<PathBuf> = libraries::find_libraries(&[program::path()?]).into_iter().collect();
    let mut hasher = Sha256::new();
    hasher.update(program::BYTES);
    for path in &needed {
        pack::digest_tree(&mut hasher, &path.canonicalize()?, &|_| false)?;
    }
    Ok((needed, pack::short(hasher)))
}

fn is_loader(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("ld-")
}
