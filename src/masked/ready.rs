//! A paper prepared on this machine: env built, repo copied, experiments with their commands and time limits.

use std::sync::Arc;

use super::build::built;
use super::guard::Guard;
use crate::agent::files::EXPERIMENTS;
use crate::agent::{Check, TaskExperiment};
use crate::env::Env;
use crate::error::{Error, FailureKind, Result};
use crate::run::check::{Measurement, measure};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;
use crate::run::results::CheckKey;
use crate::sandbox::Fault;
use crate::score::long_shape;
use crate::suite::{Experiment, LoadedPaper, Protocol};
use crate::workspace::Snapshot;

/// Default time limit in seconds of an experiment on the unmasked repo, both when gold is recorded and when results are
/// compared with gold.
const ORIGINAL_TIME_LIMIT: f64 = 1800.0;

/// Minimum time limit in seconds of an experiment that runs an agent's code.
const LEAST_TIME_LIMIT: f64 = 20.0;

/// Time limit of an experiment that runs an agent's code, as a multiple of the time that it takes with the original
/// code.
const TIMES_ORIGINAL: f64 = 10.0;

/// A paper prepared on this machine.
pub struct ReadyPaper {
    /// The paper's manifest, its text, its gold and the parsed sources of its repo.
    pub loaded: Arc<LoadedPaper>,
    /// Snapshot of the paper's repo, with its extension modules (compiled code) built.
    pub snapshot: Snapshot,
    /// Snapshot of the paper's repo as agents get it: without the files that are hidden from agents, but with its
    /// extension modules built.
    pub shown: Snapshot,
    /// The paper's environment.
    pub env: Env,
    /// Digest of the base image of the paper's sandboxes, if there is one.
    pub base: Option<String>,
    /// All experiments of the paper, in the manifest's order.
    pub experiments: Vec<TaskExperiment>,
}

impl ReadyPaper {
    /// Copies the paper's repo, builds its env, and builds the repo's extension modules (compiled code) in that env.
    ///
    /// # Errors
    /// The errors of the snapshot, of the env, and of building the extension modules.
    pub async fn prepare(
        loaded: impl Into<Arc<LoadedPaper>>,
        protocol: Protocol,
        machine: &Machine,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let loaded = loaded.into();
        loaded.refuse_results()?;
        observer.on(RunEvent::Stage(Stage::new("copying repo", &loaded.paper.repo)));
        let (cache, owner) = (&machine.cache, machine.backend.owner());
        let plain = Snapshot::take(&loaded.repo_dir, cache, owner)?;
        observer.on(RunEvent::Stage(Stage::new("building env", &loaded.paper.env)));
        let env = machine
            .envs
            .build(&loaded.env_dir, &machine.cache, &|progress| observer.on(RunEvent::Env(progress)))
            .await?;
        machine.conceals(&env.read_only)?;
        let base = machine.backend.base().await?;
        // Build the extension modules without the hidden files, because the built files could otherwise contain their
        // content.
        let shown = plain.without(&loaded.paper.hidden_set(), cache, owner)?;
        let shown = built(&loaded.paper, shown, &env, base.as_deref(), machine, observer).await?;
        let snapshot = if loaded.paper.hidden.is_empty() {
            shown.clone()
        } else {
            plain.with_products(shown.tree(), cache, owner)?
        };
        let experiments = task_experiments(&loaded, protocol)?;
        Ok(Self { loaded, snapshot, shown, env, base, experiments })
    }

    /// Creates the guard, which decides which of an agent's changes are excluded from verification.
    #[must_use]
    pub fn guard(&self) -> Guard {
        let paper = &self.loaded.paper;
        let hidden = self.snapshot.matching(&paper.hidden_set());
        Guard::new(paper.protected_set(), hidden, self.snapshot.tree(), &self.env.read_only)
    }

    /// Raises time limits according to the times of the unmasked repo on this machine, so that no attempt fails because
    /// the machine is slower or busier than the one that recorded gold.
    pub fn allow(&mut self, measured: &[Measurement], protocol: Protocol) {
        for ((experiment, measurement), task) in
            self.loaded.paper.experiments.iter().zip(measured).zip(&mut self.experiments)
        {
            if given_limit(experiment, protocol).is_none() {
                task.time_limit = task.time_limit.max(limit(measurement.wall.as_secs_f64()));
            }
        }
    }

    /// Runs all experiments on the unmasked repo, each in a fresh sandbox as in verification, with the time limit of
    /// [`ReadyPaper::original_check`]. `known` returns whether a cached result of an experiment may be used instead.
    ///
    /// # Errors
    /// Kind `Infrastructure` if the sandbox is lost.
    pub(super) async fn measure_original(
        &self,
        protocol: Protocol,
        machine: &Machine,
        known: impl Fn(&Experiment) -> bool + Send,
        mut on_done: impl FnMut(&Measurement) + Send,
    ) -> Result<Vec<Measurement>> {
        let mut measurements = Vec::with_capacity(self.experiments.len());
        for (place, experiment) in self.loaded.paper.experiments.iter().enumerate() {
            let check = self.original_check(place, protocol);
            let time_limit = check.time_limit;
            let key = if known(experiment) { self.key(&check, machine) } else { None };
            let measurement = if let Some(known) = key.as_ref().and_then(|key| machine.results.get(key, time_limit)) {
                known.measurement(&check.id)
            } else {
                let measured = self.measure_one(place, &check, machine).await?;
                if let Some(key) = &key {
                    machine.results.put(key, &measured, &[]);
                }
                measured
            };
            on_done(&measurement);
            measurements.push(measurement);
        }
        Ok(measurements)
    }

