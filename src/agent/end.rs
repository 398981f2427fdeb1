//! Why an attempt stopped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::sandbox::{Cause, Fault, Loss};

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
    /// The sandbox died: infrastructure.
    SandboxLost,
    /// The attempt's own processes took the sandbox down: they exceeded its memory, or it died in every try and nothing
    /// about the machine explains it. Scored like any other end.
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
        Ended { end: self, detail: Some(detail.into()), unexplained: false }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why it stopped.
    pub end: End,
    /// More about it, such as the provider's error; kept in the store.
    pub detail: Option<String>,
    /// Whether the sandbox died and nothing about the machine explains it.
    pub unexplained: bool,
}

impl From<End> for Ended {
    fn from(end: End) -> Self {
        Self { end, detail: None, unexplained: false }
    }
}

impl From<Loss> for Ended {
    fn from(loss: Loss) -> Self {
        let end = if loss.cause() == Cause::MemoryLimit { End::SandboxKilled } else { End::SandboxLost };
        Self { unexplained: loss.cause() == Cause::Unexplained, ..end.because(loss.to_string()) }
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
            ModelError::Refused(_) => End::Refused,
            ModelError::Denied(_) => End::ModelDenied,
            ModelError::Unavailable(_) => End::ModelError,
        };
        end.because(error.to_string())
    }
}
