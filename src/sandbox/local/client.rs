//! The harness's end of a local sandbox: the conversation with its init, and the clean-up on the host.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nix::sys::signal::Signal;
use tokio::net::UnixStream;
use tokio::process::Child;

use super::cgroup::Cgroup;
use crate::error::{Error, FailureKind, Result};
use crate::files::Temporary;
use crate::sandbox::conversation::InitConversation;
use crate::sandbox::program;
use crate::sandbox::watch::DiskWatch;
use crate::sandbox::{
    Command, Evidence, EvidenceKind, Exec, ExecLimits, Fault, FolderEntry, Listener, Loss, OutOfMemory, Sandbox,
};
use autoexperiment_init::disk::OUT_OF_ROOM;
use autoexperiment_init::processes;
use autoexperiment_init::wire::Setup;
use autoexperiment_init::{OWN_VARIABLE, SIGNALLED};

/// Time limit for an init to build its sandbox.
const LONGEST_START: Duration = Duration::from_secs(30);

/// Time limit for an init without namespaces to kill all processes.
const LONGEST_END: Duration = Duration::from_mins(5);

/// The error for a sandbox of the backend `name` that could not be started.
pub(super) fn lost(name: &str, what: &str, cause: impl std::fmt::Display) -> Error {
    Error::new(FailureKind::Infrastructure, format!("failed to start a `{name}` sandbox: {what}: {cause}"))
        .hint("`autoexperiment doctor` says what works on this machine")
}

/// Starts a sandbox's first process. Returns the harness's end of the socket to it. `namespaces` says whether the
/// kernel ends all other processes of the sandbox when the first process ends.
pub(super) fn spawn(name: &str, namespaces: bool) -> Result<(UnixStream, Child)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(|error| lost(name, "socket", error))?;
    ours.set_nonblocking(true).map_err(|error| lost(name, "socket", error))?;
    let program = program::path().map_err(|error| lost(name, "unpack its first process", error))?;
    let child = tokio::process::Command::new(program)
        // The name in /proc/1/cmdline inside; it must not show where this program is installed.
        .arg0("autoexperiment")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Without a pid namespace, the init must stay alive to kill its processes when it finds the socket closed.
        .kill_on_drop(namespaces)
        .spawn()
        .map_err(|error| lost(name, "start its first process", error))?;
    Ok((UnixStream::from_std(ours).map_err(|error| lost(name, "socket", error))?, child))
}

/// A running local sandbox. The order of the fields is the order in which they are dropped: closing the socket makes
/// the init exit, and then the sandbox's control groups and temporary folder are removed.
pub(super) struct LocalSandbox {
    conversation: InitConversation,
    child: Child,
    leftovers: Leftovers,
    /// Root of the attempt's own disk, if it has one.
    disk: Option<File>,
    workdir: PathBuf,
    /// Whether this process has already looked for the cause of the sandbox's loss.
    is_explained: bool,
    begun: Instant,
    /// CPU time after which the kernel kills any process inside, the init included.
    cpu_limit: Duration,
    /// Whether the sandbox uses the machine's network, so that other processes of the machine can connect to a port on
    /// which the sandbox listens.
    shares_network: bool,
}

/// Resources of a sandbox on the host, which are removed when this is dropped.
pub(super) struct Leftovers {
    pub(super) cgroup: Cgroup,
    /// Folder for temporary files; only in a sandbox without namespaces.
    pub(super) scratch: Option<Temporary>,
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        // Without a pid namespace, processes outlive an init that was killed before it could kill them.
        if let Some(scratch) = &self.scratch {
            self.cgroup.kill();
            let variable = format!("{OWN_VARIABLE}={}", scratch.path().display());
            processes::kill_all(|| processes::marked(&variable));
        }
    }
}

