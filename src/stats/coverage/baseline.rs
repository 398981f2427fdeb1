//! Simulated runs of the `mutant:P` baseline, an agent that restores each masked function with probability 1 - P, so
//! that its true pass rate is known.

use super::IntervalCounts;
use super::grid::NAMES;
use crate::sample::{Nesting, draw};
use crate::stats::uniform::Uniform;
use crate::stats::{Intervals, Population, SampleValue, rate_interval};

/// Probabilities that masked functions are restored. The value of each variant is P.
#[derive(Debug, Clone, Copy)]
pub(super) enum RestoreChances {
    /// Every function is restored with probability 1 - P, as by the agent `mutant:P`.
    Even(f64),
    /// Each function has its own probability between 1 - P and 1, which all runs share: some functions are harder than
    /// others.
    Uneven(f64),
    /// For each paper of each run, a random draw decides whether all its functions have the probability 1 - P or all
    /// have 1 - P / 4. So the papers differ between runs.
    NewPapers(f64),
}

/// A run of the `mutant:P` baseline over six papers of 24 functions, as in the bundled suite.
#[derive(Debug, Clone, Copy)]
pub(super) struct Baseline {
    pub chances: RestoreChances,
    pub n: usize,
    /// Samples per paper.
    pub samples: usize,
    pub k: usize,
    pub population: Population,
}

const PAPERS: usize = 6;
const FUNCTIONS: usize = 24;

/// Returns the probability that all masked functions are restored, averaged over all sets of n functions: the n-th
/// elementary symmetric polynomial of the m probabilities in `chances`, divided by C(m, n).
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
    /// Returns, for each paper of a run, the probabilities with which its functions are restored. Also returns the true
    /// pass rate, which the run's confidence interval should cover.
    fn papers(&self, uniform: &mut Uniform) -> (Vec<Vec<f64>>, f64) {
        let mean = |papers: &[Vec<f64>]| {
            papers.iter().map(|chances| rate_of_all_samples(chances, self.n)).sum::<f64>() / papers.len() as f64
        };
        match self.chances {
            RestoreChances::Even(p) => (vec![vec![1.0 - p; FUNCTIONS]; PAPERS], (1.0 - p).powi(self.n as i32)),
            RestoreChances::Uneven(p) => {
                let chance = |at: usize| 1.0 - p * ((at * 7) % 24) as f64 / 23.0;
                let papers = vec![(0..FUNCTIONS).map(chance).collect::<Vec<_>>(); PAPERS];
                let truth = mean(&papers);
                (papers, truth)
            }
            RestoreChances::NewPapers(p) => {
                let kinds = [vec![1.0 - p; FUNCTIONS], vec![1.0 - p / 4.0; FUNCTIONS]];
                let papers = (0..PAPERS).map(|_| kinds[usize::from(uniform.next() < 0.5)].clone()).collect();
                (papers, mean(&kinds))
            }
        }
    }

    pub(super) fn simulate(&self, runs: usize, seed: u64) -> IntervalCounts {
        let mut uniform = Uniform(seed);
        let functions = Nesting::flat(FUNCTIONS);
        let how = Intervals { population: self.population, ..Intervals::default() };
        let mut tally = IntervalCounts::default();
        for run in 0..runs {
            let (papers, truth) = self.papers(&mut uniform);
            let mut samples = Vec::new();
            for (paper, chances) in papers.iter().enumerate() {
                for sample in draw(&paper.to_string(), &functions, self.n, self.samples, run as u64).unwrap() {
                    let restored = |uniform: &mut Uniform| {
                        // Draw for every function, even after one has failed, so that the number of draws stays the
                        // same.
                        let right = sample.iter().filter(|&&at| uniform.next() < chances[at]).count();
                        right == sample.len()
                    };
                    let passes = (0..self.k).filter(|_| restored(&mut uniform)).count();
                    samples.push(SampleValue { paper: NAMES[paper], n: self.n, value: passes as f64 / self.k as f64 });
                }
            }
            tally.count(rate_interval(&samples, self.k as f64, how), truth);
        }
        tally
    }
}

#[test]
fn the_formula_for_the_rate_over_all_samples_equals_the_mean_over_listed_samples() {
    let chances = [0.9, 0.5, 0.2, 0.7];
    let pairs = [0.45, 0.18, 0.63, 0.1, 0.35, 0.14];
    assert!((rate_of_all_samples(&chances, 2) - pairs.iter().sum::<f64>() / 6.0).abs() < 1e-15);
    assert!((rate_of_all_samples(&[0.7; 24], 3) - 0.343).abs() < 1e-12);
}
