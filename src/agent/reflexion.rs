//! `--reflexion K`: up to K tries within one attempt (Shinn et al., 2023). Each has a K-th of the budget; after one that
//! failed the model writes a plan from what it did, which becomes part of the next try's task.
//!
//! Nobody tells the agent whether its results are right. A try has failed when it gave no answer, when an experiment has no
//! result in it, or when an experiment that is run again gives none: what the agent itself could have noticed. Files stay as
//! the try before left them.

use super::experiment;
use super::prompts::dynamic;
use super::tools::{Failure, ask};
use super::{Context, End, Ended, Replication, Task, transcript};
use crate::model::{Message, Role};
use crate::score::parse_answer;

/// Why a try has failed, a fragment; `None` when nothing speaks against it. The error ends the attempt.
pub async fn failed(ended: &Ended, task: &Task, context: &mut Context<'_>) -> Result<Option<String>, Ended> {
    let Some(answer) = context.answer.as_deref().filter(|_| ended.end == End::Answered) else {
        let why = match ended.end {
            End::StepLimit | End::TimeLimit | End::CostLimit | End::TokenLimit => ended.end.used_up(),
            End::FormatErrors => "too many replies could not be acted upon",
            _ => ended.detail.as_deref().unwrap_or("it stopped"),
        };
        return Ok(Some(format!("no results were reported: {why}")));
    };
    let reported = match parse_answer(answer) {
        Ok(reported) => reported,
        Err(what) => return Ok(Some(format!("the report could not be read: {what}"))),
    };
    let has = |key: &str| reported.keys().any(|reported| reported.trim().eq_ignore_ascii_case(key));
    // Of other tasks nothing is known that could be run again.
    let Some(task) = task.part::<Replication>() else { return Ok(None) };
    let missing: Vec<&str> = task.experiments.iter().map(|it| it.key.as_str()).filter(|key| !has(key)).collect();
    if !missing.is_empty() {
        return Ok(Some(format!("nothing was reported for {}", missing.join(", "))));
    }
    let outcome = experiment::run_all(&task.checks(), context, false).await;
    match outcome.stopped {
        Some(stopped) if matches!(stopped.end, End::SandboxLost | End::SandboxKilled) => return Err(stopped),
        // Without the time to run them nothing more is known.
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
    Ok((!failures.is_empty()).then(|| format!("run again, experiments gave no result: {}", failures.join("; "))))
}

/// The plan for the next try; `None` where the model may not be asked or has nothing to say. The error ends the attempt.
pub async fn plan(why: &str, messages: &[Message], context: &mut Context<'_>) -> Result<Option<String>, Ended> {
    let question = Message::new(Role::User, dynamic::reflect(why, &transcript::of(messages)));
    match ask("reflexion", vec![question], context).await {
        Ok(plan) => Ok(Some(plan.trim().to_owned()).filter(|plan| !plan.is_empty())),
        Err(Failure::Refused(_) | Failure::Arguments(_)) => Ok(None),
        Err(Failure::Lost(loss)) => Err(loss.into()),
        Err(Failure::Model(error)) => Err(Ended::from(&error)),
    }
}
