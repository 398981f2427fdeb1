//! What a run is: everything that decides which attempts are made and how.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VerifierSpec;
use crate::agent::{AgentSpec, Limits};
use crate::error::Result;
use crate::model::{self, Description, Model, Sampling};
use crate::sample::UnitChoice;
use crate::sandbox::{Gpus, SandboxKind, SandboxLimits};
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
    /// The kind of sandbox: `local`, `docker`, `podman`, `none`.
    pub sandbox: SandboxKind,
    /// Graphics processors: `all` or how many for each container, `each` for one to each attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Gpus>,
    /// Limits of a sandbox.
    pub sandbox_limits: SandboxLimits,
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
    pub verifiers: Vec<VerifierSpec>,
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
    /// Which of a paper's units are masked, where it lists functions and regions.
    #[serde(default, skip_serializing_if = "UnitChoice::is_default")]
    pub units: UnitChoice,
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
    /// Dollars for a million tokens read from the provider's cache, and written to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_price: Option<(f64, f64)>,
    /// What the user says of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Description>,
    /// Where replies are kept for later runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// Where calls are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Seconds that one request may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<f64>,
    /// Tries of a request that the provider fails, beside the first.
    pub retries: usize,
}

impl Configuration {
    /// The settings that the command line has by default, for one attempt at each sample: no agents and papers yet, one
    /// masked function, local sandboxes, strict scoring with verification, as many attempts at once as there are cores.
    #[must_use]
    pub fn new(suite: &Path) -> Self {
        Self {
            family: super::record::masked(),
            suite: suite.to_owned(),
            papers: Vec::new(),
            draw: Draw {
                n: vec![1],
                fractions: Vec::new(),
                units: UnitChoice::default(),
                limit: 100,
                samples: Vec::new(),
            },
            k: 1,
            agents: Vec::new(),
            settings: crate::agent::Settings::default(),
            model: None,
            sampling: Sampling::default(),
            limits: Limits::default(),
            env: crate::env::EnvKind::default(),
            sandbox: SandboxKind::Local,
            gpus: None,
            sandbox_limits: SandboxLimits::default(),
            protocol: Protocol::Curtailed,
            scoring: Rule::Strict,
            verify: true,
            jobs: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            tries: 3,
            max_cost: None,
            verifiers: Vec::new(),
            orders: two(),
            seed: 0,
        }
    }
}

impl ModelChoice {
    /// Opens the model for a run of this seed, without any traffic.
    ///
    /// # Errors
    /// Kind `Usage` or `Model` for a model that does not exist or cannot be used.
    pub fn open(&self, seed: u64) -> Result<Arc<dyn Model>> {
        let mut options = model::Options {
            base_url: self.base_url.clone(),
            price: self.price,
            cache_price: self.cache_price,
            description: self.description.clone().unwrap_or_default(),
            cache: self.cache.clone().map(|folder| (folder, seed)),
            record: self.record.clone(),
            retries: self.retries,
            ..model::Options::default()
        };
        if let Some(seconds) = self.request_timeout {
            options.request_timeout = Duration::from_secs_f64(seconds);
        }
        model::open(&self.spec, &options)
    }
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
        let fractions = vec![0.0, 0.01, 0.5, 1.0];
        let draw = Draw { n: vec![2, 30], fractions, units: UnitChoice::default(), limit: 100, samples: Vec::new() };
        assert_eq!(draw.counts(17), [0, 1, 2, 9, 17]);
    }
}
