//! The resources of an attempt. Agents use the sandbox through [`Context`], which limits each use to the remaining time
//! and charges the time to the budget.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::review::{ReviewRequest, Reviewer};
use crate::agent::budget::account::{Account, Asker, NotAsked, Unanswered};
use crate::agent::trajectory::conversation;
use crate::agent::{AttemptEnd, Budget, Event, PythonSession, Trajectory};
use crate::model::{self, Message, Model, Reply, Request, Sampling};
use crate::sandbox::{Command, Exec, ExecLimits, Exit, Fault, FolderEntry, Sandbox, patience};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// The resources of an attempt.
pub struct Context<'a> {
    /// The sandbox of the attempt. Agents use it through [`Context::exec`], [`Context::read`], [`Context::write`] and
    /// [`Context::list`], which charge the budget.
    pub sandbox: &'a mut dyn Sandbox,
    /// The model, if the agent needs one.
    pub model: Option<&'a dyn Model>,
    /// Sampling settings of the attempt; the seed differs from the seeds of other attempts. Model calls use
    /// [`Context::next_sampling`].
    pub sampling: Sampling,
    /// The budget.
    pub budget: &'a mut Budget,
    /// The record of the attempt.
    pub trajectory: &'a mut Trajectory,
    /// Cancelled when the run is being stopped.
    pub cancel: CancellationToken,
    /// The agent's answer, verbatim. If the agent reports several answers, this is the last of them.
    pub answer: Option<String>,
    /// The agent's Python session, if one was started.
    pub session: PythonSession,
    /// Evaluates the work between rounds, in runs with feedback.
    pub review: Option<&'a dyn Reviewer>,
    /// Number of the current round, from 0.
    pub round: u32,
    /// Memory limit in bytes of each process of the agent that runs outside the sandbox.
    pub memory: u64,
    /// Time at which a signal last ended a command of the agent, if any did. The signal may be part of stopping the
    /// run, so the run checks this before the attempt is scored.
    pub signalled: Option<Instant>,
}

