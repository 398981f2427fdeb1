//! Measures how long a command had no processor because other processes had them all, so that a correct solution does
//! not exceed its time limit on a busy machine. The kernel counts for each task how long the task ran and how long it
//! was ready but did not run (the first two fields of `/proc/PID/task/TID/schedstat`, in nanoseconds).

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// Time between checks. If a task ends, the time that it waited since the last check is not counted.
pub const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Time between checks of a command whose time limit has passed while it was ready to run.
pub const BETWEEN_LAST_LOOKS: Duration = Duration::from_millis(20);

/// Nanoseconds that a task ran, and nanoseconds that it waited to run.
type RunTimes = (u64, u64);

/// Measures the lack of processors for one command.
#[derive(Debug)]
pub struct Starved {
    looked: Instant,
    before: BTreeMap<(i32, i32), RunTimes>,
    /// Nanoseconds that all processes have run, including ended ones; the largest value seen so far.
    ran: u64,
    /// Whether this process is the parent of all orphans below it, so that it reaps every process that ends.
    collects: bool,
    /// Number of processors that the command's tasks may use together.
    processors: f64,
    total: Duration,
    /// Nanoseconds that this process itself had waited to run when it began to start the command.
    own_wait: u64,
    /// Whether a task was ready to run at the last check.
    is_ready: bool,
    /// Duration of the current wait up to the last check. The kernel adds a wait to a task's count only when the task
    /// runs again.
    pending: Duration,
}

impl Starved {
    /// Starts measuring a command that began at `begun`. Once a process of the command has ended, its run time is
    /// counted only if a living process of the command has reaped it.
    pub fn since(begun: Instant) -> Self {
        // Query the number of processors only once. The query takes a dozen system calls, because control groups may
        // limit the number, too.
        static PROCESSORS: OnceLock<f64> = OnceLock::new();
        let processors =
            *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64));
        Self {
            looked: begun,
            before: BTreeMap::new(),
            ran: 0,
            collects: false,
            processors,
            total: Duration::ZERO,
            own_wait: 0,
            is_ready: false,
            pending: Duration::ZERO,
        }
    }

    /// Starts measuring a command that begins now in the sandbox whose first process is this process. The living
    /// processes `others` of the sandbox count as the command's own, and so do processes that end: a delay is measured
    /// only if processes outside of the sandbox cause it. If the sandbox's CPU time is limited to `cpus` processors,
    /// waiting for more than these is no delay either.
    pub fn of_sandbox(begun: Instant, others: impl IntoIterator<Item = i32>, cpus: Option<f64>) -> Self {
        let mut starved = Self { collects: true, own_wait: own_wait(), ..Self::since(begun) };
        starved.processors = starved.processors.min(cpus.unwrap_or(f64::INFINITY));
        let others: Vec<i32> = others.into_iter().collect();
        starved.ran = starved.ran_so_far(&others);
        starved.before = others.into_iter().flat_map(counts).collect();
        starved
    }

    /// Returns the total time without a processor that was observed.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// Adds the time that this process itself waited to run before it started the command, because the command's time
    /// limit had begun already.
    pub fn add_own_wait(&mut self) {
        self.total += Duration::from_nanos(own_wait().saturating_sub(self.own_wait));
    }

    /// Whether a task of the command was ready to run at the last check, so it may be waiting for a processor.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether no task of the command ran between the last two checks, although one was ready to run.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_zero()
    }

    /// Time of the next check.
    pub fn next_look(&self) -> Instant {
        self.looked + BETWEEN_LOOKS
    }

    /// Returns by how much to extend the command's time limit: the time that the command had no processor, at most
    /// `patience`. To bring this time up to date, checks `processes`, the command's living processes.
    pub fn later(&mut self, processes: impl IntoIterator<Item = i32>, patience: Duration) -> Duration {
        self.look(processes);
        (self.total + self.pending).min(patience)
    }

    /// Adds the time since the last check, given the command's living processes.
    fn look(&mut self, processes: impl IntoIterator<Item = i32>) {
        let processes: Vec<i32> = processes.into_iter().collect();
        let ran_so_far = self.ran_so_far(&processes);
        let now: BTreeMap<(i32, i32), RunTimes> = processes.into_iter().flat_map(counts).collect();
        // The sum may fall for a moment, because it lacks processes that have ended and have not been reaped yet.
        let ran = ran_so_far.saturating_sub(self.ran);
        self.ran = self.ran.max(ran_so_far);
        let time = self.looked.elapsed();
        let (took, wanted) = self.wanted(&now, time.as_secs_f64());
        // Add the run time of ended tasks. Nothing is known about their waits.
        let ran = seconds(ran);
        let delay = delay(ran, wanted + (ran - took).max(0.0), time.as_secs_f64(), self.processors);
        self.total += Duration::from_secs_f64(delay);
        self.is_ready = now.keys().any(|(process, task)| is_ready(*process, *task));
        self.note_wait(time, now == self.before);
        (self.before, self.looked) = (now, self.looked + time);
    }

    /// Returns two sums over the living tasks since the last check: the seconds that they ran, and the seconds that
    /// they would have run without other processes. The second sum assumes that every task that may run on any
    /// processor has a processor to itself.
    fn wanted(&self, now: &BTreeMap<(i32, i32), RunTimes>, time: f64) -> (f64, f64) {
        let own = affinity(0);
        let (mut took, mut anywhere) = (0, 0);
        let mut pinned: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
        for (task, (ran, waited)) in now {
            let (ran_before, waited_before) = self.before.get(task).copied().unwrap_or_default();
            let ran = ran.saturating_sub(ran_before);
            // A task that gave up its priority waits by its own choice.
            let waited = if is_demoted(*task) { 0 } else { waited.saturating_sub(waited_before) };
            let ready = ran + waited;
            took += ran;
            match affinity(task.1).filter(|set| Some(*set) != own) {
                Some(set) => *pinned.entry(members(&set)).or_default() += ready,
                None => anywhere += ready,
            }
        }
        let pinned = pinned.into_iter().map(|(processors, ready)| (processors, seconds(ready))).collect();
        (seconds(took), seconds(anywhere) + run_pinned(pinned, time))
    }

    /// Adds `time` to the current wait if no task ran during that time (`stood_still`) although one was ready to run.
    /// Otherwise ends the wait.
    fn note_wait(&mut self, time: Duration, stood_still: bool) {
        self.pending = if self.is_ready && stood_still { self.pending + time } else { Duration::ZERO };
    }

    /// Returns the nanoseconds that these processes and their ended descendants have run.
    fn ran_so_far(&self, processes: &[i32]) -> u64 {
        let living: u64 = processes.iter().flat_map(|pid| counts(*pid)).map(|(_, (ran, _))| ran).sum();
        let ended: u64 = processes.iter().map(|pid| ran_of_children(*pid)).sum();
        living + ended + if self.collects { ran_of_own_children() } else { 0 }
    }
}

