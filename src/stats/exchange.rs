//! Whether several draws come from the same distribution: a permutation test whose significance level holds for all
//! values together.
//!
//! If the distributions are equal, every assignment of the pooled draws to the groups is equally likely, whatever the
//! distribution is. Each value has two statistics: the distance between two groups' means in standard deviations of all
//! draws, and, if the first group has several draws, the same distance computed from the draws' distances from the
//! median. The second statistic is needed because draws that are too far from the median on both sides may have the
//! right mean. The p of a statistic is the share of assignments in which the largest statistic of all values is at
//! least as large (Westfall and Young, *Resampling-Based Multiple Testing*, 1993, single-step max-T). So if the groups
//! have the same distribution, the probability that at least one p is at most the level is itself at most the level,
//! for any number of values, correlated or not.
//!
//! If the first group has several draws, each statistic is divided by the size of its largest 5%. Otherwise, one
//! extreme draw of one value would hide deviations of all other values: in 5% of the assignments, five of 101 draws
//! include it, and then its statistic is larger than most deviations' statistics.
//!
//! For a single draw this does not help, because p cannot be small: one extreme draw of another value already doubles
//! it. Hence the additional rule of [`outlying_values`].

use std::collections::BTreeSet;

use super::uniform::Uniform;

/// Relative difference below which two values count as equal, because rounding can cause it.
pub const ROUNDING: f64 = 1e-9;

/// Share of the assignments in which a statistic counts as usual. A statistic of several draws is divided by the root
/// mean square of its larger, unusual values, so that the statistics of all values are comparable where a test decides.
pub const USUAL: f64 = 0.95;

/// A draw is an outlier if it is more than this many times as far from the median as every other draw.
pub const OUTLYING: f64 = 3.0;

/// Largest number of outliers among the other draws for which an outlying single draw is wrong. With more of them, the
/// values are of a kind that often has outliers (heavy tails, events that are rare), also in right results.
pub const MOST_OUTLIERS: usize = 2;

/// Larger values count as this large, so that the difference of two values is finite.
const LARGEST: f64 = 1e300;

/// The draws (results) of one experiment in two or three groups. The test compares the first group with the second; a
/// third group only adds information about the spread.
#[derive(Debug, Clone)]
pub struct DrawPool {
    /// The values of each draw. The draws of the first group come first, then those of the second, then all others.
    /// Every draw has the same number of values.
    pub draws: Vec<Vec<f64>>,
    /// The size of the first group.
    pub first: usize,
    /// The size of the second group.
    pub second: usize,
    /// Maximum distance of a value from the median of all draws, in robust standard deviations. Values further away
    /// count as if they were at this distance, because a single outlier from a heavy-tailed distribution would
    /// otherwise hide every difference. Distances from the median are limited to twice as much. Not used if a single
    /// draw is compared with all others: such a draw can be recognised only by how much further away it is than the
    /// others.
    pub furthest: f64,
}

impl DrawPool {
    /// Whether the first group is a single draw, and the second group consists of all other draws. The p-value of a
    /// single draw cannot be small, so such a pool needs a significance level of its own.
    #[must_use]
    pub fn is_one_against_all(&self) -> bool {
        self.sizes().is_one_against_all()
    }

    fn sizes(&self) -> GroupSizes {
        GroupSizes { draws: self.draws.len(), first: self.first, second: self.second }
    }

    /// Returns the draws of each value.
    fn values(&self) -> Vec<Vec<f64>> {
        let count = self.draws.first().map_or(0, Vec::len);
        (0..count).map(|value| bounded(&self.draws.iter().map(|row| row[value]).collect::<Vec<_>>())).collect()
    }

    /// Returns the draws of each value converted by [`standard_units`], then, if the first group has several draws, the
    /// same for the distances of each value's draws from their median.
    fn standard_columns(&self) -> Vec<Vec<f64>> {
        let furthest = if self.is_one_against_all() { f64::INFINITY } else { self.furthest };
        let values = self.values();
        let mut columns: Vec<Vec<f64>> = values.iter().map(|value| standard_units(value, furthest)).collect();
        if self.first > 1 {
            // Limit distances from the median less strictly than values: if the first group's spread is wrong, some of
            // its draws may be much further away than usual, and these must count.
            columns.extend(values.iter().map(|value| standard_units(&sizes(&centred(value)), 2.0 * furthest)));
        }
        columns
    }

    /// Returns for each value the draw that is an outlier, see [`OUTLYING`].
    fn outliers(&self) -> Vec<Option<usize>> {
        let outlier = |values: Vec<f64>| {
            let middle = median(values.clone());
            let far: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
            let draw = (0..far.len()).max_by(|&one, &other| far[one].total_cmp(&far[other]))?;
            let others = far.iter().enumerate().filter(|&(other, _)| other != draw);
            let others = others.map(|(_, &distance)| distance).fold(0.0, f64::max);
            (far[draw] > OUTLYING * others && !is_rounding(values[draw], middle)).then_some(draw)
        };
        self.values().into_iter().map(outlier).collect()
    }
}

