//! The configuration of a run: everything that decides which attempts are made and how.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Serving, VerifierSpec};
use crate::agent::{AgentSpec, Limits};
use crate::error::{Error, Result};
use crate::model::{self, Description, Model, Sampling};
use crate::sample::{Nesting, UnitChoice, Units};
use crate::sandbox::{Gpus, SandboxKind, SandboxLimits};
use crate::score::Rule;
use crate::suite::{PartialDate, Protocol};

/// Settings of a run, stored in `run.json` and read from there on resume.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// The kind of task.
    #[serde(default = "super::record::masked::<String>", skip_serializing_if = "super::record::is_masked")]
    pub family: String,
    /// The suite's folder.
    pub suite: PathBuf,
    /// Ids of the papers, or of the repos or tasks that a family (kind of task) has instead of papers.
    pub papers: Vec<String>,
    /// The samples to attempt.
    pub draw: SampleDraw,
    /// Attempts per sample.
    pub k: u32,
    /// Agents, as named on the command line: `react`, `scripted:steps.jsonl`.
    pub agents: Vec<AgentSpec>,
    /// Settings of agents.
    #[serde(default)]
    pub settings: crate::agent::Settings,
    /// The model, and how to reach the model; null if none was named.
    #[serde(default)]
    pub model: Option<ModelChoice>,
    /// Sampling settings of the model.
    pub sampling: Sampling,
    /// Budget of each attempt.
    pub limits: Limits,
    /// Requested backend for envs. Runs stored before this setting existed used venvs.
    #[serde(default = "venv")]
    pub env: crate::env::EnvKind,
    /// The kind of sandbox: `local`, `docker`, `podman`, `none`.
    pub sandbox: SandboxKind,
    /// Graphics processors: `all` or a number of processors for each container, or `each` for one processor per
    /// attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Gpus>,
    /// Resource limits of each sandbox.
    pub sandbox_limits: SandboxLimits,
    /// Whether experiments run with curtailed (shorter) or full parameters.
    pub protocol: Protocol,
    /// How values are compared with gold.
    pub scoring: Rule,
    /// Whether the harness runs the agent's code again.
    pub verify: bool,
    /// Maximum number of attempts in parallel.
    pub jobs: usize,
    /// Maximum number of times that a session makes an attempt, if infrastructure (the machine or the model's provider)
    /// fails each time.
    pub tries: u32,
    /// Maximum dollars spent by the whole run.
    #[serde(default)]
    pub max_cost: Option<f64>,
    /// Verifiers that choose one of the attempts at each sample, as named on the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verifiers: Vec<VerifierSpec>,
    /// Number of different orders in which a model verifier is shown the attempts; it votes once for each order.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    pub orders: u32,
    /// Seed of all random draws.
    pub seed: u64,
    /// Settings of a run whose attempts are started by clients of `serve` or `mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<Serving>,
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

/// Selection of a run's samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Draw")]
pub struct SampleDraw {
    /// Numbers of functions to mask. Samples are drawn for each number.
    pub n: Vec<usize>,
    /// Alternative to `n`: shares of a paper's functions to mask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fractions: Vec<f64>,
    /// Whether to mask functions or regions in papers that list both.
    #[serde(default, skip_serializing_if = "UnitChoice::is_default")]
    pub units: UnitChoice,
    /// Draws only samples whose withheld code or text became public after this date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub after: Option<PartialDate>,
    /// Maximum number of samples for each paper and each number of masked functions.
    pub limit: usize,
    /// Ids of the samples to attempt. If the list is empty, samples are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
}

/// A model and how to reach it. Never contains a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChoice {
    /// The model, as named on the command line: `openai:gpt-5`, `scripted:replies.jsonl`.
    pub spec: String,
    /// Address of an OpenAI-compatible server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Price in dollars per million input tokens and per million output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<(f64, f64)>,
    /// Price in dollars per million tokens read from the provider's cache and per million tokens written to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_price: Option<(f64, f64)>,
    /// Properties of the model as described by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Description>,
    /// Folder where replies are cached for later runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// File where model calls are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Time limit of one request in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<f64>,
    /// Maximum number of retries of a failed request.
    pub retries: usize,
}

