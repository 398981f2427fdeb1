//! Exact coverage of the interval of a rate, for single attempts at the samples of one paper: the number of passes is
//! binomial, so the coverage is the sum of the probabilities of all numbers of passes whose interval contains the true
//! rate.

use std::ops::RangeInclusive;

use crate::stats::{Interval, Intervals, SampleValue, rate_interval};

/// Numbers of samples for which the coverage is checked.
pub(super) const SINGLE_SAMPLES: RangeInclusive<usize> = 3..=60;

/// Returns the coverage at `steps - 1` evenly spaced rates between 0 and 1, each with its rate.
pub(super) fn exact_coverages(samples: usize, steps: usize) -> Vec<(f64, f64)> {
    let of = |passed: usize| -> Interval {
        let value = |at: usize| f64::from(u8::from(at < passed));
        let measured: Vec<SampleValue<'_>> =
            (0..samples).map(|at| SampleValue { paper: "a", n: 1, value: value(at) }).collect();
        rate_interval(&measured, 1.0, Intervals::default()).unwrap()
    };
    let intervals: Vec<Interval> = (0..=samples).map(of).collect();
    let coverage = |rate: f64| {
        let mut covered = 0.0;
        // C(samples, passed), built up term by term.
        let mut ways = 1.0;
        for (passed, interval) in intervals.iter().enumerate() {
            if interval.low - 1e-12 <= rate && rate <= interval.high + 1e-12 {
                covered += ways * rate.powi(passed as i32) * (1.0 - rate).powi((samples - passed) as i32);
            }
            ways *= (samples - passed) as f64 / (passed + 1) as f64;
        }
        covered
    };
    (1..steps).map(|step| step as f64 / steps as f64).map(|rate| (rate, coverage(rate))).collect()
}

#[test]
fn exact_intervals_for_3_to_60_samples_cover_every_true_rate_with_at_least_93_percent() {
    for samples in SINGLE_SAMPLES {
        let covered = exact_coverages(samples, 2000);
        for (rate, coverage) in &covered {
            assert!(*coverage >= 0.93, "{coverage} at a rate of {rate} with {samples} samples");
        }
        // Also limit the mean coverage, because a high coverage alone could come from intervals that are too wide.
        let mean = covered.iter().map(|(_, coverage)| coverage).sum::<f64>() / covered.len() as f64;
        assert!(mean <= 0.995, "{mean} with {samples} samples");
    }
}
