//! Changes each constant of an instruction's gold program, and shows that a check notices the change.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::constants::{ConstantChange, changes};
use super::gold::GoldRun;
use super::judge::{InstructionJudge, RUN};
use super::manifest::Instruction;
use super::observe::{ProgramRecord, RecordingPlan};
use super::program::Program;
use super::ready::ReadyCommands;
use crate::error::{Error, Result};
use crate::files::{DiskCache, PartsDigest, executable_digest};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;
use crate::run::soundness::ConstantChanges;
use crate::sandbox::Exit;
use crate::score::Rule;

/// Maximum runs of a program that is stopped from outside.
const TRIES: usize = 3;

/// Results of changing the constants of a repo's gold programs.
#[derive(Debug, Default)]
pub struct ConstantTrials {
    /// Numbers of changes.
    pub counts: ConstantChanges,
    /// Faults of the manifest: changes with which the program still passes, and constants that are declared harmless
    /// although every change of them is noticed.
    pub faults: Vec<String>,
}

/// The cached outcome of one changed program.
#[derive(Serialize, Deserialize)]
struct CachedChange {
    noticed_by: Option<String>,
}

/// Changes the constants of each instruction's gold program, one at a time, and runs each changed program. Outcomes are
/// cached, so that an interrupted search continues; `fresh` ignores the cache. Only the same build of this harness uses
/// the cached outcomes.
///
/// # Errors
/// Kind `Infrastructure` if a sandbox is lost; the errors of [`executable_digest`].
pub async fn search(
    ready: &ReadyCommands,
    machine: &Machine,
    jobs: usize,
    fresh: bool,
    observer: &dyn Observer,
) -> Result<ConstantTrials> {
    let loaded = &ready.loaded;
    let executable = executable_digest()?;
    let kept = DiskCache::at(&machine.cache.join("changes"));
    let overlay = loaded.overlay();
    let mut trials = Vec::new();
    for instruction in &loaded.set.instructions {
        let Some(gold) = loaded.gold.as_ref().and_then(|gold| gold.results.get(&instruction.id)) else { continue };
        let found = changes(instruction, &|text| siblings(&overlay.join(&instruction.path), text));
        trials.extend(found.into_iter().map(|change| (instruction, gold, change)));
    }
    let all = trials.len();
    let done = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let outcomes: Vec<(&Instruction, ConstantChange, Option<String>)> = stream::iter(trials)
        .map(|(instruction, gold, change)| {
            let (kept, done) = (&kept, done.clone());
            async move {
                let mut key = PartsDigest::default();
                for part in [executable, ready.snapshot.content(), &ready.env.digest, &change.code] {
                    key.add(part);
                }
                for part in [json!(instruction), json!(gold), json!(machine.backend.name()), json!(machine.limits)] {
                    key.add(part.to_string());
                }
                let key = key.finish();
                let outcome = if let Some(outcome) = kept.get(&key).filter(|_| !fresh) {
                    outcome
                } else {
                    let program = Program { code: change.code.clone(), kind: instruction.kind };
                    let noticed_by = noticed_by(ready, instruction, gold, &program, true, machine).await?;
                    let outcome = CachedChange { noticed_by: noticed_by.map(str::to_owned) };
                    kept.put(&key, &outcome)?;
                    outcome
                };
                let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                observer
                    .on(RunEvent::Stage(Stage::new("changing constants of", &loaded.id).counted(done, all, "changes")));
                Ok::<_, Error>((instruction, change, outcome.noticed_by))
            }
        })
        .buffer_unordered(jobs.max(1))
        .try_collect()
        .await?;
    let mut tried = ConstantTrials {
        counts: ConstantChanges { made: all, ..ConstantChanges::default() },
        ..ConstantTrials::default()
    };
    let mut missed: BTreeSet<(String, String)> = BTreeSet::new();
    for (instruction, change, _) in outcomes.into_iter().filter(|(.., noticed)| noticed.is_none()) {
        missed.insert((instruction.id.clone(), change.constant.clone()));
        if instruction.expect.harmless.contains_key(&change.constant) {
            tried.counts.harmless += 1;
        } else {
            let ConstantChange { constant, instead, .. } = change;
            let what = if instead.is_empty() { "removed".to_owned() } else { format!("replaced by `{instead}`") };
            let id = &instruction.id;
            tried.counts.unnoticed += 1;
            tried.faults.push(format!("instruction `{id}`: no check notices if `{constant}` is {what}"));
        }
    }
    tried.faults.sort();
    for instruction in &loaded.set.instructions {
        let needless = instruction
            .expect
            .harmless
            .keys()
            .filter(|name| !missed.contains(&(instruction.id.clone(), (*name).clone())));
        tried.faults.extend(needless.map(|name| {
            format!(
                "instruction `{}`: `{name}` is listed as harmless, but a check notices each change of it",
                instruction.id
            )
        }));
    }
    Ok(tried)
}