impl Context<'_> {
    /// Runs a command for at most `wall` and at most the remaining time, keeping at most `output` bytes of each stream.
    ///
    /// # Errors
    /// [`Fault::Refused`] if no time is left, and the errors of the sandbox.
    pub async fn exec(&mut self, command: &Command, wall: Duration, output: usize) -> Result<Exec, Fault> {
        let left = self.time_left()?;
        let wall = wall.min(left);
        let limits = ExecLimits { wall, patience: patience(wall), grace: GRACE, output };
        let begun = Instant::now();
        let exec = self.sandbox.exec(command, &limits).await;
        let took = match &exec {
            // If a command timed out, charge at least its whole limit. Otherwise, a few milliseconds of the attempt's
            // time could remain, because the clocks of sandbox and harness may differ slightly.
            Ok(exec) if exec.exit == Exit::TimedOut => exec.own_time().max(wall),
            // Use the time that the sandbox measured, not the time that passed in this process: if this process is
            // suspended, for example by Ctrl-Z, the command may end meanwhile, and the rest of the suspension is not
            // the command's time.
            Ok(exec) => exec.own_time(),
            Err(_) => begun.elapsed(),
        };
        self.budget.charge_time(took);
        if let Ok(exec) = &exec {
            self.note_exit(exec.exit);
        }
        exec
    }

    /// Notes the time if a signal ended a command or process of the agent.
    pub fn note_exit(&mut self, exit: Exit) {
        if exit.is_by_signal() {
            self.signalled = Some(Instant::now());
        }
    }

    /// Reads a regular file of at most `limit` bytes.
    ///
    /// # Errors
    /// [`Fault::Refused`] if no time is left, and the errors of the sandbox.
    pub async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
        let (begun, left) = (Instant::now(), self.time_left()?);
        let bytes = timeout(left, self.sandbox.read(path, limit)).await;
        self.cut(begun, left, bytes)
    }

    /// Creates or replaces a regular file. If the time runs out, only a part of the file may be written.
    ///
    /// # Errors
    /// [`Fault::Refused`] if no time is left, and the errors of the sandbox.
    pub async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let (begun, left) = (Instant::now(), self.time_left()?);
        let written = timeout(left, self.sandbox.write(path, bytes)).await;
        self.cut(begun, left, written)
    }

    /// Lists the entries of a folder.
    ///
    /// # Errors
    /// [`Fault::Refused`] if no time is left, and the errors of the sandbox.
    pub async fn list(&mut self, path: &Path) -> Result<Vec<FolderEntry>, Fault> {
        let (begun, left) = (Instant::now(), self.time_left()?);
        let entries = timeout(left, self.sandbox.list(path)).await;
        self.cut(begun, left, entries)
    }

    /// Returns the sampling settings of the next call. Each call has a different seed: with equal seeds a server draws
    /// equal random numbers, so a model that repeats itself would continue to do so at any temperature.
    #[must_use]
    pub fn next_sampling(&self) -> Sampling {
        let seed = self.sampling.seed.map(|seed| seed.wrapping_add(u64::from(self.budget.calls)));
        Sampling { seed, ..self.sampling.clone() }
    }

    /// Returns a note for the model that a reply was cut off at a length limit; `None` if it was not. Without the note,
    /// the model writes the same long reply again.
    #[must_use]
    pub(crate) fn cut_note(&self, reply: &Reply) -> Option<String> {
        let most = self.sampling.max_tokens;
        // Name the run's own limit only if the reply reached it. Otherwise the reply was cut at a limit of the server,
        // or because the remaining money bought no more tokens.
        let is_own = |most: &u32| reply.usage.output >= u64::from(*most);
        let limit = most.filter(is_own).map_or("a length limit".to_owned(), |most| format!("{most} tokens"));
        reply.reaches(most).then(|| format!("the reply was cut off at {limit}, so write a shorter one"))
    }

    /// Counts and records a format error of a reply.
    pub fn count_format_error(&mut self, what: &str) {
        self.budget.format_errors += 1;
        self.trajectory.push(&Event::FormatError { step: self.budget.steps, what: what.to_owned() });
    }

    /// Records an event, and applies it to `messages`, the conversation that the model sees.
    pub fn record_message(&mut self, messages: &mut Vec<Message>, event: &Event) {
        conversation::take(messages, event);
        self.trajectory.push(event);
    }

    /// Checks whether the agent may ask the model for another step.
    pub(crate) fn may_ask(&mut self) -> Result<(), NotAsked> {
        Account { budget: self.budget, trajectory: self.trajectory, asker: Asker::Agent, seed: None }.allow()
    }

    /// Calls the model if the budget allows it; charges and records the call. If the agent itself asks, and not one of
    /// its tools, also adds the reply to the request's messages.
    pub(crate) async fn ask(
        &mut self,
        model: &dyn Model,
        asker: Asker<'_>,
        request: &mut Request,
    ) -> Result<Reply, Unanswered> {
        let mut account = Account { budget: self.budget, trajectory: self.trajectory, asker, seed: None };
        let asked = model::ask::ask(model, request, &mut account).await.map_err(Unanswered::NotAsked)?;
        conversation::take(&mut request.messages, &asked.kept);
        asked.outcome.map_err(|failed| Unanswered::Failed(failed.error))
    }

    /// Ends a round and returns the feedback for the next one. Returns `None` if no further round follows: feedback is
    /// off, the rounds are used up, the work passes, or the budget is used up. The agent's last answer then counts.
    pub(crate) async fn feedback(&mut self, feedback: Option<u32>, rounds: u32) -> Result<Option<String>, AttemptEnd> {
        let (Some(level), Some(reviewer)) = (feedback, self.review) else { return Ok(None) };
        if self.round >= rounds || self.budget.exceeded().is_some() {
            return Ok(None);
        }
        let (round, steps, cost) = (self.round, self.budget.steps, self.budget.cost);
        let asked = ReviewRequest { level, round, steps, cost };
        self.round += 1;
        reviewer.review(asked, self.answer.as_deref(), self.sandbox, self.trajectory).await
    }

    /// Charges the time since `begun` for an operation. If the operation was interrupted, charges at least `left`, the
    /// attempt's remaining time, so that further uses of the sandbox are refused: after an interrupted operation, the
    /// state of the sandbox is unknown.
    fn cut<T>(&mut self, begun: Instant, left: Duration, done: Result<Result<T, Fault>, Elapsed>) -> Result<T, Fault> {
        if let Ok(done) = done {
            self.budget.charge_time(begun.elapsed());
            return done;
        }
        self.budget.charge_time(begun.elapsed().max(left));
        Err(Fault::Refused("not finished: the tool time is used up".into()))
    }

    pub(crate) fn no_time_left(&self) -> bool {
        self.budget.time_left().is_zero()
    }

    fn time_left(&self) -> Result<Duration, Fault> {
        let left = self.budget.time_left();
        if left.is_zero() { Err(Fault::Refused("the tool time is used up".into())) } else { Ok(left) }
    }
}
