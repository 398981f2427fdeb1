//! Whether several draws come from the same distribution: a permutation test whose significance level holds for all
//! values together.
//!
//! If the distributions are equal, every assignment of the pooled draws to the groups is equally likely, whatever the
//! distribution is. The statistic of a value is the distance between two groups' means in standard deviations of all
//! draws. Each value's p is the share of assignments in which the largest statistic of all values is at least the
//! value's own statistic (Westfall and Young, *Resampling-Based Multiple Testing*, 1993, single-step max-T). So if the
//! groups have the same distribution, the probability that at least one value gets a p of at most the level is itself
//! at most the level, for any number of values, correlated or not.

use super::uniform::Uniform;

/// Relative difference below which two values count as equal, because rounding can cause it.
pub const ROUNDING: f64 = 1e-9;

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
    /// otherwise hide every difference.
    pub furthest: f64,
}

/// Returns the p-value of each value of each pool, adjusted for testing all values of all pools together. Each p-value
/// compares the observed assignment of draws to groups with `assignments` random ones. The random assignments come from
/// a fixed seed, so the same draws always have the same p-values.
///
/// Pools with the same group sizes share their random assignments, so draws with the same index are in the same group
/// in all of these pools. Suppose that one draw of the first group is an outlier in two pools. With separate
/// assignments, each pool would have its own chance to put its outlier into the first group, which would about double
/// the p-value.
#[must_use]
pub fn adjusted_p(pools: &[DrawPool], assignments: usize) -> Vec<Vec<f64>> {
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
    for _ in 0..assignments {
        for ((draws, first, second), order) in &mut orders {
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
    observed.into_iter().map(|statistics| statistics.into_iter().map(p).collect()).collect()
}

/// The number of draws of a [`DrawPool`], and the sizes of its first and second group.
type Sizes = (usize, usize, usize);

/// A [`DrawPool`] with its values converted by [`standard_units`].
struct StandardPool {
    rows: Vec<Vec<f64>>,
    totals: Vec<f64>,
    first: usize,
    second: usize,
}

impl StandardPool {
    fn new(pool: &DrawPool) -> Self {
        let mut rows = pool.draws.clone();
        let values = rows.first().map_or(0, Vec::len);
        for value in 0..values {
            let scaled = standard_units(&rows.iter().map(|row| row[value]).collect::<Vec<_>>(), pool.furthest);
            for (row, scaled) in rows.iter_mut().zip(scaled) {
                row[value] = scaled;
            }
        }
        let totals = (0..values).map(|value| rows.iter().map(|row| row[value]).sum()).collect();
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

/// Values as distances from their median in standard deviations, with far values moved closer; zeros if all values are
/// equal.
fn standard_units(values: &[f64], furthest: f64) -> Vec<f64> {
    let middle = median(values.to_vec());
    let reach = values.iter().fold(0.0_f64, |most, value| most.max((value - middle).abs()));
    let size = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if reach <= ROUNDING * size {
        return vec![0.0; values.len()];
    }
    // For normal values, the standard deviation is 1.4826 times the median distance from the median.
    let robust = 1.4826 * median(values.iter().map(|value| (value - middle).abs()).collect());
    let most = if robust > ROUNDING * size { furthest * robust } else { reach };
    let near: Vec<f64> = values.iter().map(|value| (value - middle).clamp(-most, most)).collect();
    let mean = near.iter().sum::<f64>() / near.len() as f64;
    let deviation = (near.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / near.len() as f64).sqrt();
    near.into_iter().map(|value| value / deviation).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}
