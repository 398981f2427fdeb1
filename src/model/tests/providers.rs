//! Tests of the requests sent to each provider, and of how its answers are read.

use std::time::Duration;

use genai::adapter::AdapterKind;
use serde_json::{Value, json};

use super::server::{CannedAnswer, TestServer};
use super::{KEY, open_here, openai_text, options, request};
use crate::model::features::ModelTarget;
use crate::model::price::Price;
use crate::model::provider::{Provider, ProviderSettings};
use crate::model::{
    Description, Effort, IncomingPieces, Message, Model, ModelAccess, ModelError, ReplyPiece, Request, Role, ToolCall,
    Usage, pieces,
};

#[tokio::test]
async fn requests_to_openai_and_its_replies_have_openais_format() {
    let body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m-2026",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Next.", "reasoning_content": "I think.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "list_files", "arguments": "{\"path\": \"src\"}"}},
                {"id": "b", "type": "function", "function": {"name": "no_such_tool", "arguments": "{}"}}
            ]}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200,
            "prompt_tokens_details": {"cached_tokens": 600},
            "completion_tokens_details": {"reasoning_tokens": 150}}
    });
    let server = TestServer::start(vec![CannedAnswer::ok(body)]).await;
    let model = open_here("openai:m", &options(&format!("{}/v1", server.url)));
    let reply = model.query(&request()).await.unwrap();

    assert_eq!(reply.text, "Next.");
    assert_eq!(reply.reasoning.as_deref(), Some("I think."));
    assert_eq!(
        reply.tool_calls,
        [
            ToolCall { id: "a".into(), name: "list_files".into(), arguments: json!({"path": "src"}) },
            ToolCall { id: "b".into(), name: "no_such_tool".into(), arguments: json!({}) },
        ]
    );
    assert_eq!(reply.usage, Usage { input: 1000, cached: 600, cache_written: 0, output: 200, reasoning: 150 });
    assert!((reply.cost - 0.003).abs() < 1e-12, "1000 tokens at $1 and 200 at $10 a million: {}", reply.cost);

    let asked = &server.requests()[0];
    assert!(asked.head.starts_with("post /v1/chat/completions http/1.1"), "{}", asked.head);
    assert!(asked.head.contains(&format!("authorization: bearer {KEY}")), "{}", asked.head);
    let sent = &asked.body;
    assert_eq!(sent["model"], "m");
    assert_eq!((&sent["temperature"], &sent["seed"], &sent["max_tokens"]), (&json!(0.5), &json!(7), &json!(100)));
    assert_eq!(sent["messages"][0], json!({"role": "system", "content": "You are careful."}));
    assert_eq!(sent["messages"][2]["tool_calls"][0]["function"]["arguments"], r#"{"path":"."}"#);
    assert_eq!(sent["messages"][3], json!({"role": "tool", "content": "main.py", "tool_call_id": "call-1"}));
    assert_eq!(sent["tools"][0]["function"]["name"], "list_files");
    assert_eq!(sent["tools"][0]["function"]["parameters"]["required"], json!(["path"]));
}

#[tokio::test]
async fn requests_to_anthropic_and_its_replies_have_anthropics_format() {
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "I think.", "signature": "s"},
            {"type": "text", "text": "Next."},
            {"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {"path": "src"}}
        ],
        "usage": {"input_tokens": 100, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 600, "output_tokens": 200}
    });
    let server = TestServer::start(vec![CannedAnswer::ok(body)]).await;
    let model = open_here("anthropic:claude-m", &options(&format!("{}/v1", server.url)));
    let reply = model.query(&request()).await.unwrap();

    assert_eq!((reply.text.as_str(), reply.reasoning.as_deref()), ("Next.", Some("I think.")));
    let call = ToolCall { id: "toolu_1".into(), name: "list_files".into(), arguments: json!({"path": "src"}) };
    assert_eq!(reply.tool_calls, [call]);
    assert_eq!(reply.usage, Usage { input: 1000, cached: 600, cache_written: 300, output: 200, reasoning: 0 });

    let asked = &server.requests()[0];
    assert!(asked.head.starts_with("post /v1/messages http/1.1"), "{}", asked.head);
    assert!(asked.head.contains(&format!("x-api-key: {KEY}")), "{}", asked.head);
    let sent = &asked.body;
    assert_eq!((&sent["model"], &sent["max_tokens"]), (&json!("claude-m"), &json!(100)));
    assert!(sent["system"].to_string().contains("You are careful."), "{sent}");
    assert_eq!(sent["messages"][1]["content"][1]["input"], json!({"path": "."}));
    let result = &sent["messages"][2]["content"][0];
    assert_eq!((&result["type"], &result["tool_use_id"]), (&json!("tool_result"), &json!("call-1")));
    assert_eq!(result["cache_control"]["type"], "ephemeral", "the history is cached up to the newest message: {sent}");
}