    /// The check (command, result rule and time limit) of an experiment on the unmasked repo. If the manifest gives no
    /// time limit for this protocol, the limit is `ORIGINAL_TIME_LIMIT`.
    #[must_use]
    pub(super) fn original_check(&self, place: usize, protocol: Protocol) -> Check {
        let given = given_limit(&self.loaded.paper.experiments[place], protocol);
        Check { time_limit: given.unwrap_or(ORIGINAL_TIME_LIMIT), ..self.experiments[place].check() }
    }

    /// Runs one experiment, given by its index, on the unmasked repo in a fresh sandbox.
    ///
    /// # Errors
    /// Same as [`ReadyPaper::measure_original`].
    pub(super) async fn measure_one(&self, place: usize, check: &Check, machine: &Machine) -> Result<Measurement> {
        let gpu = machine.graphics.take().await?;
        let workspace = machine.workspace(self.snapshot_of(&check.id), &[])?;
        let mut sandbox = machine.backend.start(&machine.spec(&self.env, &workspace, gpu.as_ref())).await?;
        let measurement = measure(sandbox.as_mut(), check).await.map_err(|fault| {
            let id = &self.loaded.paper.experiments[place].id;
            Error::new(FailureKind::Infrastructure, format!("experiment `{id}` gave no result")).because(fault)
        })?;
        let lost = |fault: Fault| Error::new(FailureKind::Infrastructure, "the sandbox was lost").because(fault);
        sandbox.destroy().await.map_err(lost)?;
        workspace.remove()?;
        Ok(measurement)
    }

    /// Returns the repo including its hidden files if the experiment is hidden from agents; `None` for other
    /// experiments.
    #[must_use]
    pub fn hidden_snapshot(&self, experiment: &str) -> Option<&Snapshot> {
        let mut hidden = self.loaded.paper.experiments.iter().filter(|experiment| experiment.hidden);
        hidden.any(|one| one.id == experiment).then_some(&self.snapshot)
    }

    /// The repo in which an experiment runs.
    fn snapshot_of(&self, experiment: &str) -> &Snapshot {
        self.hidden_snapshot(experiment).unwrap_or(&self.shown)
    }

    /// The key under which the result of a check on the unmasked repo is cached; `None` if results are not cached.
    fn key(&self, check: &Check, machine: &Machine) -> Option<String> {
        machine.results.key(&CheckKey {
            repo: self.snapshot_of(&check.id).content(),
            env: &self.env,
            base: self.base.as_deref(),
            sandbox: machine.backend.name(),
            limits: &machine.limits,
            check,
            files: &[],
            changes: &[],
        })
    }
}

/// The paper's experiments with commands and time limits. A time limit that the manifest does not give is ten times the
/// time of gold's slowest repeat, but at least 20 seconds. [`ReadyPaper::allow`] raises time limits on a slower
/// machine.
pub fn task_experiments(loaded: &LoadedPaper, protocol: Protocol) -> Result<Vec<TaskExperiment>> {
    loaded
        .paper
        .experiments
        .iter()
        .enumerate()
        .map(|(place, experiment)| {
            let measured = loaded.gold.as_ref().and_then(|gold| gold.results.get(&protocol)?.get(&experiment.id));
            let slowest = measured.map_or(0.0, |gold| gold.seconds.iter().copied().fold(0.0, f64::max));
            let time_limit = given_limit(experiment, protocol).unwrap_or(limit(slowest));
            let shape = measured.and_then(|gold| long_shape(&gold.result, &experiment.description));
            Ok(TaskExperiment {
                id: experiment.id.clone(),
                key: experiment_key(place),
                description: described(experiment, shape.as_deref()),
                shape,
                command: experiment.command_line(protocol).map_err(|what| {
                    Error::suite(format!("experiment `{}` of paper `{}`: {what}", experiment.id, loaded.paper.id))
                })?,
                time_limit,
                told_limit: time_limit,
                result: experiment.result.clone(),
            })
        })
        .collect()
}

/// Returns the experiment's description for agents. `shape` is the beginning of the answer's structure, given if the
/// structure is too long to be shown in full; the description then names the file that contains all of it.
fn described(experiment: &Experiment, shape: Option<&str>) -> String {
    let text = experiment.description.trim();
    match shape {
        Some(_) => format!("{text} The whole shape of the answer is in `{EXPERIMENTS}`."),
        None => text.to_owned(),
    }
}

/// The key that answers use for the experiment at this index (from 0) of the manifest.
#[must_use]
pub(super) fn experiment_key(place: usize) -> String {
    format!("Experiment {}", place + 1)
}

/// The manifest's time limit, which applies only to curtailed (shortened) experiments.
fn given_limit(experiment: &Experiment, protocol: Protocol) -> Option<f64> {
    (protocol == Protocol::Curtailed).then_some(experiment.time_limit).flatten()
}

/// The time limit of an experiment that runs an agent's code, if it takes `seconds` with the original code.
fn limit(seconds: f64) -> f64 {
    (TIMES_ORIGINAL * seconds).max(LEAST_TIME_LIMIT).ceil()
}
