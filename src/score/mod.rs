//! Compares values with gold: pure functions over JSON, for an agent's report and for the results of its code.
//!
//! The rule: every value of every experiment must be within its tolerance, relative to |gold|, or absolute for a
//! gold of 0. Unless the paper says otherwise, the tolerance of measured reals is 5%, and whole numbers must be equal.
//! Stochastic experiments are compared as distributions (`redraw`). [`Rule::Reference`] reproduces the published
//! implementation, faults included, so that old results stay comparable.

mod answer;
mod comments;
mod json;
pub(crate) mod ml_bench;
pub(crate) mod python;
pub(crate) mod redraw;
mod reference;
mod result;
mod shape;
mod strict;
pub(crate) mod super_bench;
#[cfg(test)]
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use answer::{find_answer, parse_answer};
pub(crate) use json::read_as_python as read_python_json;
pub use redraw::ExperimentRuns;
pub(crate) use result::{last_json_line, read_result};
pub(crate) use shape::{long_shape, shape};
pub use strict::score_experiment;
pub(crate) use strict::{check_gold, unquoted, with_markers};

pub use crate::tolerance::Tolerance;

/// Rule for scoring a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Every value must be within its tolerance.
    #[default]
    Strict,
    /// The rule of the published implementation: the mean loss of an experiment's values must be at most 0.05. The
    /// faults of that implementation are kept.
    Reference,
}

/// An experiment of a sample, with its expected result.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Id in the manifest.
    pub id: String,
    /// Key in the answer, such as "Experiment 3".
    pub key: String,
    /// Gold result.
    pub gold: Value,
    /// Tolerance of each value.
    pub tolerance: Tolerance,
}

impl Expected {
    /// Whether the experiment is stochastic, so that results are compared with all repeats of gold.
    #[must_use]
    pub fn varies(&self) -> bool {
        !self.tolerance.repeats.is_empty()
    }
}

/// Verdict on one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueVerdict {
    /// Path of the value in the result, such as `k=10.mean` or `losses[2]`; empty for a bare number.
    pub path: String,
    /// The gold value; of a value that varies on purpose, the mean of gold's repeats.
    pub gold: Value,
    /// The value given; `None` if it is missing. Of a value that varies on purpose, the mean if there are several runs.
    pub got: Option<Value>,
    /// Relative error |got - gold| / |gold|, or absolute error |got - gold| if gold is 0; `None` if either is not a
    /// finite number. By [`Rule::Reference`]: the loss |gold - got| / gold, which is negative if gold is negative.
    pub error: Option<f64>,
    /// Whether the value is within its tolerance.
    pub pass: bool,
    /// Why the value fails, a fragment such as "missing" or "not a number: `true`".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Verdict on one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentVerdict {
    /// The experiment's id in the manifest.
    pub experiment: String,
    /// Whether the experiment passes.
    pub pass: bool,
    /// Why the experiment fails as a whole: "no result", "timed out", "exit code 1". Faults of single values are in
    /// `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Verdicts on the values, in gold's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueVerdict>,
    /// Oddities that are not failures, such as an extra metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Verdict on a sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether the sample passes. In masked replication by [`Rule::Strict`], a sample passes if it has at least one
    /// experiment and all experiments pass.
    pub pass: bool,
    /// How much of the task was done, from 0 to 1, in families with partial credit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Name of the check in `experiments` that `score` rates: a failure of this check lowers the score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rated: Option<String>,
    /// Other measurements of the family, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, f64>,
    /// Why the sample fails as a whole: "no answer", "the answer is not JSON". Faults of single experiments are in
    /// `experiments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Verdicts on each experiment or other named check, in the manifest's order.
    pub experiments: Vec<ExperimentVerdict>,
    /// Oddities that are not failures, such as results under keys that belong to no experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether the sample passes without any comparison, because the answer is the work itself, such as a program, and
    /// contains no results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
}

