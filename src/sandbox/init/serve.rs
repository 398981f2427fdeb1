//! The init's loop: it runs one job at a time, bounds its output and its time, and collects orphans.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, Pid, fork};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::Serialize;

use super::channel::Channel;
use super::confine::Confinement;
use super::growth::Growth;
use super::oom::OomScore;
use super::pipes::{drain, non_blocking, pipe, read_some};
use super::relay::{Place, Relay};
use super::tree;
use super::wire::{Job, LONGEST_REQUEST, OsBytes, Relayed, Reply, Request, put, put_item, receive};
use crate::sandbox::capture::Capture;
use crate::sandbox::disk::OUT_OF_ROOM;
use crate::sandbox::processes::{self, Identity};
use crate::sandbox::reap::{Ended, reap};
use crate::sandbox::{Exec, Exit, files};

/// Runs jobs for the harness.
pub(super) struct Server {
    workdir: PathBuf,
    variables: BTreeMap<String, String>,
    /// What each child gives up, where the init has not given it up already.
    confinement: Option<Arc<Confinement>>,
    oom_score: Option<OomScore>,
    children: SignalFd,
    null: OwnedFd,
    own: i32,
    /// Set where the harness cannot see the workspace and the init looks after its size.
    growth: Option<Growth>,
    /// Set once the harness has asked for it.
    relay: RefCell<Option<Relay>>,
}

/// A job as it goes.
struct Running {
    pid: i32,
    begun: Instant,
    stdin: Option<(PipeWriter, Vec<u8>, usize)>,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
    out: Capture,
    err: Capture,
    /// What earlier commands left running.
    spared: BTreeSet<Identity>,
    /// Whether it may find the disk full. What brings the workspace out may not.
    grows: bool,
}

