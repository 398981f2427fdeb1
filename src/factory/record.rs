//! Records the gold of groups of tests, from ten runs of each group. Several runs are made in parallel, so that tests
//! that give other results on a busy machine are noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::layout::Layout;
use super::manifest::{IDS, recording_command, unguarded_command};
use super::survey::{Plan, is_close};
use crate::agent::TaskExperiment;
use crate::audit::{Bench, Trial};
use crate::error::{Error, FailureKind, Result};
use crate::masked::gold::stamp;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::round;
use crate::score::score_experiment;
use crate::suite::{GOLD_FORMAT, Gold, GoldResult, Protocol};

/// Numbers of runs in one step of the recording. All runs of a step are made in parallel.
struct Step {
    /// Number of guarded runs of each group of tests, each with another of the plan's drawings. A guarded run is made
    /// as in verification: it runs each test in several processes, and in some of them it alters the test so that the
    /// test must fail. Verification also repeats some parts of the test files; here, all parts are run.
    guarded: usize,
    /// Number of unguarded runs of all tests. An unguarded run runs each unaltered test once.
    unguarded: usize,
    /// Number of unguarded runs that also run altered tests: each test once for each way of altering the values that it
    /// expects. To find tests that depend on earlier tests, these runs also run tests after altered tests, and each
    /// part of a test file that verification may run without the other tests of the file.
    altered: usize,
}

/// Each test is run ten times in all: in three guarded and seven unguarded runs. The first step finds most tests whose
/// results vary. If it finds any, the second step is skipped, and the caller tries again with a changed plan.
const STEPS: [Step; 2] = [Step { guarded: 1, unguarded: 2, altered: 1 }, Step { guarded: 2, unguarded: 5, altered: 0 }];

/// Number of drawings in a plan: one for each guarded run of a group.
const DRAWINGS: usize = STEPS[0].guarded + STEPS[1].guarded;

/// Time limit in seconds of a run.
const LIMIT: f64 = 600.0;

/// The outcome of [`record`]: gold, or the tests that must be removed from the plan before gold can be recorded.
#[derive(Debug)]
pub(super) enum Recorded {
    /// All runs agree.
    Gold(Box<Gold>),
    /// Tests that did not pass in every run or have an altered form whose outcome varies; and tests that always passed,
    /// but whose values vary.
    Varying(BTreeSet<String>, BTreeSet<String>),
}

/// What the runs made so far have shown.
#[derive(Default)]
struct Runs<'a> {
    /// Results and wall times in seconds of the guarded runs of each group. The key is the index of the group in the
    /// list of experiments.
    guarded: BTreeMap<usize, Vec<(Value, f64)>>,
    /// For each test, a digest of the values that functions returned to the test in its first passing run. The digests
    /// of later runs are compared with this digest.
    values: BTreeMap<&'a String, Value>,
    /// First outcome of each altered test. Later outcomes of the same altered test are compared with it.
    canaries: BTreeMap<String, Value>,
    /// Tests that did not pass, tests whose altered forms had different outcomes in different runs, and tests in parts
    /// of a test file that a run had no time to run alone (see [`Step::altered`]).
    failed: BTreeSet<String>,
    /// Tests that passed, but to which the package returned different values in different runs.
    varying: BTreeSet<String>,
}