#[tokio::test]
async fn requests_to_gemini_and_its_replies_have_geminis_format() {
    let body = json!({
        "candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
            {"text": "I think.", "thought": true},
            {"text": "Next."},
            {"functionCall": {"name": "list_files", "args": {"path": "src"}}}
        ]}}],
        "usageMetadata": {"promptTokenCount": 1000, "cachedContentTokenCount": 600, "candidatesTokenCount": 50,
            "thoughtsTokenCount": 150, "totalTokenCount": 1200}
    });
    let server = TestServer::start(vec![CannedAnswer::ok(body)]).await;
    let model = open_here("gemini:gemini-m", &options(&format!("{}/v1beta", server.url)));
    let reply = model.query(&request()).await.unwrap();

    assert_eq!((reply.text.as_str(), reply.reasoning.as_deref()), ("Next.", Some("I think.")));
    assert_eq!(reply.tool_calls.len(), 1);
    assert_eq!(
        (reply.tool_calls[0].name.as_str(), &reply.tool_calls[0].arguments),
        ("list_files", &json!({"path": "src"}))
    );
    assert_eq!(reply.usage, Usage { input: 1000, cached: 600, cache_written: 0, output: 200, reasoning: 150 });

    let asked = &server.requests()[0];
    assert!(asked.head.starts_with("post /v1beta/models/gemini-m:generatecontent"), "{}", asked.head);
    assert!(asked.head.contains(&format!("x-goog-api-key: {KEY}")), "{}", asked.head);
    let sent = &asked.body;
    assert!(sent["systemInstruction"].to_string().contains("You are careful."), "{sent}");
    assert_eq!(sent["generationConfig"]["seed"], 7);
    assert_eq!(sent["contents"][2]["parts"][0]["functionResponse"]["name"], "list_files", "{sent}");
}

#[tokio::test]
async fn the_thoughts_of_a_gemini_reply_without_text_are_counted() {
    let body = json!({
        "candidates": [{"finishReason": "MAX_TOKENS", "content": {"role": "model"}}],
        "usageMetadata": {"promptTokenCount": 10, "thoughtsTokenCount": 90, "totalTokenCount": 100}
    });
    let server = TestServer::start(vec![CannedAnswer::ok(body)]).await;
    let reply =
        open_here("gemini:gemini-m", &options(&format!("{}/v1beta", server.url))).query(&request()).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.usage.output, reply.usage.reasoning), ("", 90, 90));
}

#[tokio::test]
async fn arguments_that_are_not_json_are_kept_verbatim() {
    let body = json!({
        "choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "write_file", "arguments": "{\"path\": \"x"}},
            {"type": "function", "function": {"name": "list_files", "arguments": {"path": "."}}},
            {"id": "c", "function": {"name": "finish"}}
        ]}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 3}}
    });
    let server = TestServer::start(vec![CannedAnswer::ok(body)]).await;
    let reply = open_here("m", &options(&server.url)).query(&request()).await.unwrap();
    let calls: Vec<_> = reply.tool_calls.iter().map(|call| (call.id.as_str(), &call.arguments)).collect();
    assert_eq!(calls, [("a", &json!("{\"path\": \"x")), ("c00001000", &json!({"path": "."})), ("c", &json!({}))]);
    assert_eq!(reply.usage, Usage { input: 5, cached: 3, output: 6, ..Usage::default() });
    assert_eq!(server.requests().len(), 1, "a malformed call is the model's doing and not asked for again");
}

