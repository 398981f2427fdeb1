//! One attempt, from workspace to verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::family::{AttemptOutput, Collected, Ready, ScoringInput, Staged};
use super::gpus::Lease;
use super::machine::Machine;
use super::{AttemptRecord, Configuration, Store, round};
use crate::agent::{self, Agent, AttemptEnd, Budget, Context, End, Event, LiveUsage, Trajectory};
use crate::env::Env;
use crate::error::{Error, FailureKind, Result, with_causes};
use crate::model::Model;
use crate::model::ledger::{Ledger, Payer, PayerLedger};
use crate::sample::Sample;
use crate::sandbox::stop_signal::is_stopping;
use crate::sandbox::{Evidence, EvidenceKind, Fault, Loss, evidence_in};
use crate::score::Verdict;
use crate::workspace::{ChangeKind, ChangeLimits, Changes, Workspace};

/// An agent with its label in this run.
pub struct LabelledAgent {
    /// Short name, used in file names and tables.
    pub label: String,
    /// The agent.
    pub agent: Arc<dyn Agent>,
}

/// State shared by all attempts of a run.
pub struct RunContext {
    /// The settings.
    pub configuration: Configuration,
    /// Folders, sandboxes and envs of this machine.
    pub machine: Machine,
    /// The prepared items that the samples belong to.
    pub items: Vec<Box<dyn Ready>>,
    /// The agents that attempt the samples.
    pub agents: Vec<LabelledAgent>,
    /// The model, for agents that need one.
    pub model: Option<Arc<dyn Model>>,
    /// The store of results.
    pub store: Store,
    /// The ledger of model calls.
    pub ledger: Arc<Ledger>,
    /// Permits for verifications, if fewer verifications than attempts may run at once.
    pub verifications: Option<Arc<Semaphore>>,
}

/// An attempt in progress.
#[derive(Clone, Copy)]
pub(super) struct AttemptInProgress<'a> {
    /// The item that the attempt's sample belongs to.
    pub(super) ready: &'a dyn Ready,
    /// The files and the task given to the attempt.
    pub(super) staged: &'a Staged<'a>,
    /// The agent, sample and number of the attempt.
    pub(super) job: &'a AttemptJob,
    /// Graphics processor of the attempt, held until the attempt has been verified.
    pub(super) gpu: Option<&'a Lease>,
    /// Task files that the agent's workspace must not contain.
    pub(super) without: &'static [&'static str],
}

/// An attempt to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptJob {
    /// Index in [`RunContext::agents`].
    pub agent: usize,
    /// The sample.
    pub sample: Sample,
    /// Number of the attempt, from 0.
    pub attempt: u32,
}

impl RunContext {
    /// Makes an attempt and returns its record. If the attempt is lost because infrastructure failed, the record's end
    /// says so.
    ///
    /// # Errors
    /// Kind `Store` if the trajectory, the diff or the ledger cannot be written, and errors that affect more than one
    /// attempt.
    pub async fn make(
        &self,
        job: &AttemptJob,
        so_far: &Arc<LiveUsage>,
        cancel: &CancellationToken,
    ) -> Result<AttemptRecord> {
        self.make_by(&self.agents[job.agent], job, so_far, cancel).await
    }

