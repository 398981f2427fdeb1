//! Gold: what the unmasked repo gives. Recorded once by `autoexperiment gold`, checked before every run.

use std::collections::BTreeMap;

use itertools::Itertools;
use serde::Serialize;
use serde_json::Value;

use super::ready::ReadyPaper;
use crate::error::{Error, Kind, Result};
use crate::run::check::Measurement;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;
use crate::run::round;
use crate::score::{Tolerance, ValueVerdict, check_gold, score_experiment};
use crate::suite::{
    EnvStamp, Experiment, FEWEST_REPEATS, GOLD_FORMAT, Gold, GoldResult, LoadedPaper, Protocol, ToleranceRule,
};

/// Most runs of an unmasked experiment whose tolerance is an interval until one is within: one in twenty is not, though
/// nothing is wrong.
pub const MOST_DRAWS: usize = 3;

/// How values of this experiment are compared with its gold. Without gold there is no interval, and two values agree by
/// the usual tolerance.
#[must_use]
pub fn tolerance(experiment: &Experiment, gold: Option<&GoldResult>) -> Tolerance {
    let usual = Tolerance { absolute: experiment.absolute_tolerance, ..Tolerance::default() };
    match experiment.tolerance {
        ToleranceRule::Relative(relative) => Tolerance { relative, ..usual },
        ToleranceRule::Named(_) => {
            Tolerance { repeats: gold.map(|gold| gold.repeats.clone()).unwrap_or_default(), ..usual }
        }
    }
}

/// What is recorded or compared is measured now.
const fn never(_: &Experiment) -> bool {
    false
}

