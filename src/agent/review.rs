//! Feedback between the rounds of an attempt, without a model: the harness looks at the work as it does in the end and
//! says as much of it as the level allows (as RECODE-H, "A Benchmark for Research Code Development with Interactive Human
//! Feedback", 2025).

use async_trait::async_trait;

use super::{End, Ended, Trajectory};
use crate::error::Error;
use crate::sandbox::{Sandbox, evidence_in};

/// Most that feedback can say.
pub const MOST_FEEDBACK: u32 = 4;

/// Who looks at an attempt's work between its rounds.
#[async_trait]
pub trait Reviewer: Send + Sync {
    /// Looks at the work as it is now in its sandbox, and at what was reported. What the agent is told; nothing when the
    /// attempt ends here.
    ///
    /// # Errors
    /// The attempt's end, when the work cannot be looked at.
    async fn review(
        &self,
        asked: Asked,
        answer: Option<&str>,
        sandbox: &mut dyn Sandbox,
        trajectory: &mut Trajectory,
    ) -> Result<Option<String>, Ended>;
}

/// Which look is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// How much is told, from 0 (nothing) to [`MOST_FEEDBACK`].
    pub level: u32,
    /// The round that has ended, from 0.
    pub round: u32,
    /// The model's replies so far.
    pub steps: u32,
    /// Dollars so far.
    pub cost: f64,
}

/// The end of an attempt whose work could not be looked at.
pub(crate) fn lost(error: &Error) -> Ended {
    let what = format!("feedback: {}", crate::error::with_causes(error));
    match evidence_in(error) {
        _ if error.kind == crate::error::Kind::Interrupted => End::Cancelled.because(what),
        Some(evidence) => Ended::lost(what, evidence.clone()),
        None => End::SandboxKilled.because(what),
    }
}
