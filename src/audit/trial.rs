//! Runs one experiment on a changed repo, in its own sandbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::journal::Journal;
use crate::agent::TaskExperiment;
use crate::error::{Error, FailureKind, Result};
use crate::files::{PartsDigest, executable_digest};
use crate::masked::gold::{runs, verdict};
use crate::masked::ready::ReadyPaper;
use crate::run::check::measure;
use crate::run::machine::Machine;
use crate::sandbox::{EntryKind, Exit, Fault, Sandbox};
use crate::suite::{Dependencies, Experiment, GoldResult, LoadedPaper};

/// Maximum tries of a trial whose sandbox is lost, or whose failure may be due to a busy machine.
const TRIES: usize = 3;

/// Maximum bytes of a file that is read after a trial.
const LARGEST_KEPT: u64 = 16 << 20;

/// A repo with some files replaced, and an experiment to run on it.
#[derive(Debug, Clone)]
pub struct Trial<'a> {
    /// Files that are replaced or added: path in the repo, bytes.
    pub files: &'a [(PathBuf, Vec<u8>)],
    /// The experiment, with the trial's time limit.
    pub experiment: &'a TaskExperiment,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentOutcome {
    /// How the command ended.
    pub exit: Exit,
    /// The result, or the reason for not having one.
    pub result: Result<Value, String>,
    /// The results of all runs of a stochastic experiment, including the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Value>,
    /// The end of standard error if there is no result.
    pub stderr: String,
    /// Wall time in seconds.
    pub wall: f64,
    /// CPU time in seconds.
    pub cpu: f64,
}

impl ExperimentOutcome {
    /// Whether the experiment gave the gold result, within its tolerance.
    #[must_use]
    pub fn agrees(&self, experiment: &Experiment, gold: &GoldResult) -> bool {
        let Ok(result) = &self.result else { return false };
        let runs = if self.runs.is_empty() { std::slice::from_ref(result) } else { &self.runs };
        verdict(experiment, gold, runs).pass
    }
}

/// A trial that owns its data, for [`Bench::run_all`], which runs several at once.
#[derive(Debug, Clone)]
pub struct TrialJob {
    /// Same as [`Trial::files`].
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Same as [`Trial::experiment`].
    pub experiment: TaskExperiment,
}

/// The outcome of a trial whose files were read afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TrialWithFiles {
    /// The outcome.
    pub outcome: ExperimentOutcome,
    /// Names and texts of the files in the requested folder; bytes that are not UTF-8 become replacement characters.
    pub files: Vec<(String, String)>,
}

/// Runs the trials of one paper (runs of its experiments with changed code): in parallel, and each only once.
pub struct Bench {
    ready: ReadyPaper,
    machine: Arc<Machine>,
    journal: Journal<ExperimentOutcome>,
    kept: Journal<TrialWithFiles>,
    slots: Arc<Semaphore>,
    /// The graphics processors of trials, see [`Machine::known_graphics`]; empty if there are none.
    graphics: String,
    fresh: bool,
    keeps: bool,
    made: AtomicU64,
    cpu_micros: AtomicU64,
}

impl Bench {
    /// Creates a bench that runs `jobs` trials at once. Earlier results are in the machine's cache; if `fresh`, they
    /// are ignored and replaced.
    ///
    /// # Errors
    /// Kind `Machine` if the cache cannot be used.
    pub fn new(ready: ReadyPaper, machine: Arc<Machine>, jobs: usize, fresh: bool) -> Result<Self> {
        let graphics = machine.known_graphics();
        let trials = machine.cache.join("trials");
        let id = &ready.loaded.paper.id;
        let journal = Journal::open(&trials.join(format!("{id}.jsonl")))?;
        let kept = Journal::open(&trials.join(format!("{id}.kept.jsonl")))?;
        Ok(Self {
            ready,
            machine,
            journal,
            kept,
            slots: Arc::new(Semaphore::new(jobs.max(1))),
            fresh: fresh || graphics.is_none(),
            keeps: graphics.is_some(),
            graphics: graphics.unwrap_or_default(),
            made: AtomicU64::new(0),
            cpu_micros: AtomicU64::new(0),
        })
    }

    /// Disables the cache: every trial runs, and no result is stored.
    #[must_use]
    pub fn without_memory(self) -> Self {
        Self { fresh: true, keeps: false, ..self }
    }

    /// Takes a permit from `slots` for each trial, so that several benches share a number of trials at once.
    #[must_use]
    pub fn sharing(self, slots: Arc<Semaphore>) -> Self {
        Self { slots, ..self }
    }

    /// Replaces the stored dependency matrix with a newly measured one.
    pub(super) fn set_dependencies(&mut self, dependencies: Dependencies) {
        Arc::make_mut(&mut self.ready.loaded).dependencies = Some(dependencies);
    }

    /// Returns the paper with its env and experiments.
    #[must_use]
    pub const fn ready(&self) -> &ReadyPaper {
        &self.ready
    }

    /// Returns the paper.
    #[must_use]
    pub fn loaded(&self) -> &LoadedPaper {
        &self.ready.loaded
    }

