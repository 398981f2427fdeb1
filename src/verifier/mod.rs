//! Picks one of k attempts at a sample, without looking at gold.
//!
//! pass@k says what the best of k attempts is worth to somebody who knows which one it is. A verifier has to find out:
//! the share of the gap between pass@1 and pass@k that it closes is what it is worth.

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

/// One attempt, as a verifier sees it.
#[derive(Debug, Clone, Default)]
pub struct Candidate {
    /// Number of the attempt.
    pub attempt: u32,
    /// What it changed, as a unified diff.
    pub patch: String,
    /// What it reported, by the experiments' keys; empty when nothing readable.
    pub answer: Map<String, Value>,
    /// Whether each experiment gave a result when its code was run again; `None` where that was not done.
    pub runs: Option<bool>,
    /// Whether it passes. Only the oracle looks.
    pub pass: bool,
}

/// What a verifier chose.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// The place of the chosen one among the candidates; `None` when it would have none of them.
    pub chosen: Option<usize>,
    /// Why.
    pub reason: String,
    /// Tokens that it took.
    pub usage: Usage,
    /// Dollars that it took.
    pub cost: f64,
    /// Replies of a model that named a candidate which does not exist.
    pub unknown: u32,
    /// Replies of a model that named nobody, and questions that it did not take.
    pub unreadable: u32,
}

/// A way of choosing.
#[async_trait]
pub trait Verifier: Send + Sync {
    /// Short name, under which its choices are kept: `majority`.
    fn name(&self) -> String;
    /// The model that it asks, if it asks one.
    fn model(&self) -> Option<&dyn Model> {
        None
    }
    /// Chooses one of at least one candidate, which are in the order of their attempts. What a model is asked for it goes
    /// through `votes`.
    ///
    /// # Errors
    /// Kind `Model` when a model that is needed does not answer, and what `votes` refuse or fail with.
    async fn choose(&self, question: &Question, candidates: &[Candidate], votes: &dyn Votes) -> Result<Choice>;
}

/// Opens the model that a verifier names, or the one of its run when it names none. `None` when there is none.
pub type Models<'a> = dyn Fn(Option<&str>) -> Result<Option<Arc<dyn Model>>> + 'a;

/// Opens a verifier. `orders` is how often a model is asked, each time with the candidates in another order.
///
/// # Errors
/// Kind `Usage` for a model verifier without a model, and those of `models`.
pub fn open(spec: &VerifierSpec, models: &Models<'_>, orders: u32) -> Result<Arc<dyn Verifier>> {
    Ok(match spec {
        VerifierSpec::First => Arc::new(first::First),
        VerifierSpec::Majority => Arc::new(majority::Majority),
        VerifierSpec::Execution(then) => {
            let then = then.as_deref().unwrap_or(&VerifierSpec::Majority);
            Arc::new(execution::Execution { then: open(then, models, orders)? })
        }
        VerifierSpec::Oracle => Arc::new(oracle::Oracle),
        VerifierSpec::Model(named) => match models(named.as_deref())? {
            Some(model) => Arc::new(model::ByModel::new(model, orders)),
            None => {
                return Err(Error::usage(format!("verifier `{spec}` needs a model"))
                    .hint("name one with `--model`, or as `model:openai:gpt-5-mini`"));
            }
        },
    })
}
