//! Tests of the behaviour of real servers: requests that they refuse, and replies that did not end normally.

use serde_json::{Value, json};

use super::one_call::gemini_text;
use super::server::{CannedAnswer, TestServer};
use super::{open_here, openai_text, options, request};
use crate::model::{
    Description, Message, ModelAccess, ModelError, QueryFailed, Reply, ReplyPiece, Request, Role, pieces,
};

/// Returns a request with this many bytes of text, for which the user has set no limit of tokens. The remaining money
/// pays for `affordable` tokens.
fn request_of_size(affordable: Option<u32>, bytes: usize) -> Request {
    let mut request = request();
    request.sampling.max_tokens = None;
    request.messages.push(Message::new(Role::User, "word ".repeat(bytes / 5)));
    request.affordable = affordable;
    request
}

fn refused(status: u16, message: &str) -> CannedAnswer {
    CannedAnswer::status(status, json!({"error": {"message": message}}))
}

fn bound(asked: &super::server::ReceivedRequest) -> Option<u64> {
    ["max_tokens", "max_completion_tokens"].iter().find_map(|name| asked.body[*name].as_u64())
}

/// Answers, as status and message, of servers that refuse a request because its reply limit is too large for the
/// context or the model.
const BOUNDS: [(u16, &str); 8] = [
    (
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 8000 output tokens and your prompt contains at least 1512 input tokens, for a total of at least 9512 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
    ),
    (
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 8192 tokens and your request has 1512 input tokens (8000 > 8192 - 1512).",
    ),
    (
        400,
        "You passed 1512 input tokens and requested 8000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 192 tokens. Please reduce the length of the input prompt.",
    ),
    (
        400,
        "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9512 tokens: 1512 tokens from the input messages and 8000 tokens for the completion.",
    ),
    (
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 1512 `inputs` tokens and 8000 `max_new_tokens`",
    ),
    (
        400,
        "max_tokens is too large: 8000. This model supports at most 4096 completion tokens, whereas you provided 8000.",
    ),
    (400, "Range of max_tokens should be [1, 2048]"),
    (400, "Bad Request"),
];

