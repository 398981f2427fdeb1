//! How often intervals cover the truth, by simulated runs: the tables of docs/statistics.md, and a quick form of them.
//!
//! Two kinds of runs. On the *grid*, each sample has a chance of its own, drawn from a distribution whose mean is known, or
//! all have the same. In runs of the `mutant:P` baseline each masked function is restored with a known chance, an attempt
//! passes when all of them are, and samples are drawn as a run draws them, so that they share functions and papers.

use super::{
    Aim, Intervals, Measured, Population, Spread, difference_interval, gap_closed, pass_all_k, pass_at_k,
    rate_interval, sign_flip,
};
use crate::sample::{Nesting, draw};

/// Names of papers.
const NAMES: [&str; 20] =
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"];

/// A generator for simulations, deterministic, so that these tests cannot flake (Knuth's MMIX constants).
pub(super) struct Uniform(pub(super) u64);

impl Uniform {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.next()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.next()).cos()
    }

    /// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
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

    /// How many of k attempts pass.
    fn passes(&mut self, k: usize, chance: f64) -> usize {
        (0..k).filter(|_| self.next() < chance).count()
    }
}

/// Where a sample's chance comes from.
#[derive(Debug, Clone, Copy)]
enum Chances {
    /// All samples have the same.
    Same(f64),
    /// A beta distribution.
    Beta(f64, f64),
}

impl Chances {
    /// Chances that differ much from sample to sample, with this mean: a beta distribution whose parameters sum to 2.
    fn varying(mean: f64) -> Self {
        Self::Beta(2.0 * mean, 2.0 * (1.0 - mean))
    }

    fn draw(self, uniform: &mut Uniform) -> f64 {
        match self {
            Self::Same(chance) => chance,
            Self::Beta(a, b) => uniform.beta(a, b),
        }
    }

    /// The expectation of the chance to the power of k: that all of k attempts pass.
    fn all_pass(self, k: usize) -> f64 {
        match self {
            Self::Same(chance) => chance.powi(k as i32),
            Self::Beta(a, b) => (0..k).map(|i| (a + i as f64) / (a + b + i as f64)).product(),
        }
    }

    fn none_passes(self, k: usize) -> f64 {
        match self {
            Self::Same(chance) => Self::Same(1.0 - chance).all_pass(k),
            Self::Beta(a, b) => Self::Beta(b, a).all_pass(k),
        }
    }
}

/// A run on the grid.
#[derive(Debug, Clone, Copy)]
struct Shape {
    papers: usize,
    /// Samples a paper.
    samples: usize,
    /// Attempts a sample.
    k: usize,
}

impl Shape {
    /// Each sample with its paper; values are 0.
    fn samples(self) -> impl Iterator<Item = Measured<'static>> {
        (0..self.papers * self.samples).map(move |at| Measured { paper: NAMES[at / self.samples], n: 1, value: 0.0 })
    }
}

/// What is covered on the grid.
#[derive(Debug, Clone, Copy)]
enum Rate {
    Single,
    /// pass@3.
    Any3,
    /// pass^3.
    All3,
}

/// The share of runs whose interval holds the truth.
fn share_of(runs: usize, mut is_covered: impl FnMut() -> Option<bool>) -> f64 {
    let (mut covered, mut counted) = (0_usize, 0_usize);
    for _ in 0..runs {
        if let Some(holds) = is_covered() {
            counted += 1;
            covered += usize::from(holds);
        }
    }
    covered as f64 / counted.max(1) as f64
}

fn holds(interval: super::Interval, truth: f64) -> bool {
    interval.low - 1e-12 <= truth && truth <= interval.high + 1e-12
}

/// From attempts, passed ones and k.
type Estimator = fn(usize, usize, usize) -> Option<f64>;

fn of_rate(shape: Shape, chances: Chances, rate: Rate, runs: usize) -> f64 {
    let mut uniform = Uniform(7);
    let (truth, of, k) = match rate {
        Rate::Single => (chances.all_pass(1), pass_at_k as Estimator, 1),
        Rate::Any3 => (1.0 - chances.none_passes(3), pass_at_k as Estimator, 3),
        Rate::All3 => (chances.all_pass(3), pass_all_k as Estimator, 3),
    };
    let trials = (shape.k - k + 1) as f64;
    share_of(runs, || {
        let measure = |sample: Measured<'static>| {
            let chance = chances.draw(&mut uniform);
            Measured { value: of(shape.k, uniform.passes(shape.k, chance), k).unwrap(), ..sample }
        };
        let samples: Vec<_> = shape.samples().map(measure).collect();
        Some(holds(rate_interval(&samples, trials, Intervals::default()).unwrap(), truth))
    })
}

