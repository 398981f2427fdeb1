//! What a run is: everything that decides which attempts are made and how.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{AgentSpec, Limits};
use crate::model::Sampling;
use crate::score::Rule;
use crate::suite::Protocol;

/// The settings of a run, kept in `run.json` and taken from there on resume.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// The kind of task.
    #[serde(default = "super::record::masked", skip_serializing_if = "super::record::is_masked")]
    pub family: String,
    /// The suite's folder.
    pub suite: PathBuf,
    /// Ids of papers, or of other items of the family.
    pub papers: Vec<String>,
    /// Which samples.
    pub draw: Draw,
    /// Attempts a sample.
    pub k: u32,
    /// Agents, as given: `react`, `scripted:steps.jsonl`.
    pub agents: Vec<AgentSpec>,
    /// Settings of agents.
    #[serde(default)]
    pub settings: crate::agent::Settings,
    /// The model, as given.
    #[serde(default)]
    pub model: Option<ModelChoice>,
    /// How the model samples.
    pub sampling: Sampling,
    /// What an attempt may spend.
    pub limits: Limits,
    /// How envs are made, as asked for. Runs from before there was a choice had venvs.
    #[serde(default = "venv")]
    pub env: crate::env::EnvKind,
    /// The sandbox backend asked for.
    pub sandbox: String,
    /// Graphics processors of a sandbox, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<String>,
    /// Limits of a sandbox.
    pub sandbox_limits: crate::sandbox::SandboxLimits,
    /// Curtailed or full experiments.
    pub protocol: Protocol,
    /// How values are compared with gold.
    pub scoring: Rule,
    /// Whether the agent's code is run again by us.
    pub verify: bool,
    /// Attempts at once.
    pub jobs: usize,
    /// Tries of an attempt that is lost to infrastructure.
    pub tries: u32,
    /// Dollars that the whole run may spend.
    #[serde(default)]
    pub max_cost: Option<f64>,
    /// Who picks one of the attempts at each sample, as given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verifiers: Vec<String>,
    /// In how many orders a model verifier is shown the attempts.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    pub orders: u32,
    /// Seed of everything that is drawn.
    pub seed: u64,
}

const fn two() -> u32 {
    2
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_two(orders: &u32) -> bool {
    *orders == 2
}

fn venv() -> crate::env::EnvKind {
    crate::env::EnvKind::Venv
}

/// Which samples a run takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Draw {
    /// Numbers of masked functions.
    pub n: Vec<usize>,
    /// Shares of a paper's functions to mask, another way to say n.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fractions: Vec<f64>,
    /// Most samples for each n of a paper.
    pub limit: usize,
    /// These samples and no others, when there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
}

/// A model and how to reach it. Never holds a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChoice {
    /// As given: `openai:gpt-5`, `scripted:replies.jsonl`.
    pub spec: String,
    /// Address of an OpenAI-compatible server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Dollars for a million tokens read, and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<(f64, f64)>,
    /// Where calls are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Seconds that one request may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<f64>,
    /// Tries of a request that the provider fails, beside the first.
    pub retries: usize,
}

impl Draw {
    /// The numbers of masked functions for a paper of `functions` functions: the given ones that it has, and the given
    /// shares of it, rounded, but at least 1 for a share above 0. Ascending, each once.
    #[must_use]
    pub fn counts(&self, functions: usize) -> Vec<usize> {
        let shares = self.fractions.iter().map(|&share| {
            let n = (share * functions as f64).round() as usize;
            if share > 0.0 { n.max(1) } else { 0 }
        });
        let mut counts: Vec<usize> = self.n.iter().copied().chain(shares).filter(|&n| n <= functions).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_another_way_to_say_n() {
        let draw = Draw { n: vec![2, 30], fractions: vec![0.0, 0.01, 0.5, 1.0], limit: 100, samples: Vec::new() };
        assert_eq!(draw.counts(17), [0, 1, 2, 9, 17]);
    }
}
