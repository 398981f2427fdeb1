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
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::error::Result;

pub(crate) use cache::{cached, default_cache, remove_cached, remove_downloads};
pub use choice::{EnvBuildOptions, EnvKind};
#[cfg(feature = "conda")]
pub use conda::Conda;
pub(crate) use index::{PipIndexes, pip_indexes};
pub use interpreter::newest as newest_python;
pub use python::{accepts, readable as python_range};
pub use venv::Venv;
pub(crate) use wheelhouse::wheelhouse;

/// A built environment.
#[derive(Debug, Clone)]
pub struct Env {
    /// The backend that built it: `venv` or `conda`.
    pub backend: &'static str,
    /// SHA-256 of everything that was installed, in hex.
    pub digest: String,
    /// The interpreter's full version, such as `3.11.7`.
    pub python: String,
    /// The environment's folder.
    pub prefix: PathBuf,
    /// Folders that a sandbox must contain read-only for the env to work: the prefix and its interpreter's.
    pub read_only: Vec<PathBuf>,
    /// Variables of the activated env including PATH, starting from an empty environment.
    pub variables: BTreeMap<String, String>,
}

impl Env {
    /// Returns the tag of its interpreter, such as `cpython-312`. Compiled code works only with the same tag.
    #[must_use]
    pub fn abi(&self) -> String {
        format!("cpython-{}", self.python.split('.').take(2).collect::<String>())
    }
}

/// Progress of a build, for progress bars.
#[derive(Debug, Clone)]
pub enum BuildProgress {
    /// A task has started, such as "installing 6 packages".
    Task(String),
    /// Completed and total steps of the current task.
    Step(u64, u64),
    /// A line of detail, such as "numpy 2.4.1".
    Detail(String),
    /// A sentence that the user must see.
    Notice(String),
}

/// A listener for [`BuildProgress`].
pub type OnProgress<'a> = &'a (dyn Fn(BuildProgress) + Send + Sync);

/// State of an env.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvState {
    /// Whether there is a lock file for the current yml.
    pub locked: bool,
    /// Whether the built env is in the cache.
    pub built: bool,
}

/// A way of building environments: `venv` or `conda`.
#[async_trait]
pub trait EnvBackend: Send + Sync {
    /// Returns `venv`, `conda` or `auto`.
    fn name(&self) -> &'static str;
    /// Solves the yml in `folder` again and writes the lock file next to it. Downloads are cached.
    ///
    /// # Errors
    /// Kind `Suite` for a yml that is invalid or has no solution, `Machine` for a missing interpreter or a failed
    /// download.
    async fn lock(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<PathBuf>;
    /// Returns the env of `folder`, from the cache or built exactly from the lock file.
    ///
    /// # Errors
    /// Kind `Suite` for an invalid or outdated lock, `Machine` for a missing interpreter or a failed installation.
    async fn build(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<Env>;
    /// Returns the state of the env of `folder` without changing anything.
    ///
    /// # Errors
    /// Kind `Suite` for an invalid yml and for a broken or outdated lock. A missing lock is not an error.
    fn state(&self, folder: &Path, cache: &Path) -> Result<EnvState>;
}
