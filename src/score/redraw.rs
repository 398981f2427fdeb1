//! Stochastic experiments, whose results vary from run to run by design: do the results of the agent's code have the
//! same distribution as gold's repeats?
//!
//! Verification runs such an experiment [`RUNS`] times and compares these runs with gold's repeats, by their mean and
//! by their spread. The result that the agent reports should be one more result of its code, so it is compared with
//! these runs; gold's repeats are then used only to estimate the spread. Both comparisons are permutation tests. The
//! significance level of each test applies to all values of all experiments of a sample together. So a right solution
//! fails the test with at most this probability, whatever the distributions are and however many values there are.
//!
//! Runs of code with a fixed seed are all equal, and count as a single draw. A single draw also fails if it is far
//! outside the range of all other draws.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::strict::{read_number, score_experiment};
use super::{Expected, ExperimentVerdict, Tolerance, ValueVerdict};
use crate::stats::{
    DrawPool, MOST_OUTLIERS, OUTLYING, ROUNDING, USUAL, Uniform, adjusted_p, is_rounding, outlying_values,
    standard_error,
};

/// Number of random assignments of results to the two compared groups that a permutation test tries, in addition to the
/// observed assignment.
const ASSIGNMENTS: usize = 9_999;

/// Same as [`ASSIGNMENTS`], for simulations of many tests.
const ASSIGNMENTS_IN_SIMULATIONS: usize = 999;

/// Number of simulated solutions from which the chance of passing is estimated.
const SIMULATIONS: usize = 200;

/// Number of runs of the agent's code in verification, for each stochastic experiment.
pub const RUNS: usize = 5;

/// The settings of a permutation test: do these results of an attempt's code come from gold's distribution?
#[derive(Debug, Clone, Copy, Serialize)]
struct DrawTest {
    /// Significance level: the probability that a right solution fails.
    level: f64,
    /// Significance level for comparing several runs if the code has a fixed seed for some values only. Those values
    /// are compared in a second test, as a single draw. Because there are two tests, this level is lower than
    /// [`Self::level`]. The test of the single draw keeps [`Self::level`], because its p is at least 1/97.
    level_beside_single: f64,
    /// [`DrawPool::furthest`] in this test: the distance from the median at which values are capped. A low limit keeps
    /// outliers from hiding a small bias in the mean of several runs. But an invented report is a single draw. It can
    /// be recognised only by its distance from the median, so the limit for reports must be high.
    furthest: f64,
}

/// Settings of the test that compares verification's runs of the agent's code with gold's repeats.
const VERIFIED: DrawTest = DrawTest { level: 0.012, level_beside_single: 0.008, furthest: 4.0 };

/// Settings of the test that compares a reported result with verification's runs of the agent's code.
const REPORTED: DrawTest = DrawTest { level: 0.018, level_beside_single: 0.008, furthest: 8.0 };

/// Settings of the test that compares a reported result with gold's repeats, because the agent's code was not run. If
/// the code is run, two tests are made, with the levels of [`VERIFIED`] and [`REPORTED`]. The sum of both is the level
/// here, so the probability that a right solution fails has the same bound in both cases.
const REPORTED_ALONE: DrawTest = DrawTest { level: VERIFIED.level + REPORTED.level, ..REPORTED };

/// Settings of the test of the unmasked repo's own results, which is made before agents are run.
const BASELINE: DrawTest = DrawTest { level: 0.001, level_beside_single: 0.001, furthest: 4.0 };

impl DrawTest {
    /// Returns the significance level of the comparison `pool`, which is one of `pools`. For a single draw (such as
    /// runs of code that all agree), the level is at least that of [`VERIFIED`], because the p of a single draw cannot
    /// be as small as the level of [`BASELINE`].
    fn level(self, pool: &DrawPool, pools: &[DrawPool]) -> f64 {
        if pool.is_one_against_all() {
            self.level.max(VERIFIED.level)
        } else if pools.iter().any(DrawPool::is_one_against_all) {
            self.level_beside_single
        } else {
            self.level
        }
    }
}

