//! Limits the memory of all processes together if no cgroup counts it. The kernel limits each process; this watch
//! limits their sum, and the memory of their sockets and pipes, by killing the largest process, as the kernel would.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::children::Children;
use super::sockets::{Sockets, most_of_a_pair};
use super::terminals;
use crate::processes;

/// Time between checks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// Bytes counted for an open file: the kernel's own structures and two pages. A pipe may hold at least two pages, even
/// if the kernel reduces its size because its user has many pipes.
const OPEN_FILE: u64 = 9 << 10;

/// Watches the memory of the processes below the init.
pub(super) struct MemoryWatch {
    most: u64,
    next: Cell<Instant>,
    sockets: SocketMeasurement,
    /// Whether a cgroup counts the memory of processes. Cgroup version 1 does not count data that waits in TCP
    /// connections.
    has_cgroup: bool,
    /// Whether the number of pseudo-terminals is watched, too, because their file system has no limit.
    counts_terminals: bool,
}

/// The way to measure data that waits in sockets.
pub(super) enum SocketMeasurement {
    /// The kernel reports the data for the sandbox's own network namespace.
    Told(RefCell<Sockets>),
    /// Each open socket counts as this number of bytes, the most that a socket may hold. Used where other programs have
    /// sockets in the same namespace.
    Guessed(u64),
}

impl MemoryWatch {
    /// Limits the memory of all processes together to `limit` bytes. If a cgroup already limits the processes' memory,
    /// `limit` applies only to data in their sockets, which cgroup version 1 does not count.
    pub(super) fn new(limit: u64, sockets: SocketMeasurement, has_cgroup: bool) -> Self {
        Self {
            most: limit,
            next: Cell::new(Instant::now() + BETWEEN_LOOKS),
            sockets,
            has_cgroup,
            counts_terminals: false,
        }
    }

    /// Also watches the number of pseudo-terminals, if `counts` is true.
    pub(super) fn counting_terminals(self, counts: bool) -> Self {
        Self { counts_terminals: counts, ..self }
    }

    /// Time of the next check.
    pub(super) fn next_look(&self) -> Instant {
        self.next.get()
    }

    /// Restarts the time until the next check, because a job begins now and no process holds memory yet.
    pub(super) fn begin(&self) {
        self.next.set(Instant::now() + BETWEEN_LOOKS);
    }

    /// Checks the memory, if it is time. Kills the largest processes until the others are within the limit. Kills all
    /// processes if their open files and the data in their sockets alone exceed the limit, or if there are too many
    /// pseudo-terminals. Never kills the init's own fork `job`.
    pub(super) fn look(&self, children: &Children, job: Option<i32>) {
        let looking = Instant::now();
        if looking < self.next.get() {
            return;
        }
        if self.counts_terminals && terminals::are_too_many() {
            kill_all_but(children, job);
        }
        if self.has_cgroup {
            if self.in_sockets(&[], 0) > self.most {
                kill_all_but(children, job);
            }
        } else {
            self.weigh(children, job);
        }
        let now = Instant::now();
        self.next.set(now + BETWEEN_LOOKS.max(now.duration_since(looking) * 10));
    }

    fn weigh(&self, children: &Children, job: Option<i32>) {
        let living = children.living(&BTreeSet::new()).into_iter().map(|it| it.0).filter(|pid| Some(*pid) != job);
        let living: Vec<i32> = living.collect();
        let files = living.iter().map(|pid| open_files(*pid)).sum::<u64>() * OPEN_FILE;
        // Resident memory is quick to read. It counts a shared page once for each process.
        let resident = living.iter().map(|pid| resident(*pid)).sum::<u64>();
        let waiting = files + self.in_sockets(&living, files + resident);
        if waiting > self.most {
            kill_all_but(children, job);
        } else if resident + waiting > self.most {
            let mut sizes: Vec<(u64, i32)> = living.into_iter().map(|pid| (share(pid), pid)).collect();
            sizes.sort_unstable();
            let mut sum = sizes.iter().map(|(size, _)| size).sum::<u64>() + waiting;
            while sum > self.most
                && let Some((size, pid)) = sizes.pop()
            {
                // The call fails if the process has ended in the meantime; then no signal is needed.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                sum -= size;
            }
        }
    }

