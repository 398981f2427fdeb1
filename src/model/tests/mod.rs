//! Tests of models against a real HTTP server, and of scripts and recordings on disk.

mod caching;
mod errors;
mod faulty;
mod files;
mod one_call;
mod opening;
mod providers;
mod server;
mod servers;
mod thoughts;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::open::open_with;
use super::{Message, Model, ModelAccess, Request, Role, Sampling, Tool, ToolCall};

/// The key sent to the test servers; no error may contain it.
const KEY: &str = "sk-very-secret-123456";

/// Returns options for a test server: short waits; 1 dollar per million tokens read, 10 per million written.
fn options(base_url: &str) -> ModelAccess {
    ModelAccess {
        base_url: Some(base_url.to_owned()),
        price: Some((1.0, 10.0)),
        request_timeout: Duration::from_secs(1),
        retries: 2,
        first_wait: Duration::from_millis(5),
        ..ModelAccess::default()
    }
}

/// Opens a model with every environment variable set to [`KEY`].
fn open_here(spec: &str, options: &ModelAccess) -> Arc<dyn Model> {
    open_with(spec, options, &|_| Some(KEY.to_owned())).unwrap()
}

/// Returns a request from the middle of an attempt: a system message, the task, a call and its result.
fn request() -> Request {
    let mut assistant = Message::new(Role::Assistant, "I look.");
    assistant.tool_calls =
        vec![ToolCall { id: "call-1".into(), name: "list_files".into(), arguments: json!({"path": "."}) }];
    let mut tool = Message::new(Role::Tool, "main.py");
    tool.tool_call_id = Some("call-1".into());
    Request {
        messages: vec![
            Message::new(Role::System, "You are careful."),
            Message::new(Role::User, "List the files."),
            assistant,
            tool,
        ],
        tools: vec![Tool {
            name: "list_files".into(),
            description: "Lists a folder.".into(),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        }]
        .into(),
        sampling: Sampling { temperature: Some(0.5), seed: Some(7), max_tokens: Some(100), ..Sampling::default() },
        call: 1,
        ..Request::default()
    }
}

/// Returns a valid OpenAI body with this text.
fn openai_text(text: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    })
}
