//! Trajectories in ATIF 1.8, Harbor's format: one step per turn, with the result of each tool call next to the call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::names::file_name;
use super::training::rollouts;
use super::{AgentAction, ExportSource, Turn, turns};
use crate::agent::spec::labelled;
use crate::agent::tools::ToolSet;
use crate::agent::{AgentSpec, Event, TimedEvent};
use crate::error::{Error, Result};
use crate::files::WholeFile;
use crate::model::{Role, Tool};
use crate::run::AttemptRecord;

/// Version of the format.
const VERSION: &str = "ATIF-v1.8";

/// Writes one file per attempt into the folder `path`, as `<agent>/<sample>.<attempt>.json`, or in `<agent>__<model>`
/// if an agent has several models. An attempt whose server returned token ids also has a file with these ids, a list of
/// Harbor's `RolloutDetail`, as `<sample>.<attempt>.rollout_details.json`.
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
        let trajectory = trajectory(source, &record, (&turns(&lines), &tools(&lines)));
        let text = serde_json::to_vec_pretty(&trajectory)
            .map_err(|error| Error::internal("failed to write a trajectory").because(error))?;
        let name = format!("{}.{}.json", file_name(&record.sample), record.attempt);
        let path = path.join(names.get(&record.agent, record.model.as_deref())).join(name);
        written.push(WholeFile::create_with_folders(&path)?.filled(&text)?.finish()?);
        let rollouts = rollouts(&lines);
        if !rollouts.is_empty() {
            let text = serde_json::to_vec(&rollouts)
                .map_err(|error| Error::internal("failed to write token ids").because(error))?;
            let path = path.with_extension("rollout_details.json");
            written.push(WholeFile::create_with_folders(&path)?.filled(&text)?.finish()?);
        }
    }
    Ok(written)
}

/// Returns all tools that the model was offered, in the order in which they were first offered. If several have the
/// same name, returns the last one.
#[must_use]
pub fn tools(lines: &[TimedEvent]) -> Vec<&Tool> {
    let mut found: Vec<&Tool> = Vec::new();
    let offered = lines.iter().filter_map(|line| match &line.event {
        Event::Asked { tools, .. } => tools.as_ref(),
        _ => None,
    });
    for tool in offered.flatten() {
        match found.iter_mut().find(|known| known.name == tool.name) {
            Some(known) => *known = tool,
            None => found.push(tool),
        }
    }
    found
}

