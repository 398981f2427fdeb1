//! Watches how much a workspace on this machine's own disk grows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use autoexperiment_init::disk::{WORTH_A_WALK, is_out_of_room, unlinked, usage, used};
use autoexperiment_init::processes::{self, ProcessTable};

use crate::workspace::OwnDisk;

/// Watches the size of one folder.
#[derive(Debug)]
pub struct DiskWatch {
    folder: PathBuf,
    most: u64,
    unwatched: Duration,
    /// The sandbox's first process; all others descend from it.
    init: Option<i32>,
    /// If the folder is the root of a disk image: the folder in which the image is stored.
    stored_in: Option<PathBuf>,
}

impl DiskWatch {
    /// Creates a watch whose limit is the folder's current size plus `limit` bytes.
    pub async fn new(folder: &Path, limit: u64) -> Self {
        let now = measure(folder.to_path_buf(), None, u64::MAX).await;
        Self {
            folder: folder.to_path_buf(),
            most: now.saturating_add(limit),
            unwatched: Duration::ZERO,
            init: None,
            stored_in: None,
        }
    }

    /// Watches a disk image. The kernel reports how much of the image is used, so no walk over its files is needed.
    pub fn of_disk(disk: &OwnDisk, limit: u64) -> Self {
        let most = used(&disk.root).unwrap_or(0).saturating_add(limit);
        let (folder, stored_in) = (disk.root.clone(), Some(disk.stored_in.clone()));
        Self { folder, most, unwatched: Duration::ZERO, init: None, stored_in }
    }

    /// Makes the watch also count unlinked files that processes below `init` hold open.
    pub fn with_processes_of(self, init: Option<u32>) -> Self {
        Self { init: init.and_then(|pid| pid.try_into().ok()), ..self }
    }

    /// Whether the folder has grown beyond its limit.
    pub async fn is_full(&self) -> bool {
        if self.stored_in.is_some() {
            return is_out_of_room(&self.folder) || used(&self.folder).is_some_and(|used| used > self.most);
        }
        measure(self.folder.clone(), self.init, self.most).await > self.most
    }

    /// Whether the file system that stores the folder is full, while the folder is within its limit.
    pub async fn is_out_of_room(&self) -> bool {
        is_out_of_room(self.stored_in.as_ref().unwrap_or(&self.folder)) && !self.is_full().await
    }

    /// Whether the folder has grown beyond its limit, checked after a command that ran for `wall`. Measuring takes
    /// time, so the durations of short commands are added up, and the folder is measured only when they reach
    /// [`WORTH_A_WALK`].
    pub async fn is_full_after(&mut self, wall: Duration) -> bool {
        self.unwatched += wall;
        if self.unwatched < WORTH_A_WALK && self.stored_in.is_none() {
            return false;
        }
        self.unwatched = Duration::ZERO;
        self.is_full().await
    }
}

async fn measure(folder: PathBuf, init: Option<i32>, enough: u64) -> u64 {
    let held = move || init.map_or(0, |init| unlinked(below(init)).bytes);
    tokio::task::spawn_blocking(move || usage(&folder, enough).saturating_add(held())).await.unwrap_or(0)
}

/// Returns the pids of the living descendants of a sandbox's first process.
fn below(init: i32) -> impl Iterator<Item = i32> {
    processes::descendants_in(&recent_table(), init, &BTreeSet::new()).into_iter().map(|(pid, _)| pid)
}

/// Returns the table of this machine's processes, read at most `AGE` ago. All sandboxes share one table, because
/// reading it takes three system calls for each process of the machine.
fn recent_table() -> Arc<ProcessTable> {
    /// Maximum age of the shared process table. It is less than the time between two checks of a sandbox, so that each
    /// check sees the processes that existed at the previous check.
    const AGE: Duration = Duration::from_millis(250);
    static RECENT: Mutex<Option<(Instant, Arc<ProcessTable>)>> = Mutex::new(None);
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    match &*recent {
        Some((read, table)) if read.elapsed() < AGE => Arc::clone(table),
        _ => {
            let table = Arc::new(processes::table());
            *recent = Some((Instant::now(), Arc::clone(&table)));
            table
        }
    }
}
