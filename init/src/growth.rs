//! Measures from inside how much a container's workspace and temporary files have grown. A file's change time shows
//! whether it was written since the sandbox began: the kernel sets it, and no command can change it.

use std::cell::Cell;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::tree::FileTime;
use crate::disk::{self, LEAST, WORTH_A_WALK};
use crate::processes;

/// Time from a command's start to the first check of the disk.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// Minimum time between later checks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(300);

/// Limits of a check: pairs of a time and a number of new entries. A check that takes longer and has found more new
/// entries is given up, and the disk counts as full: only an attempt that slows down checks on purpose makes that many
/// entries, for example in folders nested ten thousand deep. Without limits, a check would keep the init from
/// answering.
const SLOW: [(Duration, u64); 2] = [(Duration::from_secs(3), 10_000), (Duration::from_secs(8), 1000)];

/// Watches the total size of several folders.
#[derive(Debug)]
pub(super) struct Growth {
    folders: Vec<PathBuf>,
    since: FileTime,
    most: u64,
    unwatched: Cell<Duration>,
}

impl Growth {
    /// Allows the folders to grow by `limit` bytes together from now on.
    pub(super) fn new(folders: &[&Path], limit: u64) -> io::Result<Self> {
        // The clock from which the kernel takes file times.
        let now = clock_gettime(ClockId::CLOCK_REALTIME_COARSE)?;
        let since = FileTime(now.tv_sec(), now.tv_nsec());
        Ok(Self {
            folders: folders.iter().map(|folder| folder.to_path_buf()).collect(),
            since,
            most: limit,
            unwatched: Cell::default(),
        })
    }

    /// Time at which the sandbox began.
    pub(super) fn since(&self) -> FileTime {
        self.since
    }

    /// Time of the first check for a command that began at `begun`.
    pub(super) fn first_look(begun: Instant) -> Instant {
        begun + FIRST_LOOK
    }

    /// Time of the next check after a check that began at `looked`. Trees that take long to walk are checked less
    /// often.
    pub(super) fn next_look(looked: Instant) -> Instant {
        let now = Instant::now();
        now + BETWEEN_LOOKS.max(now.duration_since(looked) * 4)
    }

    /// Whether the folders have grown beyond their limit, or a process other than the init's own fork `job` hides its
    /// open files. A command can hide open files only by running a program that it may not read, and has no reason to
    /// do so except to fill the disk.
    pub(super) fn is_full(&self, job: Option<i32>) -> bool {
        self.unwatched.set(Duration::ZERO);
        // All processes in the container except the init itself, whose files belong to the engine, and its own fork.
        let others = processes::table().into_keys().filter(|pid| *pid != 1 && Some(*pid) != job);
        let held = disk::unlinked(others);
        if held.is_hidden {
            return true;
        }
        let begun = Instant::now();
        let (mut sum, mut seen, mut fresh, mut is_slow) = (held.bytes, 0_u64, 0_u64, false);
        for folder in &self.folders {
            let is_whole = disk::walk(folder, &mut |about| {
                if FileTime(about.st_ctime, about.st_ctime_nsec) >= self.since {
                    sum += (about.st_blocks as u64 * 512).max(LEAST);
                    fresh += 1;
                }
                seen += 1;
                is_slow = is_slow
                    || seen.is_multiple_of(64)
                        && SLOW.iter().any(|(longest, least)| fresh > *least && begun.elapsed() > *longest);
                if sum > self.most || is_slow { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if !is_whole {
                return true;
            }
        }
        is_slow || sum > self.most
    }

    /// Whether the disk is full although the folders are within their limit.
    pub(super) fn is_out_of_room(&self, job: Option<i32>) -> bool {
        self.folders.iter().any(|folder| disk::is_out_of_room(folder)) && !self.is_full(job)
    }

    /// Whether the folders have grown beyond their limit, checked after a command that ran for `wall`. Measuring takes
    /// time, so the durations of short commands are added up, and the folders are measured only when they reach
    /// [`WORTH_A_WALK`].
    pub(super) fn is_full_after(&self, wall: Duration) -> bool {
        self.unwatched.set(self.unwatched.get() + wall);
        self.unwatched.get() >= WORTH_A_WALK && self.is_full(None)
    }
}
