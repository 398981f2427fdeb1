//! A task prepared on this machine: starts attempts, keeps their results, and runs the entry script for verification.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::changes::CHANGES;
use super::ids;
use super::judge::{self, ENTRY, PACKAGES_CHECK, REPLAY, landmark_id};
use super::loaded::LoadedTask;
use super::manifest::{Landmark, LandmarkCheck};
use super::task::TaskItem;
use super::{changes, forgery, instructions, layer, trace};
use crate::agent::tail::tail;
use crate::agent::{Check, Context, Limits, Solution, Task, python};
use crate::env::{Env, wheelhouse};
use crate::error::{Error, FailureKind, Result};
use crate::files::hex;
use crate::kernel::{CellAuthor, CellOutput, CellState, Harness, Kernel};
use crate::run::check::Measurement;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::family::{AttemptOutput, Collected, Item, Ready, ScoringInput, Staged};
use crate::run::machine::Machine;
use crate::sample::Sample;
use crate::sandbox::{Command, ExecLimits, Exit, Fault, Sandbox, patience, stop_signal};
use crate::workspace::Snapshot;

/// Time limit of a probe, a script that checks for a sign of progress.
const PROBE: Duration = Duration::from_mins(2);

/// A task with its repo, its env and its wheelhouse, which is the folder of downloaded wheels.
pub(super) struct ReadyTask {
    item: Arc<TaskItem>,
    snapshot: Snapshot,
    env: Env,
}

impl ReadyTask {
    /// Copies the repo, builds the base env and downloads the wheels.
    ///
    /// # Errors
    /// Returns the errors of these steps; kind `Machine` for a sandbox without a file system of its own.
    pub async fn prepare(item: Arc<TaskItem>, machine: &Machine, observer: &dyn Observer) -> Result<Self> {
        let backend = machine.backend.name();
        if matches!(backend, "none" | "landlock") {
            return Err(Error::machine(format!(
                "a `{backend}` sandbox has no file system of its own, and notebook tasks need one"
            ))
            .hint("use `--sandbox docker` or `--sandbox podman`, or a machine that allows user namespaces"));
        }
        let task = &item.loaded;
        observer.on(RunEvent::Stage(Stage::new("copying repo", &task.manifest.repo)));
        let snapshot = Snapshot::take(&task.repo_dir, &machine.cache, machine.backend.owner())?;
        observer.on(RunEvent::Stage(Stage::new("building env", &task.manifest.env)));
        let progress = |told| observer.on(RunEvent::Env(told));
        let base = machine.envs.build(&task.env_dir, &machine.cache, &progress).await?;
        let wheels = match &task.wheels {
            Some(list) => Some(wheelhouse(list, &base, &machine.cache, machine.offline, &progress).await?),
            None => None,
        };
        let wheels = wheels.as_deref();
        let digest = hex(&Sha256::digest(format!("notebook 1\n{}\n{wheels:?}", base.digest)));
        let env = layer::over(&base, wheels, &digest);
        Ok(Self { item, snapshot, env })
    }

    fn task(&self) -> &LoadedTask {
        &self.item.loaded
    }

    /// Returns the parts of the repo that a solution changed, together with `left`: the files of installed packages
    /// whose changes the task does not permit. The result is an error if the solution's code contains gold values.
    fn changes(&self, evidence: &AttemptOutput<'_>, patches: &Map<String, Value>, left: &[String]) -> Measurement {
        let (task, tree) = (self.task(), self.snapshot.tree());
        let parts = changes::changed_parts(tree, evidence.changes, patches);
        let written = match &task.answer {
            Some(gold) => changes::written_answers(tree, evidence.changes, &task.permitted, gold),
            None => Vec::new(),
        };
        let result =
            if written.is_empty() { Ok(json!({ "parts": parts, "left": left })) } else { Err(written.join("; ")) };
        let none = Duration::ZERO;
        let (id, exit) = (CHANGES.to_owned(), Exit::Code(0));
        Measurement { id, exit, wall: none, cpu: none, starved: none, result, stderr: String::new() }
    }

