//! Reads and writes Anthropic's Messages API.

use serde_json::{Value, json};

use super::parts::{self, RequestReader, list, text};
use super::stream::EventWriter;
use super::{CallContext, Finish, ParsedRequest, Refusal, RefusalKind, thoughts};
use crate::model::{
    Message, Reply, ReplyFormat, ReplyPiece, Request, RequestOptions, Role, Sampling, Tool, ToolCall, ToolCallChoice,
    Usage,
};

/// Request fields that the gateway reads or may ignore; every other field is reported as left out. `cache_control` is
/// ignored, because this program marks the messages for Anthropic's cache itself.
const FIELDS: [&str; 17] = [
    "messages",
    "system",
    "model",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "stop_sequences",
    "stream",
    "thinking",
    "output_config",
    "output_format",
    "metadata",
    "service_tier",
    "cache_control",
];

/// Parses a request.
pub(super) fn read(body: &Value) -> Result<ParsedRequest, Refusal> {
    let said = body.get("messages").and_then(Value::as_array);
    let said = said.ok_or_else(|| Refusal::invalid("`messages` is missing"))?;
    let mut reader = RequestReader::default();
    reader.leave_out_fields(body, "", &FIELDS);
    if let Some(config) = body.get("output_config") {
        reader.leave_out_fields(config, "output_config.", &["effort", "format"]);
    }
    let mut messages = Vec::new();
    let system = reader.content(body.get("system"))?;
    if !system.text.is_empty() {
        messages.push(system.message(Role::System));
    }
    for message in said {
        read_message(message, &mut messages, &mut reader)?;
    }
    let thinking = body.pointer("/thinking/type").and_then(Value::as_str);
    let budget = body.pointer("/thinking/budget_tokens").and_then(Value::as_u64);
    let format = body.pointer("/output_config/format").or_else(|| body.get("output_format"));
    let stops: Vec<String> = list(body, "stop_sequences").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(ParsedRequest {
        request: Request {
            messages,
            tools: list(body, "tools").iter().map(tool).collect::<Result<Vec<_>, _>>()?.into(),
            sampling: Sampling {
                temperature: body.get("temperature").and_then(Value::as_f64),
                max_tokens: parts::count(body, "max_tokens"),
                reasoning_tokens: match thinking {
                    Some("enabled") => budget.and_then(|budget| u32::try_from(budget).ok()),
                    Some("disabled") => Some(0),
                    _ => None,
                },
                effort: parts::effort(body.pointer("/output_config/effort")).filter(|_| thinking != Some("disabled")),
                ..Sampling::default()
            },
            one_call: body.pointer("/tool_choice/disable_parallel_tool_use").and_then(Value::as_bool) == Some(true),
            wishes: RequestOptions {
                choice: choice(body.get("tool_choice")),
                format: format.and_then(|format| format.get("schema")).map(|schema| ReplyFormat::Schema {
                    name: "reply".to_owned(),
                    schema: schema.clone(),
                    strict: Some(true),
                }),
                top_p: body.get("top_p").and_then(Value::as_f64),
                top_k: body.get("top_k").and_then(Value::as_u64),
                stops: stops.clone(),
                ..RequestOptions::default()
            },
            foreign: true,
            ..Request::default()
        },
        stops,
        model: text(body, "model"),
        streams: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        counts: true,
        thinks: matches!(thinking, Some("enabled" | "adaptive")),
        kinds: super::HashMap::new(),
        left_out: reader.left_out,
    })
}

fn choice(choice: Option<&Value>) -> Option<ToolCallChoice> {
    let choice = choice?;
    match choice.get("type")?.as_str()? {
        "auto" => Some(ToolCallChoice::Auto),
        "any" => Some(ToolCallChoice::Required),
        "none" => Some(ToolCallChoice::None),
        "tool" => Some(ToolCallChoice::Tool(text(choice, "name"))),
        _ => None,
    }
}

