//! Reasons why an attempt stops.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::sandbox::{Evidence, Fault, Loss};

/// Why an attempt stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The agent reported an answer.
    Answered,
    /// The agent stopped by itself without an answer.
    GaveUp,
    /// An external agent's program failed before any of its model calls could be answered. Scored like any other end;
    /// the run stops if all attempts of the agent end this way.
    NeverAsked,
    /// The steps were used up.
    StepLimit,
    /// The tool time was used up.
    TimeLimit,
    /// The money was used up.
    CostLimit,
    /// The tokens were used up, or the conversation no longer fits the model's context.
    TokenLimit,
    /// The agent wrote more data than the sandbox's disk limit allows.
    DiskLimit,
    /// Too many consecutive replies could not be parsed.
    FormatErrors,
    /// The provider refused the conversation, for example by a content filter. Scored like any other end, because the
    /// agent's own conversation caused the refusal.
    Refused,
    /// The provider failed after all retries. Counts as lost to infrastructure.
    ModelError,
    /// No attempt can use the model, for example because of a wrong key. Counts as lost to infrastructure, and stops
    /// the run.
    ModelDenied,
    /// The sandbox was lost, and there is evidence that the machine failed. Counts as lost to infrastructure.
    SandboxLost,
    /// The sandbox ended during the attempt, without evidence that the machine failed. The attempt is held responsible,
    /// and is scored like any other.
    SandboxKilled,
    /// The run was stopped. Counts as lost to infrastructure.
    Cancelled,
}

impl End {
    /// Whether the attempt was lost to infrastructure. Such attempts are never scored, and `resume` runs them again.
    #[must_use]
    pub const fn is_infrastructure(self) -> bool {
        matches!(self, Self::ModelError | Self::ModelDenied | Self::SandboxLost | Self::Cancelled)
    }

    /// Whether every other attempt would end in the same way, so that the run should stop.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        matches!(self, Self::ModelDenied)
    }

    /// The exhausted resource, as part of an error message ("the tool time is used up").
    #[must_use]
    pub const fn used_up(self) -> &'static str {
        match self {
            Self::TimeLimit => "the tool time is used up",
            Self::CostLimit => "the money is used up",
            Self::TokenLimit => "the tokens are used up",
            _ => "the steps are used up",
        }
    }

    /// Returns this end together with details.
    #[must_use]
    pub fn because(self, detail: impl Into<String>) -> AttemptEnd {
        AttemptEnd { end: self, detail: Some(detail.into()), evidence: None }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEnd {
    /// Why the attempt stopped.
    pub end: End,
    /// Details, such as the provider's error; stored with the attempt.
    pub detail: Option<String>,
    /// For [`End::SandboxLost`]: the evidence that the machine failed.
    pub evidence: Option<Evidence>,
}

impl AttemptEnd {
    /// Builds the end of an attempt lost to a machine failure.
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

impl From<End> for AttemptEnd {
    fn from(end: End) -> Self {
        Self { end, detail: None, evidence: None }
    }
}

impl From<Loss> for AttemptEnd {
    fn from(loss: Loss) -> Self {
        match loss.evidence() {
            Some(evidence) => Self::lost(loss.to_string(), evidence.clone()),
            None => End::SandboxKilled.because(loss.to_string()),
        }
    }
}

impl From<Fault> for AttemptEnd {
    /// Converts a refused use of the sandbox to the end [`End::TimeLimit`], because [`super::Context`] refuses uses of
    /// the sandbox only when no tool time is left.
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Lost(loss) => loss.into(),
            Fault::Refused(what) => End::TimeLimit.because(what),
        }
    }
}

impl From<&ModelError> for AttemptEnd {
    fn from(error: &ModelError) -> Self {
        let end = match error {
            ModelError::ContextLength(_) => End::TokenLimit,
            // The scripted model or the recording has no reply to this call, so the attempt is over.
            ModelError::Exhausted(_) => End::GaveUp,
            ModelError::Refused(_) | ModelError::Rejected(_) => End::Refused,
            ModelError::Denied(_) => End::ModelDenied,
            ModelError::Unavailable(_) => End::ModelError,
        };
        end.because(error.to_string())
    }
}
