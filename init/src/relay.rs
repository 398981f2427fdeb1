//! The init's end of connections that processes inside make to the harness: a listener on the sandbox's own loopback,
//! whose connections are relayed over the init's channel while a job runs. None of its calls waits.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags};

use super::wire::{RELAY_PART, RELAY_WINDOW, Relayed, Unacknowledged};

/// Preferred port. It is the same in every sandbox, so that agents always see the same port.
const PORT: u16 = 11_411;
/// Maximum number of connections at once; more wait in the listener's queue.
const MOST: usize = 64;

/// The listener and its connections.
pub(super) struct Relay {
    listener: TcpListener,
    connections: BTreeMap<u64, RelayedConnection>,
    next: u64,
}

struct RelayedConnection {
    stream: TcpStream,
    /// Bytes from the harness that the process has not read yet.
    inward: Vec<u8>,
    /// Bytes that the process has read and that have not been acknowledged to the harness yet.
    unacknowledged: Unacknowledged,
    /// Bytes that were sent to the harness and not acknowledged yet.
    outward: usize,
    /// Whether the process has stopped sending.
    ended: bool,
    /// Whether the harness has stopped sending.
    closed: bool,
}

/// The owner of a polled descriptor.
#[derive(Debug, Clone, Copy)]
pub(super) enum DescriptorOwner {
    Listener,
    Connection(u64),
}

impl Relay {
    /// Listens on 127.0.0.1, on [`PORT`] if it is free, otherwise on any port.
    pub(super) fn listen() -> io::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: BTreeMap::new(), next: 0 })
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        self.listener.local_addr().map(|address| address.port())
    }

    /// Adds the descriptors to wait for. A descriptor without an expected event must not be in the list: poll would
    /// report the end of its connection all the same, and the caller would poll again and again.
    pub(super) fn wait_for<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) -> Vec<DescriptorOwner> {
        let mut places = Vec::new();
        if self.connections.len() < MOST {
            fds.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
            places.push(DescriptorOwner::Listener);
        }
        for (&id, connection) in &self.connections {
            let mut flags = PollFlags::empty();
            if !connection.ended && connection.outward < RELAY_WINDOW {
                flags |= PollFlags::POLLIN;
            }
            if !connection.inward.is_empty() {
                flags |= PollFlags::POLLOUT;
            }
            if !flags.is_empty() {
                fds.push(PollFd::new(connection.stream.as_fd(), flags));
                places.push(DescriptorOwner::Connection(id));
            }
        }
        places
    }

    /// Moves the bytes that are ready on this connection and returns the messages for the harness.
    pub(super) fn pump(&mut self, place: DescriptorOwner) -> Vec<Relayed> {
        let mut out = Vec::new();
        match place {
            DescriptorOwner::Listener => {
                if let Ok((stream, _)) = self.listener.accept()
                    && stream.set_nonblocking(true).is_ok()
                {
                    // Send small messages at once.
                    let _ = stream.set_nodelay(true);
                    let (inward, unacknowledged) = (Vec::new(), Unacknowledged::default());
                    let connection =
                        RelayedConnection { stream, inward, unacknowledged, outward: 0, ended: false, closed: false };
                    self.connections.insert(self.next, connection);
                    out.push(Relayed::Opened(self.next));
                    self.next += 1;
                }
            }
            DescriptorOwner::Connection(id) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.read(id, &mut out);
                    connection.write(id, &mut out);
                }
                self.forget_if_over(id);
            }
        }
        out
    }

    /// Handles a message from the harness and returns the replies.
    pub(super) fn take(&mut self, message: Relayed) -> Vec<Relayed> {
        let mut out = Vec::new();
        let (Relayed::Opened(id) | Relayed::Bytes(id, _) | Relayed::Acknowledged(id, _) | Relayed::Closed(id)) =
            message;
        if let Some(connection) = self.connections.get_mut(&id) {
            match message {
                Relayed::Bytes(_, bytes) => {
                    connection.inward.extend(bytes);
                    connection.write(id, &mut out);
                }
                Relayed::Acknowledged(_, count) => {
                    connection.outward = connection.outward.saturating_sub(count as usize);
                }
                Relayed::Closed(_) => connection.closed = true,
                Relayed::Opened(_) => {}
            }
        }
        self.forget_if_over(id);
        out
    }

    /// Closes a connection once the harness has closed its side and all bytes have been passed on.
    fn forget_if_over(&mut self, id: u64) {
        if self.connections.get(&id).is_some_and(|connection| connection.closed && connection.inward.is_empty()) {
            self.connections.remove(&id);
        }
    }
}

impl RelayedConnection {
    fn read(&mut self, id: u64, out: &mut Vec<Relayed>) {
        let room = RELAY_WINDOW.saturating_sub(self.outward).min(RELAY_PART);
        if self.ended || room == 0 {
            return;
        }
        let mut buffer = vec![0; room];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.end(id, out),
            Ok(count) => {
                self.outward += count;
                buffer.truncate(count);
                out.push(Relayed::Bytes(id, buffer));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.end(id, out),
        }
    }

    fn write(&mut self, id: u64, out: &mut Vec<Relayed>) {
        if self.inward.is_empty() {
            return;
        }
        match self.stream.write(&self.inward) {
            Ok(count) => {
                self.inward.drain(..count);
                out.extend(self.unacknowledged.add(id, count));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => {
                // The process inside no longer reads. Acknowledge the bytes all the same, so that the harness can
                // finish and close its side.
                out.extend(self.unacknowledged.add(id, self.inward.len()));
                self.inward.clear();
                self.end(id, out);
            }
        }
    }

    fn end(&mut self, id: u64, out: &mut Vec<Relayed>) {
        if !std::mem::replace(&mut self.ended, true) {
            out.push(Relayed::Closed(id));
        }
    }
}
