//! Values measured at samples, and the uncertainty of their mean.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{normal, student};

/// The papers that a confidence interval is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Population {
    /// The given papers: intervals are for the rate over all possible samples of these papers. The width of an interval
    /// follows from differences between samples of the same paper and n.
    #[default]
    Suite,
    /// Papers like the given ones: intervals are for the rate over all such papers. The width of an interval follows
    /// from differences between papers, because the samples of a paper share functions, data and difficulty. With few
    /// papers, intervals are wide.
    Papers,
}

/// How confidence intervals are computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intervals {
    /// Confidence level, such as 0.95.
    pub level: f64,
    /// The papers that the intervals are about.
    pub population: Population,
    /// The word that texts use for a group of samples: "paper" or, for other kinds of tasks, another word.
    pub group: &'static str,
}

impl Intervals {
    /// Describes the population in a table's legend.
    #[must_use]
    pub fn legend(self) -> String {
        match self.population {
            Population::Suite => format!("over samples of these {}s", self.group),
            Population::Papers => format!("over {}s like these", self.group),
        }
    }
}

impl Default for Intervals {
    /// Returns the method for intervals with a level of 95%, over samples of the given papers.
    fn default() -> Self {
        Self { level: 0.95, population: Population::Suite, group: "paper" }
    }
}

/// A value of one sample, such as the share of its attempts that pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleValue<'a> {
    /// The sample's paper.
    pub paper: &'a str,
    /// The sample's number of masked functions.
    pub n: usize,
    /// The value.
    pub value: f64,
}

/// A mean over samples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mean {
    pub value: f64,
    /// Number of samples.
    pub count: usize,
    /// Variance of the mean.
    pub variance: f64,
    /// Degrees of freedom of the variance; 0 with a single draw.
    pub freedom: usize,
    /// Number of independent draws: samples, or papers.
    pub draws: usize,
    /// Values of the samples by stratum: one stratum per paper and n or, for [`Population::Papers`], a single stratum.
    pub strata: Vec<Vec<f64>>,
    /// Sum and count of each paper's values; empty if the independent draws are samples.
    pub papers: Vec<(f64, usize)>,
}

impl Mean {
    /// Computes the mean over all samples; `None` without samples.
    ///
    /// For [`Population::Suite`], the variance is that of a mean over strata, one for each paper and n, from which
    /// samples are drawn; the degrees of freedom are the number of samples minus that of strata. A stratum with a
    /// single sample has no spread, so single samples are merged: first those of the same paper, then the remaining
    /// ones, and if one is still left it joins the largest stratum.
    ///
    /// For [`Population::Papers`], the variance is that of a ratio of sums over papers (Cochran, "Sampling Techniques",
    /// 1977, section 9A.1), with the number of papers minus one as degrees of freedom. A single paper says nothing
    /// about others, so the variance of [`Population::Suite`] is used then.
    pub fn over(samples: &[SampleValue<'_>], population: Population) -> Option<Self> {
        let mut by_paper: BTreeMap<&str, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
        for sample in samples {
            by_paper.entry(sample.paper).or_default().entry(sample.n).or_default().push(sample.value);
        }
        let count = samples.len();
        let all = count as f64;
        // Sum in the order of papers, so that the result doesn't depend on the order of samples.
        let value = by_paper.values().flat_map(BTreeMap::values).flatten().sum::<f64>() / all;
        if population == Population::Papers && by_paper.len() > 1 {
            let papers: Vec<(f64, usize)> = by_paper
                .values()
                .map(|by_n| (by_n.values().flatten().sum(), by_n.values().map(Vec::len).sum()))
                .collect();
            let draws = papers.len();
            let squares: f64 = papers.iter().map(|&(sum, of)| (sum - value * of as f64).powi(2)).sum();
            let variance = squares * draws as f64 / (draws - 1) as f64 / (all * all);
            let strata = vec![by_paper.into_values().flat_map(BTreeMap::into_values).flatten().collect()];
            return Some(Self { value, count, variance, freedom: draws - 1, draws, strata, papers });
        }
        let strata = strata(by_paper);
        let variance = strata.iter().map(|values| values.len() as f64 * spread(values) / (all * all)).sum();
        let freedom = count.saturating_sub(strata.len());
        (count > 0).then_some(Self { value, count, variance, freedom, draws: count, strata, papers: Vec::new() })
    }
}

fn strata(by_paper: BTreeMap<&str, BTreeMap<usize, Vec<f64>>>) -> Vec<Vec<f64>> {
    let (mut strata, mut alone) = (Vec::new(), Vec::new());
    for by_n in by_paper.into_values() {
        let (several, single): (Vec<_>, Vec<_>) = by_n.into_values().partition(|values| values.len() > 1);
        strata.extend(several);
        let single = single.concat();
        if single.len() > 1 { strata.push(single) } else { alone.extend(single) }
    }
    match (alone.as_slice(), strata.iter_mut().max_by_key(|values| values.len())) {
        ([], _) => {}
        ([last], Some(largest)) => largest.push(*last),
        _ => strata.push(alone),
    }
    strata
}

/// Returns the unbiased variance of the values; 0 for a single value.
pub(super) fn spread(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0)
}

