//! Verifiers choose one of k attempts at a sample without looking at gold.
//!
//! pass@k is reached only if somebody knows which of the k attempts is the best. A verifier must find that attempt, so
//! its value is the share of the gap between pass@1 and pass@k that it closes.

pub mod choosing;
mod excerpt;
mod execution;
mod first;
mod majority;
mod model;
mod oracle;
pub mod stored;
#[cfg(test)]
mod tests;
pub mod vote;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::model::{Model, Usage};
use crate::run::VerifierSpec;
pub use crate::run::family::Question;
use vote::Votes;

/// An attempt as seen by a verifier.
#[derive(Debug, Clone, Default)]
pub struct Candidate {
    /// Number of the attempt.
    pub attempt: u32,
    /// The attempt's changes as a unified diff.
    pub patch: String,
    /// The attempt's answer by experiment key; empty if it could not be parsed.
    pub answer: Map<String, Value>,
    /// Whether every experiment produced a result when the attempt's code was run again; `None` if it was not run
    /// again.
    pub runs: Option<bool>,
    /// Whether the attempt passes. Only the verifier `oracle` uses this field.
    pub pass: bool,
}

/// A verifier's choice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VerifierChoice {
    /// Index of the chosen candidate; `None` if the verifier chose none.
    pub chosen: Option<usize>,
    /// Why the verifier made this choice.
    pub reason: String,
    /// Tokens used.
    pub usage: Usage,
    /// Cost in dollars.
    pub cost: f64,
    /// Number of the model's replies that named a candidate that doesn't exist.
    pub unknown: u32,
    /// Number of the model's replies that named no candidate, and of questions that the model refused.
    pub unreadable: u32,
}

/// A method of choosing one of several attempts.
#[async_trait]
pub trait Verifier: Send + Sync {
    /// The verifier's short name, such as `majority`. The verifier's choices are stored under this name.
    fn name(&self) -> String;
    /// The model that the verifier asks, if any.
    fn model(&self) -> Option<&dyn Model> {
        None
    }
    /// Chooses one of the candidates. There is at least one, and they are in the order of their attempts. `votes`
    /// stores the replies of the verifier's model, and decides whether the model may be called again.
    ///
    /// # Errors
    /// Kind `Model` if a required model does not answer, and the errors of `votes`.
    async fn choose(&self, question: &Question, candidates: &[Candidate], votes: &dyn Votes) -> Result<VerifierChoice>;
}

/// Opens the model with the given name or, for `None`, the run's own. Returns `None` if there is no such model.
pub type OpenModel<'a> = dyn Fn(Option<&str>) -> Result<Option<Arc<dyn Model>>> + 'a;

/// Opens a verifier. `orders` is the number of times a model is asked, each time with the candidates in another order.
///
/// # Errors
/// Kind `Usage` for a model verifier without a model, and the errors of `models`.
pub fn open(spec: &VerifierSpec, models: &OpenModel<'_>, orders: u32) -> Result<Arc<dyn Verifier>> {
    Ok(match spec {
        VerifierSpec::First => Arc::new(first::First),
        VerifierSpec::Majority => Arc::new(majority::Majority),
        VerifierSpec::Execution(then) => {
            let then = then.as_deref().unwrap_or(&VerifierSpec::Majority);
            Arc::new(execution::Execution { then: open(then, models, orders)? })
        }
        VerifierSpec::Oracle => Arc::new(oracle::OracleVerifier),
        VerifierSpec::Model(named) => match models(named.as_deref())? {
            Some(model) => Arc::new(model::ByModel::new(model, orders)),
            None => {
                return Err(Error::usage(format!("verifier `{spec}` needs a model"))
                    .hint("give one with `--model`, or as `model:openai:gpt-5-mini`"));
            }
        },
    })
}