/// Converts an attempt's trajectory, from its turns and the tools that the model was offered.
#[must_use]
pub fn trajectory(source: &ExportSource, record: &AttemptRecord, (turns, tools): (&[Turn<'_>], &[&Tool])) -> Value {
    let begun = record.started;
    let at = |seconds: f64| {
        let since = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let moment = begun.saturating_add(since).unwrap_or(begun);
        moment.round(jiff::Unit::Millisecond).unwrap_or(moment).to_string()
    };
    let mut steps: Vec<Map<String, Value>> = turns
        .iter()
        .map(|turn| match turn {
            Turn::Said(spoken) => {
                let source = if spoken.role == Role::System { "system" } else { "user" };
                object(json!({ "timestamp": at(spoken.at), "source": source, "message": spoken.content }))
            }
            Turn::Acted(act) => acted(act, &at(act.at)),
        })
        .collect();
    if steps.is_empty() {
        // A trajectory needs at least one step, but an agent may do nothing.
        let message = format!("The agent did nothing: {}.", end(record));
        steps.push(object(json!({ "timestamp": at(0.0), "source": "system", "message": message })));
    }
    for (number, step) in steps.iter_mut().enumerate() {
        step.insert("step_id".to_owned(), (number + 1).into());
    }
    // For an agent that is part of this program, give the program's version.
    let own = source.run.sessions.last().map_or("unknown", |session| session.version.as_str());
    let external = source.run.sessions.iter().rev().find_map(|session| session.agents.get(&record.agent));
    let version = external.map_or(own, String::as_str);
    let mut agent = object(json!({ "name": record.agent, "version": version }));
    let tools = if tools.is_empty() { own_tools(source, record) } else { tools.to_vec() };
    if !tools.is_empty() {
        let definition = |tool: &&Tool| {
            let function = json!({
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            });
            json!({ "type": "function", "function": function })
        };
        agent.insert("tool_definitions".to_owned(), tools.iter().map(definition).collect());
    }
    if let Some(model) = &record.model {
        agent.insert("model_name".to_owned(), model.clone().into());
    }
    let verdict = |verdict: &Option<crate::score::Verdict>| verdict.as_ref().map(|verdict| verdict.pass);
    json!({
        "schema_version": VERSION,
        "session_id": format!("{}/{}/{}.{}", source.run.run, record.agent, record.sample, record.attempt),
        "agent": agent,
        "final_metrics": {
            "total_prompt_tokens": record.usage.input,
            "total_completion_tokens": record.usage.output,
            "total_cached_tokens": record.usage.cached,
            "total_cost_usd": record.cost,
            "total_steps": steps.len(),
            "extra": { "reasoning_tokens": record.usage.reasoning, "wall_seconds": record.wall_seconds },
        },
        "extra": {
            "paper": record.paper,
            "sample": record.sample,
            "n": record.n,
            "attempt": record.attempt,
            "end": record.end,
            "answer": record.answer,
            "pass": record.pass,
            "reported": verdict(&record.reported),
            "verified": verdict(&record.verified),
        },
        "steps": steps,
    })
}

/// Returns the tools of the agent `react`, whose trajectories don't list them, because they are the same at each step.
/// Empty for other agents, and if another version of this program took part in the run, because that version's tools
/// are unknown.
fn own_tools(source: &ExportSource, record: &AttemptRecord) -> Vec<&'static Tool> {
    let set = &source.run.configuration;
    let is_ours = source.run.sessions.iter().all(|session| session.version == env!("CARGO_PKG_VERSION"));
    let agents = labelled(&set.agents, &set.settings);
    let Some((_, agent)) = agents.into_iter().find(|(label, _)| *label == record.agent) else { return Vec::new() };
    let settings = agent.settings(&set.settings).filter(|_| is_ours && matches!(agent, AgentSpec::React(_)));
    settings.map(|settings| ToolSet::from_choice(settings.tools).definitions().iter().collect()).unwrap_or_default()
}

/// Converts an agent's step. The format forbids metrics in a step without a model call.
fn acted(act: &AgentAction<'_>, timestamp: &str) -> Map<String, Value> {
    let mut step = object(json!({ "timestamp": timestamp, "source": "agent", "message": act.text }));
    step.insert("llm_call_count".to_owned(), act.model_calls.into());
    if let (Some(reasoning), true) = (act.reasoning, act.model_calls > 0) {
        step.insert("reasoning_content".to_owned(), reasoning.into());
    }
    if !act.calls.is_empty() {
        let mut ids = BTreeSet::new();
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for (number, call) in act.calls.iter().enumerate() {
            // Some servers give every call the same id, so make the ids within a step unique.
            let mut id = call.id.clone();
            while !ids.insert(id.clone()) {
                id = format!("{id}-{number}");
            }
            calls.push(json!({
                "tool_call_id": id,
                "function_name": call.tool,
                "arguments": arguments(call.arguments),
                "extra": { "seconds": call.seconds },
            }));
            if let Some(content) = call.observation {
                results.push(json!({ "source_call_id": id, "content": content }));
            }
        }
        step.insert("tool_calls".to_owned(), calls.into());
        if !results.is_empty() {
            step.insert("observation".to_owned(), json!({ "results": results }));
        }
    }
    if act.model_calls > 0 {
        step.insert("metrics".to_owned(), metrics(act));
    }
    step
}

/// Returns tokens and cost of a step. The counts are sums over all model calls of the step, but token ids belong to a
/// single call, so they are left out if the step has several calls.
fn metrics(act: &AgentAction<'_>) -> Value {
    let mut metrics = json!({
        "prompt_tokens": act.usage.input,
        "completion_tokens": act.usage.output,
        "cached_tokens": act.usage.cached,
        "cost_usd": act.cost,
    });
    if let (Some(tokens), 1) = (act.tokens, act.model_calls) {
        if !tokens.completion.is_empty() {
            metrics["completion_token_ids"] = json!(tokens.completion);
        }
        if !tokens.logprobs.is_empty() {
            metrics["logprobs"] = json!(tokens.logprobs);
        }
    }
    metrics
}

/// Wraps arguments that aren't an object, because the format requires one.
pub(super) fn arguments(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => json!({}),
        other => json!({ "arguments": other }),
    }
}

/// Returns the reason why an attempt stopped, in words.
pub(super) fn end(record: &AttemptRecord) -> String {
    serde_json::to_value(record.end).ok().and_then(|end| Some(end.as_str()?.replace('_', " "))).unwrap_or_default()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
