//! pass@k of one sample, and the interval of a proportion.

use super::{Interval, normal};

/// Returns the probability that at least one of k attempts passes, estimated without bias from n attempts of which c
/// passed: `1 - C(n-c, k) / C(n, k)`, as a product that neither overflows nor cancels (Chen et al., "Evaluating Large
/// Language Models Trained on Code", 2021, section 2.1 and figure 3). Average it over samples, not over attempts.
///
/// `None` if n < k, k = 0 or c > n.
#[must_use]
pub fn pass_at_k(n: usize, c: usize, k: usize) -> Option<f64> {
    if k == 0 || n < k || c > n {
        return None;
    }
    if n - c < k {
        return Some(1.0);
    }
    // Iterates over the smaller of c and k: C(n-c, k) / C(n, k) is symmetric in the two.
    let (few, many) = (c.min(k), c.max(k));
    let none = (0..few).map(|i| 1.0 - many as f64 / (n - i) as f64).product::<f64>();
    Some(1.0 - none)
}

/// Returns the probability that all of k attempts pass, estimated without bias from n attempts of which c passed: C(c,
/// k) / C(n, k) (pass^k, Yao et al., "tau-bench", 2024, section 3). Average it over samples, not over attempts.
///
/// `None` if n < k, k = 0 or c > n.
#[must_use]
pub fn pass_all_k(n: usize, c: usize, k: usize) -> Option<f64> {
    if k == 0 || n < k || c > n {
        return None;
    }
    // If k > c, a factor is 0 before any factor would be negative.
    Some((0..k).map(|i| c.saturating_sub(i) as f64 / (n - i) as f64).product())
}

/// Returns Wilson's score interval of a proportion (Wilson, 1927); `level` is a fraction such as 0.95. The interval is
/// never empty, lies within [0, 1], and has a sensible width even if no or all trials succeed. `successes` may be
/// fractional, as a sum of rates is.
///
/// `None` if `total` is not positive, `successes` is outside [0, total] or `level` outside (0, 1).
#[must_use]
pub fn wilson(successes: f64, total: f64, level: f64) -> Option<Interval> {
    if !(total > 0.0 && (0.0..=total).contains(&successes) && level > 0.0 && level < 1.0) {
        return None;
    }
    let z = normal::quantile(f64::midpoint(1.0, level));
    let p = successes / total;
    let z2 = z * z / total;
    let centre = (p + z2 / 2.0) / (1.0 + z2);
    let half = z / (1.0 + z2) * (p * (1.0 - p) / total + z2 / (4.0 * total)).sqrt();
    // If no or all trials succeed, one bound is exactly 0 or 1. Set it directly, to avoid rounding errors.
    let low = if successes == 0.0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if successes >= total { 1.0 } else { (centre + half).min(1.0) };
    Some(Interval { low, high })
}
