//! A running job: its pipes and its result.

use std::collections::BTreeSet;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::channel::Channel;
use super::children::Children;
use super::pipes::{drain, read_some};
use super::relay::{DescriptorOwner, Relay};
use crate::capture::Capture;
use crate::processes::Identity;
use crate::reap::EndedChild;
use crate::starved::Starved;
use crate::{Exec, Exit};

/// A running job and its pipes.
pub(super) struct RunningJob {
    pub(super) pid: i32,
    pub(super) begun: Instant,
    stdin: Option<(PipeWriter, Vec<u8>, usize)>,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
    out: Capture,
    err: Capture,
    /// Processes that earlier commands left running.
    pub(super) spared: BTreeSet<Identity>,
    /// Measures the time without a processor; only if the time limit may be extended on a busy machine.
    pub(super) starved: Option<Starved>,
    /// Whether the job fails if the disk is full. Jobs that copy the workspace out do not fail then.
    pub(super) grows: bool,
    /// The process's pid, if it is a fork of the init instead of a command. Except in the sandbox `none`, such a fork
    /// is not dumpable, so no process, not even the init, can list its open files.
    pub(super) forked: Option<i32>,
}

/// The descriptors that are ready according to poll.
pub(super) struct ReadyDescriptors {
    pub(super) socket: bool,
    pub(super) children: bool,
    stdout: bool,
    stderr: bool,
    stdin: bool,
    pub(super) relay: Vec<DescriptorOwner>,
}

impl RunningJob {
    /// Creates the job of process `pid`. Keeps `output` bytes of each output pipe.
    pub(super) fn new(
        (pid, begun): (i32, Instant),
        stdin: Option<(PipeWriter, Vec<u8>)>,
        [stdout, stderr]: [PipeReader; 2],
        output: usize,
        spared: BTreeSet<Identity>,
        (grows, starved): (bool, Option<Starved>),
    ) -> Self {
        Self {
            pid,
            begun,
            stdin: stdin.map(|(pipe, bytes)| (pipe, bytes, 0)),
            stdout: Some(stdout),
            stderr: Some(stderr),
            out: Capture::new(output),
            err: Capture::new(output),
            spared,
            starved,
            grows,
            forked: None,
        }
    }

    /// Waits until a descriptor is ready or the deadline has come.
    pub(super) fn wait(
        &self,
        channel: &Channel,
        children: &Children,
        relay: Option<&Relay>,
        deadline: Option<Instant>,
    ) -> io::Result<ReadyDescriptors> {
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
        Ok(ReadyDescriptors {
            socket: is_ready(0),
            children: is_ready(1),
            stdout,
            stderr,
            stdin,
            relay: relay.collect(),
        })
    }

    /// Reads and writes as much as possible without waiting.
    pub(super) fn pump(&mut self, ready: &ReadyDescriptors) {
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
                // The command has closed its input, so drop the remaining bytes.
                Err(_) => *written = bytes.len(),
            }
            if *written == bytes.len() {
                self.stdin = None;
            }
        }
    }

    /// Returns the job's result, with the bytes that the pipes contain at this moment, without waiting for background
    /// processes that keep them open.
    pub(super) fn finish(mut self, ended: &EndedChild, forced: Option<Exit>) -> Exec {
        drain(self.stdout.as_mut(), &mut self.out);
        drain(self.stderr.as_mut(), &mut self.err);
        let ((stdout, cut_out), (stderr, cut_err)) = (self.out.finish(), self.err.finish());
        Exec {
            exit: forced.unwrap_or(ended.exit),
            stdout,
            stderr,
            cut: cut_out + cut_err,
            wall: self.begun.elapsed(),
            starved: self.starved.map_or(Duration::ZERO, |starved| starved.total()),
            cpu: ended.cpu,
            peak_memory: ended.peak_memory,
        }
    }
}

/// Polls until a descriptor is ready or the deadline has come.
pub(super) fn wait(fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
    let timeout = deadline.map_or(PollTimeout::NONE, |deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        // Round up to whole milliseconds, so that the wait does not end just before the deadline. A wait that is too
        // long for `poll` ends early, and the caller waits again.
        PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
    });
    match poll(fds, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
