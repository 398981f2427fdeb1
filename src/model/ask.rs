//! Makes all calls of models except the test call of a probe: checks whether the call is allowed, reserves its cost in
//! the ledger, makes the call, then records its cost and the reply.

use std::io;
use std::time::{Duration, Instant};

use super::ledger::{PayerLedger, Reservation};
use super::quote::Quote;
use super::{Model, Pieces, QueryFailed, Reply, Request};

/// The code on whose behalf a model is called. It decides whether to make a call, pays for it and records it.
pub(crate) trait Caller {
    /// The error for a call that is not made or cannot be recorded.
    type Refused;
    /// The caller's record of a finished call.
    type Kept;

    /// Checks that the call may be made, gives it its number, and limits the length of its reply to what the remaining
    /// money buys. If this returns an error, the model is not called. Otherwise, returns an estimate from which the
    /// maximum cost of the call is computed.
    fn begin(&mut self, model: &dyn Model, request: &mut Request) -> Result<Quote, Self::Refused>;

    /// Charges and records a finished call. A failed call may have cost money, too.
    fn keep(&mut self, outcome: &Result<Reply, QueryFailed>, waited: Duration) -> Result<Self::Kept, Self::Refused>;

    /// The ledger to write calls to; `None` outside a run.
    fn tab(&self) -> Option<PayerLedger>;

    /// Returns the error for a ledger that cannot be written.
    fn unwritten(&mut self, error: io::Error) -> Self::Refused;
}

/// A call that was made, charged and recorded.
#[derive(Debug)]
pub(crate) struct RecordedAnswer<K> {
    /// The reply or the failure.
    pub(crate) outcome: Result<Reply, QueryFailed>,
    /// The caller's record of the call.
    pub(crate) kept: K,
}

/// Asks for a whole reply.
pub(crate) async fn ask<C: Caller>(
    model: &dyn Model,
    request: &mut Request,
    caller: &mut C,
) -> Result<RecordedAnswer<C::Kept>, C::Refused> {
    let begun = begin(model, request, caller)?;
    let done = run(model, request, None, std::future::pending()).await;
    finish(&begun, done, caller)
}

/// A call whose cost is reserved in the ledger and which may now be made.
#[derive(Debug)]
pub(crate) struct ReservedCall {
    tab: Option<PayerLedger>,
    reserved: Option<Reservation>,
    /// Maximum cost in dollars.
    pub(crate) most: f64,
}

/// Asks the caller whether the call may be made, and reserves its cost in the ledger.
pub(crate) fn begin<C: Caller>(
    model: &dyn Model,
    request: &mut Request,
    caller: &mut C,
) -> Result<ReservedCall, C::Refused> {
    request.affordable = None;
    let quote = caller.begin(model, request)?;
    let tab = caller.tab();
    request.attempt = tab.as_ref().and_then(PayerLedger::attempt);
    let most = quote.most(request.sampling.max_tokens, request.affordable);
    let reserved = tab.as_ref().map(|tab| writing(most > 0.0, || tab.reserve(most)));
    let reserved = reserved.transpose().map_err(|error| caller.unwritten(error))?;
    Ok(ReservedCall { tab, reserved, most })
}

/// The outcome of a call that was made.
#[derive(Debug)]
pub(crate) struct MadeCall {
    outcome: Result<Reply, QueryFailed>,
    /// Whether the call's cost is known.
    is_known: bool,
    waited: Duration,
}

/// Makes a call, and gives up when `given_up` resolves. If `pieces` is given, the reply is streamed to it. If a call is
/// given up or dropped in progress, its cost is unknown, so the whole amount reserved for it counts as spent.
pub(crate) async fn run(
    model: &dyn Model,
    request: &Request,
    pieces: Option<&Pieces>,
    given_up: impl Future<Output = QueryFailed>,
) -> MadeCall {
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
    MadeCall { outcome, is_known, waited: begun.elapsed() }
}

/// Writes the actual cost of a finished call to the ledger, then lets the caller charge and record the call.
pub(crate) fn finish<C: Caller>(
    begun: &ReservedCall,
    done: MadeCall,
    caller: &mut C,
) -> Result<RecordedAnswer<C::Kept>, C::Refused> {
    let MadeCall { outcome, is_known, waited } = done;
    let (cost, usage) = match &outcome {
        Ok(reply) => (reply.cost, reply.usage),
        Err(failed) => (failed.cost, failed.usage),
    };
    let settled = match (&begun.tab, &begun.reserved) {
        (Some(tab), Some(reserved)) if is_known => {
            writing(cost > 0.0 || begun.most > 0.0, || tab.record_cost(reserved, cost, usage))
        }
        _ => Ok(()),
    };
    let kept = caller.keep(&outcome, waited)?;
    settled.map_err(|error| caller.unwritten(error))?;
    Ok(RecordedAnswer { outcome, kept })
}

/// Writes to the ledger. A flush to disk blocks the thread, so the runtime first moves the thread's other tasks to
/// another thread. A write without a flush is so short that moving the tasks would cost more.
fn writing<T>(is_flushed: bool, write: impl FnOnce() -> T) -> T {
    if is_flushed { tokio::task::block_in_place(write) } else { write() }
}
