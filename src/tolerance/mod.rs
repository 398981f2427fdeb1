//! How far a number may be from gold: the rules that a manifest can declare, and the comparison of one number.
//!
//! Everything about a rule is in this folder: its name in a manifest, its checks, its description, the bounds that
//! follow from it, the comparison of a number with them, and the same comparison in Python for Harbor tasks
//! (`tolerance.py`). A test checks that the two comparisons agree. `score` compares whole results and uses
//! [`Tolerance::compare`] for their numbers.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::stats::{Interval, prediction_interval};

#[cfg(test)]
mod tests;

/// The comparison in Python, for Harbor tasks: it reads a [`Tolerance`] as JSON.
pub(crate) const PYTHON: &str = include_str!("tolerance.py");

/// Minimum number of stored repeats in the gold of a stochastic experiment. With 96 repeats, the test of a single result
/// can refuse it, because the smallest possible p-value, 1/97, is below the significance level of 0.012
/// (docs/statistics.md). Also, a right solution passes with a probability of at least 90%, except if gold's repeats are
/// among the least representative 5%.
pub(crate) const FEWEST_REPEATS: usize = 96;

/// Probability that another repeat of gold is inside the interval that serves as a tolerance.
pub const LEVEL: f64 = 0.95;

/// Default absolute tolerance of values whose gold is 0.
pub(crate) const fn default_absolute() -> f64 {
    1e-9
}

/// The rule for the real numbers in an experiment's result, as a manifest declares it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a tolerance is a number between 0 and 1, or \"stochastic\"")]
pub enum ToleranceRule {
    /// Maximum difference relative to |gold|.
    Relative(f64),
    /// A named rule.
    Named(NamedTolerance),
}

/// Tolerances with names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedTolerance {
    /// The value must come from the same distribution as gold's stored repeats. `interval` is the former name.
    #[serde(alias = "interval")]
    Stochastic,
}

impl Default for ToleranceRule {
    /// The original AutoExperiment's rule: "no more than 5%".
    fn default() -> Self {
        Self::Relative(0.05)
    }
}

impl std::fmt::Display for ToleranceRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Relative(relative) => relative.fmt(f),
            Self::Named(NamedTolerance::Stochastic) => f.write_str("stochastic"),
        }
    }
}

impl ToleranceRule {
    /// Formats the rule for a table: `5e-2`.
    pub(crate) fn short(self) -> String {
        match self {
            Self::Relative(relative) => format!("{relative:.0e}"),
            Self::Named(_) => self.to_string(),
        }
    }

    /// Formats the rule as a value in a manifest.
    pub(crate) fn in_toml(self) -> String {
        match self {
            Self::Relative(relative) => toml::Value::Float(relative).to_string(),
            Self::Named(_) => toml::Value::String(self.to_string()).to_string(),
        }
    }

    /// Whether the experiment varies from run to run by design, so that its gold needs [`FEWEST_REPEATS`] repeats.
    #[must_use]
    pub const fn is_stochastic(self) -> bool {
        matches!(self, Self::Named(NamedTolerance::Stochastic))
    }

    /// Returns the relative tolerance if gold's repeats differ by more than a fifth of it. `spread` is the largest
    /// relative difference between the repeats.
    pub(crate) fn nearly_exceeded_by(self, spread: f64) -> Option<f64> {
        match self {
            Self::Relative(relative) => Some(relative).filter(|relative| spread > relative / 5.0),
            Self::Named(NamedTolerance::Stochastic) => None,
        }
    }
}

/// All tolerances that a manifest declares for an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DeclaredTolerance {
    /// The rule for real numbers.
    pub rule: ToleranceRule,
    /// Relative tolerance of whole numbers.
    pub counts: f64,
    /// Absolute tolerance, for values whose gold is 0.
    pub absolute: f64,
}

impl DeclaredTolerance {
    /// Lists the faults that deserialisation of the declared values does not find, each as the text of an error
    /// message.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let ToleranceRule::Relative(relative) = self.rule
            && !(relative > 0.0 && relative < 1.0)
        {
            faults.push(format!("tolerance {relative} is not between 0 and 1"));
        }
        if !(0.0..1.0).contains(&self.counts) {
            faults.push(format!("count_tolerance {} is not between 0 and 1", self.counts));
        }
        if !(self.absolute >= 0.0 && self.absolute.is_finite()) {
            faults.push("absolute_tolerance must be 0 or more".to_owned());
        }
        faults
    }

    /// Returns the bounds of a comparison with gold. `repeats` are gold's stored repeats. Without repeats, a stochastic
    /// experiment has the default bounds.
    pub(crate) fn bounds(&self, repeats: &[Value]) -> Tolerance {
        let usual = Tolerance { absolute: self.absolute, counts: self.counts, ..Tolerance::default() };
        match self.rule {
            ToleranceRule::Relative(relative) => Tolerance { relative, ..usual },
            ToleranceRule::Named(NamedTolerance::Stochastic) => Tolerance { repeats: repeats.to_vec(), ..usual },
        }
    }

    /// Returns the bounds of a comparison of two runs of the same code. Runs of a stochastic experiment may differ by
    /// any amount.
    pub(crate) fn bounds_between_runs(&self) -> Tolerance {
        match self.rule {
            ToleranceRule::Relative(_) => self.bounds(&[]),
            ToleranceRule::Named(NamedTolerance::Stochastic) => Tolerance::any_number(),
        }
    }
}

