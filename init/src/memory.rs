//! Limits the memory of all processes together where no cgroup counts it. The kernel limits each process; this watch limits
//! their sum, and what waits in their sockets and pipes, by killing the largest one, as the kernel would.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::children::Children;
use super::sockets::{Sockets, most_of_a_pair};
use crate::processes;

/// The time between looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// What an open file counts for: two pages, which each pipe holds whose user has many, and the kernel's own notes on it.
const OPEN_FILE: u64 = 9 << 10;

/// Watches the processes below the init.
pub(super) struct Memory {
    most: u64,
    next: Cell<Instant>,
    sockets: Waiting,
    /// Whether a cgroup counts what processes have. Version 1 does not count what waits in connections.
    has_cgroup: bool,
}

/// How to find out what waits in sockets.
pub(super) enum Waiting {
    /// The kernel tells it for the sandbox's own network namespace.
    Told(RefCell<Sockets>),
    /// Each open socket counts for as much as it may hold, where other programs have sockets in the same namespace.
    Guessed(u64),
}

impl Memory {
    /// Allows all processes `limit` bytes together; with a cgroup that counts them, as much in sockets.
    pub(super) fn new(limit: u64, sockets: Waiting, has_cgroup: bool) -> Self {
        Self { most: limit, next: Cell::new(Instant::now() + BETWEEN_LOOKS), sockets, has_cgroup }
    }

    /// When to look again.
    pub(super) fn next_look(&self) -> Instant {
        self.next.get()
    }

    /// Looks, if it is time: kills the largest process as long as all together have too much, and all of them where it is
    /// sockets that have; but not the init's own fork `job`.
    pub(super) fn look(&self, children: &Children, job: Option<i32>) {
        let looking = Instant::now();
        if looking < self.next.get() {
            return;
        }
        if self.has_cgroup {
            if self.in_sockets(&[]) > self.most {
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
        let waiting = self.in_sockets(&living) + living.iter().map(|pid| open_files(*pid)).sum::<u64>() * OPEN_FILE;
        if waiting > self.most {
            kill_all_but(children, job);
        // What is resident counts a shared page for each of its owners, but is read in no time.
        } else if living.iter().map(|pid| resident(*pid)).sum::<u64>() + waiting > self.most {
            let mut sizes: Vec<(u64, i32)> = living.into_iter().map(|pid| (share(pid), pid)).collect();
            sizes.sort_unstable();
            let mut sum = sizes.iter().map(|(size, _)| size).sum::<u64>() + waiting;
            while sum > self.most
                && let Some((size, pid)) = sizes.pop()
            {
                // A process that has ended in the meantime needs no signal.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                sum -= size;
            }
        }
    }

    fn in_sockets(&self, living: &[i32]) -> u64 {
        match &self.sockets {
            Waiting::Told(sockets) => sockets.borrow_mut().bytes(),
            Waiting::Guessed(most) => own_sockets(living) * most,
        }
    }
}

fn kill_all_but(children: &Children, job: Option<i32>) {
    let living = children.living(&BTreeSet::new());
    children.kill(&living.into_iter().filter(|it| Some(it.0) == job).collect());
}

impl Waiting {
    /// Asks the kernel about this network namespace. `most`: what a socket counts for that cannot be seen.
    pub(super) fn told(most: u64) -> io::Result<Self> {
        Ok(Self::Told(RefCell::new(Sockets::open(most)?)))
    }

    /// Counts the sockets that processes have open.
    pub(super) fn guessed() -> Self {
        Self::Guessed(most_of_a_pair())
    }
}

/// How many files a process has open. Older kernels tell only how many there is room for.
fn open_files(pid: i32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let told = |task: i32| fs::metadata(format!("/proc/{task}/fd")).ok().map(|about| about.size()).filter(|it| *it > 0);
    let room = |task: i32| {
        let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("FDSize:")?.trim().parse().ok())
    };
    processes::of_any_thread(pid, told).or_else(|| processes::of_any_thread(pid, room)).unwrap_or(0)
}

/// How many sockets these processes have open.
fn own_sockets(living: &[i32]) -> u64 {
    let open = living.iter().flat_map(|pid| processes::tasks(*pid)).filter_map(|task| {
        let open = fs::read_dir(format!("/proc/{task}/fd")).ok()?;
        Some(open.flatten().filter_map(|file| fs::read_link(file.path()).ok()))
    });
    let is_socket = |path: &std::path::PathBuf| path.as_os_str().as_encoded_bytes().starts_with(b"socket:");
    open.flatten().filter(is_socket).collect::<BTreeSet<_>>().len() as u64
}

/// Bytes of a process that are in memory.
fn resident(pid: i32) -> u64 {
    let size = |task: i32| number(&fs::read_to_string(format!("/proc/{task}/status")).ok()?, "VmRSS:");
    processes::of_any_thread(pid, size).unwrap_or(0) * 1024
}

/// Bytes of a process that are in memory or swapped out, where a page that several have counts in parts. A process can
/// keep this to itself; then all that is resident counts.
fn share(pid: i32) -> u64 {
    let size = |task: i32| {
        let map = fs::read_to_string(format!("/proc/{task}/smaps_rollup")).ok()?;
        Some(number(&map, "Pss:")? + number(&map, "SwapPss:").unwrap_or(0))
    };
    processes::of_any_thread(pid, size).map_or_else(|| resident(pid), |kilobytes| kilobytes * 1024)
}

/// The number on the line of this name, "Pss:   120 kB".
fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_at_most_what_is_resident_and_swapped() {
        let own = std::process::id() as i32;
        assert!(resident(own) > 1 << 20);
        assert!(share(own) > 1 << 18 && share(own) <= 2 * resident(own), "{} {}", share(own), resident(own));
        assert_eq!((resident(-1), share(-1), open_files(-1)), (0, 0, 0));
        let pairs: Vec<_> = (0..50).map(|_| std::os::unix::net::UnixStream::pair().unwrap()).collect();
        assert!(open_files(own) >= 100 && own_sockets(&[own]) >= 100);
        drop(pairs);
    }
}