impl<'a> Runs<'a> {
    /// Adds the result of one run of these tests.
    fn add(&mut self, tests: impl IntoIterator<Item = &'a String>, result: &Value) {
        // Tests whose values differ between the processes of one run.
        let varying = result.get("varying").and_then(Value::as_array).into_iter().flatten();
        self.varying.extend(varying.filter_map(|test| Some(test.as_str()?.to_owned())));
        // Verification may run a part of a test file alone. Leave out tests of parts for which this was not tried,
        // because the run had no time for it.
        let unfinished = result.get("unfinished").and_then(Value::as_array).into_iter().flatten();
        self.failed.extend(unfinished.filter_map(|test| Some(test.as_str()?.to_owned())));
        for test in tests {
            let found = |key: &str| result.get(key).and_then(|all| all.get(test));
            let value = found("values").cloned().unwrap_or_default();
            if found("tests").and_then(Value::as_str) != Some("passed") {
                self.failed.insert(test.clone());
            } else if !self.values.get(test).is_none_or(|first| is_close(first, &value)) {
                self.varying.insert(test.clone());
            } else {
                self.values.entry(test).or_insert(value);
            }
            // If an altered test has another outcome in some runs, verification would fail right solutions. So leave
            // the test out.
            for name in [test.clone(), format!("{test} (expectation)")] {
                let Some(canary) = result.get("canaries").and_then(|all| all.get(&name)) else { continue };
                if canary == "varies" || self.canaries.get(&name).is_some_and(|first| first != canary) {
                    self.failed.insert(test.clone());
                }
                self.canaries.entry(name).or_insert_with(|| canary.clone());
            }
        }
    }
}

/// Returns drawings for a new plan. They are random, because agents must not know them.
pub(super) fn new_drawings() -> Vec<String> {
    use rand::RngExt as _;

    (0..DRAWINGS).map(|_| format!("{:032x}", rand::rng().random::<u128>())).collect()
}