/// How far a value may be from gold. Harbor tasks read this type as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Maximum difference, relative to |gold|.
    pub relative: f64,
    /// Maximum absolute difference if gold is 0.
    pub absolute: f64,
    /// Maximum difference, relative to |gold|, if gold is a whole number such as a count.
    #[serde(default)]
    pub counts: f64,
    /// Results of gold's repeats, for stochastic experiments only. If there are repeats, this project's rule applies the
    /// other tolerances only to values that are the same in all repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Value>,
}

impl Default for Tolerance {
    /// 5%, as in the paper, and 1e-9 if gold is 0; whole numbers must be equal.
    fn default() -> Self {
        Self { relative: 0.05, absolute: default_absolute(), counts: 0.0, repeats: Vec::new() }
    }
}

/// The comparison of a number with gold's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumberComparison {
    /// |got - gold| / |gold|, or |got - gold| if gold is 0; may be infinite.
    pub error: f64,
    /// Why the number is not within the tolerance; `None` if it is.
    pub fault: Option<String>,
}

impl Tolerance {
    /// Returns a tolerance that accepts any number, so that only the shape of results is compared.
    #[must_use]
    pub const fn any_number() -> Self {
        Self { relative: f64::INFINITY, absolute: f64::INFINITY, counts: f64::INFINITY, repeats: Vec::new() }
    }

    /// Compares a number with gold's number. `repeats` are the values at the same path in gold's repeats. If the field
    /// `repeats` is not empty, the number must be within the 95% prediction interval of these values, as in
    /// CORE-Bench's published rule.
    pub(crate) fn compare(&self, gold: &Number, repeats: &[&Value], got: f64) -> NumberComparison {
        // Converting to a double never fails, because all of serde_json's numbers have 64 bits.
        let expected = gold.as_f64().unwrap_or(f64::NAN);
        // In gold, a whole number such as a count has neither a decimal point nor an exponent.
        let is_count = gold.is_i64() || gold.is_u64();
        let relative = if is_count { self.counts } else { self.relative };
        let (error, is_close) = distance(expected, got, relative, self.absolute);
        let fault = match self.interval(repeats) {
            Some(Ok(interval)) => (!is_within(got, interval))
                .then(|| format!("outside the interval of gold's repeats, {} to {}", interval.low, interval.high)),
            Some(Err(fault)) => Some(fault),
            None => (!is_close).then(|| "outside the tolerance".to_owned()),
        };
        NumberComparison { error, fault }
    }

    /// Returns the interval in which a number must be, or the reason why this interval cannot be computed; `None` if
    /// the field `repeats` is empty, so that a number need not be in an interval.
    fn interval(&self, repeats: &[&Value]) -> Option<Result<Interval, String>> {
        if self.repeats.is_empty() {
            return None;
        }
        let numbers: Vec<f64> = repeats.iter().filter_map(|value| value.as_f64()).collect();
        let all = numbers.len() == self.repeats.len();
        let interval = prediction_interval(&numbers, LEVEL).filter(|_| all);
        Some(interval.ok_or_else(|| "not a number in two or more repeats of gold, so it has no interval".to_owned()))
    }
}

/// Returns the error, relative to |gold| or absolute if gold is 0, and whether it is within the tolerance, bound
/// included.
///
/// "No more than 5%" is meant in decimal: 1.05 passes against 1.0 although its double is slightly larger. Rounding two
/// decimals to doubles shifts their difference by at most one unit in the last place of the larger number. The bound
/// itself is rounded, too, so the bound is widened by four such units: 1e-15 of the value, far below any real error.
fn distance(gold: f64, got: f64, relative: f64, absolute: f64) -> (f64, bool) {
    let difference = (got - gold).abs();
    if gold == 0.0 {
        (difference, difference <= absolute * (1.0 + SLACK))
    } else {
        let bound = relative * gold.abs() + SLACK * gold.abs().max(got.abs());
        (difference / gold.abs(), difference.is_finite() && difference <= bound)
    }
}

/// Allowance for rounding: four units in the last place of a double. Decimal numbers are rounded when they become
/// doubles. This changes the difference of two numbers, and the maximum difference that is permitted, by at most this
/// much.
const SLACK: f64 = 4.0 * f64::EPSILON;

/// Whether a number is inside an interval, bounds included, with the same allowance for rounding as for a tolerance.
fn is_within(number: f64, interval: Interval) -> bool {
    let slack = SLACK * number.abs().max(interval.low.abs()).max(interval.high.abs());
    interval.low - slack <= number && number <= interval.high + slack
}
