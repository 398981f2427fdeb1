//! Two runs on the same samples: is the difference more than chance?

use super::bootstrap::{interval, replicates, trials};
use super::{Bootstrap, Interval, wilson};

/// Pairs of attempts of which exactly one passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Discordant {
    /// Only the first passed.
    pub first: u64,
    /// Only the second passed.
    pub second: u64,
}

/// The two-sided p-value of McNemar's exact test: under the null hypothesis each discordant pair goes either way with
/// chance one half, so it is twice the smaller binomial tail, at most 1 (McNemar, 1947; the exact form as in Fagerland,
/// Lydersen and Laake, "The McNemar test for binary matched-pairs data", 2013, section 2).
///
/// It takes pairs as independent, which attempts at the same sample are not: give it one pair a sample.
#[must_use]
pub fn mcnemar(pairs: Discordant) -> f64 {
    let total = pairs.first + pairs.second;
    let smaller = pairs.first.min(pairs.second);
    // The sum of C(total, i) / 2^total for i up to the smaller count; by logarithms, since the first terms underflow.
    let mut log_term = -(total as f64) * std::f64::consts::LN_2;
    let mut tail = log_term.exp();
    for i in 0..smaller {
        log_term += ((total - i) as f64).ln() - ((i + 1) as f64).ln();
        tail += log_term.exp();
    }
    (2.0 * tail).min(1.0)
}

/// p-values adjusted for having made several comparisons: the smallest times their number, the next times one less,
/// and so on, never less than the one before, at most 1 (Holm, "A simple sequentially rejective multiple test
/// procedure", 1979). In the order given.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, place) in order.into_iter().enumerate() {
        least = least.max((p_values.len() - rank) as f64 * p_values[place]).min(1.0);
        adjusted[place] = least;
    }
    adjusted
}

/// The interval of a mean difference over paired samples: `papers[p][s]` is the second run's rate less the first's at
/// sample s of paper p, in [-1, 1]. Drawn as by [`super::bootstrap`], each sample's pair as a whole.
///
/// Where all differences are the same the bootstrap would claim certainty. The interval is then widened by what Wilson's
/// gives for the share of samples that could differ although none of so many did. `None` when there is no sample.
#[must_use]
pub fn paired_bootstrap(papers: &[Vec<f64>], how: Bootstrap) -> Option<Interval> {
    let columns: Vec<Vec<[f64; 1]>> = papers.iter().map(|samples| samples.iter().map(|&d| [d]).collect()).collect();
    let [means] = replicates(&columns, how)?;
    let all = means[0];
    // Student's interval over few papers reaches beyond what a difference of rates can be.
    let clamped = |found: Interval| Interval { low: found.low.max(-1.0), high: found.high.min(1.0) };
    interval(means, papers, how).map(clamped).or_else(|| {
        let total = trials(papers, how) as f64;
        let slack = wilson(0.0, total, how.level).map_or(1.0, |interval| interval.high);
        Some(Interval { low: (all - slack).max(-1.0), high: (all + slack).min(1.0) })
    })
}
