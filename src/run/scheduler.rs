//! Runs attempts in parallel, stores finished ones, retries those lost to infrastructure, and stops when asked to.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::AttemptRecord;
use super::attempt::{AttemptJob, RunContext};
use super::event::{Observer, RunEvent};
use crate::agent::{End, LiveUsage};
use crate::error::{Error, FailureKind, Result};
use crate::sample::Sample;
use crate::sandbox::EvidenceKind;

/// Tolerance for rounding errors in sums of dollars.
pub(super) const ROUNDING: f64 = 1e-9;

/// How a session of a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutcome {
    /// Every attempt has a verdict.
    Complete,
    /// This process has nothing left to start, but other processes are still making this many attempts.
    Left(usize),
    /// Some attempts were lost to infrastructure after all tries; one reason for each.
    Lost(Vec<String>),
    /// Stopped by the user.
    Interrupted,
    /// Stopped by the user before the first attempt, while papers were being prepared.
    NotStarted,
    /// The next attempt could exceed the run's maximum cost.
    CostLimit,
}

impl RunOutcome {
    /// Name used in machine-readable output.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Left(_) => "left",
            Self::Lost(_) => "lost",
            Self::Interrupted | Self::NotStarted => "interrupted",
            Self::CostLimit => "cost_limit",
        }
    }
}

/// Number of consecutive attempts without an answer from the provider after which the provider counts as down. More are
/// needed if more attempts run in parallel, because a short failure of the provider ends all of them at once.
const LEAST_UNANSWERED: usize = 3;

/// Beginning of the details about an attempt's end if the conversation was too long for the model.
const TOO_LONG: &str = "the conversation is too long";

/// Number of attempts by one agent after which the run may stop. The run stops if the provider refused all of them with
/// the same error, because the provider then refuses everything. The run also stops if none of them asked the model,
/// because the agent is then broken.
const LEAST_REFUSED: usize = 5;

/// Number of consecutive tries by one agent that could not be started, for the same reason, after which the run stops.
/// More are needed if more attempts run in parallel, because a short failure of the machine ends all of them at once.
const LEAST_NOT_STARTED: usize = 5;

/// The warning that is shown when this process runs no attempt and waits for work or money that other processes hold.
const WAITING: &str = "no attempt is left for this process: waiting for attempts that other processes are making, or \
                       for money that they may leave";

/// Makes single attempts. The scheduler uses agents, samples and sandboxes only through this trait.
pub trait AttemptRunner: Send + Sync + 'static {
    /// The label of the agent that makes this attempt.
    fn label(&self, job: &AttemptJob) -> &str;
    /// The most dollars that this attempt may spend.
    fn budget(&self, job: &AttemptJob) -> f64;
    /// Makes an attempt. An attempt lost to infrastructure also has a record.
    ///
    /// While the attempt runs, updates `so_far` with its steps and cost.
    fn attempt(
        &self,
        job: &AttemptJob,
        so_far: &Arc<LiveUsage>,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<AttemptRecord>> + Send;
}

impl AttemptRunner for RunContext {
    fn label(&self, job: &AttemptJob) -> &str {
        &self.agents[job.agent].label
    }

    fn budget(&self, job: &AttemptJob) -> f64 {
        if self.agents[job.agent].agent.needs_model() { self.configuration.limits.cost } else { 0.0 }
    }

    async fn attempt(
        &self,
        job: &AttemptJob,
        so_far: &Arc<LiveUsage>,
        cancel: &CancellationToken,
    ) -> Result<AttemptRecord> {
        self.make(job, so_far, cancel).await
    }
}

/// Limits of scheduling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SchedulingLimits {
    /// Maximum number of parallel attempts.
    pub jobs: usize,
    /// Maximum tries per attempt when infrastructure fails.
    pub tries: u32,
    /// Maximum dollars spent by the whole run.
    pub max_cost: Option<f64>,
    /// Dollars spent in earlier sessions.
    pub spent: f64,
}

