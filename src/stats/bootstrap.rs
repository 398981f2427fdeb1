//! The bootstrap: intervals for means over the samples of several papers.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

use serde::{Deserialize, Serialize};

use super::{Interval, normal, student, wilson};

/// Of what the interval speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Population {
    /// These papers: what would the rate over all their samples be? Samples are drawn within each paper.
    #[default]
    Suite,
    /// Papers like these: what would the rate be on others? Whole papers are drawn, since samples of one paper share its
    /// functions, its data and its difficulty. Says little with few papers, and is wide then.
    Papers,
}

impl Population {
    /// How the interval was made, for a table's legend.
    #[must_use]
    pub const fn legend(self) -> &'static str {
        match self {
            Self::Suite => "bootstrap over the samples of each of these papers",
            Self::Papers => "bootstrap over whole papers, for papers like these",
        }
    }
}

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Number of replicates.
    pub replicates: usize,
    /// Confidence level, as 0.95.
    pub level: f64,
    /// Seed: the same data and seed give the same interval on every machine and in every version.
    pub seed: u64,
    /// Of what the interval speaks.
    pub population: Population,
}

impl Default for Bootstrap {
    /// 10,000 replicates, 95%, seed 0, of the suite.
    fn default() -> Self {
        Self { replicates: 10_000, level: 0.95, seed: 0, population: Population::Suite }
    }
}

/// Most draws of single samples for one call: beyond it (more than 10,000 samples at the default) there are fewer
/// replicates, at least [`FEWEST`], so that a report never takes minutes. So many samples need fewer replicates anyway.
const MOST_DRAWS: usize = 100_000_000;
const FEWEST: usize = 1_000;

/// Intervals for the means of `WIDTH` statistics over all samples, from one resampling. `papers[p][s]` holds the
/// statistics of sample s of paper p (its pass@1, its pass@5, each in [0, 1]).
///
/// [`Population::Suite`]: a replicate draws within each paper as many samples as it has, with replacement, their spread
/// put right for small numbers; the interval is BCa (Efron, "Better bootstrap confidence intervals", 1987), its acceleration that of a stratified mean (Davison
/// and Hinkley, "Bootstrap Methods and their Application", 1997, section 5.3).
///
/// [`Population::Papers`]: a replicate draws as many papers as there are, with replacement, each with all its samples
/// (the one-stage cluster bootstrap, section 3.8 there). The interval is the mean plus and minus Student's quantile
/// with m - 1 degrees of freedom times the replicates' spread, which for m papers is too small by sqrt((m - 1) / m) and
/// put right. Percentiles would be too narrow for a handful of papers: the table in docs/statistics.md tells by how
/// much. With one paper there is nothing to draw: the interval is that of the suite.
///
/// Where all replicates agree (all samples pass, all fail, or there is one sample only) the bootstrap has nothing to
/// say and would claim certainty: the interval is Wilson's then, over samples, or papers, as if they were independent
/// trials.
///
/// `None` when there is no sample.
#[must_use]
pub fn bootstrap<const WIDTH: usize>(papers: &[Vec<[f64; WIDTH]>], how: Bootstrap) -> Option<[Interval; WIDTH]> {
    let means = replicates(papers, how)?;
    let total: usize = papers.iter().map(Vec::len).sum();
    let mut column = 0;
    Some(means.map(|means| {
        let values: Vec<Vec<f64>> =
            papers.iter().map(|samples| samples.iter().map(|values| values[column]).collect()).collect();
        column += 1;
        let sum: f64 = values.iter().flatten().sum();
        let bounds = interval(means, &values, how);
        let clamped = |it: Interval| Interval { low: it.low.clamp(0.0, 1.0), high: it.high.clamp(0.0, 1.0) };
        // Of papers that all agree there are as many trials as papers.
        let trials = trials(papers, how) as f64;
        let by_wilson = || wilson((sum / total as f64 * trials).clamp(0.0, trials), trials, how.level);
        bounds.map(clamped).or_else(by_wilson).unwrap_or(Interval { low: 0.0, high: 1.0 })
    }))
}

/// How many independent trials the samples are where the bootstrap has nothing to say.
pub(super) fn trials<T>(papers: &[Vec<T>], how: Bootstrap) -> usize {
    let clusters = papers.iter().filter(|samples| !samples.is_empty()).count();
    match how.population {
        Population::Papers if clusters > 1 => clusters,
        _ => papers.iter().map(Vec::len).sum(),
    }
}

