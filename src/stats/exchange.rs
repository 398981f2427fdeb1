//! Whether several draws come from the same distribution: a permutation test whose significance level holds for all
//! values together.
//!
//! If the distributions are equal, every assignment of the pooled draws to the groups is equally likely, whatever the
//! distribution is. Each value has two statistics: the distance between two groups' means in standard deviations of all
//! draws, and, if the first group has several draws, the same for the draws' distances from the median, since draws on
//! both sides of it may have the right mean. The p of a statistic is the share of assignments in which the largest
//! statistic of all values is at least as large (Westfall and Young, *Resampling-Based Multiple Testing*, 1993,
//! single-step max-T). So if the groups have the same distribution, the probability that at least one p is at most the
//! level is itself at most the level, for any number of values, correlated or not.

use super::uniform::Uniform;

/// Relative difference below which two values count as equal, because rounding can cause it.
pub const ROUNDING: f64 = 1e-9;

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
    /// otherwise hide every difference. Distances from the median are limited to twice as much. Without effect if a
    /// single draw is compared with all others: such a draw is recognised only by being further away than they are.
    pub furthest: f64,
}

impl DrawPool {
    /// Whether a single draw is compared with all others.
    #[must_use]
    pub fn is_one_against_all(&self) -> bool {
        self.first == 1 && self.first + self.second == self.draws.len()
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
/// Pools with the same group sizes share their random assignments, so draws with the same index are in the same group
/// in all of these pools. Suppose that one draw of the first group is an outlier in two pools. With separate
/// assignments, each pool would have its own chance to put its outlier into the first group, which would about double
/// the p-value.
#[must_use]
pub fn adjusted_p(pools: &[DrawPool], assignments: usize) -> Vec<Vec<AdjustedP>> {
    let prepared: Vec<StandardPool> = pools.iter().map(StandardPool::new).collect();
    let observed: Vec<Vec<f64>> = prepared
        .iter()
        .map(|pool| {
            let mut statistics = Vec::new();
            let order: Vec<usize> = (0..pool.rows.len()).collect();
            pool.statistics(&order, &mut |statistic| statistics.push(statistic));
            statistics
        })
        .collect();
    let mut random = Uniform::seeded(1);
    // For each distinct [`Sizes`], an order of the draws' indices. Each random assignment shuffles this order, and all
    // pools with these sizes use the same order.
    let mut orders: Vec<(Sizes, Vec<usize>)> = Vec::new();
    let shared: Vec<usize> = prepared
        .iter()
        .map(|pool| {
            let sizes = pool.sizes();
            orders.iter().position(|(known, _)| *known == sizes).unwrap_or_else(|| {
                orders.push((sizes, (0..pool.rows.len()).collect()));
                orders.len() - 1
            })
        })
        .collect();
    let mut largest = Vec::with_capacity(assignments);
    for turn in 0..assignments {
        for ((draws, first, second), order) in &mut orders {
            if *first == 1 && *second + 1 == *draws {
                let place = order.iter().position(|&draw| draw == turn % *draws).unwrap_or(0);
                order.swap(0, place);
                continue;
            }
            // Shuffle only as many places as needed. Without a third group, these are the places of the first group,
            // because all other draws form the second.
            let chosen = if *first + *second == *draws { *first } else { *first + *second };
            for place in 0..chosen {
                let other = place + (random.next() * (*draws - place) as f64) as usize;
                order.swap(place, other);
            }
        }
        let mut most: f64 = 0.0;
        for (pool, &place) in prepared.iter().zip(&shared) {
            pool.statistics(&orders[place].1, &mut |statistic| most = most.max(statistic));
        }
        largest.push(most);
    }
    largest.sort_by(f64::total_cmp);
    let p = |statistic: f64| {
        // Sums of the same numbers in different orders are equal only up to rounding.
        let below = largest.partition_point(|&other| other < statistic * (1.0 - ROUNDING));
        (1 + largest.len() - below) as f64 / (1 + largest.len()) as f64
    };
    let values = |(statistics, pool): (Vec<f64>, &DrawPool)| -> Vec<AdjustedP> {
        let values = pool.draws.first().map_or(0, Vec::len);
        let spread = |value: usize| statistics.get(values + value).map_or(1.0, |&statistic| p(statistic));
        (0..values).map(|value| AdjustedP { mean: p(statistics[value]), spread: spread(value) }).collect()
    };
    observed.into_iter().zip(pools).map(values).collect()
}

/// The number of draws of a [`DrawPool`], and the sizes of its first and second group.
type Sizes = (usize, usize, usize);

/// A [`DrawPool`] with its values converted by [`standard_units`]. In each row, the values come first, then their
/// distances from the median, if the first group has several draws.
struct StandardPool {
    rows: Vec<Vec<f64>>,
    totals: Vec<f64>,
    first: usize,
    second: usize,
}

impl StandardPool {
    fn new(pool: &DrawPool) -> Self {
        let furthest = if pool.is_one_against_all() { f64::INFINITY } else { pool.furthest };
        let values = pool.draws.first().map_or(0, Vec::len);
        let values: Vec<Vec<f64>> =
            (0..values).map(|value| pool.draws.iter().map(|row| row[value]).collect()).collect();
        let mut columns: Vec<Vec<f64>> = values.iter().map(|value| standard_units(value, furthest)).collect();
        if pool.first > 1 {
            // Twice as far, because few distances far from the usual ones are what a wrong spread looks like.
            columns
                .extend(values.iter().map(|value| standard_units(&sizes(&centred(&bounded(value))), 2.0 * furthest)));
        }
        let rows = (0..pool.draws.len()).map(|draw| columns.iter().map(|column| column[draw]).collect()).collect();
        let totals = columns.iter().map(|column| column.iter().sum()).collect();
        Self { rows, totals, first: pool.first, second: pool.second }
    }

    const fn sizes(&self) -> Sizes {
        (self.rows.len(), self.first, self.second)
    }

    /// Calls `found` with the statistic of each value if the draws are assigned to the groups in this order: the first
    /// draws of `order` form the first group, the next ones the second group.
    fn statistics(&self, order: &[usize], found: &mut impl FnMut(f64)) {
        let (first, second) = (self.first, self.second);
        for (value, total) in self.totals.iter().enumerate() {
            let sum = |places: &[usize]| places.iter().map(|&place| self.rows[place][value]).sum::<f64>();
            let one = sum(&order[..first]);
            let other = if first + second == order.len() { total - one } else { sum(&order[first..first + second]) };
            found((one / first as f64 - other / second as f64).abs());
        }
    }
}

fn bounded(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.clamp(-LARGEST, LARGEST)).collect()
}

/// The distances of values from their median, negative for values below it.
fn centred(values: &[f64]) -> Vec<f64> {
    let middle = median(values.to_vec());
    values.iter().map(|value| value - middle).collect()
}

fn sizes(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.abs()).collect()
}

/// Values as distances from their median in standard deviations, with far values moved closer; zeros if all values are
/// equal.
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
