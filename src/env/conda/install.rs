//! Installs locked packages into a prefix: downloads each package once, checks its hash, unpacks it into the package
//! cache, and links its files from there.

use std::path::Path;

use rattler::install::{Installer, LinkOptions};
use rattler::package_cache::PackageCache;
use rattler::validation::ValidationMode;
use rattler_conda_types::{RepoDataRecord, Subdir};
use rattler_networking::LazyClient;

use super::failure::explained;
use super::progress::{BuildListener, events, forward_events};
use crate::env::{BuildProgress, OnProgress};
use crate::error::{Error, Result};

/// Number of parallel downloads.
const DOWNLOADS: usize = 8;

/// Installs the packages into an empty prefix at its final location. The packages' post-link scripts are not run.
///
/// # Errors
/// Kind `Suite` for a package that does not match its hash, `Machine` for everything else.
pub(super) async fn install(
    prefix: &Path,
    platform: Subdir,
    records: Vec<RepoDataRecord>,
    packages: &Path,
    client: &LazyClient,
    offline: bool,
    on_progress: OnProgress<'_>,
) -> Result<()> {
    std::fs::create_dir_all(packages).map_err(|error| Error::io("create", packages, error))?;
    // Check each cached file against its hash, so that files that a killed process left incomplete, or that somebody
    // modified, are downloaded again.
    let cache = PackageCache::new_layered([packages.to_owned()], false, ValidationMode::Full);
    if offline {
        refuse_missing(&cache, &records).await?;
    }
    on_progress(BuildProgress::Task(format!("installing {} conda packages", records.len())));
    let (sender, receiver) = events();
    let installer = Installer::new()
        .with_download_client(client.clone())
        .with_package_cache(cache)
        .with_target_platform(platform)
        .with_execute_link_scripts(false)
        .with_max_concurrent_requests(DOWNLOADS)
        .with_link_options(LinkOptions::default())
        .with_installed_packages(Vec::new())
        .with_reporter(BuildListener::new(sender));
    forward_events(installer.install(prefix, records), receiver, on_progress)
        .await
        .map(drop)
        .map_err(|error| explained("failed to install the conda packages", error))
}

/// Fails before any work if packages are not in the cache and the network is off. The error names them.
async fn refuse_missing(cache: &PackageCache, records: &[RepoDataRecord]) -> Result<()> {
    let index =
        cache.index().await.map_err(|error| Error::machine("failed to read the cache of packages").because(error))?;
    let missing: Vec<String> = records
        .iter()
        .filter(|record| record.url.scheme() != "file" && !index.contains_record(record))
        .map(|record| format!("`{}`", record.identifier))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::machine(format!("offline, and not in the cache: {}", missing.join(", ")))
        .hint("build the env once without `--offline`"))
}