/// Reads a message. An Anthropic message with both tool results and text becomes several [`Message`]s.
fn read_message(message: &Value, messages: &mut Vec<Message>, reader: &mut RequestReader) -> Result<(), Refusal> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        other => return Err(Refusal::invalid(format!("`{}` is not a role of a message", other.unwrap_or_default()))),
    };
    let Some(Value::Array(blocks)) = message.get("content") else {
        messages.push(reader.content(message.get("content"))?.message(role));
        return Ok(());
    };
    let mut own = Message::new(role, "");
    let (mut texts, mut results) = (Vec::new(), false);
    for block in blocks {
        match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => {
                let arguments = block.get("input").cloned().unwrap_or_else(|| json!({}));
                own.tool_calls.push(ToolCall { id: text(block, "id"), name: text(block, "name"), arguments });
            }
            Some("tool_result") => {
                let mut result = reader.content(block.get("content"))?.message(Role::Tool);
                result.tool_call_id = Some(text(block, "tool_use_id"));
                messages.push(result);
                results = true;
            }
            Some("thinking") => own.thoughts.extend(thoughts::placeholder(&text(block, "signature"))),
            Some("redacted_thinking") => own.thoughts.extend(thoughts::placeholder(&text(block, "data"))),
            _ => reader.part(block, &mut texts, &mut own.images),
        }
    }
    if !texts.is_empty() || !own.tool_calls.is_empty() || !own.images.is_empty() || !results {
        own.content = texts.join("\n");
        messages.push(own);
    }
    Ok(())
}

/// Reads a tool. Refuses a tool without a schema, because Anthropic would run such a tool itself, or its models know
/// the tool by name alone.
fn tool(tool: &Value) -> Result<Tool, Refusal> {
    let parameters = tool.get("input_schema").ok_or_else(|| parts::foreign_tool(&text(tool, "type")))?;
    Ok(Tool { name: text(tool, "name"), description: text(tool, "description"), parameters: parameters.clone() })
}

/// Writes the answer to a request for a token count.
pub(super) fn count(tokens: u64) -> Value {
    json!({"input_tokens": tokens})
}

/// Writes the whole reply as one body.
pub(super) fn body(head: &CallContext, reply: &Reply, finish: &Finish) -> Value {
    let mut blocks = Vec::new();
    if head.thinks && !reply.thoughts.is_empty() {
        blocks.push(json!({
            "type": "thinking", "thinking": reply.reasoning.as_deref().unwrap_or_default(), "signature": head.token(),
        }));
    }
    if let Finish::Refused(text) = finish {
        blocks.push(json!({"type": "text", "text": text}));
    } else if !reply.text.is_empty() || reply.tool_calls.is_empty() {
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
        "stop_reason": stop_reason(finish), "stop_sequence": stop_sequence(finish), "usage": usage(&reply.usage),
    })
}

/// Writes a reply as a stream of content blocks.
pub(super) struct Blocks {
    head: CallContext,
    /// Number of blocks begun so far.
    begun: usize,
    open: Option<ContentBlockKind>,
    has_thought: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentBlockKind {
    Text,
    Thinking,
}

impl Blocks {
    pub(super) fn new(head: CallContext) -> Self {
        Self { head, begun: 0, open: None, has_thought: false }
    }

    fn last(&self) -> usize {
        self.begun.saturating_sub(1)
    }

    /// Ends the open block and begins one of this kind, unless the open block is already of this kind.
    fn within(&mut self, kind: ContentBlockKind) -> String {
        if self.open == Some(kind) {
            return String::new();
        }
        let events = self.close();
        self.open = Some(kind);
        let block = match kind {
            ContentBlockKind::Text => json!({"type": "text", "text": ""}),
            ContentBlockKind::Thinking => {
                self.has_thought = true;
                json!({"type": "thinking", "thinking": "", "signature": ""})
            }
        };
        events + &self.start(&block)
    }

    fn start(&mut self, block: &Value) -> String {
        self.begun += 1;
        event(&json!({"type": "content_block_start", "index": self.last(), "content_block": block}))
    }

    fn delta(&self, delta: &Value) -> String {
        event(&json!({"type": "content_block_delta", "index": self.last(), "delta": delta}))
    }

