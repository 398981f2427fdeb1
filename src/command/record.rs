//! Runs the right program of each instruction in a manifest, stores the results as gold, and checks for each requested
//! argument that another value changes what is recorded.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use regex::Regex;
use serde_json::{Value, json};

use super::calls::{equal, expected};
use super::changed_run::score_outcome;
use super::changes::noticed_by;
use super::gold::{CommandGold, FORMAT, GoldRun, ShiftOutcome};
use super::item::CommandItem;
use super::loaded::LoadedCommands;
use super::manifest::{Expect, Instruction};
use super::observe::{ParserCall, ProgramRecord, RecordingPlan, Shift};
use super::program::Program;
use super::ready::{ReadyCommands, right};
use crate::error::{Error, FailureKind, Result};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;
use crate::sandbox::Exit;
use crate::score::ml_bench::{Argument, ProgramKind};
use crate::score::{Rule, check_gold};
use crate::suite::EnvStamp;

/// Maximum number of arguments whose values are changed at run time, one per run, until a change alters the result.
const MOST_SHIFTS: usize = 4;

/// Loads and prepares a repo of the suite.
///
/// # Errors
/// The errors of reading the repo's files, copying the repo and preparing its env.
pub async fn open(suite: &Path, id: &str, machine: &Machine, observer: &dyn Observer) -> Result<ReadyCommands> {
    let loaded = Arc::new(LoadedCommands::load(suite, id)?);
    let item = Arc::new(CommandItem { loaded: loaded.clone(), rule: Rule::Strict });
    ReadyCommands::prepare(item, loaded, Rule::Strict, machine, observer).await
}

/// Records gold: runs each right program `repeats` times, and once more with each argument changed.
///
/// # Errors
/// Kind `Baseline`, naming the instruction, if a program fails, if its arguments or its result vary, or if a change of
/// an argument affects neither.
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
        let named =
            |what: String| Error::new(FailureKind::Baseline, format!("instruction `{}`: {what}", instruction.id));
        let mut runs = Vec::with_capacity(repeats);
        for _ in 0..repeats.max(1) {
            let plan = RecordingPlan::of_gold(&loaded.set, instruction.kind);
            let observed = ready.run(&right(instruction), instruction, &plan, machine).await?;
            if observed.exit != Exit::Code(0) {
                return Err(named(format!("its right program ended with {:?}\n{}", observed.exit, observed.stderr)));
            }
            if observed.record_too_large {
                return Err(named("the record of its right program's calls is larger than 4 MiB".to_owned()));
            }
            runs.push(observed);
        }
        let first = &runs[0];
        if instruction.expect.outcome {
            let Some(outcome) = &first.outcome else {
                let why = first.no_outcome.as_deref().unwrap_or("it gave none");
                return Err(named(format!("its right program has no outcome: {why}"))
                    .hint("correct `result` or the program, or set `expect.outcome = false`"));
            };
            check_gold(outcome).map_err(&named)?;
        }
        if runs.iter().any(|run| !is_same(instruction, first, run)) {
            return Err(named("its outcome differs between runs".to_owned()));
        }
        let mut gold = gold_of(instruction, &runs);
        let mut changes = BTreeMap::new();
        for argument in instruction.required_arguments().map_err(&named)? {
            let program = changed(instruction, &argument).ok_or_else(|| {
                named(format!("its right program lacks the value of the argument `{}`", argument.name))
            })?;
            let Some(what) = noticed_by(ready, instruction, &gold, &program, false, machine).await? else {
                return Err(named(format!("changing the argument `{}` changes nothing", argument.name))
                    .hint("leave it out of `arguments`, or give another value under `instead`"));
            };
            changes.insert(argument.name, what.to_owned());
        }
        gold.changes = changes;
        gold.shift = shifted(ready, instruction, &gold, machine).await?;
        results.insert(instruction.id.clone(), gold);
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

/// Builds gold from runs of a right program. `changes` and `shift`, which need runs with changed arguments, stay empty.
fn gold_of(instruction: &Instruction, runs: &[ProgramRecord]) -> GoldRun {
    let first = &runs[0];
    let calls: Vec<ParserCall> = first.calls.iter().fold(Vec::new(), |mut calls, call| {
        if !calls.contains(call) {
            calls.push(call.clone());
        }
        calls
    });
    let mut functions = first.functions.as_deref().map(expected).unwrap_or_default();
    for call in &mut functions {
        call.object = call.object.take().filter(|object| runs.iter().all(|run| run.objects.contains(object)));
    }
    // If a Python program parses a command line, the parsed arguments are all that has to be compared.
    let is_parsed = !calls.is_empty() && instruction.kind == ProgramKind::Python;
    let functions = if is_parsed { Vec::new() } else { functions };
    let started = if calls.is_empty() && functions.is_empty() { first.started.clone() } else { Vec::new() };
    GoldRun {
        program: instruction.gold.clone(),
        calls,
        functions,
        started,
        shift: None,
        outcome: first.outcome.clone().filter(|_| instruction.expect.outcome),
        seconds: runs.iter().map(|run| run.seconds).collect(),
        changes: BTreeMap::new(),
    }
}