/// The p-values of one value, adjusted for testing all values together.
#[derive(Debug, Clone, Copy)]
pub struct AdjustedP {
    /// Whether the groups' means differ.
    pub mean: f64,
    /// Whether the groups' mean distances from the median differ; 1 if the first group is a single draw.
    pub spread: f64,
}

impl AdjustedP {
    /// The smaller p-value.
    #[must_use]
    pub const fn least(self) -> f64 {
        self.mean.min(self.spread)
    }
}

/// Returns the p-values of each value of each pool, adjusted for testing all values of all pools together. Each p-value
/// compares the observed assignment of draws to groups with `assignments` random ones. The random assignments come from
/// a fixed seed, so the same draws always have the same p-values. In a pool that compares a single draw with all
/// others, all draws take turns instead, so that the p-values have no random error.
///
/// Pools that compare a single draw with all others are tested together, and apart from the other pools, because their
/// statistics are not comparable with those of means. So if there are pools of both kinds, each kind needs a level of
/// its own.
///
/// Pools with the same group sizes share their random assignments, so draws with the same index are in the same group
/// in all of these pools. Suppose that one draw of the first group is an outlier in two pools. With separate
/// assignments, each pool would have its own chance to put its outlier into the first group, which would about double
/// the p-value.
#[must_use]
pub fn adjusted_p(pools: &[DrawPool], assignments: usize) -> Vec<Vec<AdjustedP>> {
    let mut random = Uniform::seeded(1);
    // The assignments for each distinct [`GroupSizes`].
    let mut shared: Vec<(GroupSizes, Vec<Assignment>)> = Vec::new();
    // The largest statistic in each assignment: of the pools that compare a single draw with all others, and of the
    // other pools. Statistics are computed value by value, so that only the statistics of one value are in memory at a
    // time.
    let (mut largest_of_single, mut largest_of_several) = (vec![0.0_f64; assignments], vec![0.0_f64; assignments]);
    let mut observed: Vec<Vec<f64>> = Vec::with_capacity(pools.len());
    for pool in pools {
        let sizes = pool.sizes();
        let place = shared.iter().position(|(known, _)| *known == sizes).unwrap_or_else(|| {
            shared.push((sizes, sizes.assignments(assignments, &mut random)));
            shared.len() - 1
        });
        let largest = if sizes.is_one_against_all() { &mut largest_of_single } else { &mut largest_of_several };
        let mut statistics = Vec::new();
        for column in pool.standard_columns() {
            let (found, assigned) = sizes.statistics(&column, &shared[place].1);
            statistics.push(found);
            for (most, statistic) in largest.iter_mut().zip(assigned) {
                *most = most.max(statistic);
            }
        }
        observed.push(statistics);
    }
    largest_of_single.sort_by(f64::total_cmp);
    largest_of_several.sort_by(f64::total_cmp);
    let values = |(statistics, pool): (Vec<f64>, &DrawPool)| -> Vec<AdjustedP> {
        let largest = if pool.is_one_against_all() { &largest_of_single } else { &largest_of_several };
        let p = |statistic: f64| {
            // Sums of the same numbers in different orders are equal only up to rounding.
            let below = largest.partition_point(|&other| other < statistic * (1.0 - ROUNDING));
            (1 + largest.len() - below) as f64 / (1 + largest.len()) as f64
        };
        let values = pool.draws.first().map_or(0, Vec::len);
        let spread = |value: usize| statistics.get(values + value).map_or(1.0, |&statistic| p(statistic));
        (0..values).map(|value| AdjustedP { mean: p(statistics[value]), spread: spread(value) }).collect()
    };
    observed.into_iter().zip(pools).map(values).collect()
}

/// Returns for each value of each pool whether it is wrong because the first group is a single draw that is an outlier
/// (see [`OUTLYING`]). No value is wrong for this reason if more than [`MOST_OUTLIERS`] other draws of these pools are
/// outliers in some value.
///
/// The permutation test alone would let such a draw pass if one other draw is as extreme in any value of any pool: the
/// share of two draws, 2/97, is above the level.
#[must_use]
pub fn outlying_values(pools: &[DrawPool]) -> Vec<Vec<bool>> {
    let outliers: Vec<Vec<Option<usize>>> = pools.iter().map(DrawPool::outliers).collect();
    let is_single = |pool: usize| pools[pool].first == 1;
    let mut others = BTreeSet::new();
    for (pool, outliers) in outliers.iter().enumerate().filter(|&(pool, _)| is_single(pool)) {
        others.extend(outliers.iter().flatten().filter(|&&draw| draw > 0).map(|&draw| (pool, draw)));
    }
    let is_rare = others.len() <= MOST_OUTLIERS;
    let is_wrong = |pool: usize, outlier: Option<usize>| is_rare && is_single(pool) && outlier == Some(0);
    let wrong = outliers.into_iter().enumerate();
    wrong.map(|(pool, values)| values.into_iter().map(|outlier| is_wrong(pool, outlier)).collect()).collect()
}

