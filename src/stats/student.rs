//! Student's t distribution.

use super::normal;

/// Degrees of freedom above which the first two terms of the expansion around the normal quantile are accurate to 1e-8.
const MANY: f64 = 2000.0;

/// Returns the t with P(T <= t) = p for p in (0.5, 1) and `freedom` degrees of freedom, by bisection.
#[must_use]
pub(super) fn quantile(p: f64, freedom: f64) -> f64 {
    if freedom > MANY {
        // Abramowitz and Stegun (1964), 26.7.5.
        let z = normal::quantile(p);
        let first = (z.powi(3) + z) / 4.0;
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        return z + first / freedom + second / freedom.powi(2);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while cdf(high, freedom) < p && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if cdf(middle, freedom) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Returns P(T <= t) for t >= 0 and a whole number of degrees of freedom, by the finite series in sines and cosines of
/// atan(t / sqrt(freedom)) (Abramowitz and Stegun, 1964, 26.7.3 and 26.7.4).
fn cdf(t: f64, freedom: f64) -> f64 {
    let angle = (t / freedom.sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let freedom = freedom as u64;
    let inside = if freedom % 2 == 1 {
        let (mut sum, mut term) = (0.0, cosine);
        let mut j = 1;
        while j + 2 <= freedom {
            sum += term;
            term *= cosine * cosine * (j + 1) as f64 / (j + 2) as f64;
            j += 2;
        }
        2.0 / std::f64::consts::PI * (angle + sine * sum)
    } else {
        let (mut sum, mut term) = (0.0, 1.0);
        let mut j = 0;
        while j + 2 <= freedom {
            sum += term;
            term *= cosine * cosine * (j + 1) as f64 / (j + 2) as f64;
            j += 2;
        }
        sine * sum
    };
    f64::midpoint(1.0, inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_published_tables() {
        for (p, freedom, wanted) in [
            (0.975, 1.0, 12.706_204_736_4),
            (0.975, 2.0, 4.302_652_729_7),
            (0.975, 3.0, 3.182_446_305_3),
            (0.975, 5.0, 2.570_581_835_6),
            (0.95, 6.0, 1.943_180_280_5),
            (0.995, 10.0, 3.169_272_672_6),
            (0.975, 1000.0, 1.962_339_080_8),
            (0.975, 10_000.0, 1.960_201_239_9),
        ] {
            let got = quantile(p, freedom);
            assert!((got - wanted).abs() < 1e-9, "{p} {freedom}: {got}, wanted {wanted}");
        }
    }
}