/// Changes one argument per run while the right program runs, and returns the first change that alters the result.
async fn shifted(
    ready: &ReadyCommands,
    instruction: &Instruction,
    gold: &GoldRun,
    machine: &Machine,
) -> Result<Option<ShiftOutcome>> {
    let Some(outcome) = &gold.outcome else { return Ok(None) };
    for shift in shifts(instruction, gold).into_iter().take(MOST_SHIFTS) {
        let plan = RecordingPlan { shift: Some(&shift), ..gold.plan(&ready.loaded.set) };
        let observed = ready.run(&right(instruction), instruction, &plan, machine).await?;
        if let Some(Ok(changed)) = observed.shifted
            && check_gold(&changed).is_ok()
            && !score_outcome("outcome", outcome, Some(&changed), &instruction.expect).pass
        {
            return Ok(Some(ShiftOutcome { shift, outcome: changed }));
        }
    }
    Ok(None)
}

/// Returns the changes of arguments to try while the right program runs, one per run. If the program parses a command
/// line, the parsed arguments that the instruction requests are changed. Otherwise, fractions and seeds that are passed
/// to functions are changed. Other numbers, such as counts, are not changed, because a change may affect two right
/// programs differently: one program may write the original count a second time, another may read the changed count
/// from the object that was created with it. Arguments that right programs may pass with another value, or as a list in
/// another order, are not changed either.
fn shifts(instruction: &Instruction, gold: &GoldRun) -> Vec<Shift> {
    let Expect { free, unordered, .. } = &instruction.expect;
    let parsed = gold.calls.iter().flat_map(|call| call.parsed.iter().map(|entry| (&call.file, entry)));
    let set = gold.functions.iter().filter(|_| gold.calls.is_empty());
    let set = set.flat_map(|call| call.set.iter().map(|entry| (&call.function, entry)));
    let set = set.filter(|(_, (name, value))| value.is_f64() || is_seed(name));
    let asked = |name: &str| gold.changes.keys().any(|asked| asked.replace('-', "_") == name);
    let found = parsed.filter(|(_, (name, _))| asked(name)).chain(set);
    let found = found.filter(|(_, (name, _))| !free.contains_key(*name) && !unordered.contains(*name));
    let found = found.filter_map(|(at, (name, old))| {
        Some(Shift { at: at.clone(), name: name.clone(), old: old.clone(), new: raised(old)? })
    });
    found.collect()
}

/// Whether a parameter of this name (`seed`, `random_state`) holds a seed, but not a count such as `n_states`.
fn is_seed(name: &str) -> bool {
    name == "seeds" || name.ends_with("seed") || name.ends_with("state")
}

/// Slightly increases a number, or the first number of a list.
fn raised(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some(match number.as_i64() {
            Some(whole) => json!(whole.checked_add(1)?),
            None => json!(number.as_f64()? * 1.25),
        }),
        Value::Array(values) => {
            let mut values = values.clone();
            let first = values.first_mut()?;
            *first = raised(first)?;
            Some(Value::Array(values))
        }
        _ => None,
    }
}

fn is_same(instruction: &Instruction, one: &ProgramRecord, other: &ProgramRecord) -> bool {
    let calls = one.calls.len() == other.calls.len()
        && one
            .calls
            .iter()
            .zip(&other.calls)
            .all(|(one, other)| one.file == other.file && equal(&json!(one.parsed), &json!(other.parsed)));
    calls
        && (!instruction.expect.outcome
            || one
                .outcome
                .as_ref()
                .is_none_or(|right| score_outcome("outcome", right, other.outcome.as_ref(), &instruction.expect).pass))
}

/// Returns the right program with another value for an argument.
fn changed(instruction: &Instruction, argument: &Argument) -> Option<Program> {
    let value = argument.value.trim();
    let instead = instruction.expect.instead.get(&argument.name).cloned().unwrap_or_else(|| other(value));
    let whole = Regex::new(&format!(r"(^|[^\w.-])({})($|[^\w.-])", regex::escape(value))).ok()?;
    // If the argument's name occurs, search the text after the name first, so that an equal value of another argument
    // stays unchanged.
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

/// Returns a value that differs from this one.
fn other(value: &str) -> String {
    if let Ok(whole) = value.parse::<i64>() {
        return (whole + 1).to_string();
    }
    match value.parse::<f64>() {
        Ok(number) => format!("{}", number * 1.5 + 0.01),
        Err(_) => format!("{value}x"),
    }
}