    /// Creates the env layer and a Python session. Runs the prefix, that is, the cells executed before the agent
    /// begins, in the session, and calls `ran` with each cell. Shell commands must not fail, except in cells in which
    /// they also failed when gold was recorded.
    async fn set_up(
        &self,
        withheld: &[usize],
        host: &mut Harness<'_>,
        ran: &mut (dyn FnMut(&str, &CellOutput, Duration) + Send),
    ) -> Result<Kernel, Fault> {
        layer::make(host).await?;
        let mut kernel = Kernel::start(host).await?;
        let patience = Duration::from_secs_f64(self.task().manifest.budget.tool_seconds);
        for cell in self.task().cells_of(withheld, false) {
            let begun = Instant::now();
            let shown = kernel.run(&cell, patience, host).await?;
            ran(&cell, &shown, begun.elapsed());
            let fails_in_gold = || self.task().record.iter().any(|record| record.failed.contains(&cell));
            if shown.state != CellState::Done && !(shown.state == CellState::Failed && fails_in_gold()) {
                let end = tail(&shown.output, 500);
                return Err(Fault::Refused(format!(
                    "a cell that was run before the agent began has failed ({:?}): {end}",
                    shown.state
                )));
            }
        }
        Ok(kernel)
    }

    /// Returns the check that runs the answer's command.
    fn entry(&self) -> Check {
        let answer = &self.task().manifest.answer;
        Check {
            id: ENTRY.to_owned(),
            key: "answer".to_owned(),
            command: answer.command.clone(),
            time_limit: answer.time_limit,
            result: answer.result.clone(),
        }
    }

    /// Runs the checks. First come the probes, which are scripts that check for signs of progress. Then the entry
    /// script runs, its calls of functions in `packages` are traced, and its output is searched for patterns. `fails`
    /// is whether an earlier check has failed. For a `TrialSolution`, which is made only to test the task, only pass or
    /// fail matters. So its entry script is skipped after a failed check or probe.
    async fn check(
        &self,
        withheld: &[usize],
        packages: &BTreeSet<String>,
        fails: bool,
        sandbox: &mut dyn Sandbox,
        done: &mut (dyn FnMut(Measurement) + Send),
    ) -> Result<(), Fault> {
        let mut in_output: Vec<(&Landmark, &str)> = Vec::new();
        let mut fails = fails;
        for landmark in self.task().manifest.landmarks_of(withheld) {
            match &landmark.check {
                LandmarkCheck::Entry(expression) => in_output.push((landmark, expression)),
                LandmarkCheck::Probe(_) => {
                    let probed = self.probe(landmark, sandbox).await?;
                    fails |= probed.result.is_err();
                    done(probed);
                }
            }
        }
        if fails && self.item.is_trial() {
            done(Measurement::not_run(ENTRY, Exit::Code(1), "another check fails".to_owned()));
            return Ok(());
        }
        let (entry, output, record) = trace::run(sandbox, &self.entry(), packages).await?;
        let (exit, wall) = (entry.exit, entry.wall);
        done(entry);
        done(record);
        for (landmark, expression) in in_output {
            let is_hit = regex::Regex::new(expression).is_ok_and(|regex| regex.is_match(&output));
            let result = is_hit.then_some(Value::Bool(true)).ok_or_else(|| "not in the output of our run".to_owned());
            let id = landmark_id(&landmark.id);
            let (cpu, starved) = (Duration::ZERO, Duration::ZERO);
            done(Measurement { id, exit, wall, cpu, starved, result, stderr: String::new() });
        }
        Ok(())
    }

    async fn probe(&self, landmark: &Landmark, sandbox: &mut dyn Sandbox) -> Result<Measurement, Fault> {
        let place = self.task().manifest.landmarks.iter().position(|other| other.id == landmark.id);
        let script = place.and_then(|place| self.task().probes[place].clone()).unwrap_or_default();
        let argv = ["python", "-I", "-"].map(Into::into).to_vec();
        let command = Command { argv, stdin: script.into_bytes(), ..Command::default() };
        let limits =
            ExecLimits { wall: PROBE, patience: patience(PROBE), grace: Duration::from_secs(1), output: 64 << 10 };
        let exec = stop_signal::exec(sandbox, &command, &limits).await?;
        let said = String::from_utf8_lossy(&exec.stdout);
        let last = said.trim_end().lines().last().unwrap_or_default().trim();
        let result = if exec.success() && last == "reached" {
            Ok(Value::Bool(true))
        } else {
            let errors = String::from_utf8_lossy(&exec.stderr);
            let why = if last.is_empty() { errors.trim_end().lines().last().unwrap_or_default() } else { last };
            Err(format!("not reached: {}", why.chars().take(200).collect::<String>()))
        };
        Ok(Measurement::from_exec(&landmark_id(&landmark.id), &exec, result))
    }

