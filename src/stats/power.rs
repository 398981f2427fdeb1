//! The number of samples needed to detect a difference between the pass rates of two contenders (agents with their
//! models).

use super::normal;
use super::paired::sign_flip;
use super::uniform::Uniform;

/// A contender's pass rate, and its variation between samples and between attempts at one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Mean probability of passing.
    pub rate: f64,
    /// Variance of the pass probability over samples.
    pub between: f64,
    /// Variance of a single attempt at a sample, p (1 - p), averaged over samples.
    pub within: f64,
}

impl Spread {
    /// Returns the spread for an assumed pass rate. `alike` is the share of the total variance `rate * (1 - rate)` that
    /// lies between samples: 0 if all samples are equally hard, 1 if each sample passes always or never.
    #[must_use]
    pub fn assumed(rate: f64, alike: f64) -> Self {
        let total = rate * (1.0 - rate);
        Self { rate, between: alike * total, within: (1.0 - alike) * total }
    }

    /// Estimates the spread from samples given as (attempts, passed). The variance within a sample of k attempts is
    /// estimated without bias by p (1 - p) k / (k - 1); the variance between samples is that of their rates minus what
    /// attempts contribute to it. `None` without two samples of at least two attempts each.
    #[must_use]
    pub fn estimate(samples: &[(usize, usize)]) -> Option<Self> {
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

    /// Returns the variance, over samples, of the difference between two contenders' pass rates at a sample. Both
    /// contenders are assumed to have this spread, and to make k attempts at each sample. `correlation` is the
    /// correlation of their pass probabilities over samples.
    #[must_use]
    pub fn of_difference(&self, k: usize, correlation: f64) -> f64 {
        2.0 * self.between * (1.0 - correlation) + 2.0 * self.within / k.max(1) as f64
    }
}

/// The design of a comparison of two contenders.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// Pass rate of the first contender, and its variation.
    pub spread: Spread,
    /// Attempts per sample of each contender.
    pub k: usize,
    /// Correlation over samples of the two contenders' pass probabilities.
    pub correlation: f64,
}

impl Design {
    /// Returns the share of the first contender's total variance that lies between samples.
    fn alike(&self) -> f64 {
        let Spread { between, within, .. } = self.spread;
        if between + within > 0.0 { (between / (between + within)).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Returns the second contender's pass rate: the first contender's plus the difference or, if the sum exceeds 1,
    /// minus the difference.
    fn second(&self, difference: f64) -> f64 {
        let rate = self.spread.rate;
        let second = if rate + difference <= 1.0 { rate + difference } else { rate - difference };
        second.clamp(0.0, 1.0)
    }

    /// Returns the variance, over samples, of the difference between the contenders' pass rates at a sample. It is the
    /// mean of [`Spread::of_difference`] with both at the first contender's pass rate, and with both at the second's.
    fn variance(&self, difference: f64) -> f64 {
        let second = Spread::assumed(self.second(difference), self.alike());
        f64::midpoint(
            self.spread.of_difference(self.k, self.correlation),
            second.of_difference(self.k, self.correlation),
        )
    }

    /// Simulates one comparison, and returns the difference between the contenders' pass rates at each sample. A sample
    /// is either easy or hard for a contender. The share of easy samples and the two pass probabilities give the
    /// contender its mean and its variance between samples. With a probability equal to `correlation`, one random
    /// number decides for both contenders whether a sample is easy; otherwise, each contender has its own.
    fn draw(&self, samples: usize, difference: f64, uniform: &mut Uniform) -> Vec<f64> {
        let means = [self.spread.rate, self.second(difference)];
        let apart = self.alike().sqrt();
        let chance = |mean: f64, place: f64| {
            if place < mean { mean + (1.0 - mean) * apart } else { mean * (1.0 - apart) }
        };
        let k = self.k.max(1);
        let one = |uniform: &mut Uniform| {
            let place = uniform.next();
            let is_shared = uniform.next() < self.correlation;
            let other = uniform.next();
            let places = [place, if is_shared { place } else { other }];
            let [first, second] = [0, 1].map(|at| uniform.passes(k, chance(means[at], places[at])) as f64);
            (second - first) / k as f64
        };
        (0..samples).map(|_| one(uniform)).collect()
    }

    /// Returns the share of simulated comparisons in which the sign-flip test's p is below 1 - `level`.
    fn detection_rate(&self, samples: usize, difference: f64, level: f64) -> f64 {
        let mut uniform = Uniform(samples as u64 * 1009 + self.k as u64);
        let is_seen = |_: &usize| sign_flip(&self.draw(samples, difference, &mut uniform)) < 1.0 - level;
        (0..RUNS).filter(is_seen).count() as f64 / RUNS as f64
    }

    /// Whether comparisons of this many samples are simulated. Large comparisons are not, because the exact test takes
    /// time quadratic in the number of samples.
    fn is_simulated(&self, samples: usize) -> bool {
        samples * samples * self.k.max(1) <= MOST_WORK
    }
}

/// Number of comparisons that are simulated for one number of samples. The share of them that detect the difference
/// then has a standard error of about one percentage point.
const RUNS: usize = 2000;
/// Maximum of samples² × k for which comparisons are simulated; the simulations then take some tens of milliseconds.
const MOST_WORK: usize = 20_000;

/// Goal of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonGoal {
    /// The difference to detect, such as 0.05 for five points.
    pub difference: f64,
    /// Confidence level of the two-sided test, such as 0.95.
    pub level: f64,
    /// Probability of detecting the difference if it exists, such as 0.8.
    pub power: f64,
}

impl ComparisonGoal {
    /// Returns the fewest samples with which the sign-flip test can reject at all: its smallest p is 2^-(n - 1), if the
    /// difference has the same sign at all n samples.
    #[must_use]
    pub fn fewest(&self) -> usize {
        let mut samples = 1;
        while 0.5_f64.powi(samples - 1) >= 1.0 - self.level && samples < 60 {
            samples += 1;
        }
        samples as usize
    }

