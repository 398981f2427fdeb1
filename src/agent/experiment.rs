//! Experiments run by an agent that is a program: within the budget, recorded, their results read by the manifest's rule.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::tools::{show_exec, show_exit};
use super::trajectory::seconds;
use super::{Check, Context, End, Ended, Event};
use crate::sandbox::{Command, Exit, Fault};
use crate::score::read_result;
use crate::suite::ResultRule;

/// Bytes kept of an experiment's stdout and stderr each, and the most that its result file may have.
const OUTPUT: usize = 4 << 20;

/// An experiment that gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its key in the answer.
    pub key: String,
    /// Why, a fragment.
    pub what: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// What came of all experiments.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Results by key.
    pub answer: Map<String, Value>,
    /// Those without one.
    pub failures: Vec<Failure>,
    /// What stopped them before the last, if anything did.
    pub stopped: Option<Ended>,
}

/// Runs all of these, one after another, as far as the budget allows. `count` makes each of them a step.
pub async fn run_all(checks: &[Check], context: &mut Context<'_>, count: bool) -> Outcome {
    let mut outcome = Outcome::default();
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
        outcome.failures.push(Failure { key: experiment.key.clone(), what, stderr });
    }
    outcome
}

/// Runs all experiments and reports what they gave, as agents do that only put code in place.
pub async fn report(checks: &[Check], context: &mut Context<'_>) -> Ended {
    let outcome = run_all(checks, context, true).await;
    if let Some(stopped) = outcome.stopped {
        return stopped;
    }
    answer(outcome.answer, context);
    let failures: Vec<String> = outcome.failures.iter().map(|it| format!("{}: {}", it.key, it.what)).collect();
    Ended { detail: (!failures.is_empty()).then(|| failures.join("; ")), ..End::Answered.into() }
}

/// Reports results.
pub fn answer(results: Map<String, Value>, context: &mut Context<'_>) {
    answer_raw(Value::Object(results).to_string(), context);
}

/// Reports an answer as it is.
pub fn answer_raw(raw: String, context: &mut Context<'_>) {
    context.trajectory.push(&Event::Answer { raw: raw.clone() });
    context.answer = Some(raw);
}

/// Puts files in place. The error ends the attempt.
pub async fn write_all(files: &[(PathBuf, Vec<u8>)], context: &mut Context<'_>) -> Result<(), Ended> {
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

/// Runs an experiment and reads its result by the manifest's rule. An old result file is removed first. The inner error
/// says why there is none; the second part is what it wrote to standard error.
async fn run(experiment: &Check, context: &mut Context<'_>) -> Result<(Result<Value, String>, String), Fault> {
    let wall = Duration::try_from_secs_f64(experiment.time_limit).unwrap_or(Duration::MAX);
    let before = context.budget.tool_time;
    if let ResultRule::JsonFile(path) = &experiment.result
        && context.read(Path::new(path), OUTPUT as u64).await.is_ok()
    {
        let argv = vec!["rm".into(), "-rf".into(), "--".into(), path.into()];
        context.exec(&Command { argv, ..Command::default() }, wall, OUTPUT).await?;
    }
    let exec = context.exec(&Command::shell(&experiment.command), wall, OUTPUT).await?;
    context.trajectory.push(&Event::Observation {
        step: context.budget.steps,
        call_id: None,
        tool: "experiment".to_owned(),
        arguments: json!({ "experiment": experiment.id, "command": experiment.command }),
        content: show_exec(&exec),
        seconds: seconds(context.budget.tool_time.saturating_sub(before)),
    });
    let stderr = String::from_utf8_lossy(&exec.stderr).trim_end().to_owned();
    if !exec.success() {
        let what = match exec.exit {
            Exit::TimedOut => "stopped at its time limit".to_owned(),
            other => show_exit(other),
        };
        return Ok((Err(what), stderr));
    }
    let file = match &experiment.result {
        ResultRule::JsonFile(path) => match context.read(Path::new(path), OUTPUT as u64).await {
            Ok(bytes) => Some(bytes),
            Err(Fault::Refused(what)) => return Ok((Err(what), stderr)),
            Err(lost) => return Err(lost),
        },
        ResultRule::JsonLine(_) | ResultRule::Regex(_) => None,
    };
    Ok((read_result(&experiment.result, &exec.stdout, file.as_deref()), stderr))
}
