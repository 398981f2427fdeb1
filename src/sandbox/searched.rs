//! Remembers the result of searching a folder for suites, so that each process need not list a system's hundred
//! thousand files again.
//!
//! The kernel sets a folder's change time when an entry is added, removed or renamed, and no user can set it. A stored
//! result is used as long as the folders that were searched still exist and have the same change times. Candidate
//! files, which are recognised by their content, are read again each time.

use std::collections::BTreeSet;
use std::fs::{Metadata, symlink_metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::files::WholeFile;

/// Version of the stored format and of the rules of the search.
const FORMAT: u32 = 1;
/// Minimum number of searched folders for which the result is stored; a smaller search is quickly repeated.
const FEWEST: usize = 200;
/// Minimum age of a folder's last change for its change time to be trusted: file systems may record two changes in
/// quick succession with the same time.
const RECENT: Duration = Duration::from_secs(2);

/// The result of searching a folder for suites.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Searched {
    format: u32,
    root: PathBuf,
    /// Latest change time of all folders that were searched, in seconds since 1970.
    changed: i64,
    folders: Vec<(PathBuf, FolderState)>,
    /// Files and folders that were found by their names.
    pub(super) found: BTreeSet<PathBuf>,
    /// Files that must be read to decide whether they contain a suite.
    pub(super) candidates: Vec<PathBuf>,
}

/// Device, inode, and change time in seconds and nanoseconds.
type FolderState = (u64, u64, i64, i64);

fn state(about: &Metadata) -> FolderState {
    (about.dev(), about.ino(), about.ctime(), about.ctime_nsec())
}

impl Searched {
    pub(super) fn new(root: &Path) -> Self {
        Self { format: FORMAT, root: root.to_owned(), ..Self::default() }
    }

    /// Adds a folder below the root. Must be called before the folder is listed.
    pub(super) fn enter(&mut self, folder: &Path) {
        // A folder that has disappeared gets a change time in the far future, so that `store` does not store the
        // result.
        let state = symlink_metadata(folder).map_or((0, 0, i64::MAX, 0), |about| state(&about));
        self.changed = self.changed.max(state.2);
        self.folders.push((folder.to_owned(), state));
    }

    /// Reads a stored result for `root`, unless a folder has changed since.
    pub(super) fn read(file: &Path, root: &Path) -> Option<Self> {
        let stored: Self = postcard::from_bytes(&std::fs::read(file).ok()?).ok()?;
        let is_same = |(folder, then): &(PathBuf, FolderState)| {
            symlink_metadata(folder).is_ok_and(|about| about.is_dir() && state(&about) == *then)
        };
        let are_same = || stored.folders.par_iter().with_min_len(FEWEST).all(is_same);
        (stored.format == FORMAT && stored.root == root && are_same()).then_some(stored)
    }

    /// Stores the result of a search that began at `begun`, unless it covers few folders ([`FEWEST`]) or a folder had
    /// just been changed ([`RECENT`]). If the result cannot be written, the next process searches again.
    pub(super) fn store(&self, file: &Path, begun: SystemTime) {
        let settled = begun.checked_sub(RECENT).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        if self.folders.len() < FEWEST || settled.is_none_or(|time| self.changed >= time.as_secs() as i64) {
            return;
        }
        // A path that is not UTF-8 cannot be stored.
        let Ok(bytes) = postcard::to_stdvec(self) else { return };
        let _ = WholeFile::create_with_folders(file).and_then(|whole| whole.filled(&bytes)?.finish());
    }
}
