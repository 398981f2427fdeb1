//! How much a container's workspace and temporary files have grown, seen from inside: what was written since the sandbox
//! began is told by its time of change, which the kernel sets and no command can.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::tree::Moment;
use crate::sandbox::disk::{self, LEAST, WORTH_A_WALK};

/// A command's first look at the disk, and the time between looks.
const FIRST_LOOK: Duration = Duration::from_millis(500);
const BETWEEN_LOOKS: Duration = Duration::from_millis(300);

/// Watches folders.
#[derive(Debug)]
pub(super) struct Growth {
    folders: Vec<PathBuf>,
    since: Moment,
    most: u64,
    unwatched: Cell<Duration>,
}

impl Growth {
    /// Allows the folders to grow by `limit` bytes together from now on.
    pub(super) fn new(folders: &[&Path], limit: u64) -> io::Result<Self> {
        // The clock that file times are taken from.
        let now = clock_gettime(ClockId::CLOCK_REALTIME_COARSE)?;
        let since = Moment(now.tv_sec(), now.tv_nsec());
        Ok(Self {
            folders: folders.iter().map(|folder| folder.to_path_buf()).collect(),
            since,
            most: limit,
            unwatched: Cell::default(),
        })
    }

    /// When the sandbox began.
    pub(super) fn since(&self) -> Moment {
        self.since
    }

    /// When to look first at a command that began at this time.
    pub(super) fn first_look(begun: Instant) -> Instant {
        begun + FIRST_LOOK
    }

    /// When to look again. A tree that takes long to walk is walked less often.
    pub(super) fn next_look(looked: Instant) -> Instant {
        let now = Instant::now();
        now + BETWEEN_LOOKS.max(now.duration_since(looked) * 4)
    }

    /// Whether they are too large now.
    pub(super) fn is_full(&self) -> bool {
        self.unwatched.set(Duration::ZERO);
        let mut sum = 0;
        let mut folders = self.folders.clone();
        while let Some(folder) = folders.pop() {
            self.walk(&folder, &mut sum, &mut folders);
            if sum > self.most {
                return true;
            }
        }
        false
    }

    /// Whether their disk has no room left, while they are not too large.
    pub(super) fn is_out_of_room(&self) -> bool {
        self.folders.iter().any(|folder| disk::is_out_of_room(folder)) && !self.is_full()
    }

    /// Whether they are too large now that a command has run for so long. Short ones are looked at together.
    pub(super) fn is_full_after(&self, wall: Duration) -> bool {
        self.unwatched.set(self.unwatched.get() + wall);
        self.unwatched.get() >= WORTH_A_WALK && self.is_full()
    }

    fn walk(&self, folder: &Path, sum: &mut u64, folders: &mut Vec<PathBuf>) {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // The commands' user is this process's: a folder that it has closed can be opened for a moment.
                let Ok(about) = fs::symlink_metadata(folder) else { return };
                if !about.is_dir() || fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).is_err() {
                    return;
                }
                let entries = fs::read_dir(folder);
                let _ = fs::set_permissions(folder, about.permissions());
                entries
            }
            entries => entries,
        };
        for entry in entries.into_iter().flatten().flatten() {
            // Not following links.
            let Ok(about) = entry.metadata() else { continue };
            if Moment(about.ctime(), about.ctime_nsec()) >= self.since {
                *sum += (about.blocks() * 512).max(LEAST);
            }
            if about.is_dir() {
                folders.push(entry.path());
            }
        }
    }
}
