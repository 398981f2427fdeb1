//! How much a workspace has grown: a walk over what the sandbox writes on disk, while a command runs and after it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::statvfs::statvfs;

/// Commands that ran for less than this in all since the last walk are not worth one.
pub(super) const WORTH_A_WALK: Duration = Duration::from_millis(100);

/// What any entry counts, in bytes, so that a million empty files are not free.
pub(super) const LEAST: u64 = 4096;

/// A disk with less than this many bytes left is full.
const ROOM: u64 = 1 << 20;

/// Why a sandbox is given up whose disk is full though its workspace is within its limit.
pub(super) const OUT_OF_ROOM: &str = "the disk that holds its workspace is full";

/// Whether the disk below a folder has no room left, for bytes or for files. Then commands fail through no fault of
/// their own.
pub(super) fn is_out_of_room(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| {
        let bytes = disk.blocks_available().saturating_mul(disk.fragment_size());
        // Some file systems count no files.
        bytes < ROOM || (disk.files() > 0 && disk.files_available() == 0)
    })
}

/// Watches one folder.
#[derive(Debug)]
pub(super) struct Watch {
    folder: PathBuf,
    most: u64,
    unwatched: Duration,
}

impl Watch {
    /// Allows the folder to grow by `limit` bytes from now on.
    pub(super) async fn new(folder: &Path, limit: u64) -> Self {
        let now = measure(folder.to_path_buf()).await;
        Self { folder: folder.to_path_buf(), most: now.saturating_add(limit), unwatched: Duration::ZERO }
    }

    /// Whether the folder is too large now.
    pub(super) async fn is_full(&self) -> bool {
        measure(self.folder.clone()).await > self.most
    }

    /// Whether the disk has no room left, while the folder is not too large.
    pub(super) async fn is_out_of_room(&self) -> bool {
        is_out_of_room(&self.folder) && !self.is_full().await
    }

    /// Whether it is too large now that a command has run for so long. Short ones are looked at together.
    pub(super) async fn is_full_after(&mut self, wall: Duration) -> bool {
        self.unwatched += wall;
        if self.unwatched < WORTH_A_WALK {
            return false;
        }
        self.unwatched = Duration::ZERO;
        self.is_full().await
    }
}

async fn measure(folder: PathBuf) -> u64 {
    tokio::task::spawn_blocking(move || usage(&folder)).await.unwrap_or(0)
}

/// Bytes of disk that everything in a folder takes; what cannot be read or vanishes meanwhile counts nothing.
fn usage(folder: &Path) -> u64 {
    let mut sum = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let _ = walk(&folder, &mut sum, &mut folders);
    }
    sum
}

fn walk(folder: &Path, sum: &mut u64, folders: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Not following links.
        let Ok(about) = entry.metadata() else { continue };
        *sum += (about.blocks() * 512).max(LEAST);
        if about.is_dir() {
            folders.push(entry.path());
        }
    }
    Ok(())
}
