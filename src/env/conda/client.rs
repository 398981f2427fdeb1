//! HTTP client for channels, with timeouts. When offline, it refuses network access.

use std::time::Duration;

use rattler_conda_types::{ChannelUrl, Subdir};
use rattler_networking::{LazyClient, OfflineMiddleware};
use reqwest_middleware::ClientBuilder;

use crate::error::{Error, Result};

/// Timeout for connecting to a server.
const CONNECT: Duration = Duration::from_secs(10);

/// Timeout for a server that sends nothing; `CONDA_REMOTE_READ_TIMEOUT_SECS` overrides it.
const IDLE: Duration = Duration::from_secs(30);

/// Timeout for the request that checks whether a channel exists.
const GREETING: Duration = Duration::from_secs(3);

/// Creates an HTTP client for channels.
///
/// # Errors
/// Kind `Machine` if TLS cannot be set up.
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

/// Whether a channel answers within a few seconds.
pub(super) async fn answers(channel: &ChannelUrl, client: &LazyClient) -> bool {
    let url = channel.platform_url(Subdir::NoArch);
    if let Ok(folder) = url.to_file_path() {
        return folder.is_dir();
    }
    for file in ["repodata.json.zst", "repodata.json"] {
        let Ok(url) = url.join(file) else { return false };
        match client.client().head(url).timeout(GREETING).send().await {
            // Some servers do not support HEAD requests, so their refusal counts as an answer.
            Ok(response) if response.status().is_success() || response.status().as_u16() == 405 => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}
