//! A reply of the gateway's that is under way: whole, or as it comes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::answers::closed;
use super::protocol::Protocol;
use super::shared::Shared;
use super::stream::Stream;
use super::{Finish, Given, Refusal, Why};
use crate::model::{Coming as PiecesToCome, Piece, Reply};

/// How long a streamed call may be silent before the client is told to go on waiting, again and again.
const SILENCE: Duration = Duration::from_secs(10);

/// A reply that is under way.
pub(super) struct Coming {
    pub(super) number: u64,
    pub(super) shared: Arc<Shared>,
    pub(super) pieces: PiecesToCome,
    pub(super) answered: oneshot::Receiver<Result<Given, Refusal>>,
}

/// What comes next of it.
pub(super) enum Next {
    /// A piece, with the number of the try that it is of.
    Piece(u32, Piece),
    Silence,
    Answer(Result<Given, Refusal>),
}

impl Coming {
    pub(super) async fn answer(&mut self) -> Result<Given, Refusal> {
        let answer = (&mut self.answered).await;
        self.told(answer)
    }

    /// The answer as the agent is told: the end of its budget is a reply that says so, for an agent that is refused takes
    /// the key for wrong or the provider for down, and tries again or leaves with an error.
    fn told(&self, answer: Result<Result<Given, Refusal>, oneshot::error::RecvError>) -> Result<Given, Refusal> {
        match answer.unwrap_or_else(|_| Err(closed())) {
            Ok(given) => {
                self.shared.thoughts().keep(self.number, &given.reply.thoughts);
                Ok(given)
            }
            Err(Refusal { why: Why::Budget, message }) => {
                Ok(Given { reply: Reply { text: message, ..Reply::default() }, most: None, refusal: None })
            }
            Err(Refusal { why: Why::Filtered, message }) => {
                Ok(Given { reply: Reply::default(), most: None, refusal: Some(message) })
            }
            Err(refusal) => Err(refusal),
        }
    }

    pub(super) async fn next(&mut self) -> Next {
        tokio::select! {
            // Pieces that were sent come before the answer.
            biased;
            Some((number, piece)) = self.pieces.next() => Next::Piece(number, piece),
            answer = &mut self.answered => Next::Answer(self.told(answer)),
            () = tokio::time::sleep(SILENCE) => Next::Silence,
        }
    }
}

/// Writes a stream to its end, or until the agent has gone away; dropping our end of the answer tells so.
pub(super) async fn write(
    protocol: Protocol,
    begin: impl Fn() -> Stream,
    mut reply: Coming,
    mut next: Next,
    to: mpsc::Sender<Result<Bytes, Infallible>>,
) {
    let _watch = reply.shared.broken.watch();
    let mut stream = begin();
    let mut current = 0;
    loop {
        let (events, goes_on) = match next {
            Next::Piece(number, piece) => {
                if number != current {
                    // The reply begins again, and nothing of it was passed on.
                    (stream, current) = (begin(), number);
                }
                let events = stream.piece(piece);
                if !events.is_empty() && !reply.pieces.pass_on(number) {
                    stream = begin();
                    (String::new(), true)
                } else {
                    (events, true)
                }
            }
            Next::Silence => (protocol.patience().to_owned(), true),
            Next::Answer(Ok(given)) => {
                let finish = Finish::of(&given, stream.stops());
                (stream.end(&given.reply, &finish), false)
            }
            Next::Answer(Err(refusal)) => (protocol.error_events(&refusal), false),
        };
        if !events.is_empty() && to.send(Ok(events.into())).await.is_err() || !goes_on {
            return;
        }
        next = reply.next().await;
    }
}