/// Returns the nanoseconds that a process's reaped children and their descendants ran.
fn ran_of_children(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    // Fields 16 and 17; the first field after the name is number 3. They are in ticks of a hundredth of a second.
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks * 10_000_000
}

/// Returns the nanoseconds that this process's own reaped children and their descendants ran.
fn ran_of_own_children() -> u64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return 0 };
    let time = |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * 1_000_000_000 + time.tv_usec() as u64 * 1000;
    time(usage.user_time()) + time(usage.system_time())
}

/// Whether a task has a lower priority than this process: a higher nice value, or a scheduling policy for work in the
/// background.
fn is_demoted((process, task): (i32, i32)) -> bool {
    static OWN: OnceLock<Option<(i64, i64)>> = OnceLock::new();
    let Some((own_nice, _)) = *OWN.get_or_init(|| nice_and_policy("/proc/self/stat")) else { return false };
    nice_and_policy(&format!("/proc/{process}/task/{task}/stat")).is_some_and(|(nice, policy)| {
        nice > own_nice || [nix::libc::SCHED_BATCH, nix::libc::SCHED_IDLE].map(i64::from).contains(&policy)
    })
}

/// Reads a task's nice value and scheduling policy: fields 19 and 41 of its `stat` file, see proc(5).
fn nice_and_policy(file: &str) -> Option<(i64, i64)> {
    let stat = fs::read_to_string(file).ok()?;
    // The second field is the name in brackets, which may contain spaces.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_ascii_whitespace().collect();
    Some((fields.get(19 - 3)?.parse().ok()?, fields.get(41 - 3)?.parse().ok()?))
}

