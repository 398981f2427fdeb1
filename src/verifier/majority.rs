//! Majority vote over results, within the experiments' tolerances (self-consistency: Wang et al., 2023).

use async_trait::async_trait;
use serde_json::Value;

use super::vote::Votes;
use super::{Candidate, Question, Verifier, VerifierChoice};
use crate::error::Result;
use crate::score::{score_experiment, unquoted};

/// Chooses the attempt that agrees with the largest number of attempts; in a tie, the first such attempt. Agreement
/// within tolerances is not transitive, so the attempts that agree with the chosen one may not agree with each other.
pub(super) struct Majority;

#[async_trait]
impl Verifier for Majority {
    fn name(&self) -> String {
        "majority".to_owned()
    }

    async fn choose(&self, question: &Question, candidates: &[Candidate], _: &dyn Votes) -> Result<VerifierChoice> {
        let votes: Vec<usize> = candidates
            .iter()
            .map(|one| candidates.iter().filter(|other| agree(question, one, other)).count())
            .collect();
        let most = votes.iter().copied().max().unwrap_or_default();
        let chosen = votes.iter().position(|&count| count == most);
        let reason = match most {
            0 => "no attempt reported every experiment".to_owned(),
            1 => "no two attempts agree".to_owned(),
            _ => format!("{most} of {} agree", candidates.len()),
        };
        Ok(VerifierChoice { chosen, reason, ..VerifierChoice::default() })
    }
}

/// Whether two candidates agree on every experiment. A candidate with numbers for all experiments also agrees with
/// itself, so it has at least one vote.
fn agree(question: &Question, one: &Candidate, other: &Candidate) -> bool {
    !question.answers.is_empty()
        && question.answers.iter().all(|(key, tolerance)| {
            let (Some(a), Some(b)) = (one.answer.get(key), other.answer.get(key)) else { return false };
            let accepts =
                |one: &Value, other| score_experiment(key, &unquoted(one.clone()), Some(other), tolerance).pass;
            accepts(a, b) && accepts(b, a)
        })
}
