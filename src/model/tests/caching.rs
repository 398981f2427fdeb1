//! Tests what share of a conversation is read from the provider's cache over 30 steps. The caches are simulated by the
//! rules of the providers' documentation.
//!
//! - Anthropic ("Prompt caching"): up to four marks; everything before a mark is written to the cache; from each mark,
//!   the cache is searched back over at most 20 blocks for an earlier write.
//! - OpenAI ("Prompt caching", GPT-5.6 and later): one implicit breakpoint at the end of the newest message, unless the
//!   mode is explicit; a prefix must match exactly up to an earlier breakpoint; calls with the same key go to the same
//!   machine.
//! - Gemini ("Context caching", implicit): the longest prefix shared with an earlier request is cached.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::server::{CannedAnswer, TestServer};
use super::{open_here, options, request};
use crate::model::{Description, Image, Message, ModelAccess, Reply, Request, Role, Thought, ToolCall};

const STEPS: usize = 30;

/// Returns the conversation after `steps` steps. Each step has one call, but every fifth step has twelve.
fn after(steps: usize) -> Request {
    let mut asked = request();
    asked.messages = vec![
        Message::new(Role::System, "You are careful. ".repeat(200)),
        Message::new(Role::User, "Write the function again. ".repeat(300)),
    ];
    for step in 0..steps {
        let calls = if step % 5 == 4 { 12 } else { 1 };
        let mut said = Message::new(Role::Assistant, format!("Step {step}."));
        for call in 0..calls {
            let arguments = json!({"path": format!("file-{call}")});
            said.tool_calls.push(ToolCall { id: format!("c{step}-{call}"), name: "list_files".into(), arguments });
        }
        let calls = said.tool_calls.clone();
        asked.messages.push(said);
        for call in calls {
            let shown = format!("what {} showed: {}", call.id, "a line of code\n".repeat(40));
            asked.messages.push(Message { tool_call_id: Some(call.id), ..Message::new(Role::Tool, shown) });
        }
    }
    asked
}

async fn sent(spec: &str, version: &str, describe: &str, answer: Value) -> Vec<Value> {
    let server = TestServer::start(vec![CannedAnswer::ok(answer)]).await;
    let description = if describe.is_empty() { Description::default() } else { describe.parse().unwrap() };
    let options = ModelAccess { description, ..options(&format!("{}/{version}", server.url)) };
    let model = open_here(spec, &options);
    for step in 0..STEPS {
        model.query(&after(step)).await.unwrap();
    }
    server.requests().into_iter().map(|asked| asked.body).collect()
}

/// Returns the share of all requests' bytes that is read from the cache. `cached` returns the number of cached parts at
/// the start of a request.
fn share(requests: &[Vec<Value>], mut cached: impl FnMut(usize, &[Value]) -> usize) -> f64 {
    let size = |parts: &[Value]| parts.iter().map(|part| part.to_string().len()).sum::<usize>();
    let (mut all, mut read) = (0, 0);
    for (number, parts) in requests.iter().enumerate() {
        all += size(parts);
        read += size(&parts[..cached(number, parts)]);
    }
    read as f64 / all as f64
}

fn key(parts: &[Value]) -> String {
    json!(parts).to_string()
}

/// Removes the field `cache_control` of a content block. Also returns whether the block had this field.
fn unmarked(block: &Value) -> (Value, bool) {
    let mut block = block.clone();
    let marked = block.as_object_mut().is_some_and(|block| block.remove("cache_control").is_some());
    (block, marked)
}

