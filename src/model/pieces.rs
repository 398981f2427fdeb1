//! A streamed reply: its pieces, and whether any piece was passed on to the reader.
//!
//! A stream may break off. If no piece was passed on yet, the call is retried and the earlier pieces are dropped. Once
//! a piece was passed on, the call is not retried, because the reader would get a mixture of two replies.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A part of a streamed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyPiece {
    /// Part of the text.
    Text(String),
    /// Part of the reasoning, if the provider shows it.
    Reasoning(String),
}

#[derive(Debug, Default)]
struct StreamState {
    /// Number of the current try; pieces of other tries are dropped.
    number: u32,
    is_passed_on: bool,
}

/// Sends the pieces of a streamed reply.
#[derive(Debug, Clone)]
pub struct Pieces {
    to: UnboundedSender<(u32, ReplyPiece)>,
    state: Arc<Mutex<StreamState>>,
}

/// Receives the pieces of a streamed reply.
#[derive(Debug)]
pub struct IncomingPieces {
    from: UnboundedReceiver<(u32, ReplyPiece)>,
    state: Arc<Mutex<StreamState>>,
}

/// Creates the sender and the receiver of a streamed reply.
#[must_use]
pub fn pieces() -> (Pieces, IncomingPieces) {
    let (to, from) = unbounded_channel();
    let state = Arc::new(Mutex::default());
    (Pieces { to, state: Arc::clone(&state) }, IncomingPieces { from, state })
}

fn lock(state: &Mutex<StreamState>) -> MutexGuard<'_, StreamState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pieces {
    /// Sends a piece. If the receiver is gone, the piece is dropped and the call continues, because it is already paid
    /// for.
    pub fn send(&self, piece: ReplyPiece) {
        let number = lock(&self.state).number;
        let _ = self.to.send((number, piece));
    }

    /// Whether any piece was passed on to the reader, so that the call cannot be retried.
    #[must_use]
    pub fn are_passed_on(&self) -> bool {
        lock(&self.state).is_passed_on
    }

    /// Discards all pieces before a retry; returns `false` if a piece was already passed on.
    #[must_use]
    pub fn take_back(&self) -> bool {
        let mut state = lock(&self.state);
        state.number += u32::from(!state.is_passed_on);
        !state.is_passed_on
    }
}

impl IncomingPieces {
    /// Waits for the next piece and returns it with the number of its try; `None` at the end.
    pub async fn next(&mut self) -> Option<(u32, ReplyPiece)> {
        self.from.recv().await
    }

    /// Returns the next piece if it has arrived.
    pub fn try_next(&mut self) -> Option<(u32, ReplyPiece)> {
        self.from.try_recv().ok()
    }

    /// Marks a piece of this try as passed on, after which the try cannot be discarded. Returns `false` if the try was
    /// already discarded.
    #[must_use]
    pub fn pass_on(&self, number: u32) -> bool {
        let mut state = lock(&self.state);
        state.is_passed_on |= state.number == number;
        state.number == number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_streamed_piece_of_a_reply_can_be_withdrawn_until_a_piece_has_reached_the_client() {
        let (to, mut from) = pieces();
        to.send(ReplyPiece::Text("a".into()));
        assert!(to.take_back());
        to.send(ReplyPiece::Text("b".into()));
        let (first, _) = from.next().await.unwrap();
        assert!(!from.pass_on(first), "it was taken back");
        let (second, piece) = from.next().await.unwrap();
        assert_eq!(piece, ReplyPiece::Text("b".into()));
        assert!(from.pass_on(second) && to.are_passed_on());
        assert!(!to.take_back());
    }
}
