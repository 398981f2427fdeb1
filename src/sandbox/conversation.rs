//! The harness's end of the conversation with an init, the first process of a sandbox, over a socket or a container's
//! streams. Sends jobs, waits for replies, and enforces time limits. If the harness can see the workspace, it also
//! enforces the disk limit.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use super::listener::{HarnessRelay, Listener};
use super::{Command, Evidence, Exec, ExecLimits, Exit, Fault, FolderEntry, Loss};
use crate::sandbox::watch::DiskWatch;
use autoexperiment_init::disk::OUT_OF_ROOM;
use autoexperiment_init::wire::{self, ENVELOPE, InitJob, InitReply, InitRequest, LONGEST_REQUEST, Setup};

/// Time beyond a command's own limits after which an init that has not replied is considered lost.
const MARGIN: Duration = Duration::from_mins(1);
/// Time from a command's start to the first check of the disk.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// Time from each check of the disk to the next check.
const BETWEEN_LOOKS: Duration = Duration::from_millis(300);
/// Time limit of jobs that read or write files. They take milliseconds unless the machine is in trouble.
const FILE_WALL: Duration = Duration::from_mins(1);
/// Maximum bytes of a folder's listing.
const LISTING: usize = 64 << 20;
/// Maximum number of unsent bytes; while there are more, no data is taken from relayed connections.
const MOST_UNSENT: usize = 256 << 10;
/// Time limit for an init to start listening.
const LISTEN: Duration = Duration::from_secs(10);
/// Maximum size in bytes of a reply without output.
const SHORT: u64 = 1 << 16;

/// The exchange of messages with an init, and its state.
pub(super) struct InitConversation {
    from: Box<dyn AsyncRead + Send + Unpin>,
    to: Box<dyn AsyncWrite + Send + Unpin>,
    /// Received bytes of replies that are not complete yet.
    arrived: Vec<u8>,
    /// Encoded messages that have not been sent yet.
    unsent: Vec<u8>,
    /// Size limit of the reply that is awaited; `None` if no job is under way.
    waiting: Option<u64>,
    watch: Option<DiskWatch>,
    /// Connections from processes in the sandbox to the harness; `None` before the first call of [`Self::listen`].
    relay: Option<HarnessRelay>,
    /// Extra time that the running job (a command or a file operation) gets because other processes kept the processors
    /// busy, as last reported by the init.
    later: Option<Duration>,
    /// The reason why no more jobs can be sent. Also set while a job is under way: if the caller drops the job's
    /// future, the value stays and no later job can be sent while the init still runs the abandoned one.
    broken: Option<Loss>,
}

impl InitConversation {
    pub(super) fn new(
        from: impl AsyncRead + Send + Unpin + 'static,
        to: impl AsyncWrite + Send + Unpin + 'static,
        watch: Option<DiskWatch>,
    ) -> Self {
        let (arrived, unsent) = (Vec::new(), Vec::new());
        Self {
            from: Box::new(from),
            to: Box::new(to),
            arrived,
            unsent,
            waiting: None,
            watch,
            relay: None,
            later: None,
            broken: None,
        }
    }

    /// Adds a watch on the workspace's size.
    pub(super) fn watch(&mut self, watch: DiskWatch) {
        self.watch = Some(watch);
    }

    /// Whether the sandbox is lost, for example because the connection to the init has failed. Returns `false` if the
    /// caller has merely dropped the future of a job that is not finished.
    pub(super) fn is_lost(&self) -> bool {
        self.broken.is_some() && self.waiting.is_none()
    }

