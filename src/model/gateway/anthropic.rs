//! Anthropic's messages, read and written.

use serde_json::{Value, json};

use super::openai::content;
use super::{Finish, Head, Read, Refusal, Why};
use crate::model::{Message, Reply, Request, Role, Sampling, Tool, ToolCall, Usage};

/// Characters that are taken for a token where only a guess is asked for.
const CHARACTERS_A_TOKEN: usize = 4;

/// Reads a request.
pub(super) fn read(body: &Value) -> Result<Read, Refusal> {
    let said = body.get("messages").and_then(Value::as_array);
    let said = said.ok_or_else(|| Refusal::invalid("`messages` is missing"))?;
    let mut messages = Vec::new();
    let system = content(body.get("system"))?;
    if !system.is_empty() {
        messages.push(Message::new(Role::System, system));
    }
    for message in said {
        read_message(message, &mut messages)?;
    }
    let tools = body.get("tools").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let stops = body.get("stop_sequences").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let most = body.get("max_tokens").and_then(Value::as_u64).and_then(|most| u32::try_from(most).ok());
    Ok(Read {
        request: Request {
            messages,
            // Tools that the provider itself would run have no schema, and nobody here could run them.
            tools: tools.iter().filter_map(tool).collect(),
            sampling: Sampling {
                temperature: body.get("temperature").and_then(Value::as_f64),
                max_tokens: most,
                ..Sampling::default()
            },
            one_call: body.pointer("/tool_choice/disable_parallel_tool_use").and_then(Value::as_bool) == Some(true),
            call: 0,
            foreign: true,
            affordable: None,
        },
        stops: stops.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        model: body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
        streams: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        counts: true,
    })
}

/// A message of theirs can hold several of ours: the results of tools, then what the user says.
fn read_message(message: &Value, messages: &mut Vec<Message>) -> Result<(), Refusal> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        other => return Err(Refusal::invalid(format!("`{}` is not a role of a message", other.unwrap_or_default()))),
    };
    let Some(Value::Array(blocks)) = message.get("content") else {
        messages.push(Message::new(role, content(message.get("content"))?));
        return Ok(());
    };
    let (mut texts, mut calls, mut results) = (Vec::new(), Vec::new(), false);
    for block in blocks {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match block.get("type").and_then(Value::as_str) {
            Some("text") => texts.push(text("text")),
            Some("tool_use") => {
                let arguments = block.get("input").cloned().unwrap_or_else(|| json!({}));
                calls.push(ToolCall { id: text("id"), name: text("name"), arguments });
            }
            Some("tool_result") => {
                let mut result = Message::new(Role::Tool, content(block.get("content"))?);
                result.tool_call_id = Some(text("tool_use_id"));
                messages.push(result);
                results = true;
            }
            // Their author has them with its own reply: whoever takes the call puts them back.
            Some("thinking" | "redacted_thinking") => {}
            other => {
                let kind = other.unwrap_or("something else");
                return Err(Refusal::invalid(format!("this gateway passes text on, and no `{kind}`")));
            }
        }
    }
    if !texts.is_empty() || !calls.is_empty() || !results {
        messages.push(Message { tool_calls: calls, ..Message::new(role, texts.join("\n")) });
    }
    Ok(())
}

fn tool(tool: &Value) -> Option<Tool> {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let parameters = tool.get("input_schema")?.clone();
    Some(Tool { name: text("name"), description: text("description"), parameters })
}

/// Tokens of a request, as agents ask for them before they ask the model: a guess from its length.
pub(super) fn count(read: &Read) -> Value {
    let messages = read.request.messages.iter().map(|message| {
        let calls = message.tool_calls.iter().map(|call| call.arguments.to_string().len()).sum::<usize>();
        message.content.len() + calls
    });
    let tools = read.request.tools.iter().map(|tool| tool.description.len() + tool.parameters.to_string().len());
    json!({"input_tokens": (messages.sum::<usize>() + tools.sum::<usize>()).div_ceil(CHARACTERS_A_TOKEN)})
}

/// The reply as one body.
pub(super) fn body(head: &Head, reply: &Reply, finish: Finish) -> Value {
    let mut blocks = Vec::new();
    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
        blocks.push(json!({"type": "text", "text": reply.text}));
    }
    blocks.extend(
        reply
            .tool_calls
            .iter()
            .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input(call)})),
    );
    json!({
        "id": id(head), "type": "message", "role": "assistant", "model": head.model, "content": blocks,
        "stop_reason": stop_reason(finish), "stop_sequence": null, "usage": usage(&reply.usage),
    })
}

/// How a stream begins; what was read is known only at its end, where it is said again.
pub(super) fn begin(head: &Head) -> String {
    event(&json!({"type": "message_start", "message": {
        "id": id(head), "type": "message", "role": "assistant", "model": head.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage(&Usage::default()),
    }}))
}

/// How the block of text begins, the first of all.
pub(super) fn begin_text() -> String {
    let block = json!({"type": "text", "text": ""});
    event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
}

/// A piece of the block of text.
pub(super) fn text(text: &str) -> String {
    event(&json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}))
}

/// How a stream ends, once its text is said, if there was any.
pub(super) fn end(reply: &Reply, finish: Finish, has_text: bool) -> String {
    let mut events = String::new();
    if has_text {
        events += &event(&json!({"type": "content_block_stop", "index": 0}));
    }
    for (index, call) in (usize::from(has_text)..).zip(&reply.tool_calls) {
        let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        events += &event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta = json!({"type": "input_json_delta", "partial_json": input(call).to_string()});
        events += &event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events += &event(&json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop_reason(finish), "stop_sequence": null});
    events += &event(&json!({"type": "message_delta", "delta": delta, "usage": usage(&reply.usage)}));
    events + &event(&json!({"type": "message_stop"}))
}

/// A refusal as a body.
pub(super) fn error(refusal: &Refusal) -> Value {
    let kind = match refusal.why {
        Why::Budget | Why::Closed => "permission_error",
        Why::Invalid | Why::ContextLength | Why::Filtered => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": refusal.message}})
}

/// A refusal as the last event of a stream.
pub(super) fn error_events(refusal: &Refusal) -> String {
    event(&error(refusal))
}

fn event(event: &Value) -> String {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {kind}\ndata: {event}\n\n")
}

fn id(head: &Head) -> String {
    format!("msg_{}", head.number)
}

/// A call's input is an object, also where the model wrote none.
fn input(call: &ToolCall) -> Value {
    if call.arguments.is_object() { call.arguments.clone() } else { json!({"malformed_arguments": call.arguments}) }
}

const fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
    }
}

/// They count what went through a cache apart.
fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached + usage.cache_written),
        "cache_read_input_tokens": usage.cached, "cache_creation_input_tokens": usage.cache_written,
        "output_tokens": usage.output,
    })
}
