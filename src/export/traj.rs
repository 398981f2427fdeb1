//! Trajectories as SWE-agent's `.traj` files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::atif::{arguments, end};
use super::names::file_name;
use super::{AgentAction, ExportSource, Turn, turns};
use crate::agent::{End, TimedEvent, conversation};
use crate::error::{Error, Result};
use crate::files::WholeFile;
use crate::model::Role;
use crate::run::AttemptRecord;

/// Writes one file per attempt into the folder `path`, as `<agent>/<sample>.<attempt>.traj`, or in `<agent>__<model>`
/// if an agent has several models.
///
/// # Errors
/// Kind `Store` if a record is gone; kind `Machine` if a file cannot be written.
pub fn export(source: &ExportSource, path: &Path) -> Result<Vec<PathBuf>> {
    source.require_attempts()?;
    let names = source.names();
    let mut written = Vec::new();
    for brief in source.attempts() {
        let record = source.whole(brief)?;
        let lines = source.lines(&record);
        let text = serde_json::to_vec_pretty(&file(source, &record, &lines))
            .map_err(|error| Error::internal("failed to write a trajectory").because(error))?;
        let name = format!("{}.{}.traj", file_name(&record.sample), record.attempt);
        let path = path.join(names.get(&record.agent, record.model.as_deref())).join(name);
        written.push(WholeFile::create_with_folders(&path)?.filled(&text)?.finish()?);
    }
    Ok(written)
}

fn file(source: &ExportSource, record: &AttemptRecord, lines: &[TimedEvent]) -> Value {
    let turns = turns(lines);
    let steps: Vec<Value> = turns
        .iter()
        .filter_map(|turn| match turn {
            Turn::Acted(act) => Some(step(act)),
            Turn::Said(_) => None,
        })
        .collect();
    let api_calls: u32 = turns
        .iter()
        .map(|turn| match turn {
            Turn::Acted(act) => act.model_calls,
            Turn::Said(_) => 0,
        })
        .sum();
    let submission = source.patch(record);
    let mut history = history(lines);
    if history.is_empty() {
        // SWE-agent's viewer reads the last message of `history`, but an agent without a model has no messages.
        let content = format!("No model was asked: {}.", end(record));
        history.push(json!({ "role": "user", "content": content, "agent": "main", "message_type": "observation" }));
    }
    json!({
        "trajectory": steps,
        "history": history,
        "info": {
            "model_stats": {
                "instance_cost": record.cost,
                "tokens_sent": record.usage.input,
                "tokens_received": record.usage.output,
                "api_calls": api_calls,
            },
            "exit_status": exit_status(record.end, submission.is_some()),
            "submission": submission,
            "answer": record.answer,
            "pass": record.pass,
        },
        "replay_config": null,
        "environment": record.sample,
    })
}

/// Converts a step to SWE-agent's format. Its field `query` would repeat the whole history in every step, so it is left
/// empty.
fn step(act: &AgentAction<'_>) -> Value {
    let action: Vec<String> =
        act.calls.iter().map(|call| format!("{} {}", call.tool, arguments(call.arguments))).collect();
    let observation: Vec<&str> = act.calls.iter().filter_map(|call| call.observation).collect();
    json!({
        "action": action.join("\n"),
        "observation": observation.join("\n"),
        "response": act.text,
        "thought": act.reasoning.unwrap_or(act.text),
        "state": {},
        "execution_time": act.calls.iter().map(|call| call.seconds).sum::<f64>(),
        "query": [],
        "extra_info": { "model_seconds": act.model_seconds, "cost": act.cost },
    })
}

/// Returns the conversation as the model saw it.
fn history(lines: &[TimedEvent]) -> Vec<Value> {
    let messages = conversation::replay(lines);
    let entries = messages.iter().enumerate().map(|(place, message)| {
        let kind = match message.role {
            Role::System => "system_prompt",
            Role::Assistant => "action",
            Role::User if place < 2 => "user",
            Role::User | Role::Tool => "observation",
        };
        let mut entry =
            json!({ "role": message.role, "content": message.content, "agent": "main", "message_type": kind });
        if !message.tool_calls.is_empty() {
            let calls = message.tool_calls.iter().map(|call| {
                let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
                json!({ "id": call.id, "type": "function", "function": function })
            });
            entry["tool_calls"] = calls.collect();
        }
        if let Some(id) = &message.tool_call_id {
            entry["tool_call_ids"] = json!([id]);
        }
        entry
    });
    entries.collect()
}

/// Returns SWE-agent's name for the way in which an attempt ended. SWE-agent's viewer fails on `submitted` without a
/// submission.
const fn exit_status(end: End, has_submission: bool) -> &'static str {
    match end {
        End::Answered if has_submission => "submitted",
        End::Answered => "submission_missing",
        End::GaveUp => "exit_forfeit",
        End::StepLimit | End::CostLimit => "exit_cost",
        End::TimeLimit => "exit_total_execution_time",
        End::TokenLimit => "exit_context",
        End::FormatErrors => "exit_format",
        End::NeverAsked | End::DiskLimit | End::SandboxKilled => "exit_error",
        End::Refused | End::ModelError | End::ModelDenied => "exit_api",
        End::SandboxLost | End::Cancelled => "exit_environment_error",
    }
}
