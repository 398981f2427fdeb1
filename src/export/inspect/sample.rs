//! An attempt as Inspect's `EvalSample`, and its summary.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::event::{InfoEvent, LogEntry, ModelCallDraft, ModelEvent, Output, ToolEvent, entries};
use super::message::{ChatMessage, MessagePool};
use super::{AttemptMoment, InspectUsage, Log, identifier, model_name};
use crate::agent::{End, Limits, TimedEvent};
use crate::run::AttemptRecord;
use crate::score::Verdict;

/// Maximum length of a text in a summary, in characters; Inspect truncates its own summaries too.
const SUMMARY_TEXT: usize = 1000;

/// Inspect's `EvalSample`.
#[derive(Serialize)]
pub struct EvalSample<'a> {
    id: &'a str,
    epoch: u32,
    input: &'a str,
    target: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Output<'a>>,
    scores: &'a BTreeMap<&'static str, Value>,
    metadata: &'a Value,
    store: Value,
    events: Vec<WrittenEvent<'a>>,
    model_usage: &'a BTreeMap<String, InspectUsage>,
    started_at: AttemptMoment,
    completed_at: AttemptMoment,
    total_time: f64,
    working_time: f64,
    uuid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    attachments: Value,
    events_data: EventsData<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenEvent<'a> {
    Model(Box<ModelEvent<'a>>),
    Tool(&'a ToolEvent<'a>),
    Info(&'a InfoEvent),
}

#[derive(Serialize)]
struct EventsData<'a> {
    messages: Vec<ChatMessage<'a>>,
    calls: [(); 0],
}

/// Inspect's `EvalSampleSummary`.
#[derive(Serialize)]
pub struct EvalSampleSummary {
    id: String,
    epoch: u32,
    input: String,
    target: String,
    metadata: Value,
    scores: BTreeMap<&'static str, Value>,
    model_usage: BTreeMap<String, InspectUsage>,
    started_at: AttemptMoment,
    completed_at: AttemptMoment,
    total_time: f64,
    working_time: f64,
    uuid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    retries: u32,
    completed: bool,
    message_count: usize,
}

/// Passes an attempt, as a sample of Inspect, to `write`, and returns the sample's summary. `sentence` describes the
/// task. It becomes the sample's input if no model was asked.
///
/// # Errors
/// Returns the errors of `write`.
pub fn write<E>(
    record: &AttemptRecord,
    sentence: &str,
    lines: &[TimedEvent],
    log: &Log<'_>,
    write: impl FnOnce(&EvalSample<'_>) -> Result<(), E>,
) -> Result<EvalSampleSummary, E> {
    let model = model_name(record.model.as_deref());
    let attempt = record.attempt.to_string();
    let uuid = identifier(&[log.run, &record.agent, &model, &record.sample, &attempt]);
    let begun = AttemptMoment::start(record.started);
    let mut pool = MessagePool::new(&uuid, record.model.as_ref().map(|_| model.as_str()));
    let mut entries = entries(lines, begun, &uuid, &mut pool);
    let input = pool.task().unwrap_or(sentence).to_owned();
    if pool.len() == 0 {
        pool.add_message(&input);
    }
    if !entries.iter().any(|entry| matches!(entry, LogEntry::Model(_))) {
        entries.insert(0, LogEntry::Model(ModelCallDraft::nothing(begun, &uuid, pool.included_ranges())));
    }
    let target = target(record);
    let scores = scores(record);
    let metadata = metadata(record);
    let mut model_usage = BTreeMap::new();
    if record.model.is_some() {
        model_usage.insert(model.clone(), InspectUsage::new(record.usage, record.cost));
    }
    let completed_at = begun.after(record.wall_seconds);
    let working_time = record.tool_seconds + record.model_seconds;
    let limit = limit(record.end, log.limits);
    let error = record.is_infrastructure().then(|| {
        let detail = record.end_detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
        let what = if record.is_stopped() { "stopped with the run" } else { "lost to infrastructure" };
        format!("{what}: {}{detail}", name(record.end))
    });
    let output = entries.iter().rev().find_map(|entry| match entry {
        LogEntry::Model(asked) => asked.answer(&model, &pool),
        _ => None,
    });
    let events = entries.iter().map(|entry| match entry {
        LogEntry::Model(asked) => WrittenEvent::Model(Box::new(asked.event(&model, &pool))),
        LogEntry::Tool(event) => WrittenEvent::Tool(event),
        LogEntry::Info(event) => WrittenEvent::Info(event),
    });
    write(&EvalSample {
        id: &record.sample,
        epoch: record.attempt.saturating_add(1),
        input: &input,
        target: &target,
        messages: pool.messages(),
        output,
        scores: &scores,
        metadata: &metadata,
        store: json!({}),
        events: events.collect(),
        model_usage: &model_usage,
        started_at: begun,
        completed_at,
        total_time: record.wall_seconds,
        working_time,
        uuid: &uuid,
        error: error.as_ref().map(|error| json!({ "message": error, "traceback": "", "traceback_ansi": "" })),
        attachments: json!({}),
        events_data: EventsData { messages: pool.all(), calls: [] },
        limit: limit.map(|(kind, limit)| json!({ "type": kind, "limit": limit })),
    })?;
    Ok(EvalSampleSummary {
        id: record.sample.clone(),
        epoch: record.attempt.saturating_add(1),
        input: cut(&input),
        target: cut(&target),
        metadata,
        scores: scores.into_iter().map(|(name, score)| (name, shortened(score))).collect(),
        model_usage,
        started_at: begun,
        completed_at,
        total_time: record.wall_seconds,
        working_time,
        error,
        limit: limit.map(|(kind, _)| kind),
        retries: 0,
        completed: true,
        message_count: pool.messages().len(),
        uuid: uuid.clone(),
    })
}

/// Returns the expected values: the gold values by experiment and path, from the verdict.
fn target(record: &AttemptRecord) -> String {
    let verdict = record.reported.as_ref().or(record.verified.as_ref());
    let experiments: BTreeMap<&str, BTreeMap<&str, &Value>> = verdict
        .iter()
        .flat_map(|verdict| &verdict.experiments)
        .map(|experiment| {
            let values = experiment.values.iter().map(|value| (value.path.as_str(), &value.gold));
            (experiment.experiment.as_str(), values.collect())
        })
        .collect();
    serde_json::to_string(&experiments).unwrap_or_default()
}

/// Returns Inspect's `Score`s by scorer: `C` for a pass, `I` for a fail.
fn scores(record: &AttemptRecord) -> BTreeMap<&'static str, Value> {
    let verdicts = [("reported", &record.reported), ("verified", &record.verified)];
    let scored = verdicts.into_iter().filter_map(|(name, verdict)| {
        let verdict = verdict.as_ref()?;
        let answer = match name {
            "reported" => record.answer.clone(),
            _ => (!record.results.is_empty()).then(|| Value::Object(record.results.clone()).to_string()),
        };
        let mut metadata = json!({ "experiments": verdict.experiments, "warnings": verdict.warnings });
        // Only kinds of tasks with partial credit set `score` and `measures`.
        if let Some(score) = verdict.score {
            metadata["score"] = score.into();
        }
        if !verdict.measures.is_empty() {
            metadata["measures"] = json!(verdict.measures);
        }
        Some((
            name,
            json!({
                "value": if verdict.pass { "C" } else { "I" },
                "answer": answer,
                "explanation": explanation(verdict),
                "metadata": metadata,
            }),
        ))
    });
    // The score `pass` comes first, because Inspect shows the first score as the headline.
    let pass = (!record.is_infrastructure()).then(|| {
        let explanation = "reported within tolerance of gold and, if it was verified, reproduced by the code";
        ("pass", json!({ "value": if record.pass { "C" } else { "I" }, "explanation": explanation }))
    });
    pass.into_iter().chain(scored).collect()
}

