//! Simulated runs whose samples have random or equal pass probabilities.

use super::IntervalCounts;
use crate::stats::uniform::Uniform;
use crate::stats::{
    Intervals, Population, SampleValue, TryCounts, difference_interval, fit_correlated, gap_closed, pass_all_k,
    pass_at_k, rate_interval,
};

/// Names of papers.
pub(super) const NAMES: [&str; 20] =
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"];

/// Distribution of the samples' pass probabilities.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chances {
    /// All samples have this probability.
    Same(f64),
    /// A beta distribution.
    Beta(f64, f64),
    /// This share of the samples always passes; the others never pass.
    Always(f64),
}

impl Chances {
    /// Returns a beta distribution with this mean whose parameters sum to 2, so that samples vary a lot.
    pub(super) fn varying(mean: f64) -> Self {
        Self::Beta(2.0 * mean, 2.0 * (1.0 - mean))
    }

    pub(super) fn draw(self, uniform: &mut Uniform) -> f64 {
        match self {
            Self::Same(chance) => chance,
            Self::Beta(a, b) => uniform.beta(a, b),
            Self::Always(share) => f64::from(u8::from(uniform.next() < share)),
        }
    }

    /// Returns the expectation of the k-th power of the pass probability, which is the probability that all of k
    /// attempts pass.
    fn all_pass(self, k: usize) -> f64 {
        match self {
            Self::Same(chance) => chance.powi(k as i32),
            Self::Beta(a, b) => (0..k).map(|i| (a + i as f64) / (a + b + i as f64)).product(),
            Self::Always(share) => share,
        }
    }

    fn none_passes(self, k: usize) -> f64 {
        match self {
            Self::Same(chance) => Self::Same(1.0 - chance).all_pass(k),
            Self::Beta(a, b) => Self::Beta(b, a).all_pass(k),
            Self::Always(share) => 1.0 - share,
        }
    }

    pub(super) fn mean(self) -> f64 {
        self.all_pass(1)
    }
}

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub papers: usize,
    /// Samples per paper; with `uneven`, a paper has a quarter of this number, half of it, all of it or twice as many.
    pub samples: usize,
    /// Attempts per sample.
    pub k: usize,
    pub uneven: bool,
}

impl Shape {
    pub(super) fn even(papers: usize, samples: usize, k: usize) -> Self {
        Self { papers, samples, k, uneven: false }
    }

    fn of_paper(self, paper: usize) -> usize {
        let size = if self.uneven {
            [self.samples, 2 * self.samples, self.samples / 4, self.samples / 2][paper % 4]
        } else {
            self.samples
        };
        size.max(1)
    }

    /// Iterates over the samples, each with its paper's index. The samples' values are 0 until the simulation sets
    /// them.
    fn samples(self) -> impl Iterator<Item = (usize, SampleValue<'static>)> {
        (0..self.papers).flat_map(move |paper| {
            (0..self.of_paper(paper)).map(move |_| (paper, SampleValue { paper: NAMES[paper], n: 1, value: 0.0 }))
        })
    }
}

/// Joint distribution of the pass probabilities that two contenders (agents with their models) have at a sample.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pairing {
    /// Drawn independently.
    Apart,
    /// A contender passes a sample always or never. The better contender passes all samples that the other one passes.
    Nested,
}

/// The quantity that is estimated.
#[derive(Debug, Clone, Copy)]
pub(super) enum Estimand {
    /// pass@k, with k at most the run's number of attempts.
    Any(usize),
    /// pass^k.
    All(usize),
    /// pass@1, averaged over the population of papers. The papers' mean probabilities have a beta distribution, and the
    /// number is the sum of its two parameters; a larger sum makes papers more alike. The probabilities of a paper's
    /// samples equal the paper's mean or vary around it.
    Papers(f64),
    /// pass@1, averaged over the papers of the run. Their mean probabilities are drawn as for [`Estimand::Papers`],
    /// from a beta distribution with this sum of parameters. The true value is the average of the means that were
    /// drawn, weighted by the papers' numbers of samples.
    Correlated(f64),
    /// pass@1 of a second contender, whose pass probabilities have this distribution, minus pass@1 of the first
    /// contender.
    Difference(Chances, Pairing),
    /// Same as [`Estimand::Difference`], averaged over the population of papers. For each contender, the papers' mean
    /// probabilities have a beta distribution whose parameters sum to the number, as in [`Estimand::Papers`].
    PapersDifference(f64, Chances),
    /// The share of the gap between pass@1 and pass@k that a verifier closes. The verifier finds a passing attempt with
    /// this probability if there is one, and otherwise chooses at random.
    Gap(f64),
    /// The slope of the log-odds of passing over n, the number of masked functions, with equally many samples for each
    /// n from 1 to 3. The number is the slope's true value.
    Slope(f64),
}