    /// Returns the probability that the sign-flip test detects a difference, by normal approximation. The test compares
    /// the sum of the differences with its distribution under random signs. The variance of this distribution is n (V +
    /// d^2), with n the number of samples, and V and d the variance and the mean of a sample's difference. With k
    /// attempts at each sample, the sum takes only values in steps of 2 / k under random signs, so half a step, 1 / k,
    /// is added to the bound that the sum must exceed (a continuity correction).
    fn chance(&self, design: &Design, samples: f64, difference: f64) -> f64 {
        let variance = design.variance(difference);
        let z = normal::quantile(f64::midpoint(1.0, self.level));
        let needed = z * (samples * (variance + difference.powi(2))).sqrt() + 1.0 / design.k.max(1) as f64;
        let over = samples * difference - needed;
        let spread = (samples * variance).sqrt();
        if spread > 0.0 { normal::cdf((over / spread).clamp(-8.0, 8.0)) } else { f64::from(u8::from(over >= 0.0)) }
    }

    /// Returns the number of samples with which the sign-flip test of `compare` detects the difference with the
    /// required power. The number comes from a normal approximation (Miller, "Adding Error Bars to Evals", 2024,
    /// section 5), with the added variance and the continuity correction that `chance` describes. For few samples (up
    /// to about 140 for k = 1 and 60 for k = 5), the approximation is too coarse, so simulations with the exact test
    /// are used.
    #[must_use]
    pub fn samples(&self, design: &Design) -> f64 {
        let fewest = self.fewest();
        let approximate =
            least(fewest as f64, 1e9, |samples| self.chance(design, samples, self.difference) >= self.power);
        let mut samples = approximate.ceil();
        if !design.is_simulated(samples as usize) {
            return samples;
        }
        let is_seen = |samples: f64| design.detection_rate(samples as usize, self.difference, self.level) >= self.power;
        let step = |samples: f64| (samples / 20.0).floor().max(1.0);
        while !is_seen(samples) {
            samples += step(samples);
            if !design.is_simulated(samples as usize) {
                return samples;
            }
        }
        while samples > fewest as f64 && is_seen((samples - step(samples)).max(fewest as f64)) {
            samples = (samples - step(samples)).max(fewest as f64);
        }
        samples
    }