#[tokio::test]
async fn arguments_of_malformed_calls_are_sent_back_as_an_object_because_providers_demand_one() {
    let mut again = request();
    again.messages[2].content = String::new();
    again.messages[2].tool_calls[0].arguments = json!("{\"path\": \"x");
    again.messages.push(Message::new(Role::User, " "));
    let ok = json!({"content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 1, "output_tokens": 1}});
    let server = TestServer::start(vec![CannedAnswer::ok(ok)]).await;
    open_here("anthropic:m", &options(&server.url)).query(&again).await.unwrap();
    let sent = &server.requests()[0].body;
    let parts = sent["messages"][1]["content"].as_array().unwrap();
    assert_eq!(parts.len(), 1, "no empty text beside the call: {sent}");
    assert_eq!(parts[0]["input"], json!({"malformed_arguments": "{\"path\": \"x"}));
    assert!(sent["messages"][3].to_string().contains("(empty)"), "no message without text: {sent}");
}

#[tokio::test]
async fn text_between_think_tags_in_a_reply_is_stored_as_reasoning() {
    let server = TestServer::start(vec![CannedAnswer::ok(openai_text("<think>Hm.</think>\n\nYes."))]).await;
    let reply = open_here("m", &options(&server.url)).query(&Request::default()).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.reasoning.as_deref()), ("Yes.", Some("Hm.")));
}

#[tokio::test]
async fn tags_in_the_code_of_a_reply_are_kept() {
    let code = "```python\ntext.split(\"<think>\")[1].split(\"</think>\")[0]\n```";
    let server = TestServer::start(vec![CannedAnswer::ok(openai_text(code))]).await;
    let reply = open_here("m", &options(&server.url)).query(&Request::default()).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.reasoning), (code, None));
}

#[tokio::test]
async fn reasoning_without_an_opening_tag_is_neither_text_nor_streamed_as_text_again() {
    let text = "I could call `rm`.\n</think>\n\nYes.";
    let event = format!("data: {}", json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
    let end = r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#;
    let stream = events(&[&event, end, "data: [DONE]"]);
    let mut broken = openai_text(text);
    broken["choices"][0]["message"]["tool_calls"] = json!([{"id": "a", "function": {"name": "ls", "arguments": "{"}}]);
    let whole = [CannedAnswer::ok(openai_text(text)), CannedAnswer::ok(broken)];
    let server = TestServer::start([vec![stream], whole.to_vec()].concat()).await;
    let model = open_here("m", &ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) });
    for streams in [true, false, false] {
        let (to, _from) = pieces();
        let reply = model.stream(&request(), &to).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.reasoning.as_deref()), ("Yes.", Some("I could call `rm`.")));
        let asked = server.requests().pop().unwrap().body;
        assert_eq!(asked.get("stream").is_some_and(|stream| stream == true), streams);
    }
}

#[tokio::test]
async fn streamed_reasoning_between_tags_does_not_become_pieces_of_text() {
    let part = |text: &str| format!("data: {}", json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
    let end = r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#;
    for (texts, text, thoughts) in
        [(["<th", "ink>Hm.</think>\n", "Yes."], "Yes.", Some("Hm.")), (["<", "p>", "Yes."], "<p>Yes.", None)]
    {
        let parts = texts.map(part);
        let stream = events(&[&parts[0], &parts[1], &parts[2], end, "data: [DONE]"]);
        let server = TestServer::start(vec![stream]).await;
        let (to, mut from) = pieces();
        let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
        let reply = open_here("m", &free).stream(&request(), &to).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.reasoning.as_deref()), (text, thoughts));
        let shown = if thoughts.is_some() { "" } else { text };
        assert_eq!(came(&mut from), (shown.to_owned(), String::new()));
    }
}

