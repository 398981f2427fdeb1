//! Why an attempt stopped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::sandbox::{Evidence, Fault, Loss};

/// Why an attempt stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It reported an answer.
    Answered,
    /// It stopped without one, of its own accord.
    GaveUp,
    /// Its steps were used up.
    StepLimit,
    /// Its tool time was used up.
    TimeLimit,
    /// Its money was used up.
    CostLimit,
    /// Its tokens were used up, or the conversation no longer fits the model.
    TokenLimit,
    /// It wrote more than the sandbox takes.
    DiskLimit,
    /// Too many replies in a row could not be read.
    FormatErrors,
    /// The provider refused the conversation, as a content filter does: scored like any other end, because it refused
    /// what the agent wrote and read.
    Refused,
    /// The provider failed after all retries: infrastructure.
    ModelError,
    /// The model cannot be used, by this attempt or any other, as with a bad key: infrastructure, and fatal.
    ModelDenied,
    /// The sandbox was lost, and there is evidence that the machine failed: infrastructure.
    SandboxLost,
    /// The sandbox ended while the attempt ran, and nothing shows that the machine failed: the attempt's own doing. Scored
    /// like any other end.
    SandboxKilled,
    /// The run was stopped: infrastructure.
    Cancelled,
}

impl End {
    /// Whether the attempt was lost to infrastructure: never scored, run again on resume.
    #[must_use]
    pub const fn is_infrastructure(self) -> bool {
        matches!(self, Self::ModelError | Self::ModelDenied | Self::SandboxLost | Self::Cancelled)
    }

    /// Whether every other attempt would end like this: the run had better stop.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        matches!(self, Self::ModelDenied)
    }

    /// What is used up at a limit, a fragment.
    #[must_use]
    pub const fn used_up(self) -> &'static str {
        match self {
            Self::TimeLimit => "the tool time is used up",
            Self::CostLimit => "the money is used up",
            Self::TokenLimit => "the tokens are used up",
            _ => "the steps are used up",
        }
    }

    /// This end with more about it.
    #[must_use]
    pub fn because(self, detail: impl Into<String>) -> Ended {
        Ended { end: self, detail: Some(detail.into()), evidence: None }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why it stopped.
    pub end: End,
    /// More about it, such as the provider's error; kept in the store.
    pub detail: Option<String>,
    /// For [`End::SandboxLost`]: what shows that the machine failed.
    pub evidence: Option<Evidence>,
}

impl Ended {
    /// The end of an attempt that the machine failed.
    pub fn lost(detail: impl Into<String>, evidence: Evidence) -> Self {
        let detail = detail.into();
        let detail = if detail.is_empty() || detail == evidence.detail {
            format!("lost: {evidence}")
        } else {
            format!("{detail}; lost: {evidence}")
        };
        Self { end: End::SandboxLost, detail: Some(detail), evidence: Some(evidence) }
    }
}

impl From<End> for Ended {
    fn from(end: End) -> Self {
        Self { end, detail: None, evidence: None }
    }
}

impl From<Loss> for Ended {
    fn from(loss: Loss) -> Self {
        match loss.evidence() {
            Some(evidence) => Self::lost(loss.to_string(), evidence.clone()),
            None => End::SandboxKilled.because(loss.to_string()),
        }
    }
}

impl From<Fault> for Ended {
    /// What an agent's own use of the sandbox refuses, it refuses because no tool time is left.
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Lost(loss) => loss.into(),
            Fault::Refused(what) => End::TimeLimit.because(what),
        }
    }
}

impl From<&ModelError> for Ended {
    fn from(error: &ModelError) -> Self {
        let end = match error {
            ModelError::ContextLength(_) => End::TokenLimit,
            // A script has said all that it had to say.
            ModelError::Exhausted(_) => End::GaveUp,
            ModelError::Refused(_) | ModelError::Rejected(_) => End::Refused,
            ModelError::Denied(_) => End::ModelDenied,
            ModelError::Unavailable(_) => End::ModelError,
        };
        end.because(error.to_string())
    }
}
