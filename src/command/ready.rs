//! A repo prepared on this machine: its files without the documentation, and its env.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::changed_run::{CHANGED_RUN, is_needed};
use super::context::README;
use super::gold::GoldRun;
use super::judge::{InstructionJudge, RUN, run_record};
use super::loaded::LoadedCommands;
use super::manifest::Instruction;
use super::observe::{ProgramRecord, RecordingPlan, Shift, observe, observe_shifted};
use super::program::{AnswerProgram, Program, file_name, find, kind_of_file};
use super::sample_id::parts;
use super::shelf::shelf;
use super::task::task;
use crate::agent::{Check, ShownRepo};
use crate::env::Env;
use crate::error::{Error, FailureKind, Result};
use crate::run::check::Measurement;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::family::{AttemptOutput, Item, Ready, Staged};
use crate::run::machine::Machine;
use crate::sample::Sample;
use crate::sandbox::{Command, ExecLimits, Exit, Fault, Sandbox, patience, stop_signal};
use crate::score::Rule;
use crate::score::ml_bench::ProgramKind;
use crate::workspace::{ChangeKind, Snapshot, is_left_out};

/// A repo with instructions, prepared on this machine.
pub struct ReadyCommands {
    /// The item.
    item: Arc<dyn Item>,
    /// The loaded instructions.
    pub loaded: Arc<LoadedCommands>,
    rule: Rule,
    /// The repo with the suite's files copied over it, without documentation.
    pub snapshot: Snapshot,
    /// The env.
    pub env: Env,
    /// All repos of the suite, shown to the agent `ml-agent`.
    shelf: Arc<Vec<ShownRepo>>,
}

impl ReadyCommands {
    /// Copies the repo and builds its env.
    ///
    /// # Errors
    /// The errors of the copy and the env.
    pub async fn prepare(
        item: Arc<dyn Item>,
        loaded: Arc<LoadedCommands>,
        rule: Rule,
        machine: &Machine,
        observer: &dyn Observer,
    ) -> Result<Self> {
        observer.on(RunEvent::Stage(Stage::new("copying repo", &loaded.id)));
        let folder = tempfile::tempdir_in(&machine.cache)
            .map_err(|error| Error::io("create a folder in", &machine.cache, error))?;
        if let Some(repo) = &loaded.set.repo {
            lay(&loaded.suite.join("repos").join(repo), folder.path())?;
        }
        lay(&loaded.overlay(), folder.path())?;
        for (file, _) in &loaded.docs {
            let path = folder.path().join(file);
            std::fs::remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
        }
        let snapshot = Snapshot::take(folder.path(), &machine.cache, machine.backend.owner())?;
        observer.on(RunEvent::Stage(Stage::new("building env", &loaded.set.env)));
        let env = machine
            .envs
            .build(&loaded.suite.join("envs").join(&loaded.set.env), &machine.cache, &|progress| {
                observer.on(RunEvent::Env(progress));
            })
            .await?;
        let shelf = Arc::new(shelf(&loaded.suite)?);
        Ok(Self { item, loaded, rule, snapshot, env, shelf })
    }

    /// Runs a program in a fresh sandbox. If `plan.shift` names an argument of a recorded call, runs the program a
    /// second time, in another fresh sandbox. In this second run, the recorder changes the argument before the call is
    /// made.
    ///
    /// # Errors
    /// Kind `Infrastructure` if the sandbox is lost.
    pub async fn run(
        &self,
        program: &Program,
        instruction: &Instruction,
        plan: &RecordingPlan<'_>,
        machine: &Machine,
    ) -> Result<ProgramRecord> {
        let lost = |fault: Fault| {
            Error::new(FailureKind::Infrastructure, format!("instruction `{}` of `{}`", instruction.id, self.loaded.id))
                .because(fault)
        };
        let gpu = machine.graphics.take().await?;
        let workspace = machine.workspace(&self.snapshot, &[])?;
        let mut sandbox = machine.backend.start(&machine.spec(&self.env, &workspace, gpu.as_ref())).await?;
        let mut observed = observe(sandbox.as_mut(), program, instruction, plan).await.map_err(lost)?;
        sandbox.destroy().await.map_err(lost)?;
        workspace.remove()?;
        if let Some(shift) = plan.shift.filter(|shift| is_needed(shift, &observed)) {
            let workspace = machine.workspace(&self.snapshot, &[])?;
            let mut sandbox = machine.backend.start(&machine.spec(&self.env, &workspace, gpu.as_ref())).await?;
            let shifted = observe_shifted(sandbox.as_mut(), program, instruction, plan, shift).await.map_err(lost)?;
            observed.shifted = Some(shifted);
            sandbox.destroy().await.map_err(lost)?;
            workspace.remove()?;
        }
        Ok(observed)
    }

