//! Gold: the results of the unmasked repo. Recorded once by `autoexperiment gold`, checked before every run.

use std::collections::BTreeMap;

use itertools::Itertools;
use serde::Serialize;
use serde_json::Value;

use super::ready::ReadyPaper;
use crate::error::{Error, FailureKind, Result};
use crate::run::check::Measurement;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;
use crate::run::round;
use crate::score::redraw::{self, RUNS};
use crate::score::{Expected, ExperimentVerdict, ValueVerdict, check_gold, score_experiment, with_markers};
use crate::suite::{EnvStamp, Experiment, GOLD_FORMAT, Gold, GoldResult, LoadedPaper, Paper, Protocol};
use crate::tolerance::{FEWEST_REPEATS, ToleranceRule};

/// Number of runs of an experiment for a comparison with gold.
#[must_use]
pub const fn runs(experiment: &Experiment) -> usize {
    if experiment.tolerance.is_stochastic() { RUNS } else { 1 }
}

/// Rejects every cached result, because gold must be measured anew.
const fn never(_: &Experiment) -> bool {
    false
}

/// Records gold: runs every experiment `repeats` times, and experiments that vary on purpose at least
/// [`FEWEST_REPEATS`] times. If the old gold was recorded with the same repo and env, the new gold also contains the
/// old results for the other protocol (full or curtailed).
///
/// # Errors
/// Kind `Baseline`, naming the experiment, if an experiment fails, has a result that cannot serve as gold (for example
/// one without a finite number), has a hidden test that proves nothing, or varies by more than its tolerance (numbers
/// of experiments that vary on purpose may vary by any amount); `Infrastructure` if a sandbox is lost.
pub async fn record(
    ready: &ReadyPaper,
    protocol: Protocol,
    repeats: usize,
    machine: &Machine,
    observer: &dyn Observer,
) -> Result<Gold> {
    let paper = &ready.loaded.paper;
    let wanted = |experiment: &Experiment| {
        if experiment.tolerance.is_stochastic() { repeats.max(FEWEST_REPEATS) } else { repeats }
    };
    let total: usize = paper.experiments.iter().map(wanted).sum();
    let mut done = 0;
    let stage = |done: usize| {
        let stage = Stage::new(format!("recording {} gold of", protocol.name()), &paper.id);
        observer.on(RunEvent::Stage(stage.counted(done, total, "experiments")));
    };
    stage(0);
    let mut runs: Vec<Vec<Measurement>> = vec![Vec::new(); paper.experiments.len()];
    for repeat in 0..paper.experiments.iter().map(wanted).max().unwrap_or(0) {
        for (place, experiment) in paper.experiments.iter().enumerate() {
            if repeat < wanted(experiment) {
                let check = ready.original_check(place, protocol);
                runs[place].push(ready.measure_one(place, &check, machine).await?);
                done += 1;
                stage(done);
            }
        }
    }
    let mut results = BTreeMap::new();
    for (place, experiment) in paper.experiments.iter().enumerate() {
        let named = |what: String| Error::new(FailureKind::Baseline, format!("experiment `{}`: {what}", experiment.id));
        let runs = &runs[place];
        let mut values: Vec<Value> = Vec::with_capacity(runs.len());
        for measurement in runs {
            match &measurement.result {
                Ok(value) => values.push(with_markers(value.clone())),
                Err(reason) => {
                    return Err(named(format!("{reason}\n{}", measurement.stderr)).hint(format!(
                        "run `{}` by hand, in a copy of `{}`",
                        ready.experiments[place].command,
                        ready.loaded.repo_dir.display()
                    )));
                }
            }
        }
        let first = &values[0];
        check_gold(first).map_err(&named)?;
        check_tests(first).map_err(&named)?;
        let mut spread: f64 = 0.0;
        let is_stochastic = experiment.tolerance.is_stochastic();
        let close = experiment.declared_tolerance().bounds_between_runs();
        for [one, other] in values.iter().array_combinations() {
            let verdict = score_experiment(&experiment.id, one, Some(other), &close);
            if let Some(odd) = verdict.values.iter().find(|value| !value.pass) {
                let (from, got) = (&odd.gold, odd.got.as_ref().map_or("nothing".to_owned(), ToString::to_string));
                let varies = format!("`{}` varies from {from} to {got} between repeats", odd.path);
                return Err(if is_stochastic {
                    named(format!("{varies}, and only numbers may vary"))
                        .hint("remove values from the result that vary and are not numbers")
                } else {
                    named(format!("{varies}, more than its tolerance of {}", experiment.tolerance)).hint(
                        "fix the experiment's seeds, or its number of threads; or write `tolerance = \"stochastic\"` for \
                         an experiment that varies on purpose",
                    )
                });
            }
            if let Some(reason) = verdict.reason {
                return Err(named(format!("the shape of its result varies between repeats: {reason}")));
            }
            spread = verdict.values.iter().filter_map(|value| value.error).fold(spread, f64::max);
        }
        results.insert(
            experiment.id.clone(),
            GoldResult {
                command: ready.experiments[place].command.clone(),
                result: first.clone(),
                seconds: runs.iter().map(|run| round(run.wall.as_secs_f64())).collect(),
                spread,
                repeats: if is_stochastic { values } else { Vec::new() },
            },
        );
    }
    let mut gold = Gold {
        format: GOLD_FORMAT,
        recorded: crate::files::now(),
        repo: ready.snapshot.digest().to_owned(),
        env: stamp(ready),
        sandbox: machine.backend.name().to_owned(),
        base: ready.base.clone(),
        results: BTreeMap::new(),
    };
    if let Some(old) = &ready.loaded.gold
        && old.repo == gold.repo
        && old.env == gold.env
    {
        gold.results.clone_from(&old.results);
    }
    gold.results.insert(protocol, results);
    Ok(gold)
}