#[tokio::test]
async fn streamed_calls_with_any_indexes_are_kept_apart() {
    let call = |index: u32, id: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": "list_files", "arguments": format!("{{\"path\": \"{id}\"}}")}});
    let end = r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}"#;
    for indexes in [[0, 0], [1, 2], [0, u32::MAX]] {
        let calls = [call(indexes[0], "a"), call(indexes[1], "b")];
        let parts =
            calls.map(|call| format!("data: {}", json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})));
        let server = TestServer::start(vec![events(&[&parts[0], &parts[1], end, "data: [DONE]"])]).await;
        let (to, _from) = pieces();
        let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
        let reply = open_here("m", &free).stream(&request(), &to).await.unwrap();
        let calls: Vec<_> = reply.tool_calls.iter().map(|call| (call.id.as_str(), &call.arguments["path"])).collect();
        assert_eq!(calls, [("a", &json!("a")), ("b", &json!("b"))], "{indexes:?}");
    }
}

#[tokio::test]
async fn thoughts_that_only_the_total_of_the_tokens_contains_are_counted() {
    let with = |total: Value| {
        let mut body = openai_text("ok");
        body["usage"] = json!({"prompt_tokens": 10, "completion_tokens": 35, "total_tokens": total,
            "completion_tokens_details": {"reasoning_tokens": 192}});
        body
    };
    for (total, output) in [(json!(237), 227), (json!(45), 192), (json!(2_000_000), 227), (json!(u64::MAX), 227)] {
        let server = TestServer::start(vec![CannedAnswer::ok(with(total.clone()))]).await;
        let reply = open_here("m", &options(&server.url)).query(&request()).await.unwrap();
        assert_eq!(reply.usage.output, output, "{total}");
    }
}

#[tokio::test]
async fn a_model_on_the_users_server_keeps_its_whole_name() {
    let server = TestServer::start(vec![CannedAnswer::ok(openai_text("ok"))]).await;
    for name in ["openai:org/model-low", "qwen2.5:7b-high"] {
        open_here(name, &options(&server.url)).query(&Request::default()).await.unwrap();
    }
    let sent: Vec<_> = server.requests().into_iter().map(|asked| asked.body).collect();
    assert_eq!((&sent[0]["model"], &sent[1]["model"]), (&json!("org/model-low"), &json!("qwen2.5:7b-high")));
    assert!(sent.iter().all(|body| body.get("reasoning_effort").is_none()), "{sent:?}");
}

/// `genai` takes some endings of a model's name for an effort, cuts them off and sends the effort.
#[tokio::test]
async fn each_provider_is_asked_for_the_whole_name_and_for_no_effort_that_the_user_did_not_set() {
    for (kind, model, describe) in [
        (AdapterKind::OpenAI, "gpt-5.1-codex-max", "api=responses"),
        (AdapterKind::OpenAI, "gpt-5.1-codex-max", "api=chat"),
        (AdapterKind::OpenAI, "org::model-low", "api=chat"),
        (AdapterKind::Anthropic, "claude-sonnet-5-high", ""),
        (AdapterKind::Anthropic, "claude-sonnet-4-5-none", ""),
        (AdapterKind::Gemini, "gemini-2.5-flash-high", ""),
        (AdapterKind::Gemini, "gemini-3-flash-low", ""),
    ] {
        let description = if describe.is_empty() { Description::default() } else { describe.parse().unwrap() };
        for effort in [None, Some(Effort::Medium)] {
            let server = TestServer::start(vec![CannedAnswer::ok(openai_text("ok"))]).await;
            let settings = ProviderSettings {
                name: model.to_owned(),
                target: ModelTarget::new(kind, model, false, &description),
                output: None,
                context: None,
                base_url: Some(format!("{}/v1/", server.url)),
                key: None,
                price: Price::given(0.0, 0.0, None).unwrap(),
                request_timeout: Duration::from_secs(1),
                retries: 0,
                first_wait: Duration::ZERO,
            };
            let mut asked = request();
            asked.sampling.effort = effort;
            // Ignore the outcome, because the server's answer fits only some of the protocols. The test checks the
            // request.
            let _ = Provider::new(settings).unwrap().query(&asked).await;
            let sent = server.requests()[0].clone();
            if kind == AdapterKind::Gemini {
                assert!(sent.head.contains(&format!("/{model}:generate")), "{}", sent.head);
            } else {
                assert_eq!(sent.body["model"], model, "{:#}", sent.body);
            }
            let efforts = [
                "/reasoning_effort",
                "/reasoning/effort",
                "/thinking",
                "/output_config",
                "/generationConfig/thinkingConfig",
            ];
            let has_effort = efforts.iter().any(|pointer| sent.body.pointer(pointer).is_some());
            assert_eq!(has_effort, effort.is_some(), "{model} {describe}: {:#}", sent.body);
        }
    }
}

