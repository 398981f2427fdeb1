//! The init's end of connections that processes inside make to the harness: a listener on the sandbox's own loopback,
//! whose connections are relayed over the init's channel while a job runs. None of its calls waits.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags};

use super::wire::{LINE_PART, LINE_WINDOW, Line, Untold};

/// The port, where it is free: the same in every sandbox, so that what agents see of it is always the same.
const PORT: u16 = 11_411;
/// Connections at once; further ones wait in the listener's queue.
const MOST: usize = 64;

/// The listener and its connections.
pub(super) struct Relay {
    listener: TcpListener,
    lines: BTreeMap<u64, Connection>,
    next: u64,
}

struct Connection {
    stream: TcpStream,
    /// What the harness sent and the process has not taken yet.
    inward: Vec<u8>,
    /// What of that the harness is still to be told of as taken.
    untold: Untold,
    /// Bytes that were sent to the harness and that it has not taken yet.
    outward: usize,
    /// Whether the process sends no more.
    ended: bool,
    /// Whether the harness sends no more.
    hung_up: bool,
}

/// What a place among the polled descriptors stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Listener,
    Line(u64),
}

impl Relay {
    /// Listens on 127.0.0.1.
    pub(super) fn listen() -> io::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, lines: BTreeMap::new(), next: 0 })
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        self.listener.local_addr().map(|address| address.port())
    }

    /// Adds what there is to wait for. A descriptor that nothing is expected of must not be there at all: the end of a
    /// connection is reported whether one waits for it or not.
    pub(super) fn wait_for<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) -> Vec<Place> {
        let mut places = Vec::new();
        if self.lines.len() < MOST {
            fds.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
            places.push(Place::Listener);
        }
        for (&line, connection) in &self.lines {
            let mut flags = PollFlags::empty();
            if !connection.ended && connection.outward < LINE_WINDOW {
                flags |= PollFlags::POLLIN;
            }
            if !connection.inward.is_empty() {
                flags |= PollFlags::POLLOUT;
            }
            if !flags.is_empty() {
                fds.push(PollFd::new(connection.stream.as_fd(), flags));
                places.push(Place::Line(line));
            }
        }
        places
    }

    /// Moves what can be moved at this place, and says what the harness is to be told.
    pub(super) fn pump(&mut self, place: Place) -> Vec<Line> {
        let mut told = Vec::new();
        match place {
            Place::Listener => {
                if let Ok((stream, _)) = self.listener.accept()
                    && stream.set_nonblocking(true).is_ok()
                {
                    // Small messages must not wait for more.
                    let _ = stream.set_nodelay(true);
                    let (inward, untold) = (Vec::new(), Untold::default());
                    let connection = Connection { stream, inward, untold, outward: 0, ended: false, hung_up: false };
                    self.lines.insert(self.next, connection);
                    told.push(Line::Opened(self.next));
                    self.next += 1;
                }
            }
            Place::Line(line) => {
                if let Some(connection) = self.lines.get_mut(&line) {
                    connection.read(line, &mut told);
                    connection.write(line, &mut told);
                }
                self.forget_if_over(line);
            }
        }
        told
    }

    /// Takes what the harness says, and says what it is to be told.
    pub(super) fn heard(&mut self, heard: Line) -> Vec<Line> {
        let mut told = Vec::new();
        let (Line::Opened(line) | Line::Bytes(line, _) | Line::Taken(line, _) | Line::HungUp(line)) = heard;
        if let Some(connection) = self.lines.get_mut(&line) {
            match heard {
                Line::Bytes(_, bytes) => {
                    connection.inward.extend(bytes);
                    connection.write(line, &mut told);
                }
                Line::Taken(_, count) => connection.outward = connection.outward.saturating_sub(count as usize),
                Line::HungUp(_) => connection.hung_up = true,
                Line::Opened(_) => {}
            }
        }
        self.forget_if_over(line);
        told
    }

    /// Closes a connection once the harness has hung up and everything has been passed on.
    fn forget_if_over(&mut self, line: u64) {
        if self.lines.get(&line).is_some_and(|connection| connection.hung_up && connection.inward.is_empty()) {
            self.lines.remove(&line);
        }
    }
}

impl Connection {
    fn read(&mut self, line: u64, told: &mut Vec<Line>) {
        let room = LINE_WINDOW.saturating_sub(self.outward).min(LINE_PART);
        if self.ended || room == 0 {
            return;
        }
        let mut buffer = vec![0; room];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.end(line, told),
            Ok(count) => {
                self.outward += count;
                buffer.truncate(count);
                told.push(Line::Bytes(line, buffer));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.end(line, told),
        }
    }

    fn write(&mut self, line: u64, told: &mut Vec<Line>) {
        if self.inward.is_empty() {
            return;
        }
        match self.stream.write(&self.inward) {
            Ok(count) => {
                self.inward.drain(..count);
                told.extend(self.untold.take(line, count));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => {
                // Nobody will read it. The harness goes on as if it had been read, and hangs up.
                told.extend(self.untold.take(line, self.inward.len()));
                self.inward.clear();
                self.end(line, told);
            }
        }
    }

    fn end(&mut self, line: u64, told: &mut Vec<Line>) {
        if !std::mem::replace(&mut self.ended, true) {
            told.push(Line::HungUp(line));
        }
    }
}
