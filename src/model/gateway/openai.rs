//! Reads and writes OpenAI's Chat Completions API.

use serde_json::{Value, json};

use super::parts::{self, RequestReader, list, text};
use super::stream::EventWriter;
use super::{CallContext, Finish, ParsedRequest, Refusal, RefusalKind};
use crate::model::{Message, Reply, ReplyPiece, Request, RequestOptions, Role, Sampling, Tool, ToolCall, Usage};

/// Request fields that the gateway reads or may ignore; any other field is reported as left out.
const FIELDS: [&str; 26] = [
    "messages",
    "model",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "stream",
    "stream_options",
    "n",
    "reasoning_effort",
    "response_format",
    "verbosity",
    "metadata",
    "user",
    "store",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "modalities",
];

/// Parses a request.
pub(super) fn read(body: &Value) -> Result<ParsedRequest, Refusal> {
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| Refusal::invalid("`messages` is missing"))?;
    if body.get("n").and_then(Value::as_u64).is_some_and(|n| n > 1) {
        return Err(Refusal::invalid("this gateway gives one choice a call: leave `n` at 1"));
    }
    let mut reader = RequestReader::default();
    reader.leave_out_fields(body, "", &FIELDS);
    let stops = match body.get("stop") {
        Some(Value::String(stop)) => vec![stop.clone()],
        _ => list(body, "stop").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    Ok(ParsedRequest {
        request: Request {
            messages: messages.iter().map(|said| message(said, &mut reader)).collect::<Result<_, _>>()?,
            tools: list(body, "tools").iter().map(tool).collect::<Result<Vec<_>, _>>()?.into(),
            sampling: Sampling {
                temperature: body.get("temperature").and_then(Value::as_f64),
                max_tokens: parts::count(body, "max_completion_tokens").or_else(|| parts::count(body, "max_tokens")),
                effort: parts::effort(body.get("reasoning_effort")),
                ..Sampling::default()
            },
            one_call: body.get("parallel_tool_calls").and_then(Value::as_bool) == Some(false),
            wishes: RequestOptions {
                choice: parts::choice(body.get("tool_choice"), "/function/name"),
                format: parts::format(body.get("response_format"), Some("json_schema")),
                top_p: body.get("top_p").and_then(Value::as_f64),
                verbosity: body.get("verbosity").and_then(Value::as_str).map(str::to_owned),
                top_k: body.get("top_k").and_then(Value::as_u64),
                frequency_penalty: body.get("frequency_penalty").and_then(Value::as_f64),
                presence_penalty: body.get("presence_penalty").and_then(Value::as_f64),
                stops: stops.clone(),
            },
            foreign: true,
            ..Request::default()
        },
        stops,
        model: text(body, "model"),
        streams: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        counts: body.pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or(false),
        thinks: true,
        kinds: super::HashMap::new(),
        left_out: reader.left_out,
    })
}

fn message(message: &Value, reader: &mut RequestReader) -> Result<Message, Refusal> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        other => return Err(Refusal::invalid(format!("`{}` is not a role of a message", other.unwrap_or_default()))),
    };
    Ok(Message {
        tool_calls: list(message, "tool_calls")
            .iter()
            .enumerate()
            .map(|(place, call)| tool_call(place, call))
            .collect(),
        tool_call_id: message.get("tool_call_id").and_then(Value::as_str).map(str::to_owned),
        ..reader.content(message.get("content"))?.message(role)
    })
}

fn tool_call(place: usize, call: &Value) -> ToolCall {
    let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    ToolCall {
        id: text("/id").unwrap_or_else(|| format!("call-{place}")),
        name: text("/function/name").unwrap_or_default(),
        arguments: parts::arguments(call.pointer("/function/arguments")),
    }
}

