//! Connections from inside a sandbox to the harness: the sandbox's network is its own, and this is the one door in it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::local::wire::{LINE_PART, LINE_WINDOW, Line, Request, Untold};

/// Bytes that a relayed connection holds between the channel and whoever answers it.
const BUFFER: usize = 64 << 10;
/// Messages of relayed connections that wait to be sent.
const WAITING: usize = 64;

/// A connection that a process inside has made.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Where processes inside can reach the harness, while commands run.
pub struct Listener {
    /// The address as they see it.
    pub address: SocketAddr,
    /// Their connections.
    pub connections: mpsc::Receiver<Box<dyn Connection>>,
    /// When cancelled, the command that runs is ended as at its time limit. Works once.
    pub stop: CancellationToken,
    /// Whether anybody else on this machine can connect, too.
    pub shared: bool,
}

/// The harness's end of an init's relay.
pub(super) struct Relay {
    accepted: mpsc::Sender<Box<dyn Connection>>,
    lines: BTreeMap<u64, Ends>,
    told: mpsc::Sender<Line>,
    unsent: mpsc::Receiver<Line>,
    pub(super) stop: CancellationToken,
}

/// What the relay needs of a connection to feed it.
struct Ends {
    /// Unbounded, and bounded by the window all the same.
    inward: mpsc::UnboundedSender<Vec<u8>>,
    window: Arc<Semaphore>,
}

impl Relay {
    /// A relay and the listener that it feeds.
    pub(super) fn new(address: SocketAddr) -> (Self, Listener) {
        let (accepted, connections) = mpsc::channel(WAITING);
        let (told, unsent) = mpsc::channel(WAITING);
        let stop = CancellationToken::new();
        let relay = Self { accepted, lines: BTreeMap::new(), told, unsent, stop: stop.clone() };
        (relay, Listener { address, connections, stop, shared: false })
    }

    /// What is to be sent to the init next.
    pub(super) async fn next(&mut self) -> Option<Request> {
        self.unsent.recv().await.map(Request::Line)
    }

    /// Takes what the init says. Returns what is to be sent to it at once.
    pub(super) fn heard(&mut self, line: Line) -> Option<Request> {
        match line {
            Line::Opened(line) => {
                let (ours, theirs) = duplex(BUFFER);
                // Whoever does not listen any more, or not fast enough, is not to be reached.
                if self.accepted.try_send(Box::new(theirs)).is_err() {
                    return Some(Request::Line(Line::HungUp(line)));
                }
                let (inward, bytes) = mpsc::unbounded_channel();
                let window = Arc::new(Semaphore::new(LINE_WINDOW));
                tokio::spawn(carry(line, ours, bytes, window.clone(), self.told.clone()));
                self.lines.insert(line, Ends { inward, window });
            }
            Line::Bytes(line, bytes) => {
                if let Some(ends) = self.lines.get(&line) {
                    let _ = ends.inward.send(bytes);
                }
            }
            Line::Taken(line, count) => {
                if let Some(ends) = self.lines.get(&line) {
                    // An init can give back no more than it was sent.
                    let most = LINE_WINDOW.saturating_sub(ends.window.available_permits());
                    ends.window.add_permits(usize::try_from(count).unwrap_or(most).min(most));
                }
            }
            Line::HungUp(line) => drop(self.lines.remove(&line)),
        }
        None
    }
}

/// Carries a connection's bytes in both directions until both have ended.
async fn carry(
    line: u64,
    stream: DuplexStream,
    mut bytes: mpsc::UnboundedReceiver<Vec<u8>>,
    window: Arc<Semaphore>,
    told: mpsc::Sender<Line>,
) {
    let (mut from, mut to) = split(stream);
    let inward = async {
        let mut untold = Untold::default();
        while let Some(bytes) = bytes.recv().await {
            // What nobody reads any more is taken all the same.
            let _ = to.write_all(&bytes).await;
            if let Some(taken) = untold.take(line, bytes.len())
                && told.send(taken).await.is_err()
            {
                break;
            }
        }
        // The process inside is gone: nothing that it is sent will be taken.
        window.close();
        let _ = to.shutdown().await;
    };
    let outward = async {
        let mut buffer = vec![0; LINE_PART];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let Ok(room) = window.acquire_many(count as u32).await else { break };
            room.forget();
            if told.send(Line::Bytes(line, buffer[..count].to_vec())).await.is_err() {
                break;
            }
        }
        let _ = told.send(Line::HungUp(line)).await;
    };
    tokio::join!(inward, outward);
}
