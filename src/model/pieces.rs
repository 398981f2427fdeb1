//! A streamed reply: its pieces, and whether any of them was passed on to the reader.
//!
//! A stream may break off. As long as no piece was passed on, the call is retried and the earlier pieces are dropped;
//! afterwards, a retry would mix two different replies.

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
    /// Number of the try whose pieces count; others are dropped.
    number: u32,
    is_passed_on: bool,
}

/// The sending end of a streamed reply.
#[derive(Debug, Clone)]
pub struct Pieces {
    to: UnboundedSender<(u32, ReplyPiece)>,
    state: Arc<Mutex<StreamState>>,
}

/// The receiving end of a streamed reply.
#[derive(Debug)]
pub struct IncomingPieces {
    from: UnboundedReceiver<(u32, ReplyPiece)>,
    state: Arc<Mutex<StreamState>>,
}

/// Creates the two ends of a streamed reply.
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
    /// Sends a piece. If the receiver is gone, the piece is lost; the call continues, because it is paid for.
    pub fn send(&self, piece: ReplyPiece) {
        let number = lock(&self.state).number;
        let _ = self.to.send((number, piece));
    }

    /// Whether a piece was passed on.
    #[must_use]
    pub fn are_passed_on(&self) -> bool {
        lock(&self.state).is_passed_on
    }

    /// Takes all pieces back before another try; `false` if a piece was passed on.
    #[must_use]
    pub fn take_back(&self) -> bool {
        let mut state = lock(&self.state);
        state.number += u32::from(!state.is_passed_on);
        !state.is_passed_on
    }
}

impl IncomingPieces {
    /// Waits for the next piece, with the number of its try; `None` at the end.
    pub async fn next(&mut self) -> Option<(u32, ReplyPiece)> {
        self.from.recv().await
    }

    /// Returns the next piece if it has arrived.
    pub fn try_next(&mut self) -> Option<(u32, ReplyPiece)> {
        self.from.try_recv().ok()
    }

    /// Marks a piece of this try as passed on, so that it can no longer be taken back; `false` if it was taken back
    /// before.
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
    async fn pieces_are_taken_back_until_one_is_passed_on() {
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