/// The interval of the mean over all samples from its replicates; `None` where these all agree.
pub(super) fn interval(mut means: Vec<f64>, papers: &[Vec<f64>], how: Bootstrap) -> Option<Interval> {
    means.sort_unstable_by(f64::total_cmp);
    // The same rates, added up in another order, differ in their last digits.
    if means[means.len() - 1] - means[0] <= 1e-12 {
        return None;
    }
    let total: usize = papers.iter().map(Vec::len).sum();
    let estimate = papers.iter().flatten().sum::<f64>() / total as f64;
    let clusters = papers.iter().filter(|samples| !samples.is_empty()).count();
    if how.population == Population::Papers && clusters > 1 {
        let freedom = (clusters - 1) as f64;
        let tail = f64::midpoint(1.0, how.level);
        let spread = means.iter().map(|mean| (mean - estimate).powi(2)).sum::<f64>() / means.len() as f64;
        let half = student::quantile(tail, freedom) * (spread * clusters as f64 / freedom).sqrt();
        return Some(Interval { low: estimate - half, high: estimate + half });
    }
    let below = means.partition_point(|&mean| mean < estimate - 1e-12);
    let ties = means.partition_point(|&mean| mean <= estimate + 1e-12) - below;
    // Means of whole counts tie with the estimate; half of the ties count as below.
    let bias = normal::quantile((below as f64 + 0.5 * ties as f64) / means.len() as f64);
    let (mut squares, mut cubes) = (0.0, 0.0);
    for samples in papers {
        let mean = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
        for value in samples {
            squares += (value - mean).powi(2);
            cubes += (value - mean).powi(3);
        }
    }
    let acceleration = if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 };
    let tail = normal::quantile(f64::midpoint(1.0, how.level));
    let place = |z: f64| normal::cdf(bias + (bias + z) / (1.0 - acceleration * (bias + z)));
    Some(Interval { low: quantile(&means, place(-tail)), high: quantile(&means, place(tail)) })
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
    let whole = papers.len() > 1 && how.population == Population::Papers;
    let sums_of: Vec<[f64; WIDTH]> = papers.iter().map(|samples| sum(samples)).collect();
    let strata = if whole { Vec::new() } else { strata(&papers) };
    for _ in 0..replicates {
        let (mut sums, mut count) = ([0.0; WIDTH], 0_usize);
        if whole {
            for _ in 0..papers.len() {
                let drawn = random.pair(papers.len()).0;
                count += papers[drawn].len();
                for (sum, more) in sums.iter_mut().zip(sums_of[drawn]) {
                    *sum += more;
                }
            }
        } else {
            for samples in &strata {
                count += samples.len();
                add_draws(samples, &mut random, &mut sums);
            }
        }
        for (means, sum) in means.iter_mut().zip(sums) {
            means.push(sum / count as f64);
        }
    }
    Some(means)
}

/// What samples are drawn from: a stratum a paper, those of papers with a single sample together, since one alone has no
/// spread. The spread of n samples is too small by sqrt((n - 1) / n), which matters where many papers have few samples
/// each: values are moved away from their stratum's mean by as much (Davison and Hinkley, 1997, section 2.3.2 gives the
/// bias).
fn strata<const WIDTH: usize>(papers: &[&[[f64; WIDTH]]]) -> Vec<Vec<[f64; WIDTH]>> {
    let (mut strata, mut singles): (Vec<Vec<_>>, Vec<_>) = (Vec::new(), Vec::new());
    for samples in papers {
        match samples {
            [single] => singles.push(*single),
            several => strata.push(several.to_vec()),
        }
    }
    match (singles.as_slice(), strata.last_mut()) {
        ([], _) => {}
        ([single], Some(last)) => last.push(*single),
        _ => strata.push(singles),
    }
    for stratum in &mut strata {
        let count = stratum.len() as f64;
        let widen = if count > 1.0 { (count / (count - 1.0)).sqrt() } else { 1.0 };
        let means = sum(stratum).map(|sum| sum / count);
        for values in stratum {
            for (value, mean) in values.iter_mut().zip(means) {
                *value = mean + widen * (*value - mean);
            }
        }
    }
    strata
}

fn sum<const WIDTH: usize>(samples: &[[f64; WIDTH]]) -> [f64; WIDTH] {
    std::array::from_fn(|column| samples.iter().map(|values| values[column]).sum())
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
