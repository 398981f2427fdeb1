//! The one way to ask a model: first whether the call may be made, then its line in the ledger, then the call, then what it
//! cost and what came back.

use std::io;
use std::time::{Duration, Instant};

use super::ledger::{Reservation, Tab};
use super::quote::Quote;
use super::{Model, Pieces, QueryFailed, Reply, Request};

/// Who asks: what calls of a model are charged to and recorded in.
pub(crate) trait Caller {
    /// Why a call is not made, or cannot be kept.
    type Refused;
    /// What is kept of a call.
    type Kept;

    /// Decides whether the call may be made, numbers it, and bounds its reply by the money that is left. Nothing that is
    /// refused here is asked. Gives what the call may cost.
    fn begin(&mut self, model: &dyn Model, request: &mut Request) -> Result<Quote, Self::Refused>;

    /// Charges and records a call that was made, also one without a reply: it may have cost all the same.
    fn keep(&mut self, outcome: &Result<Reply, QueryFailed>, waited: Duration) -> Result<Self::Kept, Self::Refused>;

    /// Where its calls are written in the run's ledger, if they are part of a run.
    fn tab(&self) -> Option<Tab>;

    /// What a ledger that cannot be written means.
    fn unwritten(&mut self, error: io::Error) -> Self::Refused;
}

/// A call that was made, charged and recorded.
#[derive(Debug)]
pub(crate) struct Answered<K> {
    /// The reply, or why there is none.
    pub(crate) outcome: Result<Reply, QueryFailed>,
    /// What the caller keeps of it.
    pub(crate) kept: K,
}

/// Asks for a whole reply.
pub(crate) async fn ask<C: Caller>(
    model: &dyn Model,
    request: &mut Request,
    caller: &mut C,
) -> Result<Answered<C::Kept>, C::Refused> {
    let begun = begin(model, request, caller)?;
    let done = run(model, request, None, std::future::pending()).await;
    finish(&begun, done, caller)
}

/// A call that may be made, and is reserved.
#[derive(Debug)]
pub(crate) struct Begun {
    tab: Option<Tab>,
    reserved: Option<Reservation>,
    /// The most that it can cost.
    pub(crate) most: f64,
}

/// Asks whether a call may be made, and reserves it.
pub(crate) fn begin<C: Caller>(model: &dyn Model, request: &mut Request, caller: &mut C) -> Result<Begun, C::Refused> {
    request.affordable = None;
    let quote = caller.begin(model, request)?;
    let tab = caller.tab();
    request.attempt = tab.as_ref().and_then(Tab::attempt);
    let most = quote.most(request.sampling.max_tokens, request.affordable);
    // Waits for the disk.
    let reserved = tab.as_ref().map(|tab| tokio::task::block_in_place(|| tab.reserve(most)));
    let reserved = reserved.transpose().map_err(|error| caller.unwritten(error))?;
    Ok(Begun { tab, reserved, most })
}

/// What came of a call that was made.
#[derive(Debug)]
pub(crate) struct Done {
    outcome: Result<Reply, QueryFailed>,
    /// Whether what it cost is known.
    is_known: bool,
    waited: Duration,
}

/// Makes a call, its reply in `pieces` where they are wanted, until it is given up. What one cost that is given up, or
/// dropped while it is under way, is not known: what was reserved for it counts as spent.
pub(crate) async fn run(
    model: &dyn Model,
    request: &Request,
    pieces: Option<&Pieces>,
    given_up: impl Future<Output = QueryFailed>,
) -> Done {
    let begun = Instant::now();
    let asking = async {
        match pieces {
            Some(pieces) => model.stream(request, pieces).await,
            None => model.query(request).await,
        }
    };
    let (outcome, is_known) = tokio::select! {
        biased;
        outcome = asking => (outcome, true),
        failed = given_up => (Err(failed), false),
    };
    Done { outcome, is_known, waited: begun.elapsed() }
}

/// Charges and records a call.
pub(crate) fn finish<C: Caller>(begun: &Begun, done: Done, caller: &mut C) -> Result<Answered<C::Kept>, C::Refused> {
    let Done { outcome, is_known, waited } = done;
    let (cost, usage) = match &outcome {
        Ok(reply) => (reply.cost, reply.usage),
        Err(failed) => (failed.cost, failed.usage),
    };
    let settled = match (&begun.tab, &begun.reserved) {
        (Some(tab), Some(reserved)) if is_known => tokio::task::block_in_place(|| tab.settle(reserved, cost, usage)),
        _ => Ok(()),
    };
    let kept = caller.keep(&outcome, waited)?;
    settled.map_err(|error| caller.unwritten(error))?;
    Ok(Answered { outcome, kept })
}