    /// Makes an attempt like [`Self::make`], with an agent that need not be one of [`Self::agents`].
    ///
    /// # Errors
    /// Same as [`Self::make`].
    pub async fn make_by(
        &self,
        agent: &LabelledAgent,
        job: &AttemptJob,
        so_far: &Arc<LiveUsage>,
        cancel: &CancellationToken,
    ) -> Result<AttemptRecord> {
        let gpu = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            gpu = self.machine.graphics.take() => gpu?,
        };
        let begun = Instant::now();
        let ready = self.ready(&job.sample)?;
        let env = ready.env();
        if !env.is_intact() {
            let what = format!("the env in `{}` was removed or replaced", env.prefix.display());
            return Err(Error::machine(what).hint("resume the run: the env is built again"));
        }
        let staged = ready.stage(&job.sample, job.attempt)?;
        let mut record = self.blank_record(job, agent);
        record.gpu = gpu.as_ref().map(|lease| lease.gpu().name.clone());
        record.lines = ready.item().lines(&job.sample);
        let mut trajectory = self.store.new_trajectory(&agent.label, &record.sample, job.attempt)?;
        trajectory.push(&Event::Started {
            sample: record.sample.clone(),
            attempt: job.attempt,
            agent: agent.label.clone(),
            model: record.model.clone(),
            sandbox: record.sandbox.clone(),
            started: Some(record.started),
        });
        let without = agent.agent.goes_without();
        let under = AttemptInProgress { ready, staged: &staged, job, gpu: gpu.as_ref(), without };
        match self.work(under, so_far, agent, &mut trajectory, &mut record, cancel).await {
            Ok(Some((changes, work))) => {
                self.judge(under, &changes, &work, &mut trajectory, &mut record, cancel).await?;
            }
            Ok(None) => {}
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => {
                // A failure before the agent began: the workspace could not be created, or the sandbox did not start or
                // could not be prepared.
                let evidence = EvidenceKind::NotStarted.because(with_causes(&error));
                record.end_as(AttemptEnd::lost("", evidence));
                trajectory.push(&Event::Ended { end: record.end, detail: record.end_detail.clone() });
            }
        }
        record.wall_seconds = round(begun.elapsed().as_secs_f64());
        if let Some(error) = self.ledger.failed() {
            return Err(self.store.ledger_failed(&error));
        }
        // Flushing waits for the disk and must not block the async runtime.
        tokio::task::block_in_place(|| trajectory.finish())?;
        Ok(record)
    }

    /// Finds the item of a sample.
    pub(crate) fn ready(&self, sample: &Sample) -> Result<&dyn Ready> {
        let found = self.items.iter().find(|ready| ready.item().id() == sample.item());
        found
            .map(AsRef::as_ref)
            .ok_or_else(|| Error::internal(format!("no item of this run has the sample `{sample}`")))
    }

    /// Runs the agent. Returns `None` if infrastructure failed or the run was stopped.
    async fn work(
        &self,
        under: AttemptInProgress<'_>,
        so_far: &Arc<LiveUsage>,
        agent: &LabelledAgent,
        trajectory: &mut Trajectory,
        record: &mut AttemptRecord,
        cancel: &CancellationToken,
    ) -> Result<Option<(Changes, Collected)>> {
        let AttemptInProgress { ready, staged, job, gpu, without } = under;
        let workspace = self.workspace(staged, without)?;
        let mut spec = self.machine.spec(ready.env(), &workspace, gpu);
        spec.read_only.extend(agent.agent.read_only());
        let mut sandbox = self.machine.backend.start(&spec).await?;
        let payer = Payer {
            agent: record.agent.clone(),
            sample: record.sample.clone(),
            attempt: Some(job.attempt),
            started: Some(record.started),
            ..Payer::default()
        };
        let mut budget = Budget::with_tab(
            ready.limits(self.configuration.limits),
            Some(PayerLedger::new(self.ledger.clone(), payer)),
        );
        budget.watch(Arc::clone(so_far));
        let mut sampling = self.configuration.sampling.clone();
        sampling.seed = Some(attempt_seed(self.configuration.seed, &record.sample, job.attempt));
        let review = self.reviewer(under, &workspace, cancel);
        let mut context = Context {
            sandbox: sandbox.as_mut(),
            model: self.model.as_deref().filter(|_| agent.agent.needs_model()),
            sampling,
            budget: &mut budget,
            trajectory,
            cancel: cancel.clone(),
            answer: None,
            session: crate::agent::PythonSession::default(),
            review: Some(&review),
            round: 0,
            memory: self.machine.limits.memory,
            signalled: None,
        };
        let begun = tokio::select! {
            () = cancel.cancelled() => Err(Error::new(FailureKind::Interrupted, "the run was stopped")),
            begun = ready.begin(staged, &mut context) => begun,
        };
        let mut ended = match begun {
            Ok(()) => agent::attempt(agent.agent.as_ref(), &staged.task, &mut context).await,
            Err(error) if error.kind == FailureKind::Interrupted => End::Cancelled.into(),
            Err(error) => return Err(error),
        };
        let mut work = Collected::default();
        if !ended.end.is_infrastructure() && ended.end != End::SandboxKilled {
            match ready.finish(staged, &mut context).await {
                Ok(done) => work = done,
                Err(fault) => ended = fault.into(),
            }
        }
        let signalled = context.signalled;
        record.answer = context.answer.take();
        record.observed.clone_from(&work.observed);
        record.rounds = review.rounds();
        // Destroy the sandbox before taking the diff, so that no process changes the workspace any more.
        let destroyed = sandbox.destroy().await;
        // From here on, a workspace that cannot be read counts as the attempt's own fault, unless there is evidence
        // that the machine failed.
        let changes = match destroyed {
            Ok(()) if !ended.end.is_infrastructure() => {
                let begun = Instant::now();
                let read = tokio::task::block_in_place(|| workspace.changes(&ChangeLimits::default()));
                // Charge the attempt for the time of taking the diff, because a large tree that it left makes this
                // slow.
                budget.tool_time += begun.elapsed();
                read.map_err(|error| Loss::new(with_causes(&error)))
            }
            Ok(()) => Ok(Changes::default()),
            Err(Fault::Lost(loss)) => Err(loss),
            Err(Fault::Refused(why)) => Err(Loss::new(why)),
        };
        workspace.discard().await;
        let before = ended.end;
        if !ended.end.is_infrastructure()
            && let Some(evidence) = env_gone(ready.env())
        {
            ended = AttemptEnd::lost(ended.detail.unwrap_or_default(), evidence);
        }
        if let Err(loss) = &changes
            && ended.end != End::SandboxKilled
            && !ended.end.is_infrastructure()
        {
            ended = loss.clone().into();
        }
        if ended.end == End::SandboxKilled {
            let since = Instant::now();
            if let Some(evidence) = self.machine.examine().await {
                ended = AttemptEnd::lost(ended.detail.unwrap_or_default(), evidence);
            } else if is_stopping(since, cancel).await {
                ended = End::Cancelled.into();
            }
        } else if let Some(since) = signalled
            && !ended.end.is_infrastructure()
            && is_stopping(since, cancel).await
        {
            ended = End::Cancelled.into();
        }
        if ended.end != before {
            trajectory.push(&Event::Ended { end: ended.end, detail: ended.detail.clone() });
        }
        // An attempt that ended its own sandbox still gets a verdict, even if its changes could not be read.
        let changes = changes.unwrap_or_default();
        record.steps = budget.steps;
        record.format_errors = budget.format_errors;
        record.usage = budget.usage;
        record.cached_replies = budget.cached_replies;
        record.refused_requests = budget.refused_requests;
        record.cost = budget.cost;
        record.tool_seconds = round(budget.tool_time.as_secs_f64());
        record.model_seconds = round(budget.model_time.as_secs_f64());
        let is_lost = ended.end.is_infrastructure();
        record.end_as(ended);
        if is_lost {
            return Ok(None);
        }
        tokio::task::block_in_place(|| {
            self.store.save_diff(&agent.label, &record.sample, job.attempt, &changes.patch)
        })?;
        for change in &changes.files {
            let list = if change.kind == ChangeKind::Skipped { &mut record.skipped } else { &mut record.changed };
            list.push(change.path.clone());
        }
        record.unlisted = changes.unlisted;
        Ok(Some((changes, work)))
    }

    /// Computes the verdicts.
    async fn judge(
        &self,
        under: AttemptInProgress<'_>,
        changes: &Changes,
        work: &Collected,
        trajectory: &mut Trajectory,
        record: &mut AttemptRecord,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let AttemptInProgress { ready, job, .. } = under;
        let reported = ready.item().reported(&job.sample, &ScoringInput::from_record(record))?;
        record.pass = reported.pass;
        record.reported = Some(reported);
        if !self.configuration.verify {
            return Ok(());
        }
        let _turn = match &self.verifications {
            Some(turns) => tokio::select! {
                () = cancel.cancelled() => None,
                turn = turns.clone().acquire_owned() => turn.ok(),
            },
            None => None,
        };
        let answer = record.answer.clone();
        let evidence = AttemptOutput { answer: answer.as_deref(), changes, work };
        match self.verify(under, &evidence, trajectory, cancel).await {
            Ok(verification) => {
                record.ignored = verification.ignored;
                record.results = verification.results;
                record.cached_checks = verification.cached;
                let mut verified: Verdict = ready.item().verified(&job.sample, &ScoringInput::from_record(record))?;
                verified.warnings.extend(left_behind(record));
                // Score the reported answer again: if the results of a check vary on purpose, the answer is compared
                // with verification's results of this check, which exist only now.
                let reported = ready.item().reported(&job.sample, &ScoringInput::from_record(record))?;
                record.pass = reported.pass && verified.pass;
                record.reported = Some(reported);
                record.verified = Some(verified);
                record.verify_seconds = round(verification.seconds);
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => {
                // The agent's work stays in the record. But the attempt has no verdict, so record it as lost or
                // stopped: such attempts are left out of all rates.
                let what = format!("verification: {}", with_causes(&error));
                record.end_as(match evidence_in(&error) {
                    Some(evidence) if !cancel.is_cancelled() => AttemptEnd::lost(what, evidence.clone()),
                    _ => End::Cancelled.because(what),
                });
                record.pass = false;
                record.reported = None;
                record.verification_lost = true;
            }
        }
        Ok(())
    }

    /// Creates a workspace with a sample's files, except the files in `without`.
    pub(super) fn workspace(&self, staged: &Staged<'_>, without: &[&str]) -> Result<Workspace> {
        let is_there = |(path, _): &&(PathBuf, Vec<u8>)| !without.iter().any(|left_out| path == Path::new(left_out));
        let files: Vec<_> = staged.files.iter().filter(is_there).cloned().collect();
        tokio::task::block_in_place(|| self.machine.attempts_workspace(staged.snapshot, &files))
    }

    fn blank_record(&self, job: &AttemptJob, agent: &LabelledAgent) -> AttemptRecord {
        let model = self.model.as_ref().filter(|_| agent.agent.needs_model());
        AttemptRecord {
            model: model.map(|model| model.name().to_owned()),
            sandbox: self.machine.backend.name().to_owned(),
            ..AttemptRecord::blank(&agent.label, &job.sample, job.attempt)
        }
    }
}

