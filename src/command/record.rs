//! Records what the right programs give, and shows that each argument matters.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use regex::Regex;

use super::gold::{CommandGold, FORMAT, GoldRun};
use super::item::CommandItem;
use super::judge::equal;
use super::loaded::LoadedCommands;
use super::manifest::Instruction;
use super::observe::{Extent, Observed};
use super::program::Program;
use super::ready::{ReadyCommands, right};
use crate::error::{Error, Kind, Result};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;
use crate::sandbox::Exit;
use crate::score::ml_bench::Argument;
use crate::score::{Rule, Tolerance, check_gold, score_experiment};
use crate::suite::EnvStamp;

/// A repo of the suite, read and made ready.
///
/// # Errors
/// Those of its files, its copy and its env.
pub async fn open(suite: &Path, id: &str, machine: &Machine, observer: &dyn Observer) -> Result<ReadyCommands> {
    let loaded = Arc::new(LoadedCommands::load(suite, id)?);
    let item = Arc::new(CommandItem { loaded: loaded.clone(), rule: Rule::Strict });
    ReadyCommands::prepare(item, loaded, Rule::Strict, machine, observer).await
}

/// Runs each right program `repeats` times, and once more with each argument changed.
///
/// # Errors
/// Kind `Baseline`, naming the instruction, for a program that fails, whose arguments or result vary, or that has an
/// argument whose change alters neither.
pub async fn record(
    ready: &ReadyCommands,
    repeats: usize,
    machine: &Machine,
    observer: &dyn Observer,
) -> Result<CommandGold> {
    let loaded = &ready.loaded;
    let all = &loaded.set.instructions;
    let mut results = BTreeMap::new();
    for (done, instruction) in all.iter().enumerate() {
        let stage = Stage::new("recording gold of", &loaded.id);
        observer.on(RunEvent::Stage(stage.counted(done, all.len(), "instructions")));
        let named = |what: String| Error::new(Kind::Baseline, format!("instruction `{}`: {what}", instruction.id));
        let mut runs = Vec::with_capacity(repeats);
        for _ in 0..repeats.max(1) {
            let observed = ready.run(&right(instruction), instruction, Extent::Whole, machine).await?;
            if observed.exit != Exit::Code(0) {
                return Err(named(format!("its right program ended with {:?}\n{}", observed.exit, observed.stderr)));
            }
            runs.push(observed);
        }
        let first = &runs[0];
        if let Some(outcome) = first.outcome.as_ref().filter(|_| instruction.expect.outcome) {
            check_gold(outcome).map_err(&named)?;
        }
        if runs.iter().any(|run| !is_same(instruction, first, run)) {
            return Err(named("it does not give the same every time".to_owned()));
        }
        let mut changes = BTreeMap::new();
        for argument in instruction.asked().map_err(&named)? {
            let program = changed(instruction, &argument)
                .ok_or_else(|| named(format!("its right program does not hold the argument `{}`", argument.name)))?;
            let Some(what) = effect(ready, instruction, first, &program, machine).await? else {
                return Err(named(format!("changing the argument `{}` changes nothing", argument.name))
                    .hint("leave it out of `arguments`, or give another value under `instead`"));
            };
            changes.insert(argument.name, what.to_owned());
        }
        results.insert(
            instruction.id.clone(),
            GoldRun {
                program: instruction.gold.clone(),
                call: first.calls.last().cloned(),
                outcome: first.outcome.clone().filter(|_| instruction.expect.outcome),
                seconds: runs.iter().map(|run| run.seconds).collect(),
                changes,
            },
        );
    }
    Ok(CommandGold {
        format: FORMAT,
        recorded: jiff::Timestamp::now(),
        repo: ready.snapshot.digest().to_owned(),
        env: EnvStamp {
            backend: ready.env.backend.to_owned(),
            digest: ready.env.digest.clone(),
            python: ready.env.python.clone(),
        },
        sandbox: machine.backend.name().to_owned(),
        results,
    })
}

/// What a changed program does otherwise; `None` when it does the same.
async fn effect(
    ready: &ReadyCommands,
    instruction: &Instruction,
    first: &Observed,
    program: &Program,
    machine: &Machine,
) -> Result<Option<&'static str>> {
    if !first.calls.is_empty() {
        let parsed = ready.run(program, instruction, Extent::Parsing, machine).await?;
        match parsed.calls.last() {
            None => return Ok(Some("failure")),
            Some(call) if !is_same_call(first, call) => return Ok(Some("parsed")),
            Some(_) => {}
        }
    }
    let run = ready.run(program, instruction, Extent::Whole, machine).await?;
    if run.exit != Exit::Code(0) {
        return Ok(Some("failure"));
    }
    Ok((!is_same_outcome(instruction, first, &run)).then_some("outcome"))
}

fn is_same(instruction: &Instruction, one: &Observed, other: &Observed) -> bool {
    let calls = one.calls.last().is_none_or(|_| other.calls.last().is_some_and(|call| is_same_call(one, call)));
    calls && (!instruction.expect.outcome || is_same_outcome(instruction, one, other))
}

fn is_same_call(one: &Observed, call: &super::observe::Call) -> bool {
    one.calls.last().is_some_and(|right| {
        right.file == call.file
            && right.parsed.len() == call.parsed.len()
            && right.parsed.iter().all(|(name, value)| call.parsed.get(name).is_some_and(|got| equal(value, got)))
    })
}

fn is_same_outcome(instruction: &Instruction, one: &Observed, other: &Observed) -> bool {
    let Some(right) = &one.outcome else { return other.outcome.is_none() };
    let tolerance = Tolerance { relative: instruction.expect.tolerance, ..Tolerance::default() };
    score_experiment("outcome", right, other.outcome.as_ref(), &tolerance).pass
}

/// The right program with another value in the place of an argument's.
fn changed(instruction: &Instruction, argument: &Argument) -> Option<Program> {
    let value = argument.value.trim();
    let instead = instruction.expect.instead.get(&argument.name).cloned().unwrap_or_else(|| other(value));
    let whole = Regex::new(&format!(r"(^|[^\w.-])({})($|[^\w.-])", regex::escape(value))).ok()?;
    // After its own name, where that is there, so that an equal value of another argument stays.
    let name = argument.name.replace(['-', '_'], "[-_]");
    let after = Regex::new(&format!(r"\b{name}\b['\x22]?[\s=:,\x22']")).ok().and_then(|it| it.find(&instruction.gold));
    let start = after.map_or(0, |found| found.end().saturating_sub(1));
    let (before, rest) = instruction.gold.split_at(start);
    let found = whole.captures(rest).map(|it| (before, it, rest)).or_else(|| {
        let all = instruction.gold.as_str();
        whole.captures(all).map(|it| ("", it, all))
    })?;
    let (before, captures, rest) = found;
    let place = captures.get(2)?;
    let code = format!("{before}{}{instead}{}", &rest[..place.start()], &rest[place.end()..]);
    Some(Program { code, kind: instruction.kind })
}

/// Another value than this one.
fn other(value: &str) -> String {
    if let Ok(whole) = value.parse::<i64>() {
        return (whole + 1).to_string();
    }
    match value.parse::<f64>() {
        Ok(number) => format!("{}", number * 1.5 + 0.01),
        Err(_) => format!("{value}x"),
    }
}
