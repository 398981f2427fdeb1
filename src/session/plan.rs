//! What a run would be: its samples and attempts, what they may cost at most, and how long they take.

use std::collections::BTreeMap;

use super::{Run, agents};
use crate::run::{Planned, VerifierSpec};
use crate::sample::Sample;

/// A run before it is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What the family calls an item: "paper".
    pub item: &'static str,
    /// Number of samples by item and n.
    pub samples: BTreeMap<(String, usize), usize>,
    /// Attempts by agent and n.
    pub planned: Vec<Planned>,
    /// Attempts at once.
    pub jobs: usize,
    /// Attempts whose agents ask a model.
    pub asking: usize,
    /// Dollars that one of them may cost.
    pub cost: f64,
    /// Dollars that all of them cost at most, within the run's own limit.
    pub worst: f64,
    /// Whether verifiers ask a model too, beyond what attempts cost.
    pub verifiers_ask: bool,
    /// Seconds that the baseline takes, one experiment after another; `None` where that was not measured.
    pub baseline: Option<f64>,
    /// Mean seconds that the checks of a sample take, by which an attempt is verified.
    pub checks: Option<f64>,
    /// What there is to say about it, a sentence each.
    pub notes: Vec<String>,
}

/// Whether a verifier asks a model, the run's or another.
fn asks(spec: &VerifierSpec) -> bool {
    match spec {
        VerifierSpec::Model(_) => true,
        VerifierSpec::Execution(Some(then)) => asks(then),
        _ => false,
    }
}

impl Run {
    /// What executing this run would do, without doing any of it.
    #[must_use]
    pub fn preview(&self) -> Plan {
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
        let seconds = |sample: &Sample| items.iter().find(|item| item.id() == sample.item())?.seconds(Some(sample));
        let checks: Option<f64> = samples.iter().map(seconds).sum();
        let mut notes: Vec<String> = self.beyond().into_iter().collect();
        notes.extend(agents::ignored_settings(agents, configuration));
        Plan {
            item: family.words().item,
            samples: counts,
            planned,
            jobs: configuration.jobs,
            asking,
            cost,
            worst: configuration.max_cost.map_or(all, |most| all.min(most)),
            verifiers_ask: configuration.verifiers.iter().any(asks),
            baseline: items.iter().map(|item| item.seconds(None)).sum(),
            checks: checks.map(|sum| sum / samples.len().max(1) as f64),
            notes,
        }
    }
}