#[tokio::test]
async fn nine_tenths_of_a_long_conversation_are_read_from_anthropics_cache() {
    let answer = json!({"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 10, "output_tokens": 1}});
    let bodies = sent("anthropic:claude-m", "v1", "", answer).await;
    let mut marks = Vec::new();
    let mut requests = Vec::new();
    for body in &bodies {
        let blocks = |value: &Value| match value {
            Value::Array(blocks) => blocks.clone(),
            other => vec![json!({"type": "text", "text": other})],
        };
        let said = body["messages"].as_array().unwrap().iter().flat_map(|message| blocks(&message["content"]));
        let all = blocks(&body["tools"]).into_iter().chain(blocks(&body["system"])).chain(said);
        let (parts, marked): (Vec<Value>, Vec<bool>) = all.map(|block| unmarked(&block)).unzip();
        assert!(marked.iter().filter(|marked| **marked).count() <= 4, "it refuses more marks");
        marks.push(marked);
        requests.push(parts);
    }
    let mut written = HashSet::new();
    let share = share(&requests, |number, parts| {
        let places = || marks[number].iter().enumerate().filter(|(_, marked)| **marked).map(|(place, _)| place);
        let found =
            |mark: usize| (mark.saturating_sub(20)..=mark).rev().find(|end| written.contains(&key(&parts[..=*end])));
        let hit = places().filter_map(found).max().map_or(0, |end| end + 1);
        written.extend(places().map(|place| key(&parts[..=place])));
        hit
    });
    println!("Anthropic: {share:.3}");
    assert!(share >= 0.9, "{share}");
}

#[tokio::test]
async fn nine_tenths_of_a_long_conversation_are_read_from_openais_cache() {
    let chat = super::openai_text("ok");
    let of_responses = json!({"id": "r", "object": "response", "status": "completed", "model": "m",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}],
        "usage": {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}});
    for (describe, answer, items) in [("", chat, "messages"), ("api=responses,reasoning=true", of_responses, "input")] {
        let bodies = sent("openai:gpt-5.6", "v1", describe, answer).await;
        let requests: Vec<Vec<Value>> = bodies
            .iter()
            .map(|body| {
                assert_ne!(body["prompt_cache_options"]["mode"], "explicit", "nothing would be written");
                let key = &body["prompt_cache_key"];
                assert!(items == "messages" || *key == bodies[0]["prompt_cache_key"] && key.is_string(), "{key}");
                let mut parts = vec![body["tools"].clone()];
                parts.extend(body[items].as_array().unwrap().clone());
                parts
            })
            .collect();
        let mut written = HashSet::new();
        let share = share(&requests, |_, parts| {
            let hit = (1..=parts.len()).rev().find(|end| written.contains(&key(&parts[..*end]))).unwrap_or(0);
            written.insert(key(parts));
            hit
        });
        println!("OpenAI, {items}: {share:.3}");
        assert!(share >= 0.9, "{items}: {share}");
    }
}

#[tokio::test]
async fn nine_tenths_of_a_long_conversation_are_read_from_geminis_cache() {
    let answer = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11}});
    let bodies = sent("gemini:gemini-m", "v1beta", "", answer).await;
    let requests: Vec<Vec<Value>> = bodies
        .iter()
        .map(|body| {
            let mut parts = vec![body["systemInstruction"].clone(), body["tools"].clone()];
            parts.extend(body["contents"].as_array().unwrap().clone());
            parts
        })
        .collect();
    let share = share(&requests, |number, parts| {
        let common = |earlier: &Vec<Value>| earlier.iter().zip(parts).take_while(|(one, other)| one == other).count();
        requests[..number].iter().map(common).max().unwrap_or(0)
    });
    println!("Gemini: {share:.3}");
    assert!(share >= 0.9, "{share}");
}

