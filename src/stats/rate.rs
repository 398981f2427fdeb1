//! Intervals of rates averaged over samples. The intervals remain valid with only a few samples.

use super::sampled::{Mean, spread, two_sided};
use super::{Interval, Intervals, Population, SampleValue, beta, wilson};

/// Variances below this are rounding errors.
const NOTHING: f64 = 1e-15;
/// Maximum number of search steps; bounds are accurate to 1e-12.
const STEPS: usize = 100;

/// Minimum number of samples for an interval.
pub const FEWEST_SAMPLES: usize = 3;
/// Minimum number of papers for an interval that generalises to other papers.
pub const FEWEST_PAPERS: usize = 2;

/// Returns the interval of a mean over samples of values in [0, 1], such as a pass rate. `trials` is the number of
/// independent trials behind a sample's value: for pass@k with n attempts it is n / k, which is one trial if n = k.
///
/// The mean is treated as the share of successes in a number of independent trials with the same uncertainty. This
/// effective number of trials is p (1 - p) / variance, times (t' / t)^2. Here, t' and t are Student's quantiles for the
/// trials and for the samples. The factor is needed because the variance of a few samples is itself uncertain (Korn and
/// Graubard, "Confidence Intervals for Proportions with Small Expected Number of Positive Counts Estimated from Survey
/// Data", 1998).
///
/// The variance is that of the samples, shrunk towards the variance that would result if all attempts at a sample ended
/// alike ([`PRIOR_SAMPLES`]) or, for [`Population::Papers`], if papers accounted for a fifth of the variance
/// ([`PRIOR_PAPERS`]). The effective number is at most the number that would result if all attempts of a stratum had
/// the same pass probability. If all samples pass, or all fail, the variance is unknown, and the effective number is
/// the number of samples or papers.
///
/// The interval is the smallest one that contains two intervals for that share: the exact binomial test with the
/// mid-p-value (Lancaster, "Significance Tests in Discrete Distributions", 1961) and Wilson's score interval. For some
/// true rates, the first interval contains the true rate too seldom; for mostly different ones, the second does. With
/// up to about 30 trials, both do so for some of the same rates. So with n trials, the test's error rate is multiplied
/// by n / (n + 3), or by three quarters if that is more. With single attempts at 3 to 60 samples of a paper, the
/// interval then contains every true rate with a probability of at least 93.3%.
///
/// `None` with fewer samples than [`FEWEST_SAMPLES`] or, if the interval generalises to other papers, fewer papers than
/// [`FEWEST_PAPERS`]: no useful interval is valid there.
#[must_use]
pub fn rate_interval(samples: &[SampleValue<'_>], trials: f64, how: Intervals) -> Option<Interval> {
    let mean = Mean::over(samples, how.population)?;
    if !is_enough(&mean, how.population, FEWEST_SAMPLES) {
        return None;
    }
    let share = mean.value.clamp(0.0, 1.0);
    Some(share_interval(share, effective(&mean, trials.max(1.0), how.level), how.level))
}

/// Returns the interval of a weighted mean over samples, such as a pass rate with the samples' lines of code as
/// weights: the sum of weight times value over the sum of weights.
///
/// The ratio is linearised, which gives each sample a value, and the method of [`rate_interval`] is applied to these
/// values (Cochran, "Sampling Techniques", 1977, section 6.3). The effective number of trials is at most the number of
/// equally weighted samples with the same information, that is, the squared sum of weights over the sum of squared
/// weights (Kish, "Survey Sampling", 1965).
#[must_use]
pub fn weighted_rate_interval(samples: &[SampleValue<'_>], weights: &[f64], how: Intervals) -> Option<Interval> {
    let all: f64 = weights.iter().sum();
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    if samples.len() != weights.len() || all <= 0.0 {
        return None;
    }
    let rate = samples.iter().zip(weights).map(|(sample, weight)| sample.value * weight).sum::<f64>() / all;
    let mean_weight = all / weights.len() as f64;
    let linear: Vec<SampleValue<'_>> = samples
        .iter()
        .zip(weights)
        .map(|(sample, weight)| SampleValue { value: rate + weight / mean_weight * (sample.value - rate), ..*sample })
        .collect();
    let mean = Mean::over(&linear, how.population)?;
    if !is_enough(&mean, how.population, FEWEST_SAMPLES) {
        return None;
    }
    let most = (all * all / squares).min(mean.draws as f64);
    let odds = rate * (1.0 - rate);
    if odds <= NOTHING || mean.freedom == 0 {
        return Some(share_interval(rate, most, how.level));
    }
    let freedom = mean.freedom as f64 + PRIOR_SAMPLES;
    let variance = (mean.freedom as f64 * mean.variance + PRIOR_SAMPLES * odds / most) / freedom;
    let known = two_sided(how.level, Some((samples.len() - 1).max(1)));
    let penalty = (known / two_sided(how.level, Some(freedom.round() as usize))).powi(2);
    Some(share_interval(rate, (odds / variance * penalty).min(most), how.level))
}

/// Whether there are enough samples and, for [`Population::Papers`], enough papers for an interval.
pub(super) fn is_enough(mean: &Mean, population: Population, fewest: usize) -> bool {
    mean.count >= fewest && (population == Population::Suite || mean.papers.len() >= FEWEST_PAPERS)
}

/// The weight, as a number of samples, of the prior assumption that all attempts at one sample end alike.
const PRIOR_SAMPLES: f64 = 1.0;
/// The weight, as a number of papers, of the prior assumption that papers account for [`PRIOR_SHARE`] of the variance.
const PRIOR_PAPERS: f64 = 6.0;
/// How much of the variance of single attempts is assumed to come from differences between papers, as a share.
const PRIOR_SHARE: f64 = 0.2;

/// Returns the effective number of independent trials of a mean, see [`rate_interval`].
fn effective(mean: &Mean, trials: f64, level: f64) -> f64 {
    let odds = mean.value * (1.0 - mean.value);
    let draws = mean.draws as f64;
    if odds <= NOTHING || mean.freedom == 0 {
        return draws;
    }
    let all = mean.count as f64 * trials;
    let (weight, prior, measured, most) = if mean.papers.is_empty() {
        let measured = mean.variance * (all - 1.0) / all;
        (PRIOR_SAMPLES, odds / draws, measured, least_variance(mean, trials))
    } else {
        // Papers may have similar rates by chance. So assume at least half of the variance that the mean would have if
        // the samples were independent draws.
        let within = spread(&mean.strata[0]) / mean.count as f64;
        (PRIOR_PAPERS, PRIOR_SHARE * odds / draws + within, mean.variance, within / 2.0)
    };
    let freedom = mean.freedom as f64 + weight;
    let variance = (mean.freedom as f64 * measured + weight * prior) / freedom;
    let freedom = freedom.round() as usize;
    let known = two_sided(level, Some((all.round() as usize).saturating_sub(1).max(freedom)));
    let penalty = (known / two_sided(level, Some(freedom))).powi(2);
    let most = if most > NOTHING { odds / most } else { draws };
    (odds / variance * penalty).min(most)
}

/// Returns the variance that the mean would have if all attempts of a stratum had the same pass probability. To
/// estimate this probability, two trials with the overall mean are added, so that no stratum's variance is 0.
fn least_variance(mean: &Mean, trials: f64) -> f64 {
    let all = mean.count as f64;
    let of = |values: &Vec<f64>| {
        let count = values.len() as f64;
        let chance = (values.iter().sum::<f64>() * trials + 2.0 * mean.value) / (count * trials + 2.0);
        count / (all * all) * chance * (1.0 - chance) / trials
    };
    mean.strata.iter().map(of).sum()
}

/// The error rate of the mid-p interval is the requested one times n / (n + `FEW_TRIALS`) for n trials, but at least
/// [`LOWEST_RATE`] times the requested one.
const FEW_TRIALS: f64 = 3.0;
/// Lowest error rate of the mid-p interval, as a share of the requested error rate.
const LOWEST_RATE: f64 = 0.75;

/// Returns the interval of a share of successes among a number of trials, which may be fractional.
pub(super) fn share_interval(share: f64, trials: f64, level: f64) -> Interval {
    // With few trials, few outcomes are possible. At some true rates, the intervals of both methods then miss the true
    // rate too often, so lower the error rate of the exact test.
    let error_rate = (1.0 - level) * (trials / (trials + FEW_TRIALS)).max(LOWEST_RATE);
    let exact = mid_p(share, trials, 1.0 - error_rate);
    let score = wilson(share * trials, trials, level).unwrap_or(exact);
    Interval { low: exact.low.min(score.low), high: exact.high.max(score.high) }
}

/// Returns the interval of all probabilities that the binomial test does not reject. The test uses the mid-p-value, to
/// which the observed outcome contributes only half of its probability.
fn mid_p(share: f64, trials: f64, level: f64) -> Interval {
    let (passed, failed) = (share * trials, (1.0 - share) * trials);
    // P(more successes than observed) + P(as many as observed) / 2, which increases with `chance`.
    let above = |chance: f64| {
        let as_many = if passed > NOTHING { beta::cdf(chance, passed, failed + 1.0) } else { 1.0 };
        let more = if failed > NOTHING { beta::cdf(chance, passed + 1.0, failed) } else { 0.0 };
        f64::midpoint(as_many, more)
    };
    // Find a root by false position (the Illinois variant: the function value at the bound that does not move is
    // halved).
    let place = |wanted: f64| {
        let (mut low, mut high) = ((0.0, -wanted), (1.0, 1.0 - wanted));
        for _ in 0..STEPS {
            let middle = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
            let at = above(middle) - wanted;
            if at.abs() < 1e-13 || high.0 - low.0 < 1e-13 {
                return middle;
            }
            if (at < 0.0) == (low.1 < 0.0) {
                (low, high.1) = ((middle, at), high.1 / 2.0);
            } else {
                (high, low.1) = ((middle, at), low.1 / 2.0);
            }
        }
        f64::midpoint(low.0, high.0)
    };
    let tail = (1.0 - level) / 2.0;
    Interval {
        low: if passed > NOTHING { place(tail) } else { 0.0 },
        high: if failed > NOTHING { place(1.0 - tail) } else { 1.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_weighted_rates_cover_the_true_rate_as_often_as_they_should() {
        let how = Intervals { population: Population::Suite, ..Intervals::default() };
        let equal = rates("a", &[1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
        let (weighed, plain) = (weighted_rate_interval(&equal, &[7.0; 6], how), rate_interval(&equal, 1.0, how));
        let (weighed, plain) = (weighed.unwrap(), plain.unwrap());
        assert!(
            (weighed.low - plain.low).abs() < 0.1 && (weighed.high - plain.high).abs() < 0.1,
            "{weighed:?} {plain:?}"
        );
        assert_eq!(weighted_rate_interval(&equal[..2], &[1.0; 2], how), None);
        // 20 samples of 1 to 20 lines whose pass probability rises with length from 0.2 to 0.8.
        let weights: Vec<f64> = (1..=20).map(f64::from).collect();
        let chance = |place: usize| 0.2 + 0.6 * place as f64 / 19.0;
        let truth = weights.iter().enumerate().map(|(place, weight)| weight * chance(place)).sum::<f64>() / 210.0;
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1_u32 << 31)
        };
        let covered = (0..1000)
            .filter(|_| {
                let values: Vec<f64> = (0..20).map(|place| f64::from(u8::from(next() < chance(place)))).collect();
                let interval = weighted_rate_interval(&rates("a", &values), &weights, how).unwrap();
                (interval.low..=interval.high).contains(&truth)
            })
            .count();
        assert!((930..=1000).contains(&covered), "{covered} of 1000");
    }

    fn rates<'a>(paper: &'a str, values: &[f64]) -> Vec<SampleValue<'a>> {
        values.iter().map(|&value| SampleValue { paper, n: 1, value }).collect()
    }

    fn suite(samples: &[SampleValue<'_>], trials: f64) -> Interval {
        rate_interval(samples, trials, Intervals::default()).unwrap()
    }

    #[test]
    fn the_rate_of_one_papers_samples_has_a_binomial_interval_if_each_sample_has_one_attempt() {
        // The last upper bound is that of Wilson's interval, as published. All other bounds are those of the mid-p
        // interval, computed in Python by summing the binomial terms, with error rates of 0.0375, 0.05 * 10 / 13 and
        // 0.05 * 263 / 266.
        for (passed, total, low, high) in [(3, 8, 0.0950, 0.7399), (8, 10, 0.4624, 0.9695), (81, 263, 0.2543, 0.3662)] {
            let values: Vec<f64> = (0..total).map(|at| f64::from(u8::from(at < passed))).collect();
            let interval = suite(&rates("a", &values), 1.0);
            assert!((interval.low - low).abs() < 6e-5 && (interval.high - high).abs() < 6e-5, "{passed}: {interval:?}");
        }
    }

    #[test]
    fn the_mid_p_interval_agrees_with_newcombes_published_table() {
        // Newcombe (1998), table I, method 6: 81 of 263, 15 of 148, 0 of 20 and 1 of 29.
        for (passed, total, low, high) in [
            (81.0, 263.0, 0.2544, 0.3658),
            (15.0, 148.0, 0.0601, 0.1581),
            (0.0, 20.0, 0.0, 0.1391),
            (1.0, 29.0, 0.0017, 0.1585),
        ] {
            let interval = mid_p(passed / total, total, 0.95);
            assert!((interval.low - low).abs() < 6e-5 && (interval.high - high).abs() < 6e-5, "{passed}: {interval:?}");
        }
    }

    #[test]
    fn if_all_or_no_samples_pass_the_interval_counts_each_sample_or_paper_as_one_trial() {
        let all = suite(&rates("a", &[1.0; 20]), 5.0);
        assert_eq!(all, wilson(20.0, 20.0, 0.95).unwrap());
        assert_eq!(suite(&rates("a", &[0.0; 20]), 5.0).high.to_bits(), wilson(0.0, 20.0, 0.95).unwrap().high.to_bits());
        let six: Vec<SampleValue<'_>> =
            ["a", "b", "c", "d", "e", "f"].iter().flat_map(|paper| rates(paper, &[1.0; 40])).collect();
        let papers = Intervals { population: Population::Papers, ..Intervals::default() };
        // All six papers pass, so they count as six trials. With so few trials, the mid-p interval has the lowest error
        // rate, `LOWEST_RATE` * 5% = 3.75%. Its lower bound, 0.0375^(1/6), is below Wilson's, 0.6097.
        let agreed = rate_interval(&six, 1.0, papers).unwrap();
        assert!((agreed.low - 0.0375_f64.powf(1.0 / 6.0)).abs() < 1e-9 && agreed.high >= 1.0, "{agreed:?}");
        assert_eq!(
            rate_interval(&rates("a", &[1.0; 2]), 5.0, Intervals::default()),
            None,
            "two samples tell too little"
        );
        assert_eq!(rate_interval(&[], 1.0, Intervals::default()), None);
    }

    #[test]
    fn intervals_do_not_vanish_when_samples_or_papers_agree() {
        // If three samples pass 2 of 5 attempts each, the interval must not be narrower than that of 6 passes in 15
        // trials.
        let agreed = suite(&rates("a", &[0.4; 3]), 5.0);
        let fifteen = share_interval(0.4, 15.0, 0.95);
        assert!(agreed.low <= fifteen.low + 1e-9 && agreed.high >= fifteen.high - 1e-9, "{agreed:?} {fifteen:?}");
        // Two papers whose rates are equal except for rounding.
        let samples = [rates("a", &[0.1, 0.2, 0.3]), rates("b", &[0.3, 0.2, 0.1])].concat();
        let papers = Intervals { population: Population::Papers, ..Intervals::default() };
        let interval = rate_interval(&samples, 10.0, papers).unwrap();
        assert!(interval.high - interval.low > 0.1, "{interval:?}");
    }

    #[test]
    fn differences_between_papers_widen_only_intervals_that_generalise_to_other_papers() {
        // Papers a to h with rates 0.1 to 0.8 and fifty samples each.
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let samples: Vec<SampleValue<'_>> = (0..400)
            .map(|at| SampleValue {
                paper: names[at / 50],
                n: 1,
                value: f64::from(u8::from(at % 50 < 5 * (at / 50) + 5)),
            })
            .collect();
        let within: f64 = (1..9).map(|p| f64::from(p) / 10.0).map(|rate| rate * (1.0 - rate) * 50.0).sum();
        let narrow = suite(&samples, 1.0);
        assert!((narrow.high - narrow.low - 2.0 * 1.96 * within.sqrt() / 400.0).abs() < 0.006, "{narrow:?}");
        // Assign the same samples to one paper, with eight different numbers of masked functions, instead of to eight
        // papers.
        let ns: Vec<SampleValue<'_>> =
            samples.iter().enumerate().map(|(at, sample)| SampleValue { paper: "a", n: at / 50, ..*sample }).collect();
        let same = suite(&ns, 1.0);
        assert!((same.low - narrow.low).abs() < 1e-12 && (same.high - narrow.high).abs() < 1e-12, "{same:?}");
        let papers = Intervals { population: Population::Papers, ..Intervals::default() };
        // The 8 papers' rates have a standard deviation of 0.2449, so the measured variance of their mean is 0.0075. By
        // the prior assumption, papers account for 0.2 of the variance of single attempts, which is 0.45 * 0.55 =
        // 0.2475. So the prior variance of the mean of 8 papers is 0.2 * 0.2475 / 8, plus 0.0006 for the mean of 400
        // samples. The mean of the two variances, weighted by 7 and 6 degrees of freedom, is 0.00718. Student's t for
        // 13 degrees of freedom is 2.160.
        let wide = rate_interval(&samples, 1.0, papers).unwrap();
        assert!((wide.high - wide.low - 2.0 * 2.160 * 0.00718_f64.sqrt()).abs() < 0.02, "{wide:?}");
        assert_eq!(rate_interval(&samples[..50], 1.0, papers), None, "one paper says nothing about others");
    }

    #[test]
    fn intervals_do_not_depend_on_the_order_of_samples() {
        let mut samples = [rates("a", &[0.2, 0.6, 1.0]), rates("b", &[0.4, 0.0])].concat();
        let one = suite(&samples, 5.0);
        samples.reverse();
        let other = suite(&samples, 5.0);
        assert!((one.low - other.low).abs() < 1e-12 && (one.high - other.high).abs() < 1e-12);
    }
}