#[tokio::test]
async fn the_reply_limit_of_the_harness_is_lowered_or_omitted_after_a_server_refuses_it() {
    for call in [0, 3] {
        for (status, words) in BOUNDS {
            let server = TestServer::start(vec![refused(status, words), CannedAnswer::ok(openai_text("ok"))]).await;
            let model = open_here("m", &options(&server.url));
            let request = Request { call, ..request_of_size(Some(8000), 5000) };
            assert_eq!(model.query(&request).await.unwrap_or_else(|error| panic!("{words}: {error}")).text, "ok");
            // After the refusal, the client lowers `max_tokens` to what fits, or leaves it out if the error text does
            // not say what fits. The second query shows that the client remembers this.
            model.query(&request).await.unwrap();
            model.query(&Request { affordable: Some(700), ..request }).await.unwrap();
            let bounds: Vec<_> = server.requests().iter().map(bound).collect();
            assert_eq!((bounds[0], bounds[3]), (Some(8000), Some(700)), "{words}");
            for lowered in &bounds[1..3] {
                match lowered {
                    // The error texts say that the prompt has 1000 tokens. A lowered `max_tokens` must leave room for
                    // the prompt.
                    Some(lowered) => assert!((1024..=8192 - 1000).contains(lowered), "{words}: {bounds:?}"),
                    None => assert_eq!(words, "Bad Request"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_requested_reply_limit_is_lowered_to_fit_the_context() {
    for (status, words) in &BOUNDS[..7] {
        let server = TestServer::start(vec![refused(*status, words), CannedAnswer::ok(openai_text("ok"))]).await;
        let model = open_here("m", &options(&server.url));
        let mut request = request_of_size(None, 5000);
        request.sampling.max_tokens = Some(8000);
        model.query(&request).await.unwrap_or_else(|error| panic!("{words}: {error}"));
        let lowered = bound(&server.requests()[1]).unwrap();
        assert!((1024..=8192 - 1512).contains(&lowered), "{words}: {lowered}");
    }
}

#[tokio::test]
async fn a_limit_in_a_refusal_is_adopted_only_after_a_call_within_it_was_accepted() {
    // This refusal quotes what an external agent wrote.
    let quoted = "invalid tool name: `max_tokens, which has at most 1100 completion tokens`";
    let server = TestServer::start(vec![refused(400, quoted)]).await;
    let model = open_here("m", &options(&server.url));
    let mut request = request_of_size(None, 500);
    request.sampling.max_tokens = Some(8000);
    model.query(&request).await.unwrap_err();
    server.answer_with(CannedAnswer::ok(openai_text("ok")));
    model.query(&request).await.unwrap();
    let bounds: Vec<_> = server.requests().iter().map(bound).collect();
    assert_eq!(bounds, [Some(8000), Some(1100), Some(8000)]);
}

#[tokio::test]
async fn a_request_that_is_refused_with_every_limit_does_not_deny_the_model() {
    let server = TestServer::start(vec![refused(400, "`max_tokens` is wrong, or another field")]).await;
    let mut request = Request { foreign: true, ..request_of_size(None, 500) };
    request.sampling.max_tokens = Some(1_000_000);
    let failed = open_here("m", &options(&server.url)).query(&request).await.unwrap_err();
    assert!(matches!(failed.error, ModelError::Rejected(_)), "{failed}");
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn a_large_reply_limit_is_not_sent_to_an_unknown_server_and_is_cut_to_a_known_context() {
    let sent = async |description: &str, affordable, bytes| {
        let server = TestServer::start(vec![CannedAnswer::ok(openai_text("ok"))]).await;
        let description: Description =
            if description.is_empty() { Description::default() } else { description.parse().unwrap() };
        let model = open_here("m", &ModelAccess { description, ..options(&server.url) });
        model.query(&request_of_size(Some(affordable), bytes)).await.unwrap();
        bound(&server.requests()[0])
    };
    assert_eq!(sent("", 99_643, 500).await, None);
    assert_eq!(sent("", 5000, 500).await, Some(5000));
    assert!(sent("context=32768", 99_643, 500).await.unwrap() < 32_768 - 100);
    assert_eq!(sent("context=32768", 20_000, 500).await, Some(20_000));
    assert!(sent("context=32768", 20_000, 60_000).await.unwrap() < 32_768 - 12_000, "the prompt leaves less");
    assert_eq!(sent("output=4000", 5000, 500).await, Some(4000));
}

#[tokio::test]
async fn the_context_length_is_learned_from_the_servers_list_of_models() {
    for entry in [
        json!({"id": "m", "max_model_len": 8192}),
        json!({"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 131_072}}),
        json!({"id": "m", "context_length": 1_000_000, "top_provider": {"context_length": 8192}}),
        json!({"id": "m", "context_window": 8192}),
        json!({"id": "other-name", "max_model_len": 8192}),
    ] {
        let server = TestServer::start(vec![CannedAnswer::ok(json!({"data": [entry]}))]).await;
        let model = open_here("m", &options(&format!("{}/v1", server.url)));
        // Ignore the outcome: if the list of models lacks the model's name, `probe` makes a test call, which this
        // server also answers with the list.
        let _ = model.probe().await;
        server.answer_with(CannedAnswer::ok(openai_text("ok")));
        let before = server.requests().len();
        model.query(&request_of_size(Some(8000), 3000)).await.unwrap();
        model.query(&request_of_size(Some(3000), 3000)).await.unwrap();
        let bounds: Vec<_> = server.requests()[before..].iter().map(bound).collect();
        assert!(bounds[0].unwrap() < 8192 - 600, "{entry}: {bounds:?}");
        assert_eq!(bounds[1], Some(3000), "{entry}");
    }
}

#[tokio::test]
async fn a_short_first_prompt_that_overflows_is_not_a_failure_of_the_agent() {
    let words = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the messages, 8000 in the completion).";
    let refusing = async |words: &str, bytes: usize| {
        let server = TestServer::start(vec![refused(400, words)]).await;
        let first = Request { call: 0, ..request_of_size(None, bytes) };
        open_here("m", &options(&server.url)).query(&first).await.unwrap_err().error
    };
    let error = refusing(words, 500).await;
    assert!(matches!(&error, ModelError::Denied(what) if what.contains("longer context")), "{error}");
    assert!(matches!(refusing("prompt is too long", 500).await, ModelError::Denied(_)));
    // If the prompt has more tokens than the model's context, the error is that the conversation is too long, not that
    // the server is unsuitable.
    let long = "This model's maximum context length is 8192 tokens. However, your messages resulted in 20000 tokens.";
    assert!(matches!(refusing(long, 80_000).await, ModelError::ContextLength(_)));
}

/// Returns, for each protocol, a body in which the model declines.
fn bodies() -> Vec<(&'static str, Value)> {
    let chat = |choice: Value| json!({"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    let response = |more: Value| {
        let mut body = json!({"id": "r", "object": "response", "status": "completed", "model": "m", "output": [],
            "usage": {"input_tokens": 10, "output_tokens": 5}});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let gemini = |reason: &str| {
        json!({"candidates": [{"finishReason": reason, "finishMessage": "I will not"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}})
    };
    let refusal = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I will not"}]}]);
    vec![
        ("openai:m", chat(json!({"finish_reason": "stop", "message": {"content": null, "refusal": "I will not"}}))),
        ("openai:m", chat(json!({"finish_reason": "content_filter", "message": {"content": "I will not"}}))),
        ("openai:gpt-5", response(json!({"output": refusal}))),
        (
            "openai:gpt-5",
            response(json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"},
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "I will not"}]}]})),
        ),
        (
            "anthropic:claude-m",
            json!({"content": [{"type": "text", "text": "I will not"}], "stop_reason": "refusal",
            "usage": {"input_tokens": 10, "output_tokens": 5}}),
        ),
        ("gemini:gemini-m", gemini("SAFETY")),
        ("gemini:gemini-m", gemini("PROHIBITED_CONTENT")),
    ]
}

async fn ask(spec: &str, answers: Vec<CannedAnswer>) -> (Result<Reply, QueryFailed>, usize) {
    let server = TestServer::start(answers).await;
    let description = if spec.contains("gpt-5") { "api=responses".parse().unwrap() } else { Description::default() };
    let options = ModelAccess { description, ..options(&format!("{}/v1", server.url)) };
    let reply = open_here(spec, &options).query(&request()).await;
    (reply, server.requests().len())
}

#[tokio::test]
async fn a_reply_in_which_the_model_declines_is_a_refusal_in_every_protocol() {
    for (spec, body) in bodies() {
        let (answer, tries) = ask(spec, vec![CannedAnswer::ok(body.clone())]).await;
        let failed = answer.expect_err(&body.to_string());
        assert!(matches!(&failed.error, ModelError::Refused(text) if text.contains("I will not")), "{body}: {failed}");
        assert_eq!((failed.usage.input, failed.usage.output, tries), (10, 5, 1), "{body}");
    }
    // An empty `refusal` field does not mean that the model declined.
    let mut plain = openai_text("ok");
    plain["choices"][0]["message"]["refusal"] = json!("");
    assert_eq!(ask("openai:m", vec![CannedAnswer::ok(plain)]).await.0.unwrap().text, "ok");
}

#[tokio::test]
async fn a_streamed_reply_in_which_the_model_declines_is_a_refusal_in_every_protocol() {
    let chat = |delta: Value, end: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
    let done = json!({"id": "r", "object": "response", "status": "completed", "model": "m", "output": []});
    let item = json!({"type": "message", "content": [{"type": "refusal", "refusal": "I will not"}]});
    let anthropic = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I will not"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    for (spec, events) in [
        (
            "openai:m",
            vec![
                chat(json!({"refusal": "I will"}), json!(null)),
                chat(json!({"refusal": " not"}), json!("stop")),
                json!("[DONE]"),
            ],
        ),
        ("openai:m", vec![chat(json!({"content": "I will not"}), json!("content_filter")), json!("[DONE]")]),
        (
            "openai:gpt-5",
            vec![
                json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
                json!({"type": "response.completed", "response": done}),
            ],
        ),
        ("anthropic:claude-m", anthropic.to_vec()),
        ("gemini:gemini-m", vec![json!({"candidates": [{"finishReason": "SAFETY", "finishMessage": "I will not"}]})]),
    ] {
        let lines: Vec<String> = events
            .iter()
            .map(|event| {
                let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
                match event["type"].as_str() {
                    Some(kind) => format!("event: {kind}\ndata: {data}"),
                    None => format!("data: {data}"),
                }
            })
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let server = TestServer::start(vec![super::providers::events(&lines)]).await;
        let description =
            if spec.contains("gpt-5") { "api=responses".parse().unwrap() } else { Description::default() };
        let free = ModelAccess { price: Some((0.0, 0.0)), description, ..options(&format!("{}/v1", server.url)) };
        let (to, _from) = pieces();
        let failed = open_here(spec, &free).stream(&request(), &to).await.expect_err(spec);
        assert!(matches!(&failed.error, ModelError::Refused(text) if text.contains("I will not")), "{spec}: {failed}");
    }
}

#[tokio::test]
async fn replies_with_an_error_inside_and_rate_limits_reported_with_status_400_are_retried() {
    let within = json!({"choices": [{"finish_reason": "error", "message": {"content": ""},
        "error": {"code": 502, "message": "upstream"}}]});
    let without = json!({"choices": [{"finish_reason": "error", "message": {"content": "half a"}}]});
    for first in [
        CannedAnswer::ok(within),
        CannedAnswer::ok(without),
        refused(400, "Rate limit exceeded, please slow down"),
        refused(400, "ThrottlingException: Too many tokens, please wait before trying again."),
        CannedAnswer::ok(json!({"choices": null, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}})),
    ] {
        let (reply, tries) = ask("m", vec![first.clone(), CannedAnswer::ok(openai_text("ok"))]).await;
        assert_eq!((reply.unwrap_or_else(|error| panic!("{first:?}: {error}")).text.as_str(), tries), ("ok", 2));
    }
    let full = json!({"choices": null, "base_resp": {"status_code": 1039, "status_msg": "token limit"}});
    assert!(matches!(ask("m", vec![CannedAnswer::ok(full)]).await.0.unwrap_err().error, ModelError::ContextLength(_)));
}

#[tokio::test]
async fn a_full_context_at_anthropic_is_a_context_length_error_and_a_paused_turn_is_continued() {
    let reply = |text: &str, reason: &str| {
        CannedAnswer::ok(json!({"content": [{"type": "text", "text": text}], "stop_reason": reason,
            "usage": {"input_tokens": 10, "output_tokens": 5}}))
    };
    let (answer, _) = ask("anthropic:claude-m", vec![reply("Half a", "model_context_window_exceeded")]).await;
    let failed = answer.unwrap_err();
    assert!(matches!(failed.error, ModelError::ContextLength(_)) && failed.usage.output == 5, "{failed}");
    let server = TestServer::start(vec![reply("One, ", "pause_turn"), reply("two.", "end_turn")]).await;
    let model = open_here("anthropic:claude-m", &options(&format!("{}/v1", server.url)));
    let reply = model.query(&request()).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.usage.input, reply.usage.output), ("One, two.", 20, 10));
    let sent = server.requests()[1].body["messages"].clone();
    let last = sent.as_array().unwrap().last().unwrap();
    assert_eq!((&last["role"], last.to_string().contains("One, ")), (&json!("assistant"), true), "{sent:#}");
}

#[tokio::test]
async fn calls_without_an_id_or_with_a_used_id_get_unique_ids() {
    let call = json!({"id": "", "type": "function", "function": {"name": "list_files", "arguments": "{}"}});
    let same = json!({"id": "call_0", "type": "function", "function": {"name": "list_files", "arguments": "{}"}});
    let mut body = openai_text("");
    body["choices"][0]["message"]["tool_calls"] = json!([call, call, same]);
    let server = TestServer::start(vec![CannedAnswer::ok(body)]).await;
    let model = open_here("m", &options(&server.url));
    let mut request = request();
    let mut ids: Vec<String> = Vec::new();
    for turn in 0..3 {
        request.call = turn;
        let reply = model.query(&request).await.unwrap();
        ids.extend(reply.tool_calls.iter().map(|call| call.id.clone()));
        request.messages.push(Message { tool_calls: reply.tool_calls, ..Message::new(Role::Assistant, "") });
    }
    let distinct: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (9, 9), "{ids:?}");
    assert!(
        ids.iter().all(|id| id == "call_0" || id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())),
        "{ids:?}"
    );
}