/// Hint for a result that differs from gold although repo and env are the same.
pub const VARIES: &str = "repo and env are those of gold, so the result varies from run to run or from machine to machine: \
                          fix its seeds, its order (sets, threads, clocks) or its number of threads; recording gold again \
                          would not help";

/// Checks that the unmasked repo reproduces its gold here, and returns the measurements. An experiment that gave the
/// same result in every repeat of gold is not run if the cache contains its result. Sends warnings if the repo, the env
/// or the base image differs from that of gold.
///
/// # Errors
/// Kind `Baseline` if there is no gold, or results differ from it; `Infrastructure` if a sandbox is lost.
pub async fn check_baseline(
    ready: &ReadyPaper,
    protocol: Protocol,
    machine: &Machine,
    observer: &dyn Observer,
) -> Result<Vec<Measurement>> {
    let paper = &ready.loaded.paper;
    let gold = gold_of(&ready.loaded, protocol)?;
    for warning in differences(ready) {
        observer.on(RunEvent::Warning(warning));
    }
    let total = ready.experiments.len();
    let stage = |done: usize| {
        let stage = Stage::new("checking the gold baseline of", &paper.id);
        observer.on(RunEvent::Stage(stage.counted(done, total, "experiments")));
    };
    let is_exact = |experiment: &Experiment| gold.get(&experiment.id).is_some_and(GoldResult::is_exact);
    let mut done = 0;
    stage(done);
    let measured = ready
        .measure_original(protocol, machine, is_exact, |_| {
            done += 1;
            stage(done);
        })
        .await?;
    for (place, (experiment, measurement)) in paper.experiments.iter().zip(&measured).enumerate() {
        let named = |what: String| {
            Error::new(
                FailureKind::Baseline,
                format!(
                    "paper `{}` does not reproduce its gold here: experiment `{}`: {what}",
                    paper.id, experiment.id
                ),
            )
            .hint(if differences(ready).is_empty() {
                // With the same repo and env, recording gold again would not help.
                VARIES.to_owned()
            } else {
                format!(
                    "scores would be meaningless; see what differs (`autoexperiment doctor`), or record gold for this \
                     machine with `autoexperiment gold {}`",
                    paper.id
                )
            })
        };
        let value = match &measurement.result {
            Ok(value) => value,
            Err(reason) => return Err(named(format!("{reason}\n{}", measurement.stderr))),
        };
        let gold = gold.get(&experiment.id).ok_or_else(|| named("no gold".to_owned()))?;
        let runs = if experiment.tolerance.is_stochastic() {
            more_runs(ready, place, protocol, value.clone(), machine).await?
        } else {
            vec![value.clone()]
        };
        let verdict = verdict(experiment, gold, &runs);
        if !verdict.pass {
            let odd = verdict.values.iter().find(|value| !value.pass);
            return Err(named(odd.map_or_else(
                || verdict.reason.unwrap_or_default(),
                |odd| {
                    let got = odd.got.as_ref().map_or("nothing".to_owned(), ToString::to_string);
                    format!("`{}` is {got}, gold {}", odd.path, odd.gold)
                },
            )));
        }
    }
    Ok(measured)
}