/// Simulates `runs` runs, and counts how many of their intervals contain the true value.
pub(super) fn simulate(asked: Estimand, shape: Shape, chances: Chances, runs: usize, seed: u64) -> IntervalCounts {
    let mut uniform = Uniform(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 7);
    uniform.next();
    let mut tally = IntervalCounts::default();
    for _ in 0..runs {
        match asked {
            Estimand::Any(k) => {
                rate((pass_at_k, k), 1.0 - chances.none_passes(k), shape, chances, &mut uniform, &mut tally);
            }
            Estimand::All(k) => rate((pass_all_k, k), chances.all_pass(k), shape, chances, &mut uniform, &mut tally),
            Estimand::Papers(alike) => papers(alike, shape, chances, false, &mut uniform, &mut tally),
            Estimand::Correlated(alike) => papers(alike, shape, chances, true, &mut uniform, &mut tally),
            Estimand::Difference(second, pairing) => {
                let samples = differences(shape, [chances, second], pairing, &mut uniform);
                let interval = difference_interval(&samples, shape.k as f64, Intervals::default());
                tally.count(interval, second.mean() - chances.mean());
            }
            Estimand::PapersDifference(alike, second) => {
                papers_difference(alike, shape, [chances, second], &mut uniform, &mut tally);
            }
            Estimand::Gap(finds) => gap(finds, shape, chances, &mut uniform, &mut tally),
            Estimand::Slope(slope) => decline(slope, shape, chances, &mut uniform, &mut tally),
        }
    }
    tally
}

/// Estimates a rate at a sample from the number of attempts, the number of passed attempts, and k.
type Estimator = fn(usize, usize, usize) -> Option<f64>;

fn rate(
    (of, k): (Estimator, usize),
    truth: f64,
    shape: Shape,
    chances: Chances,
    uniform: &mut Uniform,
    tally: &mut IntervalCounts,
) {
    let trials = shape.k as f64 / k as f64;
    let measure = |(_, sample): (usize, SampleValue<'static>)| {
        let chance = chances.draw(uniform);
        SampleValue { value: of(shape.k, uniform.passes(shape.k, chance), k).unwrap_or_default(), ..sample }
    };
    let samples: Vec<_> = shape.samples().map(measure).collect();
    tally.count(rate_interval(&samples, trials, Intervals::default()), truth);
}

const PAPERS: Intervals = Intervals { level: 0.95, population: Population::Papers, group: "paper" };

/// Draws the papers' mean probabilities, around the overall mean.
fn of_papers(alike: f64, shape: Shape, mean: f64, uniform: &mut Uniform) -> Vec<f64> {
    let chance = |_| uniform.beta(alike * mean, alike * (1.0 - mean)).clamp(1e-6, 1.0 - 1e-6);
    (0..shape.papers).map(chance).collect()
}

/// Simulates papers with different means, and counts whether the interval contains the true value. If `are_these` is
/// true, the interval is for the simulated papers, and the true value is the average of their means, weighted by their
/// numbers of samples. If it is false, the interval is for the population of papers, and the true value is the
/// population's mean.
fn papers(
    alike: f64,
    shape: Shape,
    chances: Chances,
    are_these: bool,
    uniform: &mut Uniform,
    tally: &mut IntervalCounts,
) {
    let mean = chances.mean();
    let of_papers = of_papers(alike, shape, mean, uniform);
    let measure = |(paper, sample): (usize, SampleValue<'static>)| {
        let chance = match chances {
            Chances::Same(_) => of_papers[paper],
            Chances::Beta(..) => uniform.beta(4.0 * of_papers[paper], 4.0 * (1.0 - of_papers[paper])),
            Chances::Always(_) => f64::from(u8::from(uniform.next() < of_papers[paper])),
        };
        SampleValue { value: uniform.passes(shape.k, chance) as f64 / shape.k as f64, ..sample }
    };
    let samples: Vec<_> = shape.samples().map(measure).collect();
    if are_these {
        let truth = samples.iter().zip(shape.samples()).map(|(_, (paper, _))| of_papers[paper]).sum::<f64>();
        tally.count(rate_interval(&samples, shape.k as f64, Intervals::default()), truth / samples.len() as f64);
    } else {
        tally.count(rate_interval(&samples, shape.k as f64, PAPERS), mean);
    }
}

