//! Coverage of the intervals in simulated runs: the tables of docs/statistics.md, and quick tests of some of their
//! cells.
//!
//! There are two kinds of simulated runs. On the [`grid`], the pass probabilities of the samples are drawn from a
//! distribution with a known mean, or are all equal. In runs of the `mutant:P` [`baseline`], each masked function is
//! restored with a known probability, and an attempt passes if all functions of its sample are restored. The samples
//! are drawn as in real runs, so that they share functions and papers. For single attempts at the samples of one paper
//! nothing is simulated: [`exact`] adds up the binomial probabilities. All intervals come from the functions that
//! reports use.

mod baseline;
mod exact;
mod grid;
mod quick;
mod tables;

use super::Interval;
use super::uniform::Uniform;

impl Uniform {
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.next()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.next()).cos()
    }

    /// Draws from a gamma distribution with this shape and scale 1 (Marsaglia and Tsang, "A simple method for
    /// generating gamma variables", 2000).
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let smaller = (1.0 - self.next()).powf(1.0 / shape);
            return self.gamma(shape + 1.0) * smaller;
        }
        let d = shape - 1.0 / 3.0;
        loop {
            let x = self.normal();
            let v = (1.0 + x / (9.0 * d).sqrt()).powi(3);
            if v > 0.0 && (1.0 - self.next()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (x, y) = (self.gamma(a), self.gamma(b));
        if x + y > 0.0 { x / (x + y) } else { f64::from(u8::from(self.next() < a / (a + b))) }
    }
}

/// Counts over the intervals of many simulated runs.
#[derive(Debug, Clone, Copy, Default)]
struct IntervalCounts {
    /// Runs in which the quantity can be estimated. A slope, for example, cannot be estimated if all attempts pass.
    runs: usize,
    /// Runs that gave an interval.
    with_interval: usize,
    /// Runs whose interval contains the true value.
    held: usize,
    /// Sum of the intervals' widths.
    width: f64,
}

impl IntervalCounts {
    fn count(&mut self, interval: Option<Interval>, truth: f64) {
        self.runs += 1;
        if let Some(interval) = interval {
            self.with_interval += 1;
            self.held += usize::from(interval.low - 1e-12 <= truth && truth <= interval.high + 1e-12);
            self.width += interval.high - interval.low;
        }
    }

    /// Returns the share of intervals that contain the true value.
    fn coverage(self) -> f64 {
        self.held as f64 / self.with_interval.max(1) as f64
    }

    /// Whether at least a tenth of the runs, and at least 50, gave an interval; with fewer, the coverage is too
    /// uncertain to print.
    fn is_meaningful(self) -> bool {
        10 * self.with_interval >= self.runs && self.with_interval >= 50
    }
}
