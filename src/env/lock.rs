//! `venv.lock`: the exact packages of an env, beside its `environment.yml`.
//!
//! A lock has one section a target (minor version of Python and platform), since a wheel's hash belongs to one
//! target. Versions bind everywhere: a machine without a section of its own uses the versions of the nearest one,
//! and is told that hashes were not checked. No address of an index is written down.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::python::Version;
use crate::error::{Error, Result, line_at};
use crate::files::write_whole;

/// Raised when the file's meaning changes.
const FORMAT: u32 = 1;

/// All targets of an env.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lock {
    format: u32,
    /// sha256 of the yml that was solved, hex.
    pub(super) environment: String,
    #[serde(rename = "target")]
    pub(super) targets: Vec<Target>,
}

/// What is installed on one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    /// Minor version, as `3.11`.
    pub(super) python: String,
    /// Operating system and processor, as `linux-x86_64`.
    pub(super) platform: String,
    #[serde(rename = "package", default)]
    pub(super) packages: Vec<Package>,
}

/// One package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// sha256 of every file that will do, hex, sorted.
    pub(super) sha256: Vec<String>,
}

/// The packages for one machine, and whether their hashes are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) packages: &'a [Package],
    pub(super) hashes_known: bool,
}

/// Operating system and processor of this machine.
pub(super) fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

/// `3.11` of 3.11.7.
pub(super) fn minor(version: Version) -> String {
    format!("{}.{}", version[0], version[1])
}

fn number(python: &str) -> u64 {
    python.rsplit('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

impl Lock {
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join("venv.lock")
    }

    pub(super) fn new(environment: &Environment, mut targets: Vec<Target>) -> Self {
        targets.sort_by_key(|target| (number(&target.python), target.platform.clone()));
        Self { format: FORMAT, environment: environment.digest.clone(), targets }
    }

    /// The lock in `folder`, and the bytes that it was read from.
    ///
    /// # Errors
    /// Kind `Suite` when it is missing, broken, or older than the yml.
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
            return Err(Error::suite("the lock file holds no target").at(&path, None).hint(relock));
        }
        Ok((lock, text))
    }

    /// Writes it into `folder`, whole or not at all.
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

    /// Whether there is a section for this Python on this machine.
    pub(super) fn has(&self, python: &str, platform: &str) -> bool {
        self.targets.iter().any(|target| target.python == python && target.platform == platform)
    }

    /// The packages for a Python on a platform: those of its own section, else the versions of the section nearest
    /// to it: the nearest Python, the same platform before others, the newer before the older.
    pub(super) fn choose(&self, python: &str, platform: &str) -> Option<Chosen<'_>> {
        let distance = |target: &&Target| {
            let (here, wanted) = (number(&target.python), number(python));
            (here.abs_diff(wanted), target.platform != platform, here < wanted, target.platform.clone())
        };
        let nearest = self.targets.iter().min_by_key(distance)?;
        let hashes_known = nearest.python == python && nearest.platform == platform;
        Some(Chosen { packages: &nearest.packages, hashes_known })
    }
}

impl Chosen<'_> {
    /// Lines for `pip install -r`.
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
