//! The null verifier, which chooses the first attempt.

use async_trait::async_trait;

use super::vote::Votes;
use super::{Candidate, Choice, Question, Verifier};
use crate::error::Result;

/// Chooses the first candidate.
pub(super) struct First;

#[async_trait]
impl Verifier for First {
    fn name(&self) -> String {
        "none".to_owned()
    }

    async fn choose(&self, _: &Question, candidates: &[Candidate], _: &dyn Votes) -> Result<Choice> {
        let chosen = (!candidates.is_empty()).then_some(0);
        Ok(Choice { chosen, reason: "the first attempt".to_owned(), ..Choice::default() })
    }
}
