//! Roundings of gold values among the numbers that the other rules keep.

use super::{Judged, Rule};
use crate::suite::Written;

/// Significant digits from which on a number can be a rounding of a result; one more without a decimal point.
const LEAST_DIGITS: usize = 3;

/// So precise a number agrees with a result by chance about once in ten thousand times: no question of density.
const SURE_DIGITS: usize = 5;

/// Agreements are taken for leaks when as many would come by chance with less than this probability.
const CHANCE: f64 = 0.05;

/// Marks kept numbers that are roundings of gold values.
///
/// The density guard: a text with many numbers, such as a table of settings, agrees with some gold value by chance. For
/// each number the chance is the share of the numbers of its precision and order of magnitude that round some gold
/// value; what the chances add up to is the mean of a Poisson distribution. If as many agreements as there are would be
/// no surprise under it, only those with five digits and more are removed.
pub(super) fn judge(text: &str, judged: &mut [Judged], gold: &[f64]) {
    if gold.is_empty() {
        return;
    }
    let mut sorted: Vec<f64> = gold.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let mut expected = 0.0;
    let mut hits = Vec::new();
    for (place, number) in judged.iter().enumerate().filter(|(_, number)| !number.remove) {
        if matches!(number.rule, Rule::Bibliography | Rule::Layout | Rule::Markup | Rule::Version | Rule::Date) {
            continue;
        }
        let plain = text[number.range.clone()].replace("{,}", "").replace("\\,", "").replace('_', "");
        let Some(written) = Written::read(&plain, LEAST_DIGITS) else { continue };
        if near(&sorted, &written).any(|value| written.is(value)) {
            hits.push((place, written.digits));
        }
        expected += by_chance(&sorted, &written);
    }
    let surprising = at_least(hits.len(), expected) < CHANCE;
    for (place, digits) in hits {
        if surprising || digits >= SURE_DIGITS {
            judged[place].remove = true;
            judged[place].rule = Rule::Gold;
            judged[place].cue = None;
        }
    }
}

/// Gold values within a thousandth and a half of the number: those that it can be a rounding of, and few others.
fn near<'a>(sorted: &'a [f64], written: &Written) -> impl Iterator<Item = f64> + 'a {
    let value = written.value;
    let around = value.abs() * 0.0051 + f64::MIN_POSITIVE;
    let from = sorted.partition_point(|gold| *gold < value - around);
    sorted[from..].iter().copied().take_while(move |gold| *gold <= value + around)
}

/// The share of the numbers with as many digits and of the same order of magnitude that round some gold value.
fn by_chance(sorted: &[f64], written: &Written) -> f64 {
    let magnitude = written.value.abs().log10().floor();
    let (low, high) = (10_f64.powf(magnitude), 10_f64.powf(magnitude + 1.0));
    let sign = written.value.signum();
    let (from, to) = if sign < 0.0 { (-high, -low) } else { (low, high) };
    let count = sorted.partition_point(|gold| *gold < to) - sorted.partition_point(|gold| *gold < from);
    let writings = 9.0 * 10_f64.powi(written.digits as i32 - 1);
    (count as f64 / writings).min(1.0)
}

/// The probability that a Poisson variable of this mean is at least `count`.
fn at_least(count: usize, mean: f64) -> f64 {
    if count == 0 {
        return 1.0;
    }
    let mut term = (-mean).exp();
    let mut below = 0.0;
    for k in 0..count {
        below += term;
        term *= mean / (k as f64 + 1.0);
    }
    (1.0 - below).max(0.0)
}
