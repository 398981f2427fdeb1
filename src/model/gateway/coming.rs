//! A reply that is being made, and how the gateway sends it: whole or streamed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::answers::closed;
use super::protocol::WireProtocol;
use super::shared::GatewayState;
use super::stream::Stream;
use super::{AnsweredCall, Finish, Refusal, RefusalKind};
use crate::model::{IncomingPieces as PiecesToCome, Reply, ReplyPiece};

/// Time without a new piece of the reply after which a streaming client is sent a keep-alive event.
const SILENCE: Duration = Duration::from_secs(10);

/// A reply that is being made.
pub(super) struct ReplyInProgress {
    pub(super) number: u64,
    pub(super) shared: Arc<GatewayState>,
    pub(super) pieces: PiecesToCome,
    pub(super) answered: oneshot::Receiver<Result<AnsweredCall, Refusal>>,
}

/// The next event of a reply in progress.
pub(super) enum ReplyEvent {
    /// The number of the current try, and a piece of the reply that it sent. A failed call may be tried again.
    Piece(u32, ReplyPiece),
    Silence,
    Answer(Result<Box<AnsweredCall>, Refusal>),
}

impl ReplyInProgress {
    pub(super) async fn answer(&mut self) -> Result<AnsweredCall, Refusal> {
        let answer = (&mut self.answered).await;
        self.reply_for_agent(answer)
    }

    /// Converts the harness's answer to the reply that the agent gets. If the budget is exhausted, the reply says so.
    /// An error would make the agent assume a wrong key or an outage, and retry or exit with an error.
    fn reply_for_agent(
        &self,
        answer: Result<Result<AnsweredCall, Refusal>, oneshot::error::RecvError>,
    ) -> Result<AnsweredCall, Refusal> {
        match answer.unwrap_or_else(|_| Err(closed())) {
            Ok(given) => {
                self.shared.thoughts().keep(self.number, &given.reply.thoughts);
                Ok(given)
            }
            Err(Refusal { why: RefusalKind::Budget, message }) => {
                Ok(AnsweredCall { reply: Reply { text: message, ..Reply::default() }, most: None, refusal: None })
            }
            Err(Refusal { why: RefusalKind::Filtered, message }) => {
                Ok(AnsweredCall { reply: Reply::default(), most: None, refusal: Some(message) })
            }
            Err(refusal) => Err(refusal),
        }
    }

    pub(super) async fn next(&mut self) -> ReplyEvent {
        tokio::select! {
            // With `biased`, the branches are tried in order, so all pieces are delivered before the final answer.
            biased;
            Some((number, piece)) = self.pieces.next() => ReplyEvent::Piece(number, piece),
            answer = &mut self.answered => ReplyEvent::Answer(self.reply_for_agent(answer).map(Box::new)),
            () = tokio::time::sleep(SILENCE) => ReplyEvent::Silence,
        }
    }
}

/// Writes a stream until it ends or the agent disconnects. If the agent disconnects, the receiver of the answer is
/// dropped, so that the harness notices that the agent is gone.
pub(super) async fn write(
    protocol: WireProtocol,
    begin: impl Fn() -> Stream,
    mut reply: ReplyInProgress,
    mut next: ReplyEvent,
    to: mpsc::Sender<Result<Bytes, Infallible>>,
) {
    let _watch = reply.shared.broken.watch();
    let mut stream = begin();
    let mut current = 0;
    loop {
        let (events, goes_on) = match next {
            ReplyEvent::Piece(number, piece) => {
                if number != current {
                    // The call was retried, so the reply starts over; nothing of the earlier try was sent to the agent.
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
            ReplyEvent::Silence => (protocol.patience().to_owned(), true),
            ReplyEvent::Answer(Ok(mut given)) => {
                let finish = Finish::apply(&mut given, stream.stops());
                (stream.end(&given.reply, &finish), false)
            }
            ReplyEvent::Answer(Err(refusal)) => (protocol.error_events(&refusal), false),
        };
        if !events.is_empty() && to.send(Ok(events.into())).await.is_err() || !goes_on {
            return;
        }
        next = reply.next().await;
    }
}