/// Returns what shows that a program is wrong: `failure`, `kind`, `arguments` or `outcome`. Returns `None` if the
/// program passes. `reads_text` is explained at [`InstructionJudge`].
///
/// # Errors
/// Kind `Infrastructure` if the sandbox is lost.
pub(super) async fn noticed_by(
    ready: &ReadyCommands,
    instruction: &Instruction,
    gold: &GoldRun,
    program: &Program,
    reads_text: bool,
    machine: &Machine,
) -> Result<Option<&'static str>> {
    let asked = instruction.required_arguments().map_err(Error::suite)?;
    let judge = InstructionJudge { instruction, gold, asked, rule: Rule::Strict, reads_text };
    let plan = gold.plan(&ready.loaded.set);
    if let [_] = gold.calls[..] {
        // First run the program only until it has parsed its arguments. If they are wrong, the program need not run to
        // its end.
        let parsed = run(ready, program, instruction, &plan.stopping(), machine).await?;
        if parsed.calls.is_empty() {
            return Ok(Some("failure"));
        }
        if !judge.parsed(&parsed) {
            return Ok(Some("arguments"));
        }
    }
    let observed = run(ready, program, instruction, &plan, machine).await?;
    if observed.exit != Exit::Code(0) {
        return Ok(Some("failure"));
    }
    let verdict = judge.verified(&Map::from_iter([(RUN.to_owned(), json!({ "result": observed }))]));
    if verdict.pass {
        return Ok(None);
    }
    let failed = verdict.experiments.iter().find(|check| !check.pass);
    Ok(Some(match failed.map(|check| check.experiment.as_str()) {
        Some("kind") => "kind",
        Some(name) if name.starts_with("arguments") => "arguments",
        _ => "outcome",
    }))
}

/// Runs a program. A run that was stopped from outside, as at its time limit, is repeated, because the cause may be a
/// busy machine. A program that is stopped in all tries is itself the cause.
async fn run(
    ready: &ReadyCommands,
    program: &Program,
    instruction: &Instruction,
    plan: &RecordingPlan<'_>,
    machine: &Machine,
) -> Result<ProgramRecord> {
    let mut record = ready.run(program, instruction, plan, machine).await?;
    for _ in 1..TRIES {
        if matches!(record.exit, Exit::Code(_)) {
            break;
        }
        record = ready.run(program, instruction, plan, machine).await?;
    }
    Ok(record)
}

/// Returns variants of a text that is the path of a file: the paths of other files in the same folder, at most three.
fn siblings(root: &Path, text: &str) -> Vec<String> {
    let path = root.join(text);
    let Some(folder) = path.parent().filter(|_| path.is_file()) else { return Vec::new() };
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_file());
    let names: BTreeSet<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let others = names.into_iter().filter(|other| other != name);
    others.take(3).map(|other| text.replacen(name, &other, 1)).collect()
}
