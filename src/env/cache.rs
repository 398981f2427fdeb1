//! The cache of built environments: `<cache>/envs/<key>/`, with `venv/` and the marker `complete.json`, which is
//! written last.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{BuildProgress, OnProgress};
use crate::error::{Error, FailureKind, Result};
use crate::files::write_whole;
use crate::workspace::remove_tree;

/// Extension of the lock file beside an environment's folder. Each process that uses the environment holds a shared
/// lock on this file.
const IN_USE: &str = "use";

/// The marker that a cached environment is complete, stored as `complete.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CompletionMarker {
    pub(super) id: String,
    #[serde(default = "venv")]
    pub(super) backend: String,
    pub(super) python: String,
    pub(super) digest: String,
    /// Folders that a sandbox must contain in addition to the environment's own.
    pub(super) read_only: Vec<PathBuf>,
    pub(super) interpreter: PathBuf,
    /// Size and modification time of the interpreter; if they have changed, the env is built again.
    pub(super) stamp: (u64, i64),
    /// Variables set by activation, including PATH.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) variables: BTreeMap<String, String>,
}

/// Returns `venv`, the backend of markers without a backend. An earlier version of this program wrote such markers.
fn venv() -> String {
    "venv".to_owned()
}

/// An environment in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedEnv {
    /// The env's id, which is the name of its folder in the suite's `envs/`; empty for an unfinished build.
    pub id: String,
    /// The backend that built the env, `venv` or `conda`; empty for an unfinished build.
    pub backend: String,
    /// Version of Python; empty for an unfinished build.
    pub python: String,
    /// The env's folder in the cache.
    pub path: PathBuf,
    /// Size on disk in bytes.
    pub bytes: u64,
    /// Whether the build is complete.
    pub complete: bool,
}

/// Returns the folder for data that can be recreated: `$AUTOEXPERIMENT_CACHE`, otherwise
/// `$XDG_CACHE_HOME/autoexperiment`, otherwise `~/.cache/autoexperiment`.
///
/// # Errors
/// Kind `Place` if none of `AUTOEXPERIMENT_CACHE`, `XDG_CACHE_HOME` and `HOME` is set.
pub fn default_cache() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("AUTOEXPERIMENT_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("autoexperiment")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/autoexperiment")))
        .ok_or_else(|| {
            Error::new(FailureKind::Place, "no folder is set for the cache, and there is no home to put one into")
                .hint("set `AUTOEXPERIMENT_CACHE` to a folder, or set `HOME`")
        })
}

/// Lists all environments of a cache, sorted by id.
///
/// # Errors
/// Kind `Machine` if the cache cannot be read. A missing cache is empty.
pub fn cached(cache: &Path) -> Result<Vec<CachedEnv>> {
    let envs = cache.join("envs");
    let entries = match std::fs::read_dir(&envs) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| Error::io("read", &envs, error))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Error::io("read", &envs, error))?.path();
        if !path.is_dir() {
            continue;
        }
        let complete = CompletionMarker::read(&path);
        let walk = walkdir::WalkDir::new(&path).into_iter().filter_map(Result::ok);
        let bytes = walk.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum();
        let is_complete = complete.is_some();
        let (id, backend, python) = complete.map(|one| (one.id, one.backend, one.python)).unwrap_or_default();
        found.push(CachedEnv { id, backend, python, path, bytes, complete: is_complete });
    }
    found.sort_by(|one, other| (&one.id, &one.path).cmp(&(&other.id, &other.path)));
    Ok(found)
}

/// Removes an environment from the cache; it is built again when needed. If it is being built, waits for the end of the
/// build first.
///
/// # Errors
/// Kind `Machine` if the environment is in use, or cannot be removed.
pub fn remove_cached(env: &CachedEnv) -> Result<()> {
    let lock_path = env.path.with_extension("lock");
    let lock = File::create(&lock_path).map_err(|error| Error::io("create", &lock_path, error))?;
    lock.lock().map_err(|error| Error::io("lock", &lock_path, error))?;
    if !env.complete && CompletionMarker::read(&env.path).is_some() {
        // A build has completed this env while we waited for the lock, so keep it.
        return Ok(());
    }
    clear(&env.path)
}

