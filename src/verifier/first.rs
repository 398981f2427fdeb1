//! The null verifier, which chooses the first attempt.

use async_trait::async_trait;

use super::vote::Votes;
use super::{Candidate, Question, Verifier, VerifierChoice};
use crate::error::Result;

/// Chooses the first candidate.
pub(super) struct First;

#[async_trait]
impl Verifier for First {
    fn name(&self) -> String {
        "none".to_owned()
    }

    async fn choose(&self, _: &Question, candidates: &[Candidate], _: &dyn Votes) -> Result<VerifierChoice> {
        let chosen = (!candidates.is_empty()).then_some(0);
        Ok(VerifierChoice { chosen, reason: "the first attempt".to_owned(), ..VerifierChoice::default() })
    }
}