impl Configuration {
    /// Returns the command line's defaults with one attempt per sample: no agents and papers yet, one masked function,
    /// local sandboxes, strict scoring with verification, as many parallel attempts as there are cores.
    #[must_use]
    pub fn new(suite: &Path) -> Self {
        Self {
            family: super::record::masked(),
            suite: suite.to_owned(),
            papers: Vec::new(),
            draw: SampleDraw {
                n: vec![1],
                fractions: Vec::new(),
                units: UnitChoice::default(),
                after: None,
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
            serving: None,
        }
    }
}

impl ModelChoice {
    /// Opens the model for a run with this seed. Makes no requests yet.
    ///
    /// # Errors
    /// Same as [`model::open`], and kind `Store` if the stored time limit of requests is not a valid time.
    pub fn open(&self, seed: u64) -> Result<Arc<dyn Model>> {
        let mut options = model::ModelAccess {
            base_url: self.base_url.clone(),
            price: self.price,
            cache_price: self.cache_price,
            description: self.description.clone().unwrap_or_default(),
            cache: self.cache.clone().map(|folder| (folder, seed)),
            record: self.record.clone(),
            retries: self.retries,
            ..model::ModelAccess::default()
        };
        if let Some(seconds) = self.request_timeout {
            options.request_timeout = Duration::try_from_secs_f64(seconds).map_err(|error| {
                Error::store(format!("invalid `request_timeout` {seconds} in the run's settings")).because(error)
            })?;
        }
        model::open(&self.spec, &options)
    }
}

impl SampleDraw {
    /// Whether something that became public at `since` may be drawn. `since` is `None` if the date is unknown.
    #[must_use]
    pub fn is_young(&self, since: Option<PartialDate>) -> bool {
        self.after.is_none_or(|after| since.is_some_and(|since| since.first() > after.last()))
    }

    /// Same as [`counts_of`](Self::counts_of) for a paper of `functions` functions without nesting.
    #[must_use]
    pub fn counts(&self, functions: usize) -> Vec<usize> {
        self.counts_of(&Nesting::flat(functions))
    }

    /// Returns the numbers of masked functions for samples of a paper with these functions, ascending and without
    /// duplicates. These are all numbers in `n` that are at most the number of functions, and each share in `fractions`
    /// times the number of functions, rounded. A share above 0 gives at least 1, and at most as many as a sample can
    /// mask together.
    #[must_use]
    pub fn counts_of(&self, functions: &dyn Units) -> Vec<usize> {
        let (all, most) = (functions.len(), functions.most());
        let shares = self.fractions.iter().map(|&share| {
            let n = (share * all as f64).round() as usize;
            if share > 0.0 { n.clamp(1, most.max(1)) } else { 0 }
        });
        let mut counts: Vec<usize> = self.n.iter().copied().chain(shares).filter(|&n| n <= all).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_fractions_of_the_functions_are_converted_to_numbers_of_masked_functions() {
        let fractions = vec![0.0, 0.01, 0.5, 1.0];
        let draw = SampleDraw {
            n: vec![2, 30],
            fractions,
            units: UnitChoice::default(),
            after: None,
            limit: 100,
            samples: Vec::new(),
        };
        assert_eq!(draw.counts(17), [0, 1, 2, 9, 17]);
        assert_eq!(draw.counts(0), [0]);
        // Four functions, each of which contains three others. A function is not masked together with one inside of it,
        // so a sample masks at most the twelve inner functions.
        let nested = Nesting::new((0..16).map(|function| (function % 4 > 0).then_some(function / 4 * 4)).collect());
        assert_eq!(draw.counts_of(&nested), [0, 1, 2, 8, 12]);
    }

    #[test]
    fn a_stored_time_limit_of_requests_that_is_no_time_is_an_error() {
        let choice = |request_timeout: f64| {
            let stored =
                serde_json::json!({ "spec": "scripted:none", "retries": 0, "request_timeout": request_timeout });
            serde_json::from_value::<ModelChoice>(stored).unwrap()
        };
        for seconds in [-1.0, 1e300] {
            let Err(error) = choice(seconds).open(0) else { panic!("{seconds} was accepted") };
            assert!(error.message.contains("invalid `request_timeout`"), "{error}");
        }
    }

    #[test]
    fn only_functions_published_after_the_given_date_are_drawn() {
        let date = |text: &str| text.parse::<PartialDate>().ok();
        let draw = |after: &str| SampleDraw {
            n: vec![1],
            fractions: Vec::new(),
            units: UnitChoice::default(),
            after: date(after),
            limit: 1,
            samples: Vec::new(),
        };
        assert!(draw("").is_young(None));
        assert!(!draw("2026-06-01").is_young(None));
        assert!(!draw("2026-06-01").is_young(date("2026-06-01")));
        assert!(draw("2026-06-01").is_young(date("2026-06-02")));
        // A publication date without a day counts as the first day of its month, and June 1 is not after June 1.
        assert!(!draw("2026-06-01").is_young(date("2026-06")));
        assert!(!draw("2026-06").is_young(date("2026-06-30")));
        assert!(draw("2026-06").is_young(date("2026-07")));
    }
}
