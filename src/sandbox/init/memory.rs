//! Limits the memory of all processes together where no cgroup counts it. The kernel limits each process; this watch limits
//! their sum by killing the largest one, as the kernel would.

use std::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::children::Children;
use crate::sandbox::processes;

/// The time between looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Watches the processes below the init.
#[derive(Debug)]
pub(super) struct Memory {
    most: u64,
    next: Cell<Instant>,
}

impl Memory {
    /// Allows all processes `limit` bytes together.
    pub(super) fn new(limit: u64) -> Self {
        Self { most: limit, next: Cell::new(Instant::now() + BETWEEN_LOOKS) }
    }

    /// When to look again.
    pub(super) fn next_look(&self) -> Instant {
        self.next.get()
    }

    /// Looks, if it is time: kills the largest process as long as all together have too much.
    pub(super) fn look(&self, children: &Children) {
        let looking = Instant::now();
        if looking < self.next.get() {
            return;
        }
        let mut living: Vec<i32> =
            children.living(&std::collections::BTreeSet::new()).into_iter().map(|it| it.0).collect();
        // What is resident counts a shared page for each of its owners, but is read in no time.
        if living.iter().map(|pid| resident(*pid)).sum::<u64>() > self.most {
            let mut sizes: Vec<(u64, i32)> = living.drain(..).map(|pid| (share(pid), pid)).collect();
            sizes.sort_unstable();
            let mut sum: u64 = sizes.iter().map(|(size, _)| size).sum();
            while sum > self.most
                && let Some((size, pid)) = sizes.pop()
            {
                // A process that has ended in the meantime needs no signal.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                sum -= size;
            }
        }
        let now = Instant::now();
        self.next.set(now + BETWEEN_LOOKS.max(now.duration_since(looking) * 10));
    }
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
        assert_eq!((resident(-1), share(-1)), (0, 0));
    }
}
