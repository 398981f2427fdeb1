//! Values measured repeatedly under the same conditions: the uncertainty of their mean and of a further value.

use super::{Interval, student};

/// Returns the standard error of the mean: the sample standard deviation over the square root of the sample size.
/// `None` with fewer than two values.
#[must_use]
pub fn standard_error(values: &[f64]) -> Option<f64> {
    let (_, deviation) = mean_and_deviation(values)?;
    Some(deviation / (values.len() as f64).sqrt())
}

/// Returns the interval that contains a further value with this probability if values are normal: mean ± t s sqrt(1 +
/// 1/n), with s the sample's standard deviation and t Student's quantile with n - 1 degrees of freedom. CORE-Bench
/// accepts values within the interval of level 0.95 (Siegel et al., "CORE-Bench: Fostering the Credibility of Published
/// Research Through a Computational Reproducibility Agent Benchmark", 2024). `None` with fewer than two values.
#[must_use]
pub fn prediction_interval(values: &[f64], level: f64) -> Option<Interval> {
    let (mean, deviation) = mean_and_deviation(values)?;
    let count = values.len() as f64;
    let half = student::quantile(f64::midpoint(1.0, level), count - 1.0) * (1.0 + 1.0 / count).sqrt() * deviation;
    Some(Interval { low: mean - half, high: mean + half })
}

/// Returns the mean, and the standard deviation with n - 1 in the denominator.
fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (mean, (squares / (n - 1.0)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prediction_intervals_and_standard_errors_match_values_computed_by_hand() {
        // The values 1, 2 and 3 have mean 2 and standard deviation 1. The interval's half width is t * sqrt(1 + 1/3),
        // with the quantile t(0.975, 2) = 4.302652729...
        let interval = prediction_interval(&[1.0, 2.0, 3.0], 0.95).unwrap();
        let half = 4.302_652_729_7 * (4.0_f64 / 3.0).sqrt();
        assert!((interval.low - (2.0 - half)).abs() < 1e-8 && (interval.high - (2.0 + half)).abs() < 1e-8);
        assert!((standard_error(&[1.0, 2.0, 3.0]).unwrap() - 3.0_f64.sqrt().recip()).abs() < 1e-12);
        assert_eq!(prediction_interval(&[0.5; 3], 0.95), Some(Interval { low: 0.5, high: 0.5 }));
        assert_eq!((prediction_interval(&[1.0], 0.95), standard_error(&[])), (None, None));
    }
}