/// Completes the results of an experiment that varies on purpose: returns `first` and the results of further runs on
/// the unmasked repo.
///
/// # Errors
/// Kind `Baseline` for a run without a result, and the errors of [`ReadyPaper::measure_one`].
async fn more_runs(
    ready: &ReadyPaper,
    place: usize,
    protocol: Protocol,
    first: Value,
    machine: &Machine,
) -> Result<Vec<Value>> {
    let id = &ready.loaded.paper.experiments[place].id;
    let mut runs = vec![first];
    while runs.len() < RUNS {
        let measured = ready.measure_one(place, &ready.original_check(place, protocol), machine).await?;
        let failed = |why| Error::new(FailureKind::Baseline, format!("experiment `{id}`: {why}\n{}", measured.stderr));
        runs.push(measured.result.map_err(failed)?);
    }
    Ok(runs)
}

/// Compares the runs of an experiment with its gold, for the baseline and `verify`. For an experiment that varies on
/// purpose, the comparison is a statistical test that fails the unmasked repo by chance once in a thousand times.
#[must_use]
pub fn verdict(experiment: &Experiment, gold: &GoldResult, runs: &[Value]) -> ExperimentVerdict {
    let tolerance = experiment.bounds(Some(gold));
    if tolerance.repeats.is_empty() {
        return score_experiment(&experiment.id, &gold.result, runs.first(), &tolerance);
    }
    let (id, key) = (experiment.id.clone(), String::new());
    redraw::baseline(&Expected { id, key, gold: gold.result.clone(), tolerance }, runs)
}

/// The biases of a value that [`power`] simulates, in standard deviations of gold's repeats.
const BIASES: [f64; 3] = [1.0, 2.0, 4.0];

/// Simulates how often a solution passes verification although one of its values is biased. Returns pairs of a bias, in
/// standard deviations of gold's repeats, and the chance to pass; none for a paper in which nothing varies on purpose.
#[must_use]
pub fn power(paper: &Paper, gold: &BTreeMap<String, GoldResult>) -> Vec<(f64, f64)> {
    let varying = paper.experiments.iter().filter(|experiment| experiment.tolerance.is_stochastic());
    let expected: Vec<Expected> = varying
        .filter_map(|experiment| {
            let gold = gold.get(&experiment.id)?;
            let (id, key) = (experiment.id.clone(), String::new());
            Some(Expected { id, key, gold: gold.result.clone(), tolerance: experiment.bounds(Some(gold)) })
        })
        .collect();
    BIASES.iter().filter_map(|&bias| Some((bias, redraw::chance_to_pass(&expected, bias)?))).collect()
}

