//! HTTP to channels: bounded waits, nothing at all when offline.

use std::time::Duration;

use rattler_conda_types::{ChannelUrl, Subdir};
use rattler_networking::{LazyClient, OfflineMiddleware};
use reqwest_middleware::ClientBuilder;

use crate::error::{Error, Result};

/// How long a server may take to be reached.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a server may send nothing, unless `CONDA_REMOTE_READ_TIMEOUT_SECS` says otherwise.
const IDLE: Duration = Duration::from_secs(30);

/// How long a channel may take to tell that it is there.
const GREETING: Duration = Duration::from_secs(3);

/// A client for channels.
///
/// # Errors
/// Kind `Machine` when TLS cannot be set up.
pub(super) fn client(offline: bool) -> Result<LazyClient> {
    let idle = std::env::var("CONDA_REMOTE_READ_TIMEOUT_SECS").ok().and_then(|text| text.parse().ok());
    let idle = idle.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(IDLE);
    let inner = reqwest::Client::builder()
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT.min(idle))
        .read_timeout(idle)
        .build()
        .map_err(|error| Error::machine("failed to set up HTTP").because(error))?;
    let builder = ClientBuilder::new(inner);
    Ok(if offline { builder.with(OfflineMiddleware) } else { builder }.build().into())
}

/// Whether a channel answers, soon.
pub(super) async fn answers(channel: &ChannelUrl, client: &LazyClient) -> bool {
    let url = channel.platform_url(Subdir::NoArch);
    if let Ok(folder) = url.to_file_path() {
        return folder.is_dir();
    }
    for file in ["repodata.json.zst", "repodata.json"] {
        let Ok(url) = url.join(file) else { return false };
        match client.client().head(url).timeout(GREETING).send().await {
            // A server that serves no HEAD is there all the same.
            Ok(response) if response.status().is_success() || response.status().as_u16() == 405 => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}
