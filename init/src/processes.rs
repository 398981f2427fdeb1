//! The process table as `/proc` shows it: who descends from whom, and killing what is left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process that cannot be confused with a later one of the same number: pid and start time in clock ticks.
pub type Identity = (i32, u64);

/// One row of the process table.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    pub identity: Identity,
    pub parent: i32,
    pub zombie: bool,
}

/// All processes that `/proc` shows, by pid.
pub fn table() -> BTreeMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| Some((pid, process(pid)?)))
        .collect()
}

/// When a process started, in clock ticks since boot; `None` when it is gone.
pub fn started(pid: i32) -> Option<u64> {
    process(pid).map(|process| process.identity.1)
}

fn process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses, so fields are counted from the last parenthesis.
    let rest = std::str::from_utf8(&stat[stat.iter().rposition(|byte| *byte == b')')? + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    // A process whose first thread has ended looks dead, and runs on in its others.
    let zombie = matches!(state, "Z" | "X") && threads <= 1;
    Some(Process { identity: (pid, started), parent, zombie })
}

/// Whether a process is stopped, or has ended.
pub fn stands_still(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().next();
    state.is_none_or(|state| matches!(state, "T" | "t" | "Z" | "X"))
}

/// Whether a thread has ended or is about to, though others of its process may live.
pub fn is_dead(task: i32) -> bool {
    // PF_EXITING of the kernel: its memory and its files go first, which may take a while.
    const EXITING: u64 = 4;
    let stat = fs::read_to_string(format!("/proc/{task}/stat")).unwrap_or_default();
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let state = fields.next().is_none_or(|state| matches!(state, "Z" | "X"));
    state || fields.nth(5).and_then(|flags| flags.parse::<u64>().ok()).is_none_or(|flags| flags & EXITING != 0)
}

/// The threads of a process. What the process has can be asked of any of them, by its own number: files and memory of one
/// whose first thread has ended only of the others, and files of a thread that shares them with nobody only of itself.
pub fn tasks(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What `read` finds of a process, by the first of its threads of which it finds anything.
pub fn of_any_thread<T>(pid: i32, read: impl Fn(i32) -> Option<T>) -> Option<T> {
    read(pid).or_else(|| tasks(pid).into_iter().filter(|task| *task != pid).find_map(read))
}

/// Threads that a user has on this machine.
pub fn threads_of(user: u32) -> u64 {
    let is_theirs = |pid: &i32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == user);
    threads(table().into_keys().filter(is_theirs).collect())
}

/// Threads of these processes.
pub fn threads(processes: Vec<i32>) -> u64 {
    let threads = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<u64>().ok())
    };
    processes.into_iter().filter_map(threads).sum()
}

/// The living descendants of a process, by number.
pub fn below(root: i32) -> Vec<i32> {
    descendants(root, &BTreeSet::new()).into_iter().map(|(pid, _)| pid).collect()
}

/// The living descendants of `root`, without those that are `spared` or descend from one that is.
pub fn descendants(root: i32, spared: &BTreeSet<Identity>) -> BTreeSet<Identity> {
    let table = table();
    let mut found = BTreeSet::new();
    for process in table.values() {
        let mut next = Some(process);
        // A chain of parents cannot be longer than the table, even if it changed while it was read.
        for _ in 0..=table.len() {
            let Some(ancestor) = next else { break };
            if spared.contains(&ancestor.identity) {
                break;
            }
            if ancestor.parent == root {
                if !process.zombie {
                    found.insert(process.identity);
                }
                break;
            }
            next = table.get(&ancestor.parent);
        }
    }
    found
}

/// The living processes whose initial environment holds `NAME=value` exactly.
pub fn marked(variable: &str) -> BTreeSet<Identity> {
    let has = |pid: i32| {
        let environ = |task| fs::read(format!("/proc/{task}/environ")).ok().filter(|environ| !environ.is_empty());
        of_any_thread(pid, environ)
            .is_some_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()))
    };
    table().values().filter(|process| !process.zombie && has(process.identity.0)).map(|p| p.identity).collect()
}

/// Sends a signal to each that is still the same process.
pub fn signal_all(processes: &BTreeSet<Identity>, signal: Signal) {
    for identity in processes {
        if process(identity.0).is_some_and(|now| now.identity == *identity) {
            // One that is gone meanwhile needs no signal.
            let _ = kill(Pid::from_raw(identity.0), signal);
        }
    }
}

/// Kills whatever `find` finds until it finds nothing: everything is stopped first, for what is stopped cannot fork.
pub fn kill_all(find: impl Fn() -> BTreeSet<Identity>) {
    let mut stopped = BTreeSet::new();
    for _ in 0..100 {
        let fresh: BTreeSet<_> = find().difference(&stopped).copied().collect();
        if fresh.is_empty() {
            break;
        }
        signal_all(&fresh, Signal::SIGSTOP);
        stopped.extend(fresh);
    }
    signal_all(&stopped, Signal::SIGKILL);
    // Stragglers that were forked while the table was read.
    for _ in 0..100 {
        let left = find();
        if left.is_empty() {
            return;
        }
        signal_all(&left, Signal::SIGKILL);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
