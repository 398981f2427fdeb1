//! The beta distribution, which also gives the tails of the binomial distribution.

use std::f64::consts::PI;

/// Maximum number of terms of the continued fraction. About as many terms are needed as the square root of the larger
/// parameter.
const MOST_TERMS: usize = 20_000;

/// Returns I_x(a, b), the probability that a beta variable with positive a and b is at most x, by the continued
/// fraction 26.5.8 of Abramowitz and Stegun (1964), evaluated by Lentz's method.
#[must_use]
pub(super) fn cdf(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The continued fraction converges fast on this side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// Returns the continued fraction of the incomplete beta function, by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let away = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut ratio = 1.0;
    let mut inverse = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = inverse;
    for term in 1..MOST_TERMS {
        let term = term as f64;
        let even = term * (b - term) * x / ((a + 2.0 * term - 1.0) * (a + 2.0 * term));
        let odd = -(a + term) * (a + b + term) * x / ((a + 2.0 * term) * (a + 2.0 * term + 1.0));
        let mut factor = 1.0;
        for numerator in [even, odd] {
            inverse = 1.0 / away(1.0 + numerator * inverse);
            ratio = away(1.0 + numerator / ratio);
            factor = inverse * ratio;
            result *= factor;
        }
        if (factor - 1.0).abs() < 1e-14 {
            break;
        }
    }
    result
}

/// ln Γ(x) for positive x, by Lanczos' approximation with g = 7 and nine coefficients.
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let series = COEFFICIENTS
        .iter()
        .zip(1..)
        .fold(0.999_999_999_999_809_9, |sum, (coefficient, at)| sum + coefficient / (x + f64::from(at)));
    let t = x + 7.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beta_cdf_equals_the_binomial_tail() {
        // The probability of at least c successes in n trials of probability p is I_p(c, n - c + 1). Compare it with
        // the sum of the binomial terms.
        for n in [1_u32, 2, 5, 24, 60] {
            for p in [0.02_f64, 0.3, 0.5, 0.97] {
                let (mut term, mut above) = ((1.0 - p).powi(n as i32), 1.0);
                for c in 1..=n {
                    above -= term;
                    term *= f64::from(n - c + 1) / f64::from(c) * p / (1.0 - p);
                    let got = cdf(p, f64::from(c), f64::from(n - c + 1));
                    assert!((got - above).abs() < 1e-12, "{n} {p} {c}: {got}, wanted {above}");
                }
            }
        }
    }

    #[test]
    fn the_beta_cdf_agrees_with_closed_forms_and_is_accurate_for_large_parameters() {
        // Known values: I_x(a, 1) = x^a and I_x(1/2, 1/2) = 2/pi asin(sqrt(x)). I_x(a, a) is one half at x = 1/2 by
        // symmetry.
        assert!((cdf(0.3, 2.5, 1.0) - 0.3_f64.powf(2.5)).abs() < 1e-14);
        assert!((cdf(0.2, 0.5, 0.5) - 2.0 / PI * 0.2_f64.sqrt().asin()).abs() < 1e-13);
        for a in [0.7, 12.0, 1e3, 1e5] {
            assert!((cdf(0.5, a, a) - 0.5).abs() < 1e-8, "{a}");
        }
        assert_eq!((cdf(0.0, 2.0, 3.0), cdf(1.0, 2.0, 3.0)), (0.0, 1.0));
    }
}
