//! Replies of a broken or hostile server, in every protocol, whole and streamed. Each must end as a failure of the
//! server or as a reply that the conversation can continue from, and must not be charged more than a call can cost.

mod bytes;
mod trees;

use serde_json::{Value, json};

use super::server::{CannedAnswer, TestServer};
use super::thoughts::next;
use super::{open_here, openai_text, options, request};
use crate::model::{Description, Model, ModelAccess, ModelError, QueryFailed, Reply};

/// A protocol under test: how to open a model that uses it, and a good reply with a text and a call.
struct ProtocolCase {
    spec: &'static str,
    path: &'static str,
    description: &'static str,
    whole: Value,
    /// JSON pointer to the list of items that the model wrote.
    items: &'static str,
    usage: &'static str,
    stream: Vec<Value>,
    /// Number of leading events that already contain the whole reply.
    enough: usize,
}

fn protocols() -> [ProtocolCase; 4] {
    [chat(), messages(), responses(), contents()]
}

fn chat() -> ProtocolCase {
    let function = json!({"name": "list_files", "arguments": "{\"path\":\"src\"}"});
    let call = json!({"id": "a", "type": "function", "function": function});
    let mut whole = openai_text("Next.");
    whole["choices"][0]["message"]["tool_calls"] = json!([call]);
    whole["choices"][0]["message"]["reasoning_content"] = json!("Hm.");
    let part = |delta: Value, end: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
    let mut called = call;
    called["index"] = json!(0);
    let stream = vec![
        part(json!({"role": "assistant", "content": "Next."}), json!(null)),
        part(json!({"tool_calls": [called]}), json!(null)),
        part(json!({}), json!("tool_calls")),
        json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 200}}),
        json!("[DONE]"),
    ];
    let items = "/choices/0/message/tool_calls";
    ProtocolCase { spec: "openai:m", path: "/v1", description: "", whole, items, usage: "/usage", stream, enough: 5 }
}

fn messages() -> ProtocolCase {
    let call = json!({"type": "tool_use", "id": "a", "name": "list_files", "input": {"path": "src"}});
    let whole = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use",
        "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Next."}, call],
        "usage": {"input_tokens": 100, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 600, "output_tokens": 200}
    });
    let start = json!({"id": "m", "role": "assistant", "content": [],
        "usage": {"input_tokens": 400, "cache_read_input_tokens": 600, "output_tokens": 1}});
    let block =
        |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
    let stream = vec![
        json!({"type": "message_start", "message": start}),
        block(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "Next."})),
        stop(0),
        block(1, json!({"type": "tool_use", "id": "a", "name": "list_files", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"path\": \"src\"}"})),
        stop(1),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 200}}),
        json!({"type": "message_stop"}),
    ];
    let (spec, path, description) = ("anthropic:claude-m", "/v1", "");
    ProtocolCase { spec, path, description, whole, items: "/content", usage: "/usage", stream, enough: 9 }
}

fn responses() -> ProtocolCase {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "sealed"});
    let text = json!({"type": "message", "id": "m_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Next.", "annotations": []}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "list_files",
        "arguments": "{\"path\":\"src\"}"});
    let whole = json!({"id": "r", "object": "response", "status": "completed", "model": "m",
        "output": [reasoning, text, call],
        "usage": {"input_tokens": 1000, "output_tokens": 200, "total_tokens": 1200,
            "input_tokens_details": {"cached_tokens": 600}, "output_tokens_details": {"reasoning_tokens": 150}}});
    let done =
        |index: u32, item: &Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let begun = json!({"id": "r", "object": "response", "status": "in_progress", "model": "m", "output": []});
    let stream = vec![
        json!({"type": "response.created", "response": begun}),
        done(0, &reasoning),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Next."}),
        done(1, &text),
        json!({"type": "response.output_item.added", "output_index": 2, "item": call}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"}),
        done(2, &call),
        json!({"type": "response.completed", "response": whole}),
    ];
    let (spec, path, description) = ("openai:next", "/v1", "api=responses,reasoning=true");
    ProtocolCase { spec, path, description, whole, items: "/output", usage: "/usage", stream, enough: 8 }
}

fn contents() -> ProtocolCase {
    let call = json!({"functionCall": {"name": "list_files", "args": {"path": "src"}}, "thoughtSignature": "s1"});
    let usage = json!({"promptTokenCount": 1000, "cachedContentTokenCount": 600, "toolUsePromptTokenCount": 10,
        "candidatesTokenCount": 50, "thoughtsTokenCount": 150, "totalTokenCount": 1210});
    let with = |parts: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}]});
    let mut whole = with(json!([{"text": "Hm.", "thought": true}, {"text": "Next."}, call]));
    whole["candidates"][0]["finishReason"] = json!("STOP");
    whole["usageMetadata"] = usage.clone();
    let mut last = with(json!([{"text": ""}]));
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = usage;
    let stream = vec![with(json!([{"text": "Next."}])), with(json!([call])), last];
    let (spec, path, description, items) = ("gemini:gemini-m", "/v1beta", "", "/candidates/0/content/parts");
    ProtocolCase { spec, path, description, whole, items, usage: "/usageMetadata", stream, enough: 3 }
}

