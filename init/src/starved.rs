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
    /// Nanoseconds that all processes have run, those that have ended included, as far as was ever seen.
    ran: u64,
    /// Whether this process collects all that end below it.
    collects: bool,
    processors: f64,
    total: Duration,
}

impl Starved {
    /// Counts for a command that began at this time, without those of its processes that end.
    pub fn since(begun: Instant) -> Self {
        let processors = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        Self { looked: begun, before: BTreeMap::new(), ran: 0, collects: false, processors, total: Duration::ZERO }
    }

    /// Counts for a command that begins now in the sandbox of this process, the first one there, in which these others are
    /// alive. They count as the command's own, and so do those that end: only what runs outside can hold it up.
    pub fn of_sandbox(begun: Instant, others: impl IntoIterator<Item = i32>) -> Self {
        let mut starved = Self { collects: true, ..Self::since(begun) };
        let others: Vec<i32> = others.into_iter().collect();
        starved.ran = starved.ran_so_far(&others);
        starved.before = others.into_iter().flat_map(counts).collect();
        starved
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
        let processes: Vec<i32> = processes.into_iter().collect();
        let ran_so_far = self.ran_so_far(&processes);
        let now: BTreeMap<(i32, i32), Counts> = processes.into_iter().flat_map(counts).collect();
        let waited: u64 = now
            .iter()
            .map(|(task, counts)| counts.1.saturating_sub(self.before.get(task).copied().unwrap_or_default().1))
            .sum();
        // One that has ended and was not yet waited for is missing for a moment.
        let ran = ran_so_far.saturating_sub(self.ran);
        self.ran = self.ran.max(ran_so_far);
        let time = self.looked.elapsed();
        let seconds = |nanoseconds: u64| Duration::from_nanos(nanoseconds).as_secs_f64();
        let without = without(seconds(ran), seconds(waited), time.as_secs_f64(), self.processors);
        self.total += Duration::from_secs_f64(without);
        (self.before, self.looked) = (now, self.looked + time);
    }

    /// Nanoseconds that these processes and all that have ended below them have run.
    fn ran_so_far(&self, processes: &[i32]) -> u64 {
        let living: u64 = processes.iter().flat_map(|pid| counts(*pid)).map(|(_, (ran, _))| ran).sum();
        let ended: u64 = processes.iter().map(|pid| ran_of_children(*pid)).sum();
        living + ended + if self.collects { ran_of_own_children() } else { 0 }
    }
}

/// Nanoseconds that the children ran that a process has waited for, and theirs.
fn ran_of_children(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    // The 16th and 17th field, of which the third is the first after the name; in ticks of a hundredth of a second.
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks * 10_000_000
}

/// The same for this process.
fn ran_of_own_children() -> u64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return 0 };
    let time = |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * 1_000_000_000 + time.tv_usec() as u64 * 1000;
    time(usage.user_time()) + time(usage.system_time())
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
    fn what_ended_processes_ran_is_counted() {
        let others = [std::process::id() as i32];
        let mut starved = Starved::of_sandbox(Instant::now(), others);
        let before = starved.ran;
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", spin]).status().unwrap().success());
        starved.look(others);
        assert!(starved.ran >= before + 20_000_000, "{before} {}", starved.ran);
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
