//! The account of one attempt: checks each model call against the budget, charges it and records it in the trajectory.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::agent::trajectory::seconds;
use crate::agent::{AttemptEnd, Budget, End, Event, Trajectory};
use crate::model::ask::Caller;
use crate::model::ledger::PayerLedger;
use crate::model::{Model, ModelError, QueryFailed, Quote, Reply, Request};

/// Who calls the model. Only a call of the agent counts as a step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asker<'a> {
    /// The agent itself. Such a call is a step.
    Agent,
    /// The tool with this name, or a part of the agent that is recorded like a tool. Such a call is charged, but is not
    /// a step.
    Tool(&'a str),
}

/// Why the model was not called.
#[derive(Debug)]
pub(crate) enum NotAsked {
    /// A limit forbids another call.
    Limit(End),
    /// The trajectory or the run's ledger cannot be written. A call that cannot be recorded must not be paid for.
    Unrecorded(String),
}

impl fmt::Display for NotAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(end) => f.write_str(end.used_up()),
            Self::Unrecorded(error) => f.write_str(error),
        }
    }
}

/// Why a model call gave no reply.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The model was not called.
    NotAsked(NotAsked),
    /// The model was called and the call failed.
    Failed(ModelError),
}

impl From<NotAsked> for AttemptEnd {
    fn from(refused: NotAsked) -> Self {
        match refused {
            NotAsked::Limit(end) => end.into(),
            // An attempt whose calls cannot be recorded cannot be scored, so it ends as [`End::Cancelled`]. This counts
            // as lost to infrastructure, so `resume` runs the attempt again.
            NotAsked::Unrecorded(error) => End::Cancelled.because(format!("failed to record the attempt: {error}")),
        }
    }
}

impl From<Unanswered> for AttemptEnd {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotAsked(refused) => refused.into(),
            Unanswered::Failed(error) => Self::from(&error),
        }
    }
}

/// The budget that pays for a caller's model calls, and the trajectory that records them.
pub(crate) struct Account<'a> {
    pub(crate) budget: &'a mut Budget,
    pub(crate) trajectory: &'a mut Trajectory,
    pub(crate) asker: Asker<'a>,
    /// Seed of the current call.
    pub(crate) seed: Option<u64>,
}

impl Account<'_> {
    /// Checks whether another call may be made.
    pub(crate) fn allow(&self) -> Result<(), NotAsked> {
        let limit = match self.asker {
            Asker::Agent => self.budget.no_step_left(),
            Asker::Tool(_) => self.budget.no_call_left(),
        };
        match (limit, self.trajectory.failed()) {
            (Some(end), _) => Err(NotAsked::Limit(end)),
            (None, Some(error)) => Err(NotAsked::Unrecorded(error.to_string())),
            (None, None) => Ok(()),
        }
    }

    /// Charges a call, and returns the event that records it.
    pub(crate) fn charge(&mut self, outcome: &Result<Reply, QueryFailed>, waited: Duration) -> Event {
        let tool = match self.asker {
            Asker::Agent => None,
            Asker::Tool(name) => Some(name.to_owned()),
        };
        match (outcome, tool) {
            (Ok(reply), None) => {
                self.budget.charge_reply(reply, waited);
                let tokens = self.trajectory.tokens(self.budget.steps, reply);
                Event::reply(self.budget.steps, reply, tokens, waited, self.seed)
            }
            (Ok(reply), Some(tool)) => {
                self.budget.charge_call(reply, waited);
                Event::ToolModelCall {
                    step: self.budget.steps,
                    tool,
                    text: reply.text.clone(),
                    unanswered: reply.unanswered,
                    usage: reply.usage,
                    cost: reply.cost,
                    seconds: seconds(waited),
                }
            }
            (Err(failed), tool) => {
                self.budget.charge_failed(failed, waited);
                let (what, usage, cost) = (failed.to_string(), failed.usage, failed.cost);
                Event::CallFailed { step: self.budget.steps, tool, what, usage, cost, seconds: seconds(waited) }
            }
        }
    }
}

impl Caller for Account<'_> {
    type Refused = NotAsked;
    type Kept = Event;

    fn begin(&mut self, model: &dyn Model, request: &mut Request) -> Result<Quote, NotAsked> {
        self.allow()?;
        request.call = self.budget.next_call();
        self.seed = request.sampling.seed;
        let quote = model.quote(request);
        let affordable = quote.affordable(self.budget.money_left());
        request.affordable = affordable.map_err(|_| NotAsked::Limit(End::CostLimit))?;
        Ok(quote)
    }

    fn keep(&mut self, outcome: &Result<Reply, QueryFailed>, waited: Duration) -> Result<Event, NotAsked> {
        let event = self.charge(outcome, waited);
        self.trajectory.push(&event);
        Ok(event)
    }

    fn tab(&self) -> Option<PayerLedger> {
        self.budget.tab().cloned()
    }

    fn unwritten(&mut self, error: io::Error) -> NotAsked {
        NotAsked::Unrecorded(error.to_string())
    }
}