/// Each paper has a chance of its own, about which its samples' vary.
fn of_papers(shape: Shape, mean: f64, runs: usize) -> f64 {
    let mut uniform = Uniform(7);
    let how = Intervals { population: Population::Papers, ..Intervals::default() };
    share_of(runs, || {
        let of_papers: Vec<f64> = (0..shape.papers).map(|_| uniform.beta(5.0 * mean, 5.0 * (1.0 - mean))).collect();
        let samples: Vec<_> = shape
            .samples()
            .enumerate()
            .map(|(at, sample)| {
                let of_paper = of_papers[at / shape.samples].clamp(1e-6, 1.0 - 1e-6);
                let chance = uniform.beta(4.0 * of_paper, 4.0 * (1.0 - of_paper));
                Measured { value: uniform.passes(shape.k, chance) as f64 / shape.k as f64, ..sample }
            })
            .collect();
        Some(holds(rate_interval(&samples, shape.k as f64, how).unwrap(), mean))
    })
}

/// How two contenders' chances at a sample belong together.
#[derive(Debug, Clone, Copy)]
enum Pairing {
    /// All samples alike.
    Same,
    /// Drawn apart.
    Apart,
    /// What the first solves the second solves, too; each sample always or never.
    Nested,
}

/// Draws the differences of a run of two contenders with these mean chances.
fn differences(
    shape: Shape,
    [first, second]: [f64; 2],
    pairing: Pairing,
    uniform: &mut Uniform,
) -> Vec<Measured<'static>> {
    shape
        .samples()
        .map(|sample| {
            let chances = match pairing {
                Pairing::Same => [first, second],
                Pairing::Apart => [first, second].map(|mean| Chances::varying(mean).draw(uniform)),
                Pairing::Nested => {
                    let hardness = uniform.next();
                    [first, second].map(|mean| f64::from(u8::from(hardness < mean)))
                }
            };
            let [one, other] = chances.map(|chance| uniform.passes(shape.k, chance) as f64 / shape.k as f64);
            Measured { value: other - one, ..sample }
        })
        .collect()
}

fn of_difference(shape: Shape, means: [f64; 2], pairing: Pairing, population: Population, runs: usize) -> f64 {
    let mut uniform = Uniform(7);
    let how = Intervals { population, ..Intervals::default() };
    share_of(runs, || {
        let samples = differences(shape, means, pairing, &mut uniform);
        Some(holds(difference_interval(&samples, shape.k as f64, how).unwrap(), means[1] - means[0]))
    })
}

/// A verifier that finds a passing attempt with some chance where there is one, and else chooses at random.
fn of_gap(shape: Shape, mean: f64, finds: f64, runs: usize) -> f64 {
    let mut uniform = Uniform(7);
    share_of(runs, || {
        let measure = |sample: Measured<'static>| {
            let chance = Chances::varying(mean).draw(&mut uniform);
            let passed = uniform.passes(shape.k, chance);
            let single = passed as f64 / shape.k as f64;
            let best = f64::from(u8::from(passed > 0));
            let found = uniform.next() < finds;
            let chosen = if found { best } else { f64::from(u8::from(uniform.next() < single)) };
            (sample, [single, chosen, best])
        };
        let samples: Vec<_> = shape.samples().map(measure).collect();
        // Where there is no gap there is no interval.
        Some(holds(gap_closed(&samples, Intervals::default())?.1?, finds))
    })
}

/// Chances of masked functions to be restored.
#[derive(Debug, Clone, Copy)]
enum Mutant {
    /// All alike, 1 - P: `mutant:P` as it is.
    Even(f64),
    /// From function to function anything from 1 - P to 1, the same in every run: some functions are hard.
    Uneven(f64),
    /// Of papers drawn anew for every run: in each all functions have the chance 1 - P or 1 - P / 4.
    NewPapers(f64),
}

