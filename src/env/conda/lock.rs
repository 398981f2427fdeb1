//! `conda.lock`: the exact packages of an env, stored next to its `environment.yml`.
//!
//! The file has the format of `rattler_lock`, which other tools can read, and in addition a section `autoexperiment`
//! with the digest of the `environment.yml` and with pip's packages and their hashes. A package's location is written
//! as `channel:///NAME/SUBDIR/FILE`, with the channel's name instead of its address, so that the lock works with every
//! mirror, URL prefix and machine. A channel's address is stored only if the `environment.yml` itself gives it as a URL
//! or path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rattler_conda_types::{ChannelUrl, RepoDataRecord, Subdir};
use rattler_lock::{DEFAULT_ENVIRONMENT_NAME, LockFile, PlatformData, PlatformName};
use serde::{Deserialize, Serialize};

use super::channels::LocatedChannel;
use crate::env::environment::EnvironmentFile;
use crate::error::{Error, Result};
use crate::files::write_whole;

/// Version of the section `autoexperiment`; increase it when the section's meaning changes.
const FORMAT: u32 = 1;

/// URL scheme of locations that contain a channel's name.
const SCHEME: &str = "channel";

/// The lock of an env for all platforms.
#[derive(Debug, Clone)]
pub(super) struct CondaLock {
    /// Names of the channels, in order.
    pub(super) channels: Vec<String>,
    pub(super) sections: Vec<PlatformPackages>,
}

/// The locked packages for one platform.
#[derive(Debug, Clone)]
pub(super) struct PlatformPackages {
    pub(super) platform: Subdir,
    /// Conda packages, with URLs as they are written in the lock.
    pub(super) records: Vec<RepoDataRecord>,
    pub(super) pip: Vec<PipPackage>,
}

/// A package that pip installs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::env) struct PipPackage {
    pub(in crate::env) name: String,
    pub(in crate::env) version: String,
    /// Name of the package's file.
    pub(in crate::env) file: String,
    /// SHA-256 of the package's file, in hex.
    pub(in crate::env) sha256: String,
}

/// The section `autoexperiment` of the file.
#[derive(Serialize, Deserialize)]
struct CondaLockFile {
    autoexperiment: LockExtras,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockExtras {
    format: u32,
    /// SHA-256 in hex of the `environment.yml` for which the packages were solved.
    environment: String,
    /// Packages from pip, by platform.
    pip: BTreeMap<String, Vec<PipPackage>>,
}

impl CondaLock {
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join("conda.lock")
    }

    /// Reads the lock in `folder`.
    ///
    /// # Errors
    /// Kind `Suite` if the lock is missing, broken, or made from another version of the `environment.yml`.
    pub(super) fn read(folder: &Path, source: &EnvironmentFile) -> Result<Self> {
        let path = Self::path(folder);
        let relock = format!("type `autoexperiment env lock --env conda {}`", source.id);
        let fail = |message: String| Error::suite(message).at(&path, None).hint(relock.clone());
        let text = std::fs::read_to_string(&path).map_err(|error| {
            fail(format!("the env `{}` has no readable lock file for conda", source.id)).because(error)
        })?;
        let CondaLockFile { autoexperiment: ours } = serde_saphyr::from_str(&text).map_err(|error| {
            let line = error.location().map(|location| location.line() as usize);
            Error::suite(error.without_snippet().to_string()).at(&path, line).hint(relock.clone())
        })?;
        if ours.format != FORMAT {
            return Err(fail(format!("the lock file has format {}, this program reads {FORMAT}", ours.format)));
        }
        if ours.environment != source.digest {
            return Err(fail(format!("`{}` was changed after it was locked", source.path.display())));
        }
        let file = LockFile::from_str_with_base_directory(&text, None)
            .map_err(|error| fail("the lock file is broken".to_owned()).because(error))?;
        let environment = file.default_environment().ok_or_else(|| fail("the lock file contains no env".to_owned()))?;
        let channels = environment.channels().iter().map(|channel| channel.url.clone()).collect();
        let mut sections = Vec::new();
        for platform in file.platforms() {
            let records = environment
                .conda_repodata_records(platform)
                .map_err(|error| fail("the lock file is broken".to_owned()).because(error))?
                .unwrap_or_default();
            if let Some(record) = records.iter().find(|record| record.package_record.sha256.is_none()) {
                return Err(fail(format!("the lock file has no sha256 of `{}`", record.identifier)));
            }
            let pip = ours.pip.get(platform.subdir().as_str()).cloned().unwrap_or_default();
            sections.push(PlatformPackages { platform: platform.subdir(), records, pip });
        }
        Ok(Self { channels, sections })
    }

