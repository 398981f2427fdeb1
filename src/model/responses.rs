//! OpenAI's Responses API: converts a conversation to items, and items to a reply. Items are kept as received,
//! including unknown parts, so that the model can continue its reasoning.
//!
//! Rules, from OpenAI's documentation: nothing is stored at OpenAI (`store` off), so reasoning arrives encrypted and is
//! sent back without its id, before the text or call that it led to. The prompt cache key tells OpenAI which requests
//! share a cached beginning.

use std::sync::{Mutex, MutexGuard, PoisonError};

use genai::chat::{ChatFrameSink, ChatOptions, FrameCtx, RawFrameRef, StopReason};
use serde_json::{Map, Value, json};

use super::features::ModelTarget;
use super::{Message, Reply, Request, Role, Thought, ToolCall, Usage, message_text};

/// Adds to a request what `genai` does not support: the conversation as items, and the option to get encrypted
/// reasoning. Removes a temperature that the model does not accept.
pub(super) fn complete(
    target: &ModelTarget,
    request: &Request,
    options: &mut ChatOptions,
    extra: &mut Map<String, Value>,
) {
    if target.features.reasoning {
        extra.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    if !target.features.sampling {
        options.temperature = None;
    }
    extra.insert("input".to_owned(), Value::Array(items(target, &request.messages)));
}

fn items(target: &ModelTarget, messages: &[Message]) -> Vec<Value> {
    let mut items = Vec::new();
    for message in messages {
        let text = message_text::text(target, message);
        match (message.role, &message.tool_call_id) {
            (Role::System, _) => items.push(json!({"role": "developer", "content": text})),
            (Role::Tool, Some(id)) => {
                let output = content(target, message, &text);
                items.push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
            (Role::User | Role::Tool, _) => {
                items.push(json!({"role": "user", "content": content(target, message, &text)}));
            }
            (Role::Assistant, _) => replied(message, &text, &mut items),
        }
    }
    items
}

/// Returns the text alone, or a list of parts if the message has pictures.
fn content(target: &ModelTarget, message: &Message, text: &str) -> Value {
    if !target.features.images || message.images.is_empty() {
        return json!(text);
    }
    let mut parts = vec![json!({"type": "input_text", "text": text})];
    parts.extend(message.images.iter().map(|image| {
        let address = format!("data:{};base64,{}", image.media_type, image.data);
        json!({"type": "input_image", "detail": "auto", "image_url": address})
    }));
    Value::Array(parts)
}

fn replied(message: &Message, text: &str, items: &mut Vec<Value>) {
    for thought in &message.thoughts {
        if let Thought::Block(block) = thought
            && block["type"] == "reasoning"
        {
            items.push(block.clone());
        }
    }
    if message.tool_calls.is_empty() || !message.content.trim().is_empty() {
        let content = json!([{"type": "output_text", "text": text}]);
        items.push(json!({"type": "message", "role": "assistant", "content": content}));
    }
    for call in &message.tool_calls {
        let arguments = match &call.arguments {
            Value::String(written) => json!({"malformed_arguments": written}).to_string(),
            other => other.to_string(),
        };
        let (id, name) = (&call.id, &call.name);
        items.push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}));
    }
}

/// Parses the reply in the body of a response; returns `None` if the body is not a reply.
pub(super) fn reply(body: &Value) -> Option<Reply> {
    let mut reply = Reply { usage: usage(body), ..Reply::default() };
    let (mut texts, mut thoughts) = (Vec::new(), Vec::new());
    for item in body.get("output")?.as_array()? {
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "message" => texts.extend(texts_of(item, "content")),
            "reasoning" => {
                thoughts.extend(texts_of(item, "summary"));
                thoughts.extend(texts_of(item, "content"));
                let mut block = item.clone();
                if let Some(fields) = block.as_object_mut() {
                    // Nothing is stored at OpenAI, so the item's id would refer to nothing when the item is sent back.
                    fields.remove("id");
                    fields.remove("status");
                }
                // Only encrypted reasoning can be sent back.
                if item.get("encrypted_content").is_some_and(Value::is_string) {
                    reply.thoughts.push(Thought::Block(block));
                }
            }
            "function_call" => {
                let arguments = ToolCall::arguments_in(text("arguments"));
                reply.tool_calls.push(ToolCall { id: text("call_id").into(), name: text("name").into(), arguments });
            }
            _ => {}
        }
    }
    reply.text = texts.concat();
    reply.reasoning = Some(thoughts.join("\n\n")).filter(|text| !text.is_empty());
    Some(reply)
}

