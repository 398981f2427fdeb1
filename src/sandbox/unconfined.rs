//! `--sandbox none`: plain processes on the host, for machines on which nothing better works and for tests of other
//! parts. Time limits, output limits and clean-up work as in other sandboxes, but nothing is confined.
//!
//! Every process has a marker in its environment, so that processes that have left their process group can be found.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nix::sys::signal::Signal;
use rustix::process::PidfdFlags;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Backend, Command, Connection, EvidenceKind, Exec, ExecLimits, Exit, Fault, FolderEntry, Listener, Loss, Sandbox,
    Spec,
};
use crate::error::{Error, Result};
use crate::workspace::{Layers, LayersKind};
use autoexperiment_init::capture::Capture;
use autoexperiment_init::reap::{EndedChild, reap};
use autoexperiment_init::starved::Starved;
use autoexperiment_init::{files, processes};

const MARKER: &str = "AUTOEXPERIMENT_SANDBOX";
const COMMAND_MARKER: &str = "AUTOEXPERIMENT_COMMAND";
/// Pause after a failed attempt to accept a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
static STARTED: AtomicU64 = AtomicU64::new(0);

/// Starts sandboxes that confine nothing.
#[derive(Debug, Default)]
pub struct Unconfined;

#[async_trait]
impl Backend for Unconfined {
    fn name(&self) -> &'static str {
        "none"
    }

    fn layers(&self) -> LayersKind {
        LayersKind::Copy
    }

    fn owner(&self) -> Option<(u32, u32)> {
        None
    }

    fn warnings(&self) -> Vec<String> {
        vec![
            "NO SANDBOX: what the agent writes runs as you, reads and changes all your files, gold results and \
             original code included, and reaches the network"
                .into(),
            "NO SANDBOX: memory, processes and disk are not limited".into(),
        ]
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>> {
        let Layers::Copy { dir } = &spec.layers else {
            return Err(Error::internal("sandbox `none` was given an overlay, which it cannot mount"));
        };
        let dir = dir.canonicalize().map_err(|error| Error::io("open the workspace", dir, error))?;
        // The folder is next to the workspace, so that it is removed with the workspace if this process is killed.
        let beside = dir.parent().unwrap_or(&dir);
        let home = tempfile::Builder::new().prefix("home-").tempdir_in(beside);
        let home = home.map_err(|error| Error::io("create a folder in", beside, error))?;
        let id = format!("{}.{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        Ok(Box::new(UnconfinedSandbox { dir, home, spec: spec.clone(), id, commands: 0, stop: None }))
    }
}

struct UnconfinedSandbox {
    dir: PathBuf,
    home: tempfile::TempDir,
    spec: Spec,
    id: String,
    commands: u64,
    /// Token of the current [`Listener`]; `None` before [`Sandbox::listen`] is called. Cancelling it ends the running
    /// command as its time limit would.
    stop: Option<CancellationToken>,
}

impl UnconfinedSandbox {
    fn spawn(&mut self, command: &Command) -> Result<(RunningCommand, String), Fault> {
        let Some((program, arguments)) = command.argv.split_first() else {
            return Err(Fault::Refused("an empty command".into()));
        };
        let cwd = self.dir.join(&command.cwd);
        if !cwd.is_dir() {
            return Err(Fault::Refused(format!("`{}` is not a folder", command.cwd.display())));
        }
        self.commands += 1;
        let mark = format!("{}.{}", self.id, self.commands);
        let lost = |error: io::Error| failed("make a pipe", error);
        let (stdout, stdout_end) = io::pipe().map_err(lost)?;
        let (stderr, stderr_end) = io::pipe().map_err(lost)?;
        let (stdin_end, stdin) = io::pipe().map_err(lost)?;
        let mut process = Process::new(program);
        process
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home.path())
            .env("TMPDIR", self.home.path())
            .envs(&self.spec.variables)
            .envs(self.spec.gpu.as_ref().map(super::Gpu::variable))
            .envs(&command.variables)
            .env(MARKER, &self.id)
            .env(COMMAND_MARKER, &mark)
            .current_dir(cwd)
            .stdin(Stdio::from(stdin_end))
            .stdout(Stdio::from(stdout_end))
            .stderr(Stdio::from(stderr_end))
            .process_group(0);
        let child = process
            .spawn()
            .map_err(|error| Fault::Refused(format!("cannot run `{}`: {error}", program.to_string_lossy())))?;
        drop(process);
        let pid = child.id() as i32;
        // The child has not been waited for, so its pid cannot belong to another process yet.
        let pidfd = rustix::process::pidfd_open(rustix::process::Pid::from_child(&child), PidfdFlags::empty())
            .map_err(|error| lost(error.into()))?;
        let running = RunningCommand {
            pid,
            // SAFETY: the AsyncFd owns the descriptor and nothing else closes or replaces it.
            exited: unsafe { AsyncFd::register(pidfd) }.map_err(|error| lost(error.into()))?,
            stdin: pipe::Sender::from_owned_fd(stdin.into()).map_err(lost)?,
            stdout: pipe::Receiver::from_owned_fd(stdout.into()).map_err(lost)?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into()).map_err(lost)?,
        };
        Ok((running, format!("{COMMAND_MARKER}={mark}")))
    }

    /// Resolves a path given by the caller. Links are simply followed, because nothing is confined here.
    fn resolve(&self, path: &Path) -> PathBuf {
        self.dir.join(path)
    }
}

