//! Records the gold of groups of tests: ten runs of each, beside each other, so that the machine is busy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::layout::Layout;
use super::manifest::{IDS, unguarded_command};
use super::survey::{Plan, is_close};
use crate::agent::TaskExperiment;
use crate::audit::{Bench, Trial};
use crate::error::{Error, FailureKind, Result};
use crate::masked::gold::stamp;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::round;
use crate::suite::{GOLD_FORMAT, Gold, GoldResult, Protocol};

/// Number of guarded runs of each group, and of further runs of all tests without the guard: ten in all.
const GUARDED: usize = 3;
const UNGUARDED: usize = 7;

/// Time limit in seconds of a run.
const LIMIT: f64 = 600.0;

/// Gold, or the tests that must leave the plan first.
#[derive(Debug)]
pub(super) enum Recorded {
    /// All runs agree.
    Gold(Box<Gold>),
    /// Tests that did not pass in every run, and those whose values vary.
    Varying(BTreeSet<String>, BTreeSet<String>),
}

/// Runs every group [`GUARDED`] times as verification does, and all tests [`UNGUARDED`] times without the guard, all beside each
/// other.
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
    let total = GUARDED * experiments.len() + UNGUARDED;
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..GUARDED {
        for (place, experiment) in experiments.iter().enumerate() {
            // How long it takes is not known yet, so neither is its real limit.
            let experiment = TaskExperiment { time_limit: LIMIT, ..experiment.clone() };
            let bench = Arc::clone(bench);
            running.spawn(async move {
                let trial = Trial { files: &[], experiment: &experiment };
                (Some(place), bench.run_afresh(&trial).await)
            });
        }
    }
    let all: Vec<&String> = plan.groups.values().flatten().collect();
    let ids = vec![(PathBuf::from(IDS), serde_json::to_vec(&all).unwrap_or_default())];
    for _ in 0..if experiments.is_empty() { 0 } else { UNGUARDED } {
        let (bench, ids) = (Arc::clone(bench), ids.clone());
        let experiment =
            TaskExperiment { command: unguarded_command(layout), time_limit: LIMIT, ..experiments[0].clone() };
        running.spawn(async move {
            let trial = Trial { files: &ids, experiment: &experiment };
            (None, bench.run_afresh(&trial).await)
        });
    }
    let mut runs: BTreeMap<usize, Vec<(Value, f64)>> = BTreeMap::new();
    let mut values: BTreeMap<&String, Value> = BTreeMap::new();
    let mut canaries: BTreeMap<String, Value> = BTreeMap::new();
    let (mut failed, mut varying) = (BTreeSet::new(), BTreeSet::new());
    let mut done = 0;
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
        let group = place.and_then(|place| plan.groups.get(&experiments[place].id));
        let tests: Vec<&String> = group.map_or_else(|| all.clone(), |ids| ids.iter().collect());
        for test in tests {
            let found = |key: &str| result.get(key).and_then(|all| all.get(test));
            let value = found("values").cloned().unwrap_or_default();
            if found("tests").and_then(Value::as_str) != Some("passed") {
                failed.insert(test.clone());
            } else if !values.get(test).is_none_or(|first| is_close(first, &value)) {
                varying.insert(test.clone());
            } else {
                values.entry(test).or_insert(value);
            }
            // A canary that varies would fail right solutions.
            for name in [test.clone(), format!("{test} (expectation)")] {
                let Some(canary) = result.get("canaries").and_then(|all| all.get(&name)) else { continue };
                if canaries.get(&name).is_some_and(|first| first != canary) {
                    failed.insert(test.clone());
                }
                canaries.entry(name).or_insert_with(|| canary.clone());
            }
        }
        if let Some(place) = place {
            runs.entry(place).or_default().push((result, outcome.wall));
        }
        if !failed.is_empty() && done > total / 2 {
            // The plan changes anyway.
            break;
        }
    }
    if !failed.is_empty() || !varying.is_empty() {
        return Ok(Recorded::Varying(failed, varying));
    }
    let mut results = BTreeMap::new();
    for (place, runs) in runs {
        let mut others = runs.iter();
        let Some((first, _)) = others.next() else { continue };
        if let Some((other, _)) = others.find(|(other, _)| !is_close(first, other)) {
            let what = differing(first, other).unwrap_or_default();
            return Err(Error::new(FailureKind::Baseline, format!("its tests vary: `{what}` differs between runs")));
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