/// Scores the text that an agent reported; `answer` is `None` if it reported nothing. Stochastic experiments are
/// compared with `runs` of the agent's code, or with gold if there are no such runs.
#[must_use]
pub fn score_answer(rule: Rule, experiments: &[Expected], answer: Option<&str>, runs: &ExperimentRuns) -> Verdict {
    if rule == Rule::Reference {
        return reference::score_answer(experiments, answer);
    }
    let parsed = answer.ok_or_else(|| "no answer".to_owned()).and_then(parse_answer);
    let (answer, reason) = match parsed {
        Ok(map) => (map, None),
        Err(reason) => (Map::new(), Some(reason)),
    };
    let (placed, unknown) = answer::place(&answer, experiments);
    let varying: Vec<(&Expected, Option<&Value>)> = experiments
        .iter()
        .zip(&placed)
        .filter(|(expected, _)| expected.varies())
        .map(|(expected, placed)| (expected, placed.as_ref().ok().copied().flatten()))
        .collect();
    let mut varying = redraw::reported(&varying, runs).into_iter();
    let scored = experiments.iter().zip(placed).map(|(expected, placed)| {
        let drawn = if expected.varies() { varying.next() } else { None };
        match (placed, drawn) {
            (Err(reason), _) => failed_experiment(expected, reason),
            (Ok(_), Some(drawn)) => drawn,
            (Ok(got), None) => score_experiment(&expected.id, &expected.gold, got, &expected.tolerance),
        }
    });
    let scored = scored.collect();
    let warnings =
        unknown.into_iter().map(|key| format!("`{}` is not an experiment of this sample", json::excerpt(key)));
    conclude(reason, scored, warnings.collect())
}

/// Returns the results in an answer by the experiments' keys, however the answer spells them. Leaves out experiments
/// reported twice with different results, and unreadable ones.
#[must_use]
pub fn placed_answer(experiments: &[Expected], answer: Option<&str>) -> Map<String, Value> {
    let Some(answer) = answer.and_then(|answer| parse_answer(answer).ok()) else { return Map::new() };
    let (placed, _) = answer::place(&answer, experiments);
    let known = experiments.iter().zip(placed);
    known.filter_map(|(expected, value)| Some((expected.key.clone(), value.ok()??.clone()))).collect()
}

/// Scores the results of verification. `runs` contains the results of every run of each experiment; `failures` says, by
/// the experiment's id, why an experiment has no result, such as "timed out" or "exit code 1".
#[must_use]
pub fn score_results(
    rule: Rule,
    experiments: &[Expected],
    runs: &ExperimentRuns,
    failures: &BTreeMap<String, String>,
) -> Verdict {
    let first = |expected: &Expected| runs.get(&expected.id).and_then(|runs| runs.first());
    if rule == Rule::Reference {
        return reference::score_map(experiments, first);
    }
    let varying: Vec<&Expected> =
        experiments.iter().filter(|one| one.varies() && !failures.contains_key(&one.id)).collect();
    let mut varying = redraw::verified_attempt(&varying, runs).into_iter();
    let scored = experiments.iter().map(|expected| match failures.get(&expected.id) {
        Some(reason) => failed_experiment(expected, reason.clone()),
        None if expected.varies() => varying.next().unwrap_or_else(|| failed_experiment(expected, String::new())),
        None => score_experiment(&expected.id, &expected.gold, first(expected), &expected.tolerance),
    });
    conclude(None, scored.collect(), Vec::new())
}

/// Returns the verdict on an experiment without a result.
fn failed_experiment(expected: &Expected, reason: String) -> ExperimentVerdict {
    let missing = score_experiment(&expected.id, &expected.gold, None, &expected.tolerance);
    ExperimentVerdict { reason: Some(reason), ..missing }
}

/// Returns the verdict on a sample by [`Rule::Strict`]: the sample fails if there is a `reason`, if there are no
/// experiments, or if an experiment fails.
fn conclude(reason: Option<String>, experiments: Vec<ExperimentVerdict>, warnings: Vec<String>) -> Verdict {
    let reason = reason.or_else(|| experiments.is_empty().then(|| "no gold: the sample has no experiments".to_owned()));
    let pass = reason.is_none() && experiments.iter().all(|experiment| experiment.pass);
    Verdict { pass, reason, experiments, warnings, ..Verdict::default() }
}
