//! How often intervals cover the truth, by simulated runs of the `mutant:P` baseline: each masked function is restored
//! with a known chance, an attempt passes when all of them are. Samples are drawn as a run draws them, so that they
//! share functions and papers.

use super::{Bootstrap, Population, bootstrap};
use crate::sample::{Nesting, draw};

/// Papers of a simulated suite, and functions of each: as in the bundled one.
const PAPERS: usize = 6;
const FUNCTIONS: usize = 24;

/// How the chances of functions to be restored come about.
#[derive(Debug, Clone, Copy)]
enum Chances {
    /// All alike, 1 - P: `mutant:P` as it is.
    Mutant(f64),
    /// From function to function anything from 1 - P to 1, the same in every run: some functions are hard.
    Uneven(f64),
    /// Of papers drawn afresh for every run: in each all functions have the chance 1 - P or 1 - P / 4.
    NewPapers(f64),
}

/// A kind of run.
#[derive(Debug, Clone, Copy)]
struct Setting {
    chances: Chances,
    n: usize,
    /// Samples a paper.
    samples: usize,
    /// Attempts a sample.
    k: usize,
    population: Population,
}

/// A generator for simulations, deterministic, so that these tests cannot flake (Knuth's MMIX constants).
pub(super) struct Uniform(pub(super) u64);

impl Uniform {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

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

impl Setting {
    /// The chances of a run's papers, and the rate that its interval should cover.
    fn papers(&self, uniform: &mut Uniform) -> (Vec<Vec<f64>>, f64) {
        let mean = |papers: &[Vec<f64>]| {
            papers.iter().map(|chances| rate_of_all_samples(chances, self.n)).sum::<f64>() / papers.len() as f64
        };
        match self.chances {
            Chances::Mutant(p) => (vec![vec![1.0 - p; FUNCTIONS]; PAPERS], (1.0 - p).powi(self.n as i32)),
            Chances::Uneven(p) => {
                let chance = |at: usize| 1.0 - p * ((at * 7) % 24) as f64 / 23.0;
                let papers = vec![(0..FUNCTIONS).map(chance).collect::<Vec<_>>(); PAPERS];
                let truth = mean(&papers);
                (papers, truth)
            }
            Chances::NewPapers(p) => {
                let kinds = [vec![1.0 - p; FUNCTIONS], vec![1.0 - p / 4.0; FUNCTIONS]];
                let papers = (0..PAPERS).map(|_| kinds[usize::from(uniform.next() < 0.5)].clone()).collect();
                (papers, mean(&kinds))
            }
        }
    }

    /// The share of `runs` simulated runs whose interval of pass@1 holds the truth.
    fn coverage(&self, runs: usize, replicates: usize) -> f64 {
        let mut uniform = Uniform(7);
        let functions = Nesting::flat(FUNCTIONS);
        let mut covered = 0;
        for run in 0..runs {
            let (papers, truth) = self.papers(&mut uniform);
            let rates: Vec<Vec<[f64; 1]>> = papers
                .iter()
                .enumerate()
                .map(|(paper, chances)| {
                    let drawn = draw(&paper.to_string(), &functions, self.n, self.samples, run as u64).unwrap();
                    let rate = |functions: &[usize], uniform: &mut Uniform| {
                        let mut passes = 0;
                        for _ in 0..self.k {
                            // No short cut: every function takes its draw.
                            let right = functions.iter().filter(|&&at| uniform.next() < chances[at]).count();
                            passes += usize::from(right == functions.len());
                        }
                        [passes as f64 / self.k as f64]
                    };
                    drawn.iter().map(|sample| rate(sample, &mut uniform)).collect()
                })
                .collect();
            let how = Bootstrap { replicates, population: self.population, ..Bootstrap::default() };
            let [interval] = bootstrap(&rates, how).unwrap();
            covered += usize::from(interval.low - 1e-12 <= truth && truth <= interval.high + 1e-12);
        }
        covered as f64 / runs as f64
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
fn intervals_of_2000_runs_of_the_mutant_baseline_cover_its_known_rate() {
    for population in [Population::Suite, Population::Papers] {
        for n in [1, 3] {
            let setting = Setting { chances: Chances::Mutant(0.3), n, samples: 10, k: 1, population };
            let coverage = setting.coverage(2000, 250);
            assert!((0.93..=0.97).contains(&coverage), "{coverage} by {setting:?}");
        }
    }
}

#[test]
#[ignore = "a measurement, the table of docs/statistics.md: cargo test --release --lib coverage -- --ignored --nocapture"]
fn the_table_of_coverage() {
    let suite = [Chances::Mutant(0.1), Chances::Mutant(0.3), Chances::Mutant(0.5), Chances::Uneven(0.6)];
    let papers = [Chances::Mutant(0.3), Chances::Uneven(0.6), Chances::NewPapers(0.4)];
    for (population, kinds) in [(Population::Suite, suite.as_slice()), (Population::Papers, papers.as_slice())] {
        for &chances in kinds {
            for (samples, k) in [(4, 1), (20, 1), (20, 5)] {
                let cells = [1, 3].map(|n| {
                    let setting = Setting { chances, n, samples, k, population };
                    format!("{:.1}", 100.0 * setting.coverage(2000, 2000))
                });
                println!("| {population:?} | {chances:?} | {samples} | {k} | {} | {} |", cells[0], cells[1]);
            }
        }
    }
}
