//! Replies of a verifier's model, each stored at once so that a kill loses neither a vote nor its cost.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::ledger::PayerLedger;
use crate::model::{Quote, Usage};

/// One reply of a verifier's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// Number of the order in which the candidates were shown.
    pub order: u32,
    /// Number of earlier replies to the question with this order of candidates. None of them named an existing
    /// candidate.
    pub ask: u32,
    /// The candidate that the reply named.
    pub named: VoteOutcome,
    /// Text of the reply, or the error if the call failed.
    pub said: String,
    /// Tokens used.
    #[serde(default)]
    pub usage: Usage,
    /// Cost in dollars.
    #[serde(default)]
    pub cost: f64,
}

/// The outcome of a vote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoteOutcome {
    /// The attempt with this number.
    Attempt(u32),
    /// A candidate that doesn't exist.
    Unknown(String),
    /// No readable choice.
    Nobody,
    /// No reply.
    Failed,
}

/// Stores votes and decides whether another call may be paid for.
pub trait Votes: Send + Sync {
    /// Returns the vote stored in an earlier session with this [`Vote::order`] and [`Vote::ask`].
    fn earlier(&self, order: u32, ask: u32) -> Option<Vote>;
    /// Checks that the model may be called, and returns the maximum tokens of its reply that the remaining money
    /// allows; `None` for no limit.
    ///
    /// # Errors
    /// Kind `CostLimit` if the money is spent, `Interrupted` if the user stops the run.
    fn allow(&self, quote: &Quote) -> Result<Option<u32>>;
    /// Returns the ledger to which the run writes the cost of calls, and who pays for these calls; `None` if there is
    /// no ledger.
    fn tab(&self) -> Option<PayerLedger> {
        None
    }
    /// Stores a vote.
    ///
    /// # Errors
    /// Kind `Store` if it cannot be written.
    fn keep(&self, vote: &Vote) -> Result<()>;
}
