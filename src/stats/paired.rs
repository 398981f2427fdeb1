//! Comparison of two runs on the same samples: is the difference more than chance?

use super::rate::{is_enough, share_interval};
use super::sampled::{Mean, two_sided};
use super::{Interval, Intervals, SampleValue};

/// Minimum number of samples for the interval of a difference.
pub const FEWEST_PAIRS: usize = 4;

/// Counts of pairs of attempts of which exactly one passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Discordant {
    /// Pairs in which only the first attempt passed.
    pub first: u64,
    /// Pairs in which only the second attempt passed.
    pub second: u64,
}

/// Returns the two-sided p-value of McNemar's exact test. Under the null hypothesis each discordant pair favours either
/// side with probability one half, so p is twice the smaller binomial tail, at most 1 (McNemar, 1947; the exact form as
/// in Fagerland, Lydersen and Laake, "The McNemar test for binary matched-pairs data", 2013, section 2).
///
/// The test assumes independent pairs. Attempts at the same sample are not independent, so pass one pair per sample.
#[must_use]
pub fn mcnemar(pairs: Discordant) -> f64 {
    let total = pairs.first + pairs.second;
    let smaller = pairs.first.min(pairs.second);
    // Sum of C(total, i) / 2^total for i up to the smaller count; computed from logarithms because the first terms
    // underflow.
    let mut log_term = -(total as f64) * std::f64::consts::LN_2;
    let mut tail = log_term.exp();
    for i in 0..smaller {
        log_term += ((total - i) as f64).ln() - ((i + 1) as f64).ln();
        tail += log_term.exp();
    }
    (2.0 * tail).min(1.0)
}

/// Adjusts m p-values for multiple comparisons: the smallest is multiplied by m, the next one by m - 1, and so on. An
/// adjusted value is at most 1, and not less than the value before it in this order (Holm, "A simple sequentially
/// rejective multiple test procedure", 1979). The result keeps the order of `p_values`.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, place) in order.into_iter().enumerate() {
        least = least.max((p_values.len() - rank) as f64 * p_values[place]).min(1.0);
        adjusted[place] = least;
    }
    adjusted
}

