//! How many samples a difference between two contenders needs to be seen.

use super::normal;

/// How samples differ, and attempts at one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Mean chance of passing.
    pub rate: f64,
    /// Variance, over samples, of their chances.
    pub between: f64,
    /// Variance of a single attempt at a sample, p (1 - p), averaged over samples.
    pub within: f64,
}

impl Spread {
    /// Of an assumed rate: its variance rate (1 - rate) is that between samples to the share `alike` (0: all samples are
    /// equally hard; 1: each is passed always or never).
    #[must_use]
    pub fn assumed(rate: f64, alike: f64) -> Self {
        let total = rate * (1.0 - rate);
        Self { rate, between: alike * total, within: (1.0 - alike) * total }
    }

    /// Of samples with so many attempts, of which so many passed. The variance within a sample of k attempts is
    /// estimated without bias by p (1 - p) k / (k - 1), the one between samples is that of their rates less what attempts
    /// add to it. `None` without two samples of two attempts each.
    #[must_use]
    pub fn of(samples: &[(usize, usize)]) -> Option<Self> {
        let repeated: Vec<(f64, f64)> =
            samples.iter().filter(|(k, _)| *k > 1).map(|&(k, passed)| (k as f64, passed as f64 / k as f64)).collect();
        if repeated.len() < 2 {
            return None;
        }
        let count = repeated.len() as f64;
        let rate = repeated.iter().map(|(_, p)| p).sum::<f64>() / count;
        let of_one = |&(k, p): &(f64, f64)| p * (1.0 - p) * k / (k - 1.0);
        let within = repeated.iter().map(of_one).sum::<f64>() / count;
        let observed = repeated.iter().map(|(_, p)| (p - rate).powi(2)).sum::<f64>() / (count - 1.0);
        let noise = repeated.iter().map(|sample| of_one(sample) / sample.0).sum::<f64>() / count;
        Some(Self { rate, between: (observed - noise).max(0.0), within })
    }

    /// Variance of a sample's difference between two contenders of this spread, with k attempts each, whose chances have
    /// this correlation over samples.
    #[must_use]
    pub fn of_difference(&self, k: usize, correlation: f64) -> f64 {
        2.0 * self.between * (1.0 - correlation) + 2.0 * self.within / k.max(1) as f64
    }
}

/// What a comparison is to show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aim {
    /// The difference, as 0.05 for five points.
    pub difference: f64,
    /// Confidence level of the two-sided test, as 0.95.
    pub level: f64,
    /// Chance to see the difference if it is there, as 0.8.
    pub power: f64,
}

impl Aim {
    fn quantiles(&self) -> f64 {
        normal::quantile(f64::midpoint(1.0, self.level)) + normal::quantile(self.power)
    }

    /// Samples that both contenders need: (z + z')^2 variance / difference^2, with the variance of a sample's difference
    /// (Miller, "Adding Error Bars to Evals", 2024, section 5; normal approximation).
    #[must_use]
    pub fn samples(&self, variance: f64) -> f64 {
        (self.quantiles().powi(2) * variance / self.difference.powi(2)).ceil().max(2.0)
    }

    /// The smallest difference that so many samples show with that power.
    #[must_use]
    pub fn detectable(&self, variance: f64, samples: f64) -> f64 {
        self.quantiles() * (variance / samples).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::super::coverage::Uniform;
    use super::*;

    #[test]
    fn the_published_example_needs_969_samples() {
        // Miller (2024), section 5: a variance of differences of 1/9, no variance within, a difference of 0.03.
        let aim = Aim { difference: 0.03, level: 0.95, power: 0.8 };
        assert!((aim.samples(1.0 / 9.0) - 969.0).abs() < 1e-9);
        assert!((aim.detectable(1.0 / 9.0, 969.0) - 0.03).abs() < 1e-5);
        // Attempts take away what is within samples only.
        let spread = Spread { rate: 0.5, between: 1.0 / 9.0, within: 1.0 / 6.0 };
        assert!((spread.of_difference(1, 0.5) - (1.0 / 9.0 + 1.0 / 3.0)).abs() < 1e-12);
        assert!((spread.of_difference(1_000_000, 0.5) - 1.0 / 9.0).abs() < 1e-6);
    }

    #[test]
    fn spreads_are_found_again_from_samples() {
        // Chances of 0.2 and 0.8, half each: between 0.09, within 0.16.
        let mut uniform = Uniform(3);
        let samples: Vec<(usize, usize)> = (0..20_000)
            .map(|i| (4, (0..4).filter(|_| uniform.next() < if i % 2 == 0 { 0.2 } else { 0.8 }).count()))
            .collect();
        let spread = Spread::of(&samples).unwrap();
        for (got, wanted) in [(spread.rate, 0.5), (spread.between, 0.09), (spread.within, 0.16)] {
            assert!((got - wanted).abs() < 0.005, "{spread:?}");
        }
        assert_eq!(Spread::of(&[(1, 1), (1, 0), (5, 2)]), None);
        let assumed = Spread::assumed(0.5, 0.36);
        assert!((assumed.between - 0.09).abs() < 1e-12 && (assumed.within - 0.16).abs() < 1e-12);
    }
}
