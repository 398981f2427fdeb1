//! Connections from inside a sandbox to the harness: the only way out of the sandbox's own network.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use autoexperiment_init::wire::{RELAY_PART, RELAY_WINDOW, Relayed, Request, Unacknowledged};

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
    connections: BTreeMap<u64, Ends>,
    outgoing: mpsc::Sender<Relayed>,
    unsent: mpsc::Receiver<Relayed>,
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
        let (outgoing, unsent) = mpsc::channel(WAITING);
        let stop = CancellationToken::new();
        let relay = Self { accepted, connections: BTreeMap::new(), outgoing, unsent, stop: stop.clone() };
        (relay, Listener { address, connections, stop, shared: false })
    }

    /// What is to be sent to the init next.
    pub(super) async fn next(&mut self) -> Option<Request> {
        self.unsent.recv().await.map(Request::Relayed)
    }

    /// Takes what the init says. Returns what is to be sent to it at once.
    pub(super) fn take(&mut self, message: Relayed) -> Option<Request> {
        match message {
            Relayed::Opened(id) => {
                let (ours, theirs) = duplex(BUFFER);
                // Whoever does not listen any more, or not fast enough, is not to be reached.
                if self.accepted.try_send(Box::new(theirs)).is_err() {
                    return Some(Request::Relayed(Relayed::Closed(id)));
                }
                let (inward, bytes) = mpsc::unbounded_channel();
                let window = Arc::new(Semaphore::new(RELAY_WINDOW));
                tokio::spawn(carry(id, ours, bytes, window.clone(), self.outgoing.clone()));
                self.connections.insert(id, Ends { inward, window });
            }
            Relayed::Bytes(id, bytes) => {
                if let Some(ends) = self.connections.get(&id) {
                    let _ = ends.inward.send(bytes);
                }
            }
            Relayed::Acknowledged(id, count) => {
                if let Some(ends) = self.connections.get(&id) {
                    // An init can give back no more than it was sent.
                    let most = RELAY_WINDOW.saturating_sub(ends.window.available_permits());
                    ends.window.add_permits(usize::try_from(count).unwrap_or(most).min(most));
                }
            }
            Relayed::Closed(id) => drop(self.connections.remove(&id)),
        }
        None
    }
}

/// Carries a connection's bytes in both directions until both have ended.
async fn carry(
    id: u64,
    stream: DuplexStream,
    mut bytes: mpsc::UnboundedReceiver<Vec<u8>>,
    window: Arc<Semaphore>,
    outgoing: mpsc::Sender<Relayed>,
) {
    let (mut from, mut to) = split(stream);
    let inward = async {
        let mut unacknowledged = Unacknowledged::default();
        while let Some(bytes) = bytes.recv().await {
            // What nobody reads any more is taken all the same.
            let _ = to.write_all(&bytes).await;
            if let Some(taken) = unacknowledged.add(id, bytes.len())
                && outgoing.send(taken).await.is_err()
            {
                break;
            }
        }
        // The process inside is gone: nothing that it is sent will be taken.
        window.close();
        let _ = to.shutdown().await;
    };
    let outward = async {
        let mut buffer = vec![0; RELAY_PART];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let Ok(room) = window.acquire_many(count as u32).await else { break };
            room.forget();
            if outgoing.send(Relayed::Bytes(id, buffer[..count].to_vec())).await.is_err() {
                break;
            }
        }
        let _ = outgoing.send(Relayed::Closed(id)).await;
    };
    tokio::join!(inward, outward);
}