/// Returns how many seconds other processes delayed the tasks. In `time` seconds, the tasks together ran for `ran`
/// seconds. With unlimited processors, they would have run for `wanted` seconds. The result is the time in which tasks
/// were ready to run, minus the time that `ran` would have taken without other processes.
fn delay(ran: f64, wanted: f64, time: f64, processors: f64) -> f64 {
    if time <= 0.0 {
        return 0.0;
    }
    // Number of processors that the tasks would have used at once.
    let speed = (wanted / time).max(1.0).min(processors);
    (wanted.min(time) - ran / speed).clamp(0.0, time)
}

/// Returns how many seconds tasks that chose their processors would have run without other processes. Such tasks also
/// wait for each other if other processors are free, which is their own doing. Each entry has the processors of a group
/// of tasks, and the seconds for which the group ran or was ready to run. Groups with fewer processors come first. If
/// sets of processors overlap without one containing the other, the result may be too low, but it is never too high.
fn run_pinned(mut groups: Vec<(Vec<usize>, f64)>, time: f64) -> f64 {
    groups.sort_by_key(|(processors, _)| processors.len());
    let mut used: BTreeMap<usize, f64> = BTreeMap::new();
    for (processors, ready) in groups {
        let mut left = ready;
        for processor in processors {
            let used = used.entry(processor).or_default();
            let more = left.min(time - *used);
            *used += more;
            left -= more;
        }
    }
    used.into_values().sum()
}

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

/// Returns the processors on which a task may run; for 0, those of this process. `None` if they cannot be found out.
fn affinity(task: i32) -> Option<CpuSet> {
    sched_getaffinity(Pid::from_raw(task)).ok()
}

/// Returns the numbers of the processors in a set.
fn members(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::count()).filter(|processor| set.is_set(*processor).unwrap_or(false)).collect()
}

/// Returns how many nanoseconds this process has waited to run; 0 if the kernel does not count them. It must have one
/// thread only.
fn own_wait() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_ascii_whitespace().nth(1).and_then(|waited| waited.parse().ok()).unwrap_or_default()
}

/// Whether a task runs or waits for a processor.
fn is_ready(process: i32, task: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{task}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|fields| fields.trim_start().starts_with('R'))
}