    /// Runs the cells before the agent's work (the prefix) and the agent's cells again, on the original repo.
    async fn replay(
        &self,
        withheld: &[usize],
        work: &Collected,
        sandbox: &mut dyn Sandbox,
    ) -> Result<Result<Value, String>, Fault> {
        let mut host = Harness(sandbox);
        let mut kernel = match self.set_up(withheld, &mut host, &mut |_, _, _| {}).await {
            Ok(kernel) => kernel,
            Err(Fault::Refused(why)) => return Ok(Err(why)),
            Err(lost) => return Err(lost),
        };
        for (number, cell) in work.cells.iter().filter(|cell| cell.by == CellAuthor::Agent).enumerate() {
            // Interrupt a cell that takes more than a minute and more than ten times as long as in the attempt. This is
            // an error only if the cell finished in the attempt.
            let patience = Duration::from_secs_f64((10.0 * cell.seconds).max(60.0));
            let mut shown = kernel.run(&cell.code, patience, &mut host).await?;
            if shown.state == CellState::Running {
                shown = kernel.interrupt(&mut host).await?;
            }
            if cell.state == CellState::Done && shown.state != CellState::Done {
                return Ok(Err(format!(
                    "cell {} of the agent ended differently when it was repeated: {:?}",
                    number + 1,
                    shown.state
                )));
            }
            if shown.state.is_end() {
                kernel = Kernel::start(&mut host).await?;
            }
        }
        Ok(Ok(Value::Bool(true)))
    }
}

/// Returns the indices of the blocks that a sample withholds from the agent.
fn withheld(staged: &Staged<'_>) -> Vec<usize> {
    ids::withheld(&staged.task.sample).map(|it| it.units).unwrap_or_default()
}

#[async_trait]
impl Ready for ReadyTask {
    fn item(&self) -> &dyn Item {
        self.item.as_ref()
    }

    fn repo(&self) -> &str {
        self.snapshot.digest()
    }

    fn env(&self) -> &Env {
        &self.env
    }

    /// Whether verification ignores a change of this file. It accepts changes of files that a solution may change, and
    /// new files that Python cannot import, unless their path begins with a dot.
    fn keeps_out(&self, path: &str) -> bool {
        !self.task().permitted.allows_file(path, !self.snapshot.tree().join(path).exists())
    }

    /// Replaces limits of steps, time and tokens that have their default values in the run by the task's own limits.
    fn limits(&self, asked: Limits) -> Limits {
        let (usual, own) = (Limits::default(), self.task().manifest.budget);
        Limits {
            steps: if asked.steps == usual.steps { own.steps } else { asked.steps },
            seconds: if asked.seconds.total_cmp(&usual.seconds).is_eq() { own.tool_seconds } else { asked.seconds },
            tokens: asked.tokens.or(Some(own.context_tokens)),
            cost: asked.cost,
        }
    }

