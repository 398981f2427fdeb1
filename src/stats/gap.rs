//! Computes how much of the gap between a lower and an upper rate (such as pass@1 and pass@k) a rate in the middle
//! closes, such as the pass rate of the attempts that a verifier chose.

use super::{Interval, Intervals, SampleValue, rate_interval};

/// Minimum number of samples with a gap between their lower and upper rates, below which no interval is computed.
const FEWEST: usize = 3;
/// Gaps below this are rounding errors.
const NOTHING: f64 = 1e-9;

/// Returns the share of the gap that the middle rate closes, (middle - lower) / (upper - lower), where each rate is
/// averaged over samples, and the interval of this share. Each sample contains `[lower, middle, upper]`. Returns `None`
/// if no sample has a gap.
///
/// Samples without a gap contain no information about the share and are left out. The share is computed as 1 -
/// mean(upper - middle) / mean(upper - lower). Its denominator is taken as exact. Its numerator is a mean of values
/// from 0 to 1, so the interval comes from [`rate_interval`]. If fewer than three samples have a gap, there is no
/// interval.
#[must_use]
pub fn gap_closed(samples: &[(SampleValue<'_>, [f64; 3])], how: Intervals) -> Option<(f64, Option<Interval>)> {
    let mut missed = Vec::new();
    let mut gaps = 0.0;
    for (sample, [lower, middle, upper]) in samples {
        if upper - lower > NOTHING {
            missed.push(SampleValue { value: upper - middle, ..*sample });
            gaps += upper - lower;
        }
    }
    if missed.is_empty() {
        return None;
    }
    let gap = gaps / missed.len() as f64;
    let share = 1.0 - missed.iter().map(|sample| sample.value).sum::<f64>() / gaps;
    let interval = rate_interval(&missed, 1.0, how).filter(|_| missed.len() >= FEWEST);
    let interval = interval.map(|of| Interval { low: 1.0 - of.high / gap, high: 1.0 - of.low / gap });
    Some((share, interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[[f64; 3]]) -> Vec<(SampleValue<'static>, [f64; 3])> {
        values.iter().map(|&values| (SampleValue { paper: "a", n: 1, value: 0.0 }, values)).collect()
    }

    #[test]
    fn the_share_of_the_gap_between_pass_rates_that_a_verifier_closes_has_an_interval() {
        // Each sample has the values of pass@1, of the verifier's pass rate and of pass@k. On average, pass@1 is 0.2
        // and pass@k is 0.6. Of the 100 samples, 40 have a gap between pass@1 and pass@k, and the verifier passes 20 of
        // these 40.
        let values: Vec<[f64; 3]> = (0..100)
            .map(|at| match at {
                0..20 => [1.0, 1.0, 1.0],
                20..40 => [0.0, 1.0, 1.0],
                40..60 => [0.0, 0.0, 1.0],
                _ => [0.0; 3],
            })
            .collect();
        let (share, interval) = gap_closed(&samples(&values), Intervals::default()).unwrap();
        let interval = interval.unwrap();
        assert!((share - 0.5).abs() < 1e-12);
        // The share is binomial with 40 trials, so its standard error is 0.079.
        assert!((interval.low - 0.345).abs() < 0.015 && (interval.high - 0.655).abs() < 0.015, "{interval:?}");
        assert_eq!(gap_closed(&samples(&[[1.0; 3]; 5]), Intervals::default()), None);
        assert_eq!(gap_closed(&[], Intervals::default()), None);
    }

    #[test]
    fn the_interval_of_a_completely_closed_gap_in_pass_rates_requires_more_than_two_samples() {
        let (share, interval) = gap_closed(&samples(&[[0.4, 1.0, 1.0]; 8]), Intervals::default()).unwrap();
        let interval = interval.unwrap();
        assert!(
            (share - 1.0).abs() < 1e-12 && interval.low < 0.6 && (interval.high - 1.0).abs() < 1e-12,
            "{interval:?}"
        );
        // If a verifier chooses worse than chance, its share of the gap is negative.
        let (share, interval) = gap_closed(&samples(&[[0.4, 0.0, 1.0]; 8]), Intervals::default()).unwrap();
        assert!((share + 2.0 / 3.0).abs() < 1e-12 && interval.unwrap().low < share + 1e-9);
        assert_eq!(gap_closed(&samples(&[[0.4, 1.0, 1.0]; 2]), Intervals::default()).unwrap().1, None);
    }
}