/// Runs every experiment `repeats` times and puts the results into a new gold, beside those of the other protocol that
/// the old one holds for the same repo and env.
///
/// # Errors
/// Kind `Baseline`, naming the experiment, when one fails, gives a NaN, or varies by more than its tolerance; of one whose
/// tolerance is an interval numbers may vary. Kind `Usage` for fewer repeats than an interval needs.
pub async fn record(
    ready: &ReadyPaper,
    protocol: Protocol,
    repeats: usize,
    machine: &Machine,
    observer: &dyn Observer,
) -> Result<Gold> {
    let paper = &ready.loaded.paper;
    if repeats < FEWEST_REPEATS
        && let Some(one) = paper.experiments.iter().find(|experiment| experiment.tolerance.is_interval())
    {
        let what =
            format!("the tolerance of experiment `{}` is an interval, which {repeats} repeats do not give", one.id);
        return Err(Error::usage(what).hint(format!("give `--repeats {FEWEST_REPEATS}` or more")));
    }
    let mut runs = Vec::with_capacity(repeats);
    for repeat in 1..=repeats {
        let mut done = 0;
        let each = ready.experiments.len();
        let stage = |done: usize| {
            let stage = Stage::new(format!("recording {} gold of", protocol.name()), &paper.id);
            observer.on(RunEvent::Stage(stage.counted((repeat - 1) * each + done, repeats * each, "experiments")));
        };
        stage(0);
        let measured = ready
            .measure_original(protocol, machine, never, |_| {
                done += 1;
                stage(done);
            })
            .await?;
        runs.push(measured);
    }
    let mut results = BTreeMap::new();
    for (place, experiment) in paper.experiments.iter().enumerate() {
        let named = |what: String| Error::new(Kind::Baseline, format!("experiment `{}`: {what}", experiment.id));
        let mut values: Vec<&Value> = Vec::with_capacity(repeats);
        for run in &runs {
            let measurement = &run[place];
            match &measurement.result {
                Ok(value) => values.push(value),
                Err(reason) => {
                    return Err(named(format!("{reason}\n{}", measurement.stderr)).hint(format!(
                        "run `{}` by hand, in a copy of `{}`",
                        ready.experiments[place].command,
                        ready.loaded.repo_dir.display()
                    )));
                }
            }
        }
        let first = values[0];
        check_gold(first).map_err(&named)?;
        let mut spread: f64 = 0.0;
        let is_interval = experiment.tolerance.is_interval();
        let close = if is_interval { Tolerance::any_number() } else { tolerance(experiment, None) };
        for [one, other] in values.iter().array_combinations() {
            let verdict = score_experiment(&experiment.id, one, Some(other), &close);
            if let Some(odd) = verdict.values.iter().find(|value| !value.pass) {
                let (from, got) = (&odd.gold, odd.got.as_ref().map_or("nothing".to_owned(), ToString::to_string));
                let varies = format!("`{}` varies from {from} to {got} between repeats", odd.path);
                return Err(if is_interval {
                    named(format!("{varies}, and only numbers have an interval"))
                        .hint("leave out of the result what is not a number and varies")
                } else {
                    named(format!("{varies}, more than its tolerance of {}", experiment.tolerance)).hint(
                        "fix the experiment's seeds, or its number of threads; or write `tolerance = \"interval\"` for \
                         one that is to vary",
                    )
                });
            }
            if let Some(reason) = verdict.reason {
                return Err(named(format!("{reason}: its shape varies between repeats")));
            }
            spread = verdict.values.iter().filter_map(|value| value.error).fold(spread, f64::max);
        }
        results.insert(
            experiment.id.clone(),
            GoldResult {
                command: ready.experiments[place].command.clone(),
                result: first.clone(),
                seconds: runs.iter().map(|run| round(run[place].wall.as_secs_f64())).collect(),
                spread,
                repeats: if is_interval { values.into_iter().cloned().collect() } else { Vec::new() },
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

/// What to do about a result that differs from gold although nothing else does.
pub const VARIES: &str = "repo and env are those of gold, so the result varies from run to run or from machine to machine: \
                          fix its seeds, its order (sets, threads, clocks) or its number of threads; recording gold again \
                          would not help";

/// Checks that the unmasked repo reproduces its gold here, and gives what it measured. An experiment that gave the same in
/// every repeat of gold is not run where its result on this kind of machine is known. Tells as warnings what differs from
/// where gold was recorded.
///
/// # Errors
/// Kind `Baseline`: no gold, or results that differ from it.
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
                Kind::Baseline,
                format!(
                    "paper `{}` does not reproduce its gold here: experiment `{}`: {what}",
                    paper.id, experiment.id
                ),
            )
            .hint(if differences(ready).is_empty() {
                // Same repo, same env: gold would be no better the next time.
                VARIES.to_owned()
            } else {
                format!(
                    "no score would mean anything; see what differs (`autoexperiment doctor`), or record gold for this \
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
        let verdict = score_experiment(&experiment.id, &gold.result, Some(value), &tolerance(experiment, Some(gold)));
        let again = !verdict.pass && experiment.tolerance.is_interval();
        if !(verdict.pass || again && drawn_again(ready, place, gold, machine).await?) {
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

/// Whether an experiment whose value was outside the interval of its gold is within it when it is run again.
async fn drawn_again(ready: &ReadyPaper, place: usize, gold: &GoldResult, machine: &Machine) -> Result<bool> {
    let experiment = &ready.loaded.paper.experiments[place];
    for _ in 1..MOST_DRAWS {
        let measured = ready.measure_one(place, &ready.experiments[place].check(), machine).await?;
        if agrees(experiment, gold, measured.result.ok().as_ref()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a result is within its experiment's tolerance of gold.
#[must_use]
pub fn agrees(experiment: &Experiment, gold: &GoldResult, result: Option<&Value>) -> bool {
    result.is_some() && score_experiment(&experiment.id, &gold.result, result, &tolerance(experiment, Some(gold))).pass
}

/// An experiment measured here and now, beside its gold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The experiment's id.
    pub experiment: String,
    /// How many values its gold has.
    pub values: usize,
    /// How many of them are exactly the same.
    pub equal: usize,
    /// The largest |here - gold| / |gold|, without division where gold is 0; none when a value is missing.
    pub worst: Option<f64>,
    /// How far a value may be from its gold, relative to it; or `interval`.
    pub tolerance: ToleranceRule,
    /// Whether all values are.
    pub pass: bool,
    /// What is wrong otherwise.
    pub reason: Option<String>,
}

/// Runs the unmasked repo's experiments and compares each with its gold, however far it is from it.
///
/// # Errors
/// Kind `Baseline` without gold; `Infrastructure` when the sandbox died.
pub async fn compare(
    ready: &ReadyPaper,
    protocol: Protocol,
    machine: &Machine,
    observer: &dyn Observer,
) -> Result<Vec<Comparison>> {
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
    let compared = paper.experiments.iter().zip(&measured).map(|(experiment, measurement)| {
        let mut comparison = Comparison {
            experiment: experiment.id.clone(),
            values: 0,
            equal: 0,
            worst: None,
            tolerance: experiment.tolerance,
            pass: false,
            reason: None,
        };
        match (gold.get(&experiment.id), &measurement.result) {
            (Some(gold), Ok(value)) => {
                let tolerance = tolerance(experiment, Some(gold));
                let verdict = score_experiment(&experiment.id, &gold.result, Some(value), &tolerance);
                // Words have no distance: equal or not.
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

/// The gold results of a protocol, by the experiments' ids.
///
/// # Errors
/// Kind `Baseline` when there are none, not of every experiment, or of another command.
pub fn gold_of(loaded: &LoadedPaper, protocol: Protocol) -> Result<&BTreeMap<String, GoldResult>> {
    let paper = &loaded.paper;
    let missing = |what: String| {
        let full = if protocol == Protocol::Full { " --full" } else { "" };
        Error::new(Kind::Baseline, what).hint(format!("record it with `autoexperiment gold {}{full}`", paper.id))
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
            Some(gold) if experiment.tolerance.is_interval() && gold.repeats.len() < FEWEST_REPEATS => {
                return Err(missing(format!("gold of {named} has no repeats to make its tolerance `interval` of")));
            }
            Some(_) => {}
        }
    }
    Ok(results)
}

/// What differs between where gold was recorded and here, one sentence each.
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

fn stamp(ready: &ReadyPaper) -> EnvStamp {
    EnvStamp {
        backend: ready.env.backend.to_owned(),
        digest: ready.env.digest.clone(),
        python: ready.env.python.clone(),
    }
}