/// Returns Student's two-sided quantile at a level; the normal quantile if `freedom` is `None`.
pub(super) fn two_sided(level: f64, freedom: Option<usize>) -> f64 {
    let p = f64::midpoint(1.0, level);
    freedom.map_or_else(|| normal::quantile(p), |freedom| student::quantile(p, freedom.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(paper: &str, n: usize, value: f64) -> SampleValue<'_> {
        SampleValue { paper, n, value }
    }

    #[test]
    fn the_variance_of_a_mean_is_computed_within_equal_paper_and_n_or_between_papers() {
        let samples = [("a", 1, 1.0), ("a", 1, 0.8), ("a", 3, 0.1), ("a", 3, 0.3), ("b", 1, 0.5), ("b", 1, 0.5)];
        let samples = samples.map(|(paper, n, value)| at(paper, n, value));
        let mean = Mean::over(&samples, Population::Suite).unwrap();
        // Two of the three strata have the variance 0.02, and one has the variance 0. Each has two of the six samples,
        // so the variance of the mean is (2 * 0.02 + 2 * 0.02) / 36.
        assert!((mean.variance - 0.08 / 36.0).abs() < 1e-15 && mean.freedom == 3, "{mean:?}");
        assert!((mean.value - 3.2 / 6.0).abs() < 1e-15);
        // The variance is computed from each paper's sum of values minus the mean times the paper's number of samples:
        // 2.2 - 4 * 0.5333 and 1 - 2 * 0.5333.
        let mean = Mean::over(&samples, Population::Papers).unwrap();
        let wanted = 2.0 * 2.0 * (2.2 - 4.0 * 3.2 / 6.0_f64).powi(2) / 36.0;
        assert!((mean.variance - wanted).abs() < 1e-15 && (mean.freedom, mean.draws) == (1, 2), "{mean:?}");
    }

    #[test]
    fn strata_that_contain_a_single_sample_are_merged_with_other_strata() {
        let sizes = |samples: &[SampleValue<'_>]| {
            let mut sizes: Vec<_> =
                Mean::over(samples, Population::Suite).unwrap().strata.iter().map(Vec::len).collect();
            sizes.sort_unstable();
            sizes
        };
        // Strata of a single sample are merged: first those of the same paper, then the remaining ones.
        assert_eq!(sizes(&[at("a", 1, 0.0), at("a", 2, 0.0), at("b", 1, 0.0), at("c", 1, 0.0)]), [2, 2]);
        assert_eq!(sizes(&[at("a", 1, 0.0), at("a", 1, 0.0), at("b", 1, 0.0)]), [3]);
        assert_eq!(sizes(&[at("a", 1, 0.0)]), [1]);
        assert_eq!(Mean::over(&[], Population::Suite), None);
        assert_eq!(Mean::over(&[], Population::Papers), None);
    }
}