    fn stage(&self, sample: &Sample, attempt: u32) -> Result<Staged<'_>> {
        let blocks = self.item.blocks(sample)?;
        let task = self.task();
        let (cells, answer) = self.item.solution(&blocks, attempt);
        let solution = Solution { cells, answer, ..Solution::default() };
        let task = Task {
            sample: sample.id().to_owned(),
            attempt,
            instructions: instructions::instructions(task, &blocks),
            answer: instructions::ANSWER.to_owned(),
            solution,
            forgery: Some(forgery::forgery(task)),
            part: None,
        };
        Ok(Staged { task, snapshot: &self.snapshot, files: Vec::new(), checks: vec![self.entry()] })
    }

    async fn begin(&self, staged: &Staged<'_>, context: &mut Context<'_>) -> Result<()> {
        context.session.patience = Some(Duration::from_secs_f64(self.task().manifest.budget.command_seconds));
        context.session.cells = Some(Vec::new());
        let mut ran = Vec::new();
        let mut keep = |code: &str, shown: &CellOutput, took| ran.push((code.to_owned(), shown.clone(), took));
        let set_up = self.set_up(&withheld(staged), &mut Harness(context.sandbox), &mut keep).await;
        for (code, shown, took) in ran {
            python::record(CellAuthor::Prefix, Some(&code), &shown, took, context);
        }
        let kernel = set_up.map_err(|fault| {
            Error::new(FailureKind::Infrastructure, format!("sample `{}` could not be set up", staged.task.sample))
                .because(fault)
        })?;
        context.session.kernel = Some(kernel);
        Ok(())
    }

    async fn finish(&self, _staged: &Staged<'_>, context: &mut Context<'_>) -> Result<Collected, Fault> {
        let cells = context.session.cells.take().unwrap_or_default();
        let mut observed = judge::observed(self.task(), &cells);
        let env = match layer::capture(&mut Harness(context.sandbox)).await {
            Ok(env) => env.into(),
            Err(Fault::Refused(why)) => json!({ "error": why }),
            Err(lost) => return Err(lost),
        };
        observed.insert("env".to_owned(), env);
        Ok(Collected { observed, cells })
    }

    async fn verify(
        &self,
        staged: &Staged<'_>,
        evidence: &AttemptOutput<'_>,
        sandbox: &mut dyn Sandbox,
        done: &mut (dyn FnMut(Measurement) + Send),
    ) -> Result<(), Fault> {
        let none = Map::new();
        let env = evidence.work.observed.get("env").and_then(Value::as_object).unwrap_or(&none);
        let mut env = env.clone();
        let patches = env.get("patches").and_then(Value::as_object).unwrap_or(&none);
        let (patches, left) = changes::permitted_patches(patches, &self.task().permitted);
        let changed = self.changes(evidence, &patches, &left);
        let fails = judge::forbidden(self.task(), &changed.to_json()).is_some();
        done(changed);
        let recorded = self.task().record.iter().flat_map(|record| record.calls.keys());
        let recorded = recorded.filter(|name| name.starts_with(changes::PACKAGES));
        let packages = trace::packages(patches.keys().chain(recorded));
        env.insert("patches".to_owned(), patches.into());
        match layer::restore(&env, &mut Harness(sandbox)).await {
            Ok(restored) => {
                if restored.get("left").and_then(Value::as_array).is_some_and(|left| !left.is_empty()) {
                    let (id, exit, none) = (PACKAGES_CHECK.to_owned(), Exit::Code(0), Duration::ZERO);
                    let (result, stderr) = (Ok(restored.into()), String::new());
                    done(Measurement { id, exit, wall: none, cpu: none, starved: none, result, stderr });
                }
                self.check(&withheld(staged), &packages, fails, sandbox, done).await
            }
            Err(Fault::Refused(why)) => {
                done(Measurement::not_run(ENTRY, Exit::Code(1), why));
                Ok(())
            }
            Err(lost) => Err(lost),
        }
    }

    /// Whether to run the agent's cells again: only if there are any and the attempt passes. Never done for a
    /// `TrialSolution`, which is a solution made only to test the task.
    fn repeats(&self, staged: &Staged<'_>, evidence: &AttemptOutput<'_>, results: &Map<String, Value>) -> bool {
        let findings = ScoringInput { answer: evidence.answer, observed: &evidence.work.observed, results };
        !self.item.is_trial()
            && evidence.work.cells.iter().any(|cell| cell.by == CellAuthor::Agent)
            && judge::verified(self.task(), self.item.rule, &withheld(staged), &findings)
                .is_ok_and(|verdict| verdict.pass)
    }

    async fn repeat(
        &self,
        staged: &Staged<'_>,
        evidence: &AttemptOutput<'_>,
        sandbox: &mut dyn Sandbox,
        done: &mut (dyn FnMut(Measurement) + Send),
    ) -> Result<(), Fault> {
        let begun = Instant::now();
        let result = self.replay(&withheld(staged), evidence.work, sandbox).await;
        let result = match result {
            Ok(result) => result,
            Err(Fault::Refused(why)) => Err(why),
            Err(lost) => return Err(lost),
        };
        let (exit, wall) = (Exit::Code(i32::from(result.is_err())), begun.elapsed());
        let (cpu, starved) = (Duration::ZERO, Duration::ZERO);
        done(Measurement { id: REPLAY.to_owned(), exit, wall, cpu, starved, result, stderr: String::new() });
        Ok(())
    }
}