    /// Returns the smallest difference that this many samples detect with the required power; `None` if they detect
    /// none.
    #[must_use]
    pub fn detectable(&self, design: &Design, samples: f64) -> Option<f64> {
        let rate = design.spread.rate;
        let most = rate.max(1.0 - rate);
        let is_seen = |difference: f64| {
            if design.is_simulated(samples as usize) {
                design.detection_rate(samples as usize, difference, self.level) >= self.power
            } else {
                self.chance(design, samples, difference) >= self.power
            }
        };
        if samples < self.fewest() as f64 || !is_seen(most) {
            return None;
        }
        let (mut low, mut high) = (0.0, most);
        while high - low > 0.001 {
            let middle = f64::midpoint(low, high);
            if is_seen(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// Returns the smallest value from `low` to `high`, to a relative precision of 0.01%, from which on `holds` is true.
fn least(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(low) {
        return low;
    }
    while high / low > 1.0001 {
        let middle = (low * high).sqrt();
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assumed(rate: f64, alike: f64, k: usize) -> Design {
        Design { spread: Spread::assumed(rate, alike), k, correlation: 0.0 }
    }

    #[test]
    fn the_example_published_by_miller_needs_about_969_samples() {
        // Miller (2024), section 5: the differences have a variance of 1/9 between samples and none within samples, and
        // the difference to detect is 0.03. The sign-flip test needs 0.6% more samples than the published number,
        // because random signs add d^2 to the variance.
        let aim = ComparisonGoal { difference: 0.03, level: 0.95, power: 0.8 };
        // With rates around one half, both contenders have nearly the same variance, although their rates differ by
        // 0.03.
        let spread = Spread { rate: 0.5, between: 1.0 / 18.0, within: 7.0 / 36.0 };
        let design = Design { spread, k: 1_000_000, correlation: 0.0 };
        let samples = aim.samples(&design);
        assert!((samples / 969.0 - 1.006).abs() < 0.004, "{samples}");
        assert!((aim.detectable(&design, samples).unwrap() - 0.03).abs() < 0.001);
        // More attempts reduce only the variance within samples.
        let spread = Spread { rate: 0.5, between: 1.0 / 9.0, within: 1.0 / 6.0 };
        assert!((spread.of_difference(1, 0.5) - (1.0 / 9.0 + 1.0 / 3.0)).abs() < 1e-12);
        assert!((spread.of_difference(1_000_000, 0.5) - 1.0 / 9.0).abs() < 1e-6);
    }

    #[test]
    fn below_six_samples_no_difference_can_be_detected() {
        // The smallest p with n samples is 2^-(n - 1). So n = 6 is the first n with p below 0.05, and n = 8 the first
        // with p below 0.01.
        let aim = |level| ComparisonGoal { difference: 0.9, level, power: 0.8 };
        assert_eq!((aim(0.95).fewest(), aim(0.99).fewest()), (6, 8));
        assert_eq!(aim(0.95).detectable(&assumed(0.05, 0.0, 5), 5.0), None);
        let never_less = aim(0.95).samples(&assumed(0.05, 0.0, 5));
        assert!((never_less - 6.0).abs() < 1e-9, "{never_less}");
        // With single attempts at rates around one half, six samples rarely detect any difference.
        assert_eq!(aim(0.95).detectable(&assumed(0.5, 0.0, 1), 6.0), None);
    }

    #[test]
    fn simulated_and_approximate_power_agree_at_the_largest_number_of_samples_that_is_simulated() {
        for (k, alike) in [(1, 0.5), (5, 0.0), (5, 0.5)] {
            let design = assumed(0.4, alike, k);
            let most = (1..500).take_while(|&samples| design.is_simulated(samples)).last().unwrap();
            let aim = ComparisonGoal { difference: 0.2, level: 0.95, power: 0.8 };
            let [approximate, seen] = [aim.chance(&design, most as f64, 0.2), design.detection_rate(most, 0.2, 0.95)];
            assert!((approximate - seen).abs() < 0.03, "{approximate} {seen} with {most} samples, k = {k}");
        }
    }

    #[test]
    fn variances_between_and_within_samples_are_estimated_correctly_from_simulated_attempts() {
        // Half of the samples have the pass probability 0.2, the others 0.8. So the variance is 0.09 between samples
        // and 0.16 within samples.
        let mut uniform = Uniform(3);
        let samples: Vec<(usize, usize)> = (0..20_000)
            .map(|i| (4, (0..4).filter(|_| uniform.next() < if i % 2 == 0 { 0.2 } else { 0.8 }).count()))
            .collect();
        let spread = Spread::estimate(&samples).unwrap();
        for (got, wanted) in [(spread.rate, 0.5), (spread.between, 0.09), (spread.within, 0.16)] {
            assert!((got - wanted).abs() < 0.005, "{spread:?}");
        }
        assert_eq!(Spread::estimate(&[(1, 1), (1, 0), (5, 2)]), None);
        let assumed = Spread::assumed(0.5, 0.36);
        assert!((assumed.between - 0.09).abs() < 1e-12 && (assumed.within - 0.16).abs() < 1e-12);
    }
}
