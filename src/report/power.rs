//! Requirements of a comparison: samples, attempts and cost for detecting a difference.

use serde::Serialize;

use super::terminal::{dollars, plain_table, trimmed, wrap};
use crate::stats::{ComparisonGoal, Design, Spread};

/// Known or assumed properties of the samples with one number of masked functions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerInput {
    /// Number of masked functions.
    pub n: usize,
    /// Variation between samples and between attempts.
    pub spread: Spread,
    /// Dollars per attempt.
    pub cost: Option<f64>,
    /// Number of samples in the suite.
    pub available: Option<u128>,
}

/// Requirements of a comparison on samples with n masked functions and k attempts each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PowerRow {
    /// Number of masked functions.
    pub n: usize,
    /// Attempts per sample by each contender.
    pub k: usize,
    /// Assumed pass rate.
    pub rate: f64,
    /// Number of samples that both contenders must attempt.
    pub samples: f64,
    /// Number of samples in the suite.
    pub available: Option<u128>,
    /// Number of attempts that both contenders make together.
    pub attempts: f64,
    /// Cost in dollars of the attempts of both contenders together.
    pub cost: Option<f64>,
    /// If the suite has too few samples: the smallest difference that a comparison on all of its samples can detect;
    /// `None` if it can detect no difference.
    pub detectable: Option<f64>,
    /// Whether the suite has too few samples.
    pub too_few: bool,
}

/// Computes one row for each number of masked functions and each number of attempts per sample.
#[must_use]
pub fn power_rows(known: &[PowerInput], ks: &[usize], aim: ComparisonGoal, correlation: f64) -> Vec<PowerRow> {
    let pairs = known.iter().flat_map(|it| ks.iter().map(move |&k| (it, k)));
    pairs
        .map(|(known, k)| {
            let design = Design { spread: known.spread, k, correlation };
            let samples = aim.samples(&design);
            let attempts = 2.0 * samples * k as f64;
            let few = known.available.filter(|&available| (available as f64) < samples);
            PowerRow {
                n: known.n,
                k,
                rate: known.spread.rate,
                samples,
                available: known.available,
                attempts,
                cost: known.cost.map(|cost| cost * attempts),
                detectable: few.and_then(|few| aim.detectable(&design, few as f64)),
                too_few: few.is_some(),
            }
        })
        .collect()
}

/// Formats the rows as a table with a legend.
#[must_use]
pub fn power_console(rows: &[PowerRow], aim: ComparisonGoal, assumed: &str) -> String {
    let mut table = plain_table();
    table.set_header(["n", "k", "rate %", "samples", "in the suite", "attempts", "cost", "seen with all"]);
    for row in rows {
        let dash = || "-".to_owned();
        table.add_row([
            row.n.to_string(),
            row.k.to_string(),
            format!("{:.1}", 100.0 * row.rate),
            format!("{:.0}", row.samples),
            row.available.map_or_else(dash, |available| available.to_string()),
            format!("{:.0}", row.attempts),
            row.cost.map_or_else(dash, dollars),
            match row.detectable {
                Some(difference) => format!("{:.1} points", 100.0 * difference),
                None if row.too_few => "none".to_owned(),
                None => dash(),
            },
        ]);
    }
    let legend = format!(
        "Required to detect a difference of {:.1} points between two contenders on the same samples, with a probability of \
         {:.0}% and at a level of {:.0}%. samples: to be attempted by both, k times each. attempts, cost: of both together. \
         seen with all: if the suite has too few samples, the smallest difference that all of them can detect. The test is the sign-flip test of \
         `compare`: with fewer than {} samples its p cannot fall below {:.2}, whatever the difference. {assumed}",
        100.0 * aim.difference,
        100.0 * aim.power,
        100.0 * aim.level,
        aim.fewest(),
        1.0 - aim.level,
    );
    format!("{}\n{}\n", trimmed(table, &[]), wrap(&legend, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_attempts_need_fewer_samples_and_small_suites_detect_only_larger_differences() {
        let spread = Spread::assumed(0.5, 0.5);
        let known = PowerInput { n: 2, spread, cost: Some(0.1), available: Some(300) };
        let aim = ComparisonGoal { difference: 0.05, level: 0.95, power: 0.8 };
        let rows = power_rows(&[known], &[1, 5], aim, 0.5);
        let [one, five] = rows.as_slice() else { panic!("{rows:?}") };
        assert!(five.samples < one.samples && five.attempts > one.attempts);
        assert!((one.attempts - 2.0 * one.samples).abs() < 1e-9);
        assert!((one.cost.unwrap() - 0.1 * one.attempts).abs() < 1e-9);
        assert!(one.detectable.unwrap() > five.detectable.unwrap() && five.detectable.unwrap() > 0.05);
        let text = power_console(&rows, aim, "Assumed.");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