impl LocalSandbox {
    pub(super) fn new(
        socket: UnixStream,
        child: Child,
        leftovers: Leftovers,
        workdir: PathBuf,
        cpu_limit: Duration,
    ) -> Self {
        let (from, to) = socket.into_split();
        Self {
            conversation: InitConversation::new(from, to, None),
            child,
            leftovers,
            disk: None,
            workdir,
            is_explained: false,
            begun: Instant::now(),
            cpu_limit,
            shares_network: false,
        }
    }

    /// Watches the workspace's size. `disk` is the root of the sandbox's own file system, which is synced at the end.
    pub(super) fn watched(mut self, watch: DiskWatch, disk: Option<File>) -> Self {
        self.conversation.watch(watch);
        Self { disk, ..self }
    }

    /// Declares that the sandbox uses this machine's own network.
    pub(super) fn on_the_host_s_network(self) -> Self {
        Self { shares_network: true, ..self }
    }

    /// Sends the setup to the init and waits until the sandbox is ready. `name` is the name of the backend.
    ///
    /// # Errors
    /// Kind `Infrastructure` if the init fails or does not answer.
    pub(super) async fn started(mut self, name: &str, setup: &Setup) -> Result<Box<dyn Sandbox>, Error> {
        match tokio::time::timeout(LONGEST_START, self.conversation.set_up(setup)).await {
            Ok(Ok(())) => Ok(Box::new(self)),
            Ok(Err(reason)) => Err(lost(name, "init", reason)),
            Err(_) => Err(lost(name, "init", format!("no answer for {} s", LONGEST_START.as_secs()))),
        }
    }

    /// Returns `result`. If the init can no longer be reached, adds the cause to the error. With namespaces, also kills
    /// the init's parent, the guardian: the init dies with the guardian, and all other processes die with the init.
    /// Without namespaces, the init kills its processes when the socket closes.
    async fn checked<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        let Err(Fault::Lost(loss)) = result else { return result };
        if !self.conversation.is_lost() || self.is_explained {
            return Err(Fault::Lost(loss));
        }
        self.is_explained = true;
        let mut signal = None;
        if self.leftovers.scratch.is_none() {
            signal = self.ended_by().await;
            let _ = self.child.start_kill();
        }
        let (memory, evidence) = match self.out_of_memory() {
            Some(OutOfMemory::Own) => (Some("its processes exceeded its memory limit".to_owned()), None),
            Some(OutOfMemory::Outer(evidence)) => (None, Some(evidence)),
            None => (None, self.killed_from_outside(signal)),
        };
        let note = memory.or(signal.map(signal_name));
        Err(Fault::Lost(self.conversation.explain(note, evidence).unwrap_or(loss)))
    }
}

fn signal_name(signal: i32) -> String {
    let name = Signal::try_from(signal).map_or_else(|_| signal.to_string(), |it| it.to_string());
    format!("signal {name}")
}

/// Returns the result of a command or, if a memory limit outside the sandbox has made the kernel kill a process of the
/// sandbox, a loss: the results of the sandbox's commands then show nothing about the code. The exit code does not
/// matter, because a command may continue after one of its child processes was killed.
fn unless_killed_for_others(exec: Exec, out_of_memory: Option<OutOfMemory>) -> Result<Exec, Fault> {
    match out_of_memory {
        Some(OutOfMemory::Outer(evidence)) => Err(Fault::Lost(Loss::new(evidence.detail.clone()).proven(evidence))),
        Some(OutOfMemory::Own) | None => Ok(exec),
    }
}

impl LocalSandbox {
    /// Returns evidence that a process outside killed the init, if the signal shows that. No process inside can send
    /// KILL to the init. The kernel can, for lack of memory (which the sandbox's control group counts) or at the CPU
    /// limit. If the kernel has not sent the signal, a process outside the sandbox has.
    fn killed_from_outside(&self, signal: Option<i32>) -> Option<Evidence> {
        let is_possible = signal == Some(Signal::SIGKILL as i32)
            && self.leftovers.cgroup.counts_oom_kills()
            && self.begun.elapsed() < self.cpu_limit;
        is_possible.then(|| {
            EvidenceKind::StoppedByOthers.because(
                "a process outside the sandbox killed its first process (signal SIGKILL, while the sandbox was within its limits)",
            )
        })
    }