/// A run of the `mutant:P` baseline over six papers of 24 functions, as in the bundled suite.
#[derive(Debug, Clone, Copy)]
struct Baseline {
    chances: Mutant,
    n: usize,
    /// Samples a paper.
    samples: usize,
    k: usize,
    population: Population,
}

const PAPERS: usize = 6;
const FUNCTIONS: usize = 24;

/// The mean, over all sets of n of these functions, of the chance that all n are restored: their elementary symmetric
/// polynomial over C(m, n).
fn rate_of_all_samples(chances: &[f64], n: usize) -> f64 {
    let (mut sums, mut counts) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    (sums[0], counts[0]) = (1.0, 1.0);
    for chance in chances {
        for size in (1..=n).rev() {
            sums[size] += sums[size - 1] * chance;
            counts[size] += counts[size - 1];
        }
    }
    sums[n] / counts[n]
}

impl Baseline {
    /// The chances of a run's papers, and the rate that its interval should cover.
    fn papers(&self, uniform: &mut Uniform) -> (Vec<Vec<f64>>, f64) {
        let mean = |papers: &[Vec<f64>]| {
            papers.iter().map(|chances| rate_of_all_samples(chances, self.n)).sum::<f64>() / papers.len() as f64
        };
        match self.chances {
            Mutant::Even(p) => (vec![vec![1.0 - p; FUNCTIONS]; PAPERS], (1.0 - p).powi(self.n as i32)),
            Mutant::Uneven(p) => {
                let chance = |at: usize| 1.0 - p * ((at * 7) % 24) as f64 / 23.0;
                let papers = vec![(0..FUNCTIONS).map(chance).collect::<Vec<_>>(); PAPERS];
                let truth = mean(&papers);
                (papers, truth)
            }
            Mutant::NewPapers(p) => {
                let kinds = [vec![1.0 - p; FUNCTIONS], vec![1.0 - p / 4.0; FUNCTIONS]];
                let papers = (0..PAPERS).map(|_| kinds[usize::from(uniform.next() < 0.5)].clone()).collect();
                (papers, mean(&kinds))
            }
        }
    }

    fn coverage(&self, runs: usize) -> f64 {
        let mut uniform = Uniform(7);
        let functions = Nesting::flat(FUNCTIONS);
        let how = Intervals { population: self.population, ..Intervals::default() };
        let mut run = 0;
        share_of(runs, || {
            let (papers, truth) = self.papers(&mut uniform);
            let mut samples = Vec::new();
            for (paper, chances) in papers.iter().enumerate() {
                for sample in draw(&paper.to_string(), &functions, self.n, self.samples, run).unwrap() {
                    let restored = |uniform: &mut Uniform| {
                        // No short cut: every function takes its draw.
                        let right = sample.iter().filter(|&&at| uniform.next() < chances[at]).count();
                        right == sample.len()
                    };
                    let passes = (0..self.k).filter(|_| restored(&mut uniform)).count();
                    samples.push(Measured { paper: NAMES[paper], n: self.n, value: passes as f64 / self.k as f64 });
                }
            }
            run += 1;
            Some(holds(rate_interval(&samples, self.k as f64, how).unwrap(), truth))
        })
    }
}

/// The rates of the grid: the same for all samples, then varying, then the skewed Beta(1, 4).
fn chances() -> Vec<(String, Chances)> {
    let means = [0.02, 0.1, 0.3, 0.5, 0.9, 0.98];
    let same = means.iter().map(|&mean| (format!("{mean}"), Chances::Same(mean)));
    let varying = means.iter().map(|&mean| (format!("~{mean}"), Chances::varying(mean)));
    same.chain(varying).chain([("Beta(1, 4)".to_owned(), Chances::Beta(1.0, 4.0))]).collect()
}