    /// Checks that the right program of each instruction passes on this machine.
    ///
    /// # Errors
    /// Kind `Baseline`, naming the first program that fails.
    pub async fn check_baseline(&self, machine: &Machine, observer: &dyn Observer) -> Result<()> {
        let loaded = &self.loaded;
        let all = &loaded.set.instructions;
        for (done, instruction) in all.iter().enumerate() {
            let stage = Stage::new("checking the gold baseline of", &loaded.id);
            observer.on(RunEvent::Stage(stage.counted(done, all.len(), "instructions")));
            let Some(gold) = loaded.gold.as_ref().and_then(|gold| gold.results.get(&instruction.id)) else { continue };
            let plan = gold.plan(&loaded.set);
            let observed = self.run(&right(instruction), instruction, &plan, machine).await?;
            let asked = instruction.required_arguments().map_err(Error::suite)?;
            let judge = InstructionJudge { instruction, gold, asked, rule: self.rule, reads_text: true };
            let result = serde_json::json!({ "result": observed });
            let verdict = judge.verified(&serde_json::Map::from_iter([(RUN.to_owned(), result)]));
            if let Some(failed) = verdict.experiments.iter().find(|check| !check.pass) {
                let reason = failed.reason.clone().unwrap_or_default();
                let what = format!(
                    "on this machine, gold of instruction `{}` of `{}` fails the check `{}`: {reason}",
                    instruction.id, loaded.id, failed.experiment
                );
                return Err(Error::new(FailureKind::Baseline, what).hint(format!(
                    "scores would be meaningless; record gold for this machine with `autoexperiment gold --family command {}`",
                    loaded.id
                )));
            }
        }
        Ok(())
    }
}

/// Returns the right program of an instruction, which is its gold program.
pub fn right(instruction: &Instruction) -> Program {
    Program { code: instruction.gold.clone(), kind: instruction.kind }
}

/// Copies the regular files of one folder over another.
fn lay(from: &Path, to: &Path) -> Result<()> {
    let walk = walkdir::WalkDir::new(from).min_depth(1).sort_by_file_name();
    let kept = walk.into_iter().filter_entry(|entry| !entry.file_name().to_str().is_some_and(is_left_out));
    for entry in kept {
        let entry = entry
            .map_err(|error| Error::suite(format!("failed to read the repo `{}`", from.display())).because(error))?;
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&target).map_err(|error| Error::io("create", &target, error))?;
        } else {
            std::fs::copy(entry.path(), &target).map_err(|error| Error::io("copy", entry.path(), error))?;
        }
    }
    Ok(())
}

#[async_trait]
impl Ready for ReadyCommands {
    fn item(&self) -> &dyn Item {
        self.item.as_ref()
    }

    fn repo(&self) -> &str {
        self.snapshot.digest()
    }

    fn env(&self) -> &Env {
        &self.env
    }

