//! Runs experiments for agents that follow a fixed procedure. The runs are charged to the budget and recorded, and
//! their results are read by the manifest's rules.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::measure::{CheckRunner, MOST_OUTPUT, NoResult, measure, removal, wall};
use super::tools::{show_exec, show_exit};
use super::trajectory::seconds;
use super::{AttemptEnd, Check, Context, End, Event};
use crate::sandbox::{Command, Exec, Exit, Fault};

/// An experiment without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentFailure {
    /// The experiment's key in the answer.
    pub key: String,
    /// Why there is no result, as an error message.
    pub what: String,
    /// Standard error of the experiment's command.
    pub stderr: String,
}

/// The outcome of several experiments.
#[derive(Debug, Default)]
pub struct ReplicationOutcome {
    /// Results by key.
    pub answer: Map<String, Value>,
    /// Failed experiments, which have no result.
    pub failures: Vec<ExperimentFailure>,
    /// Why not all experiments were run; `None` if all were run.
    pub stopped: Option<AttemptEnd>,
}

/// Runs experiments one after another until the budget is used up. If `count` is set, each experiment counts as a step.
pub async fn run_all(checks: &[Check], context: &mut Context<'_>, count: bool) -> ReplicationOutcome {
    let mut outcome = ReplicationOutcome::default();
    for experiment in checks {
        let limit = if count { context.budget.exceeded() } else { None };
        let late = context.budget.time_left().is_zero().then_some(End::TimeLimit);
        if let Some(end) = limit.or(late) {
            outcome.stopped = Some(end.because(format!("before {}", experiment.key)));
            return outcome;
        }
        if count {
            context.budget.charge_step();
        }
        let (what, stderr) = match run(experiment, context).await {
            Ok((Ok(result), _)) => {
                outcome.answer.insert(experiment.key.clone(), result);
                continue;
            }
            Err(Fault::Lost(loss)) => {
                outcome.stopped = Some(loss.into());
                return outcome;
            }
            Ok((Err(what), stderr)) => (what, stderr),
            Err(Fault::Refused(what)) => (what, String::new()),
        };
        outcome.failures.push(ExperimentFailure { key: experiment.key.clone(), what, stderr });
    }
    outcome
}

/// Runs all experiments and reports their results. Used by agents whose only other work is to write code into files.
pub async fn report(checks: &[Check], context: &mut Context<'_>) -> AttemptEnd {
    let outcome = run_all(checks, context, true).await;
    if let Some(stopped) = outcome.stopped {
        return stopped;
    }
    answer(outcome.answer, context);
    let failures: Vec<String> = outcome.failures.iter().map(|it| format!("{}: {}", it.key, it.what)).collect();
    AttemptEnd { detail: (!failures.is_empty()).then(|| failures.join("; ")), ..End::Answered.into() }
}

/// Reports results as the agent's answer.
pub fn answer(results: Map<String, Value>, context: &mut Context<'_>) {
    answer_raw(Value::Object(results).to_string(), context);
}

/// Reports a text as the agent's answer.
pub(crate) fn answer_raw(raw: String, context: &mut Context<'_>) {
    context.trajectory.push(&Event::Answer { raw: raw.clone() });
    context.answer = Some(raw);
}

/// Writes files into the workspace. An error ends the attempt.
pub async fn write_all(files: &[(PathBuf, Vec<u8>)], context: &mut Context<'_>) -> Result<(), AttemptEnd> {
    for (path, bytes) in files {
        match context.write(path, bytes).await {
            Ok(()) => {}
            Err(Fault::Refused(what)) => {
                return Err(End::GaveUp.because(format!("failed to write `{}`: {what}", path.display())));
            }
            Err(lost) => return Err(lost.into()),
        }
    }
    Ok(())
}

/// The agent's sandbox for running a check. Each use is charged to the budget, and the check's command is recorded.
struct BudgetedSandbox<'c, 'a> {
    context: &'c mut Context<'a>,
    check: &'c Check,
    /// Tool time that the attempt had used before this check began.
    before: Duration,
}

#[async_trait]
impl CheckRunner for BudgetedSandbox<'_, '_> {
    async fn exec(&mut self, command: &Command, wall: Duration) -> Result<Exec, Fault> {
        let exec = self.context.exec(command, wall, MOST_OUTPUT).await?;
        self.context.trajectory.push(&Event::Observation {
            step: self.context.budget.steps,
            call_id: None,
            tool: "experiment".to_owned(),
            arguments: json!({ "experiment": self.check.id, "command": self.check.command }),
            content: show_exec(&exec),
            seconds: seconds(self.context.budget.tool_time.saturating_sub(self.before)),
        });
        Ok(exec)
    }

    async fn read(&mut self, path: &Path) -> Result<Vec<u8>, Fault> {
        self.context.read(path, MOST_OUTPUT as u64).await
    }

    /// Removes a file if it exists. Usually it does not, because most agents run an experiment only once. Reading the
    /// file first is cheaper than running a command to remove it.
    async fn remove(&mut self, path: &Path) -> Result<(), Fault> {
        if self.read(path).await.is_ok() {
            self.context.exec(&removal(path), wall(self.check), MOST_OUTPUT).await?;
        }
        Ok(())
    }
}

/// Runs an experiment. Returns its result, or the reason why it has no result, together with its standard error.
async fn run(check: &Check, context: &mut Context<'_>) -> Result<(Result<Value, String>, String), Fault> {
    let before = context.budget.tool_time;
    let measured = measure(&mut BudgetedSandbox { context, check, before }, check).await?;
    let stderr = String::from_utf8_lossy(&measured.exec.stderr).trim_end().to_owned();
    let result = measured.result.map_err(|why| match why {
        NoResult::Ended(Exit::TimedOut) => "stopped at its time limit".to_owned(),
        NoResult::Ended(exit) => show_exit(exit),
        NoResult::File(what) | NoResult::Misfit(what) => what,
    });
    Ok((result, stderr))
}
