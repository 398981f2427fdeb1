//! The process table of `/proc`: finds the descendants of a process, and kills sets of processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Identity of a process: pid and start time in clock ticks, so that a later process with the same pid is not confused
/// with it.
pub type Identity = (i32, u64);

/// One row of the process table.
#[derive(Debug, Clone, Copy)]
pub struct ProcessRow {
    pub identity: Identity,
    pub parent: i32,
    pub zombie: bool,
}

/// All processes, by pid.
pub type ProcessTable = BTreeMap<i32, ProcessRow>;

/// Reads all processes in `/proc`.
pub fn table() -> ProcessTable {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| Some((pid, process(pid)?)))
        .collect()
}

/// Returns the start time of a process, in clock ticks since boot; `None` if the process is gone.
pub fn started(pid: i32) -> Option<u64> {
    process(pid).map(|process| process.identity.1)
}

fn process(pid: i32) -> Option<ProcessRow> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain spaces and parentheses, so count fields from the last parenthesis.
    let rest = std::str::from_utf8(&stat[stat.iter().rposition(|byte| *byte == b')')? + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    // A process whose first thread has ended looks dead, but lives on in its other threads.
    let zombie = matches!(state, "Z" | "X") && threads <= 1;
    Some(ProcessRow { identity: (pid, started), parent, zombie })
}

/// Whether a process is stopped or has ended.
pub fn stands_still(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().next();
    state.is_none_or(|state| matches!(state, "T" | "t" | "Z" | "X"))
}

/// Whether a thread has ended or is exiting, though other threads of its process may live.
pub fn is_dead(task: i32) -> bool {
    // The kernel's flag PF_EXITING. An exiting task gets it before its memory and files are released, which may take a
    // while, and only then becomes a zombie.
    const EXITING: u64 = 4;
    let stat = fs::read_to_string(format!("/proc/{task}/stat")).unwrap_or_default();
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let state = fields.next().is_none_or(|state| matches!(state, "Z" | "X"));
    state || fields.nth(5).and_then(|flags| flags.parse::<u64>().ok()).is_none_or(|flags| flags & EXITING != 0)
}

/// Returns the threads of a process. To read a process's files or memory, try all of its threads. If the first thread
/// has ended, only the other threads still show them. If a thread has its own table of files, only that thread shows
/// these files.
pub fn tasks(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the first result of `read` among the threads of a process.
pub fn of_any_thread<T>(pid: i32, read: impl Fn(i32) -> Option<T>) -> Option<T> {
    read(pid).or_else(|| tasks(pid).into_iter().filter(|task| *task != pid).find_map(read))
}

/// Returns the number of threads that a user has on this machine.
pub fn threads_of(user: u32) -> u64 {
    let is_theirs = |pid: &i32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == user);
    threads(table().into_keys().filter(is_theirs).collect())
}

/// Returns the number of threads of these processes.
pub fn threads(processes: Vec<i32>) -> u64 {
    let threads = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<u64>().ok())
    };
    processes.into_iter().filter_map(threads).sum()
}

/// Returns the pids of the living descendants of a process.
pub fn below(root: i32) -> Vec<i32> {
    descendants(root, &BTreeSet::new()).into_iter().map(|(pid, _)| pid).collect()
}

/// Returns the living descendants of `root`, except `spared` processes and their descendants.
pub fn descendants(root: i32, spared: &BTreeSet<Identity>) -> BTreeSet<Identity> {
    descendants_in(&table(), root, spared)
}

/// Same as [`descendants`], but uses a table that was read before.
pub fn descendants_in(table: &ProcessTable, root: i32, spared: &BTreeSet<Identity>) -> BTreeSet<Identity> {
    let mut found = BTreeSet::new();
    for process in table.values() {
        let mut next = Some(process);
        // A chain of parents cannot be longer than the table, even if processes changed while the table was read.
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

/// Returns the living processes whose initial environment contains exactly the entry `NAME=value`.
pub fn marked(variable: &str) -> BTreeSet<Identity> {
    let has = |pid: i32| {
        let environ = |task| fs::read(format!("/proc/{task}/environ")).ok().filter(|environ| !environ.is_empty());
        of_any_thread(pid, environ)
            .is_some_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()))
    };
    table().values().filter(|process| !process.zombie && has(process.identity.0)).map(|p| p.identity).collect()
}

/// Sends a signal to each process, unless its pid belongs to another process by now.
pub fn signal_all(processes: &BTreeSet<Identity>, signal: Signal) {
    for identity in processes {
        if process(identity.0).is_some_and(|now| now.identity == *identity) {
            // The call fails if the process has ended in the meantime; then no signal is needed.
            let _ = kill(Pid::from_raw(identity.0), signal);
        }
    }
}

/// Kills the processes that `find` returns until it returns none. All are stopped first, because a stopped process
/// cannot fork.
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
    // Kill stragglers that were forked while the table was read.
    for _ in 0..100 {
        let left = find();
        if left.is_empty() {
            return;
        }
        signal_all(&left, Signal::SIGKILL);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
