//! Tests of request options: one call per reply, effort, probes; and of how the results of several calls are sent.
//!
//! The rules are the providers' own. OpenAI ("Function calling", parallel function calling):
//! `parallel_tool_calls: false` gives zero or one call, is refused without tools, and is always refused by the `o`
//! models. Anthropic ("Parallel tool use"): `disable_parallel_tool_use` in `tool_choice`; the results of all calls of a
//! reply are in the one message after it. Gemini ("Parallel function calling"): the next turn has as many function
//! responses as there were calls; parallel calls cannot be switched off.

use serde_json::{Value, json};

use super::server::{CannedAnswer, TestServer};
use super::{open_here, openai_text, options, request};
use crate::model::{Effort, Message, ModelAccess, Request, Role, ToolCall};

/// Returns a conversation whose last reply made two calls, both answered.
fn two_calls() -> Request {
    let mut request = request();
    let call = |id: &str| ToolCall { id: id.into(), name: "list_files".into(), arguments: json!({"path": id}) };
    let result = |id: &str| Message { tool_call_id: Some(id.into()), ..Message::new(Role::Tool, format!("of {id}")) };
    request.messages.push(Message { tool_calls: vec![call("x"), call("y")], ..Message::new(Role::Assistant, "") });
    request.messages.extend([result("x"), result("y")]);
    request
}