/// Comparison of an experiment's results on this machine with its gold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoldComparison {
    /// The experiment's id.
    pub experiment: String,
    /// Number of values in the experiment's gold.
    pub values: usize,
    /// Number of values that are exactly equal to gold.
    pub equal: usize,
    /// The largest |here - gold| / |gold|, or |here - gold| if gold is 0; `None` if a value is missing or is a text
    /// that differs.
    pub worst: Option<f64>,
    /// Allowed relative difference from gold, or the name of a rule.
    pub tolerance: ToleranceRule,
    /// Whether all values are within the tolerance.
    pub pass: bool,
    /// Why the experiment does not reproduce its gold; `None` if it does.
    pub reason: Option<String>,
}

/// Runs the unmasked repo's experiments and compares the results of each with its gold. A difference, however large, is
/// not an error, but is part of the returned comparison.
///
/// # Errors
/// Kind `Baseline` if there is no gold; `Infrastructure` if the sandbox died.
pub async fn compare(
    ready: &ReadyPaper,
    protocol: Protocol,
    machine: &Machine,
    observer: &dyn Observer,
) -> Result<Vec<GoldComparison>> {
    let paper = &ready.loaded.paper;
    let gold = gold_of(&ready.loaded, protocol)?;
    for warning in differences(ready) {
        observer.on(RunEvent::Warning(warning));
    }
    let total = ready.experiments.len();
    let mut done = 0;
    let measured = ready
        .measure_original(protocol, machine, never, |_| {
            done += 1;
            let stage = Stage::new("measuring", &paper.id);
            observer.on(RunEvent::Stage(stage.counted(done, total, "experiments")));
        })
        .await?;
    let mut results: Vec<Result<Vec<Value>, String>> = Vec::with_capacity(total);
    for (place, (experiment, measurement)) in paper.experiments.iter().zip(measured).enumerate() {
        results.push(match measurement.result {
            Ok(first) if experiment.tolerance.is_stochastic() => {
                more_runs(ready, place, protocol, first, machine).await.map_err(|error| error.to_string())
            }
            other => other.map(|result| vec![result]),
        });
    }
    let compared = paper.experiments.iter().zip(&results).map(|(experiment, runs)| {
        let mut comparison = GoldComparison {
            experiment: experiment.id.clone(),
            values: 0,
            equal: 0,
            worst: None,
            tolerance: experiment.tolerance,
            pass: false,
            reason: None,
        };
        match (gold.get(&experiment.id), runs) {
            (Some(gold), Ok(runs)) => {
                let verdict = verdict(experiment, gold, runs);
                // A value that is a text has no numeric error. Its error counts as 0 if the value passes, and as
                // missing otherwise.
                let error = |value: &ValueVerdict| value.error.or(value.pass.then_some(0.0));
                comparison.values = verdict.values.len();
                comparison.equal = verdict.values.iter().filter(|value| error(value) == Some(0.0)).count();
                comparison.worst =
                    verdict.values.iter().map(error).try_fold(0.0_f64, |worst, error| Some(worst.max(error?)));
                comparison.pass = verdict.pass;
                let odd =
                    verdict.values.iter().find(|value| !value.pass).map(|value| format!("`{}` differs", value.path));
                comparison.reason = verdict.reason.or(odd);
            }
            (None, _) => comparison.reason = Some("it has no gold".to_owned()),
            (_, Err(reason)) => comparison.reason = Some(reason.clone()),
        }
        comparison
    });
    Ok(compared.collect())
}

