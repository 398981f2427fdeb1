//! Tests that a model's thoughts are sent back as the provider's documentation demands. Anthropic: the blocks are
//! unchanged and come first ("extended thinking with tool use"). Gemini: each signature is on the call that it came
//! with ("thought signatures"). DeepSeek: `reasoning_content` is sent together with the calls ("thinking mode with tool
//! calls").

use serde_json::{Value, json};

use super::providers::events;
use super::server::{CannedAnswer, TestServer};
use super::{open_here, openai_text, options, request};
use crate::agent::Event;
use crate::agent::conversation;
use crate::model::{Message, ModelAccess, ModelError, Reply, Request, Role};

/// Returns the next request: the conversation, this reply as it is read back from a trajectory, and results of the
/// reply's calls.
pub(super) fn next(reply: &Reply) -> Request {
    let mut request = request();
    let event = Event::reply(2, reply, None, std::time::Duration::ZERO, None);
    let recorded: Event = serde_json::from_value(serde_json::to_value(&event).unwrap()).unwrap();
    conversation::take(&mut request.messages, &recorded);
    for call in &reply.tool_calls {
        let result = Message { tool_call_id: Some(call.id.clone()), ..Message::new(Role::Tool, "done") };
        request.messages.push(result);
    }
    request.call += 1;
    request
}

/// Returns the request that is sent to the provider at the step after this answer.
async fn sent_after(spec: &str, version: &str, answer: Value) -> Value {
    let server = TestServer::start(vec![CannedAnswer::ok(answer)]).await;
    let model = open_here(spec, &options(&format!("{}/{version}", server.url)));
    let reply = model.query(&request()).await.unwrap();
    model.query(&next(&reply)).await.unwrap();
    server.requests()[1].body.clone()
}

const SIGNED: [&str; 2] = [
    r#"{"type": "thinking", "thinking": "I think.", "signature": "signed"}"#,
    r#"{"type": "redacted_thinking", "data": "sealed"}"#,
];

fn signed() -> [Value; 2] {
    SIGNED.map(|block| serde_json::from_str(block).unwrap())
}

#[tokio::test]
async fn anthropics_thinking_blocks_are_sent_back_first_and_unchanged() {
    let [thinking, redacted] = signed();
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {"path": "src"}});
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use",
        "content": [thinking, redacted, {"type": "text", "text": "Next."}, call],
        "usage": {"input_tokens": 100, "output_tokens": 200}
    });
    let sent = sent_after("anthropic:claude-m", "v1", body).await;
    let content = sent["messages"][3]["content"].as_array().unwrap();
    assert_eq!(content[..2], signed(), "{sent:#}");
    assert_eq!(content.iter().map(|block| &block["type"]).collect::<Vec<_>>()[2..], ["text", "tool_use"]);
}