fn tool(tool: &Value) -> Result<Tool, Refusal> {
    let function = tool.get("function").ok_or_else(|| parts::foreign_tool(&text(tool, "type")))?;
    Ok(Tool {
        name: text(function, "name"),
        description: text(function, "description"),
        parameters: function.get("parameters").cloned().unwrap_or_else(no_arguments),
    })
}

/// Returns the schema of a function without parameters.
pub(super) fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}})
}

/// Writes the whole reply as one body.
pub(super) fn body(head: &CallContext, reply: &Reply, finish: &Finish) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
        message["content"] = json!(reply.text);
    }
    if let Some(reasoning) = &reply.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    if let Finish::Refused(text) = finish {
        message["content"] = Value::Null;
        message["refusal"] = json!(text);
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

/// Writes a reply as a stream of chunks.
pub(super) struct OpenAiChunks(pub(super) CallContext);

impl EventWriter for OpenAiChunks {
    fn begin(&mut self) -> String {
        chunk(&self.0, &json!({"role": "assistant", "content": ""}))
    }

    fn piece(&mut self, piece: &ReplyPiece) -> String {
        match piece {
            ReplyPiece::Text(text) => chunk(&self.0, &json!({"content": text})),
            ReplyPiece::Reasoning(text) => chunk(&self.0, &json!({"reasoning_content": text})),
        }
    }

    fn end(&mut self, reply: &Reply, finish: &Finish) -> String {
        let head = &self.0;
        let calls = reply.tool_calls.iter().enumerate().map(|(place, call)| written_call(call, Some(place)));
        let mut events: String = calls.map(|call| chunk(head, &json!({"tool_calls": [call]}))).collect();
        if let Finish::Refused(text) = finish {
            events += &chunk(head, &json!({"refusal": text}));
        }
        events += &event(head, &json!([{"index": 0, "delta": {}, "finish_reason": reason(finish)}]), None);
        if head.counts {
            events += &event(head, &json!([]), Some(usage(&reply.usage)));
        }
        events + "data: [DONE]\n\n"
    }
}

fn chunk(head: &CallContext, delta: &Value) -> String {
    event(head, &json!([{"index": 0, "delta": delta, "finish_reason": null}]), None)
}

fn event(head: &CallContext, choices: &Value, usage: Option<Value>) -> String {
    let mut event = json!({
        "id": id(head), "object": "chat.completion.chunk", "created": 0, "model": head.model, "choices": choices,
    });
    if let Some(usage) = usage {
        event["usage"] = usage;
    }
    format!("data: {event}\n\n")
}

/// Returns the body of the HTTP answer to a refused request.
pub(super) fn error(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal.why {
        RefusalKind::Budget => ("insufficient_quota", "budget_used_up"),
        RefusalKind::Invalid => ("invalid_request_error", "unsupported"),
        RefusalKind::ContextLength => ("invalid_request_error", "context_length_exceeded"),
        RefusalKind::Filtered => ("invalid_request_error", "content_filter"),
        RefusalKind::Unavailable => ("server_error", "server_error"),
        RefusalKind::Closed => ("permission_error", "closed"),
    };
    json!({"error": {"message": refusal.message, "type": kind, "param": null, "code": code}})
}

/// Returns the last events of a stream if the request is refused.
pub(super) fn error_events(refusal: &Refusal) -> String {
    format!("data: {}\n\ndata: [DONE]\n\n", error(refusal))
}

fn id(head: &CallContext) -> String {
    format!("chatcmpl-{}", head.number)
}

const fn reason(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::Stopped(_) => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::Refused(_) => "content_filter",
    }
}

/// Returns a call's arguments as text. Invalid JSON is passed on unchanged, so that the agent can report it to the
/// model.
pub(super) fn written(arguments: &Value) -> String {
    match arguments {
        Value::String(written) => written.clone(),
        other => other.to_string(),
    }
}

fn written_call(call: &ToolCall, place: Option<usize>) -> Value {
    let function = json!({"name": call.name, "arguments": written(&call.arguments)});
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
