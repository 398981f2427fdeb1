//! The cluster bootstrap: intervals for means over samples that are not independent, since those of one paper share
//! its code, its data and its difficulty.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

use super::{Interval, wilson};

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Number of replicates.
    pub replicates: usize,
    /// Confidence level, as 0.95.
    pub level: f64,
    /// Seed: the same data and seed give the same interval on every machine and in every version.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// 10,000 replicates, 95%, seed 0.
    fn default() -> Self {
        Self { replicates: 10_000, level: 0.95, seed: 0 }
    }
}

/// Most draws of single samples for one call: beyond it (more than 10,000 samples at the default) there are fewer
/// replicates, at least [`FEWEST`], so that a report never takes minutes. So many samples need fewer replicates anyway.
const MOST_DRAWS: usize = 100_000_000;
const FEWEST: usize = 1_000;

/// Percentile intervals for the means of `WIDTH` statistics over all samples, from one resampling. `papers[p][s]` holds
/// the statistics of sample s of paper p (its pass@1, its pass@5, each in [0, 1]).
///
/// A replicate draws as many papers as there are, with replacement, then within each drawn paper as many samples as it
/// has, with replacement, and takes the mean over all drawn samples (Davison and Hinkley, "Bootstrap Methods and their
/// Application", 1997, section 3.8). With one paper only its samples are drawn: the interval then says nothing about
/// other papers. With few papers (under about ten) it tends to be too narrow, as every cluster bootstrap is.
///
/// Where all replicates agree (all samples pass, all fail, or there is one sample only) the bootstrap has nothing to
/// say and would claim certainty: the interval is Wilson's then, over samples as if they were independent trials.
///
/// `None` when there is no sample.
#[must_use]
pub fn bootstrap<const WIDTH: usize>(papers: &[Vec<[f64; WIDTH]>], how: Bootstrap) -> Option<[Interval; WIDTH]> {
    let mut means = replicates(papers, how)?;
    for means in &mut means {
        means.sort_unstable_by(f64::total_cmp);
    }
    let total: usize = papers.iter().map(Vec::len).sum();
    let mut column = 0;
    Some(means.map(|means| {
        let sum: f64 = papers.iter().flatten().map(|values| values[column]).sum();
        column += 1;
        let percentile = percentile(&means, how.level);
        if means[0] < means[means.len() - 1] {
            percentile
        } else {
            wilson(sum.clamp(0.0, total as f64), total as f64, how.level).unwrap_or(percentile)
        }
    }))
}

/// The means of all replicates of each statistic, in the order of the draws; `None` when there is no sample.
pub(super) fn replicates<const WIDTH: usize>(
    papers: &[Vec<[f64; WIDTH]>],
    how: Bootstrap,
) -> Option<[Vec<f64>; WIDTH]> {
    let papers: Vec<&[[f64; WIDTH]]> = papers.iter().map(Vec::as_slice).filter(|samples| !samples.is_empty()).collect();
    let total: usize = papers.iter().map(|samples| samples.len()).sum();
    if total == 0 {
        return None;
    }
    let replicates = how.replicates.min((MOST_DRAWS / total).max(FEWEST)).max(1);
    let mut random = Random::new(how.seed);
    let mut means: [Vec<f64>; WIDTH] = std::array::from_fn(|_| Vec::with_capacity(replicates));
    for _ in 0..replicates {
        let (mut sums, mut count) = ([0.0; WIDTH], 0_usize);
        for _ in 0..papers.len() {
            let samples = papers[if papers.len() == 1 { 0 } else { random.pair(papers.len()).0 }];
            add_draws(samples, &mut random, &mut sums);
            count += samples.len();
        }
        for (means, sum) in means.iter_mut().zip(sums) {
            means.push(sum / count as f64);
        }
    }
    Some(means)
}

/// The middle `level` of sorted replicates.
pub(super) fn percentile(sorted: &[f64], level: f64) -> Interval {
    let tail = (1.0 - level) / 2.0;
    Interval { low: quantile(sorted, tail), high: quantile(sorted, 1.0 - tail) }
}

/// The share of the gap between a lower and an upper rate that a middle one closes, (middle - lower) / (upper - lower),
/// with its percentile interval over replicates in which there is a gap; `None` where the data have none. Each sample
/// holds `[lower, middle, upper]`.
#[must_use]
pub fn gap_closed(papers: &[Vec<[f64; 3]>], how: Bootstrap) -> Option<(f64, Interval)> {
    let share = |[lower, middle, upper]: [f64; 3]| {
        let gap = upper - lower;
        (gap > 1e-9).then(|| (middle - lower) / gap)
    };
    let total = papers.iter().map(Vec::len).sum::<usize>() as f64;
    let mean = |column: usize| papers.iter().flatten().map(|values| values[column]).sum::<f64>() / total;
    let estimate = share([mean(0), mean(1), mean(2)])?;
    let [lower, middle, upper] = replicates(papers, how)?;
    let mut shares: Vec<f64> =
        lower.into_iter().zip(middle).zip(upper).filter_map(|((l, m), u)| share([l, m, u])).collect();
    shares.sort_unstable_by(f64::total_cmp);
    (!shares.is_empty()).then(|| (estimate, percentile(&shares, how.level)))
}

/// Draws as many samples as there are, with replacement, and adds them up. The hot loop: two draws from one random word.
fn add_draws<const WIDTH: usize>(samples: &[[f64; WIDTH]], random: &mut Random, sums: &mut [f64; WIDTH]) {
    let mut add = |index: usize| {
        for (sum, value) in sums.iter_mut().zip(&samples[index]) {
            *sum += value;
        }
    };
    for _ in 0..samples.len() / 2 {
        let (first, second) = random.pair(samples.len());
        add(first);
        add(second);
    }
    if samples.len() % 2 == 1 {
        add(random.pair(samples.len()).0);
    }
}

/// The quantile of sorted values, interpolated linearly between the two nearest.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

/// xoshiro256++ by name, because a named algorithm's stream is fixed for ever and that of `rand`'s default generator is
/// not; likewise its words are turned into indices here and not by `rand`'s distributions.
struct Random(Xoshiro256PlusPlus);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Two numbers in 0..bound; the bias of the multiplication is below bound / 2^32.
    fn pair(&mut self, bound: usize) -> (usize, usize) {
        let word = self.0.next_u64();
        let scale = |half: u64| ((half * bound as u64) >> 32) as usize;
        (scale(word >> 32), scale(word & 0xFFFF_FFFF))
    }
}