fn anthropic_text() -> Value {
    json!({"content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 1, "output_tokens": 1}})
}

pub(super) fn gemini_text() -> Value {
    json!({
        "candidates": [{"content": {"parts": [{"text": "ok"}], "role": "model"}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1},
    })
}

async fn sent(spec: &str, reply: Value, request: &Request) -> Value {
    let server = TestServer::start(vec![CannedAnswer::ok(reply)]).await;
    open_here(spec, &options(&format!("{}/v1", server.url))).query(request).await.unwrap();
    server.requests()[0].body.clone()
}

#[tokio::test]
async fn the_results_of_several_tool_calls_are_sent_in_the_places_that_each_provider_requires() {
    let sent_to_openai = sent("openai:m", openai_text("ok"), &two_calls()).await;
    let results: Vec<&Value> = sent_to_openai["messages"].as_array().unwrap()[5..].iter().collect();
    assert_eq!(results.iter().map(|said| &said["tool_call_id"]).collect::<Vec<_>>(), ["x", "y"]);

    let messages = sent("anthropic:claude-m", anthropic_text(), &two_calls()).await["messages"].clone();
    let messages = messages.as_array().unwrap();
    for (place, said) in messages.iter().enumerate() {
        let ids = |said: &Value, kind: &str, id: &str| -> Vec<Value> {
            let blocks = said["content"].as_array().cloned().unwrap_or_default();
            blocks.into_iter().filter(|block| block["type"] == kind).map(|block| block[id].clone()).collect()
        };
        let called = ids(said, "tool_use", "id");
        if !called.is_empty() {
            assert_eq!(ids(&messages[place + 1], "tool_result", "tool_use_id"), called, "{messages:#?}");
        }
    }
    assert_eq!(messages.len(), 5, "{messages:#?}");
    assert!(messages[4]["content"][1]["cache_control"].is_object(), "the mark is on the newest block: {messages:#?}");

    let contents = sent("gemini:gemini-m", gemini_text(), &two_calls()).await["contents"].clone();
    let last = contents.as_array().unwrap().last().unwrap();
    let responses = last["parts"].as_array().unwrap().iter().filter(|part| part["functionResponse"].is_object());
    assert_eq!(responses.count(), 2, "{contents:#}");
}

#[tokio::test]
async fn providers_that_can_turn_parallel_calls_off_are_asked_for_one_call() {
    let one = Request { one_call: true, ..request() };
    let without_tools = Request { tools: Vec::new().into(), ..one.clone() };
    let asked = sent("openai:m", openai_text("ok"), &one).await;
    assert_eq!(asked["parallel_tool_calls"], false, "{asked:#}");
    for (spec, request) in [("openai:m", &request()), ("openai:m", &without_tools), ("openai:o4-mini", &one)] {
        let asked = sent(spec, openai_text("ok"), request).await;
        assert_eq!(asked.get("parallel_tool_calls"), None, "{spec}: {asked:#}");
    }
    let asked = sent("anthropic:claude-m", anthropic_text(), &one).await;
    assert_eq!(asked["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}), "{asked:#}");
    let asked = sent("anthropic:claude-m", anthropic_text(), &request()).await;
    assert_eq!(asked.get("tool_choice"), None, "{asked:#}");
    let asked = sent("gemini:gemini-m", gemini_text(), &one).await;
    assert!(asked["contents"].is_array());
}

/// The effort goes into each provider's own field. OpenAI: `reasoning_effort` ("Reasoning models"). Anthropic:
/// `output_config.effort` for models that have it; for others a thinking budget, less than `max_tokens` and without a
/// temperature ("Extended thinking"). Gemini: `thinkingLevel` or `thinkingBudget` ("Gemini thinking").
#[tokio::test]
async fn an_effort_is_sent_in_each_providers_own_field() {
    let with = |effort| {
        let mut asked = request();
        asked.sampling.effort = Some(effort);
        asked
    };
    // The effort is also sent for a model that this program does not know, and together with the limit of one call per
    // reply.
    for spec in ["openai:gpt-5", "next-months-model"] {
        let both = Request { one_call: true, ..with(Effort::High) };
        let asked = sent(spec, openai_text("ok"), &both).await;
        assert_eq!(
            (&asked["reasoning_effort"], &asked["parallel_tool_calls"]),
            (&json!("high"), &json!(false)),
            "{spec}"
        );
    }
    let asked = sent("anthropic:claude-sonnet-4-5", anthropic_text(), &with(Effort::Medium)).await;
    let budget = asked["thinking"]["budget_tokens"].as_u64().unwrap();
    assert!(budget >= 1024 && budget < asked["max_tokens"].as_u64().unwrap(), "{asked:#}");
    assert_eq!(asked.get("temperature"), None, "{asked:#}");
    let asked = sent("anthropic:claude-opus-4-5", anthropic_text(), &with(Effort::Medium)).await;
    assert_eq!(asked["output_config"]["effort"], "medium", "{asked:#}");
    let asked = sent("anthropic:claude-sonnet-4-5", anthropic_text(), &with(Effort::None)).await;
    assert_eq!((asked.get("thinking"), &asked["temperature"]), (None, &json!(0.5)), "{asked:#}");
    let asked = sent("gemini:gemini-2.5-flash", gemini_text(), &with(Effort::Low)).await;
    assert!(asked["generationConfig"]["thinkingConfig"]["thinkingBudget"].as_u64().unwrap() > 0, "{asked:#}");
    let asked = sent("gemini:gemini-2.5-flash", gemini_text(), &with(Effort::None)).await;
    assert_eq!(asked["generationConfig"]["thinkingConfig"]["thinkingBudget"], 0, "{asked:#}");
    let asked = sent("gemini:gemini-3-pro-preview", gemini_text(), &with(Effort::High)).await;
    assert_eq!(asked["generationConfig"]["thinkingConfig"]["thinkingLevel"], "HIGH", "{asked:#}");
}

/// Anthropic ("Extended thinking"): `budget_tokens` must be at least 1024 and less than `max_tokens`.
#[tokio::test]
async fn an_effort_that_becomes_a_budget_leaves_room_for_the_reply() {
    let sent = async |most: u32, foreign: bool, affordable: Option<u32>| {
        let mut asked = Request { foreign, affordable, ..request() };
        asked.sampling.max_tokens = Some(most);
        asked.sampling.effort = Some(Effort::High);
        let body = sent("anthropic:claude-sonnet-4-5", anthropic_text(), &asked).await;
        (body["thinking"]["budget_tokens"].as_u64(), body["max_tokens"].as_u64().unwrap())
    };
    assert_eq!(sent(4096, false, None).await, (Some(24_000), 28_096));
    // If an external agent or the remaining money limits the reply, the limit includes the tokens for thinking.
    assert_eq!(sent(8192, true, None).await, (Some(8192 - 256), 8192));
    assert_eq!(sent(4096, false, Some(3000)).await, (Some(3000 - 256), 3000));
    assert_eq!(sent(500, true, None).await, (None, 500), "too little for any thinking");
}

#[tokio::test]
async fn the_anthropic_models_that_take_an_effort_are_those_to_which_genai_sends_one() {
    for model in [
        "claude-3-7-sonnet-latest",
        "claude-opus-4-20250514",
        "claude-opus-4-1-20250805",
        "claude-opus-4-5",
        "claude-opus-4-6",
        "claude-opus-5",
        "claude-sonnet-4-5",
        "claude-sonnet-4-6",
        "claude-sonnet-5",
        "claude-haiku-4-5-20251001",
        "claude-haiku-5",
        "claude-fable-5",
        "claude-m",
        "us.anthropic.claude-opus-4-6-v1",
        "us.anthropic.claude-sonnet-4-5-v1",
    ] {
        let mut asked = request();
        asked.sampling.effort = Some(Effort::Medium);
        let body = sent(&format!("anthropic:{model}"), anthropic_text(), &asked).await;
        let (has_effort, has_budget) =
            (body["output_config"]["effort"].is_string(), body["thinking"]["budget_tokens"].is_u64());
        let takes = crate::model::thinking::takes_effort(model);
        assert_eq!((has_effort, has_budget), (takes, !takes), "{model}: {body:#}");
    }
}

#[tokio::test]
async fn the_test_call_of_a_probe_asks_the_named_model_the_question() {
    for (api, question) in [("chat", "/messages/0/content"), ("responses", "/input/0/content")] {
        let list = CannedAnswer::ok(json!({"data": [{"id": "a"}, {"id": "b"}]}));
        let server = TestServer::start(vec![list]).await;
        let description = format!("api={api}").parse().unwrap();
        let options = ModelAccess { description, ..options(&format!("{}/v1", server.url)) };
        // Ignore the outcome: the list of models lacks the model's name, so `probe` makes a test call, which this
        // server also answers with the list.
        let _ = open_here("qwen-max", &options).probe().await;
        let asked = server.requests().into_iter().find(|asked| asked.head.starts_with("post")).unwrap().body;
        assert_eq!(asked["model"], "qwen-max", "{asked:#}");
        assert_eq!(asked.pointer(question), Some(&json!("Reply with: ok")), "{asked:#}");
    }
}

#[tokio::test]
async fn a_probe_of_a_free_model_fails_only_if_no_server_listens() {
    let free = |url: &str| ModelAccess { price: Some((0.0, 0.0)), ..options(url) };
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    open_here("m", &free(&url)).probe().await.unwrap();
    drop(server);
    let error = open_here("m", &free(&url)).probe().await.unwrap_err().to_string();
    assert!(error.contains("nothing answers at `127.0.0.1:"), "{error}");
}
