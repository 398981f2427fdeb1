//! The standard normal distribution.

/// Returns the z with P(Z <= z) = p for p in (0, 1), by bisection: accurate to rounding, and fast enough for a few
/// calls.
#[must_use]
pub(super) fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-8.3, 8.3);
    for _ in 0..62 {
        let middle = f64::midpoint(low, high);
        if cdf(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Returns P(Z <= x), by the series 1/2 + phi(x) (x + x^3/3 + x^5/(3*5) + ...) (Marsaglia, "Evaluating the Normal
/// Distribution", 2004). All terms are positive, so nothing cancels. For negative x it is 1 - P(Z <= -x), with an
/// absolute error of about 1e-16, which is enough for intervals.
#[must_use]
pub(super) fn cdf(x: f64) -> f64 {
    if x < 0.0 {
        return 1.0 - cdf(-x);
    }
    if x > 8.3 {
        return 1.0;
    }
    let (mut sum, mut term, mut odd) = (x, x, 1.0);
    while term > sum * f64::EPSILON / 2.0 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}