/// The gold results for a protocol (full or curtailed), by experiment id.
///
/// # Errors
/// Kind `Baseline` if an experiment has no gold result, or one that was recorded with another command or too few
/// repeats.
pub fn gold_of(loaded: &LoadedPaper, protocol: Protocol) -> Result<&BTreeMap<String, GoldResult>> {
    let paper = &loaded.paper;
    let missing = |what: String| {
        let full = if protocol == Protocol::Full { " --full" } else { "" };
        Error::new(FailureKind::Baseline, what).hint(format!("record it with `autoexperiment gold {}{full}`", paper.id))
    };
    let results = loaded
        .gold
        .as_ref()
        .and_then(|gold| gold.results.get(&protocol))
        .ok_or_else(|| missing(format!("paper `{}` has no {} gold", paper.id, protocol.name())))?;
    for experiment in &paper.experiments {
        let named = format!("experiment `{}` of paper `{}`", experiment.id, paper.id);
        match results.get(&experiment.id) {
            None => return Err(missing(format!("{named} has no gold"))),
            Some(gold) if Ok(&gold.command) != experiment.command_line(protocol).as_ref() => {
                return Err(missing(format!("gold of {named} was recorded with another command")));
            }
            Some(gold) if experiment.tolerance.is_stochastic() && gold.repeats.len() < FEWEST_REPEATS => {
                return Err(missing(format!(
                    "gold of {named} has fewer than {FEWEST_REPEATS} repeats, which its tolerance `stochastic` needs"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(results)
}

/// Checks the outcomes of hidden tests on the original code, as the runners of hidden tests print them. Every test must
/// pass, and must fail as a canary, that is, when its assertions are replaced by false ones: a test that passes even
/// then proves nothing about other code. Accepts results of any other form unchecked.
///
/// # Errors
/// Returns a phrase that names the test.
fn check_tests(result: &Value) -> Result<(), String> {
    let outcomes = |key: &str| result.get(key).and_then(Value::as_object);
    let (Some(tests), Some(canaries)) = (outcomes("tests"), outcomes("canaries")) else { return Ok(()) };
    if let Some((name, outcome)) = tests.iter().find(|(_, outcome)| *outcome != "passed") {
        return Err(format!("the test `{name}` does not pass with the original code, but has the outcome {outcome}"));
    }
    match tests.keys().find(|name| canaries.get(*name).is_some_and(|outcome| outcome == "passed")) {
        Some(name) => Err(format!("the test `{name}` passes even with false assertions, so it proves nothing")),
        None => Ok(()),
    }
}

/// Lists differences between the current repo, env and base image and those with which gold was recorded, one sentence
/// each.
#[must_use]
pub fn differences(ready: &ReadyPaper) -> Vec<String> {
    let paper = &ready.loaded.paper.id;
    let mut found = Vec::new();
    if let Some(gold) = &ready.loaded.gold {
        if gold.repo != ready.snapshot.digest() {
            found.push(format!("the repo of `{paper}` has changed since its gold was recorded"));
        }
        let here = stamp(ready);
        if gold.env != here {
            found.push(format!(
                "the env of `{paper}` differs from its gold's: {} on Python {} here, {} on Python {} there",
                here.backend, here.python, gold.env.backend, gold.env.python
            ));
        }
        if let (Some(there), Some(here)) = (&gold.base, &ready.base)
            && there != here
        {
            found.push(format!("the base image differs from that of `{paper}`'s gold: `{here}` here, `{there}` there"));
        }
    }
    found
}

/// Describes the environment of a paper.
pub fn stamp(ready: &ReadyPaper) -> EnvStamp {
    EnvStamp {
        backend: ready.env.backend.to_owned(),
        digest: ready.env.digest.clone(),
        python: ready.env.python.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gold_of_tests_that_do_not_pass_or_cannot_fail_is_refused() {
        let result = |test: &str, canary: &str| json!({ "tests": { "T.test": test }, "canaries": { "T.test": canary, "T.test (references)": "passed" } });
        assert_eq!(check_tests(&result("passed", "failed")), Ok(()));
        for (test, canary) in [("error", "failed"), ("skipped", "failed"), ("passed", "passed")] {
            assert!(check_tests(&result(test, canary)).unwrap_err().contains("`T.test`"), "{test} {canary}");
        }
        assert_eq!(check_tests(&json!({ "tests": { "loss": 0.5 } })), Ok(()));
    }
}