/// Returns the times of each task of a process; empty if the kernel does not count them.
fn counts(process: i32) -> Vec<((i32, i32), RunTimes)> {
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
    fn a_task_that_waits_for_a_processor_counts_as_delayed_for_that_time() {
        for (ran, waited, held_up) in
            [(1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.1, 0.6, 0.6), (0.0, 0.0, 0.0), (0.0, 1.0, 1.0)]
        {
            let found = delay(ran, ran + waited, 1.0, 2.0);
            assert!((found - held_up).abs() < 1e-12, "{ran} {waited}: {found}");
        }
    }

    #[test]
    fn tasks_that_wait_for_each_other_are_not_delayed_by_others() {
        // Eight tasks that have two processors to themselves, then eight tasks that get a quarter of two processors.
        assert!(delay(2.0, 8.0, 1.0, 2.0).abs() < 1e-12);
        assert!((delay(0.5, 8.0, 1.0, 2.0) - 0.75).abs() < 1e-12);
        // A thousand tasks are not delayed by others if together they keep both processors busy.
        assert!(delay(2.0, 1000.0, 1.0, 2.0).abs() < 1e-12);
    }

    #[test]
    fn tasks_that_wait_because_of_their_sandboxs_cpu_limit_are_not_delayed_by_others() {
        // One busy task with a quarter of a processor, then one that also gets only a quarter of that quarter.
        assert!(delay(0.25, 1.0, 1.0, 0.25).abs() < 1e-12);
        assert!((delay(0.0625, 1.0, 1.0, 0.25) - 0.75).abs() < 1e-12);
        // Six busy tasks with one and a half processors.
        assert!(delay(1.5, 6.0, 1.0, 1.5).abs() < 1e-12);
        let limited = Starved::of_sandbox(Instant::now(), [], Some(0.25));
        assert!((limited.processors - 0.25).abs() < 1e-12);
        assert!(Starved::of_sandbox(Instant::now(), [], None).processors >= 1.0);
    }

    #[test]
    fn tasks_that_share_a_processor_by_choice_are_not_delayed_by_others() {
        // Eight busy tasks on one of many processors, alone and with two tasks that may run anywhere.
        assert!(delay(1.0, run_pinned(vec![(vec![3], 8.0)], 1.0), 1.0, 64.0).abs() < 1e-12);
        assert!(delay(3.0, 2.0 + run_pinned(vec![(vec![3], 8.0)], 1.0), 1.0, 64.0).abs() < 1e-12);
        // If other processes use half of that processor, the tasks are delayed for half of the time.
        assert!((delay(0.5, run_pinned(vec![(vec![3], 8.0)], 1.0), 1.0, 64.0) - 0.5).abs() < 1e-12);
        // Sets that overlap do not add up: no tasks on processors 0 to 3 can run for more than 4 s in a second.
        let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]].map(|pair| (pair.to_vec(), 8.0));
        assert!((run_pinned(pairs.to_vec(), 1.0) - 4.0).abs() < 1e-12);
        let nested = vec![(vec![0, 1], 8.0), (vec![0], 8.0), (vec![5], 0.5)];
        assert!((run_pinned(nested, 1.0) - 2.5).abs() < 1e-12);
    }

    #[test]
    fn a_task_that_gave_up_its_priority_is_recognised() {
        let own = std::process::id() as i32;
        assert!(!is_demoted((own, own)));
        for (program, arguments) in [("nice", vec!["-n", "5", "sleep", "60"]), ("chrt", vec!["-i", "0", "sleep", "60"])]
        {
            let mut child = std::process::Command::new(program).args(arguments).spawn().unwrap();
            let pid = child.id() as i32;
            let found = (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                is_demoted((pid, pid))
            });
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(found, "{program}");
        }
    }

    #[test]
    fn the_processors_that_a_task_chose_are_found() {
        let own = affinity(0).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        assert_eq!(affinity(pid), Some(own));
        let mut first = CpuSet::new();
        first.set(members(&own)[0]).unwrap();
        nix::sched::sched_setaffinity(Pid::from_raw(pid), &first).unwrap();
        assert_eq!(members(&affinity(pid).unwrap()), [members(&own)[0]]);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn run_time_of_ended_processes_is_counted() {
        let others = [std::process::id() as i32];
        let mut starved = Starved::of_sandbox(Instant::now(), others, None);
        let before = starved.ran;
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", spin]).status().unwrap().success());
        starved.look(others);
        assert!(starved.ran >= before + 20_000_000, "{before} {}", starved.ran);
    }

    #[test]
    fn a_task_that_runs_is_ready_and_one_that_sleeps_is_not() {
        let ready = |program: &str, arguments: &[&str]| {
            let mut child = std::process::Command::new(program).args(arguments).spawn().unwrap();
            let mut starved = Starved::since(Instant::now());
            std::thread::sleep(Duration::from_millis(300));
            starved.look([child.id() as i32]);
            child.kill().unwrap();
            child.wait().unwrap();
            (starved.is_ready(), starved.is_waiting())
        };
        assert_eq!(ready("sleep", &["60"]), (false, false));
        assert_eq!(ready("sh", &["-c", "while :; do :; done"]), (true, false));
    }

    #[test]
    fn a_ready_task_whose_counts_stay_the_same_is_waiting() {
        let mut starved = Starved { is_ready: true, ..Starved::since(Instant::now()) };
        starved.note_wait(Duration::from_millis(200), true);
        starved.note_wait(Duration::from_millis(100), true);
        assert_eq!((starved.is_waiting(), starved.pending), (true, Duration::from_millis(300)));
        // A task has run, so the wait is over, and the kernel has counted it.
        starved.note_wait(Duration::from_millis(100), false);
        assert!(!starved.is_waiting());
    }

    #[test]
    fn the_kernels_counts_of_this_process_are_read() {
        let mut starved = Starved::since(Instant::now());
        starved.look([std::process::id() as i32, -1]);
        assert!(starved.total() <= Duration::from_secs(1));
        assert!(counts(-1).is_empty());
        let own = counts(std::process::id() as i32);
        assert!(own.iter().any(|(_, (ran, _))| *ran > 0), "{own:?}");
    }
}