/// Prints a table over the shapes of the grid, cells in percent.
fn table(title: &str, ks: &[usize], papers: &[usize], columns: &[String], cell: impl Fn(Shape, usize) -> f64) {
    println!("\n{title}\n\n| papers x samples | k | {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len() + 2));
    for &papers in papers {
        for samples in [2, 3, 4, 8, 24, 100] {
            for &k in ks {
                let shape = Shape { papers, samples, k };
                let cells: Vec<String> =
                    (0..columns.len()).map(|place| format!("{:.1}", 100.0 * cell(shape, place))).collect();
                println!("| {papers} x {samples} | {k} | {} |", cells.join(" | "));
            }
        }
    }
}

#[test]
fn the_rate_of_all_samples_is_that_of_listing_them() {
    let chances = [0.9, 0.5, 0.2, 0.7];
    let pairs = [0.45, 0.18, 0.63, 0.1, 0.35, 0.14];
    assert!((rate_of_all_samples(&chances, 2) - pairs.iter().sum::<f64>() / 6.0).abs() < 1e-15);
    assert!((rate_of_all_samples(&[0.7; 24], 3) - 0.343).abs() < 1e-12);
}

#[test]
fn intervals_of_runs_of_the_mutant_baseline_cover_its_known_rate() {
    for population in [Population::Suite, Population::Papers] {
        for n in [1, 3] {
            let baseline = Baseline { chances: Mutant::Even(0.3), n, samples: 10, k: 1, population };
            let coverage = baseline.coverage(500);
            assert!((0.93..=0.99).contains(&coverage), "{coverage} by {baseline:?}");
        }
    }
}

#[test]
fn intervals_of_a_handful_of_samples_hold_the_truth() {
    // What bootstraps covered in 67, 80, 87 and 91 of 100, and in 86 with single attempts and with six papers of two.
    for (papers, samples, k) in [(1, 2, 5), (1, 3, 5), (1, 4, 5), (1, 8, 5), (1, 4, 1), (6, 2, 5)] {
        for mean in [0.1, 0.5, 0.9] {
            let shape = Shape { papers, samples, k };
            let coverage = of_rate(shape, Chances::varying(mean), Rate::Single, 400);
            assert!(coverage >= 0.925, "{coverage} at {mean} of {shape:?}");
            let coverage = of_difference(shape, [0.5, mean], Pairing::Apart, Population::Suite, 400);
            assert!(coverage >= 0.925 || samples == 2, "{coverage} of differences at {mean} of {shape:?}");
        }
    }
    let coverage = of_rate(Shape { papers: 1, samples: 10, k: 5 }, Chances::Beta(1.0, 4.0), Rate::Single, 600);
    assert!((0.925..=0.985).contains(&coverage), "{coverage}");
    let coverage = of_gap(Shape { papers: 1, samples: 8, k: 5 }, 0.5, 0.6, 400);
    assert!(coverage >= 0.93, "{coverage}");
}

#[test]
fn intervals_of_many_samples_are_no_wider_than_they_must_be() {
    for (chances, rate) in [(Chances::Same(0.3), Rate::Single), (Chances::Beta(1.0, 4.0), Rate::Any3)] {
        let coverage = of_rate(Shape { papers: 6, samples: 24, k: 5 }, chances, rate, 500);
        assert!((0.925..=0.98).contains(&coverage), "{coverage} of {rate:?}");
    }
}

/// The share of runs of two contenders that differ by as much as was asked for in which p is below 0.05.
fn seen(samples: usize, k: usize, means: [f64; 2], pairing: Pairing, runs: usize) -> f64 {
    let mut uniform = Uniform(11);
    let shape = Shape { papers: 1, samples, k };
    share_of(runs, || {
        let values: Vec<f64> =
            differences(shape, means, pairing, &mut uniform).iter().map(|sample| sample.value).collect();
        Some(sign_flip(&values) < 0.05)
    })
}

/// What `power` promises, and what p then has: 80% of differences of this size to be seen.
fn promised_and_seen(k: usize, means: [f64; 2], pairing: Pairing, runs: usize) -> (usize, f64) {
    let aim = Aim { difference: means[1] - means[0], level: 0.95, power: 0.8 };
    let alike = if matches!(pairing, Pairing::Same) { 0.0 } else { 1.0 / 3.0 };
    let [one, other] = means.map(|mean| Spread::assumed(mean, alike).of_difference(k, 0.0));
    let samples = aim.samples(f64::midpoint(one, other)) as usize;
    (samples, seen(samples, k, means, pairing, runs))
}

#[test]
fn differences_are_seen_about_as_often_as_power_promises() {
    for k in [1, 5] {
        let (samples, share) = promised_and_seen(k, [0.4, 0.6], Pairing::Apart, 400);
        assert!((0.74..=0.87).contains(&share), "{share} with {samples} samples and k = {k}");
    }
    // And none is seen where there is none.
    for (samples, k) in [(6, 5), (20, 1), (40, 5)] {
        let share = seen(samples, k, [0.3, 0.3], Pairing::Apart, 600);
        assert!(share <= 0.07, "{share} with {samples} samples and k = {k}");
    }
}

#[test]
#[ignore = "a measurement, the tables of docs/statistics.md: cargo test --release --lib the_tables_of_coverage -- --ignored --nocapture"]
fn the_tables_of_coverage() {
    const RUNS: usize = 2000;
    let all = [1, 2, 3, 6, 20];
    let kinds = chances();
    let names: Vec<String> = kinds.iter().map(|(name, _)| name.clone()).collect();
    table("pass@1", &[1, 3, 5], &all, &names, |shape, place| of_rate(shape, kinds[place].1, Rate::Single, RUNS));
    table("pass@3", &[3, 5], &all, &names, |shape, place| of_rate(shape, kinds[place].1, Rate::Any3, RUNS));
    table("pass^3", &[3, 5], &all, &names, |shape, place| of_rate(shape, kinds[place].1, Rate::All3, RUNS));

    let means = [[0.02, 0.02], [0.1, 0.1], [0.5, 0.5], [0.1, 0.4], [0.5, 0.7], [0.9, 0.98]];
    let pairings = [Pairing::Same, Pairing::Apart, Pairing::Nested];
    let cells: Vec<_> = means.iter().flat_map(|&means| pairings.map(|pairing| (means, pairing))).collect();
    let names: Vec<String> = cells.iter().map(|([a, b], pairing)| format!("{a}, {b} {pairing:?}")).collect();
    table("differences", &[1, 5], &all, &names, |shape, place| {
        of_difference(shape, cells[place].0, cells[place].1, Population::Suite, RUNS)
    });

    let cells: Vec<_> = [0.1, 0.5, 0.9].iter().flat_map(|&mean| [0.0, 0.5, 1.0].map(|finds| (mean, finds))).collect();
    let names: Vec<String> = cells.iter().map(|(mean, finds)| format!("~{mean}, {finds}")).collect();
    table("gap closed", &[3, 5], &all, &names, |shape, place| of_gap(shape, cells[place].0, cells[place].1, RUNS));

    let means = [0.02, 0.1, 0.3, 0.5, 0.9, 0.98];
    table("pass@1, papers", &[1, 5], &all[1..], &means.map(|it| format!("~{it}")), |shape, place| {
        of_papers(shape, means[place], RUNS)
    });
    let means = [[0.1, 0.1], [0.5, 0.5], [0.5, 0.7]];
    table("differences, papers", &[1, 5], &all[1..], &means.map(|[a, b]| format!("{a}, {b}")), |shape, place| {
        of_difference(shape, means[place], Pairing::Apart, Population::Papers, RUNS)
    });

    println!("\nmutant baseline\n");
    let suite = [Mutant::Even(0.1), Mutant::Even(0.3), Mutant::Even(0.5), Mutant::Uneven(0.6)];
    let papers = [Mutant::Even(0.3), Mutant::Uneven(0.6), Mutant::NewPapers(0.4)];
    for (population, kinds) in [(Population::Suite, suite.as_slice()), (Population::Papers, papers.as_slice())] {
        for &chances in kinds {
            for (samples, k) in [(4, 1), (20, 1), (20, 5)] {
                let cells = [1, 3].map(|n| {
                    let baseline = Baseline { chances, n, samples, k, population };
                    format!("{:.1}", 100.0 * baseline.coverage(RUNS))
                });
                println!("| {population:?} | {chances:?} | {samples} | {k} | {} | {} |", cells[0], cells[1]);
            }
        }
    }

    println!("\npower\n");
    for k in [1, 3, 5] {
        for pairing in [Pairing::Same, Pairing::Apart] {
            for means in [[0.4, 0.6], [0.1, 0.2], [0.5, 0.9]] {
                let (samples, share) = promised_and_seen(k, means, pairing, RUNS);
                println!("| {k} | {pairing:?} | {means:?} | {samples} | {:.1} |", 100.0 * share);
            }
        }
    }
}