fn texts_of<'a>(item: &'a Value, field: &str) -> Vec<&'a str> {
    let parts = item.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
}

/// Returns the text with which the model declines, from the body of a response; empty if the model does not decline.
pub(super) fn refusal(body: &Value) -> String {
    let items = body.get("output").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let parts = items.iter().filter_map(|item| item.get("content")?.as_array()).flatten();
    parts.filter_map(|part| part.get("refusal")?.as_str()).collect::<Vec<_>>().concat()
}

/// Returns why a response is incomplete, as `genai`'s type; `None` if it is complete.
pub(super) fn stop_reason(body: &Value) -> Option<StopReason> {
    match body.pointer("/incomplete_details/reason").and_then(Value::as_str) {
        Some("content_filter") => Some(StopReason::ContentFilter("content_filter".to_owned())),
        Some(reason) => Some(StopReason::MaxTokens(reason.to_owned())),
        None => (body["status"] == "incomplete").then(|| StopReason::MaxTokens("incomplete".to_owned())),
    }
}

/// Collects a streamed response: its items one by one, and its final event, in which some servers leave out the items.
#[derive(Debug, Default)]
pub(super) struct ResponseCollector(Mutex<ResponseStream>);

#[derive(Debug, Default)]
struct ResponseStream {
    items: Vec<Value>,
    response: Option<Map<String, Value>>,
    failed: Option<Value>,
}

impl ResponseCollector {
    fn lock(&self) -> MutexGuard<'_, ResponseStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the failed response, or the error that was sent instead of a response.
    pub(super) fn failed(&self) -> Option<Value> {
        self.lock().failed.take()
    }

    /// Removes and returns the body of the response; `None` if none arrived.
    pub(super) fn body(&self) -> Option<Value> {
        let mut came = self.lock();
        let mut body = came.response.take()?;
        let items = std::mem::take(&mut came.items);
        if !items.is_empty() {
            body.insert("output".to_owned(), Value::Array(items));
        }
        Some(Value::Object(body))
    }
}

impl ChatFrameSink for ResponseCollector {
    fn on_frame(&self, _stream: &FrameCtx, frame: RawFrameRef<'_>) {
        let kinds = ["output_item.done", "response.completed", "response.incomplete", "response.failed", "error"];
        if !kinds.iter().any(|kind| frame.data.contains(kind)) {
            return;
        }
        // Events are untrusted and may be any JSON value.
        let Some(Value::Object(mut event)) = frame.json() else { return };
        let mut came = self.lock();
        match event.get("type").and_then(Value::as_str) {
            Some("response.output_item.done") => came.items.extend(event.remove("item")),
            Some("response.completed" | "response.incomplete") => {
                if let Some(Value::Object(response)) = event.remove("response") {
                    came.response = Some(response);
                }
            }
            Some("response.failed") => came.failed = event.remove("response"),
            Some("error") => {
                // Servers put the error's fields at the top level or inside `error`.
                let error = event.remove("error").filter(Value::is_object);
                came.failed = Some(json!({"error": error.unwrap_or(Value::Object(event))}));
            }
            _ => {}
        }
    }
}

/// Returns the token counts that a response reports.
pub(super) fn usage(body: &Value) -> Usage {
    let count = |pointer: &str| body.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        input: count("/usage/input_tokens"),
        cached: count("/usage/input_tokens_details/cached_tokens"),
        cache_written: count("/usage/input_tokens_details/cache_write_tokens"),
        output: count("/usage/output_tokens"),
        reasoning: count("/usage/output_tokens_details/reasoning_tokens"),
    }
}
