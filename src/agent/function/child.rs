//! The process of a function: its messages line by line, the end of what it prints, and that nothing of it stays.

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

/// Bytes of a message.
const LONGEST: u64 = 64 << 20;
/// Bytes of what it prints that are kept: the end.
const PRINTED: usize = 20_000;
/// So long a process that has said its last may take to end.
const LAST: Duration = Duration::from_secs(5);

/// A running function. Its process group is killed when this is dropped.
pub(super) struct Child {
    process: tokio::process::Child,
    group: Option<Pid>,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    printed: JoinHandle<Vec<u8>>,
}

/// What comes from it.
pub(super) enum Line {
    /// A line, without its end.
    Message(Vec<u8>),
    /// More bytes than a message may have.
    TooLong,
    /// It has closed its end.
    Over,
}

impl Child {
    /// Starts it, and gives it and each process that it starts so many bytes of memory.
    pub(super) fn start(command: std::process::Command, memory: u64) -> io::Result<Self> {
        let mut command = Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.process_group(0).kill_on_drop(true).spawn()?;
        let group = process.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        if let Some(pid) = group {
            hold_to(pid, memory)?;
            // Should the machine run out of memory, the kernel ends this process and what it starts, and not the harness.
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

    pub(super) async fn line(&mut self) -> io::Result<Line> {
        let mut line = Vec::new();
        (&mut self.stdout).take(LONGEST).read_until(b'\n', &mut line).await?;
        Ok(match line.pop() {
            None => Line::Over,
            Some(b'\n') => Line::Message(line),
            Some(_) if line.len() as u64 + 1 >= LONGEST => Line::TooLong,
            Some(last) => {
                // Written without an end, by a process that has gone.
                line.push(last);
                Line::Message(line)
            }
        })
    }

    /// How it ended, once it has closed its end or is to be ended; and the end of what it printed.
    pub(super) async fn finish(mut self, is_stopped: bool) -> (Exit, String) {
        if is_stopped {
            self.kill();
        }
        let ended = timeout(LAST, self.process.wait()).await;
        self.kill();
        // The number may be another's soon.
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

    /// Kills it and all that it has started.
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

/// Limits what a process and each of its children may allocate. Address space would be the wrong measure: libraries reserve
/// much more of it than they use.
fn hold_to(pid: Pid, memory: u64) -> io::Result<()> {
    // It has inherited a hard limit that may be lower.
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
