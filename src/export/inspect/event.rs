//! An attempt's transcript as Inspect events.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::message::{ChatMessage, MessagePool};
use super::{AttemptMoment, InspectUsage, NO_MODEL};
use crate::agent::{Event, TimedEvent};
use crate::model::Usage;

/// An event that refers to messages of a [`MessagePool`].
pub enum LogEntry<'a> {
    /// A model call.
    Model(ModelCallDraft<'a>),
    /// A tool call.
    Tool(ToolEvent<'a>),
    /// Any other event.
    Info(InfoEvent),
}

/// A model call that is not yet ready to serialise: its reply may be an index into the [`MessagePool`].
/// [`ModelCallDraft::event`] looks the message up.
pub struct ModelCallDraft<'a> {
    uuid: String,
    at: AttemptMoment,
    completed: AttemptMoment,
    seconds: f64,
    role: Option<&'a str>,
    shown: Vec<(usize, usize)>,
    reply: LoggedReply<'a>,
    usage: InspectUsage,
}

enum LoggedReply<'a> {
    Nothing,
    Message { index: usize, calls: bool },
    Text(&'a str),
    Failed(&'a str),
}

/// Inspect's `ModelEvent`.
#[derive(Serialize)]
pub struct ModelEvent<'a> {
    event: &'static str,
    uuid: &'a str,
    timestamp: AttemptMoment,
    working_start: f64,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    input: [(); 0],
    input_refs: &'a [(usize, usize)],
    tools: [(); 0],
    tool_choice: &'static str,
    config: Empty,
    output: Output<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    completed: AttemptMoment,
    working_time: f64,
}

/// An empty JSON object.
#[derive(Serialize)]
struct Empty {}

/// Inspect's `ModelOutput`.
#[derive(Serialize)]
pub struct Output<'a> {
    model: &'a str,
    choices: Vec<ReplyChoice<'a>>,
    completion: &'a str,
    usage: InspectUsage,
    time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct ReplyChoice<'a> {
    message: ReplyMessage<'a>,
    stop_reason: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ReplyMessage<'a> {
    Message(ChatMessage<'a>),
    Text { role: &'static str, content: &'a str, source: &'static str },
}

/// Inspect's `ToolEvent`.
#[derive(Serialize)]
pub struct ToolEvent<'a> {
    event: &'static str,
    uuid: String,
    timestamp: AttemptMoment,
    working_start: f64,
    #[serde(rename = "type")]
    kind: &'static str,
    id: String,
    function: &'a str,
    arguments: Value,
    result: &'a str,
    events: [(); 0],
    completed: AttemptMoment,
    working_time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
}

/// Inspect's `InfoEvent`, used for events that Inspect has no type for.
#[derive(Serialize)]
pub struct InfoEvent {
    event: &'static str,
    uuid: String,
    timestamp: AttemptMoment,
    working_start: f64,
    source: &'static str,
    data: Value,
}

