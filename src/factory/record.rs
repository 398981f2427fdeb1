//! Records the gold of groups of tests: ten runs of each, beside each other, so that the machine is busy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::survey::{Plan, is_close};
use crate::audit::{Bench, Trial};
use crate::error::{Error, FailureKind, Result};
use crate::masked::gold::stamp;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::round;
use crate::suite::{GOLD_FORMAT, Gold, GoldResult, Protocol};

/// Number of runs of each group.
pub(super) const REPEATS: usize = 10;

/// Gold, or the tests that must leave the plan first.
#[derive(Debug)]
pub(super) enum Recorded {
    /// All runs agree.
    Gold(Box<Gold>),
    /// Tests that did not pass in every run, and those whose values vary.
    Varying(BTreeSet<String>, BTreeSet<String>),
}

/// Runs every group [`REPEATS`] times.
///
/// # Errors
/// Kind `Baseline` if a group gives no result.
pub(super) async fn record(
    bench: &Arc<Bench>,
    plan: &Plan,
    backend: &str,
    observer: &dyn Observer,
) -> Result<Recorded> {
    let experiments = &bench.ready().experiments;
    let total = REPEATS * experiments.len();
    let mut running = tokio::task::JoinSet::new();
    for repeat in 0..REPEATS {
        for (place, experiment) in experiments.iter().enumerate() {
            let (bench, experiment) = (Arc::clone(bench), experiment.clone());
            running.spawn(async move {
                let trial = Trial { files: &[], experiment: &experiment };
                (repeat, place, bench.run_afresh(&trial).await)
            });
        }
    }
    let mut runs: BTreeMap<usize, BTreeMap<usize, (Value, f64)>> = BTreeMap::new();
    let (mut failed, mut varying) = (BTreeSet::new(), BTreeSet::new());
    let mut done = 0;
    while let Some(ended) = running.join_next().await {
        let (repeat, place, outcome) = ended.map_err(|error| Error::internal("a run was aborted").because(error))?;
        let outcome = outcome?;
        let id = &experiments[place].id;
        let result = outcome.result.map_err(|why| {
            let last = outcome.stderr.lines().last().unwrap_or_default().trim().to_owned();
            Error::new(
                FailureKind::Baseline,
                format!("its tests `{id}` give no result: {why} {last}").trim().to_owned(),
            )
        })?;
        done += 1;
        let stage = Stage::new("recording gold of", &bench.loaded().paper.id);
        observer.on(RunEvent::Stage(stage.counted(done, total, "runs")));
        let first = runs.get(&place).and_then(|known| known.values().next()).map(|(value, _)| value);
        for test in plan.groups.get(id).into_iter().flatten() {
            if result.pointer_of("tests", test).and_then(Value::as_str) != Some("passed") {
                failed.insert(test.clone());
            } else if let Some(first) = first
                && !is_close(
                    first.pointer_of("values", test).unwrap_or(&Value::Null),
                    result.pointer_of("values", test).unwrap_or(&Value::Null),
                )
            {
                varying.insert(test.clone());
            }
        }
        runs.entry(place).or_default().insert(repeat, (result, outcome.wall));
        if !failed.is_empty() && done >= 2 * experiments.len() {
            // The plan changes anyway.
            break;
        }
    }
    if !failed.is_empty() || !varying.is_empty() {
        return Ok(Recorded::Varying(failed, varying));
    }
    let mut results = BTreeMap::new();
    for (place, runs) in runs {
        let mut values = runs.values();
        let Some((first, _)) = values.next() else { continue };
        if let Some((other, _)) = values.find(|(other, _)| !is_close(first, other)) {
            let what = differing(first, other).unwrap_or_default();
            return Err(Error::new(FailureKind::Baseline, format!("its tests vary: `{what}` differs between runs")));
        }
        let spread = runs.values().map(|(other, _)| largest_difference(first, other)).fold(0.0, f64::max);
        results.insert(
            experiments[place].id.clone(),
            GoldResult {
                command: experiments[place].command.clone(),
                result: first.clone(),
                seconds: runs.values().map(|(_, wall)| round(*wall)).collect(),
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

trait PointerOf {
    /// The entry of a test, whose id may contain any character.
    fn pointer_of(&self, key: &str, test: &str) -> Option<&Value>;
}

impl PointerOf for Value {
    fn pointer_of(&self, key: &str, test: &str) -> Option<&Value> {
        self.get(key)?.get(test)
    }
}

/// Names the first top-level key in which two results differ.
fn differing(one: &Value, other: &Value) -> Option<String> {
    let keys = one.as_object()?.keys().chain(other.as_object()?.keys());
    let mut keys =
        keys.filter(|key| !is_close(one.get(*key).unwrap_or(&Value::Null), other.get(*key).unwrap_or(&Value::Null)));
    keys.next().cloned()
}

/// The largest relative difference of two numbers in results of the same shape.
fn largest_difference(one: &Value, other: &Value) -> f64 {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or(0.0), other.as_f64().unwrap_or(0.0));
            if one == other { 0.0 } else { (one - other).abs() / one.abs().max(f64::MIN_POSITIVE) }
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