/// Hands out the attempts, decides whether the run can afford them, and stores their records.
pub trait AttemptQueue {
    /// The next attempt to make.
    ///
    /// # Errors
    /// Any error that stops the run.
    fn next(&mut self) -> Result<NextJob>;
    /// Whether `more` dollars may be spent in addition to the `committed` dollars, which this process has spent or may
    /// still spend.
    ///
    /// # Errors
    /// Same as [`next`](Self::next).
    fn afford(&mut self, committed: f64, more: f64) -> Result<Affordability>;
    /// Writes the records of finished attempts to disk before they are reported. If another process has taken over an
    /// attempt meanwhile, the record is reduced to its cost.
    ///
    /// # Errors
    /// If the records cannot be stored.
    fn keep(&mut self, ended: &mut [(AttemptJob, AttemptRecord)]) -> Result<()>;
    /// Releases the money that this process has reserved but not spent, so that other processes can use it. Called
    /// while this process runs no attempt but may start more later.
    ///
    /// # Errors
    /// Same as [`next`](Self::next).
    fn rest(&mut self, _spent: f64) -> Result<()> {
        Ok(())
    }
    /// Reasons why other processes gave up attempts after failures of the infrastructure, one for each attempt.
    fn lost(&self) -> Vec<String> {
        Vec::new()
    }
    /// Number of unfinished attempts that this process leaves to other processes.
    fn left(&self) -> usize {
        0
    }
    /// How long to wait before the next call of [`next`](Self::next), if attempts or money may become available later.
    fn pause(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// The next thing to do.
#[derive(Debug)]
pub enum NextJob {
    /// Make this attempt.
    Job(AttemptJob),
    /// No attempt is available now. One may become available later, if another process does not complete it.
    Later,
    /// Nothing is left.
    None,
}

/// Whether there is money for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affordability {
    /// The money suffices.
    Fits,
    /// Other processes have reserved the money. If they spend less, it may suffice later.
    Later,
    /// Too little money is left for another attempt, unless the attempts that this process is running spend less than
    /// is reserved for them.
    Short,
}

/// The work of a run that is not shared with other processes.
struct LocalQueue<K> {
    queue: VecDeque<AttemptJob>,
    max_cost: Option<f64>,
    keep: K,
}

impl<K: FnMut(&[&AttemptRecord]) -> Result<()>> AttemptQueue for LocalQueue<K> {
    fn next(&mut self) -> Result<NextJob> {
        Ok(self.queue.pop_front().map_or(NextJob::None, NextJob::Job))
    }

    fn afford(&mut self, committed: f64, more: f64) -> Result<Affordability> {
        let fits = self.max_cost.is_none_or(|most| committed + more <= most + ROUNDING);
        Ok(if fits { Affordability::Fits } else { Affordability::Short })
    }