    /// Returns the packages for a platform.
    ///
    /// # Errors
    /// Kind `Suite` if the lock has no packages for this platform.
    pub(super) fn section(
        &self,
        platform: Subdir,
        folder: &Path,
        source: &EnvironmentFile,
    ) -> Result<&PlatformPackages> {
        self.sections.iter().find(|section| section.platform == platform).ok_or_else(|| {
            Error::suite(format!("the env `{}` is not locked for {platform}", source.id))
                .at(Self::path(folder), None)
                .hint(format!("type `autoexperiment env lock --env conda {}` on such a machine", source.id))
        })
    }

    /// Writes the lock into `folder` atomically.
    pub(super) fn write(&self, folder: &Path, source: &EnvironmentFile) -> Result<PathBuf> {
        let path = Self::path(folder);
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::internal("failed to write a lock file").because(error)
        };
        let platforms = self
            .sections
            .iter()
            .map(|section| PlatformData {
                name: PlatformName::from(&section.platform),
                subdir: section.platform,
                virtual_packages: Vec::new(),
            })
            .collect();
        let mut builder = LockFile::builder()
            .with_platforms(platforms)
            .map_err(|error| failed(error.into()))?
            .with_channels(DEFAULT_ENVIRONMENT_NAME, self.channels.iter().map(String::as_str));
        for section in &self.sections {
            for record in &section.records {
                builder = builder
                    .with_conda_package(DEFAULT_ENVIRONMENT_NAME, section.platform.as_str(), record.clone().into())
                    .map_err(|error| failed(error.into()))?;
            }
        }
        let theirs = builder.finish().render_to_string().map_err(|error| failed(error.into()))?;
        let pip = self.sections.iter().map(|section| (section.platform.to_string(), section.pip.clone())).collect();
        let ours =
            CondaLockFile { autoexperiment: LockExtras { format: FORMAT, environment: source.digest.clone(), pip } };
        let ours = serde_saphyr::to_string(&ours).map_err(|error| failed(error.into()))?;
        let text = format!(
            "# Made from environment.yml by `autoexperiment env lock --env conda {}`. Not for editing.\n\n{theirs}{ours}",
            source.id
        );
        write_whole(&path, text.as_bytes())?;
        Ok(path)
    }
}

/// Converts a package's record to the form in the lock, with the channel's name instead of its address. `places` are
/// the addresses where the channels were found.
pub(super) fn to_lock(
    mut record: RepoDataRecord,
    channels: &[LocatedChannel],
    places: &[ChannelUrl],
) -> RepoDataRecord {
    let found = channels
        .iter()
        .zip(places)
        .find_map(|(channel, place)| Some((channel, record.url.as_str().strip_prefix(place.as_str())?.to_owned())));
    if let Some((channel, rest)) = found
        && !channel.name.contains("://")
        && !super::address::is_path(&channel.name)
        && let Ok(url) = format!("{SCHEME}:///{}/{rest}", channel.name).parse()
    {
        record.url = url;
    }
    record.channel = None;
    record
}

/// Returns the part of a package's location after the scheme, `CHANNEL/SUBDIR/FILE`.
pub(super) fn channel_of(location: &str) -> Option<&str> {
    location.rsplitn(3, '/').nth(2)
}

/// Returns the name of the channel of a locked package; `None` if the lock contains the channel's address instead.
pub(super) fn channel_name(record: &RepoDataRecord) -> Option<&str> {
    (record.url.scheme() == SCHEME).then(|| channel_of(record.url.path().trim_start_matches('/'))).flatten()
}

/// Returns the address of the channel of a locked package; `None` if the lock contains the channel's name instead.
pub(super) fn channel_address(record: &RepoDataRecord) -> Option<String> {
    (record.url.scheme() != SCHEME).then(|| channel_of(record.url.as_str()).map(str::to_owned)).flatten()
}

/// Converts a package's record from the form in the lock. Looks up the channel's address on this machine by the
/// channel's name.
///
/// # Errors
/// Kind `Suite` for a location in an unknown form.
pub(super) fn from_lock(
    mut record: RepoDataRecord,
    places: &BTreeMap<String, ChannelUrl>,
    lock: &Path,
) -> Result<RepoDataRecord> {
    if record.url.scheme() != SCHEME {
        return Ok(record);
    }
    let odd = || Error::suite(format!("`{}` is not a package location", record.url)).at(lock, None);
    let place = channel_name(&record).and_then(|name| places.get(name)).ok_or_else(odd)?;
    let mut end = record.url.path().rsplit('/');
    let file = end.next().filter(|file| !file.is_empty()).ok_or_else(odd)?;
    let subdir: Subdir = end.next().and_then(|subdir| subdir.parse().ok()).ok_or_else(odd)?;
    let url = place.platform_url(subdir).join(file).map_err(|_| odd())?;
    record.url = url;
    record.channel = Some(place.to_string());
    Ok(record)
}