struct RunningCommand {
    pid: i32,
    exited: AsyncFd<OwnedFd>,
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

/// Reads bytes that are in the pipe; returns `false` at its end.
fn pump(pipe: &pipe::Receiver, capture: &mut Capture) -> bool {
    let mut buffer = [0; 16384];
    match pipe.try_read(&mut buffer) {
        Ok(0) => false,
        Ok(count) => {
            capture.push(&buffer[..count]);
            true
        }
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// Reads what the pipe contains at this moment, without waiting for background processes that keep it open.
fn drain(pipe: &pipe::Receiver, capture: &mut Capture) {
    let mut waiting = rustix::io::ioctl_fionread(pipe).unwrap_or(0) as usize;
    let mut buffer = [0; 16384];
    while waiting > 0 {
        match pipe.try_read(&mut buffer) {
            Ok(count) if count > 0 => {
                capture.push(&buffer[..count]);
                waiting = waiting.saturating_sub(count);
            }
            _ => return,
        }
    }
}

#[async_trait]
impl Sandbox for UnconfinedSandbox {
    fn workdir(&self) -> &Path {
        &self.dir
    }

    async fn exec(&mut self, command: &Command, limits: &ExecLimits) -> Result<Exec, Fault> {
        let begun = Instant::now();
        let (running, mark) = self.spawn(command)?;
        let RunningCommand { pid, exited, stdin, stdout, stderr } = running;
        let mut guard = KillOnDrop { mark: Some(mark.clone()) };
        let (mut out, mut err) = (Capture::new(limits.output), Capture::new(limits.output));
        let (mut out_open, mut err_open) = (true, true);
        let mut input = Some(stdin).filter(|_| !command.stdin.is_empty());
        let mut written = 0;
        let mut starved = Some(Starved::since(begun)).filter(|_| !limits.patience.is_zero());
        let mut deadline = tokio::time::Instant::from_std(begun + limits.wall);
        let mut counts = starved.is_some();
        let (mut timed_out, mut killed) = (false, false);
        let mut stop = self.stop.clone().filter(|stop| !stop.is_cancelled());
        loop {
            tokio::select! {
                _ = exited.readable() => break,
                _ = stdout.readable(), if out_open => out_open = pump(&stdout, &mut out),
                _ = stderr.readable(), if err_open => err_open = pump(&stderr, &mut err),
                ready = async { match &input { Some(pipe) => pipe.writable().await, None => std::future::pending().await } } => {
                    let result = ready.and_then(|()| input.as_ref().map_or(Ok(0), |pipe| pipe.try_write(&command.stdin[written..])));
                    match result {
                        Ok(count) => written += count,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => written = command.stdin.len(),
                    }
                    if written == command.stdin.len() {
                        input = None;
                    }
                }
                () = async { match &stop { Some(stop) => stop.cancelled().await, None => std::future::pending().await } } => {
                    stop = None;
                    if !timed_out {
                        (deadline, counts) = (tokio::time::Instant::now(), false);
                    }
                }
                () = async {
                    match &starved {
                        Some(starved) => tokio::time::sleep_until(deadline.min(starved.next_look().into())).await,
                        None => std::future::pending().await,
                    }
                }, if counts => {
                    if let Some(starved) = &mut starved {
                        let alive = processes::marked(&mark).into_iter().map(|(pid, _)| pid);
                        deadline = (begun + limits.wall + starved.later(alive, limits.patience)).into();
                    }
                    counts = tokio::time::Instant::now() < deadline;
                }
                () = tokio::time::sleep_until(deadline), if !counts && !killed => {
                    if timed_out {
                        processes::kill_all(|| processes::marked(&mark));
                        killed = true;
                    } else {
                        let started = processes::marked(&mark);
                        processes::signal_all(&started, Signal::SIGTERM);
                        processes::signal_all(&started, Signal::SIGCONT);
                        timed_out = true;
                        deadline += limits.grace;
                    }
                }
            }
        }
        let ended = reap(Some(pid));
        if timed_out {
            processes::kill_all(|| processes::marked(&mark));
        }
        guard.mark = None;
        drain(&stdout, &mut out);
        drain(&stderr, &mut err);
        let ((stdout, cut_out), (stderr, cut_err)) = (out.finish(), err.finish());
        let EndedChild { exit, cpu, peak_memory } = match ended {
            Ok(Some((_, ended))) => ended,
            Ok(None) => {
                return Err(failed("get the exit status of a command that had ended", io::ErrorKind::NotFound.into()));
            }
            // The exit status is unknown, so do not report one.
            Err(error) => return Err(failed("wait for a command", error)),
        };
        Ok(Exec {
            exit: if timed_out { Exit::TimedOut } else { exit },
            stdout,
            stderr,
            cut: cut_out + cut_err,
            wall: begun.elapsed(),
            starved: starved.map_or(Duration::ZERO, |starved| starved.total()),
            cpu,
            peak_memory,
        })
    }

    async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
        let path = self.resolve(path);
        files::read(&path, limit).map_err(|error| refused("read", &path, &error))
    }

    async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let path = self.resolve(path);
        files::write(&path, bytes).map_err(|error| refused("write", &path, &error))
    }

    async fn list(&mut self, path: &Path) -> Result<Vec<FolderEntry>, Fault> {
        let path = self.resolve(path);
        files::list(&path).map_err(|error| refused("list", &path, &error))
    }

    /// Listens on a port of this machine, because the sandbox has no network of its own.
    async fn listen(&mut self) -> Result<Listener, Fault> {
        let lost = |error: io::Error| failed("listen", error);
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.map_err(lost)?;
        let address = listener.local_addr().map_err(lost)?;
        let (accepted, connections) = mpsc::channel::<Box<dyn Connection>>(64);
        tokio::spawn(async move {
            loop {
                let stream = tokio::select! {
                    stream = listener.accept() => stream,
                    () = accepted.closed() => return,
                };
                let Ok((stream, _)) = stream else {
                    // If no file descriptor is free, the next try would fail at once, too.
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                };
                let _ = stream.set_nodelay(true);
                if accepted.send(Box::new(stream)).await.is_err() {
                    return;
                }
            }
        });
        let stop = CancellationToken::new();
        self.stop = Some(stop.clone());
        Ok(Listener { address, connections, stop, shared: true })
    }

    async fn destroy(self: Box<Self>) -> Result<(), Fault> {
        // Dropping `self` kills all processes with the marker.
        Ok(())
    }
}

/// Fault for a failed system call of the harness itself, which nothing inside can cause.
fn failed(what: &str, error: io::Error) -> Fault {
    let evidence = EvidenceKind::Harness.because(format!("the harness failed to {what}: {error}"));
    Fault::Lost(Loss::new(format!("failed to {what}")).because(error).proven(evidence))
}

fn refused(verb: &str, path: &Path, error: &io::Error) -> Fault {
    Fault::Refused(format!("cannot {verb} `{}`: {error}", path.display()))
}

/// Kills a command whose future is dropped before the command has ended, as on Ctrl-C.
struct KillOnDrop {
    mark: Option<String>,
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(mark) = self.mark.take() {
            processes::kill_all(|| processes::marked(&mark));
        }
    }
}

