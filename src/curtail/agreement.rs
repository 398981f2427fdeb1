//! Precision and recall of one verdict as a predictor of another verdict, with intervals. All functions are pure.
//!
//! "Positive" means that a solution passes. Without weights, every case counts once, and intervals are Wilson's. With
//! weights, every group of cases (those of one function) has the same total weight. Intervals then come from a
//! bootstrap over whole groups, because the cases of one function are not independent.

use std::collections::BTreeMap;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::Serialize;

use crate::stats::{Interval, wilson};

/// Confidence level of all intervals.
const LEVEL: f64 = 0.95;

/// Number of bootstrap replicates.
const REPLICATES: usize = 10_000;

/// The two verdicts on one solution, to be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SolutionCase {
    /// Group that the solution belongs to, such as the function that it changes.
    pub group: String,
    /// Whether the solution passes the full experiment.
    pub full: bool,
    /// Whether the solution passes the curtailed experiment.
    pub curtailed: bool,
}

/// A proportion with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Proportion {
    /// The proportion.
    pub value: f64,
    /// 95% confidence interval of the proportion.
    pub interval: Interval,
}

/// How well the verdicts of curtailed experiments agree with those of full experiments.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Number of solutions that pass both the curtailed and the full experiment.
    pub both: usize,
    /// Number of solutions that pass the curtailed experiment but fail the full one: wrong solutions that are accepted.
    pub false_pass: usize,
    /// Number of solutions that fail the curtailed experiment but pass the full one: right solutions that are rejected.
    pub false_fail: usize,
    /// Number of solutions that fail both the curtailed and the full experiment.
    pub neither: usize,
    /// Among solutions that pass the curtailed experiment, the share that passes the full one; `None` if there are
    /// none.
    pub precision: Option<Proportion>,
    /// Among solutions that pass the full experiment, the share that passes the curtailed one; `None` if there are
    /// none.
    pub recall: Option<Proportion>,
    /// Precision, computed with the same weight for each [`SolutionCase::group`] instead of each solution.
    pub weighted_precision: Option<Proportion>,
    /// Recall, computed with the same weight for each [`SolutionCase::group`] instead of each solution.
    pub weighted_recall: Option<Proportion>,
}

/// Three shares of the cases of one [`SolutionCase::group`]: those that pass both the curtailed and the full
/// experiment, those that are false passes, and those that are false fails.
type CaseShares = [f64; 3];

impl Agreement {
    /// Computes the agreement of all cases. The bootstrap's seed is fixed, so equal cases give equal intervals.
    #[must_use]
    pub(super) fn from_cases(cases: &[SolutionCase]) -> Self {
        let mut groups: BTreeMap<&str, (CaseShares, f64)> = BTreeMap::new();
        let mut this = Self::default();
        for case in cases {
            let (sums, count) = groups.entry(&case.group).or_default();
            *count += 1.0;
            match (case.full, case.curtailed) {
                (true, true) => {
                    this.both += 1;
                    sums[0] += 1.0;
                }
                (false, true) => {
                    this.false_pass += 1;
                    sums[1] += 1.0;
                }
                (true, false) => {
                    this.false_fail += 1;
                    sums[2] += 1.0;
                }
                (false, false) => this.neither += 1,
            }
        }
        let plain = |wrong: usize| {
            let (right, total) = (this.both as f64, (this.both + wrong) as f64);
            wilson(right, total, LEVEL).map(|interval| Proportion { value: right / total, interval })
        };
        this.precision = plain(this.false_pass);
        this.recall = plain(this.false_fail);
        let groups: Vec<CaseShares> = groups.into_values().map(|(sums, count)| sums.map(|sum| sum / count)).collect();
        this.weighted_precision = weighted(&groups, 1);
        this.weighted_recall = weighted(&groups, 2);
        this
    }

    /// Number of cases.
    #[must_use]
    pub const fn cases(&self) -> usize {
        self.both + self.false_pass + self.false_fail + self.neither
    }

    /// Number of cases that pass the full experiment.
    #[must_use]
    pub const fn passing(&self) -> usize {
        self.both + self.false_fail
    }

    /// Whether precision and recall are both at least `goal`.
    #[must_use]
    pub(super) fn meets(&self, goal: f64) -> bool {
        [self.precision, self.recall].iter().all(|rate| rate.is_some_and(|rate| rate.value >= goal))
    }
}

