//! Feedback between the rounds of an attempt, without a model. The harness evaluates the work in the same way as at the
//! end, and reveals as much of the outcome as the feedback level allows (as in RECODE-H, "A Benchmark for Research Code
//! Development with Interactive Human Feedback", 2025).

use async_trait::async_trait;

use super::{AttemptEnd, End, Trajectory};
use crate::error::Error;
use crate::sandbox::{Sandbox, evidence_in};

/// The highest level of feedback, which reveals most.
pub(super) const MOST_FEEDBACK: u32 = 4;

/// Evaluates an attempt's work between its rounds.
#[async_trait]
pub trait Reviewer: Send + Sync {
    /// Evaluates the current work in the sandbox and the reported answer. Returns the feedback for the agent, or `None`
    /// if the attempt ends here.
    ///
    /// # Errors
    /// The attempt's end, if the work cannot be evaluated.
    async fn review(
        &self,
        asked: ReviewRequest,
        answer: Option<&str>,
        sandbox: &mut dyn Sandbox,
        trajectory: &mut Trajectory,
    ) -> Result<Option<String>, AttemptEnd>;
}

/// The state of an attempt when its work is reviewed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReviewRequest {
    /// Feedback level, from 0 (nothing) to [`MOST_FEEDBACK`].
    pub level: u32,
    /// Number of the round that has ended, from 0.
    pub round: u32,
    /// Number of the model's replies so far.
    pub steps: u32,
    /// Dollars spent so far.
    pub cost: f64,
}

/// Returns the end of an attempt whose work could not be evaluated.
pub(crate) fn lost(error: &Error) -> AttemptEnd {
    let what = format!("feedback: {}", crate::error::with_causes(error));
    match evidence_in(error) {
        _ if error.kind == crate::error::FailureKind::Interrupted => End::Cancelled.because(what),
        Some(evidence) => AttemptEnd::lost(what, evidence.clone()),
        None => End::SandboxKilled.because(what),
    }
}
