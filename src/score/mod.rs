//! Values against gold: pure functions over JSON, used on what an agent reports and on what its code prints.
//!
//! The rule: every value of every experiment within its tolerance, relative to |gold|, or absolute where gold is 0.
//! Unless the paper says otherwise, that is 5% for measured reals, and whole numbers must be equal. Experiments that vary
//! on purpose are compared as distributions (`redraw`). [`Rule::Reference`] reproduces the published implementation,
//! faults included, so that old results stay comparable.

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
pub use redraw::Runs;
pub(crate) use result::{last_json_line, read_result};
pub(crate) use shape::{long_shape, shape};
pub(crate) use strict::check_gold;
pub use strict::{LEVEL, score_experiment};

/// Which rule decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Every value within its tolerance.
    #[default]
    Strict,
    /// The published implementation's mean loss, faults included.
    Reference,
}

/// How far a value may be from its gold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Relative to |gold|.
    pub relative: f64,
    /// Absolute, where gold is 0.
    pub absolute: f64,
    /// Relative to |gold|, where gold is a whole number such as a count.
    #[serde(default)]
    pub counts: f64,
    /// What each of gold's repeats gave, where an experiment varies on purpose: the other bounds are then for those of
    /// its values that never varied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Value>,
}

impl Default for Tolerance {
    /// 5%, as in the paper, and 1e-9 where gold is 0; whole numbers exactly.
    fn default() -> Self {
        Self { relative: 0.05, absolute: 1e-9, counts: 0.0, repeats: Vec::new() }
    }
}

impl Tolerance {
    /// Any number in the place of a number: what is compared is the shape.
    #[must_use]
    pub const fn any_number() -> Self {
        Self { relative: f64::INFINITY, absolute: f64::INFINITY, counts: f64::INFINITY, repeats: Vec::new() }
    }
}

/// An experiment of a sample, with what it should give.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Id in the manifest.
    pub id: String,
    /// Key in the answer: "Experiment 3".
    pub key: String,
    /// Its gold result.
    pub gold: Value,
    /// How far a value may be from it.
    pub tolerance: Tolerance,
}

impl Expected {
    /// Whether the experiment varies on purpose, so that it is compared with all repeats of gold.
    #[must_use]
    pub fn varies(&self) -> bool {
        !self.tolerance.repeats.is_empty()
    }
}

/// One value against its gold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueVerdict {
    /// Where the value is in the result, as `k=10.mean` or `losses[2]`; empty for a bare number.
    pub path: String,
    /// The gold value.
    pub gold: Value,
    /// The value given, `None` when it is missing.
    pub got: Option<Value>,
    /// |got - gold| / |gold|, or |got - gold| where gold is 0; `None` when either is not a number or it is not finite.
    /// By [`Rule::Reference`]: the published loss, sign kept.
    pub error: Option<f64>,
    /// Whether it is within its tolerance.
    pub pass: bool,
    /// Why not, a fragment such as "missing" or "not a number: `true`".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One experiment's result against its gold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentVerdict {
    /// The experiment's id in the manifest.
    pub experiment: String,
    /// Whether it passes.
    pub pass: bool,
    /// Why not, when that lies above single values: "no result", "timed out", "exit code 1".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Value by value, in gold's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueVerdict>,
    /// What is odd but no failure, such as an extra metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Everything that a sample is scored by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether it passes: all experiments of a sample of masked replication, which must have at least one.
    pub pass: bool,
    /// How much of the task was done, from 0 to 1, in families with partial credit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What else was measured, by name, as a family has it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, f64>,
    /// Why not, when that lies above single experiments: "no answer", "the answer is not JSON".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// One for each experiment or other named check, in the manifest's order.
    pub experiments: Vec<ExperimentVerdict>,
    /// What is odd but no failure, such as results under keys of no experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Passes without anything having been compared: the answer is the work itself, such as a program, and says nothing
    /// about results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
}

/// Scores what an agent reported, as it wrote it; `None` when it reported nothing. Experiments that vary on purpose are
/// compared with `runs` of the agent's code, or with gold while there are none.
#[must_use]
pub fn score_answer(rule: Rule, experiments: &[Expected], answer: Option<&str>, runs: &Runs) -> Verdict {
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

/// What an answer reports, by the experiments' keys, however the answer spells them. Leaves out what it reports twice
/// with different results, and what cannot be read.
#[must_use]
pub fn placed_answer(experiments: &[Expected], answer: Option<&str>) -> Map<String, Value> {
    let Some(answer) = answer.and_then(|answer| parse_answer(answer).ok()) else { return Map::new() };
    let (placed, _) = answer::place(&answer, experiments);
    let known = experiments.iter().zip(placed);
    known.filter_map(|(expected, value)| Some((expected.key.clone(), value.ok()??.clone()))).collect()
}

/// Scores what verification read: every run of each experiment, and by id why an experiment has no result, as "timed out"
/// or "exit code 1".
#[must_use]
pub fn score_results(
    rule: Rule,
    experiments: &[Expected],
    runs: &Runs,
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

/// An experiment without a result, and why.
fn failed_experiment(expected: &Expected, reason: String) -> ExperimentVerdict {
    let missing = score_experiment(&expected.id, &expected.gold, None, &expected.tolerance);
    ExperimentVerdict { reason: Some(reason), ..missing }
}

/// The verdict on a sample by the strict rule.
fn conclude(reason: Option<String>, experiments: Vec<ExperimentVerdict>, warnings: Vec<String>) -> Verdict {
    let reason = reason.or_else(|| experiments.is_empty().then(|| "no gold: the sample has no experiments".to_owned()));
    let pass = reason.is_none() && experiments.iter().all(|experiment| experiment.pass);
    Verdict { pass, reason, experiments, warnings, ..Verdict::default() }
}
