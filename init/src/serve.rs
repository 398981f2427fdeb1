//! The init's main loop: runs one job at a time and enforces its time limit.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use serde::Serialize;

use super::channel::Channel;
use super::children::{Children, has_children};
use super::growth::Growth;
use super::memory::MemoryWatch;
use super::relay::Relay;
use super::running::{RunningJob, wait};
use super::start::{NotStarted, Starter};
use super::wire::{InitJob, InitReply, InitRequest, LONGEST_REQUEST, Relayed, put, receive};
use crate::Exit;
use crate::disk::OUT_OF_ROOM;
use crate::starved::{BETWEEN_LAST_LOOKS, Starved};

/// Time limits of a job.
#[derive(Debug, Clone, Copy)]
struct JobTimeLimits {
    wall: Duration,
    /// Maximum extension of the time limit if other processes occupy the processors.
    patience: Duration,
    /// Time between TERM and KILL.
    grace: Duration,
}

/// Runs jobs for the harness.
pub(super) struct JobServer {
    starter: Starter,
    children: Children,
    /// Set if the harness cannot see the workspace, so that the init must watch its size.
    growth: Option<Growth>,
    /// Set if there is memory that no cgroup counts.
    memory: Option<MemoryWatch>,
    /// Set once the harness has asked to listen.
    relay: RefCell<Option<Relay>>,
}

impl JobServer {
    pub(super) fn new(starter: Starter) -> io::Result<Self> {
        Ok(Self { starter, children: Children::watch()?, growth: None, memory: None, relay: RefCell::new(None) })
    }

    /// Adds a watch on memory.
    pub(super) fn weighing(self, memory: MemoryWatch) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Adds a watch on the workspace's size.
    pub(super) fn watching(self, growth: Growth) -> Self {
        Self { growth: Some(growth), ..self }
    }

    /// Serves until the harness closes the socket, then kills all remaining processes.
    pub(super) fn serve(&self, channel: &mut Channel) -> io::Result<()> {
        let result = self.requests(channel);
        self.children.end();
        result
    }

    fn requests(&self, channel: &mut Channel) -> io::Result<()> {
        loop {
            let mut ready = [
                PollFd::new(channel.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.children.as_fd(), PollFlags::POLLIN),
            ];
            // Also watch processes that earlier commands left running.
            let watched = self.memory.as_ref().filter(|_| has_children());
            wait(&mut ready, watched.map(MemoryWatch::next_look))?;
            let [asked, died] = ready.map(|fd| fd.any().unwrap_or(true));
            if died {
                self.children.collect(0);
            }
            if let Some(memory) = watched {
                memory.look(&self.children, None);
            }
            if asked {
                let Some(request) = receive(&mut *channel, LONGEST_REQUEST)? else { return Ok(()) };
                let (job, times, output, stdin) = match request {
                    InitRequest::Run { job, wall, patience, grace, output, stdin } => {
                        (job, JobTimeLimits { wall, patience, grace }, output, stdin)
                    }
                    InitRequest::Listen => {
                        send(channel, &self.listen())?;
                        continue;
                    }
                    InitRequest::Relayed(relayed) => {
                        self.take_relayed(relayed, channel)?;
                        continue;
                    }
                    // The job that this request is about has already ended.
                    InitRequest::Stop | InitRequest::Expire => continue,
                };
                let output = usize::try_from(output).unwrap_or(usize::MAX);
                let reply = match self.begin(&job, stdin, output, !times.patience.is_zero()) {
                    Ok(running) => self.attend(running, channel, times)?,
                    Err(NotStarted::Refused(why)) => Some(InitReply::Refused(why)),
                    Err(NotStarted::NoProcess(why)) => Some(InitReply::Failed(why)),
                };
                if job == InitJob::Collect {
                    self.children.go_on();
                }
                let Some(reply) = reply else { return Ok(()) };
                send(channel, &reply)?;
            }
        }
    }

    /// Listens for connections to be relayed.
    fn listen(&self) -> InitReply {
        if self.starter.confines() {
            return InitReply::Refused("without namespaces, commands can make no connections".into());
        }
        let mut relay = self.relay.borrow_mut();
        if relay.is_none() {
            match Relay::listen() {
                Ok(made) => *relay = Some(made),
                Err(error) => return InitReply::Refused(format!("cannot listen: {error}")),
            }
        }
        match relay.as_ref().map(Relay::port) {
            Some(Ok(port)) => InitReply::Listening(port),
            _ => InitReply::Refused("cannot listen".into()),
        }
    }

    /// Handles a message about a relayed connection.
    fn take_relayed(&self, relayed: Relayed, channel: &mut Channel) -> io::Result<()> {
        let answers = self.relay.borrow_mut().as_mut().map(|relay| relay.take(relayed));
        send_all(answers.unwrap_or_default(), channel)
    }

    fn begin(&self, job: &InitJob, stdin: Vec<u8>, output: usize, is_patient: bool) -> Result<RunningJob, NotStarted> {
        // Reap the processes that have ended meanwhile, because unreaped processes count towards the limit of
        // processes.
        self.children.collect(0);
        let spared = self.children.living(&BTreeSet::new());
        match job {
            InitJob::Survey => {
                self.children.kill(&BTreeSet::new());
                self.children.until_gone(&BTreeSet::new());
            }
            InitJob::Look => self.children.stop(),
            InitJob::Collect => {}
            // If an earlier job `Look` failed, the processes that it stopped are still stopped. Continue them.
            _ => self.children.go_on(),
        }
        if let Some(memory) = self.memory.as_ref().filter(|_| spared.is_empty()) {
            memory.begin();
        }
        let begun = Instant::now();
        let mut starved =
            is_patient.then(|| Starved::of_sandbox(begun, spared.iter().map(|(pid, _)| *pid), self.starter.cpus()));
        let started = self.starter.start(job, stdin, self.growth.as_ref().map(Growth::since))?;
        if let Some(starved) = &mut starved {
            starved.add_own_wait();
        }
        let grows = !matches!(job, InitJob::Survey | InitJob::Look | InitJob::Collect);
        let mut running =
            RunningJob::new((started.pid, begun), started.stdin, started.outputs, output, spared, (grows, starved));
        running.forked = (!matches!(job, InitJob::Exec { .. })).then_some(started.pid);
        Ok(running)
    }