#[tokio::test]
async fn large_seeds_are_reduced_to_a_size_that_every_provider_accepts() {
    let server = TestServer::start(vec![CannedAnswer::ok(openai_text("ok"))]).await;
    let mut wide = request();
    wide.sampling.seed = Some(u64::MAX - 1);
    open_here("m", &options(&server.url)).query(&wide).await.unwrap();
    assert_eq!(server.requests()[0].body["seed"], 0x7fff_fffe);
}

#[tokio::test]
async fn a_budget_of_reasoning_tokens_is_sent_to_providers_that_accept_one() {
    let text = json!({"type": "text", "text": "ok"});
    let anthropic = json!({"content": [text], "usage": {"input_tokens": 1, "output_tokens": 1}});
    let gemini = json!({
        "candidates": [{"content": {"parts": [{"text": "ok"}], "role": "model"}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1},
    });
    let asked = |spec: &'static str, reply: serde_json::Value, budget: u32| async move {
        let server = TestServer::start(vec![CannedAnswer::ok(reply)]).await;
        let mut asked = request();
        asked.sampling.reasoning_tokens = Some(budget);
        open_here(spec, &options(&server.url)).query(&asked).await.unwrap();
        server.requests()[0].body.clone()
    };
    let sent = asked("anthropic:claude-sonnet-4-5", anthropic.clone(), 2000).await;
    assert_eq!(sent["thinking"]["budget_tokens"], 2000, "{sent:#}");
    // `max_tokens` is the sum of the tokens for thinking (2000) and for the reply (100). No temperature is sent,
    // because Anthropic does not accept it together with thinking.
    assert_eq!((&sent["max_tokens"], &sent["temperature"]), (&json!(2100), &json!(null)), "{sent:#}");
    let sent = asked("anthropic:claude-sonnet-4-5", anthropic.clone(), 100).await;
    assert_eq!(sent["thinking"]["budget_tokens"], 1024, "the least that it takes: {sent:#}");
    let sent = asked("anthropic:claude-sonnet-4-5", anthropic, 0).await;
    assert_eq!((&sent["thinking"], &sent["temperature"]), (&json!(null), &json!(0.5)), "{sent:#}");
    for budget in [0, 512] {
        let sent = asked("gemini:gemini-2.5-flash", gemini.clone(), budget).await;
        assert_eq!(sent["generationConfig"]["thinkingConfig"]["thinkingBudget"], budget, "{sent:#}");
    }
    let sent = asked("gemini:gemini-2.5-pro", gemini, 0).await;
    assert_eq!(sent["generationConfig"]["thinkingConfig"], json!(null), "it cannot do without: {sent:#}");
}

/// Returns a streamed answer with these events.
pub(super) fn events(events: &[&str]) -> CannedAnswer {
    let body = events.join("\n\n");
    CannedAnswer::Raw(
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}\n\n")
            .into_bytes(),
    )
}

/// Joins the pieces of a streamed reply, and returns its text and its reasoning.
fn came(from: &mut IncomingPieces) -> (String, String) {
    let (mut texts, mut thoughts) = (String::new(), String::new());
    while let Some((_, piece)) = from.try_next() {
        match piece {
            ReplyPiece::Text(text) => texts += &text,
            ReplyPiece::Reasoning(text) => thoughts += &text,
        }
    }
    (texts, thoughts)
}