    fn stage(&self, sample: &Sample, attempt: u32) -> Result<Staged<'_>> {
        let loaded = &self.loaded;
        let instruction = loaded.instruction(parts(sample.id())?.1)?;
        let docs = loaded.docs.iter().filter(|_| sample.n() == README);
        let files: Vec<(PathBuf, Vec<u8>)> =
            docs.map(|(file, text)| (file.into(), text.clone().into_bytes())).collect();
        let task = task(loaded, &self.shelf, instruction, sample.n(), sample.id(), attempt);
        let check = Check {
            id: RUN.to_owned(),
            key: RUN.to_owned(),
            command: format!("the {:?} program that the answer holds or names", instruction.kind).to_lowercase(),
            time_limit: instruction.time_limit,
            result: instruction.result.clone(),
        };
        Ok(Staged { task, snapshot: &self.snapshot, files, checks: vec![check] })
    }

    /// Whether verification ignores an attempt's file. It uses only files that can be an instruction's program and that
    /// the repo does not have. Other files could change what the repo's code does.
    fn keeps_out(&self, path: &str) -> bool {
        let is_program = |instruction: &Instruction| program_paths(instruction, path).any(|it| it == Path::new(path));
        !self.loaded.set.instructions.iter().any(is_program) || self.snapshot.tree().join(path).exists()
    }

    async fn verify(
        &self,
        staged: &Staged<'_>,
        evidence: &AttemptOutput<'_>,
        sandbox: &mut dyn Sandbox,
        done: &mut (dyn FnMut(Measurement) + Send),
    ) -> Result<(), Fault> {
        let refused = |why: String| Measurement::not_run(RUN, Exit::Code(127), why);
        let instruction = parts(&staged.task.sample).and_then(|(_, id, _)| self.loaded.instruction(id));
        let instruction = match instruction {
            Ok(instruction) => instruction,
            Err(error) => {
                done(refused(error.to_string()));
                return Ok(());
            }
        };
        let Some(program) = program(instruction, evidence) else {
            done(refused("there is no program: neither in the answer nor in a file `run.sh` or `run.py`".to_owned()));
            return Ok(());
        };
        let Some(gold) = self.loaded.gold.as_ref().and_then(|gold| gold.results.get(&instruction.id)) else {
            done(refused("the instruction has no gold".to_owned()));
            return Ok(());
        };
        let plan = gold.plan(&self.loaded.set);
        match observe(sandbox, &program, instruction, &plan).await {
            Ok(observed) => done(Measurement {
                id: RUN.to_owned(),
                exit: observed.exit,
                wall: Duration::try_from_secs_f64(observed.seconds).unwrap_or_default(),
                cpu: Duration::ZERO,
                starved: Duration::ZERO,
                stderr: observed.stderr.clone(),
                result: serde_json::to_value(&observed).map_err(|error| error.to_string()),
            }),
            Err(Fault::Refused(why)) => done(refused(format!("could not be run: {why}"))),
            Err(lost) => return Err(lost),
        }
        Ok(())
    }

    /// Whether the program must be run a second time, with an argument changed (see [`Shift`]).
    fn repeats(&self, staged: &Staged<'_>, _evidence: &AttemptOutput<'_>, results: &Map<String, Value>) -> bool {
        let Some((_, gold)) = self.staged_gold(staged) else { return false };
        let observed = run_record(results);
        gold.shift.as_ref().zip(observed).is_some_and(|(gold, observed)| is_needed(&gold.shift, &observed))
    }

    /// Runs the program a second time, with an argument changed (see [`Shift`]). The sandbox is a fresh one, because a
    /// program need not give the same result if it is run again on the files that its first run left.
    async fn repeat(
        &self,
        staged: &Staged<'_>,
        evidence: &AttemptOutput<'_>,
        sandbox: &mut dyn Sandbox,
        done: &mut (dyn FnMut(Measurement) + Send),
    ) -> Result<(), Fault> {
        let Some((instruction, gold)) = self.staged_gold(staged) else { return Ok(()) };
        let Some(shift) = gold.shift.as_ref().map(|gold| &gold.shift) else { return Ok(()) };
        let begun = Instant::now();
        let result = match self.run_shifted(instruction, gold, shift, evidence, sandbox).await {
            Ok(result) => result,
            Err(Fault::Refused(why)) => Err(format!("could not be run: {why}")),
            Err(lost) => return Err(lost),
        };
        let exit = Exit::Code(i32::from(result.is_err()));
        let (cpu, starved) = (Duration::ZERO, Duration::ZERO);
        let (id, wall) = (CHANGED_RUN.to_owned(), begun.elapsed());
        done(Measurement { id, exit, wall, cpu, starved, result, stderr: String::new() });
        Ok(())
    }
}