/// Whether two numbers differ by no more than rounding can cause.
pub fn is_rounding(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
}

/// Indices of the draws in the first group, followed by those of the second group. The second group is left out if it
/// consists of all other draws.
type Assignment = Vec<usize>;

/// The number of draws of a [`DrawPool`], and the sizes of its first and second group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GroupSizes {
    draws: usize,
    first: usize,
    second: usize,
}

impl GroupSizes {
    const fn is_one_against_all(self) -> bool {
        self.first == 1 && self.first + self.second == self.draws
    }

    /// The number of draws in an [`Assignment`].
    const fn assigned(self) -> usize {
        if self.first + self.second == self.draws { self.first } else { self.first + self.second }
    }

    /// Makes `count` assignments of draws to groups: random ones or, if a single draw is compared with all others, each
    /// draw in turn.
    fn assignments(self, count: usize, random: &mut Uniform) -> Vec<Assignment> {
        if self.is_one_against_all() {
            return (0..count).map(|turn| vec![turn % self.draws]).collect();
        }
        let mut order: Vec<usize> = (0..self.draws).collect();
        let shuffled = |_| {
            for place in 0..self.assigned() {
                let other = place + (random.next() * (self.draws - place) as f64) as usize;
                order.swap(place, other);
            }
            order[..self.assigned()].to_vec()
        };
        (0..count).map(shuffled).collect()
    }

    /// Returns the statistic of a column from [`DrawPool::standard_columns`]: for the observed assignment of draws to
    /// groups, and for each of `assignments`. If the first group has several draws, all these statistics are divided by
    /// the same number, see [`USUAL`].
    fn statistics(self, column: &[f64], assignments: &[Assignment]) -> (f64, Vec<f64>) {
        let total: f64 = column.iter().sum();
        let sum = |places: &[usize]| places.iter().map(|&place| column[place]).sum::<f64>();
        let statistic = |assignment: &[usize]| {
            let (first, second) = assignment.split_at(self.first);
            let one = sum(first);
            let other = if second.is_empty() { total - one } else { sum(second) };
            (one / self.first as f64 - other / self.second as f64).abs()
        };
        let in_order: Assignment = (0..self.assigned()).collect();
        let observed = statistic(&in_order);
        let found: Vec<f64> = assignments.iter().map(|assignment| statistic(assignment)).collect();
        let large = if self.first > 1 { size_of_largest(found.clone()) } else { 0.0 };
        if large > 0.0 {
            (observed / large, found.into_iter().map(|statistic| statistic / large).collect())
        } else {
            (observed, found)
        }
    }
}

/// Returns the root mean square of the unusually large values, see [`USUAL`].
fn size_of_largest(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let largest = &values[(USUAL * values.len() as f64) as usize..];
    (largest.iter().map(|value| value * value).sum::<f64>() / largest.len() as f64).sqrt()
}

fn bounded(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.clamp(-LARGEST, LARGEST)).collect()
}

/// Returns the distances of values from their median, negative for values below it.
fn centred(values: &[f64]) -> Vec<f64> {
    let middle = median(values.to_vec());
    values.iter().map(|value| value - middle).collect()
}

fn sizes(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.abs()).collect()
}

/// Converts values to their distances from the median, in standard deviations. Limits distances as
/// [`DrawPool::furthest`] describes. Returns zeros if all values are equal.
fn standard_units(values: &[f64], furthest: f64) -> Vec<f64> {
    let values = bounded(values);
    let centred = centred(&values);
    let (mut far, sizes) = (sizes(&centred), sizes(&values));
    let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let reach = largest(&far);
    if reach <= ROUNDING * largest(&sizes) {
        return vec![0.0; values.len()];
    }
    // If most values are equal, the others say how far values usually are from the median. What counts as equal must
    // not depend on the largest value, which may be absurd.
    let rounding = ROUNDING * median(sizes);
    if median(far.clone()) <= rounding {
        far.retain(|&distance| distance > rounding);
    }
    // For normal values, the standard deviation is 1.4826 times the median distance from the median.
    let most = (furthest * 1.4826 * median(far)).min(reach);
    // Divide first, so that no square overflows.
    let near: Vec<f64> = centred.iter().map(|value| (value / most).clamp(-1.0, 1.0)).collect();
    let mean = near.iter().sum::<f64>() / near.len() as f64;
    let deviation = (near.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / near.len() as f64).sqrt();
    near.into_iter().map(|value| value / deviation).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}