#[tokio::test]
async fn a_streamed_reply_is_assembled_from_its_pieces() {
    let openai = events(&[
        r#"data: {"choices": [{"index": 0, "delta": {"role": "assistant", "reasoning_content": "I think."}}]}"#,
        r#"data: {"choices": [{"index": 0, "delta": {"content": "Ne"}}]}"#,
        r#"data: {"choices": [{"index": 0, "delta": {"content": "xt."}}]}"#,
        r#"data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "list_files", "arguments": "{\"path\":"}}]}}]}"#,
        r#"data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": " \"src\"}"}}]}}]}"#,
        r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}"#,
        r#"data: {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 600}}}"#,
        "data: [DONE]",
    ]);
    let anthropic = events(&[
        "event: message_start\ndata: {\"type\": \"message_start\", \"message\": {\"id\": \"m\", \"role\": \"assistant\", \"content\": [], \"usage\": {\"input_tokens\": 400, \"cache_read_input_tokens\": 600, \"output_tokens\": 1}}}",
        "event: content_block_start\ndata: {\"type\": \"content_block_start\", \"index\": 0, \"content_block\": {\"type\": \"text\", \"text\": \"\"}}",
        "event: content_block_delta\ndata: {\"type\": \"content_block_delta\", \"index\": 0, \"delta\": {\"type\": \"text_delta\", \"text\": \"Ne\"}}",
        "event: content_block_delta\ndata: {\"type\": \"content_block_delta\", \"index\": 0, \"delta\": {\"type\": \"text_delta\", \"text\": \"xt.\"}}",
        "event: content_block_stop\ndata: {\"type\": \"content_block_stop\", \"index\": 0}",
        "event: content_block_start\ndata: {\"type\": \"content_block_start\", \"index\": 1, \"content_block\": {\"type\": \"tool_use\", \"id\": \"a\", \"name\": \"list_files\", \"input\": {}}}",
        "event: content_block_delta\ndata: {\"type\": \"content_block_delta\", \"index\": 1, \"delta\": {\"type\": \"input_json_delta\", \"partial_json\": \"{\\\"path\\\": \\\"src\\\"}\"}}",
        "event: content_block_stop\ndata: {\"type\": \"content_block_stop\", \"index\": 1}",
        "event: message_delta\ndata: {\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"tool_use\"}, \"usage\": {\"output_tokens\": 200}}",
        "event: message_stop\ndata: {\"type\": \"message_stop\"}",
    ]);
    for (name, answer, thoughts) in [("openai:m", openai, "I think."), ("anthropic:m", anthropic, "")] {
        let server = TestServer::start(vec![answer]).await;
        let model = open_here(name, &ModelAccess { price: Some((0.0, 0.0)), ..options(&format!("{}/v1", server.url)) });
        let (to, mut from) = pieces();
        let reply = model.stream(&request(), &to).await.unwrap();
        assert_eq!(reply.text, "Next.", "{name}");
        assert_eq!(reply.reasoning.unwrap_or_default(), thoughts, "{name}");
        let call = ToolCall { id: "a".into(), name: "list_files".into(), arguments: json!({"path": "src"}) };
        assert_eq!(reply.tool_calls, [call], "{name}");
        assert_eq!((reply.usage.input, reply.usage.cached, reply.usage.output), (1000, 600, 200), "{name}");
        assert_eq!(came(&mut from), ("Next.".to_owned(), thoughts.to_owned()), "{name}");
        assert_eq!(server.requests()[0].body["stream"], json!(true));
    }
}