impl ReadyCommands {
    /// Returns the instruction of a sample, with the results of its right program.
    fn staged_gold(&self, staged: &Staged<'_>) -> Option<(&Instruction, &GoldRun)> {
        let (_, id, _) = parts(&staged.task.sample).ok()?;
        let instruction = self.loaded.instruction(id).ok()?;
        Some((instruction, self.loaded.gold.as_ref()?.results.get(&instruction.id)?))
    }

    /// Runs an attempt's program in a sandbox with the original repo, with an argument changed. Returns the program's
    /// result, or why it has none.
    async fn run_shifted(
        &self,
        instruction: &Instruction,
        gold: &GoldRun,
        shift: &Shift,
        evidence: &AttemptOutput<'_>,
        sandbox: &mut dyn Sandbox,
    ) -> Result<Result<Value, String>, Fault> {
        // Add the attempt's program files to this sandbox, as verification has added them to the sandbox of the first
        // run.
        for change in evidence.changes.files.iter().filter(|change| !self.keeps_out(&change.path)) {
            if change.kind != ChangeKind::Added {
                continue;
            }
            sandbox.write(Path::new(&change.path), &change.bytes).await?;
            if change.executable {
                let argv = ["chmod", "+x", "--", &change.path].map(Into::into).into();
                let (wall, grace) = (Duration::from_mins(1), Duration::from_secs(1));
                let limits = ExecLimits { wall, patience: patience(wall), grace, output: 64 << 10 };
                stop_signal::exec(sandbox, &Command { argv, ..Command::default() }, &limits).await?;
            }
        }
        let Some(program) = program(instruction, evidence) else {
            return Ok(Err("there is no program".to_owned()));
        };
        observe_shifted(sandbox, &program, instruction, &gold.plan(&self.loaded.set), shift).await
    }
}

/// Returns the paths in the repo at which an instruction's program of this file name may be: in the instruction's
/// folder, and in the root. Only the last part of `name` counts. Returns no path if a program file cannot have this
/// name (see [`kind_of_file`]).
fn program_paths(instruction: &Instruction, name: &str) -> impl Iterator<Item = PathBuf> {
    let last = kind_of_file(name).map(file_name);
    let folder = Path::new(&instruction.path).components().filter(|part| *part != Component::CurDir).collect();
    [folder, PathBuf::new()].into_iter().filter_map(move |folder| Some(folder.join(last?)))
}

/// Finds the program of an attempt: in its answer, in the file that the answer names, or in the default file. A file
/// counts only if the attempt has written it.
fn program(instruction: &Instruction, evidence: &AttemptOutput<'_>) -> Option<Program> {
    let named = match evidence.answer.map(|answer| find(answer, instruction.kind)) {
        Some(AnswerProgram::Program(program)) => return Some(program),
        Some(AnswerProgram::File(named)) => named,
        None => None,
    };
    let written = |path: &Path| {
        let mut files = evidence.changes.files.iter().filter(|file| Path::new(&file.path) == path);
        files.find(|file| matches!(file.kind, ChangeKind::Added | ChangeKind::Modified))
    };
    let usual = [instruction.kind, ProgramKind::Bash, ProgramKind::Python].map(file_name);
    named.iter().map(String::as_str).chain(usual).find_map(|name| {
        let kind = kind_of_file(name)?;
        let file = program_paths(instruction, name).find_map(|path| written(&path))?;
        Some(Program { code: String::from_utf8_lossy(&file.bytes).into_owned(), kind })
    })
}
