//! The upper bound of all verifiers: chooses an attempt that passes, if there is one. It looks at the verdicts, which
//! no real verifier can.

use async_trait::async_trait;

use super::vote::Votes;
use super::{Candidate, Question, Verifier, VerifierChoice};
use crate::error::Result;

/// Chooses the first passing candidate, or the first candidate if none passes.
pub(super) struct OracleVerifier;

#[async_trait]
impl Verifier for OracleVerifier {
    fn name(&self) -> String {
        "oracle".to_owned()
    }

    async fn choose(&self, _: &Question, candidates: &[Candidate], _: &dyn Votes) -> Result<VerifierChoice> {
        let passing = candidates.iter().position(|candidate| candidate.pass);
        let reason = if passing.is_some() { "passes" } else { "none passes" };
        let chosen = passing.or((!candidates.is_empty()).then_some(0));
        Ok(VerifierChoice { chosen, reason: reason.to_owned(), ..VerifierChoice::default() })
    }
}