/// Computes `sums[0] / (sums[0] + sums[wrong])` with equal weight per group. The interval is a bootstrap interval over
/// groups. If all bootstrap replicates are equal, this interval would have no width, so Wilson's interval is used
/// instead; its number of trials is the number of groups for which the denominator is not 0.
fn weighted(groups: &[CaseShares], wrong: usize) -> Option<Proportion> {
    let share = |sums: &CaseShares| (sums[0] + sums[wrong] > 0.0).then(|| sums[0] / (sums[0] + sums[wrong]));
    let add = |mut total: CaseShares, group: &CaseShares| {
        for (total, sum) in total.iter_mut().zip(group) {
            *total += sum;
        }
        total
    };
    let value = share(&groups.iter().fold(CaseShares::default(), add))?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut index = || (((random.next_u64() >> 32) * groups.len() as u64) >> 32) as usize;
    let mut replicates: Vec<f64> = (0..REPLICATES)
        .filter_map(|_| share(&(0..groups.len()).map(|_| &groups[index()]).fold(CaseShares::default(), add)))
        .collect();
    replicates.sort_unstable_by(f64::total_cmp);
    let [first, .., last] = replicates[..] else { return None };
    let interval = if first < last {
        let quantile = |p: f64| replicates[(p * (replicates.len() - 1) as f64).round() as usize];
        Interval { low: quantile((1.0 - LEVEL) / 2.0), high: quantile(f64::midpoint(1.0, LEVEL)) }
    } else {
        let count = groups.iter().filter(|group| share(group).is_some()).count() as f64;
        wilson(value * count, count, LEVEL)?
    };
    Some(Proportion { value, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `times` equal cases in one group.
    fn cases(group: &str, full: bool, curtailed: bool, times: usize) -> Vec<SolutionCase> {
        vec![SolutionCase { group: group.to_owned(), full, curtailed }; times]
    }

    fn rounded(rate: Option<Proportion>) -> (f64, f64, f64) {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let Proportion { value, interval } = rate.unwrap();
        (round(value), round(interval.low), round(interval.high))
    }

    #[test]
    fn precision_and_recall_count_every_case_once() {
        let all = [
            cases("f", true, true, 8),
            cases("f", false, true, 2),
            cases("g", true, false, 1),
            cases("g", false, false, 9),
        ];
        let agreement = Agreement::from_cases(&all.concat());
        assert_eq!((agreement.cases(), agreement.passing()), (20, 9));
        // Wilson's intervals for 8 of 10 and 8 of 9; R's prop.test(correct = FALSE) gives the same.
        assert_eq!(rounded(agreement.precision), (0.8, 0.49, 0.943));
        assert_eq!(rounded(agreement.recall), (0.889, 0.565, 0.98));
        assert!(agreement.meets(0.8) && !agreement.meets(0.81));
    }

    #[test]
    fn in_weighted_rates_each_function_has_the_same_weight_whatever_its_number_of_cases() {
        let all = [
            cases("f", true, true, 99),
            cases("f", false, true, 1),
            cases("g", false, true, 1),
            cases("g", true, true, 1),
        ];
        let agreement = Agreement::from_cases(&all.concat());
        // In group f, 99% of the cases that pass the curtailed experiment pass the full one, too; in group g, 50% do.
        assert_eq!(rounded(agreement.weighted_precision), (0.745, 0.5, 0.99));
        assert_eq!(rounded(agreement.weighted_recall), (1.0, 0.342, 1.0));
    }

    #[test]
    fn full_agreement_still_has_a_wide_interval() {
        let agreement = Agreement::from_cases(
            &[cases("f", true, true, 3), cases("g", true, true, 1), cases("h", false, false, 9)].concat(),
        );
        assert_eq!(rounded(agreement.precision), (1.0, 0.51, 1.0));
        // Only two of the groups have passing cases.
        assert_eq!(rounded(agreement.weighted_precision), (1.0, 0.342, 1.0));
    }

    #[test]
    fn without_passing_cases_there_is_no_rate_and_no_goal_is_met() {
        for all in [Vec::new(), cases("f", false, false, 3)] {
            let agreement = Agreement::from_cases(&all);
            assert_eq!((agreement.precision, agreement.weighted_recall), (None, None));
            assert!(!agreement.meets(0.0));
        }
    }
}
