//! What an attempt works with: every use of the sandbox goes through here, is cut at the time that is left and
//! charged to the budget.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::account::{Account, Asker, NotAsked, Unanswered};
use super::review::{Asked, Reviewer};
use super::{Budget, Ended, Event, PythonSession, Trajectory, conversation};
use crate::model::{self, Message, Model, Reply, Request, Sampling};
use crate::sandbox::{Command, Entry, Exec, ExecLimits, Exit, Fault, Sandbox, patience};

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(1);

/// What an attempt works with.
pub struct Context<'a> {
    /// Where commands run. Agents use [`Context::exec`] and its siblings, which charge the budget.
    pub sandbox: &'a mut dyn Sandbox,
    /// The model, for agents that need one.
    pub model: Option<&'a dyn Model>,
    /// How the model samples; the seed differs from attempt to attempt. Calls are made with [`Context::next_sampling`].
    pub sampling: Sampling,
    /// What is left.
    pub budget: &'a mut Budget,
    /// The record.
    pub trajectory: &'a mut Trajectory,
    /// Set when the run is being stopped.
    pub cancel: CancellationToken,
    /// What was reported, as the agent wrote it; a later report replaces an earlier one.
    pub answer: Option<String>,
    /// Its Python session, where it has one.
    pub session: PythonSession,
    /// Who looks at its work between rounds, where somebody can.
    pub review: Option<&'a dyn Reviewer>,
    /// The round that it is in, from 0.
    pub round: u32,
    /// Bytes of memory for each process that an agent has outside the sandbox.
    pub memory: u64,
}

impl Context<'_> {
    /// Runs a command for at most `wall` and at most the time that is left, keeping at most `output` bytes of each
    /// stream.
    ///
    /// # Errors
    /// [`Fault::Refused`] when no time is left, and what the sandbox says.
    pub async fn exec(&mut self, command: &Command, wall: Duration, output: usize) -> Result<Exec, Fault> {
        let left = self.time_left()?;
        let wall = wall.min(left);
        let limits = ExecLimits { wall, patience: patience(wall), grace: GRACE, output };
        let begun = Instant::now();
        let exec = self.sandbox.exec(command, &limits).await;
        let took = match &exec {
            // Two clocks may differ by a moment; a command that was cut for want of time leaves none.
            Ok(exec) if exec.exit == Exit::TimedOut => exec.own_time().max(wall),
            // As the sandbox has measured it. It goes on while this process is stopped, as by Ctrl-Z, and so does the
            // command.
            Ok(exec) => exec.own_time(),
            Err(_) => begun.elapsed(),
        };
        self.budget.charge_time(took);
        exec
    }

    /// Reads a regular file of at most `limit` bytes.
    ///
    /// # Errors
    /// [`Fault::Refused`] when no time is left, and what the sandbox says.
    pub async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
        let (begun, left) = (Instant::now(), self.time_left()?);
        let bytes = timeout(left, self.sandbox.read(path, limit)).await;
        self.cut(begun, left, bytes)
    }

    /// Creates or replaces a regular file, in part when the time that is left is too short.
    ///
    /// # Errors
    /// [`Fault::Refused`] when no time is left, and what the sandbox says.
    pub async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let (begun, left) = (Instant::now(), self.time_left()?);
        let written = timeout(left, self.sandbox.write(path, bytes)).await;
        self.cut(begun, left, written)
    }

    /// A folder's entries.
    ///
    /// # Errors
    /// [`Fault::Refused`] when no time is left, and what the sandbox says.
    pub async fn list(&mut self, path: &Path) -> Result<Vec<Entry>, Fault> {
        let (begun, left) = (Instant::now(), self.time_left()?);
        let entries = timeout(left, self.sandbox.list(path)).await;
        self.cut(begun, left, entries)
    }

    /// How the model samples in the next call. Each call has a seed of its own: with the same one, a server draws the
    /// same numbers again, and a model that is in a loop stays in it at any temperature.
    #[must_use]
    pub fn next_sampling(&self) -> Sampling {
        let seed = self.sampling.seed.map(|seed| seed.wrapping_add(u64::from(self.budget.calls)));
        Sampling { seed, ..self.sampling.clone() }
    }

    /// Counts and records what was wrong with a reply.
    pub fn count_format_error(&mut self, what: &str) {
        self.budget.format_errors += 1;
        self.trajectory.push(&Event::FormatError { step: self.budget.steps, what: what.to_owned() });
    }

    /// Records an event and shows the model what it is to see of it.
    pub fn tell(&mut self, messages: &mut Vec<Message>, event: &Event) {
        conversation::take(messages, event);
        self.trajectory.push(event);
    }

    /// Whether the agent may ask the model for another step.
    pub(crate) fn may_ask(&mut self) -> Result<(), NotAsked> {
        Account { budget: self.budget, trajectory: self.trajectory, asker: Asker::Agent, seed: None }.allow()
    }

    /// Asks the model within the budget, charges and records the call. The reply becomes part of the request's
    /// conversation where it is the agent's own.
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

    /// Ends a round: what the agent is told of its work, for the next one. Nothing where there is no further round: none is
    /// asked for or left, the work passes, or the budget is used up. What was reported stays reported.
    pub(crate) async fn feedback(&mut self, feedback: Option<u32>, rounds: u32) -> Result<Option<String>, Ended> {
        let (Some(level), Some(reviewer)) = (feedback, self.review) else { return Ok(None) };
        if self.round >= rounds || self.budget.exceeded().is_some() {
            return Ok(None);
        }
        let (round, steps, cost) = (self.round, self.budget.steps, self.budget.cost);
        let asked = Asked { level, round, steps, cost };
        self.round += 1;
        reviewer.review(asked, self.answer.as_deref(), self.sandbox, self.trajectory).await
    }

    /// Charges the time that something took that was cut when none was left. A sandbox that was stopped in the midst
    /// of something may not be asked again, and is not: without time, everything is refused here.
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