    /// Returns the signal that ended the init, if one did. The guardian, the init's parent, exits right after the init,
    /// and its exit code contains the signal.
    async fn ended_by(&mut self) -> Option<i32> {
        let ended = tokio::time::timeout(Duration::from_millis(200), self.child.wait()).await;
        let status = ended.ok()?.ok()?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        let of_init = code.and_then(|code| code.checked_sub(SIGNALLED)).filter(|signal| *signal > 0);
        // If the exit code contains no signal, a signal may have ended the guardian itself. Only a process outside the
        // sandbox can have sent that signal, because no process inside can see the guardian.
        of_init.map(i32::from).or(status.signal())
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    fn workdir(&self) -> &Path {
        &self.workdir
    }

    async fn exec(&mut self, command: &Command, limits: &ExecLimits) -> Result<Exec, Fault> {
        let result = self.conversation.exec(command, limits).await;
        let exec = self.checked(result).await?;
        unless_killed_for_others(exec, self.out_of_memory())
    }

    async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
        let result = self.conversation.read(path, limit).await;
        self.checked(result).await
    }

    async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let result = self.conversation.write(path, bytes).await;
        self.checked(result).await
    }

    async fn list(&mut self, path: &Path) -> Result<Vec<FolderEntry>, Fault> {
        let result = self.conversation.list(path).await;
        self.checked(result).await
    }

    async fn listen(&mut self) -> Result<Listener, Fault> {
        let result = self.conversation.listen().await;
        let listener = self.checked(result).await?;
        Ok(Listener { shared: self.shares_network, ..listener })
    }

    fn out_of_memory(&self) -> Option<OutOfMemory> {
        self.leftovers.cgroup.oom_kill()
    }

    async fn destroy(self: Box<Self>) -> Result<(), Fault> {
        let Self { conversation, mut child, leftovers, disk, .. } = *self;
        drop(conversation);
        // The init kills all processes and exits when it finds the socket closed. Without namespaces, the kernel does
        // not end them together with the init, so the init gets more time to kill them.
        let longest = if leftovers.scratch.is_some() { LONGEST_END } else { Duration::from_secs(5) };
        let result = tokio::time::timeout(longest, child.wait()).await;
        if result.is_err() {
            let _ = child.kill().await;
        }
        // Dropping the control group waits until its last process has ended, so do it on a thread that does not drive
        // other attempts.
        let written = tokio::task::spawn_blocking(move || {
            drop(leftovers);
            disk.map_or(Ok(()), |disk| Ok(rustix::fs::syncfs(disk)?))
        });
        // `disk` is a file system in an image file on the host's disk. The sync fails if the host's disk was full, so
        // that data could not be written to the image file.
        let written: io::Result<()> = written.await.unwrap_or(Ok(()));
        written.map_err(|error| Fault::Lost(Loss::new(OUT_OF_ROOM).because(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Exit;

    #[test]
    fn a_command_whose_process_was_killed_for_an_outer_memory_limit_is_lost_whatever_its_exit_code() {
        let exec = |exit| Exec {
            exit,
            stdout: Vec::new(),
            stderr: Vec::new(),
            cut: 0,
            wall: Duration::ZERO,
            starved: Duration::ZERO,
            cpu: Duration::ZERO,
            peak_memory: 0,
        };
        for exit in [Exit::Code(0), Exit::Code(137), Exit::Signal(9), Exit::TimedOut] {
            for short_of in [None, Some(OutOfMemory::Own)] {
                assert_eq!(unless_killed_for_others(exec(exit), short_of).unwrap().exit, exit);
            }
            let outer = EvidenceKind::OuterMemoryLimit.because("a limit around it");
            match unless_killed_for_others(exec(exit), Some(OutOfMemory::Outer(outer.clone()))) {
                Err(Fault::Lost(loss)) => assert_eq!(loss.evidence(), Some(&outer)),
                other => panic!("{other:?}"),
            }
        }
    }
}
