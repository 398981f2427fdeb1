//! Drops attempts whose code fails to produce results, then lets another verifier choose among the rest.

use std::sync::Arc;

use async_trait::async_trait;

use super::vote::Votes;
use super::{Candidate, Question, Verifier, VerifierChoice};
use crate::error::Result;
use crate::model::Model;

/// Verifier that drops candidates which crash.
pub(super) struct Execution {
    /// Verifier that chooses among the candidates that did not crash.
    pub(super) then: Arc<dyn Verifier>,
}

#[async_trait]
impl Verifier for Execution {
    fn name(&self) -> String {
        match self.then.name().as_str() {
            "majority" => "execution".to_owned(),
            other => format!("execution+{other}"),
        }
    }

    fn model(&self) -> Option<&dyn Model> {
        self.then.model()
    }

    async fn choose(&self, question: &Question, candidates: &[Candidate], votes: &dyn Votes) -> Result<VerifierChoice> {
        // A candidate whose code was not run again counts as running if it has an answer to every experiment.
        let runs = |candidate: &Candidate| {
            let answered = || question.answers.iter().all(|(key, _)| candidate.answer.contains_key(key));
            candidate.runs.unwrap_or_else(answered)
        };
        let places: Vec<usize> = (0..candidates.len()).filter(|&place| runs(&candidates[place])).collect();
        let (all, left) = (candidates.len(), places.len());
        if places.is_empty() {
            let choice = self.then.choose(question, candidates, votes).await?;
            return Ok(VerifierChoice { reason: format!("none of {all} runs; {}", choice.reason), ..choice });
        }
        let running: Vec<Candidate> = places.iter().map(|&place| candidates[place].clone()).collect();
        let choice = self.then.choose(question, &running, votes).await?;
        Ok(VerifierChoice {
            // `chosen` is an index into `running`, the candidates whose code runs. Convert it to an index into all
            // candidates. An invalid index becomes `all`, which is invalid, too, so that the caller reports the error.
            chosen: choice.chosen.map(|chosen| places.get(chosen).copied().unwrap_or(all)),
            reason: format!("{left} of {all} run; {}", choice.reason),
            ..choice
        })
    }
}
