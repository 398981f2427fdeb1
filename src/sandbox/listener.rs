//! Connections from inside a sandbox to the harness, the only way out of the sandbox's own network.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use autoexperiment_init::wire::{InitRequest, RELAY_PART, RELAY_WINDOW, Relayed, Unacknowledged};

/// Size in bytes of the buffer between a relayed connection and the task that answers it.
const BUFFER: usize = 64 << 10;
/// Maximum number of messages from relayed connections that wait to be sent to the init, and maximum number of new
/// connections that the harness has not accepted yet.
const WAITING: usize = 64;

/// A connection made by a process inside the sandbox.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// The address at which processes inside the sandbox can reach the harness while commands run.
pub struct Listener {
    /// The address as processes inside the sandbox see it.
    pub address: SocketAddr,
    /// Connections made by processes inside the sandbox.
    pub connections: mpsc::Receiver<Box<dyn Connection>>,
    /// Cancelling this token ends the running command in the same way as the command's time limit. This works only
    /// once.
    pub stop: CancellationToken,
    /// Time for which processes outside the sandbox have occupied the processors while the running command was ready to
    /// run, as last reported. Stays 0 unless the command's limits contain patience.
    pub starved: watch::Receiver<Duration>,
    /// Whether other processes on this machine can connect, too.
    pub shared: bool,
}

/// The harness's end of the relay of connections; the other end is in the sandbox's first process (init).
pub(super) struct HarnessRelay {
    accepted: mpsc::Sender<Box<dyn Connection>>,
    connections: BTreeMap<u64, ConnectionEnds>,
    outgoing: mpsc::Sender<Relayed>,
    unsent: mpsc::Receiver<Relayed>,
    pub(super) stop: CancellationToken,
    pub(super) starved: watch::Sender<Duration>,
}

/// The relay's ends of the channels of one connection.
struct ConnectionEnds {
    /// Bytes from the process inside the sandbox. The channel is unbounded, but the init sends at most [`RELAY_WINDOW`]
    /// bytes that have not been acknowledged.
    inward: mpsc::UnboundedSender<Vec<u8>>,
    /// Number of bytes that the harness may still send to the sandbox's first process (init) before this process
    /// acknowledges earlier bytes.
    window: Arc<Semaphore>,
}

impl HarnessRelay {
    /// Creates a relay, and the listener that receives the relay's connections.
    pub(super) fn new(address: SocketAddr) -> (Self, Listener) {
        let (accepted, connections) = mpsc::channel(WAITING);
        let (outgoing, unsent) = mpsc::channel(WAITING);
        let stop = CancellationToken::new();
        let (reported, starved) = watch::channel(Duration::ZERO);
        let relay =
            Self { accepted, connections: BTreeMap::new(), outgoing, unsent, stop: stop.clone(), starved: reported };
        (relay, Listener { address, connections, stop, starved, shared: false })
    }

    /// Returns the next message to send to the init.
    pub(super) async fn next(&mut self) -> Option<InitRequest> {
        self.unsent.recv().await.map(InitRequest::Relayed)
    }

    /// Handles a message from the init. Returns a reply if one must be sent at once.
    pub(super) fn take(&mut self, message: Relayed) -> Option<InitRequest> {
        match message {
            Relayed::Opened(id) => {
                let (ours, theirs) = duplex(BUFFER);
                // Refuse the connection if nothing listens any more, or if too many connections wait.
                if self.accepted.try_send(Box::new(theirs)).is_err() {
                    return Some(InitRequest::Relayed(Relayed::Closed(id)));
                }
                let (inward, bytes) = mpsc::unbounded_channel();
                let window = Arc::new(Semaphore::new(RELAY_WINDOW));
                tokio::spawn(carry(id, ours, bytes, window.clone(), self.outgoing.clone()));
                self.connections.insert(id, ConnectionEnds { inward, window });
            }
            Relayed::Bytes(id, bytes) => {
                if let Some(ends) = self.connections.get(&id) {
                    let _ = ends.inward.send(bytes);
                }
            }
            Relayed::Acknowledged(id, count) => {
                if let Some(ends) = self.connections.get(&id) {
                    // Do not trust an init that acknowledges more than it was sent.
                    let most = RELAY_WINDOW.saturating_sub(ends.window.available_permits());
                    ends.window.add_permits(usize::try_from(count).unwrap_or(most).min(most));
                }
            }
            Relayed::Closed(id) => drop(self.connections.remove(&id)),
        }
        None
    }
}

/// Carries a connection's bytes in both directions until both ends are closed.
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
            // Acknowledge bytes even if the reader is gone, so that the writer can finish.
            let _ = to.write_all(&bytes).await;
            if let Some(taken) = unacknowledged.add(id, bytes.len())
                && outgoing.send(taken).await.is_err()
            {
                break;
            }
        }
        // The process inside the sandbox has stopped sending or is gone. In both cases, stop sending bytes to it.
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
