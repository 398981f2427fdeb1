//! What a verifier's model says, reply by reply: kept as it comes, so that a kill loses neither a judgement nor its cost.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::ledger::Tab;
use crate::model::{Quote, Usage};

/// One reply of a verifier's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// In which order the candidates were shown.
    pub order: u32,
    /// How often it had been asked before in this order, because what it said named no candidate.
    pub ask: u32,
    /// Whom it named.
    pub named: Named,
    /// What it said; why there is no reply, when it failed.
    pub said: String,
    /// Tokens that it took.
    #[serde(default)]
    pub usage: Usage,
    /// Dollars that it took.
    #[serde(default)]
    pub cost: f64,
}

/// Whom a reply names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// This attempt.
    Attempt(u32),
    /// A candidate that does not exist.
    Unknown(String),
    /// Nobody that can be read.
    Nobody,
    /// There was no reply.
    Failed,
}

/// Keeps votes, and says whether another may be paid for.
pub trait Votes: Send + Sync {
    /// What the model said in this order at this ask in an earlier session.
    fn earlier(&self, order: u32, ask: u32) -> Option<Vote>;
    /// Whether the model may be asked, and how many tokens its reply may then have for the money that is left; `None` for
    /// no bound.
    ///
    /// # Errors
    /// Kind `CostLimit` when the money is spent, `Interrupted` when the user wants to stop.
    fn allow(&self, quote: &Quote) -> Result<Option<u32>>;
    /// Where calls are written in the run's ledger, if it has one.
    fn tab(&self) -> Option<Tab> {
        None
    }
    /// Keeps a vote.
    ///
    /// # Errors
    /// Kind `Store` when it cannot be written.
    fn keep(&self, vote: &Vote) -> Result<()>;
}