/// Makes the guarded runs of each group of tests and the unguarded runs of all tests, in the numbers that [`STEPS`]
/// gives. The runs of a step are made in parallel.
///
/// # Errors
/// Kind `Baseline` if a group gives no result.
pub(super) async fn record(
    bench: &Arc<Bench>,
    layout: &Layout,
    plan: &Plan,
    backend: &str,
    observer: &dyn Observer,
) -> Result<Recorded> {
    let experiments = &bench.ready().experiments;
    let all: Vec<&String> = plan.groups.values().flatten().collect();
    let ids = vec![(PathBuf::from(IDS), serde_json::to_vec(&all).unwrap_or_default())];
    let total: usize = STEPS.iter().map(|step| step.guarded * experiments.len() + step.unguarded).sum();
    let mut runs = Runs::default();
    let (mut done, mut first_drawing) = (0, 0);
    for step in STEPS {
        // The time limits of the groups are computed later from the times that these runs take. So use a fixed limit
        // here.
        let drawings = first_drawing..first_drawing + step.guarded;
        first_drawing = drawings.end;
        let guarded = drawings.flat_map(|drawing| {
            experiments.iter().enumerate().map(move |(place, experiment)| {
                let command = recording_command(layout, &experiment.id, drawing);
                (Some(place), TaskExperiment { command, time_limit: LIMIT, ..experiment.clone() })
            })
        });
        let first = experiments.first().into_iter();
        let unguarded = first.flat_map(|experiment| (0..step.unguarded).map(move |run| (run, experiment)));
        let unguarded = unguarded.map(|(run, experiment)| {
            let command = unguarded_command(layout, run < step.altered);
            (None, TaskExperiment { command, time_limit: LIMIT, ..experiment.clone() })
        });
        let mut running = tokio::task::JoinSet::new();
        for (place, experiment) in guarded.chain(unguarded) {
            let (bench, ids) = (Arc::clone(bench), ids.clone());
            running.spawn(async move {
                let files: &[(PathBuf, Vec<u8>)] = if place.is_some() { &[] } else { &ids };
                (place, bench.run_afresh(&Trial { files, experiment: &experiment }).await)
            });
        }
        while let Some(ended) = running.join_next().await {
            let (place, outcome) = ended.map_err(|error| Error::internal("a run was aborted").because(error))?;
            let outcome = outcome?;
            let result = outcome.result.map_err(|why| {
                let last = outcome.stderr.lines().last().unwrap_or_default().trim().to_owned();
                let what = place.map_or("its tests", |_| "a group of its tests");
                Error::new(FailureKind::Baseline, format!("{what} gives no result: {why} {last}").trim().to_owned())
            })?;
            done += 1;
            let stage = Stage::new("recording gold of", &bench.loaded().paper.id);
            observer.on(RunEvent::Stage(stage.counted(done, total, "runs")));
            match place.and_then(|place| Some((place, plan.groups.get(&experiments[place].id)?))) {
                Some((place, ids)) => {
                    runs.add(ids, &result);
                    runs.guarded.entry(place).or_default().push((result, outcome.wall));
                }
                None => runs.add(all.iter().copied(), &result),
            }
        }
        if !runs.failed.is_empty() || !runs.varying.is_empty() {
            return Ok(Recorded::Varying(runs.failed, runs.varying));
        }
    }
    let mut results = BTreeMap::new();
    for (place, runs) in runs.guarded {
        let mut others = runs.iter();
        let Some((first, _)) = others.next() else { continue };
        if let Some((other, _)) = others.find(|(other, _)| !is_close(first, other)) {
            let what = differing(first, other).unwrap_or_default();
            return Err(Error::new(FailureKind::Baseline, format!("its tests vary: `{what}` differs between runs")));
        }
        // Score the results of all runs against the first one, as verification would. If one of them fails, right
        // solutions can fail, too.
        let known = bench.loaded().paper.experiments.iter().find(|known| known.id == experiments[place].id);
        let known = known.ok_or_else(|| Error::internal("a group of tests is not in the manifest"))?;
        for (other, _) in &runs {
            let verdict = score_experiment(&known.id, first, Some(other), &known.bounds(None));
            if !verdict.pass {
                let why = verdict.reason.unwrap_or_else(|| "its results differ between runs".to_owned());
                return Err(Error::new(FailureKind::Baseline, format!("its gold does not pass: {why}")));
            }
        }
        let spread = runs.iter().map(|(other, _)| largest_difference(first, other)).fold(0.0, f64::max);
        results.insert(
            experiments[place].id.clone(),
            GoldResult {
                command: experiments[place].command.clone(),
                result: first.clone(),
                seconds: runs.iter().map(|(_, wall)| round(*wall)).collect(),
                spread,
                repeats: Vec::new(),
            },
        );
    }
    let ready = bench.ready();
    Ok(Recorded::Gold(Box::new(Gold {
        format: GOLD_FORMAT,
        recorded: crate::files::now(),
        repo: ready.snapshot.digest().to_owned(),
        env: stamp(ready),
        sandbox: backend.to_owned(),
        base: ready.base.clone(),
        results: BTreeMap::from([(Protocol::Curtailed, results)]),
    })))
}

/// Returns the first top-level key in which two results differ.
fn differing(one: &Value, other: &Value) -> Option<String> {
    let keys = one.as_object()?.keys().chain(other.as_object()?.keys());
    let mut keys =
        keys.filter(|key| !is_close(one.get(*key).unwrap_or(&Value::Null), other.get(*key).unwrap_or(&Value::Null)));
    keys.next().cloned()
}

/// Returns the largest relative difference of two numbers in results of the same shape.
fn largest_difference(one: &Value, other: &Value) -> f64 {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or(0.0), other.as_f64().unwrap_or(0.0));
            (one - other).abs() / one.abs().max(f64::MIN_POSITIVE)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.iter().zip(other).map(|(one, other)| largest_difference(one, other)).fold(0.0, f64::max)
        }
        (Value::Object(one), Value::Object(other)) => {
            let inner = one.iter().filter_map(|(key, one)| Some(largest_difference(one, other.get(key)?)));
            inner.fold(0.0, f64::max)
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_another_drawing_for_each_guarded_run_of_a_group() {
        let drawings: BTreeSet<String> = new_drawings().into_iter().chain(new_drawings()).collect();
        assert_eq!(drawings.len(), 2 * STEPS.iter().map(|step| step.guarded).sum::<usize>());
    }
}
