//! The upper bound of all verifiers: chooses an attempt that passes, if there is one. It looks at the verdicts, which
//! no real verifier can.

use async_trait::async_trait;

use super::vote::Votes;
use super::{Candidate, Choice, Question, Verifier};
use crate::error::Result;

/// Chooses a passing candidate.
pub(super) struct Oracle;

#[async_trait]
impl Verifier for Oracle {
    fn name(&self) -> String {
        "oracle".to_owned()
    }

    async fn choose(&self, _: &Question, candidates: &[Candidate], _: &dyn Votes) -> Result<Choice> {
        let passing = candidates.iter().position(|candidate| candidate.pass);
        let reason = if passing.is_some() { "passes" } else { "none passes" };
        let chosen = passing.or((!candidates.is_empty()).then_some(0));
        Ok(Choice { chosen, reason: reason.to_owned(), ..Choice::default() })
    }
}
