//! Previews a run: its samples and attempts, their maximum cost and their duration.

use std::collections::BTreeMap;

use super::{Run, agents};
use crate::run::{PlannedAttempts, VerifierSpec};
use crate::sample::Sample;

/// Preview of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPlan {
    /// The word for an item of this kind of task, such as "paper".
    pub item: &'static str,
    /// Number of samples by item and by n, the number of masked parts.
    pub samples: BTreeMap<(String, usize), usize>,
    /// Numbers of attempts by agent and by n, the number of masked parts.
    pub planned: Vec<PlannedAttempts>,
    /// Number of parallel attempts.
    pub jobs: usize,
    /// Number of attempts whose agents use a model.
    pub asking: usize,
    /// Maximum dollars of one attempt that uses a model.
    pub cost: f64,
    /// Maximum dollars of all attempts together if none is made again, at most the run's cost limit.
    pub worst: f64,
    /// Same as `worst`, if every attempt is lost to infrastructure and made again, as often as the run allows. Each try
    /// has the full budget.
    pub worst_retried: f64,
    /// Whether verifiers use a model too, at additional cost.
    pub verifiers_ask: bool,
    /// Seconds needed to check that the original code reproduces gold, if experiments run one after another; `None` if
    /// the duration of some experiments is unknown.
    pub baseline: Option<f64>,
    /// Mean seconds of verifying one attempt.
    pub checks: Option<f64>,
    /// Warnings about the plan, one sentence each, such as that no samples have a requested n.
    pub notes: Vec<String>,
}

/// Whether a verifier calls a model, be it the run's model or another one.
fn asks(spec: &VerifierSpec) -> bool {
    match spec {
        VerifierSpec::Model(_) => true,
        VerifierSpec::Execution(Some(then)) => asks(then),
        _ => false,
    }
}

impl Run {
    /// Computes what executing this run would do.
    #[must_use]
    pub fn preview(&self) -> RunPlan {
        let Self { configuration, agents, model, samples, items, family, .. } = self;
        let mut counts: BTreeMap<(String, usize), usize> = BTreeMap::new();
        for sample in samples {
            *counts.entry((sample.item().to_owned(), sample.n())).or_default() += 1;
        }
        let planned = agents::planned(samples, agents, model.as_deref(), configuration.k);
        let asking =
            agents.iter().filter(|agent| agent.agent.needs_model()).count() * samples.len() * configuration.k as usize;
        let is_free = configuration.model.as_ref().is_some_and(|model| {
            model.price == Some((0.0, 0.0)) && model.cache_price.is_none_or(|price| price == (0.0, 0.0))
        });
        let cost = if is_free { 0.0 } else { configuration.limits.cost };
        let all = asking as f64 * cost;
        let limited = |dollars: f64| configuration.max_cost.map_or(dollars, |most| dollars.min(most));
        let seconds = |sample: &Sample| items.iter().find(|item| item.id() == sample.item())?.seconds(Some(sample));
        let checks: Option<f64> = samples.iter().map(seconds).sum();
        let notes: Vec<String> = self.beyond().into_iter().collect();
        RunPlan {
            item: family.words().item,
            samples: counts,
            planned,
            jobs: configuration.jobs,
            asking,
            cost,
            worst: limited(all),
            worst_retried: limited(all * f64::from(configuration.tries)),
            verifiers_ask: configuration.verifiers.iter().any(asks),
            baseline: items.iter().map(|item| item.seconds(None)).sum(),
            checks: checks.map(|sum| sum / samples.len().max(1) as f64),
            notes,
        }
    }
}