    fn keep(&mut self, ended: &mut [(AttemptJob, AttemptRecord)]) -> Result<()> {
        (self.keep)(&ended.iter().map(|(_, record)| record).collect::<Vec<_>>())
    }
}

/// Plans the attempts of a run in order: every sample once before any sample twice.
#[must_use]
pub fn plan(samples: &[Sample], agents: usize, k: u32) -> Vec<AttemptJob> {
    let mut jobs = Vec::with_capacity(samples.len() * agents * k as usize);
    for attempt in 0..k {
        for sample in samples {
            for agent in 0..agents {
                jobs.push(AttemptJob { agent, sample: sample.clone(), attempt });
            }
        }
    }
    jobs
}

/// Leaves out jobs that already have a record which was not lost to infrastructure.
#[must_use]
pub fn unfinished(attempts: &impl AttemptRunner, jobs: Vec<AttemptJob>, records: &[AttemptRecord]) -> Vec<AttemptJob> {
    let done: HashSet<(&str, &str, u32)> = records
        .iter()
        .filter(|record| !record.is_infrastructure())
        .map(|record| (record.agent.as_str(), record.sample.as_str(), record.attempt))
        .collect();
    jobs.into_iter().filter(|job| !done.contains(&(attempts.label(job), job.sample.id(), job.attempt))).collect()
}

/// Runs the jobs. `keep` writes the records of finished attempts to disk before they are reported.
///
/// # Errors
/// Same as [`execute_part`].
pub async fn execute(
    attempts: Arc<impl AttemptRunner>,
    jobs: Vec<AttemptJob>,
    terms: SchedulingLimits,
    keep: impl FnMut(&[&AttemptRecord]) -> Result<()>,
    observer: &dyn Observer,
    cancel: &CancellationToken,
) -> Result<RunOutcome> {
    let mut work = LocalQueue { queue: jobs.into(), max_cost: terms.max_cost, keep };
    execute_part(attempts, &mut work, terms, observer, cancel).await
}

/// Makes all attempts that `work` hands out.
///
/// # Errors
/// The first error of an attempt or of `work`; kind `Model` if no attempt can use the model; kind `Provider` if the
/// provider does not respond or always refuses; kind `Machine` if an agent never asks the model, or cannot be started.
/// The run then stops; finished attempts are stored, including those that finish while it stops.
pub async fn execute_part(
    attempts: Arc<impl AttemptRunner>,
    work: &mut impl AttemptQueue,
    terms: SchedulingLimits,
    observer: &dyn Observer,
    cancel: &CancellationToken,
) -> Result<RunOutcome> {
    let mut scheduler = Scheduler {
        attempts,
        terms,
        work,
        next: None,
        again: VecDeque::new(),
        may_come: false,
        has_waited: false,
        running: JoinSet::new(),
        reserved: 0.0,
        tries: HashMap::new(),
        lost: Vec::new(),
        over_cost: false,
        unanswered: 0,
        refused: HashMap::new(),
        not_started: HashMap::new(),
        failure: None,
        observer,
        cancel,
    };
    loop {
        scheduler.start_what_fits();
        let first = if scheduler.may_come {
            let pause = scheduler.work.pause();
            let is_idle = scheduler.running.is_empty();
            if is_idle {
                let rested = scheduler.work.rest(scheduler.terms.spent);
                rested.unwrap_or_else(|error| scheduler.fail(error));
                if !std::mem::replace(&mut scheduler.has_waited, true) {
                    observer.on(RunEvent::Warning(WAITING.to_owned()));
                }
            }
            tokio::select! {
                Some(first) = scheduler.running.join_next() => first,
                () = tokio::time::sleep(pause) => continue,
                () = cancel.cancelled(), if is_idle => break,
            }
        } else {
            let Some(first) = scheduler.running.join_next().await else { break };
            first
        };
        // Also take all other attempts that have ended by now, so that one flush stores all their records.
        let others: Vec<_> = std::iter::from_fn(|| scheduler.running.try_join_next()).collect();
        let settled = std::iter::once(first).chain(others).filter_map(|ended| scheduler.finish_attempt(ended));
        let mut ended: Vec<_> = settled.collect();
        match scheduler.work.keep(&mut ended) {
            Ok(()) => ended.into_iter().for_each(|(job, record)| scheduler.conclude(job, record)),
            Err(error) => scheduler.fail(error),
        }
    }
    scheduler.outcome()
}

/// State of one call of [`execute_part`].
struct Scheduler<'a, A, W> {
    attempts: Arc<A>,
    terms: SchedulingLimits,
    work: &'a mut W,
    /// An attempt that waits for money.
    next: Option<AttemptJob>,
    /// Lost attempts that are tried again once no other attempts are left to start.
    again: VecDeque<AttemptJob>,
    /// Whether this process may later get work or money that other processes hold now.
    may_come: bool,
    /// Whether the user has been told that this process is waiting.
    has_waited: bool,
    running: JoinSet<(AttemptJob, Result<AttemptRecord>)>,
    /// Dollars that running attempts may still spend.
    reserved: f64,
    /// Number of lost tries of each attempt.
    tries: HashMap<(usize, String, u32), u32>,
    lost: Vec<String>,
    /// Whether the next attempt had to wait because it could exceed the run's maximum cost.
    over_cost: bool,
    /// Number of consecutive attempts that the provider did not answer.
    unanswered: usize,
    /// For each agent: the refusal with which all attempts of the agent have ended so far, and the number of these
    /// attempts. If the attempts failed before they asked the model, the text is the first attempt's failure. `None`
    /// once an attempt of the agent has ended in any other way.
    refused: HashMap<usize, Option<(String, usize)>>,
    /// For each agent: the reason why its last try could not be started, and the number of consecutive tries with this
    /// reason. Missing if the last try was started.
    not_started: HashMap<usize, (String, usize)>,
    failure: Option<Error>,
    observer: &'a dyn Observer,
    cancel: &'a CancellationToken,
}