impl Server {
    pub(super) fn new(
        workdir: PathBuf,
        variables: BTreeMap<String, String>,
        confinement: Option<Confinement>,
        oom_score: Option<OomScore>,
    ) -> io::Result<Self> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None)?;
        let children = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let null = std::fs::File::options().read(true).write(true).open("/dev/null")?.into();
        let own = std::process::id() as i32;
        Ok(Self {
            workdir,
            variables,
            confinement: confinement.map(Arc::new),
            oom_score,
            children,
            null,
            own,
            growth: None,
            relay: RefCell::new(None),
        })
    }

    /// The same, looking after the workspace's size as well.
    pub(super) fn watching(self, growth: Growth) -> Self {
        Self { growth: Some(growth), ..self }
    }

    /// Serves until the harness closes the socket, then kills what is left.
    pub(super) fn serve(&self, channel: &mut Channel) -> io::Result<()> {
        let result = self.requests(channel);
        self.kill(&BTreeSet::new());
        result
    }

    fn requests(&self, channel: &mut Channel) -> io::Result<()> {
        loop {
            let mut ready = [
                PollFd::new(channel.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.children.as_fd(), PollFlags::POLLIN),
            ];
            wait(&mut ready, None)?;
            let [asked, died] = ready.map(|fd| fd.any().unwrap_or(true));
            if died {
                self.collect(0);
            }
            if asked {
                let Some(request) = receive(&mut *channel, LONGEST_REQUEST)? else { return Ok(()) };
                let (job, wall, grace, output, stdin) = match request {
                    Request::Run { job, wall, grace, output, stdin } => (job, wall, grace, output, stdin),
                    Request::Listen => {
                        send(channel, &self.listen())?;
                        continue;
                    }
                    Request::Relayed(relayed) => {
                        self.take_relayed(relayed, channel)?;
                        continue;
                    }
                    // The job that it was meant for has just ended.
                    Request::Stop | Request::Expire => continue,
                };
                let reply = match self.begin(&job, stdin, usize::try_from(output).unwrap_or(usize::MAX)) {
                    Ok(running) => self.attend(running, channel, wall, grace)?,
                    Err(why) => Some(Reply::Refused(why)),
                };
                let Some(reply) = reply else { return Ok(()) };
                send(channel, &reply)?;
            }
        }
    }

    /// Listens for connections that are to be relayed.
    fn listen(&self) -> Reply {
        if self.confinement.is_some() {
            return Reply::Refused("without namespaces, commands can make no connections".into());
        }
        let mut relay = self.relay.borrow_mut();
        if relay.is_none() {
            match Relay::listen() {
                Ok(made) => *relay = Some(made),
                Err(error) => return Reply::Refused(format!("cannot listen: {error}")),
            }
        }
        match relay.as_ref().map(Relay::port) {
            Some(Ok(port)) => Reply::Listening(port),
            _ => Reply::Refused("cannot listen".into()),
        }
    }

    /// Takes what the harness says about a relayed connection.
    fn take_relayed(&self, relayed: Relayed, channel: &mut Channel) -> io::Result<()> {
        let answers = self.relay.borrow_mut().as_mut().map(|relay| relay.take(relayed));
        send_all(answers.unwrap_or_default(), channel)
    }

    /// Reaps all children that have died; says how `pid` ended if it is among them.
    fn collect(&self, pid: i32) -> Option<Ended> {
        while let Ok(Some(_)) = self.children.read_signal() {}
        let mut found = None;
        while let Ok(Some((dead, ended))) = reap(None) {
            if dead == pid {
                found = Some(ended);
            }
        }
        found
    }

    /// Everything that descends from the init but not from what is spared.
    fn living(&self, spared: &BTreeSet<Identity>) -> BTreeSet<Identity> {
        if has_children() { processes::descendants(self.own, spared) } else { BTreeSet::new() }
    }

    fn kill(&self, spared: &BTreeSet<Identity>) {
        if self.own == 1 && spared.is_empty() {
            // In a pid namespace -1 means all others, at once, so that nothing can fork in between.
            let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        } else {
            processes::kill_all(|| self.living(spared));
        }
    }

    fn begin(&self, job: &Job, stdin: Vec<u8>, output: usize) -> Result<Running, String> {
        let spared = self.living(&BTreeSet::new());
        if matches!(job, Job::Survey) {
            self.kill(&BTreeSet::new());
            self.until_gone(&BTreeSet::new());
        }
        let begun = Instant::now();
        let no_pipe = |error: io::Error| format!("the sandbox has no pipe left: {error}");
        let (stdout, stdout_end) = pipe().map_err(no_pipe)?;
        let (stderr, stderr_end) = pipe().map_err(no_pipe)?;
        let (pid, stdin) = match job {
            Job::Exec { argv, cwd, variables } => {
                let (end, stdin) = if stdin.is_empty() {
                    (self.null.try_clone().map_err(no_pipe)?, None)
                } else {
                    let (end, pipe) = io::pipe().map_err(no_pipe)?;
                    non_blocking(&pipe).map_err(no_pipe)?;
                    (end.into(), Some((pipe, stdin, 0)))
                };
                (self.spawn(argv, cwd.as_path(), variables, [end, stdout_end.into(), stderr_end.into()])?, stdin)
            }
            _ => (self.fork_for(job, &stdin, stdout_end, stderr_end)?, None),
        };
        let (out, err) = (Capture::new(output), Capture::new(output));
        Ok(Running {
            pid,
            begun,
            stdin,
            stdout: Some(stdout),
            stderr: Some(stderr),
            out,
            err,
            spared,
            grows: !matches!(job, Job::Survey | Job::Collect),
        })
    }

    fn spawn(
        &self,
        argv: &[OsBytes],
        cwd: &Path,
        variables: &BTreeMap<String, String>,
        [stdin, stdout, stderr]: [OwnedFd; 3],
    ) -> Result<i32, String> {
        let Some((name, arguments)) = argv.split_first() else { return Err("an empty command".into()) };
        let name = name.as_os_str();
        // Collected again for want of a trailing slash, which joining an empty path leaves.
        let folder: PathBuf = self.workdir.join(cwd).components().collect();
        let path = variables.get("PATH").or_else(|| self.variables.get("PATH")).map_or("", String::as_str);
        let program =
            find(name, path, &folder).ok_or_else(|| format!("no program `{}` in PATH", name.to_string_lossy()))?;
        // A program given by its path, and no closure to run after a fork, let the standard library use the fast
        // way, posix_spawn, which does not copy the init's page tables.
        let mut command = Command::new(program);
        command
            .arg0(name)
            .args(arguments.iter().map(OsBytes::as_os_str))
            .env_clear()
            .envs(&self.variables)
            .envs(variables);
        command.env("PWD", &folder).current_dir(&folder);
        command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        command.process_group(0);
        if let Some(confinement) = self.confinement.clone() {
            // SAFETY: the init has one thread, so the child may allocate and take locks.
            unsafe { command.pre_exec(move || confinement.apply()) };
        }
        match OomScore::raised(self.oom_score.as_ref(), || command.spawn()) {
            Ok(child) => Ok(child.id() as i32),
            Err(_) if !folder.is_dir() => Err(format!("no folder `{}`", cwd.display())),
            Err(error) => Err(format!("cannot run `{}`: {error}", name.to_string_lossy())),
        }
    }

    /// Runs a file job in a child of our own, which has the bytes to write already.
    fn fork_for(&self, job: &Job, input: &[u8], stdout: PipeWriter, mut stderr: PipeWriter) -> Result<i32, String> {
        // SAFETY: the init has one thread. Beside this function, the child runs a write to an open file.
        match OomScore::raised(self.oom_score.as_ref(), || unsafe { fork() }) {
            Err(error) => Err(format!("the sandbox has no process left: {error}")),
            Ok(ForkResult::Parent { child }) => Ok(child.as_raw()),
            Ok(ForkResult::Child) => {
                let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
                let confined = self.confinement.as_ref().map_or(Ok(()), |confinement| confinement.apply());
                let result = confined.and_then(|()| self.file_job(job, input, stdout));
                let code = match result {
                    Ok(()) => 0,
                    Err(error) => {
                        let _ = stderr.write_all(error.to_string().as_bytes());
                        1
                    }
                };
                // SAFETY: ends the child without running what the parent registered.
                unsafe { libc::_exit(code) }
            }
        }
    }

    fn at(&self, path: &OsBytes) -> PathBuf {
        self.workdir.join(path.as_path())
    }

    fn file_job(&self, job: &Job, input: &[u8], mut stdout: PipeWriter) -> io::Result<()> {
        match job {
            Job::Read { path, limit } => stdout.write_all(&files::read(&self.at(path), *limit)?),
            Job::Write { path } => files::write(&self.at(path), input),
            Job::List { path } => {
                let mut list = Vec::new();
                put_item(&mut list, &files::list(&self.at(path))?)?;
                stdout.write_all(&list)
            }
            Job::Lay => tree::lay(&self.workdir, input),
            Job::Survey => {
                let since = self.growth.as_ref().map(Growth::since);
                if input.is_empty() {
                    tree::survey(&self.workdir, since, tree::SurveyLimits::default(), &mut stdout)
                } else {
                    tree::survey_known(&self.workdir, since, input, &mut stdout)
                }
            }
            Job::Collect => tree::collect(&self.workdir, input, &mut stdout),
            Job::Exec { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sees a job to its end. `None` when the harness has gone.
    fn attend(
        &self,
        mut running: Running,
        channel: &mut Channel,
        wall: Duration,
        grace: Duration,
    ) -> io::Result<Option<Reply>> {
        let mut deadline = running.begun.checked_add(wall);
        let mut forced = None;
        let (mut killed, mut starved) = (false, false);
        let mut look = self.growth.as_ref().filter(|_| running.grows).map(|_| Growth::first_look(running.begun));
        let ended = loop {
            let next = [deadline, look].into_iter().flatten().min();
            let ready = running.wait(channel, &self.children, self.relay.borrow().as_ref(), next)?;
            for place in &ready.relay {
                let messages = self.relay.borrow_mut().as_mut().map(|relay| relay.pump(*place));
                send_all(messages.unwrap_or_default(), channel)?;
            }
            if ready.socket {
                match receive(&mut *channel, LONGEST_REQUEST)? {
                    None => return Ok(None),
                    Some(Request::Stop) => {
                        forced = Some(Exit::DiskFull);
                        self.kill(&running.spared);
                    }
                    Some(Request::Expire) => {
                        // From here on it goes as at its time limit.
                        if forced.is_none() {
                            deadline = Some(Instant::now());
                        }
                    }
                    Some(Request::Relayed(relayed)) => self.take_relayed(relayed, channel)?,
                    Some(_) => return Err(io::ErrorKind::InvalidData.into()),
                }
            }
            running.pump(&ready);
            if ready.children
                && let Some(ended) = self.collect(running.pid)
            {
                break ended;
            }
            if let Some(growth) = &self.growth
                && look.is_some_and(|look| Instant::now() >= look)
                && !killed
            {
                let looking = Instant::now();
                if growth.is_full() {
                    forced = Some(Exit::DiskFull);
                    killed = true;
                    self.kill(&running.spared);
                    deadline = None;
                } else if growth.is_out_of_room() {
                    (killed, starved) = (true, true);
                    self.kill(&running.spared);
                    deadline = None;
                }
                look = Some(Growth::next_look(looking)).filter(|_| !killed);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                if forced.is_none() {
                    forced = Some(Exit::TimedOut);
                    let started = self.living(&running.spared);
                    processes::signal_all(&started, Signal::SIGTERM);
                    // What is stopped would never see the signal.
                    processes::signal_all(&started, Signal::SIGCONT);
                    deadline = Instant::now().checked_add(grace);
                } else if !killed {
                    killed = true;
                    self.kill(&running.spared);
                    deadline = None;
                }
            }
        };
        let grows = self.growth.as_ref().filter(|_| running.grows && forced != Some(Exit::DiskFull));
        if starved || grows.is_some_and(Growth::is_out_of_room) {
            return Ok(Some(Reply::Failed(OUT_OF_ROOM.to_owned())));
        }
        if forced.is_some() {
            self.kill(&running.spared);
            self.until_gone(&running.spared);
        } else if let Some(growth) = self.growth.as_ref().filter(|_| running.grows)
            && growth.is_full_after(running.begun.elapsed())
        {
            forced = Some(Exit::DiskFull);
        }
        Ok(Some(Reply::Done(running.finish(&ended, forced))))
    }

    /// Waits until nothing is left of what was killed.
    fn until_gone(&self, spared: &BTreeSet<Identity>) {
        for _ in 0..2000 {
            self.collect(0);
            if self.living(spared).is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What poll said.
struct Ready {
    socket: bool,
    children: bool,
    stdout: bool,
    stderr: bool,
    stdin: bool,
    relay: Vec<Place>,
}

impl Running {
    fn wait(
        &self,
        channel: &Channel,
        children: &SignalFd,
        relay: Option<&Relay>,
        deadline: Option<Instant>,
    ) -> io::Result<Ready> {
        let mut fds =
            vec![PollFd::new(channel.as_fd(), PollFlags::POLLIN), PollFd::new(children.as_fd(), PollFlags::POLLIN)];
        let places = [
            self.stdout.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)),
            self.stderr.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)),
            self.stdin.as_ref().map(|(pipe, ..)| PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)),
        ]
        .map(|fd| {
            fd.map(|fd| {
                fds.push(fd);
                fds.len() - 1
            })
        });
        let first = fds.len();
        let relayed = relay.map(|relay| relay.wait_for(&mut fds)).unwrap_or_default();
        wait(&mut fds, deadline)?;
        let is_ready = |place: usize| fds[place].any().unwrap_or(true);
        let [stdout, stderr, stdin] = places.map(|place| place.is_some_and(is_ready));
        let relay = relayed.iter().enumerate().filter(|(place, _)| is_ready(first + place)).map(|(_, place)| *place);
        Ok(Ready { socket: is_ready(0), children: is_ready(1), stdout, stderr, stdin, relay: relay.collect() })
    }

    /// Moves what can be moved without waiting.
    fn pump(&mut self, ready: &Ready) {
        if ready.stdout && !read_some(self.stdout.as_mut(), &mut self.out) {
            self.stdout = None;
        }
        if ready.stderr && !read_some(self.stderr.as_mut(), &mut self.err) {
            self.stderr = None;
        }
        if ready.stdin
            && let Some((pipe, bytes, written)) = &mut self.stdin
        {
            match pipe.write(&bytes[*written..]) {
                Ok(count) => *written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The command has closed its input.
                Err(_) => *written = bytes.len(),
            }
            if *written == bytes.len() {
                self.stdin = None;
            }
        }
    }

    /// Takes what the pipes hold at this moment, without waiting for background processes that keep them open.
    fn finish(mut self, ended: &Ended, forced: Option<Exit>) -> Exec {
        drain(self.stdout.as_mut(), &mut self.out);
        drain(self.stderr.as_mut(), &mut self.err);
        let ((stdout, cut_out), (stderr, cut_err)) = (self.out.finish(), self.err.finish());
        Exec {
            exit: forced.unwrap_or(ended.exit),
            stdout,
            stderr,
            cut: cut_out + cut_err,
            wall: self.begun.elapsed(),
            cpu: ended.cpu,
            peak_memory: ended.peak_memory,
        }
    }
}

/// Sends one message, waiting until it is taken.
pub(super) fn send(channel: &mut Channel, message: &impl Serialize) -> io::Result<()> {
    let mut frame = Vec::new();
    put(&mut frame, message)?;
    channel.write_all(&frame)
}

/// Tells the harness about relayed connections.
fn send_all(relayed: Vec<Relayed>, channel: &mut Channel) -> io::Result<()> {
    relayed.into_iter().try_for_each(|relayed| send(channel, &Reply::Relayed(relayed)))
}

/// Polls until something is ready or the deadline has come.
fn wait(fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
    let timeout = deadline.map_or(PollTimeout::NONE, |deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up, not to wake just before the deadline; a longer wait than this returns and is begun again.
        PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
    });
    match poll(fds, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether this process has any child, alive or not; orphans become its children, so without one it is alone.
fn has_children() -> bool {
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT).is_ok()
}

/// The program's path: as given when it holds a slash, else the first executable file of that name in PATH.
fn find(name: &OsStr, path: &str, folder: &Path) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(folder.join(name));
    }
    std::env::split_paths(path).map(|place| folder.join(place).join(name)).find(|candidate| {
        candidate.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    })
}
