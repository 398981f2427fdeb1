//! A reply of the gateway in progress, sent whole or streamed.

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

/// Time without a piece after which a streaming client gets a keep-alive event.
const SILENCE: Duration = Duration::from_secs(10);

/// A reply in progress.
pub(super) struct Coming {
    pub(super) number: u64,
    pub(super) shared: Arc<Shared>,
    pub(super) pieces: PiecesToCome,
    pub(super) answered: oneshot::Receiver<Result<Given, Refusal>>,
}

/// The next thing to happen to a reply.
pub(super) enum Next {
    /// A piece, with the number of its try.
    Piece(u32, Piece),
    Silence,
    Answer(Result<Given, Refusal>),
}

impl Coming {
    pub(super) async fn answer(&mut self) -> Result<Given, Refusal> {
        let answer = (&mut self.answered).await;
        self.told(answer)
    }

    /// Converts the answer to what the agent gets. An exhausted budget becomes a reply that says so: an agent that gets
    /// an error believes that the key is wrong or the provider is down, and retries or exits with an error.
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
            // Deliver all pieces before the answer.
            biased;
            Some((number, piece)) = self.pieces.next() => Next::Piece(number, piece),
            answer = &mut self.answered => Next::Answer(self.told(answer)),
            () = tokio::time::sleep(SILENCE) => Next::Silence,
        }
    }
}

/// Writes a stream until its end or until the agent disconnects. Then the receiver of the answer is dropped, which
/// tells the harness that the agent has gone.
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
                    // Another try: the reply starts over, as no piece was passed on.
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
