//! The processes below the init: lists the living ones, reaps dead ones, and kills them all.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::processes::{self, Identity};
use crate::reap::{EndedChild, reap};

/// All processes that descend from the init. Orphans become the init's children.
pub(super) struct Children {
    /// Becomes readable when a child has died.
    died: SignalFd,
    own: i32,
    /// Whether [`Self::stop`] has stopped the processes.
    stopped: Cell<bool>,
}

impl AsFd for Children {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.died.as_fd()
    }
}

impl Children {
    /// Blocks the signal of dead children, which is read from a descriptor instead.
    pub(super) fn watch() -> io::Result<Self> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None)?;
        let died = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { died, own: std::process::id() as i32, stopped: Cell::new(false) })
    }

    /// Reaps all children that have died. Returns how `pid` ended if it is among them.
    pub(super) fn collect(&self, pid: i32) -> Option<EndedChild> {
        while let Ok(Some(_)) = self.died.read_signal() {}
        let mut found = None;
        while let Ok(Some((dead, ended))) = reap(None) {
            if dead == pid {
                found = Some(ended);
            }
        }
        found
    }

    /// Returns all living descendants of the init except the spared processes and their descendants.
    pub(super) fn living(&self, spared: &BTreeSet<Identity>) -> BTreeSet<Identity> {
        if has_children() { processes::descendants(self.own, spared) } else { BTreeSet::new() }
    }

    /// Asks all processes that are not spared to exit.
    pub(super) fn terminate(&self, spared: &BTreeSet<Identity>) {
        let started = self.living(spared);
        processes::signal_all(&started, Signal::SIGTERM);
        // A stopped process would not handle the signal.
        processes::signal_all(&started, Signal::SIGCONT);
    }

    /// Kills all processes that are not spared.
    pub(super) fn kill(&self, spared: &BTreeSet<Identity>) {
        if self.own == 1 && spared.is_empty() {
            // In a pid namespace, -1 means all other processes, and nothing can fork in between.
            let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        } else {
            processes::kill_all(|| self.living(spared));
        }
    }

    /// Kills processes, for as long as necessary, until none is left. Orphans become this process's children, so once
    /// it has no children it is alone.
    pub(super) fn end(&self) {
        self.kill(&BTreeSet::new());
        // Raise this process's priority above that of its descendants, if allowed. SAFETY: the call takes no pointers.
        unsafe { nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, -20) };
        while has_children() {
            // A chain of processes that each start the next one and exit can only be caught by being fast: its last
            // link is a child of this process, so read the short list of children instead of the process table.
            for _ in 0..1000 {
                self.collect(0);
                let children = own_children();
                if children.is_empty() {
                    break;
                }
                for child in children {
                    let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
                }
            }
            self.collect(0);
            if has_children() {
                self.kill(&BTreeSet::new());
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Pauses all processes with SIGSTOP, so that files do not change while they are read, until [`Self::go_on`].
    pub(super) fn stop(&self) {
        self.stopped.set(true);
        for _ in 0..1000 {
            // Repeat for processes that were forked meanwhile, or that another process has continued.
            let mut awake = self.living(&BTreeSet::new());
            awake.retain(|(pid, _)| !processes::stands_still(*pid));
            if awake.is_empty() {
                return;
            }
            processes::signal_all(&awake, Signal::SIGSTOP);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Continues the stopped processes.
    pub(super) fn go_on(&self) {
        if self.stopped.replace(false) {
            processes::signal_all(&self.living(&BTreeSet::new()), Signal::SIGCONT);
        }
    }

    /// Waits until the killed processes have ended, and reaps them.
    pub(super) fn until_gone(&self, spared: &BTreeSet<Identity>) {
        for _ in 0..2000 {
            let all_dead = self.living(spared).is_empty();
            self.collect(0);
            if all_dead {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns this process's children, alive or dead. Empty if the kernel does not list them.
fn own_children() -> Vec<i32> {
    let list = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    list.split_ascii_whitespace().flat_map(str::parse).collect()
}

/// Whether this process has any child, alive or dead. Without children, no process is left below it, because orphans
/// become its children.
pub(super) fn has_children() -> bool {
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT).is_ok()
}