#[tokio::test]
async fn the_signatures_of_streamed_thoughts_are_sent_back_with_the_next_request() {
    let event = |kind: &str, rest: Value| {
        let mut event = json!({"type": kind});
        event.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        format!("event: {kind}\ndata: {event}")
    };
    let block =
        |index: u32, block: Value| event("content_block_start", json!({"index": index, "content_block": block}));
    let delta = |index: u32, delta: Value| event("content_block_delta", json!({"index": index, "delta": delta}));
    let stop = |index: u32| event("content_block_stop", json!({ "index": index }));
    let start = json!({"message": {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}});
    let stream = [
        event("message_start", start),
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "I think."})),
        delta(0, json!({"type": "signature_delta", "signature": "signed"})),
        stop(0),
        block(1, signed()[1].clone()),
        stop(1),
        block(2, json!({"type": "tool_use", "id": "a", "name": "list_files", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{}"})),
        stop(2),
        event("message_delta", json!({"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}})),
        event("message_stop", json!({})),
    ];
    let server = TestServer::start(vec![events(&stream.each_ref().map(String::as_str))]).await;
    let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&format!("{}/v1", server.url)) };
    let model = open_here("anthropic:claude-m", &free);
    let (to, _from) = crate::model::pieces();
    let reply = model.stream(&request(), &to).await.unwrap();
    assert_eq!(reply.reasoning.as_deref(), Some("I think."));
    model.stream(&next(&reply), &to).await.unwrap();
    let sent = &server.requests()[1].body;
    assert_eq!(sent["messages"][3]["content"].as_array().unwrap()[..2], signed(), "{sent:#}");
}

#[tokio::test]
async fn geminis_signatures_are_sent_back_with_their_calls() {
    let call = |path: &str, signature: &str| json!({"functionCall": {"name": "list_files", "args": {"path": path}}, "thoughtSignature": signature});
    let body = json!({
        "candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [call("a", "s1"), call("b", "s2")]}}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}
    });
    let sent = sent_after("gemini:gemini-3-pro", "v1beta", body).await;
    let turn = sent["contents"].as_array().unwrap().iter().rfind(|turn| turn["role"] == "model").unwrap();
    let signatures: Vec<&Value> =
        turn["parts"].as_array().unwrap().iter().map(|part| &part["thoughtSignature"]).collect();
    assert_eq!(signatures, [&json!("s1"), &json!("s2")], "{sent:#}");
}

#[tokio::test]
async fn reasoning_content_is_sent_back_only_with_tool_calls() {
    let call = json!({"id": "a", "type": "function", "function": {"name": "list_files", "arguments": "{}"}});
    let reply = |calls: Value| {
        let mut body = openai_text("Next.");
        body["choices"][0]["message"]["reasoning_content"] = json!("I think.");
        body["choices"][0]["message"]["tool_calls"] = calls;
        body
    };
    let sent = sent_after("m", "v1", reply(json!([call]))).await;
    assert_eq!(sent["messages"][4]["reasoning_content"], "I think.", "{sent:#}");
    let sent = sent_after("m", "v1", reply(json!([]))).await;
    assert_eq!(sent["messages"][4].get("reasoning_content"), None, "{sent:#}");
}

/// Returns a reply with a call, and reasoning in this field.
fn reasoned(field: &str) -> Value {
    let call = json!({"id": "a", "type": "function", "function": {"name": "list_files", "arguments": "{}"}});
    let mut body = openai_text("Next.");
    body["choices"][0]["message"][field] = json!("I think.");
    body["choices"][0]["message"]["tool_calls"] = json!([call]);
    body
}

#[tokio::test]
async fn reasoning_is_sent_back_in_the_field_in_which_it_came() {
    let fields = ["reasoning", "reasoning_content"];
    for (field, other) in [(fields[0], fields[1]), (fields[1], fields[0])] {
        let sent = sent_after("m", "v1", reasoned(field)).await;
        let assistant = &sent["messages"][4];
        assert_eq!((&assistant[field], assistant.get(other)), (&json!("I think."), None), "{sent:#}");
        // Except for the name of this field, the conversation is the same.
        let mut without = sent["messages"].clone();
        without[4].as_object_mut().unwrap().remove(field);
        let mut plain = reasoned("nothing");
        plain["choices"][0]["message"]["nothing"] = json!(null);
        assert_eq!(without, sent_after("m", "v1", plain).await["messages"], "{field}");

        // The field is also learned from a stream.
        let delta = json!({"choices": [{"index": 0, "delta": reasoned(field)["choices"][0]["message"]}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
        let stream = events(&[&format!("data: {delta}"), &format!("data: {end}"), "data: [DONE]"]);
        let server = TestServer::start(vec![stream, CannedAnswer::ok(openai_text("ok"))]).await;
        let model = open_here("m", &ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) });
        let (to, _from) = crate::model::pieces();
        let reply = model.stream(&request(), &to).await.unwrap();
        assert_eq!(reply.tool_calls.len(), 1, "{reply:?}");
        model.query(&next(&reply)).await.unwrap();
        assert_eq!(server.requests()[1].body["messages"][4][field], "I think.");
    }
}

#[tokio::test]
async fn a_server_that_refuses_reasoning_is_asked_again_without_it_and_gets_none_later() {
    for field in ["reasoning", "reasoning_content"] {
        let said = format!(
            "'messages.4' : for 'role:assistant' the following must be satisfied[(property '{field}' is unsupported)]"
        );
        let strict = CannedAnswer::status(400, json!({"error": {"message": said, "type": "invalid_request_error"}}));
        let ok = || CannedAnswer::ok(reasoned(field));
        let server = TestServer::start(vec![ok(), strict.clone(), ok(), ok()]).await;
        let model = open_here("m", &options(&server.url));
        let request = next(&model.query(&request()).await.unwrap());
        model.query(&request).await.unwrap();
        model.query(&request).await.unwrap();
        let sent: Vec<bool> =
            server.requests().iter().map(|asked| asked.body["messages"][4].get(field).is_some()).collect();
        assert_eq!(sent, [false, true, false, false], "{field}");
        // If the server refuses the request without reasoning, too, reasoning is still sent in later requests.
        let server = TestServer::start(vec![ok(), strict.clone(), strict, ok()]).await;
        let model = open_here("m", &options(&server.url));
        model.query(&super::request()).await.unwrap();
        assert!(matches!(model.query(&request).await.unwrap_err().error, ModelError::Rejected(_)));
        model.query(&request).await.unwrap();
        assert!(server.requests()[3].body["messages"][4].get(field).is_some(), "{field}");
    }
}

#[tokio::test]
async fn impossibly_large_token_counts_are_a_server_error_and_cost_nothing() {
    for (count, at) in [("prompt_tokens", 1_000_000_000_000_000_000_u64), ("completion_tokens", 2_000_000_000)] {
        let mut body = openai_text("yes");
        body["usage"][count] = json!(at);
        let server = TestServer::start(vec![CannedAnswer::ok(body)]).await;
        let failed = open_here("m", &options(&format!("{}/v1", server.url))).query(&request()).await.unwrap_err();
        assert!(failed.to_string().contains("more than any model can use"), "{failed}");
        assert!(failed.cost.abs() < 1e-12 && server.requests().len() == 1, "{failed:?}");
    }
}
