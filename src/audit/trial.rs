//! One experiment on a changed repo, in a sandbox of its own, and what came of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::journal::Journal;
use crate::agent::TaskExperiment;
use crate::error::{Error, Kind, Result};
use crate::run::experiments::measure;
use crate::run::gold::tolerance;
use crate::run::ready::{Machine, ReadyPaper};
use crate::score::score_experiment;
use crate::suite::{Experiment, LoadedPaper};
use crate::workspace::{Workspace, hex};

/// How often a trial is made whose sandbox is lost.
const TRIES: usize = 3;

/// A repo with some files replaced, and an experiment to run on it.
#[derive(Debug, Clone)]
pub struct Trial<'a> {
    /// Files that are replaced or added: path in the repo, bytes.
    pub files: &'a [(PathBuf, Vec<u8>)],
    /// The experiment; its time limit is that of this trial.
    pub experiment: &'a TaskExperiment,
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How the command ended.
    pub exit: crate::sandbox::Exit,
    /// The result, or why there is none.
    pub result: Result<Value, String>,
    /// The end of standard error when there is no result.
    pub stderr: String,
    /// Wall time in seconds.
    pub wall: f64,
    /// CPU time in seconds.
    pub cpu: f64,
}

impl Outcome {
    /// Whether the experiment gave the gold result, within its tolerance.
    #[must_use]
    pub fn agrees(&self, experiment: &Experiment, gold: &Value) -> bool {
        let result = self.result.as_ref().ok();
        result.is_some() && score_experiment(&experiment.id, gold, result, tolerance(experiment)).pass
    }
}

/// Where trials of one paper are made: side by side, each once.
pub struct Bench {
    ready: ReadyPaper,
    machine: Arc<Machine>,
    journal: Journal,
    slots: Semaphore,
    fresh: bool,
    made: AtomicU64,
    cpu_micros: AtomicU64,
}

impl Bench {
    /// A bench on which `jobs` trials run at once. What came of earlier ones is found in the machine's cache; with
    /// `fresh` it is not looked for, but replaced.
    ///
    /// # Errors
    /// Kind `Machine` when the cache cannot be used.
    pub fn new(ready: ReadyPaper, machine: Arc<Machine>, jobs: usize, fresh: bool) -> Result<Self> {
        let journal = Journal::open(&machine.cache.join("trials").join(format!("{}.jsonl", ready.loaded.paper.id)))?;
        let slots = Semaphore::new(jobs.max(1));
        Ok(Self { ready, machine, journal, slots, fresh, made: AtomicU64::new(0), cpu_micros: AtomicU64::new(0) })
    }

    /// The paper with its env and experiments.
    #[must_use]
    pub const fn ready(&self) -> &ReadyPaper {
        &self.ready
    }

    /// The paper.
    #[must_use]
    pub const fn loaded(&self) -> &LoadedPaper {
        &self.ready.loaded
    }

    /// How many trials were really made, and not found in the cache.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// CPU seconds of all trials that were really made.
    #[must_use]
    pub fn cpu(&self) -> f64 {
        self.cpu_micros.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// What came of this trial, from the cache or by making it. Waits for a free slot.
    ///
    /// # Errors
    /// Kind `Infrastructure` when sandboxes are lost again and again, or what the workspace gives.
    pub async fn run(&self, trial: &Trial<'_>) -> Result<Outcome> {
        let key = self.key(trial);
        if !self.fresh
            && let Some(known) = self.journal.get(&key)
            // One that ran into a shorter limit than this one's says nothing.
            && !(known.exit == crate::sandbox::Exit::TimedOut && known.wall < 0.95 * trial.experiment.time_limit)
        {
            return Ok(known);
        }
        let _slot = self.slots.acquire().await.map_err(|_| Error::internal("the bench was closed"))?;
        let mut lost = None;
        for _ in 0..TRIES {
            match self.make(trial).await {
                Ok(outcome) => {
                    self.made.fetch_add(1, Ordering::Relaxed);
                    self.cpu_micros.fetch_add((outcome.cpu * 1e6) as u64, Ordering::Relaxed);
                    self.journal.put(key, &outcome)?;
                    return Ok(outcome);
                }
                Err(error) if error.kind == Kind::Infrastructure => lost = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(lost.unwrap_or_else(|| Error::internal("a trial was never made")))
    }

    async fn make(&self, trial: &Trial<'_>) -> Result<Outcome> {
        let backend = &self.machine.backend;
        let folder = self.machine.scratch.next();
        let workspace = tokio::task::block_in_place(|| {
            Workspace::create(&self.ready.snapshot, trial.files, &folder, backend.layers(), backend.owner())
        })?;
        let mut sandbox = backend.start(&self.ready.spec(&workspace, &self.machine)).await?;
        let lost = |fault: crate::sandbox::Fault| Error::new(Kind::Infrastructure, fault.to_string());
        let measured = measure(sandbox.as_mut(), trial.experiment).await.map_err(lost)?;
        sandbox.destroy().await.map_err(lost)?;
        tokio::task::block_in_place(|| workspace.remove())?;
        Ok(Outcome {
            exit: measured.exit,
            result: measured.result,
            stderr: measured.stderr,
            wall: measured.wall.as_secs_f64(),
            cpu: measured.cpu.as_secs_f64(),
        })
    }

    /// Digest of all that decides what comes of a trial, but its time limit: sha256, hex.
    fn key(&self, trial: &Trial<'_>) -> String {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(self.ready.snapshot.digest().as_bytes());
        add(self.ready.env.digest.as_bytes());
        add(self.ready.env.python.as_bytes());
        add(self.machine.backend.name().as_bytes());
        add(trial.experiment.command.as_bytes());
        add(format!("{:?}", trial.experiment.result).as_bytes());
        for (path, bytes) in trial.files {
            add(path.as_os_str().as_encoded_bytes());
            add(bytes);
        }
        hex(&hash.finalize())
    }
}

/// An experiment under another time limit.
#[must_use]
pub fn limited(experiment: &TaskExperiment, limit: Duration) -> TaskExperiment {
    TaskExperiment { time_limit: limit.as_secs_f64(), ..experiment.clone() }
}
