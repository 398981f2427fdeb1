//! The harness's end of an init, over a socket or a container's streams: sends jobs, waits for replies, watches time
//! and, where it can see it, disk.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use super::listener::{Listener, Relay};
use super::local::wire::{self, Job, Reply, Request, Setup};
use super::local::{OUT_OF_ROOM, Watch, decode_list};
use super::{Command, Entry, Exec, ExecLimits, Exit, Fault};

/// What the init may take beyond a command's own limits before it is given up.
const MARGIN: Duration = Duration::from_secs(10);
/// A command's first look at the disk, and the time between looks.
const FIRST_LOOK: Duration = Duration::from_millis(500);
const BETWEEN_LOOKS: Duration = Duration::from_millis(300);
/// Limits of file jobs; they take milliseconds unless the machine is in trouble.
const FILE_WALL: Duration = Duration::from_mins(1);
const LISTING: usize = 64 << 20;
/// Bytes that may wait to be sent before more is taken from relayed connections.
const MOST_UNSENT: usize = 256 << 10;
/// How long an init may take to listen.
const LISTEN: Duration = Duration::from_secs(10);

/// What is said to an init and heard from it.
pub(super) struct Conversation {
    from: Box<dyn AsyncRead + Send + Unpin>,
    to: Box<dyn AsyncWrite + Send + Unpin>,
    /// What has arrived of the next reply.
    arrived: Vec<u8>,
    /// What has yet to be sent.
    unsent: Vec<u8>,
    /// Whether a reply is due.
    waiting: bool,
    watch: Option<Watch>,
    /// Connections that processes inside make to the harness, once somebody listens.
    relay: Option<Relay>,
    /// Why nothing more can be asked; also set while a job is under way, in case it is abandoned.
    broken: Option<String>,
}

impl Conversation {
    pub(super) fn new(
        from: impl AsyncRead + Send + Unpin + 'static,
        to: impl AsyncWrite + Send + Unpin + 'static,
        watch: Option<Watch>,
    ) -> Self {
        let (arrived, unsent) = (Vec::new(), Vec::new());
        Self {
            from: Box::new(from),
            to: Box::new(to),
            arrived,
            unsent,
            waiting: false,
            watch,
            relay: None,
            broken: None,
        }
    }

    /// Whether the init cannot be talked to any more, as opposed to being in the midst of an abandoned job.
    pub(super) fn is_lost(&self) -> bool {
        self.broken.is_some() && !self.waiting
    }