    /// Returns the bytes of data in sockets, or 0 if sockets and the `others` bytes together cannot exceed the limit.
    fn in_sockets(&self, living: &[i32], others: u64) -> u64 {
        match &self.sockets {
            SocketMeasurement::Told(sockets) => {
                let mut sockets = sockets.borrow_mut();
                let fit = sockets.at_most().is_some_and(|bytes| bytes.saturating_add(others) <= self.most);
                if fit { 0 } else { sockets.bytes() }
            }
            SocketMeasurement::Guessed(most) => own_sockets(living) * most,
        }
    }
}

fn kill_all_but(children: &Children, job: Option<i32>) {
    let living = children.living(&BTreeSet::new());
    children.kill(&living.into_iter().filter(|it| Some(it.0) == job).collect());
}

impl SocketMeasurement {
    /// Asks the kernel about this network namespace. `most` is the number of bytes counted for a socket that the kernel
    /// does not list.
    pub(super) fn ask_kernel(most: u64) -> io::Result<Self> {
        Ok(Self::Told(RefCell::new(Sockets::open(most)?)))
    }

    /// Measures by counting the sockets that processes have open.
    pub(super) fn guessed() -> Self {
        Self::Guessed(most_of_a_pair())
    }
}

/// Returns the number of files that a process has open. Older kernels only report the size of its table of files.
fn open_files(pid: i32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let told = |task: i32| fs::metadata(format!("/proc/{task}/fd")).ok().map(|about| about.size()).filter(|it| *it > 0);
    let room = |task: i32| {
        let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("FDSize:")?.trim().parse().ok())
    };
    processes::of_any_thread(pid, told).or_else(|| processes::of_any_thread(pid, room)).unwrap_or(0)
}

/// Returns the number of sockets that these processes have open.
fn own_sockets(living: &[i32]) -> u64 {
    let open = living.iter().flat_map(|pid| processes::tasks(*pid)).filter_map(|task| {
        let open = fs::read_dir(format!("/proc/{task}/fd")).ok()?;
        Some(open.flatten().filter_map(|file| fs::read_link(file.path()).ok()))
    });
    let is_socket = |path: &std::path::PathBuf| path.as_os_str().as_encoded_bytes().starts_with(b"socket:");
    open.flatten().filter(is_socket).collect::<BTreeSet<_>>().len() as u64
}

/// Returns the bytes of a process that are in memory.
fn resident(pid: i32) -> u64 {
    let size = |task: i32| number(&fs::read_to_string(format!("/proc/{task}/status")).ok()?, "VmRSS:");
    processes::of_any_thread(pid, size).unwrap_or(0) * 1024
}

/// Returns the bytes of a process that are in memory or swapped out, dividing shared pages among their processes. If
/// the process hides this figure, returns its resident memory.
fn share(pid: i32) -> u64 {
    let size = |task: i32| {
        let map = fs::read_to_string(format!("/proc/{task}/smaps_rollup")).ok()?;
        Some(number(&map, "Pss:")? + number(&map, "SwapPss:").unwrap_or(0))
    };
    processes::of_any_thread(pid, size).map_or_else(|| resident(pid), |kilobytes| kilobytes * 1024)
}

/// Parses the number on the line of this name, such as "Pss:   120 kB".
fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_open_files_and_sockets_of_a_process_are_measured() {
        let own = std::process::id() as i32;
        assert!(resident(own) > 1 << 20);
        assert!(share(own) > 1 << 18 && share(own) <= 2 * resident(own), "{} {}", share(own), resident(own));
        assert_eq!((resident(-1), share(-1), open_files(-1)), (0, 0, 0));
        let pairs: Vec<_> = (0..50).map(|_| std::os::unix::net::UnixStream::pair().unwrap()).collect();
        assert!(open_files(own) >= 100 && own_sockets(&[own]) >= 100);
        drop(pairs);
    }
}
