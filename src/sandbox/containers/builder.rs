//! Containers in which images and volumes are built. The name of such a container works as a lock between processes,
//! and its files are uploaded as an archive.

use std::io;
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptionsBuilder, UploadToContainerOptionsBuilder};

use super::engine::{Engine, is_conflict};
use super::{pack, store};
use crate::error::{Error, Result};

/// Time to wait for another process that makes the same image.
const OTHERS: Duration = Duration::from_mins(30);

/// Creates a container with this name. If a container of that name exists, another process is building the same image
/// or volume. In that case, waits until that process has finished, and only then creates the container.
pub(super) async fn create_alone(engine: &Engine, name: &str, body: ContainerCreateBody) -> Result<String> {
    let begun = std::time::Instant::now();
    loop {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        match engine.docker.create_container(Some(options), body.clone()).await {
            Ok(made) => return Ok(made.id),
            Err(error) if is_conflict(&error) && begun.elapsed() < OTHERS => {
                store::sweep(engine).await?;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(error) => return Err(engine.failed("create a container", &error)),
        }
    }
}

/// Uploads an archive, written by `fill`, into a folder of a container.
pub(super) async fn upload(
    engine: &Engine,
    id: &str,
    to: &str,
    fill: impl FnOnce(&mut pack::TarArchive) -> io::Result<()> + Send + 'static,
) -> Result<()> {
    let (body, writing) = pack::stream(fill);
    let options = UploadToContainerOptionsBuilder::default().path(to).build();
    let sent = engine.builder.upload_to_container(id, Some(options), bollard::body_try_stream(body)).await;
    // If a file could not be read, the upload fails, too. Report that the file could not be read, because this is the
    // cause.
    let written = writing.await.map_err(io::Error::other).and_then(|written| written);
    match (sent, written) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(error), Err(cause)) if cause.kind() == io::ErrorKind::BrokenPipe => {
            Err(engine.failed("copy files into a container", &error))
        }
        (_, Err(cause)) => Err(Error::machine("failed to read files for a container").because(cause)),
        (Err(error), Ok(())) => Err(engine.failed("copy files into a container", &error)),
    }
}
