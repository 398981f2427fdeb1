//! Python environments from `envs/<id>/environment.yml`: locked, built once, cached by content, read-only.

mod cache;
mod choice;
#[cfg(feature = "conda")]
mod conda;
mod environment;
mod index;
mod interpreter;
mod lock;
pub(crate) mod npm;
mod pip;
mod prefix;
mod python;
#[cfg(test)]
mod tests;
mod venv;
mod wheelhouse;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::error::Result;

pub use cache::EnvHold;
pub(crate) use cache::{cached, default_cache, remove_cached, remove_downloads};
pub use choice::{EnvBuildOptions, EnvKind};
#[cfg(feature = "conda")]
pub use conda::Conda;
pub use environment::is_from_index;
pub(crate) use index::{PipIndexes, pip_indexes};
pub use interpreter::newest as newest_python;
pub use python::{accepts, readable as python_range};
pub use venv::Venv;
pub(crate) use wheelhouse::wheelhouse;

/// A built environment, ready to use.
#[derive(Debug, Clone)]
pub struct Env {
    /// The backend that built the environment: `venv` or `conda`.
    pub backend: &'static str,
    /// SHA-256 in hex of everything that is installed.
    pub digest: String,
    /// The interpreter's full version, such as `3.11.7`.
    pub python: String,
    /// The environment's folder.
    pub prefix: PathBuf,
    /// Folders that a sandbox must contain read-only for the env to work: the env's own folder and its interpreter's.
    pub read_only: Vec<PathBuf>,
    /// All variables of the activated env, including PATH. They replace the environment of the calling process.
    pub variables: BTreeMap<String, String>,
    /// Keeps the env in the cache. `None` for an env that is not in the cache.
    pub hold: Option<EnvHold>,
}

impl Env {
    /// Whether the env has been neither removed nor replaced since it was built or found in the cache. Always true for
    /// an env that is not in the cache.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.hold.as_ref().is_none_or(EnvHold::is_intact)
    }

    /// Returns the tag of the env's interpreter, such as `cpython-312`. Compiled code works only with an interpreter of
    /// the same tag.
    #[must_use]
    pub fn abi(&self) -> String {
        format!("cpython-{}", self.python.split('.').take(2).collect::<String>())
    }
}

/// Returns the variables of every env that is built from the `environment.yml` in `folder`, without those that depend on
/// the env's location, such as PATH.
///
/// # Errors
/// Kind `Suite` if the file cannot be read.
pub fn portable_variables(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut variables = prefix::reproducible();
    variables.extend(environment::EnvironmentFile::read(folder)?.variables);
    variables.remove("PATH");
    Ok(variables)
}

/// Returns the names of this process's variables that contain secrets for servers. They are removed from the environment
/// of code that others wrote, such as the build scripts of packages.
pub(crate) fn secret_variables() -> impl Iterator<Item = OsString> {
    let is_secret = |name: &str| name.ends_with("_API_KEY") || name == "AUTOEXPERIMENT_TOKEN";
    std::env::vars_os().map(|(name, _)| name).filter(move |name| is_secret(&name.to_string_lossy()))
}

/// Progress of a build or of locking, for progress bars.
#[derive(Debug, Clone)]
pub enum BuildProgress {
    /// A task has started, such as "installing 6 packages".
    Task(String),
    /// Number of completed steps and of all steps of the current task.
    Step(u64, u64),
    /// A detail of the current task, such as "numpy 2.4.1".
    Detail(String),
    /// A message that the user must see.
    Notice(String),
}

/// A function that receives [`BuildProgress`].
pub type OnProgress<'a> = &'a (dyn Fn(BuildProgress) + Send + Sync);

/// Whether an env is locked and built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvState {
    /// Whether there is a lock file for the current `environment.yml`.
    pub locked: bool,
    /// Whether the built env is in the cache.
    pub built: bool,
}

/// A way to build environments: `venv`, `conda` or `auto`.
#[async_trait]
pub trait EnvBackend: Send + Sync {
    /// The backend's name: `venv`, `conda` or `auto`.
    fn name(&self) -> &'static str;
    /// Solves the `environment.yml` in `folder` and writes the lock file next to it, replacing an older one. Downloads
    /// are cached.
    ///
    /// # Errors
    /// Kind `Suite` for an `environment.yml` that is invalid or has no solution, `Machine` for a missing interpreter or
    /// a failed download.
    async fn lock(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<PathBuf>;
    /// Returns the env of `folder`: from the cache, or newly built exactly as the lock file says.
    ///
    /// # Errors
    /// Kind `Suite` for an invalid or outdated lock, `Machine` for a missing interpreter or a failed installation.
    async fn build(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<Env>;
    /// Returns the state of the env of `folder` without changing anything.
    ///
    /// # Errors
    /// Kind `Suite` for an invalid `environment.yml` and for a broken or outdated lock. A missing lock is not an error.
    fn state(&self, folder: &Path, cache: &Path) -> Result<EnvState>;
}