/// OpenAI ("Reasoning models", "Keeping reasoning items in context"): encrypted reasoning is sent back unchanged,
/// before the calls that it led to. The items' ids are left out, because OpenAI stores nothing under these ids.
#[tokio::test]
async fn a_request_of_the_responses_api_sends_items_and_returns_encrypted_reasoning_unchanged() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "sealed"});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "list_files", "arguments": "{\"path\":\"src\"}"});
    let body = json!({"id": "r", "object": "response", "status": "completed", "model": "m", "output": [reasoning, call],
        "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 60}, "output_tokens_details": {"reasoning_tokens": 15}}});
    let server = TestServer::start(vec![CannedAnswer::ok(body)]).await;
    let description = "api=responses,reasoning=true,images=true,sampling=false".parse().unwrap();
    let model = open_here("openai:next", &ModelAccess { description, ..options(&format!("{}/v1", server.url)) });
    let mut asked = request();
    asked.one_call = true;
    asked.sampling.effort = Some(crate::model::Effort::High);
    let reply: Reply = model.query(&asked).await.unwrap();
    assert_eq!((reply.reasoning.as_deref(), reply.usage.cached, reply.usage.reasoning), (Some("Hm."), 60, 15));
    let sealed = json!({"type": "reasoning", "summary": reasoning["summary"], "encrypted_content": "sealed"});
    assert_eq!(reply.thoughts, [Thought::Block(sealed.clone())]);
    assert_eq!(reply.tool_calls[0].arguments, json!({"path": "src"}));

    let mut said = Message::new(Role::Assistant, "");
    (said.tool_calls, said.thoughts) = (reply.tool_calls, reply.thoughts);
    let image = Image { media_type: "image/png".into(), data: "iVBORw==".into() };
    let result = Message { tool_call_id: Some("c1".into()), images: vec![image], ..Message::new(Role::Tool, "done") };
    asked.messages.extend([said, result]);
    model.query(&asked).await.unwrap();
    let sent = &server.requests()[1];
    assert!(sent.head.starts_with("post /v1/responses "), "{}", sent.head);
    let items = sent.body["input"].as_array().unwrap();
    let last: Vec<&Value> = items.iter().rev().take(3).rev().collect();
    assert_eq!(*last[0], sealed);
    assert_eq!((&last[1]["type"], &last[1]["call_id"]), (&json!("function_call"), &json!("c1")));
    assert_eq!(last[2]["output"][1]["image_url"], "data:image/png;base64,iVBORw==");
    assert_eq!((&sent.body["store"], &sent.body["include"][0]), (&json!(false), &json!("reasoning.encrypted_content")));
    assert_eq!((&sent.body["reasoning"]["effort"], &sent.body["parallel_tool_calls"]), (&json!("high"), &json!(false)));
    assert_eq!((sent.body.get("seed"), sent.body.get("temperature")), (None, None), "it takes neither");
    assert_eq!(sent.body["tools"][0]["name"], "list_files");
}

#[tokio::test]
async fn models_with_vision_get_a_picture_and_other_models_get_a_note_instead() {
    let image = Image { media_type: "image/png".into(), data: "iVBORw==".into() };
    let mut asked = request();
    asked.messages.push(Message { images: vec![image], ..Message::new(Role::User, "see") });
    let anthropic = json!({"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 10, "output_tokens": 1}});
    for (spec, describe, answer, sees) in [
        ("anthropic:claude-m", "", anthropic, true),
        ("openai:m", "images=true", super::openai_text("ok"), true),
        ("gemini:gemini-m", "images=true", super::one_call::gemini_text(), true),
        ("openai:m", "images=false", super::openai_text("ok"), false),
    ] {
        let server = TestServer::start(vec![CannedAnswer::ok(answer)]).await;
        let description = if describe.is_empty() { Description::default() } else { describe.parse().unwrap() };
        let model = open_here(spec, &ModelAccess { description, ..options(&format!("{}/v1", server.url)) });
        model.query(&asked).await.unwrap();
        let sent = server.requests()[0].body.to_string();
        assert_eq!((sent.contains("iVBORw=="), sent.contains("a picture stood here")), (sees, !sees), "{spec} {sent}");
        assert_eq!(model.leaves_out(&asked).is_empty(), sees, "{spec}");
    }
}

/// Anthropic ("Tool use", tool results) accepts pictures in the result of a call; the other providers accept pictures
/// only in user messages.
#[tokio::test]
async fn pictures_in_tool_results_are_sent_where_each_provider_takes_them() {
    let mut asked = request();
    asked.messages[3].images = vec![Image { media_type: "image/png".into(), data: "iVBORw==".into() }];
    let anthropic = json!({"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 10, "output_tokens": 1}});
    for (spec, answer, turns) in [
        ("anthropic:claude-m", anthropic, "messages"),
        ("openai:m", super::openai_text("ok"), "messages"),
        ("gemini:gemini-m", super::one_call::gemini_text(), "contents"),
    ] {
        let server = TestServer::start(vec![CannedAnswer::ok(answer)]).await;
        let description = "images=true".parse().unwrap();
        let model = open_here(spec, &ModelAccess { description, ..options(&format!("{}/v1", server.url)) });
        model.query(&asked).await.unwrap();
        let sent = server.requests()[0].body[turns].clone();
        let of_result = |part: &&Value| {
            ["tool_result", "functionResponse"].iter().any(|name| part.to_string().contains(name))
                || part["role"] == "tool"
        };
        let mut parts: Vec<Value> = Vec::new();
        for turn in sent.as_array().unwrap() {
            let inner =
                turn["parts"].as_array().or_else(|| turn["content"].as_array()).filter(|_| turn["role"] != "tool");
            parts.extend(inner.cloned().unwrap_or_else(|| vec![turn.clone()]));
        }
        let shown: Vec<&Value> = parts.iter().filter(|part| part.to_string().contains("iVBORw==")).collect();
        assert_eq!(shown.len(), 1, "{spec}: {sent:#}");
        assert_eq!(shown.iter().any(of_result), spec.starts_with("anthropic"), "{spec}: {sent:#}");
    }
}
