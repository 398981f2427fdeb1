//! Intervals of rates averaged over samples, which hold with a handful of them.

use super::sampled::{Mean, two_sided};
use super::{Interval, Intervals, Measured, beta, wilson};

/// Variances below this are rounding.
const NOTHING: f64 = 1e-15;
/// Steps of a bisection: bounds are exact to 1e-12.
const STEPS: usize = 40;

/// The interval of a mean over samples of values in [0, 1], as a pass rate. `trials` is how many independent tries a
/// sample's value rests on: of n attempts n for pass@1, n - k + 1 for pass@k, so that n = k is a single one.
///
/// The mean is taken for the share of successes among a number of independent trials that would know it as well as these
/// samples do: the effective sample size p (1 - p) / variance, times (t' / t)^2, Student's quantiles for the trials and for the
/// samples, since the variance of few samples is itself hardly known (Korn and Graubard, "Confidence Intervals for
/// Proportions with Small Expected Number of Positive Counts Estimated from Survey Data", 1998). It is never larger than
/// what attempts that all have their stratum's chance would give. Where all samples pass, or none does, nothing is
/// known of the variance: there are as many trials as samples, or papers. The interval reaches from the lower to the higher bound
/// of two for that share: the exact binomial test with the mid-p-value (Lancaster, "Significance Tests in Discrete
/// Distributions", 1961) and Wilson's score. Each has rates at which it covers too rarely, and these differ.
///
/// `None` when there is no sample.
#[must_use]
pub fn rate_interval(samples: &[Measured<'_>], trials: f64, how: Intervals) -> Option<Interval> {
    let mean = Mean::of(samples, how.population)?;
    let share = mean.value.clamp(0.0, 1.0);
    Some(share_interval(share, effective(&mean, trials.max(1.0), how.level), how.level))
}

/// The number of independent trials that know the mean as well.
fn effective(mean: &Mean, trials: f64, level: f64) -> f64 {
    let odds = mean.value * (1.0 - mean.value);
    let draws = mean.draws as f64;
    if odds <= NOTHING || mean.freedom == 0 {
        return draws;
    }
    let all = mean.count as f64 * trials;
    let known = two_sided(level, Some((all.round() as usize).saturating_sub(1).max(mean.freedom)));
    let penalty = (known / two_sided(level, Some(mean.freedom))).powi(2);
    let (measured, most) = if mean.papers.is_empty() {
        (mean.variance * (all - 1.0) / all, least_variance(mean, trials))
    } else {
        // Papers that happen to agree are no proof that they are alike: they know at most twice what their samples would
        // if papers were nothing.
        (mean.variance, super::sampled::spread(&mean.strata[0]) / (2.0 * mean.count as f64))
    };
    let most = if most > NOTHING { odds / most } else { draws };
    if measured > NOTHING { (odds / measured * penalty).min(most) } else { most }
}

/// The variance that the mean would have if all attempts of a stratum had the same chance, which is drawn towards the
/// mean by two trials, so that no stratum's is 0.
fn least_variance(mean: &Mean, trials: f64) -> f64 {
    let all = mean.count as f64;
    let of = |values: &Vec<f64>| {
        let count = values.len() as f64;
        let chance = (values.iter().sum::<f64>() * trials + 2.0 * mean.value) / (count * trials + 2.0);
        count / (all * all) * chance * (1.0 - chance) / trials
    };
    mean.strata.iter().map(of).sum()
}

/// The interval of a share that was seen among so many trials, which need not be whole.
pub(super) fn share_interval(share: f64, trials: f64, level: f64) -> Interval {
    let exact = mid_p(share, trials, level);
    let score = wilson(share * trials, trials, level).unwrap_or(exact);
    Interval { low: exact.low.min(score.low), high: exact.high.max(score.high) }
}

/// All chances that the binomial test with the mid-p-value does not reject: half of the chance of just as many
/// successes counts.
fn mid_p(share: f64, trials: f64, level: f64) -> Interval {
    let (passed, failed) = (share * trials, (1.0 - share) * trials);
    // P(more) + P(as many) / 2, which rises with the chance.
    let above = |chance: f64| {
        let as_many = if passed > NOTHING { beta::cdf(chance, passed, failed + 1.0) } else { 1.0 };
        let more = if failed > NOTHING { beta::cdf(chance, passed + 1.0, failed) } else { 0.0 };
        f64::midpoint(as_many, more)
    };
    let place = |wanted: f64| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if above(middle) < wanted { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
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
    use crate::stats::Population;

    fn rates<'a>(paper: &'a str, values: &[f64]) -> Vec<Measured<'a>> {
        values.iter().map(|&value| Measured { paper, n: 1, value }).collect()
    }

    fn suite(samples: &[Measured<'_>], trials: f64) -> Interval {
        rate_interval(samples, trials, Intervals::default()).unwrap()
    }

    #[test]
    fn single_attempts_at_samples_of_one_paper_are_a_binomial_share() {
        // Mid-p by Python, adding up the binomial's terms as fractions; Wilson as published.
        for (passed, total, low, high) in [(3, 8, 0.1056, 0.7220), (8, 10, 0.4805, 0.9650), (81, 263, 0.2544, 0.3662)] {
            let values: Vec<f64> = (0..total).map(|at| f64::from(u8::from(at < passed))).collect();
            let interval = suite(&rates("a", &values), 1.0);
            assert!((interval.low - low).abs() < 6e-5 && (interval.high - high).abs() < 6e-5, "{passed}: {interval:?}");
        }
    }

    #[test]
    fn the_mid_p_interval_is_the_published_one() {
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
    fn where_all_pass_or_none_there_are_as_many_trials_as_samples_or_papers() {
        let all = suite(&rates("a", &[1.0; 20]), 5.0);
        assert_eq!(all, wilson(20.0, 20.0, 0.95).unwrap());
        assert_eq!(suite(&rates("a", &[0.0; 20]), 5.0).high.to_bits(), wilson(0.0, 20.0, 0.95).unwrap().high.to_bits());
        let six: Vec<Measured<'_>> =
            ["a", "b", "c", "d", "e", "f"].iter().flat_map(|paper| rates(paper, &[1.0; 40])).collect();
        let papers = Intervals { population: Population::Papers, ..Intervals::default() };
        // Mid-p reaches a little further than Wilson's 0.6097 there: 0.05^(1/6).
        let agreed = rate_interval(&six, 1.0, papers).unwrap();
        assert!((agreed.low - 0.05_f64.powf(1.0 / 6.0)).abs() < 1e-9 && agreed.high >= 1.0, "{agreed:?}");
        let single = suite(&rates("a", &[0.6]), 5.0);
        assert!(single.low < 0.1 && single.high > 0.95, "{single:?}");
        assert_eq!(rate_interval(&[], 1.0, Intervals::default()), None);
    }

    #[test]
    fn samples_that_happen_to_agree_claim_no_certainty() {
        // Two samples, each passed by 2 of 5: no better than 4 of 10.
        let agreed = suite(&rates("a", &[0.4, 0.4]), 5.0);
        let ten = share_interval(0.4, 10.0, 0.95);
        assert!(agreed.low <= ten.low + 1e-9 && agreed.high >= ten.high - 1e-9, "{agreed:?} {ten:?}");
        // Papers whose rates differ by rounding only.
        let samples = [rates("a", &[0.1, 0.2, 0.3]), rates("b", &[0.3, 0.2, 0.1])].concat();
        let papers = Intervals { population: Population::Papers, ..Intervals::default() };
        let interval = rate_interval(&samples, 10.0, papers).unwrap();
        assert!(interval.high - interval.low > 0.1, "{interval:?}");
    }

    #[test]
    fn what_differs_between_papers_and_ns_widens_only_the_interval_for_other_papers() {
        // Papers a to h with rates 0.1 to 0.8, fifty samples each.
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let samples: Vec<Measured<'_>> = (0..400)
            .map(|at| Measured { paper: names[at / 50], n: 1, value: f64::from(u8::from(at % 50 < 5 * (at / 50) + 5)) })
            .collect();
        let within: f64 = (1..9).map(|p| f64::from(p) / 10.0).map(|rate| rate * (1.0 - rate) * 50.0).sum();
        let narrow = suite(&samples, 1.0);
        assert!((narrow.high - narrow.low - 2.0 * 1.96 * within.sqrt() / 400.0).abs() < 0.006, "{narrow:?}");
        // The same with eight ns of one paper in place of eight papers.
        let ns: Vec<Measured<'_>> =
            samples.iter().enumerate().map(|(at, sample)| Measured { paper: "a", n: at / 50, ..*sample }).collect();
        let same = suite(&ns, 1.0);
        assert!((same.low - narrow.low).abs() < 1e-12 && (same.high - narrow.high).abs() < 1e-12, "{same:?}");
        let papers = Intervals { population: Population::Papers, ..Intervals::default() };
        // The papers' rates have a standard deviation of 0.2449; t with 7 degrees of freedom is 2.365.
        let wide = rate_interval(&samples, 1.0, papers).unwrap();
        assert!((wide.high - wide.low - 2.0 * 2.365 * 0.2449 / 8.0_f64.sqrt()).abs() < 0.03, "{wide:?}");
        assert_eq!(
            rate_interval(&samples[..50], 1.0, papers),
            rate_interval(&samples[..50], 1.0, Intervals::default())
        );
    }

    #[test]
    fn intervals_depend_on_no_order() {
        let mut samples = [rates("a", &[0.2, 0.6, 1.0]), rates("b", &[0.4, 0.0])].concat();
        let one = suite(&samples, 5.0);
        samples.reverse();
        let other = suite(&samples, 5.0);
        assert!((one.low - other.low).abs() < 1e-12 && (one.high - other.high).abs() < 1e-12);
    }
}