/// Explains a verdict, one line per experiment.
fn explanation(verdict: &Verdict) -> String {
    let mut lines: Vec<String> = verdict.reason.iter().cloned().collect();
    for experiment in &verdict.experiments {
        let word = if experiment.pass { "pass" } else { "fail" };
        let right = experiment.values.iter().filter(|value| value.pass).count();
        let reason = experiment.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let all = experiment.values.len();
        lines.push(format!("{}: {word}, {right} of {all} values right{reason}", experiment.experiment));
    }
    lines.join("\n")
}

/// Fields of the record for which Inspect has no field.
fn metadata(record: &AttemptRecord) -> Value {
    json!({
        "paper": record.paper,
        "n": record.n,
        "attempt": record.attempt,
        "agent": record.agent,
        "end": record.end,
        "end_detail": record.end_detail,
        "pass": record.pass,
        "unsupported": record.is_unsupported(),
        "steps": record.steps,
        "format_errors": record.format_errors,
        "cost": record.cost,
        "tool_seconds": record.tool_seconds,
        "model_seconds": record.model_seconds,
        "verify_seconds": record.verify_seconds,
        "changed": record.changed,
        "ignored": record.ignored,
        "sandbox": record.sandbox,
    })
}

/// Returns the limit that ended an attempt, in Inspect's terms, and its value.
fn limit(end: End, limits: &Limits) -> Option<(&'static str, f64)> {
    match (end, limits.tokens) {
        (End::StepLimit, _) => Some(("turn", f64::from(limits.steps))),
        (End::TimeLimit, _) => Some(("working", limits.seconds)),
        (End::CostLimit, _) => Some(("cost", limits.cost)),
        (End::TokenLimit, Some(tokens)) => Some(("token", tokens as f64)),
        (End::TokenLimit, None) => Some(("context", 0.0)),
        _ => None,
    }
}

fn name(end: End) -> String {
    serde_json::to_value(end).ok().and_then(|end| Some(end.as_str()?.replace('_', " "))).unwrap_or_default()
}

/// Shortens the texts of a score and removes its metadata, for a sample's summary.
fn shortened(mut score: Value) -> Value {
    for name in ["answer", "explanation"] {
        if let Some(text) = score[name].as_str().map(cut) {
            score[name] = text.into();
        }
    }
    if let Some(fields) = score.as_object_mut() {
        fields.remove("metadata");
    }
    score
}

fn cut(text: &str) -> String {
    text.chars().take(SUMMARY_TEXT).collect()
}