/// Returns the interval of a mean difference over paired samples. Each value, in [-1, 1], is the second run's rate
/// minus the first's at a sample, and each rate is based on `trials` attempts.
///
/// The interval is Student's t with the mean's degrees of freedom, computed after two artificial samples are added.
/// Their differences have opposite signs, so the mean does not change. The size of both is the root mean square of the
/// nonzero differences, but at least 1 / sqrt(a), where a is the number of attempts on which a difference is based.
/// Without the two samples, a few samples that happen to differ little would have too small a spread (for single
/// attempts: Agresti and Min, "Effects and non-effects of paired identical observations in comparing proportions with
/// binary matched-pairs data", 2004). If the variance is zero, as for equal differences, both bounds are at a distance
/// h from the mean, where h is the upper bound of the interval of a share with no success in this many samples (or
/// papers, if whole papers are drawn).
///
/// Whether 0 is inside is decided by [`sign_flip`] at the same level, so that interval and p never contradict each
/// other. If the test doesn't reject 0 but Student's interval excludes it, the interval is extended to 0. If the test
/// rejects 0 but Student's interval contains it, the bound near 0 is moved to the smallest true difference, in the
/// direction of the mean, that the same test doesn't reject.
///
/// `None` with fewer samples than [`FEWEST_PAIRS`] or, if the interval generalises to other papers, fewer papers than
/// [`FEWEST_PAPERS`](super::FEWEST_PAPERS).
#[must_use]
pub fn difference_interval(samples: &[SampleValue<'_>], trials: f64, how: Intervals) -> Option<Interval> {
    let StudentDifference { mean, interval, flipped } = student_difference(samples, trials, how)?;
    Some(in_agreement(interval, mean, &flipped, 1.0 - how.level))
}

/// A mean difference with Student's interval, before the interval is adjusted to exclude 0 if and only if the sign-flip
/// test rejects 0.
pub(super) struct StudentDifference {
    mean: f64,
    pub(super) interval: Interval,
    /// The sums whose signs the test flips, one for each sample or for each whole paper, with the number of samples in
    /// each sum.
    flipped: Vec<(f64, usize)>,
}

/// Computes the interval of [`difference_interval`] before it is adjusted to agree with the sign-flip test.
pub(super) fn student_difference(
    samples: &[SampleValue<'_>],
    trials: f64,
    how: Intervals,
) -> Option<StudentDifference> {
    let mean = Mean::over(samples, how.population)?;
    if !is_enough(&mean, how.population, FEWEST_PAIRS) {
        return None;
    }
    let draws = mean.draws as f64;
    let flipped: Vec<(f64, usize)> = if mean.papers.is_empty() {
        mean.strata.concat().into_iter().map(|value| (value, 1)).collect()
    } else {
        mean.papers.clone()
    };
    // Number of attempts on which each draw is based: those at a sample, or those at all samples of a paper.
    let trials = trials.max(1.0) * mean.count as f64 / draws;
    let half = if mean.freedom == 0 || mean.variance < 1e-15 {
        share_interval(0.0, draws, how.level).high
    } else {
        let drawn = flipped.iter().map(|&(sum, of)| sum / of as f64);
        let apart: Vec<f64> = drawn.filter(|value| value.abs() > 1e-9).map(|value| value * value).collect();
        let typical = (apart.iter().sum::<f64>() / apart.len().max(1) as f64).max(1.0 / trials);
        let variance = (mean.variance * draws * draws + 2.0 * typical) / (draws + 2.0).powi(2);
        two_sided(how.level, Some(mean.freedom)) * variance.sqrt()
    };
    let interval = Interval { low: (mean.value - half).max(-1.0), high: (mean.value + half).min(1.0) };
    Some(StudentDifference { mean: mean.value, interval, flipped })
}

/// Moves the interval's bound on the side of 0, so that the interval contains 0 if and only if the sign-flip test
/// doesn't reject 0 at this error rate.
fn in_agreement(interval: Interval, mean: f64, flipped: &[(f64, usize)], error_rate: f64) -> Interval {
    let Interval { low, high } = interval;
    match (is_rejected(flipped, 0.0, error_rate), low > 0.0 || high < 0.0) {
        (false, true) => Interval { low: low.min(0.0), high: high.max(0.0) },
        (true, false) => {
            let nearest = mean.signum() * nearest_kept(mean, flipped, error_rate);
            if mean > 0.0 { Interval { low: nearest, high } } else { Interval { low, high: nearest } }
        }
        _ => interval,
    }
}

/// Whether the sign-flip test rejects this true difference at this error rate.
fn is_rejected(flipped: &[(f64, usize)], difference: f64, error_rate: f64) -> bool {
    let shifted: Vec<f64> = flipped.iter().map(|&(sum, of)| sum - difference * of as f64).collect();
    let seen = shifted.iter().sum::<f64>().abs();
    let squares = shifted.iter().map(|value| value * value).sum::<f64>();
    // Two bounds can decide without the exact test, which is slow. If the signs are random, the sum is further from 0
    // than `far` with a probability of at most `error_rate` (Hoeffding, 1963), so a sum beyond `far` is rejected. With
    // a probability of at least a tenth, a random sum is at least as far from 0 as the root of the sum of squares
    // (Oleszkiewicz, "On the Stein property of Rademacher sequences", 1996), so a sum that is nearer to 0 has a p of at
    // least 0.1.
    let far = (2.0 * squares * (2.0 / error_rate).ln()).sqrt();
    if seen > far * (1.0 + 1e-9) {
        return true;
    }
    let is_near = error_rate <= 0.1 && seen <= squares.sqrt() * (1.0 - 1e-9);
    !is_near && sign_flip(&shifted) < error_rate
}

/// Maximum number of samples for which [`nearest_kept`] determines the bound to 1/420 instead of 1/60.
const FINE_SAMPLES: usize = 300;

/// Searches between 0, which the test rejects, and the mean for the true difference at which the test stops rejecting.
/// Returns its distance from 0, which is above 0 and at most that of the mean.
fn nearest_kept(mean: f64, flipped: &[(f64, usize)], error_rate: f64) -> f64 {
    // Try differences in steps of 1/420. Rates over up to seven attempts are multiples of it, so the test stays exact.
    let steps = if flipped.len() <= FINE_SAMPLES { f64::from(MOST_PARTS) } else { 60.0 };
    let (mut rejected, mut kept) = (0_u32, (mean.abs() * steps).ceil().max(1.0) as u32);
    while kept - rejected > 1 {
        let middle = rejected.midpoint(kept);
        if is_rejected(flipped, mean.signum() * f64::from(middle) / steps, error_rate) {
            rejected = middle;
        } else {
            kept = middle;
        }
    }
    // The bound is between `rejected` and `kept` steps. Return `rejected`, which gives the wider interval. If
    // `rejected` is 0, return half a step, because the test rejects 0 and so the interval must not contain it.
    (f64::from(rejected).max(0.5) / steps).min(mean.abs())
}

/// The test counts differences as integer multiples of a common fraction 1 / d; this is the maximum d. Differences that
/// need a larger d are rounded, such as rates over 11 attempts from which [`nearest_kept`] has subtracted a multiple of
/// 1/420.
const MOST_PARTS: u32 = 420;

/// Returns the two-sided p-value of the sign-flip permutation test of a mean difference over paired samples (Fisher,
/// "The Design of Experiments", 1935, section 21). Under the null hypothesis each sample's difference is as likely to
/// have the opposite sign, so p is the share of all sign assignments whose mean is at least as far from 0. The value is
/// exact: the distribution of the sum is built up sample by sample, with differences expressed as integer multiples of
/// a common fraction.
///
/// With single attempts the test equals McNemar's exact test.
#[must_use]
pub fn sign_flip(differences: &[f64]) -> f64 {
    let parts = parts(differences);
    let signed: Vec<i64> = differences.iter().map(|difference| (difference * parts).round() as i64).collect();
    let counts: Vec<usize> = signed.iter().map(|count| count.unsigned_abs() as usize).filter(|&it| it > 0).collect();
    let seen = signed.iter().sum::<i64>().unsigned_abs() as usize;
    // Ignore sums further from 0 than `far`, because their total probability is below 1e-17 (Hoeffding, 1963).
    let far = 9.0 * counts.iter().map(|&count| (count as f64).powi(2)).sum::<f64>().sqrt();
    let reach = counts.iter().sum::<usize>().min(far.ceil() as usize);
    if seen == 0 {
        return 1.0;
    }
    // `chances` has the probability of each sum from -reach to reach. Before and after these probabilities, it has
    // `margin` zeros, which the loop reads as the probabilities of sums beyond this range.
    let margin = counts.iter().copied().max().unwrap_or(0);
    let sums = 2 * reach + 1;
    let mut chances = vec![0.0; sums + 2 * margin];
    chances[margin + reach] = 1.0;
    let mut next = chances.clone();
    for count in counts {
        let below = &chances[margin - count..][..sums];
        let above = &chances[margin + count..][..sums];
        for ((chance, below), above) in next[margin..][..sums].iter_mut().zip(below).zip(above) {
            *chance = 0.5 * (below + above);
        }
        std::mem::swap(&mut chances, &mut next);
    }
    let beyond: f64 = chances[margin..][..sums].iter().skip((reach + seen).min(sums)).sum();
    (2.0 * beyond).clamp(1e-17, 1.0)
}

/// Returns the smallest d below [`MOST_PARTS`] for which every value is an integer multiple of 1 / d, otherwise
/// `MOST_PARTS`.
fn parts(values: &[f64]) -> f64 {
    let whole = |parts: &f64| values.iter().all(|value| ((value * parts).round() - value * parts).abs() < 1e-7);
    (1..MOST_PARTS).map(f64::from).find(whole).unwrap_or(f64::from(MOST_PARTS))
}