/// Returns evidence that an env was removed or replaced while it was in use. Commands that ran meanwhile may have
/// failed because the env was missing.
pub(super) fn env_gone(env: &Env) -> Option<Evidence> {
    if env.is_intact() {
        return None;
    }
    Some(EvidenceKind::EnvGone.because(format!("the env `{}` was removed or replaced meanwhile", env.prefix.display())))
}

/// Whether an error affects more than one attempt, so that the run cannot continue.
fn is_fatal(error: &Error) -> bool {
    matches!(error.kind, FailureKind::Store | FailureKind::Internal | FailureKind::Suite)
}

/// Warnings about the agent's changes that were left out of verification. They may explain a failed verdict, because
/// the verified code then differs from the agent's.
fn left_behind(record: &AttemptRecord) -> Vec<String> {
    let mut warnings = Vec::new();
    if !record.ignored.is_empty() {
        warnings.push(format!("left out of verification, because they are protected: {}", record.ignored.join(", ")));
    }
    if !record.skipped.is_empty() {
        warnings.push(format!(
            "left out of verification, because they are links, special files or too large, or have unusable paths: {}",
            record.skipped.join(", ")
        ));
    }
    if record.unlisted > 0 {
        warnings.push(format!("{} more new files were left out of verification", record.unlisted));
    }
    warnings
}

/// Derives the seed of an attempt's sampling from the run's seed, the sample's id and the attempt's number alone. The
/// seed is below 2^31, which every provider accepts.
fn attempt_seed(seed: u64, sample: &str, attempt: u32) -> u64 {
    use sha2::{Digest, Sha256};
    let digest = Sha256::new()
        .chain_update(b"attempt\0")
        .chain_update(seed.to_le_bytes())
        .chain_update(attempt.to_le_bytes())
        .chain_update(sample.as_bytes())
        .finalize();
    u64::from(u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]) >> 1)
}
