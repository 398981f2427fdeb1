//! The process that runs a Python function. Messages are exchanged as lines of its standard input and output, the end
//! of its standard error is kept, and its whole process group is killed when it is dropped.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::sandbox::Exit;

/// Maximum bytes of a message.
const LONGEST: u64 = 64 << 20;
/// Maximum bytes kept of the end of the process's standard error.
const PRINTED: usize = 20_000;
/// Grace period for the process to exit after its last message.
const LAST: Duration = Duration::from_secs(5);

/// The running process of an agent that is a Python function. Its process group is killed on drop.
pub(super) struct Child {
    process: tokio::process::Child,
    group: Option<Pid>,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    printed: JoinHandle<Vec<u8>>,
}

/// A message from the process, or the reason why no message arrived.
pub(super) enum ChildInput {
    /// A line, without its newline character.
    Message(Vec<u8>),
    /// A line longer than the maximum.
    TooLong,
    /// The process closed its output; no more messages follow.
    Over,
}

impl Child {
    /// Starts the process. The process and each of its child processes may allocate `memory` bytes.
    pub(super) fn start(command: std::process::Command, memory: u64) -> io::Result<Self> {
        let mut command = Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.process_group(0).kill_on_drop(true).spawn()?;
        let group = process.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        if let Some(pid) = group {
            hold_to(pid, memory)?;
            // If the machine runs out of memory, the kernel should kill this process and its child processes, not the
            // harness.
            let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), "1000");
        }
        let missing = || io::Error::other("a stream is missing");
        let stdin = process.stdin.take().ok_or_else(missing)?;
        let stdout = BufReader::new(process.stdout.take().ok_or_else(missing)?);
        let printed = tokio::spawn(last_bytes(process.stderr.take().ok_or_else(missing)?));
        Ok(Self { process, group, stdin, stdout, printed })
    }

    pub(super) async fn send(&mut self, line: &[u8]) -> io::Result<()> {
        self.stdin.write_all(line).await
    }

    pub(super) async fn line(&mut self) -> io::Result<ChildInput> {
        let mut line = Vec::new();
        (&mut self.stdout).take(LONGEST).read_until(b'\n', &mut line).await?;
        Ok(match line.pop() {
            None => ChildInput::Over,
            Some(b'\n') => ChildInput::Message(line),
            Some(_) if line.len() as u64 + 1 >= LONGEST => ChildInput::TooLong,
            Some(last) => {
                // The last line has no newline, because the process has exited.
                line.push(last);
                ChildInput::Message(line)
            }
        })
    }

    /// Waits for the process to exit, or kills it if `is_stopped`. Returns how it exited, and the end of its error
    /// output.
    pub(super) async fn finish(mut self, is_stopped: bool) -> (Exit, String) {
        if is_stopped {
            self.kill();
        }
        let ended = timeout(LAST, self.process.wait()).await;
        self.kill();
        // The process has exited and its id may soon be reused, so don't kill that id on drop.
        self.group = None;
        let exit = match ended {
            Ok(Ok(status)) => match (status.code(), status.signal()) {
                (_, Some(signal)) if !is_stopped => Exit::Signal(signal),
                (Some(code), _) => Exit::Code(code),
                _ => Exit::TimedOut,
            },
            _ => Exit::TimedOut,
        };
        let printed = timeout(LAST, &mut self.printed).await.ok().and_then(Result::ok).unwrap_or_default();
        (exit, String::from_utf8_lossy(&printed).into_owned())
    }

    /// Kills the process and all processes that it started.
    fn kill(&mut self) {
        if let Some(group) = self.group {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Limits the memory that a process and each of its child processes may allocate. The limit is on data instead of
/// address space, because libraries reserve much more address space than they use.
fn hold_to(pid: Pid, memory: u64) -> io::Result<()> {
    // The process may not be allowed to raise the inherited hard limit, so do not exceed it.
    let limit = getrlimit(Resource::Data).maximum.map_or(memory, |hard| hard.min(memory));
    let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
    prlimit(rustix::process::Pid::from_raw(pid.as_raw()), Resource::Data, limit)?;
    Ok(())
}

async fn last_bytes(mut stderr: ChildStderr) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut piece = vec![0; 1 << 16];
    while let Ok(count @ 1..) = stderr.read(&mut piece).await {
        kept.extend_from_slice(&piece[..count]);
        let over = kept.len().saturating_sub(PRINTED);
        kept.drain(..over);
    }
    kept
}
