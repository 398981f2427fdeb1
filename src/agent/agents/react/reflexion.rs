//! `react:reflexion=K`: up to K tries within one attempt (Shinn et al., 2023). Each try gets 1/K of the budget. After a
//! failed try the model writes a plan based on that try, and the plan becomes part of the next try's task.
//!
//! The agent does not learn whether its results are right. A try counts as failed if it gave no answer, if the answer
//! lacks an experiment, or if an experiment gives no result when run again; the agent could have noticed all of this by
//! itself. Files stay as the previous try left them.

use super::transcript;
use crate::agent::experiment;
use crate::agent::prompts::dynamic;
use crate::agent::tools::{ToolFailure, ask};
use crate::agent::{AttemptEnd, Context, End, Replication, Task};
use crate::model::{Message, Role};
use crate::score::parse_answer;

/// Returns why a try failed; `None` if there is no sign of failure. An error ends the attempt.
pub async fn failed(ended: &AttemptEnd, task: &Task, context: &mut Context<'_>) -> Result<Option<String>, AttemptEnd> {
    let Some(answer) = context.answer.as_deref().filter(|_| ended.end == End::Answered) else {
        let why = match ended.end {
            End::StepLimit | End::TimeLimit | End::CostLimit | End::TokenLimit => ended.end.used_up(),
            End::FormatErrors => "too many replies contained no call that could be run",
            _ => ended.detail.as_deref().unwrap_or("it stopped"),
        };
        return Ok(Some(format!("no results were reported: {why}")));
    };
    let reported = match parse_answer(answer) {
        Ok(reported) => reported,
        Err(what) => return Ok(Some(format!("the report could not be read: {what}"))),
    };
    let has = |key: &str| reported.keys().any(|reported| reported.trim().eq_ignore_ascii_case(key));
    // Only tasks of masked replication have experiments that can be run again here. In other tasks, assume no failure.
    let Some(task) = task.part::<Replication>() else { return Ok(None) };
    let missing: Vec<&str> = task.experiments.iter().map(|it| it.key.as_str()).filter(|key| !has(key)).collect();
    if !missing.is_empty() {
        return Ok(Some(format!("nothing was reported for {}", missing.join(", "))));
    }
    let outcome = experiment::run_all(&task.checks(), context, false).await;
    match outcome.stopped {
        Some(stopped) if matches!(stopped.end, End::SandboxLost | End::SandboxKilled) => return Err(stopped),
        // If the remaining time is too short for the experiments, assume no failure.
        Some(_) => return Ok(None),
        None => {}
    }
    let failures: Vec<String> = outcome
        .failures
        .iter()
        .map(|failure| {
            let last = failure.stderr.lines().last().unwrap_or_default();
            format!("{}: {}{}{last}", failure.key, failure.what, if last.is_empty() { "" } else { ", " })
        })
        .collect();
    Ok((!failures.is_empty())
        .then(|| format!("experiments gave no result when they were run again: {}", failures.join("; "))))
}

/// Asks the model for a plan for the next try; returns `None` if no call is allowed or the reply is empty. An error
/// ends the attempt.
pub async fn plan(why: &str, messages: &[Message], context: &mut Context<'_>) -> Result<Option<String>, AttemptEnd> {
    let question = Message::new(Role::User, dynamic::reflect(why, &transcript::render(messages)));
    match ask("reflexion", vec![question], context).await {
        Ok(reply) => Ok(Some(reply.text.trim().to_owned()).filter(|plan| !plan.is_empty())),
        Err(ToolFailure::Refused(_) | ToolFailure::Arguments(_)) => Ok(None),
        Err(ToolFailure::Lost(loss)) => Err(loss.into()),
        Err(ToolFailure::Model(error)) => Err(AttemptEnd::from(&error)),
    }
}
