//! OpenAI's chat completions, read and written.

use serde_json::{Value, json};

use super::{Finish, Head, Read, Refusal, Why};
use crate::model::{Message, Piece, Reply, Request, Role, Sampling, Tool, ToolCall, Usage};

/// Reads a request.
pub(super) fn read(body: &Value) -> Result<Read, Refusal> {
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| Refusal::invalid("`messages` is missing"))?;
    if body.get("n").and_then(Value::as_u64).is_some_and(|n| n > 1) {
        return Err(Refusal::invalid("this gateway gives one choice a call: leave `n` at 1"));
    }
    let tools = body.get("tools").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let number = |key: &str| body.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let stops = match body.get("stop") {
        Some(Value::String(stop)) => vec![stop.clone()],
        Some(Value::Array(stops)) => stops.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    Ok(Read {
        request: Request {
            messages: messages.iter().map(message).collect::<Result<_, _>>()?,
            tools: tools.iter().map(tool).collect::<Result<_, _>>()?,
            sampling: Sampling {
                temperature: body.get("temperature").and_then(Value::as_f64),
                max_tokens: number("max_completion_tokens").or_else(|| number("max_tokens")),
                ..Sampling::default()
            },
            one_call: body.get("parallel_tool_calls").and_then(Value::as_bool) == Some(false),
            call: 0,
            foreign: true,
            affordable: None,
        },
        stops,
        model: body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
        streams: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        counts: body.pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn message(message: &Value) -> Result<Message, Refusal> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        other => return Err(Refusal::invalid(format!("`{}` is not a role of a message", other.unwrap_or_default()))),
    };
    let calls = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Ok(Message {
        tool_calls: calls.iter().enumerate().map(|(place, call)| tool_call(place, call)).collect(),
        tool_call_id: message.get("tool_call_id").and_then(Value::as_str).map(str::to_owned),
        ..Message::new(role, content(message.get("content"))?)
    })
}

/// The text of a message: a string, or parts of text.
pub(super) fn content(content: Option<&Value>) -> Result<String, Refusal> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let mut texts = Vec::new();
            for part in parts {
                let Some(text) = part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str) else {
                    let kind = part.get("type").and_then(Value::as_str).unwrap_or("something else");
                    return Err(Refusal::invalid(format!("this gateway passes text on, and no `{kind}`")));
                };
                texts.push(text);
            }
            Ok(texts.join("\n"))
        }
        Some(_) => Err(Refusal::invalid("`content` is neither a text nor a list of parts")),
    }
}

fn tool_call(place: usize, call: &Value) -> ToolCall {
    let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let arguments = match call.pointer("/function/arguments") {
        Some(Value::String(written)) if written.trim().is_empty() => json!({}),
        Some(Value::String(written)) => {
            serde_json::from_str(written).unwrap_or_else(|_| Value::String(written.clone()))
        }
        Some(other) => other.clone(),
        None => json!({}),
    };
    ToolCall {
        id: text("/id").unwrap_or_else(|| format!("call-{place}")),
        name: text("/function/name").unwrap_or_default(),
        arguments,
    }
}

fn tool(tool: &Value) -> Result<Tool, Refusal> {
    let Some(function) = tool.get("function") else {
        return Err(Refusal::invalid("this gateway passes functions on, and no other kind of tool"));
    };
    let text = |key: &str| function.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let parameters = function.get("parameters").cloned();
    Ok(Tool {
        name: text("name"),
        description: text("description"),
        parameters: parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
    })
}

/// The reply as one body.
pub(super) fn body(head: &Head, reply: &Reply, finish: Finish) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
        message["content"] = json!(reply.text);
    }
    if let Some(reasoning) = &reply.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    if !reply.tool_calls.is_empty() {
        message["tool_calls"] = reply.tool_calls.iter().map(|call| written_call(call, None)).collect();
    }
    json!({
        "id": id(head), "object": "chat.completion", "created": 0, "model": head.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason(finish)}],
        "usage": usage(&reply.usage),
    })
}

/// How a stream begins.
pub(super) fn begin(head: &Head) -> String {
    chunk(head, &json!({"role": "assistant", "content": ""}))
}

/// A piece of a stream.
pub(super) fn piece(head: &Head, piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => chunk(head, &json!({"content": text})),
        Piece::Reasoning(text) => chunk(head, &json!({"reasoning_content": text})),
    }
}

/// How a stream ends, once its text is said.
pub(super) fn end(head: &Head, reply: &Reply, finish: Finish) -> String {
    let calls = reply.tool_calls.iter().enumerate().map(|(place, call)| written_call(call, Some(place)));
    let mut events: String = calls.map(|call| chunk(head, &json!({"tool_calls": [call]}))).collect();
    events += &event(head, &json!([{"index": 0, "delta": {}, "finish_reason": reason(finish)}]), None);
    if head.counts {
        events += &event(head, &json!([]), Some(usage(&reply.usage)));
    }
    events + "data: [DONE]\n\n"
}

fn chunk(head: &Head, delta: &Value) -> String {
    event(head, &json!([{"index": 0, "delta": delta, "finish_reason": null}]), None)
}

fn event(head: &Head, choices: &Value, usage: Option<Value>) -> String {
    let mut event = json!({
        "id": id(head), "object": "chat.completion.chunk", "created": 0, "model": head.model, "choices": choices,
    });
    if let Some(usage) = usage {
        event["usage"] = usage;
    }
    format!("data: {event}\n\n")
}

/// A refusal as a body.
pub(super) fn error(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal.why {
        Why::Budget => ("insufficient_quota", "budget_used_up"),
        Why::Invalid => ("invalid_request_error", "unsupported"),
        Why::ContextLength => ("invalid_request_error", "context_length_exceeded"),
        Why::Filtered => ("invalid_request_error", "content_filter"),
        Why::Closed => ("permission_error", "closed"),
    };
    json!({"error": {"message": refusal.message, "type": kind, "param": null, "code": code}})
}

/// A refusal as the last events of a stream.
pub(super) fn error_events(refusal: &Refusal) -> String {
    format!("data: {}\n\ndata: [DONE]\n\n", error(refusal))
}

fn id(head: &Head) -> String {
    format!("chatcmpl-{}", head.number)
}

const fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
    }
}

fn written_call(call: &ToolCall, place: Option<usize>) -> Value {
    let arguments = match &call.arguments {
        // What was no JSON goes on as it was written: it is the agent's to say so to the model.
        Value::String(written) => written.clone(),
        other => other.to_string(),
    };
    let function = json!({"name": call.name, "arguments": arguments});
    match place {
        Some(place) => json!({"index": place, "id": call.id, "type": "function", "function": function}),
        None => json!({"id": call.id, "type": "function", "function": function}),
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
