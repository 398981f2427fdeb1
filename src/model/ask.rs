//! The one way to ask a model: first whether the call may be made, then the call, then what it cost and what came back.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::{Model, Piece, QueryFailed, Reply, Request};

/// What calls of a model are charged to and recorded in.
pub(crate) trait Ledger {
    /// Why a call is not made, or cannot be kept.
    type Refused;
    /// What is kept of a call.
    type Kept;

    /// Decides whether the call may be made, and numbers it. Nothing that is refused here is asked.
    fn begin(&mut self, request: &mut Request) -> Result<(), Self::Refused>;

    /// Charges and records a call that was made, also one without a reply: it may have cost all the same.
    fn keep(&mut self, outcome: &Result<Reply, QueryFailed>, waited: Duration) -> Result<Self::Kept, Self::Refused>;
}

/// A call that was made, charged and recorded.
#[derive(Debug)]
pub(crate) struct Answered<K> {
    /// The reply, or why there is none.
    pub(crate) outcome: Result<Reply, QueryFailed>,
    /// What the ledger keeps of it.
    pub(crate) kept: K,
}

/// Asks for a whole reply.
pub(crate) async fn ask<L: Ledger>(
    model: &dyn Model,
    request: &mut Request,
    ledger: &mut L,
) -> Result<Answered<L::Kept>, L::Refused> {
    ask_until(model, request, None, std::future::pending(), ledger).await
}

/// Asks for a reply, in `pieces` where they are wanted, until the call is given up.
pub(crate) async fn ask_until<L: Ledger>(
    model: &dyn Model,
    request: &mut Request,
    pieces: Option<&UnboundedSender<Piece>>,
    given_up: impl Future<Output = QueryFailed>,
    ledger: &mut L,
) -> Result<Answered<L::Kept>, L::Refused> {
    ledger.begin(request)?;
    let request = &*request;
    let begun = Instant::now();
    let asking = async {
        match pieces {
            Some(pieces) => model.stream(request, pieces).await,
            None => model.query(request).await,
        }
    };
    let outcome = tokio::select! {
        biased;
        outcome = asking => outcome,
        failed = given_up => Err(failed),
    };
    let kept = ledger.keep(&outcome, begun.elapsed())?;
    Ok(Answered { outcome, kept })
}