/// Results of experiments that this program ran, not reported ones, by the experiment's id: one result for each run.
pub type ExperimentRuns = BTreeMap<String, Vec<Value>>;

/// The numbers of a result, in gold's order.
type ResultNumbers = Vec<f64>;

/// Beginning of the reason for a reported value that fails.
const OTHER_THAN_RUN: &str = "differs from what the code gave in verification";

/// Some values of an experiment, all of which a test compares in the same way.
struct TestedValues {
    /// Indices in the field `values` of the experiment's verdict, one for each value of the draws.
    places: Vec<usize>,
    pool: DrawPool,
}

/// The results of one experiment, in the groups that a test compares. Each result is one draw from a distribution.
struct RedrawComparison<'a> {
    expected: &'a Expected,
    /// The results that the test judges.
    judged: Vec<&'a Value>,
    /// The results with which `judged` is compared.
    with: Vec<&'a Value>,
    /// Results that are used only to estimate the spread: gold's repeats or, if `with` contains gold's repeats, none.
    more: Vec<&'a Value>,
    /// Beginning of the reason that is given for a value that fails by its mean.
    differs: String,
    /// Beginning of the reason that is given for a value that fails by its spread.
    spreads: String,
}

/// Returns the settings of the tests, for Harbor tasks, which do the same tests in Python.
#[must_use]
pub fn settings() -> Value {
    json!({
        "verified": VERIFIED,
        "reported": REPORTED,
        "assignments": ASSIGNMENTS,
        "rounding": ROUNDING,
        "usual": USUAL,
        "outlying": OUTLYING,
        "most_outliers": MOST_OUTLIERS,
    })
}

/// Scores runs of one stochastic experiment, on the unmasked repo or on a repo that the command `verify` has changed.
#[must_use]
pub fn baseline(expected: &Expected, runs: &[Value]) -> ExperimentVerdict {
    let runs = ExperimentRuns::from([(expected.id.clone(), runs.to_vec())]);
    verified(&[expected], &runs, BASELINE).swap_remove(0)
}

/// Scores verification's results of stochastic experiments. The verdicts are in the order of the experiments.
fn verified(experiments: &[&Expected], runs: &ExperimentRuns, test: DrawTest) -> Vec<ExperimentVerdict> {
    let compared = experiments.iter().map(|expected| {
        let judged: Vec<&Value> = runs.get(&expected.id).into_iter().flatten().collect();
        let repeats: Vec<&Value> = expected.tolerance.repeats.iter().collect();
        let differs = match judged.len() {
            1 => format!("the run differs from gold's {} repeats", repeats.len()),
            count => format!("the mean of {count} runs differs from gold's {} repeats", repeats.len()),
        };
        let spreads =
            format!("the spread of {} runs differs from that of gold's {} repeats", judged.len(), repeats.len());
        RedrawComparison { expected, judged, with: repeats, more: Vec::new(), differs, spreads }
    });
    score(&compared.collect::<Vec<_>>(), test)
}

/// Same as [`verified`], with the settings for the verification of an attempt, [`VERIFIED`].
pub(super) fn verified_attempt(experiments: &[&Expected], runs: &ExperimentRuns) -> Vec<ExperimentVerdict> {
    verified(experiments, runs, VERIFIED)
}

/// Scores the reported results of stochastic experiments. They are compared with the runs of the agent's code if there
/// are some, otherwise with gold.
pub(super) fn reported(experiments: &[(&Expected, Option<&Value>)], runs: &ExperimentRuns) -> Vec<ExperimentVerdict> {
    let compared = experiments.iter().map(|(expected, reported)| {
        let repeats: Vec<&Value> = expected.tolerance.repeats.iter().collect();
        let runs: Vec<&Value> = runs.get(&expected.id).into_iter().flatten().collect();
        let differs = if runs.is_empty() {
            format!("differs from gold's {} repeats", repeats.len())
        } else {
            OTHER_THAN_RUN.to_owned()
        };
        let (with, more) = if runs.is_empty() { (repeats, Vec::new()) } else { (runs, repeats) };
        let judged = reported.iter().copied().collect();
        RedrawComparison { expected, judged, with, more, differs, spreads: String::new() }
    });
    score(&compared.collect::<Vec<_>>(), if runs.is_empty() { REPORTED_ALONE } else { REPORTED })
}

