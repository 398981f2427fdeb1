//! A reply on its way to whoever wants to see it come: its pieces, and whether any of them was shown.
//!
//! A stream may break off. As long as none of its pieces was passed on, the call is made again, and what came before is
//! forgotten; afterwards another reply could not be told from the first one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A part of a reply, as it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Of its text.
    Text(String),
    /// Of its reasoning, where the provider shows that.
    Reasoning(String),
}

#[derive(Debug, Default)]
struct State {
    /// Number of the try whose pieces count.
    number: u32,
    is_passed_on: bool,
}

/// Where the pieces of a reply go.
#[derive(Debug, Clone)]
pub struct Pieces {
    to: UnboundedSender<(u32, Piece)>,
    state: Arc<Mutex<State>>,
}

/// Where the pieces of a reply come from.
#[derive(Debug)]
pub struct Coming {
    from: UnboundedReceiver<(u32, Piece)>,
    state: Arc<Mutex<State>>,
}

/// Makes the two ends of a reply's way.
#[must_use]
pub fn pieces() -> (Pieces, Coming) {
    let (to, from) = unbounded_channel();
    let state = Arc::new(Mutex::default());
    (Pieces { to, state: Arc::clone(&state) }, Coming { from, state })
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pieces {
    /// Sends a piece. Where nobody listens any more it is lost: the reply is paid for all the same.
    pub fn send(&self, piece: Piece) {
        let number = lock(&self.state).number;
        let _ = self.to.send((number, piece));
    }

    /// Whether a piece was passed on.
    #[must_use]
    pub fn are_passed_on(&self) -> bool {
        lock(&self.state).is_passed_on
    }

    /// Takes all pieces back, for another try; `false` where one was passed on.
    #[must_use]
    pub fn take_back(&self) -> bool {
        let mut state = lock(&self.state);
        state.number += u32::from(!state.is_passed_on);
        !state.is_passed_on
    }
}

impl Coming {
    /// The next piece, with the number of its try; `None` when no more can come.
    pub async fn next(&mut self) -> Option<(u32, Piece)> {
        self.from.recv().await
    }

    /// A piece that has come, if one has.
    pub fn try_next(&mut self) -> Option<(u32, Piece)> {
        self.from.try_recv().ok()
    }

    /// Whether something of this try may be passed on: not if it was taken back. It cannot be taken back afterwards.
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
        to.send(Piece::Text("a".into()));
        assert!(to.take_back());
        to.send(Piece::Text("b".into()));
        let (first, _) = from.next().await.unwrap();
        assert!(!from.pass_on(first), "it was taken back");
        let (second, piece) = from.next().await.unwrap();
        assert_eq!(piece, Piece::Text("b".into()));
        assert!(from.pass_on(second) && to.are_passed_on());
        assert!(!to.take_back());
    }
}