    fn stop(&self) -> String {
        event(&json!({"type": "content_block_stop", "index": self.last()}))
    }

    fn close(&mut self) -> String {
        match self.open.take() {
            None => String::new(),
            Some(ContentBlockKind::Text) => self.stop(),
            Some(ContentBlockKind::Thinking) => {
                self.delta(&json!({"type": "signature_delta", "signature": self.head.token()})) + &self.stop()
            }
        }
    }
}

impl EventWriter for Blocks {
    /// Writes a usage of zero, because the token counts are known only at the end of the reply, where `end` sends them.
    fn begin(&mut self) -> String {
        event(&json!({"type": "message_start", "message": {
            "id": id(&self.head), "type": "message", "role": "assistant", "model": self.head.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage(&Usage::default()),
        }}))
    }

    fn piece(&mut self, piece: &ReplyPiece) -> String {
        match piece {
            ReplyPiece::Text(text) => {
                self.within(ContentBlockKind::Text) + &self.delta(&json!({"type": "text_delta", "text": text}))
            }
            ReplyPiece::Reasoning(_) if !self.head.thinks => String::new(),
            ReplyPiece::Reasoning(text) => {
                self.within(ContentBlockKind::Thinking)
                    + &self.delta(&json!({"type": "thinking_delta", "thinking": text}))
            }
        }
    }

    fn end(&mut self, reply: &Reply, finish: &Finish) -> String {
        let mut events = String::new();
        if self.head.thinks && !self.has_thought && !reply.thoughts.is_empty() {
            events += &self.within(ContentBlockKind::Thinking);
        }
        if self.begun == 0 && reply.tool_calls.is_empty() {
            // Anthropic's protocol demands at least one block per message.
            events += &self.within(ContentBlockKind::Text);
        }
        if let Finish::Refused(text) = finish {
            events += &self.piece(&ReplyPiece::Text(text.clone()));
        }
        events += &self.close();
        for call in &reply.tool_calls {
            events += &self.start(&json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}));
            events += &self.delta(&json!({"type": "input_json_delta", "partial_json": input(call).to_string()}));
            events += &self.stop();
        }
        let delta = json!({"stop_reason": stop_reason(finish), "stop_sequence": stop_sequence(finish)});
        events += &event(&json!({"type": "message_delta", "delta": delta, "usage": usage(&reply.usage)}));
        events + &event(&json!({"type": "message_stop"}))
    }
}

/// Returns the body of the HTTP answer to a refused request.
pub(super) fn error(refusal: &Refusal) -> Value {
    let kind = match refusal.why {
        RefusalKind::Budget | RefusalKind::Closed => "permission_error",
        // Clients retry after this error type, even in the middle of a stream.
        RefusalKind::Unavailable => "overloaded_error",
        RefusalKind::Invalid | RefusalKind::ContextLength | RefusalKind::Filtered => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": refusal.message}})
}

/// Returns the last event of a stream if the request is refused.
pub(super) fn error_events(refusal: &Refusal) -> String {
    event(&error(refusal))
}

fn event(event: &Value) -> String {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {kind}\ndata: {event}\n\n")
}

fn id(head: &CallContext) -> String {
    format!("msg_{}", head.number)
}

/// Returns a call's arguments as an object, even if the model wrote something else.
fn input(call: &ToolCall) -> Value {
    if call.arguments.is_object() { call.arguments.clone() } else { json!({"malformed_arguments": call.arguments}) }
}

fn stop_sequence(finish: &Finish) -> Option<&str> {
    if let Finish::Stopped(stop) = finish { Some(stop) } else { None }
}

const fn stop_reason(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Stopped(_) => "stop_sequence",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::Refused(_) => "refusal",
    }
}

/// Converts token counts: Anthropic counts cached tokens separately from other input.
fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached.saturating_add(usage.cache_written)),
        "cache_read_input_tokens": usage.cached, "cache_creation_input_tokens": usage.cache_written,
        "output_tokens": usage.output,
    })
}