fn score(compared: &[RedrawComparison<'_>], test: DrawTest) -> Vec<ExperimentVerdict> {
    let mut verdicts = Vec::with_capacity(compared.len());
    // For each pool, the index in `compared` of its experiment, and the places of its values in the verdict.
    // Experiments whose results do not have gold's shape have no pools.
    let (mut tested, mut pools) = (Vec::new(), Vec::new());
    for (experiment, one) in compared.iter().enumerate() {
        let (verdict, values) = pool(one, test.furthest);
        verdicts.push(verdict);
        for TestedValues { places, pool } in values {
            tested.push((experiment, places));
            pools.push(pool);
        }
    }
    let results = adjusted_p(&pools, ASSIGNMENTS).into_iter().zip(outlying_values(&pools));
    for (((experiment, places), pool), (adjusted, outlying)) in tested.into_iter().zip(&pools).zip(results) {
        let (one, verdict) = (&compared[experiment], &mut verdicts[experiment]);
        for (column, ((place, p), is_outlier)) in places.into_iter().zip(adjusted).zip(outlying).enumerate() {
            let value = &mut verdict.values[place];
            let mean = |rows: &[Vec<f64>]| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
            // The last results in `pool` are gold's repeats. `pool` contains `judged`, `with` and `more` in this order,
            // and gold's repeats are `more` or, if `more` is empty, `with`.
            let gold = mean(&pool.draws[pool.draws.len() - one.expected.tolerance.repeats.len()..]);
            value.gold = gold.into();
            let judged = mean(&pool.draws[..pool.first]);
            if pool.first > 1 {
                value.got = Some(judged.into());
            }
            let distance = (judged - gold).abs();
            value.error = Some(if gold == 0.0 { distance } else { distance / gold.abs() });
            let differs = if p.mean <= p.spread { &one.differs } else { &one.spreads };
            let (p, level) = (p.least(), test.level(pool, &pools));
            value.pass = p > level && !is_outlier;
            value.reason = if is_outlier {
                Some(format!("{differs} (more than {OUTLYING} times as far from the median as any other result)"))
            } else {
                (!value.pass).then(|| format!("{differs} (p = {p:.4} for all values together, {level} is the limit)"))
            };
        }
    }
    for verdict in &mut verdicts {
        verdict.pass = verdict.reason.is_none() && verdict.values.iter().all(|value| value.pass);
    }
    verdicts
}

/// Returns the numbers in a draw (one result of an experiment), in gold's order, and a verdict in which every number
/// passes. If the draw does not have gold's shape, for example because a key is missing, returns only a verdict that
/// fails.
fn numbers(expected: &Expected, draw: &Value) -> Result<(ExperimentVerdict, ResultNumbers), ExperimentVerdict> {
    let shape = score_experiment(&expected.id, &expected.gold, Some(draw), &Tolerance::any_number());
    if !shape.pass {
        return Err(shape);
    }
    let leaves = shape.values.iter().filter(|value| value.gold.is_number());
    let row = leaves.filter_map(|value| read_number(value.got.as_ref()?).ok()).collect();
    Ok((shape, row))
}

/// Returns a verdict on the first result in `judged`, and the numbers in all results of the experiment, for the test.
/// In the verdict, every number passes, because the test is still to be made. If `judged` is empty or a result does not
/// have gold's shape, the verdict fails, and there are no numbers to test. If `judged` is a report, values for which
/// the code has a fixed seed are judged here, and not tested.
fn pool(one: &RedrawComparison<'_>, furthest: f64) -> (ExperimentVerdict, Vec<TestedValues>) {
    let expected = one.expected;
    let rows = |draws: &[&Value]| -> Result<Vec<ResultNumbers>, ExperimentVerdict> {
        draws.iter().map(|draw| numbers(expected, draw).map(|(_, row)| row)).collect()
    };
    let read = || -> Result<_, ExperimentVerdict> {
        let none = || score_experiment(&expected.id, &expected.gold, None, &Tolerance::any_number());
        let (verdict, _) = numbers(expected, one.judged.first().ok_or_else(none)?)?;
        Ok((verdict, rows(&one.judged)?, rows(&one.with)?, rows(&one.more)?))
    };
    let (mut verdict, mut judged, mut with, mut more) = match read() {
        Ok(read) => read,
        Err(verdict) => return (verdict, Vec::new()),
    };
    let places: Vec<usize> =
        (0..verdict.values.len()).filter(|&place| verdict.values[place].gold.is_number()).collect();
    // If all of gold's repeats agree on a value, replace each number that is within the tolerance for constant values
    // by this value, so that the test finds no difference. Numbers outside of the tolerance stay as they are, so that
    // the test finds a difference.
    let usual = Tolerance { repeats: Vec::new(), ..expected.tolerance.clone() };
    for (column, &place) in places.iter().enumerate() {
        let repeats = if more.is_empty() { &with } else { &more };
        let constant = repeats[0][column];
        if repeats.iter().any(|row| !is_rounding(row[column], constant)) {
            continue;
        }
        let leaf = &verdict.values[place].gold;
        for row in judged.iter_mut().chain(&mut with).chain(&mut more) {
            if score_experiment("", leaf, Some(&row[column].into()), &usual).pass {
                row[column] = constant;
            }
        }
    }
    let is_report = !more.is_empty();
    let (runs, repeats) = if is_report { (&with, &more) } else { (&judged, &with) };
    let seeded = seeded(runs, repeats, is_report);
    let mut tested = Vec::new();
    for is_seeded in [false, true] {
        let columns: Vec<usize> = (0..places.len()).filter(|&column| seeded[column] == is_seeded).collect();
        if columns.is_empty() {
            continue;
        }
        if is_seeded && is_report {
            // The code gives the same result in every run, so the report must be this result.
            for column in columns {
                same_as_run(&mut verdict.values[places[column]], judged[0][column], with[0][column], &usual);
            }
            continue;
        }
        // Runs of code with a fixed seed are all equal, so they count as one draw.
        let first = if is_seeded { 1 } else { judged.len() };
        let draws = judged[..first].iter().chain(&with).chain(&more);
        let draws: Vec<ResultNumbers> = draws.map(|row| columns.iter().map(|&column| row[column]).collect()).collect();
        let pool = DrawPool { draws, first, second: with.len(), furthest };
        tested.push(TestedValues { places: columns.into_iter().map(|column| places[column]).collect(), pool });
    }
    (verdict, tested)
}

/// Returns for each value whether the code has a fixed seed for it: all runs of the agent's code agree on the value,
/// although gold's repeats do not, and this is not due to chance.
///
/// Runs of code without a seed can agree by chance on discrete values, such as 0 or 1. If the runs agree on some values
/// only, a value that also occurs in one of gold's repeats counts as chance. If the runs agree on all values, they
/// count as seeded, with one exception: if a report is judged and one of gold's repeats has the same values, the
/// agreement counts as chance. Otherwise the report would have to equal the runs.
fn seeded(runs: &[ResultNumbers], repeats: &[ResultNumbers], is_report: bool) -> Vec<bool> {
    let columns = runs[0].len();
    let is_equal = |row: &ResultNumbers| row.iter().zip(&runs[0]).all(|(&one, &other)| is_rounding(one, other));
    let is_chance = is_report && repeats.iter().any(is_equal);
    if varies(repeats) && !varies(runs) && !is_chance {
        return vec![true; columns];
    }
    let is_seeded = |column: usize| {
        let is_run = |row: &ResultNumbers| is_rounding(row[column], runs[0][column]);
        let is_first = |row: &ResultNumbers| is_rounding(row[column], repeats[0][column]);
        runs.iter().all(is_run) && !repeats.iter().any(is_run) && !repeats.iter().all(is_first)
    };
    (0..columns).map(is_seeded).collect()
}

/// Whether results of several runs differ by more than rounding can cause.
fn varies(rows: &[ResultNumbers]) -> bool {
    let differs = |row: &ResultNumbers| row.iter().zip(&rows[0]).any(|(&one, &other)| !is_rounding(one, other));
    rows.iter().any(differs)
}

/// Compares a reported number with the number that each run of the attempt's code gave, by the tolerance for values
/// that do not vary.
fn same_as_run(value: &mut ValueVerdict, reported: f64, run: f64, usual: &Tolerance) {
    // Whole numbers have a tolerance of their own.
    let is_whole = !value.gold.is_f64() && run.fract() == 0.0 && run.abs() < 2f64.powi(53);
    let run = if is_whole { json!(run as i64) } else { json!(run) };
    value.pass = score_experiment("", &run, Some(&reported.into()), usual).pass;
    value.reason = (!value.pass).then(|| format!("{OTHER_THAN_RUN}: {run} in every run"));
}

/// Returns the chance that a biased solution passes verification, simulated with gold's repeats; `None` if no value of
/// gold varies, or if a repeat does not have gold's shape. In each simulation, one value of one of these experiments is
/// off by `bias` standard deviations of gold's repeats.
#[must_use]
pub fn chance_to_pass(experiments: &[Expected], bias: f64) -> Option<f64> {
    let rows = |one: &Expected| -> Option<Vec<ResultNumbers>> {
        one.tolerance.repeats.iter().map(|draw| numbers(one, draw).ok().map(|(_, row)| row)).collect()
    };
    let gold: Vec<Vec<ResultNumbers>> = experiments.iter().map(rows).collect::<Option<_>>()?;
    let deviation = |(experiment, column): (usize, usize)| {
        let values: Vec<f64> = gold[experiment].iter().map(|row| row[column]).collect();
        let size = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        // If all values are equal, the computed deviation may be slightly above 0, because the mean is rounded. Count
        // it as 0.
        let deviation = standard_error(&values).map(|error| error * (values.len() as f64).sqrt());
        deviation.filter(|&deviation| deviation > ROUNDING * size).unwrap_or(0.0)
    };
    let places = gold.iter().enumerate().flat_map(|(experiment, rows)| {
        let columns = rows.first().map_or(0, Vec::len);
        (0..columns).map(move |column| (experiment, column))
    });
    let places: Vec<(usize, usize)> = places.filter(|&place| deviation(place) > 0.0).collect();
    if places.is_empty() {
        return None;
    }
    let mut random = Uniform::seeded(1);
    let passed = (0..SIMULATIONS).filter(|simulation| {
        let (experiment, column) = places[simulation % places.len()];
        let pools = gold.iter().enumerate().map(|(place, rows)| {
            let mut draws: Vec<ResultNumbers> =
                (0..RUNS).map(|_| rows[(random.next() * rows.len() as f64) as usize].clone()).collect();
            if place == experiment {
                for row in &mut draws {
                    row[column] += bias * deviation((experiment, column));
                }
            }
            draws.extend(rows.iter().cloned());
            DrawPool { first: RUNS, second: rows.len(), draws, furthest: VERIFIED.furthest }
        });
        let pools: Vec<DrawPool> = pools.collect();
        adjusted_p(&pools, ASSIGNMENTS_IN_SIMULATIONS).iter().flatten().all(|p| p.least() > VERIFIED.level)
    });
    Some(passed.count() as f64 / SIMULATIONS as f64)
}