impl<A: AttemptRunner, W: AttemptQueue> Scheduler<'_, A, W> {
    /// Starts attempts while fewer than the maximum number run and the full budgets of all running attempts fit into
    /// the maximum cost.
    fn start_what_fits(&mut self) {
        self.may_come = false;
        while self.running.len() < self.terms.jobs.max(1) && !self.cancel.is_cancelled() && self.failure.is_none() {
            let Some(job) = self.next_job() else { return };
            let budget = self.attempts.budget(&job);
            let money = match self.work.afford(self.terms.spent + self.reserved, budget) {
                Ok(money) => money,
                Err(error) => return self.fail(error),
            };
            self.over_cost = money != Affordability::Fits;
            if self.over_cost {
                self.may_come = money == Affordability::Later;
                self.next = Some(job);
                return;
            }
            self.reserved += budget;
            let so_far = Arc::new(LiveUsage::default());
            self.observer.on(RunEvent::Started {
                agent: self.attempts.label(&job).to_owned(),
                sample: job.sample.id().to_owned(),
                attempt: job.attempt,
                so_far: Arc::clone(&so_far),
            });
            let (attempts, cancel) = (self.attempts.clone(), self.cancel.clone());
            self.running.spawn(async move {
                let record = attempts.attempt(&job, &so_far, &cancel).await;
                (job, record)
            });
        }
    }

    /// Returns the next attempt: one that waits for money, else a new one, else a lost one to try again.
    fn next_job(&mut self) -> Option<AttemptJob> {
        if let Some(job) = self.next.take() {
            return Some(job);
        }
        match self.work.next() {
            Ok(NextJob::Job(job)) => Some(job),
            Ok(next) => {
                let job = self.again.pop_front();
                self.may_come = job.is_none() && matches!(next, NextJob::Later);
                job
            }
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// Updates the state after an attempt has ended, and returns the record to store, if any.
    fn finish_attempt(
        &mut self,
        ended: Result<(AttemptJob, Result<AttemptRecord>), JoinError>,
    ) -> Option<(AttemptJob, AttemptRecord)> {
        let (job, record) = match ended {
            Ok((job, record)) => {
                self.reserved -= self.attempts.budget(&job);
                (job, record)
            }
            Err(error) => {
                self.fail(Error::internal("an attempt panicked").because(error));
                return None;
            }
        };
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                self.fail(error);
                return None;
            }
        };
        if record.end != End::Cancelled && record.is_infrastructure() {
            *self.tries.entry((job.agent, record.sample.clone(), job.attempt)).or_default() += 1;
        }
        self.terms.spent += record.cost;
        if record.end.is_fatal() {
            self.fail(Error::new(FailureKind::Model, record.end_detail.clone().unwrap_or_default()));
        }
        self.watch_starts(&job, &record);
        self.watch_provider(&job, &record);
        // A stopped attempt is recorded only if it has cost something or made a step.
        let counts = record.end != End::Cancelled || record.cost > 0.0 || record.steps > 0;
        counts.then_some((job, record))
    }

    /// Stops the run if an agent's attempts repeatedly fail to start for the same reason: because its program cannot be
    /// started, or its sandboxes cannot.
    fn watch_starts(&mut self, job: &AttemptJob, record: &AttemptRecord) {
        if record.end == End::Cancelled {
            return;
        }
        let Some(evidence) = record.evidence.as_ref().filter(|it| it.kind == EvidenceKind::NotStarted) else {
            self.not_started.remove(&job.agent);
            return;
        };
        let last = self.not_started.entry(job.agent).or_default();
        if last.0 != evidence.detail {
            *last = (evidence.detail.clone(), 0);
        }
        last.1 += 1;
        if last.1 >= LEAST_NOT_STARTED.max(self.terms.jobs) {
            let label = self.attempts.label(job);
            let what = format!("{} attempts of `{label}` in a row could not be started: {}", last.1, evidence.detail);
            self.fail(Error::new(FailureKind::Machine, what).hint(
                "mend the agent's program if it is the cause, or else see `autoexperiment doctor`; then `autoexperiment \
                 resume` the run, which tries lost attempts again",
            ));
        }
    }

    /// Stops the run if the provider does not respond, responds to one agent with the same refusal every time, or is
    /// never asked by an agent.
    fn watch_provider(&mut self, job: &AttemptJob, record: &AttemptRecord) {
        if record.model.is_none() || matches!(record.end, End::Cancelled | End::SandboxLost) {
            return;
        }
        let why = record.end_detail.clone().unwrap_or_default();
        if record.end == End::ModelError {
            self.unanswered += 1;
            if self.unanswered >= LEAST_UNANSWERED.max(self.terms.jobs) {
                let what = format!("the provider did not answer {} attempts in a row: {why}", self.unanswered);
                self.fail(Error::new(FailureKind::Provider, what).hint(
                    "see that the provider or server is up, then `autoexperiment resume` the run; lost attempts are tried again",
                ));
            }
            return;
        }
        self.unanswered = 0;
        let so_far = self.refused.entry(job.agent).or_insert_with(|| Some((why.clone(), 0)));
        let Some((first, count)) = so_far else { return };
        // The provider's error for a first prompt that is too long contains the length of the prompt. The length
        // differs between attempts, so compare only the beginning of the text.
        let is_too_long = record.end == End::TokenLimit && record.steps == 0;
        let is_same = *first == why || is_too_long && first.starts_with(TOO_LONG) && why.starts_with(TOO_LONG);
        let never_asked = record.end == End::NeverAsked;
        let is_refused = is_same && (record.end == End::Refused || is_too_long);
        if !never_asked && !is_refused {
            *so_far = None;
            return;
        }
        *count += 1;
        if *count < LEAST_REFUSED {
            return;
        }
        let label = self.attempts.label(job);
        let error = if never_asked {
            let what = format!("`{label}` failed in all {count} attempts so far before it could ask the model: {why}");
            Error::new(FailureKind::Machine, what).hint(
                "these attempts count as failed: mend the agent (its trajectory shows what it printed) and start a new run",
            )
        } else {
            let what = format!("the provider refused all {count} attempts of `{label}` so far: {why}");
            Error::new(FailureKind::Provider, what).hint(
                "change what is asked (model, its context, the setting `protocol`, `--temperature`, `--max-tokens`, `--effort`) and start a new run",
            )
        };
        self.fail(error);
    }

    /// Handles an attempt whose record has been stored: ignores a stopped attempt, queues a lost one that may be tried
    /// again, and reports any other as finished.
    fn conclude(&mut self, job: AttemptJob, record: AttemptRecord) {
        if record.end == End::Cancelled {
            return;
        }
        if record.is_infrastructure() {
            let why = record.end_detail.clone().unwrap_or_default();
            let tried = self.tries.get(&(job.agent, record.sample.clone(), job.attempt)).copied().unwrap_or(0);
            // If the agent had finished and only verification was lost, don't pay for the agent's work again in this
            // session.
            if tried < self.terms.tries && !record.verification_lost && self.failure.is_none() {
                let AttemptRecord { agent, sample, attempt, .. } = record;
                self.observer.on(RunEvent::Retried { agent, sample, attempt, why });
                self.again.push_back(job);
                return;
            }
            self.lost.push(why);
        }
        self.observer.on(RunEvent::Finished(Arc::new(record)));
    }

    /// Keeps the first failure and stops the run; attempts that end later are still stored.
    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        self.cancel.cancel();
    }

    fn outcome(mut self) -> Result<RunOutcome> {
        self.lost.extend(self.work.lost());
        if let Some(error) = self.failure {
            return Err(error);
        }
        Ok(if self.cancel.is_cancelled() {
            RunOutcome::Interrupted
        } else if self.over_cost {
            RunOutcome::CostLimit
        } else if !self.lost.is_empty() {
            RunOutcome::Lost(self.lost)
        } else if self.work.left() > 0 {
            RunOutcome::Left(self.work.left())
        } else {
            RunOutcome::Complete
        })
    }
}

#[cfg(test)]
mod tests;