impl Drop for UnconfinedSandbox {
    fn drop(&mut self) {
        let mark = format!("{MARKER}={}", self.id);
        processes::kill_all(|| processes::marked(&mark));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::EntryKind;

    fn limits(milliseconds: u64) -> ExecLimits {
        ExecLimits {
            wall: Duration::from_millis(milliseconds),
            patience: Duration::ZERO,
            grace: Duration::from_millis(200),
            output: 1000,
        }
    }

    async fn sandbox(dir: &Path) -> Box<dyn Sandbox> {
        let spec = Spec {
            layers: Layers::Copy { dir: dir.to_path_buf() },
            read_only: Vec::new(),
            sealed: Vec::new(),
            hidden: Vec::new(),
            variables: [("COLOUR".to_owned(), "blue".to_owned())].into(),
            limits: super::super::SandboxLimits::default(),
            gpu: None,
        };
        Unconfined.start(&spec).await.unwrap()
    }

    #[tokio::test]
    async fn a_command_sees_its_input_and_only_the_variables_that_were_given() {
        let dir = tempfile::tempdir().unwrap();
        let mut sandbox = sandbox(dir.path()).await;
        let mut command = Command::shell("cat; echo $COLOUR $CARGO_HOME; echo bad >&2; exit 3");
        command.stdin = vec![b'x'; 200_000];
        let done = sandbox.exec(&command, &ExecLimits { output: 400_000, ..limits(5000) }).await.unwrap();
        assert_eq!(done.exit, Exit::Code(3));
        assert_eq!(done.stdout, [vec![b'x'; 200_000], b"blue\n".to_vec()].concat());
        assert_eq!(done.stderr, b"bad\n");
    }

    #[tokio::test]
    async fn a_time_limit_kills_processes_that_left_the_group_and_ignore_sigterm() {
        let dir = tempfile::tempdir().unwrap();
        let mut sandbox = sandbox(dir.path()).await;
        let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60; true' & sleep 60; true";
        let mut command = Command::shell(script);
        command.variables.insert("WHO".into(), "stubborn".into());
        let done = sandbox.exec(&command, &limits(300)).await.unwrap();
        assert_eq!(done.exit, Exit::TimedOut);
        assert!(done.wall < Duration::from_secs(5), "took {:?}", done.wall);
        assert!(processes::marked("WHO=stubborn").is_empty());
    }

    #[tokio::test]
    async fn a_background_process_outlives_its_command_but_not_the_sandbox() {
        let dir = tempfile::tempdir().unwrap();
        let mut sandbox = sandbox(dir.path()).await;
        let mut command = Command::shell("setsid sleep 60 & echo started");
        command.variables.insert("WHO".into(), "background".into());
        let done = sandbox.exec(&command, &limits(5000)).await.unwrap();
        assert_eq!(done.stdout, b"started\n");
        // A forked process cannot be found by its variables until it executes its program.
        let mut waits = 0;
        while processes::marked("WHO=background").is_empty() {
            waits += 1;
            assert!(waits < 100, "no background process");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sandbox.destroy().await.unwrap();
        assert!(processes::marked("WHO=background").is_empty());
    }

    #[tokio::test]
    async fn files_are_written_with_their_folders_read_up_to_a_limit_and_listed() {
        let dir = tempfile::tempdir().unwrap();
        let mut sandbox = sandbox(dir.path()).await;
        sandbox.write(Path::new("a/b.txt"), b"longer").await.unwrap();
        sandbox.write(Path::new("a/b.txt"), b"hello").await.unwrap();
        assert_eq!(sandbox.read(Path::new("a/b.txt"), 5).await.unwrap(), b"hello");
        assert!(matches!(sandbox.read(Path::new("a/b.txt"), 4).await, Err(Fault::Refused(_))));
        assert!(matches!(sandbox.read(Path::new("a"), 9).await, Err(Fault::Refused(_))));
        let listed = sandbox.list(Path::new("a")).await.unwrap();
        assert_eq!(listed, [FolderEntry { name: "b.txt".into(), kind: EntryKind::File, size: 5 }]);
    }
}
