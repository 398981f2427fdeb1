//! Python environments from `envs/<id>/environment.yml`: locked, built once, cached by content, read-only.

mod cache;
mod choice;
#[cfg(feature = "conda")]
mod conda;
mod environment;
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
pub use choice::{EnvKind, Options};
#[cfg(feature = "conda")]
pub use conda::Conda;
pub use interpreter::newest as newest_python;
pub use python::{accepts, readable as python_range};
pub use venv::Venv;
pub(crate) use wheelhouse::wheelhouse;

/// A built environment.
#[derive(Debug, Clone)]
pub struct Env {
    /// Which backend built it: `venv` or `conda`.
    pub backend: &'static str,
    /// Digest of everything that was installed: sha256, hex.
    pub digest: String,
    /// The interpreter's full version, as `3.11.7`.
    pub python: String,
    /// The environment's folder.
    pub prefix: PathBuf,
    /// Folders that a sandbox must show read-only for the env to work: the prefix and its interpreter's.
    pub read_only: Vec<PathBuf>,
    /// Variables of the activated env, PATH among them, from empty.
    pub variables: BTreeMap<String, String>,
}

impl Env {
    /// The tag of its interpreter, as `cpython-312`: compiled code works with no other.
    #[must_use]
    pub fn abi(&self) -> String {
        format!("cpython-{}", self.python.split('.').take(2).collect::<String>())
    }
}

/// What a build tells while it goes on, for progress bars.
#[derive(Debug, Clone)]
pub enum Progress {
    /// A task has begun, such as "installing 6 packages".
    Task(String),
    /// The current task is this far, out of so many.
    Step(u64, u64),
    /// A line of detail, as "numpy 2.4.1".
    Detail(String),
    /// Something that the user has to know, a sentence.
    Notice(String),
}

/// A listener for [`Progress`].
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// How far an env is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Whether there is a lock file, of the yml as it is now.
    pub locked: bool,
    /// Whether it is in the cache.
    pub built: bool,
}

/// A way of making environments: `venv`, or `conda`.
#[async_trait]
pub trait Backend: Send + Sync {
    /// `venv`, `conda` or `auto`.
    fn name(&self) -> &'static str;
    /// Solves the yml in `folder` again and writes the lock file beside it. What is downloaded for it is kept in the
    /// cache.
    ///
    /// # Errors
    /// Kind `Suite` for a wrong yml or one that nothing satisfies, `Machine` for a missing interpreter or a failed
    /// download.
    async fn lock(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<PathBuf>;
    /// The env of `folder`, from the cache or built there from the lock file, exactly.
    ///
    /// # Errors
    /// Kind `Suite` for a wrong or outdated lock, `Machine` for a missing interpreter or a failed install.
    async fn build(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<Env>;
    /// How far the env of `folder` is, without doing anything.
    ///
    /// # Errors
    /// Kind `Suite` for a wrong yml, and a broken or outdated lock. One that is missing is not an error.
    fn state(&self, folder: &Path, cache: &Path) -> Result<State>;
}