/// Removes everything that was downloaded to build environments. Keeps built environments, and wheelhouses, which runs
/// may be using. Builds in progress fail.
///
/// # Errors
/// Kind `Machine` if something cannot be removed.
pub fn remove_downloads(cache: &Path) -> Result<()> {
    for folder in ["conda", "wheels", "downloads-npm"].map(|name| cache.join(name)) {
        remove_tree(&folder).map_err(|error| Error::io("remove", &folder, error))?;
    }
    Ok(())
}

/// Removes an environment's folder. The marker is removed first, so that a partly removed environment never counts as
/// complete.
///
/// # Errors
/// Kind `Machine` if the environment is in use, or cannot be removed.
pub(super) fn clear(home: &Path) -> Result<()> {
    // If the file cannot be opened, or the file system has no locks, it is unknown whether the environment is in use.
    // Remove the environment in this case.
    let in_use = open_lock(&home.with_extension(IN_USE)).ok();
    if in_use.as_ref().is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock))) {
        return Err(Error::machine(format!("the env in `{}` is in use by another process", home.display()))
            .hint("wait until the runs with this env have ended"));
    }
    let marker = CompletionMarker::path(home);
    remove_tree(&marker).map_err(|error| Error::io("remove", &marker, error))?;
    remove_tree(home).map_err(|error| Error::io("remove", home, error))
}

/// Keeps other processes from removing or rebuilding a complete environment, as long as a copy of this value exists.
#[derive(Debug, Clone)]
pub struct EnvHold(Arc<HeldEnv>);

#[derive(Debug)]
struct HeldEnv {
    home: PathBuf,
    marker: CompletionMarker,
    /// The shared lock; `None` if the file system has no locks, or the cache is read-only.
    _in_use: Option<File>,
}

impl EnvHold {
    /// Holds the environment in the folder `home`, whose marker has been read or written.
    ///
    /// # Errors
    /// Kind `Machine` if the environment has been removed in the meantime.
    pub(super) fn new(home: &Path, marker: &CompletionMarker) -> Result<Self> {
        let in_use = open_lock(&home.with_extension(IN_USE)).ok();
        let in_use = in_use.filter(|file| file.lock_shared().is_ok());
        let this = Self(Arc::new(HeldEnv { home: home.to_owned(), marker: marker.clone(), _in_use: in_use }));
        if this.is_intact() {
            return Ok(this);
        }
        Err(Error::machine(format!("the env in `{}` was removed while it was being prepared", home.display()))
            .hint("repeat the command"))
    }

    /// Whether the environment is complete and still the same, and its interpreter exists. The interpreter may have
    /// been updated meanwhile: an environment in use still works with it, so this does not count as a change.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        let marker = CompletionMarker::read_any(&self.0.home);
        marker.is_some_and(|now| now == self.0.marker) && self.0.marker.interpreter.exists()
    }
}

impl CompletionMarker {
    fn path(home: &Path) -> PathBuf {
        home.join("complete.json")
    }

    /// Reads the marker of a complete environment; returns `None` if the interpreter has changed since.
    pub(super) fn read(home: &Path) -> Option<Self> {
        let complete = Self::read_any(home)?;
        (stamp(&complete.interpreter).ok()? == complete.stamp).then_some(complete)
    }

    /// Reads the marker of a complete environment, whose interpreter may have changed.
    fn read_any(home: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(Self::path(home)).ok()?).ok()
    }

    /// Writes the marker atomically.
    pub(super) fn write(&self, home: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::internal("failed to write an env's marker").because(error))?;
        write_whole(&Self::path(home), &text)
    }
}

/// Returns size and modification time of a file.
pub(super) fn stamp(path: &Path) -> std::io::Result<(u64, i64)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.len(), metadata.mtime()))
}

fn open_lock(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Locks an environment's folder. Reports if it has to wait because another process holds the lock. The lock is
/// released when all copies of the returned handle are closed, including those that child processes inherit.
pub(super) async fn lock(home: &Path, on_progress: OnProgress<'_>) -> Result<File> {
    const PAUSE: Duration = Duration::from_millis(50);
    let path = home.with_extension("lock");
    let file = open_lock(&path).map_err(|error| Error::io("create", &path, error))?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path, error)),
            Err(TryLockError::WouldBlock) => {
                if !told {
                    on_progress(BuildProgress::Task("waiting for another build of the same env".into()));
                    told = true;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
