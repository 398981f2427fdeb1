//! The cache of built environments: `<cache>/envs/<key>/`, with `venv/` and, written last, `complete.json`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{OnProgress, Progress};
use crate::error::{Error, Kind, Result};
use crate::files::write_whole;
use crate::workspace::remove_tree;

/// A finished environment, as its marker tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Complete {
    pub(super) id: String,
    #[serde(default = "venv")]
    pub(super) backend: String,
    pub(super) python: String,
    pub(super) digest: String,
    /// What a sandbox must show beside the venv itself.
    pub(super) read_only: Vec<PathBuf>,
    pub(super) interpreter: PathBuf,
    /// Size and time of change of the interpreter: another one at the same path means a new build.
    pub(super) stamp: (u64, i64),
    /// What activation sets, PATH among them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) variables: BTreeMap<String, String>,
}

/// The backend of markers from before there was another one.
fn venv() -> String {
    "venv".to_owned()
}

/// An environment in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// The env's id, the folder name under `envs/`; empty for an unfinished one.
    pub id: String,
    /// `venv` or `conda`; empty for an unfinished one.
    pub backend: String,
    /// Python's version; empty for an unfinished one.
    pub python: String,
    /// Its folder.
    pub path: PathBuf,
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether its build was finished.
    pub complete: bool,
}

/// Where everything that can be made again is kept: `$AUTOEXPERIMENT_CACHE`, else `$XDG_CACHE_HOME/autoexperiment`,
/// else `~/.cache/autoexperiment`.
///
/// # Errors
/// Kind `Place` when none of the three variables is set.
pub fn default_cache() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("AUTOEXPERIMENT_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("autoexperiment")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/autoexperiment")))
        .ok_or_else(|| {
            Error::new(Kind::Place, "there is no place for the cache")
                .hint("set `AUTOEXPERIMENT_CACHE` to a folder, or set `HOME`")
        })
}

/// All environments of a cache, sorted by id.
///
/// # Errors
/// Kind `Machine` when the cache cannot be read. A cache that does not exist is empty.
pub fn cached(cache: &Path) -> Result<Vec<Cached>> {
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
        let complete = Complete::read(&path);
        let walk = walkdir::WalkDir::new(&path).into_iter().filter_map(Result::ok);
        let bytes = walk.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum();
        let is_complete = complete.is_some();
        let (id, backend, python) = complete.map(|one| (one.id, one.backend, one.python)).unwrap_or_default();
        found.push(Cached { id, backend, python, path, bytes, complete: is_complete });
    }
    found.sort_by(|one, other| (&one.id, &one.path).cmp(&(&other.id, &other.path)));
    Ok(found)
}

/// Removes an environment from the cache; it is built again when it is needed. Waits for a build that is going on.
///
/// # Errors
/// Kind `Machine` when it cannot be removed.
pub fn remove_cached(env: &Cached) -> Result<()> {
    let lock_path = env.path.with_extension("lock");
    let lock = File::create(&lock_path).map_err(|error| Error::io("create", &lock_path, error))?;
    lock.lock().map_err(|error| Error::io("lock", &lock_path, error))?;
    if !env.complete && Complete::read(&env.path).is_some() {
        // It was being built, and now it is.
        return Ok(());
    }
    clear(&env.path)
}

/// Removes everything that was downloaded for environments; those that are built stay. A build that is going on fails.
///
/// # Errors
/// Kind `Machine` when something cannot be removed.
pub fn remove_downloads(cache: &Path) -> Result<()> {
    for folder in ["conda", "wheels"].map(|name| cache.join(name)) {
        remove_tree(&folder).map_err(|error| Error::io("remove", &folder, error))?;
    }
    Ok(())
}

/// Removes an environment's folder, the marker first, so that no half of it is ever taken for a whole.
pub(super) fn clear(home: &Path) -> Result<()> {
    let marker = Complete::path(home);
    remove_tree(&marker).map_err(|error| Error::io("remove", &marker, error))?;
    remove_tree(home).map_err(|error| Error::io("remove", home, error))
}

impl Complete {
    fn path(home: &Path) -> PathBuf {
        home.join("complete.json")
    }

    /// The marker of a finished environment whose interpreter is still the same.
    pub(super) fn read(home: &Path) -> Option<Self> {
        let complete: Self = serde_json::from_slice(&std::fs::read(Self::path(home)).ok()?).ok()?;
        (stamp(&complete.interpreter).ok()? == complete.stamp).then_some(complete)
    }

    /// Writes the marker, whole or not at all.
    pub(super) fn write(&self, home: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::internal("failed to write an env's marker").because(error))?;
        write_whole(&Self::path(home), &text)
    }
}

/// Size and time of change.
pub(super) fn stamp(path: &Path) -> std::io::Result<(u64, i64)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.len(), metadata.mtime()))
}

/// Takes the lock of an environment's folder, telling when somebody else has it. It is released when the file and
/// all copies of its handle are closed, those that children inherited included.
pub(super) async fn lock(home: &Path, on_progress: OnProgress<'_>) -> Result<File> {
    const PAUSE: Duration = Duration::from_millis(50);
    let path = home.with_extension("lock");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| Error::io("create", &path, error))?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path, error)),
            Err(TryLockError::WouldBlock) => {
                if !told {
                    on_progress(Progress::Task("waiting for another build of the same env".into()));
                    told = true;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