#[tokio::test]
async fn a_broken_stream_is_retried_unless_part_of_it_was_already_passed_on() {
    let good = || {
        events(&[
            r#"data: {"choices": [{"index": 0, "delta": {"content": "yes"}}]}"#,
            r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#,
            r#"data: {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}"#,
            "data: [DONE]",
        ])
    };
    let limited = || CannedAnswer::status(429, json!({"error": {"message": "slow down"}}));
    let broken = || events(&[r#"data: {"choices": [{"index": 0, "delta": {"content": "ye"}}]}"#]);
    let asked = async |answers: Vec<CannedAnswer>| {
        let server = TestServer::start(answers).await;
        let (to, mut from) = pieces();
        let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
        let reply = open_here("m", &free).stream(&request(), &to).await;
        let mut text = String::new();
        while let Some((number, piece)) = from.try_next() {
            if let ReplyPiece::Text(piece) = piece
                && from.pass_on(number)
            {
                text += &piece;
            }
        }
        (reply, text, server.requests().len())
    };
    let (reply, text, tries) = asked(vec![limited(), CannedAnswer::Close, events(&[]), good()]).await;
    assert!(reply.is_err(), "at most two retries: {reply:?}");
    assert_eq!((text.as_str(), tries), ("", 4), "after an empty stream the whole reply is requested, which fails here");
    let (reply, text, tries) = asked(vec![limited(), CannedAnswer::Close, good()]).await;
    assert_eq!((reply.unwrap().text.as_str(), text.as_str(), tries), ("yes", "yes", 3));
    // When the stream breaks off, none of its pieces has been passed on yet. So the call is retried, and the pieces of
    // the broken stream are dropped.
    let (reply, text, tries) = asked(vec![broken(), good()]).await;
    assert_eq!((reply.unwrap().text.as_str(), text.as_str(), tries), ("yes", "yes", 2));
    // Refusals in a stream are classified like those of whole answers.
    let long = json!({"error": {"message": "too long", "code": "context_length_exceeded"}});
    let (reply, _, tries) = asked(vec![CannedAnswer::status(400, long)]).await;
    assert!(matches!(reply.unwrap_err().error, ModelError::ContextLength(_)));
    assert_eq!(tries, 1);
    let failed = r#"data: {"error": {"message": "overloaded", "code": 503}}"#;
    let (reply, _, tries) = asked(vec![events(&[failed]), good()]).await;
    assert_eq!((reply.unwrap().text.as_str(), tries), ("yes", 2));
}

#[tokio::test]
async fn a_stream_that_was_partly_passed_on_is_not_retried() {
    let broken = events(&[r#"data: {"choices": [{"index": 0, "delta": {"content": "ye"}}]}"#]);
    let server = TestServer::start(vec![broken]).await;
    let (to, from) = pieces();
    assert!(from.pass_on(0));
    let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
    let failed = open_here("m", &free).stream(&request(), &to).await.unwrap_err();
    assert!(matches!(failed.error, ModelError::Unavailable(why) if why.contains("breaks off")));
    assert_eq!(server.requests().len(), 1, "text that was passed on cannot be taken back");
}

#[tokio::test]
async fn a_paid_model_whose_streams_report_no_usage_is_asked_for_a_whole_reply_instead() {
    let server = TestServer::start(vec![CannedAnswer::ok(openai_text("yes"))]).await;
    let (to, mut from) = pieces();
    let reply = open_here("m", &options(&server.url)).stream(&request(), &to).await.unwrap();
    assert_eq!((reply.text.as_str(), came(&mut from).0.as_str()), ("yes", ""));
    assert!(server.requests()[0].body.get("stream").is_none_or(|stream| stream == false));
}

#[tokio::test]
async fn a_model_that_may_not_be_streamed_is_asked_for_the_whole_reply() {
    let message = "Your organization must be verified to stream this model.";
    let refused = CannedAnswer::status(400, json!({"error": {"message": message, "param": "stream"}}));
    let whole = || CannedAnswer::ok(openai_text("yes"));
    // A refusal that contains `stream` only as a part of another word is final.
    let upstream = CannedAnswer::status(400, json!({"error": {"message": "the upstream refused it"}}));
    let server = TestServer::start(vec![upstream, whole()]).await;
    let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
    assert!(open_here("m", &free).stream(&request(), &pieces().0).await.is_err() && server.requests().len() == 1);
    // One server refuses to stream; another ignores the request for a stream and sends a whole reply.
    for first in [refused, whole()] {
        let server = TestServer::start(vec![first, whole()]).await;
        let (to, mut from) = pieces();
        let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
        let reply = open_here("m", &free).stream(&request(), &to).await.unwrap();
        assert_eq!((reply.text.as_str(), came(&mut from).0.as_str()), ("yes", ""));
        assert_eq!(server.requests().len(), 2);
    }
}