fn papers_difference(alike: f64, shape: Shape, both: [Chances; 2], uniform: &mut Uniform, tally: &mut IntervalCounts) {
    let means = both.map(Chances::mean);
    let of_papers = means.map(|mean| of_papers(alike, shape, mean, uniform));
    let measure = |(paper, sample): (usize, SampleValue<'static>)| {
        let [one, other] = [0, 1].map(|place: usize| {
            let mean = of_papers[place][paper];
            let chance = match both[place] {
                Chances::Same(_) => mean,
                Chances::Beta(..) => uniform.beta(4.0 * mean, 4.0 * (1.0 - mean)),
                Chances::Always(_) => f64::from(u8::from(uniform.next() < mean)),
            };
            uniform.passes(shape.k, chance) as f64 / shape.k as f64
        });
        SampleValue { value: other - one, ..sample }
    };
    let samples: Vec<_> = shape.samples().map(measure).collect();
    tally.count(difference_interval(&samples, shape.k as f64, PAPERS), means[1] - means[0]);
}

/// Simulates one run of two contenders. Returns, for each sample, the second contender's share of passed attempts minus
/// the first contender's.
pub(super) fn differences(
    shape: Shape,
    both: [Chances; 2],
    pairing: Pairing,
    uniform: &mut Uniform,
) -> Vec<SampleValue<'static>> {
    let measure = |(_, sample): (usize, SampleValue<'static>)| {
        let chances = match pairing {
            Pairing::Apart => both.map(|chances| chances.draw(uniform)),
            Pairing::Nested => {
                let hardness = uniform.next();
                both.map(|chances| f64::from(u8::from(hardness < chances.mean())))
            }
        };
        let [one, other] = chances.map(|chance| uniform.passes(shape.k, chance) as f64 / shape.k as f64);
        SampleValue { value: other - one, ..sample }
    };
    shape.samples().map(measure).collect()
}

fn gap(finds: f64, shape: Shape, chances: Chances, uniform: &mut Uniform, tally: &mut IntervalCounts) {
    let measure = |(_, sample): (usize, SampleValue<'static>)| {
        let chance = chances.draw(uniform);
        let passed = uniform.passes(shape.k, chance);
        let single = passed as f64 / shape.k as f64;
        let best = f64::from(u8::from(passed > 0));
        let found = uniform.next() < finds;
        let chosen = if found { best } else { f64::from(u8::from(uniform.next() < single)) };
        (sample, [single, chosen, best])
    };
    let samples: Vec<_> = shape.samples().map(measure).collect();
    // If no sample has a gap between pass@1 and pass@k, there is nothing to estimate.
    if let Some((_, interval)) = gap_closed(&samples, Intervals::default()) {
        tally.count(interval, finds);
    }
}

fn decline(slope: f64, shape: Shape, chances: Chances, uniform: &mut Uniform, tally: &mut IntervalCounts) {
    let random = if shape.papers >= 3 { shape.papers } else { 0 };
    let mut tried = Vec::new();
    for n in [1.0, 2.0, 3.0] {
        for (paper, _) in shape.samples() {
            let chance = chances.draw(uniform).clamp(1e-9, 1.0 - 1e-9);
            let log_odds = (chance / (1.0 - chance)).ln() + slope * (n - 2.0);
            let passed = uniform.passes(shape.k, 1.0 / (1.0 + (-log_odds).exp())) as f64;
            let mut terms = if random > 0 { vec![(paper, 1.0)] } else { Vec::new() };
            terms.extend([(random, 1.0), (random + 1, n)]);
            tried.push(TryCounts { terms, tries: shape.k as f64, passed });
        }
    }
    let families = if random > 0 { vec![random] } else { Vec::new() };
    // If nearly all or nearly no attempts pass, the slope cannot be fitted.
    if let Some(fit) = fit_correlated(&tried, &families, 2) {
        tally.count(Some(fit.sum(&[(random + 1, 1.0)], 0.95).1), slope);
    }
}