    /// Sends the setup to the init and waits until the sandbox is ready.
    pub(super) async fn set_up(&mut self, setup: &Setup) -> Result<(), String> {
        match self.ask(setup, SHORT).await {
            Ok(InitReply::Ready) => Ok(()),
            Ok(InitReply::Failed(reason)) => Err(reason),
            Ok(_) => Err("a garbled answer".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn run(&mut self, job: InitJob, stdin: &[u8], limits: &ExecLimits, output: usize) -> Result<Exec, Fault> {
        if let Some(loss) = &self.broken {
            return Err(Fault::Lost(loss.clone()));
        }
        if is_too_long(&job, stdin) {
            return Err(Fault::Refused(format!("it is longer than {LONGEST_REQUEST} bytes")));
        }
        self.broken = Some("an earlier command was abandoned".into());
        let begun = Instant::now();
        match self.converse(job, stdin, limits, output).await {
            Ok(InitReply::Done(mut exec)) => {
                self.broken = None;
                if let Some(watch) = &mut self.watch
                    && watch.is_full_after(begun.elapsed()).await
                {
                    exec.exit = Exit::DiskFull;
                } else if let Some(watch) = &self.watch
                    && exec.exit != Exit::DiskFull
                    && watch.is_out_of_room().await
                {
                    return Err(self.give_up(Loss::new(OUT_OF_ROOM)));
                }
                Ok(exec)
            }
            Ok(InitReply::Refused(reason)) => {
                self.broken = None;
                Err(Fault::Refused(reason))
            }
            Ok(InitReply::Failed(reason)) => Err(self.give_up(Loss::new(reason))),
            Ok(_) => Err(self.give_up(unexpected())),
            Err(error) => Err(self.give_up(lost_connection(error))),
        }
    }

    async fn converse(
        &mut self,
        job: InitJob,
        stdin: &[u8],
        limits: &ExecLimits,
        output: usize,
    ) -> io::Result<InitReply> {
        let request = InitRequest::Run {
            job,
            wall: limits.wall,
            patience: limits.patience,
            grace: limits.grace,
            output: output as u64,
            stdin: stdin.to_vec(),
        };
        let begun = Instant::now();
        // If a duration is too long for the clock, wait for a year instead.
        let far = begun + Duration::from_hours(365 * 24);
        let until =
            |wall: Duration| begun.checked_add(wall.saturating_add(limits.grace).saturating_add(MARGIN)).unwrap_or(far);
        let mut last = until(limits.wall);
        self.later = None;
        if let Some(relay) = &self.relay {
            relay.starved.send_replace(Duration::ZERO);
        }
        let mut look = begun + FIRST_LOOK;
        let mut stopped = self.watch.is_none();
        let most = 2 * output as u64 + SHORT;
        let stop = self.relay.as_ref().map(|relay| relay.stop.clone()).filter(|stop| !stop.is_cancelled());
        let mut expired = stop.is_none();
        let stop = stop.unwrap_or_default();
        wire::put(&mut self.unsent, &request)?;
        self.waiting = Some(most);
        loop {
            tokio::select! {
                // Prefer a reply that arrived during the check of the disk over a deadline that passed meanwhile.
                biased;
                reply = self.hear(most) => return reply,
                () = sleep_until(last) => match self.later.take() {
                    Some(later) => last = until(limits.wall.saturating_add(later.min(limits.patience))),
                    None => return Err(late()),
                },
                () = stop.cancelled(), if !expired => {
                    expired = true;
                    wire::put(&mut self.unsent, &InitRequest::Expire)?;
                    last = last.min(Instant::now() + limits.grace + MARGIN);
                }
                () = sleep_until(look), if !stopped => {
                    look = Instant::now() + BETWEEN_LOOKS;
                    if let Some(watch) = &self.watch && watch.is_full().await {
                        wire::put(&mut self.unsent, &InitRequest::Stop)?;
                        stopped = true;
                    }
                }
            }
        }
    }

    /// Sends unsent bytes and waits for a whole reply. Meanwhile, relays connections. Reading and writing are
    /// interleaved, because if both sides wrote much data and neither read, each would wait for the other forever. The
    /// future can be dropped at any time, because `self` keeps track of sent and received bytes.
    async fn hear(&mut self, most: u64) -> io::Result<InitReply> {
        // An earlier call that was dropped may have written bytes without flushing them.
        self.to.flush().await?;
        loop {
            while let Some(reply) = self.arrived(most)? {
                match (reply, &mut self.relay) {
                    (InitReply::Relayed(message), Some(relay)) => {
                        if let Some(answer) = relay.take(message) {
                            wire::put(&mut self.unsent, &answer)?;
                        }
                    }
                    (InitReply::Later(later), relay) => {
                        self.later = Some(later);
                        if let Some(relay) = relay {
                            relay.starved.send_replace(later);
                        }
                    }
                    (reply, _) => {
                        self.waiting = None;
                        return Ok(reply);
                    }
                }
            }
            let Self { from, to, arrived, unsent, relay, .. } = self;
            let takes_more = unsent.len() < MOST_UNSENT;
            let relayed = async {
                match relay {
                    Some(relay) => relay.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                sent = to.write(unsent), if !unsent.is_empty() => {
                    let sent = sent?;
                    if sent == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                    unsent.drain(..sent);
                    if unsent.is_empty() {
                        to.flush().await?;
                    }
                }
                read = from.read_buf(arrived) => {
                    if read? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Some(request) = relayed, if takes_more => wire::put(unsent, &request)?,
            }
        }
    }

    /// Takes the next message off the received bytes, if it is complete.
    fn arrived(&mut self, most: u64) -> io::Result<Option<InitReply>> {
        let Some((head, payload)) = self.arrived.split_first_chunk() else { return Ok(None) };
        let length = wire::length(*head, most)?;
        if payload.len() < length {
            let missing = length - payload.len();
            self.arrived.reserve(missing);
            return Ok(None);
        }
        let reply = wire::decode(&payload[..length])?;
        self.arrived.drain(..8 + length);
        Ok(Some(reply))
    }

    /// Lets processes in the sandbox connect to the harness.
    pub(super) async fn listen(&mut self) -> Result<Listener, Fault> {
        if let Some(loss) = &self.broken {
            return Err(Fault::Lost(loss.clone()));
        }
        match tokio::time::timeout(LISTEN, self.ask(&InitRequest::Listen, SHORT)).await {
            Ok(Ok(InitReply::Listening(port))) => {
                let (relay, listener) = HarnessRelay::new((std::net::Ipv4Addr::LOCALHOST, port).into());
                self.relay = Some(relay);
                Ok(listener)
            }
            Ok(Ok(InitReply::Refused(reason))) => Err(Fault::Refused(reason)),
            Ok(Ok(_)) => Err(self.give_up(unexpected())),
            Ok(Err(error)) => Err(self.give_up(lost_connection(error))),
            Err(_) => Err(self.give_up(lost_connection(late()))),
        }
    }

    /// Sends a message and waits for a reply of at most `most` bytes.
    async fn ask(&mut self, message: &impl serde::Serialize, most: u64) -> io::Result<InitReply> {
        wire::put(&mut self.unsent, message)?;
        self.waiting = Some(most);
        self.hear(most).await
    }

    fn give_up(&mut self, loss: Loss) -> Fault {
        self.waiting = None;
        self.broken = Some(loss.clone());
        Fault::Lost(loss)
    }

    /// Adds a note and evidence to the loss that this conversation has stored, and returns the loss. The note says how
    /// the loss happened, and the evidence shows that the machine failed.
    pub(super) fn explain(&mut self, note: Option<String>, evidence: Option<Evidence>) -> Option<Loss> {
        let mut loss = self.broken.take()?;
        if let Some(note) = note {
            loss = loss.noting(note);
        }
        if let Some(evidence) = evidence {
            loss = loss.proven(evidence);
        }
        self.broken = Some(loss.clone());
        Some(loss)
    }

    /// Ends a job whose future the caller has dropped, so that the workspace can still be read.
    pub(super) async fn end_abandoned_job(&mut self) -> Result<(), Fault> {
        let Some(most) = self.waiting else {
            return self.broken.clone().map_or(Ok(()), |loss| Err(Fault::Lost(loss)));
        };
        match tokio::time::timeout(MARGIN, self.ask(&InitRequest::Stop, most)).await {
            Ok(Ok(_)) => {
                self.broken = None;
                Ok(())
            }
            Ok(Err(error)) => Err(self.give_up(lost_connection(error))),
            Err(_) => Err(self.give_up(lost_connection(late()))),
        }
    }

    /// Runs a job about files and returns what it wrote to stdout. `what` is the verb for error messages.
    pub(super) async fn file_job(
        &mut self,
        what: &str,
        path: &Path,
        job: InitJob,
        stdin: &[u8],
        most: u64,
    ) -> Result<Vec<u8>, Fault> {
        let limits = ExecLimits { wall: FILE_WALL, patience: Duration::ZERO, grace: Duration::ZERO, output: 0 };
        // The init keeps the first half and the last half of an output up to a limit. Set the limit to twice the
        // longest output, so that the whole output fits into the first half, which the init stores in one contiguous
        // buffer.
        let output = usize::try_from(most.saturating_mul(2)).unwrap_or(usize::MAX >> 2).min(usize::MAX >> 2);
        let done = self.run(job, stdin, &limits, output).await?;
        let reason = match done.exit {
            Exit::Code(0) => return Ok(done.stdout),
            Exit::Code(_) => String::from_utf8_lossy(&done.stderr).into_owned(),
            Exit::Signal(signal) => format!("stopped by signal {signal}"),
            Exit::TimedOut => format!("it took longer than {} s", FILE_WALL.as_secs()),
            Exit::DiskFull => "the workspace is full".into(),
        };
        Err(Fault::Refused(format!("cannot {what} `{}`: {reason}", path.display())))
    }

    pub(super) async fn exec(&mut self, command: &Command, limits: &ExecLimits) -> Result<Exec, Fault> {
        let job = InitJob::Exec {
            argv: command.argv.iter().map(Into::into).collect(),
            cwd: (&command.cwd).into(),
            variables: command.variables.clone(),
        };
        self.run(job, &command.stdin, limits, limits.output).await
    }

    pub(super) async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
        let job = InitJob::Read { path: path.into(), limit };
        self.file_job("read", path, job, &[], limit.saturating_add(4096)).await
    }

    pub(super) async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let job = InitJob::Write { path: path.into() };
        self.file_job("write", path, job, bytes, 4096).await.map(drop)
    }

    pub(super) async fn list(&mut self, path: &Path) -> Result<Vec<FolderEntry>, Fault> {
        let job = InitJob::List { path: path.into() };
        let bytes = self.file_job("list", path, job, &[], LISTING as u64).await?;
        // The init cuts out the middle of a list that is too long. Such a list cannot be decoded.
        wire::decode(&bytes).map_err(|_| Fault::Refused(format!("`{}` has too many entries", path.display())))
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no answer in time")
}

/// Describes the loss of a sandbox whose init has sent a reply of the wrong type.
fn unexpected() -> Loss {
    Loss::new("its first process sent a wrong answer")
}

/// Describes the loss of a sandbox whose connection to its init has failed.
fn lost_connection(error: io::Error) -> Loss {
    let message = match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            "its first process was killed, or died"
        }
        io::ErrorKind::TimedOut => "its first process does not answer",
        _ => "the connection to its first process failed",
    };
    Loss::new(message).because(error)
}

/// Whether a request would exceed the size that an init accepts.
fn is_too_long(job: &InitJob, stdin: &[u8]) -> bool {
    let envelope = match job {
        InitJob::Exec { argv, variables, .. } => {
            let arguments: usize = argv.iter().map(|argument| argument.as_os_str().len() + 10).sum();
            arguments + variables.iter().map(|(name, value)| name.len() + value.len() + 20).sum::<usize>()
        }
        _ => 0,
    };
    envelope as u64 + SHORT > ENVELOPE || stdin.len() as u64 > LONGEST_REQUEST - ENVELOPE
}