    /// Tells the init what to become, and waits until it is.
    pub(super) async fn set_up(&mut self, setup: &Setup) -> Result<(), String> {
        self.unsent = setup.encode();
        self.waiting = true;
        match self.hear(1 << 16).await {
            Ok(Reply::Ready) => Ok(()),
            Ok(Reply::Failed(reason)) => Err(reason),
            Ok(_) => Err("a garbled answer".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn run(&mut self, job: Job, stdin: &[u8], limits: &ExecLimits, output: usize) -> Result<Exec, Fault> {
        if let Some(reason) = &self.broken {
            return Err(Fault::Lost(reason.clone()));
        }
        self.broken = Some("an earlier command was abandoned".into());
        let begun = Instant::now();
        match self.converse(job, stdin, limits, output).await {
            Ok(Reply::Done(mut exec)) => {
                self.broken = None;
                if let Some(watch) = &mut self.watch
                    && watch.is_full_after(begun.elapsed()).await
                {
                    exec.exit = Exit::DiskFull;
                } else if let Some(watch) = &self.watch
                    && exec.exit != Exit::DiskFull
                    && watch.is_out_of_room().await
                {
                    return Err(self.give_up(OUT_OF_ROOM.to_owned()));
                }
                Ok(exec)
            }
            Ok(Reply::Refused(reason)) => {
                self.broken = None;
                Err(Fault::Refused(reason))
            }
            Ok(Reply::Failed(reason)) => Err(self.give_up(reason)),
            Ok(_) => Err(self.give_up("a garbled answer".into())),
            Err(error) => Err(self.give_up(error.to_string())),
        }
    }

    async fn converse(&mut self, job: Job, stdin: &[u8], limits: &ExecLimits, output: usize) -> io::Result<Reply> {
        let wall = limits.wall;
        let request = Request::Run { job, wall, grace: limits.grace, output, stdin: stdin.to_vec() };
        let begun = Instant::now();
        // Durations beyond any calendar mean no limit.
        let far = begun + Duration::from_hours(365 * 24);
        let mut last = begun.checked_add(wall.saturating_add(limits.grace).saturating_add(MARGIN)).unwrap_or(far);
        let mut look = begun + FIRST_LOOK;
        let mut stopped = self.watch.is_none();
        let most = 2 * output as u64 + (1 << 16);
        let stop = self.relay.as_ref().map(|relay| relay.stop.clone()).filter(|stop| !stop.is_cancelled());
        let mut expired = stop.is_none();
        let stop = stop.unwrap_or_default();
        self.unsent.extend(request.encode());
        self.waiting = true;
        loop {
            tokio::select! {
                reply = self.hear(most) => return reply,
                () = sleep_until(last) => return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")),
                () = stop.cancelled(), if !expired => {
                    expired = true;
                    self.unsent.extend(Request::Expire.encode());
                    last = last.min(Instant::now() + limits.grace + MARGIN);
                }
                () = sleep_until(look), if !stopped => {
                    look = Instant::now() + BETWEEN_LOOKS;
                    if let Some(watch) = &self.watch && watch.is_full().await {
                        self.unsent.extend(Request::Stop.encode());
                        stopped = true;
                    }
                }
            }
        }
    }

    /// Sends what is unsent and waits for a whole reply, relaying connections meanwhile. It reads while it writes: an init
    /// that relays much must never have to wait for somebody who waits for it. Nothing is lost when it is dropped before
    /// its end: what was sent and what has arrived is remembered.
    async fn hear(&mut self, most: u64) -> io::Result<Reply> {
        // What a call that was dropped has sent may not be on its way yet.
        self.to.flush().await?;
        loop {
            while let Some(reply) = self.arrived(most)? {
                match (reply, &mut self.relay) {
                    (Reply::Line(line), Some(relay)) => {
                        self.unsent.extend(relay.heard(line).iter().flat_map(Request::encode));
                    }
                    (reply, _) => {
                        self.waiting = false;
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
                Some(request) = relayed, if takes_more => unsent.extend(request.encode()),
            }
        }
    }

    /// The next message, where it has arrived whole.
    fn arrived(&mut self, most: u64) -> io::Result<Option<Reply>> {
        let Some((head, payload)) = self.arrived.split_first_chunk() else { return Ok(None) };
        let length = wire::length(*head, most)?;
        if payload.len() < length {
            let missing = length - payload.len();
            self.arrived.reserve(missing);
            return Ok(None);
        }
        let reply = Reply::decode(&payload[..length])?;
        self.arrived.drain(..8 + length);
        Ok(Some(reply))
    }

    /// Lets processes inside connect to the harness.
    pub(super) async fn listen(&mut self) -> Result<Listener, Fault> {
        if let Some(reason) = &self.broken {
            return Err(Fault::Lost(reason.clone()));
        }
        self.unsent.extend(Request::Listen.encode());
        self.waiting = true;
        match tokio::time::timeout(LISTEN, self.hear(1 << 16)).await {
            Ok(Ok(Reply::Listening(port))) => {
                let (relay, listener) = Relay::new((std::net::Ipv4Addr::LOCALHOST, port).into());
                self.relay = Some(relay);
                Ok(listener)
            }
            Ok(Ok(Reply::Refused(reason))) => Err(Fault::Refused(reason)),
            Ok(Ok(_)) => Err(self.give_up("a garbled answer".into())),
            Ok(Err(error)) => Err(self.give_up(error.to_string())),
            Err(_) => Err(self.give_up("no answer in time".into())),
        }
    }

    fn give_up(&mut self, reason: String) -> Fault {
        self.waiting = false;
        self.broken = Some(reason.clone());
        Fault::Lost(reason)
    }

    /// Ends a job that was abandoned, so that the workspace can still be read.
    pub(super) async fn settle(&mut self) -> Result<(), Fault> {
        if !self.waiting {
            return self.broken.clone().map_or(Ok(()), |reason| Err(Fault::Lost(reason)));
        }
        self.unsent.extend(Request::Stop.encode());
        match tokio::time::timeout(MARGIN, self.hear(1 << 40)).await {
            Ok(Ok(_)) => {
                self.broken = None;
                Ok(())
            }
            Ok(Err(error)) => Err(self.give_up(error.to_string())),
            Err(_) => Err(self.give_up("no answer in time".into())),
        }
    }

    /// Runs a job about files; what it wrote to its output.
    pub(super) async fn file_job(
        &mut self,
        what: &str,
        path: &Path,
        job: Job,
        stdin: &[u8],
        most: u64,
    ) -> Result<Vec<u8>, Fault> {
        let limits = ExecLimits { wall: FILE_WALL, grace: Duration::ZERO, output: 0 };
        // Twice as much as can come, for only the first half of what a capture keeps is contiguous.
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
        let job =
            Job::Exec { argv: command.argv.clone(), cwd: command.cwd.clone(), variables: command.variables.clone() };
        self.run(job, &command.stdin, limits, limits.output).await
    }

    pub(super) async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
        let job = Job::Read { path: path.to_path_buf(), limit };
        self.file_job("read", path, job, &[], limit.saturating_add(4096)).await
    }

    pub(super) async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let job = Job::Write { path: path.to_path_buf() };
        self.file_job("write", path, job, bytes, 4096).await.map(drop)
    }

    pub(super) async fn list(&mut self, path: &Path) -> Result<Vec<Entry>, Fault> {
        let job = Job::List { path: path.to_path_buf() };
        let bytes = self.file_job("list", path, job, &[], LISTING as u64).await?;
        decode_list(&bytes).ok_or_else(|| Fault::Refused(format!("`{}` has too many entries", path.display())))
    }
}