/// Converts the events of an attempt that started at `begun`, and adds to `pool` the messages that they contain.
pub fn entries<'a>(
    lines: &'a [TimedEvent],
    begun: AttemptMoment,
    uuid: &str,
    pool: &mut MessagePool<'a>,
) -> Vec<LogEntry<'a>> {
    let mut entries = Vec::with_capacity(lines.len());
    for (number, line) in lines.iter().enumerate() {
        let uuid = format!("{uuid}-e{number}");
        let is_call = matches!(&line.event, Event::Reply { .. } | Event::CallFailed { .. });
        let shown = if is_call { pool.included_ranges() } else { Vec::new() };
        pool.add_event(&line.event);
        let model = |role, shown, reply, usage: &Usage, cost, seconds: f64| {
            LogEntry::Model(ModelCallDraft {
                uuid: uuid.clone(),
                at: begun.after(line.at - seconds),
                completed: begun.after(line.at),
                seconds,
                role,
                shown,
                reply,
                usage: InspectUsage::new(*usage, cost),
            })
        };
        entries.push(match &line.event {
            Event::Reply { text, tool_calls, usage, cost, seconds, .. } => {
                // For an agent without a model, the pool is empty. The call then contains the reply's text itself.
                let reply = match pool.len().checked_sub(1) {
                    Some(index) => LoggedReply::Message { index, calls: !tool_calls.is_empty() },
                    None => LoggedReply::Text(text),
                };
                model(None, shown, reply, usage, *cost, *seconds)
            }
            Event::ToolModelCall { tool, text, usage, cost, seconds, .. } => {
                model(Some(tool), Vec::new(), LoggedReply::Text(text), usage, *cost, *seconds)
            }
            Event::CallFailed { tool, what, usage, cost, seconds, .. } => {
                let shown = if tool.is_some() { Vec::new() } else { shown };
                model(tool.as_deref(), shown, LoggedReply::Failed(what), usage, *cost, *seconds)
            }
            Event::Observation { step, call_id, tool, arguments, content, seconds } => LogEntry::Tool(ToolEvent {
                event: "tool",
                timestamp: begun.after(line.at - seconds),
                working_start: line.at - seconds,
                kind: "function",
                id: call_id.clone().unwrap_or_else(|| format!("step-{step}-{number}")),
                function: tool,
                arguments: object(arguments),
                result: content,
                events: [],
                completed: begun.after(line.at),
                working_time: *seconds,
                message_id: call_id.as_ref().and_then(|_| Some(pool.id(pool.len().checked_sub(1)?))),
                uuid,
            }),
            // The messages of these events are already in the [`MessagePool`].
            Event::Message { .. } | Event::Asked { .. } => continue,
            other => LogEntry::Info(InfoEvent {
                event: "info",
                uuid,
                timestamp: begun.after(line.at),
                working_start: line.at,
                source: "autoexperiment",
                data: serde_json::to_value(other).unwrap_or_default(),
            }),
        });
    }
    entries
}

/// Wraps arguments that aren't an object, because Inspect requires one.
fn object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => Value::Object(Map::new()),
        other => json!({ "arguments": other }),
    }
}

impl ModelCallDraft<'_> {
    /// Creates a model call for an attempt that called no model. Inspect's `messages_df` finds only messages that were
    /// shown to a model, and fails if there are none.
    pub fn nothing(begun: AttemptMoment, uuid: &str, shown: Vec<(usize, usize)>) -> Self {
        Self {
            uuid: format!("{uuid}-e"),
            at: begun,
            completed: begun,
            seconds: 0.0,
            role: None,
            shown,
            reply: LoggedReply::Nothing,
            usage: InspectUsage::new(Usage::default(), 0.0),
        }
    }

    /// Returns the event as it is serialised.
    pub fn event<'b>(&'b self, model: &'b str, pool: &'b MessagePool<'_>) -> ModelEvent<'b> {
        let model = if matches!(self.reply, LoggedReply::Nothing) { NO_MODEL } else { model };
        let (failed, output) = match &self.reply {
            LoggedReply::Nothing => (None, self.output(model, Vec::new(), "", None)),
            LoggedReply::Failed(what) => (Some(*what), self.output(model, Vec::new(), "", Some(*what))),
            LoggedReply::Text(text) => {
                let message = ReplyMessage::Text { role: "assistant", content: text, source: "generate" };
                (None, self.output(model, vec![ReplyChoice { message, stop_reason: "stop" }], text, None))
            }
            LoggedReply::Message { index, calls } => {
                let message = ReplyMessage::Message(pool.message(*index));
                let stop_reason = if *calls { "tool_calls" } else { "stop" };
                (None, self.output(model, vec![ReplyChoice { message, stop_reason }], "", None))
            }
        };
        ModelEvent {
            event: "model",
            uuid: &self.uuid,
            timestamp: self.at,
            working_start: self.completed.since - self.seconds,
            model,
            role: self.role,
            input: [],
            input_refs: &self.shown,
            tools: [],
            tool_choice: "auto",
            config: Empty {},
            output,
            error: failed,
            completed: self.completed,
            working_time: self.seconds,
        }
    }

    /// Returns the output alone, for the last reply of an attempt; `None` if the call failed or was made by a tool.
    pub fn answer<'b>(&'b self, model: &'b str, pool: &'b MessagePool<'_>) -> Option<Output<'b>> {
        matches!(self.reply, LoggedReply::Message { .. }).then(|| self.event(model, pool).output)
    }

    fn output<'b>(
        &self,
        model: &'b str,
        choices: Vec<ReplyChoice<'b>>,
        completion: &'b str,
        error: Option<&'b str>,
    ) -> Output<'b> {
        Output { model, choices, completion, usage: self.usage, time: self.seconds, error }
    }
}
