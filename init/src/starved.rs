//! How long a command went without a processor because others had them all, so that a right solution is not too slow on a
//! machine that is busy. The kernel counts for each task how long it ran and how long it was ready to run and did not
//! (`/proc/PID/task/TID/schedstat`, the first two fields, in nanoseconds).

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// The time between looks: what a task has counted by then is lost if it ends sooner.
pub const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Nanoseconds that a task ran, and that it waited to run.
type Counts = (u64, u64);

/// Counts for one command.
#[derive(Debug)]
pub struct Starved {
    looked: Instant,
    before: BTreeMap<(i32, i32), Counts>,
    processors: f64,
    total: Duration,
}

impl Starved {
    /// Counts for a command that began at this time.
    pub fn since(begun: Instant) -> Self {
        let processors = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        Self { looked: begun, before: BTreeMap::new(), processors, total: Duration::ZERO }
    }

    /// How long it went without, as far as was seen.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// When to look next.
    pub fn next_look(&self) -> Instant {
        self.looked + BETWEEN_LOOKS
    }

    /// Looks at the command's processes, of which these are alive; how much longer than its limit it may take now, at most
    /// `patience`.
    pub fn later(&mut self, processes: impl IntoIterator<Item = i32>, patience: Duration) -> Duration {
        self.look(processes);
        self.total.min(patience)
    }

    /// Adds what has happened since the last look to the command's processes, of which these are alive.
    fn look(&mut self, processes: impl IntoIterator<Item = i32>) {
        let now: BTreeMap<(i32, i32), Counts> = processes.into_iter().flat_map(counts).collect();
        let (mut ran, mut waited) = (0, 0);
        for (task, counts) in &now {
            let before = self.before.get(task).copied().unwrap_or_default();
            ran += counts.0.saturating_sub(before.0);
            waited += counts.1.saturating_sub(before.1);
        }
        let time = self.looked.elapsed();
        let seconds = |nanoseconds: u64| Duration::from_nanos(nanoseconds).as_secs_f64();
        let without = without(seconds(ran), seconds(waited), time.as_secs_f64(), self.processors);
        self.total += Duration::from_secs_f64(without);
        (self.before, self.looked) = (now, self.looked + time);
    }
}

/// Seconds by which others held up tasks that ran and waited for so many seconds in all, out of `time` seconds. Had they
/// been alone they would have run for what they asked for, and at most on all processors all the time; what is missing
/// of that held up as many of them as would have run at once.
fn without(ran: f64, waited: f64, time: f64, processors: f64) -> f64 {
    if time <= 0.0 {
        return 0.0;
    }
    let alone = (ran + waited).min(processors * time);
    ((alone - ran) / (alone / time).max(1.0)).clamp(0.0, time)
}

/// What each task of a process has counted. Nothing where the kernel does not count.
fn counts(process: i32) -> Vec<((i32, i32), Counts)> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let count = |task: i32| {
        let text = fs::read_to_string(format!("/proc/{process}/task/{task}/schedstat")).ok()?;
        let mut fields = text.split_ascii_whitespace().map(str::parse);
        Some(((process, task), (fields.next()?.ok()?, fields.next()?.ok()?)))
    };
    tasks.flatten().filter_map(|task| count(task.file_name().to_str()?.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_held_up_by_as_long_as_it_waited() {
        for (ran, waited, held_up) in
            [(1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.1, 0.6, 0.6), (0.0, 0.0, 0.0), (0.0, 1.0, 1.0)]
        {
            let found = without(ran, waited, 1.0, 2.0);
            assert!((found - held_up).abs() < 1e-12, "{ran} {waited}: {found}");
        }
    }

    #[test]
    fn tasks_that_wait_for_each_other_are_held_up_by_nobody() {
        // Eight on two processors, all of which they have; then two of eight such shares.
        assert!(without(2.0, 6.0, 1.0, 2.0).abs() < 1e-12);
        assert!((without(0.5, 7.5, 1.0, 2.0) - 0.75).abs() < 1e-12);
        // A thousand cannot make more of it.
        assert!(without(2.0, 998.0, 1.0, 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_the_kernel_counts_of_this_process_is_read() {
        let mut starved = Starved::since(Instant::now());
        starved.look([std::process::id() as i32, -1]);
        assert!(starved.total() <= Duration::from_secs(1));
        assert!(counts(-1).is_empty());
        let own = counts(std::process::id() as i32);
        assert!(own.iter().any(|(_, (ran, _))| *ran > 0), "{own:?}");
    }
}