#[tokio::test]
async fn geminis_thoughts_never_take_more_than_the_reply_may_have() {
    let sent = async |spec: &str, tokens: Option<u32>, most: u32, foreign: bool, affordable: Option<u32>| {
        let server = TestServer::start(vec![CannedAnswer::ok(gemini_text())]).await;
        let mut request = request();
        request.sampling.max_tokens = Some(most);
        request.sampling.reasoning_tokens = tokens;
        if tokens.is_none() {
            request.sampling.effort = Some(crate::model::Effort::High);
        }
        (request.foreign, request.affordable) = (foreign, affordable);
        open_here(spec, &options(&format!("{}/v1", server.url))).query(&request).await.unwrap();
        let config = server.requests()[0].body["generationConfig"].clone();
        (config["thinkingConfig"]["thinkingBudget"].as_u64().unwrap(), config["maxOutputTokens"].as_u64().unwrap())
    };
    // The tokens for thinking are added to the reply limit that the user set.
    assert_eq!(sent("gemini:gemini-2.5-pro", Some(2000), 100, false, None).await, (2000, 2100));
    assert_eq!(sent("gemini:gemini-2.5-pro", None, 4096, false, None).await, (24_000, 28_096));
    // If an external agent or the remaining money limits the reply, the limit includes the tokens for thinking.
    assert_eq!(sent("gemini:gemini-2.5-pro", Some(24_000), 8192, true, None).await, (8192 - 256, 8192));
    assert_eq!(sent("gemini:gemini-2.5-pro", None, 4096, false, Some(3000)).await, (3000 - 256, 3000));
}

#[tokio::test]
async fn a_stream_that_breaks_off_before_a_piece_was_passed_on_is_requested_again() {
    let event = |text: &str| format!("data: {}", json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
    let end = format!("data: {}", json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    let broken = super::providers::events(&[&event("wrong")]);
    let good = super::providers::events(&[&event("right"), &end, "data: [DONE]"]);
    let server = TestServer::start(vec![broken, good]).await;
    let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
    let (to, mut from) = pieces();
    let reply = open_here("m", &free).stream(&request(), &to).await.unwrap();
    let mut shown = String::new();
    while let Some((number, ReplyPiece::Text(piece))) = from.try_next() {
        if from.pass_on(number) {
            shown += &piece;
        }
    }
    assert_eq!((reply.text.as_str(), shown.as_str()), ("right", "right"));
}