    /// Waits for the end of a job. Returns `None` if the harness is gone.
    fn attend(
        &self,
        mut running: RunningJob,
        channel: &mut Channel,
        times: JobTimeLimits,
    ) -> io::Result<Option<InitReply>> {
        let mut deadline = running.begun.checked_add(times.wall);
        let mut forced = None;
        let (mut killed, mut starved, mut is_last_look) = (false, false, false);
        let mut look = self.growth.as_ref().filter(|_| running.grows).map(|_| Growth::first_look(running.begun));
        let ended = loop {
            let weigh = self.memory.as_ref().map(MemoryWatch::next_look);
            let count = running.starved.as_ref().filter(|_| forced.is_none()).map(Starved::next_look);
            let next = [deadline, look, weigh, count].into_iter().flatten().min();
            let ready = running.wait(channel, &self.children, self.relay.borrow().as_ref(), next)?;
            for place in &ready.relay {
                let messages = self.relay.borrow_mut().as_mut().map(|relay| relay.pump(*place));
                send_all(messages.unwrap_or_default(), channel)?;
            }
            if ready.socket {
                match receive(&mut *channel, LONGEST_REQUEST)? {
                    None => return Ok(None),
                    Some(InitRequest::Stop) => {
                        forced = Some(Exit::DiskFull);
                        self.children.kill(&running.spared);
                    }
                    Some(InitRequest::Expire) => {
                        // From here on, proceed as if the time limit had passed.
                        if forced.is_none() {
                            running.starved = None;
                            deadline = Some(Instant::now());
                        }
                    }
                    Some(InitRequest::Relayed(relayed)) => self.take_relayed(relayed, channel)?,
                    Some(_) => return Err(io::ErrorKind::InvalidData.into()),
                }
            }
            running.pump(&ready);
            if ready.children
                && let Some(ended) = self.children.collect(running.pid)
            {
                break ended;
            }
            if let Some(memory) = &self.memory {
                memory.look(&self.children, running.forked);
            }
            if let Some(growth) = &self.growth
                && look.is_some_and(|look| Instant::now() >= look)
                && !killed
            {
                let looking = Instant::now();
                if growth.is_full(running.forked) {
                    forced = Some(Exit::DiskFull);
                    killed = true;
                    self.children.kill(&running.spared);
                    deadline = None;
                } else if growth.is_out_of_room(running.forked) {
                    (killed, starved) = (true, true);
                    self.children.kill(&running.spared);
                    deadline = None;
                }
                look = Some(Growth::next_look(looking)).filter(|_| !killed);
            }
            if forced.is_none()
                && let Some(starved) = &mut running.starved
                && [count, deadline].into_iter().flatten().any(|time| Instant::now() >= time)
            {
                // Processes that earlier commands left running belong to the sandbox, so they do not count as outside
                // processes.
                let alive = self.children.living(&BTreeSet::new()).into_iter().map(|(pid, _)| pid);
                let mut later = starved.later(alive, times.patience);
                // Check once more before stopping the command: if it is waiting for a processor, the kernel has not
                // counted this wait yet.
                let elapsed = running.begun.elapsed();
                let is_over = elapsed >= times.wall.saturating_add(later);
                if is_over && starved.is_ready() && (!is_last_look || starved.is_waiting()) {
                    later = (elapsed.saturating_sub(times.wall) + BETWEEN_LAST_LOOKS).min(times.patience);
                }
                is_last_look = is_over;
                if !later.is_zero() {
                    // Send the new deadline, because the harness stops waiting soon after the deadline that it knows.
                    send(channel, &InitReply::Later(later))?;
                }
                deadline = deadline.and_then(|_| running.begun.checked_add(times.wall)?.checked_add(later));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                if forced.is_none() {
                    forced = Some(Exit::TimedOut);
                    self.children.terminate(&running.spared);
                    deadline = Instant::now().checked_add(times.grace);
                } else if !killed {
                    killed = true;
                    self.children.kill(&running.spared);
                    deadline = None;
                }
            }
        };
        let grows = self.growth.as_ref().filter(|_| running.grows && forced != Some(Exit::DiskFull));
        if starved || grows.is_some_and(|growth| growth.is_out_of_room(None)) {
            return Ok(Some(InitReply::Failed(OUT_OF_ROOM.to_owned())));
        }
        if forced.is_some() {
            self.children.kill(&running.spared);
            self.children.until_gone(&running.spared);
        } else if let Some(growth) = self.growth.as_ref().filter(|_| running.grows)
            && growth.is_full_after(running.begun.elapsed())
        {
            forced = Some(Exit::DiskFull);
        }
        Ok(Some(InitReply::Done(running.finish(&ended, forced))))
    }
}

/// Sends one message, waiting until it is written.
pub(super) fn send(channel: &mut Channel, message: &impl Serialize) -> io::Result<()> {
    let mut frame = Vec::new();
    put(&mut frame, message)?;
    channel.write_all(&frame)
}

/// Sends messages about relayed connections to the harness.
fn send_all(relayed: Vec<Relayed>, channel: &mut Channel) -> io::Result<()> {
    relayed.into_iter().try_for_each(|relayed| send(channel, &InitReply::Relayed(relayed)))
}
