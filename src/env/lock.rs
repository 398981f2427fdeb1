//! `venv.lock`: the exact packages of an env, stored next to its `environment.yml`.
//!
//! A lock has one section per target (minor version of Python, and platform), because a wheel's hash is specific to a
//! target. Versions hold for all targets: if there is no section for a machine's target, the versions in the most
//! similar section are used, and a notice says that hashes were not checked. Addresses of package indexes are not
//! stored.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::python::PythonVersion;
use crate::error::{Error, Result, line_at};
use crate::files::write_whole;

/// Version of the file format; increase it when the meaning of the file's contents changes.
const FORMAT: u32 = 1;

/// The lock of an env, with a section for each target: a minor version of Python on a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VenvLock {
    format: u32,
    /// SHA-256 in hex of the `environment.yml` for which the packages were solved.
    pub(super) environment: String,
    #[serde(rename = "target")]
    pub(super) targets: Vec<LockedTarget>,
}

/// The locked packages for one version of Python on one platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockedTarget {
    /// Minor version of Python, such as `3.11`.
    pub(super) python: String,
    /// Operating system and processor, such as `linux-x86_64`.
    pub(super) platform: String,
    #[serde(rename = "package", default)]
    pub(super) packages: Vec<LockedPackage>,
}

/// One locked package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockedPackage {
    pub(super) name: String,
    pub(super) version: String,
    /// SHA-256 in hex of each file that may be installed, sorted.
    pub(super) sha256: Vec<String>,
}

/// The packages to install on one machine, and whether their hashes are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockedPackages<'a> {
    pub(super) packages: &'a [LockedPackage],
    pub(super) hashes_known: bool,
}

/// Returns operating system and processor of this machine, such as `linux-x86_64`.
pub(super) fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

/// Returns the minor version, such as `3.11` for 3.11.7.
pub(super) fn minor(version: PythonVersion) -> String {
    format!("{}.{}", version[0], version[1])
}

fn number(python: &str) -> u64 {
    python.rsplit('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

impl VenvLock {
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join("venv.lock")
    }

    pub(super) fn new(environment: &Environment, mut targets: Vec<LockedTarget>) -> Self {
        targets.sort_by_key(|target| (number(&target.python), target.platform.clone()));
        Self { format: FORMAT, environment: environment.digest.clone(), targets }
    }

    /// Reads the lock in `folder`. Also returns the text of the file.
    ///
    /// # Errors
    /// Kind `Suite` if the lock is missing, broken, or made from another version of the `environment.yml`.
    pub(super) fn read(folder: &Path, environment: &Environment) -> Result<(Self, String)> {
        let path = Self::path(folder);
        let relock = format!("type `autoexperiment env lock {}`", environment.id);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Error::suite(format!("the env `{}` has no readable lock file", environment.id))
                .at(&path, None)
                .because(error)
                .hint(relock.clone())
        })?;
        let lock: Self = toml::from_str(&text).map_err(|error| {
            let line = error.span().map(|span| line_at(&text, span.start));
            Error::suite(error.message().to_owned()).at(&path, line).hint(relock.clone())
        })?;
        if lock.format != FORMAT {
            let message = format!("the lock file has format {}, this program reads {FORMAT}", lock.format);
            return Err(Error::suite(message).at(&path, None).hint(relock));
        }
        if lock.environment != environment.digest {
            let message = format!("`{}` was changed after it was locked", environment.path.display());
            return Err(Error::suite(message).at(&path, None).hint(relock));
        }
        if lock.targets.is_empty() {
            return Err(Error::suite("the lock file has requirements for no platform").at(&path, None).hint(relock));
        }
        Ok((lock, text))
    }

    /// Writes the lock into `folder` atomically.
    pub(super) fn write(&self, folder: &Path, environment: &Environment) -> Result<PathBuf> {
        let path = Self::path(folder);
        let body =
            toml::to_string(self).map_err(|error| Error::internal("failed to write a lock file").because(error))?;
        let text = format!(
            "# Made from environment.yml by `autoexperiment env lock {}`. Not for editing.\n\n{body}",
            environment.id
        );
        write_whole(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Whether there is a section for this version of Python and this platform.
    pub(super) fn has(&self, python: &str, platform: &str) -> bool {
        self.targets.iter().any(|target| target.python == python && target.platform == platform)
    }

    /// Returns the packages for a version of Python and a platform: those of its own section or, without one, the
    /// versions of the most similar section. The most similar section is the one with the nearest version of Python. Of
    /// equally near sections, one for the same platform is preferred, then the one for the newer Python.
    pub(super) fn choose(&self, python: &str, platform: &str) -> Option<LockedPackages<'_>> {
        let distance = |target: &&LockedTarget| {
            let (here, wanted) = (number(&target.python), number(python));
            (here.abs_diff(wanted), target.platform != platform, here < wanted, target.platform.clone())
        };
        let nearest = self.targets.iter().min_by_key(distance)?;
        let hashes_known = nearest.python == python && nearest.platform == platform;
        Some(LockedPackages { packages: &nearest.packages, hashes_known })
    }
}

impl LockedPackages<'_> {
    /// Formats the packages as a requirements file for `pip install -r`.
    pub(super) fn requirements(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        for package in self.packages {
            let _ = write!(text, "{}=={}", package.name, package.version);
            for hash in package.sha256.iter().filter(|_| self.hashes_known) {
                let _ = write!(text, " --hash=sha256:{hash}");
            }
            text.push('\n');
        }
        text
    }
}