    /// Returns the number of trials that actually ran, rather than being found in the cache.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Returns the CPU seconds of all trials that actually ran.
    #[must_use]
    pub fn cpu(&self) -> f64 {
        self.cpu_micros.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// Returns the result of this trial, from the cache or by running it. Waits for a free slot. Runs a stochastic
    /// experiment as many times as verification does. If the failure of changed code may be due to a busy machine, tries
    /// again.
    ///
    /// # Errors
    /// Kind `Infrastructure` if sandboxes are lost repeatedly, or the errors of the workspace.
    pub async fn run(&self, trial: &Trial<'_>) -> Result<ExperimentOutcome> {
        let key = self.key(trial)?;
        if !self.fresh
            && let Some(known) = self.journal.get(&key)
            // The result of a run that was stopped at a shorter time limit than this trial's cannot be reused.
            && !(known.exit == Exit::TimedOut && known.wall < 0.95 * trial.experiment.time_limit)
        {
            return Ok(known);
        }
        let mut outcome = self.run_again(trial).await?;
        for _ in 1..TRIES {
            // Try again if the failure of changed code may be due to a busy machine. If every try fails, the code
            // itself is taken to be the cause, for example because it fills the memory.
            if trial.files.is_empty() || is_by_the_code(trial, &outcome) {
                break;
            }
            outcome = self.run_again(trial).await?;
        }
        if self.keeps && is_by_the_code(trial, &outcome) {
            self.journal.put(key, &outcome)?;
        }
        Ok(outcome)
    }

    /// Returns how many times a trial runs its experiment.
    fn runs(&self, trial: &Trial<'_>) -> usize {
        let experiments = &self.loaded().paper.experiments;
        experiments.iter().find(|one| one.id == trial.experiment.id).map_or(1, runs)
    }

    /// Like [`Bench::run`], but runs the experiment only once, and also reads the files that are in `folder`
    /// afterwards, without subfolders. The folder is relative to the repo's root.
    ///
    /// # Errors
    /// Returns the errors of [`Bench::run`].
    pub(super) async fn run_keeping(&self, trial: &Trial<'_>, folder: &Path) -> Result<TrialWithFiles> {
        let key = self.key(trial)?;
        if !self.fresh
            && let Some(known) = self.kept.get(&key)
        {
            return Ok(known);
        }
        let (outcome, files) = self.make_anew(trial, Some(folder)).await?;
        let kept = TrialWithFiles { outcome, files };
        // A failed run is not stored: another try may succeed, as the machine may just have been busy.
        if self.keeps && kept.outcome.result.is_ok() {
            self.kept.put(key, &kept)?;
        }
        Ok(kept)
    }

    /// Runs a trial even if its result is known, and does not store the result.
    ///
    /// # Errors
    /// Returns the errors of [`Bench::run`].
    pub(super) async fn run_again(&self, trial: &Trial<'_>) -> Result<ExperimentOutcome> {
        let (mut outcome, _) = self.make_anew(trial, None).await?;
        for _ in 1..self.runs(trial) {
            let Ok(first) = &outcome.result else { break };
            if outcome.runs.is_empty() {
                outcome.runs.push(first.clone());
            }
            let (next, _) = self.make_anew(trial, None).await?;
            let (wall, cpu) = (outcome.wall + next.wall, outcome.cpu + next.cpu);
            match &next.result {
                Ok(result) => outcome.runs.push(result.clone()),
                Err(_) => outcome = next,
            }
            outcome = ExperimentOutcome { wall, cpu, ..outcome };
        }
        Ok(outcome)
    }

    /// Runs a trial exactly once, even if its result is known or its experiment is stochastic, and does not store the
    /// result.
    ///
    /// # Errors
    /// Returns the errors of [`Bench::run`].
    pub async fn run_afresh(&self, trial: &Trial<'_>) -> Result<ExperimentOutcome> {
        Ok(self.make_anew(trial, None).await?.0)
    }

    /// Runs these trials in parallel, and returns the results in their order. `on_done` gets the number of finished
    /// trials.
    ///
    /// # Errors
    /// The first error of [`Bench::run`], which stops the other trials.
    pub async fn run_all(
        self: &Arc<Self>,
        jobs: Vec<TrialJob>,
        mut on_done: impl FnMut(usize),
    ) -> Result<Vec<ExperimentOutcome>> {
        let mut outcomes: Vec<Option<ExperimentOutcome>> = vec![None; jobs.len()];
        let mut running = JoinSet::new();
        for (place, job) in jobs.into_iter().enumerate() {
            let bench = Arc::clone(self);
            running.spawn(async move {
                let trial = Trial { files: &job.files, experiment: &job.experiment };
                (place, bench.run(&trial).await)
            });
        }
        let mut done = 0;
        while let Some(ended) = running.join_next().await {
            let (place, outcome) =
                ended.map_err(|error| Error::internal("an experiment of the audit was aborted").because(error))?;
            outcomes[place] = Some(outcome?);
            done += 1;
            on_done(done);
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Runs a trial once a slot is free, and tries again if its sandbox is lost.
    async fn make_anew(
        &self,
        trial: &Trial<'_>,
        folder: Option<&Path>,
    ) -> Result<(ExperimentOutcome, Vec<(String, String)>)> {
        let _slot = self.slots.acquire().await.map_err(|_| Error::internal("the bench was closed"))?;
        let mut lost = None;
        for _ in 0..TRIES {
            match self.make(trial, folder).await {
                Ok((outcome, files)) => {
                    self.made.fetch_add(1, Ordering::Relaxed);
                    self.cpu_micros.fetch_add((outcome.cpu * 1e6) as u64, Ordering::Relaxed);
                    return Ok((outcome, files));
                }
                Err(error) if error.kind == FailureKind::Infrastructure => lost = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(lost.unwrap_or_else(|| Error::internal("a trial was not run at all")))
    }

    async fn make(
        &self,
        trial: &Trial<'_>,
        folder: Option<&Path>,
    ) -> Result<(ExperimentOutcome, Vec<(String, String)>)> {
        let gpu = self.machine.graphics.take().await?;
        let workspace = tokio::task::block_in_place(|| self.machine.workspace(&self.ready.snapshot, trial.files))?;
        let spec = self.machine.spec(&self.ready.env, &workspace, gpu.as_ref());
        let mut sandbox = self.machine.backend.start(&spec).await?;
        let lost = |fault: Fault| Error::new(FailureKind::Infrastructure, "the sandbox was lost").because(fault);
        let measured = measure(sandbox.as_mut(), &trial.experiment.check()).await.map_err(lost)?;
        let files = match folder {
            Some(folder) => read_folder(sandbox.as_mut(), folder).await.map_err(lost)?,
            None => Vec::new(),
        };
        sandbox.destroy().await.map_err(lost)?;
        tokio::task::block_in_place(|| workspace.remove())?;
        let outcome = ExperimentOutcome {
            exit: measured.exit,
            result: measured.result,
            runs: Vec::new(),
            stderr: measured.stderr,
            wall: measured.wall.as_secs_f64(),
            cpu: measured.cpu.as_secs_f64(),
        };
        Ok((outcome, files))
    }

    /// Returns the digest of everything that decides the result of a trial, except its time limit: SHA-256, hex. This
    /// program's executable is included, because the program's code extracts the results.
    ///
    /// # Errors
    /// Returns the errors of [`executable_digest`].
    fn key(&self, trial: &Trial<'_>) -> Result<String> {
        let mut parts = PartsDigest::default();
        parts.add(executable_digest()?);
        parts.add(self.ready.snapshot.content());
        parts.add(&self.ready.env.digest);
        parts.add(&self.ready.env.python);
        parts.add(self.machine.backend.name());
        parts.add(serde_json::to_vec(&self.machine.limits).unwrap_or_default());
        if let Some(base) = &self.ready.base {
            parts.add(base);
        }
        if !self.graphics.is_empty() {
            parts.add(&self.graphics);
        }
        parts.add(&trial.experiment.command);
        parts.add(format!("{:?}", trial.experiment.result));
        if self.runs(trial) > 1 {
            parts.add(self.runs(trial).to_string());
        }
        for (path, bytes) in trial.files {
            parts.add(path.as_os_str().as_encoded_bytes());
            parts.add(bytes);
        }
        Ok(parts.finish())
    }
}

/// Whether a trial's outcome is certain to be due to its code, and not to a busy machine, so that the outcome can be
/// stored. True for a result. For changed code, also true for an exit code without a result, and for a time limit
/// during at least half of which the command was computing. False for every failure of the unchanged code, because that
/// code passed when gold was recorded. False also for an end by a signal, such as the one that is sent if the memory is
/// full.
fn is_by_the_code(trial: &Trial<'_>, outcome: &ExperimentOutcome) -> bool {
    let failed = match outcome.exit {
        Exit::Code(_) => true,
        Exit::TimedOut => outcome.cpu >= 0.5 * outcome.wall,
        _ => false,
    };
    outcome.result.is_ok() || (failed && !trial.files.is_empty())
}

/// Reads the regular files of a folder, except those that are too large; empty if the folder is gone.
async fn read_folder(sandbox: &mut dyn Sandbox, folder: &Path) -> Result<Vec<(String, String)>, Fault> {
    let mut files = Vec::new();
    let entries = match sandbox.list(folder).await {
        Ok(entries) => entries,
        Err(Fault::Refused(_)) => return Ok(files),
        Err(lost) => return Err(lost),
    };
    for entry in entries.iter().filter(|entry| entry.kind == EntryKind::File) {
        match sandbox.read(&folder.join(&entry.name), LARGEST_KEPT).await {
            Ok(bytes) => {
                files.push((entry.name.to_string_lossy().into_owned(), String::from_utf8_lossy(&bytes).into_owned()));
            }
            Err(Fault::Refused(_)) => {}
            Err(lost) => return Err(lost),
        }
    }
    Ok(files)
}

/// Returns an experiment with another time limit.
#[must_use]
pub fn limited(experiment: &TaskExperiment, limit: Duration) -> TaskExperiment {
    TaskExperiment { time_limit: limit.as_secs_f64(), ..experiment.clone() }
}