impl ProtocolCase {
    /// Returns the events as the bytes of the protocol's stream.
    fn written(events: &[Value]) -> String {
        let written = |event: &Value| match event {
            Value::String(text) => format!("data: {text}\n\n"),
            // If an event's type was changed to another text, the `event:` line names that text, too.
            event => match event["type"].as_str() {
                Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
                None => format!("data: {event}\n\n"),
            },
        };
        events.iter().map(written).collect()
    }

    /// Opens a model at this server with the given price. Streaming needs a price of zero, because replies that cost
    /// money are not streamed from a user's server.
    fn model(&self, server: &TestServer, price: (f64, f64)) -> std::sync::Arc<dyn Model> {
        let description =
            if self.description.is_empty() { Description::default() } else { self.description.parse().unwrap() };
        let at = options(&format!("{}{}", server.url, self.path));
        open_here(self.spec, &ModelAccess { price: Some(price), description, retries: 0, ..at })
    }
}

/// Maximum dollars that a call in these tests may cost: 10 for a million written tokens, up to 0.5 for the question.
const MOST: f64 = 10.5;

/// Describes the defect of an outcome, if any.
fn wrong(outcome: &Result<Reply, QueryFailed>) -> Option<String> {
    let cost = match outcome {
        Ok(reply) => reply.cost,
        Err(failed) => failed.cost,
    };
    if !(0.0..=MOST).contains(&cost) {
        return Some(format!("it costs {cost}"));
    }
    match outcome {
        Ok(reply) => {
            let mut ids: Vec<&str> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            let all = ids.len() == reply.tool_calls.len() && ids.iter().all(|id| !id.is_empty());
            (!all).then(|| format!("calls without an id of their own: {reply:?}"))
        }
        Err(failed) => {
            let said = failed.to_string();
            let clean = matches!(failed.error, ModelError::Unavailable(_)) && said.chars().count() < 1500;
            (!clean).then(|| format!("{:?}: {said}", failed.error))
        }
    }
}

/// Makes one call for each fault, whole or streamed. Returns the number of replies, and a description of each defect.
async fn count_replies(
    protocol: &ProtocolCase,
    faults: Vec<(String, CannedAnswer)>,
    streamed: bool,
) -> (usize, Vec<String>) {
    let server = TestServer::start(vec![CannedAnswer::Close]).await;
    let model = protocol.model(&server, if streamed { (0.0, 0.0) } else { (1.0, 10.0) });
    let (mut replies, mut all) = (0, Vec::new());
    for (what, answer) in faults {
        server.answer_with(answer);
        let outcome = if streamed {
            let (to, _from) = crate::model::pieces();
            model.stream(&request(), &to).await
        } else {
            model.query(&request()).await
        };
        all.extend(wrong(&outcome).map(|wrong| format!("{}, {what}: {wrong}", protocol.spec)));
        if let Ok(reply) = outcome {
            replies += 1;
            if !streamed {
                server.answer_with(CannedAnswer::ok(protocol.whole.clone()));
                let gone_on = model.query(&next(&reply)).await;
                all.extend(
                    gone_on.err().map(|error| format!("{}, {what}: the next call fails: {error}", protocol.spec)),
                );
            }
        }
    }
    (replies, all)
}

/// Checks all faults of one kind in every protocol. Each protocol must have at least `least` faults.
async fn hold(kind: &str, least: usize, faults: impl Fn(&ProtocolCase, bool) -> Vec<(String, CannedAnswer)>) {
    let mut all = Vec::new();
    for protocol in protocols() {
        for streamed in [false, true] {
            let faults = faults(&protocol, streamed);
            let count = faults.len();
            let (replies, wrong) = count_replies(&protocol, faults, streamed).await;
            let way = if streamed { "in a stream" } else { "whole" };
            println!("{kind}, {}, {way}: {count} faults, {replies} replies, {} wrong", protocol.spec, wrong.len());
            assert!(count >= least, "{kind}, {}, {way}: {count}", protocol.spec);
            all.extend(wrong);
        }
    }
    assert!(all.is_empty(), "{} wrong:\n{}", all.len(), all.join("\n"));
}

#[tokio::test]
async fn valid_replies_are_read() {
    for protocol in protocols() {
        let server = TestServer::start(vec![CannedAnswer::ok(protocol.whole.clone())]).await;
        let whole = protocol.model(&server, (1.0, 10.0)).query(&request()).await.unwrap();
        server.answer_with(bytes::events(&ProtocolCase::written(&protocol.stream)));
        let (to, _from) = crate::model::pieces();
        let streamed = protocol.model(&server, (0.0, 0.0)).stream(&request(), &to).await.unwrap();
        for reply in [whole, streamed] {
            assert_eq!((reply.text.as_str(), reply.tool_calls.len()), ("Next.", 1), "{}", protocol.spec);
            assert_eq!(reply.tool_calls[0].arguments, json!({"path": "src"}), "{}", protocol.spec);
            assert!(reply.usage.input >= 1000 && reply.usage.output >= 100, "{}: {:?}", protocol.spec, reply.usage);
        }
    }
}
