//! Tests of the gateway through a connection, with a model that answers at once.

mod protocols;

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;

use super::stops::stop_at;
use super::{
    AgentCall, AnsweredCall, GatewayRequest, ListedModel, Refusal, RefusalKind, anthropic, gemini, openai, responses,
    serve,
};
use crate::model::{Reply, ReplyPiece, Role, ToolCall, Usage};

/// Sends one request over a new connection, and passes each call to `answerer`. Returns status and body.
async fn post(path: &str, body: &Value, answerer: impl Fn(AgentCall) + Send + 'static) -> (u16, String) {
    let (to, connections) = mpsc::channel::<DuplexStream>(1);
    let (_gateway, mut asked) = serve(connections, None, listed());
    tokio::spawn(async move {
        while let Some(asked) = asked.recv().await {
            if let GatewayRequest::Call(ask) = asked {
                answerer(*ask);
            }
        }
    });
    let (mut ours, theirs) = duplex(1 << 20);
    to.send(theirs).await.unwrap();
    let body = body.to_string();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    ours.write_all((head + &body).as_bytes()).await.unwrap();
    let mut text = String::new();
    ours.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn listed() -> ListedModel {
    ListedModel { name: "m".into(), context: Some(8192) }
}

/// A path for each protocol.
const PATHS: [&str; 4] =
    ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1beta/models/any:generateContent"];

/// Sends a minimal request in the protocol of `path`, with the fields of `more` added.
async fn ask_for(
    path: &str,
    streams: bool,
    more: Value,
    answerer: impl Fn(AgentCall) + Send + 'static,
) -> (u16, String) {
    let text = json!([{"role": "user", "content": "hi"}]);
    let mut body = match path {
        "/v1/responses" => json!({"model": "any", "input": text, "stream": streams}),
        _ if path.contains("beta") => json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
        _ => json!({"model": "any", "messages": text, "stream": streams}),
    };
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let streamed = path.replace(":generateContent", ":streamGenerateContent?alt=sse");
    post(if streams { &streamed } else { path }, &body, answerer).await
}

fn reply() -> Reply {
    let call = ToolCall { id: "c1".into(), name: "bash".into(), arguments: json!({"command": "ls"}) };
    Reply {
        text: "Let me look.END of it".into(),
        tool_calls: vec![call],
        usage: Usage { input: 100, cached: 40, output: 7, ..Usage::default() },
        ..Reply::default()
    }
}

fn answers(ask: AgentCall) {
    let most = ask.request.sampling.max_tokens;
    ask.answer.send(Ok(AnsweredCall { reply: reply(), most, refusal: None })).unwrap();
}

#[tokio::test]
async fn a_chat_completion_is_answered_with_text_calls_and_tokens() {
    let body = json!({"model": "any", "messages": [{"role": "user", "content": "hi"}]});
    let (status, body) = post("/v1/chat/completions", &body, answers).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["model"]), (200, &json!("any")));
    let choice = &body["choices"][0];
    assert_eq!(choice["message"]["content"], reply().text);
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"command\":\"ls\"}");
    assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 40);
}

#[tokio::test]
async fn tool_calls_after_a_stop_text_are_dropped() {
    for streams in [false, true] {
        let more = json!({"stop": "END", "max_tokens": 7});
        let (status, body) = ask_for("/v1/chat/completions", streams, more, answers).await;
        assert!(status == 200 && body.contains("Let me look."), "{body}");
        assert!(!body.contains("END") && !body.contains("\"c1\""), "{body}");
        assert!(body.contains("\"finish_reason\":\"stop\""), "the stop text comes before the limit of tokens: {body}");
    }
}

#[tokio::test]
async fn a_reply_in_anthropics_protocol_has_content_blocks_and_counts_cached_tokens_separately() {
    let body = json!({"model": "any", "max_tokens": 7, "messages": [{"role": "user", "content": "hi"}]});
    let (status, body) = post("/v1/messages", &body, answers).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["content"][1]["input"]), (200, &json!({"command": "ls"})));
    assert_eq!(body["stop_reason"], "max_tokens", "all 7 tokens were used");
    assert_eq!((&body["usage"]["input_tokens"], &body["usage"]["cache_read_input_tokens"]), (&json!(60), &json!(40)));
}

#[tokio::test]
async fn a_streamed_reply_has_the_same_contents_as_a_reply_sent_at_once() {
    let body = json!({"messages": [], "stream": true, "stream_options": {"include_usage": true}});
    let (_, text) = post("/v1/chat/completions", &body, answers).await;
    let events: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    let written: String = events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(written, reply().text);
    assert!(events.iter().any(|event| event["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "bash"));
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], 7);
    assert!(text.contains("data: [DONE]\n\n"));

    let (_, text) = post("/v1/messages", &body, answers).await;
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    assert_eq!(kinds, [&["message_start"], &block[..], &block[..], &["message_delta", "message_stop"]].concat());
}

#[tokio::test]
async fn replies_are_streamed_to_the_agent() {
    for (path, last) in [("/v1/chat/completions", "data: [DONE]"), ("/v1/messages", "event: message_stop")] {
        let (to, connections) = mpsc::channel::<DuplexStream>(1);
        let (_gateway, mut asked) = serve(connections, None, listed());
        let (mut ours, theirs) = duplex(1 << 20);
        to.send(theirs).await.unwrap();
        let body = json!({"messages": [], "stream": true, "stop": "END", "stop_sequences": ["END"]}).to_string();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        ours.write_all((head + &body).as_bytes()).await.unwrap();
        let Some(GatewayRequest::Call(ask)) = asked.recv().await else { panic!("no call came") };
        let pieces = ask.pieces.as_ref().unwrap();
        let mut text = String::new();
        let mut until = async |wanted: &str| {
            let mut buffer = [0; 4096];
            while !text.contains(wanted) {
                let read = tokio::time::timeout(Duration::from_secs(5), ours.read(&mut buffer)).await;
                let read = read.unwrap_or_else(|_| panic!("`{wanted}` is not in: {text}")).unwrap();
                text.push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
            text.clone()
        };
        // Each piece must arrive before the next is sent. Text that may be the beginning of a stop text, such as `E`
        // for `END`, is held back.
        pieces.send(ReplyPiece::Text("Let me".into()));
        until("\"Let me\"").await;
        pieces.send(ReplyPiece::Text(" look.E".into()));
        until("\" look.\"").await;
        let given = AnsweredCall { reply: reply(), most: None, refusal: None };
        ask.answer.send(Ok(given)).unwrap();
        let whole = until(last).await;
        // The tool call that comes after the stop text is dropped.
        let written = whole.replace("\"stop_sequence\":\"END\"", "");
        assert!(!written.contains("command") && !written.contains("END") && !written.contains("\"E"), "{whole}");
        assert_eq!(whole.matches("Let me").count(), 1, "{whole}");
    }
}

#[tokio::test]
async fn a_used_up_budget_is_answered_with_a_normal_reply_in_every_protocol() {
    for path in PATHS {
        for streams in [true, false] {
            let refuse = |ask: AgentCall| {
                let message = "the money is used up".to_owned();
                ask.answer.send(Err(Refusal { why: RefusalKind::Budget, message })).unwrap();
            };
            let (status, body) = ask_for(path, streams, json!({}), refuse).await;
            assert!(status == 200 && body.contains("the money is used up"), "{path}: {status} {body}");
            assert!(!body.contains("\"error\":{"), "{path}: {body}");
        }
    }
}

#[tokio::test]
async fn calls_of_a_closed_attempt_get_a_status_that_is_not_retried() {
    for (path, kind) in
        PATHS.iter().zip(["permission_error", "permission_error", "permission_error", "PERMISSION_DENIED"])
    {
        for streams in [true, false] {
            let refuse = |ask: AgentCall| {
                ask.answer.send(Err(Refusal { why: RefusalKind::Closed, message: "it is over".to_owned() })).unwrap();
            };
            let (status, body) = ask_for(path, streams, json!({}), refuse).await;
            assert!(status == 403 && body.contains(kind) && body.contains("it is over"), "{path}: {status} {body}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_stream_gets_pings_and_then_the_error_if_the_call_is_refused_late() {
    let late = |ask: AgentCall| {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(25)).await;
            let _ = ask.answer.send(Err(Refusal { why: RefusalKind::ContextLength, message: "withheld".into() }));
        });
    };
    for path in PATHS {
        let ping = if path == "/v1/messages" { "event: ping\ndata: {" } else { ": ping\n" };
        let (status, text) = ask_for(path, true, json!({}), late).await;
        assert_eq!(status, 200);
        assert_eq!(text.matches(ping).count(), 2, "after 10 and 20 seconds: {text}");
        assert!(text.contains("\"error\":") && text.contains("withheld"), "{text}");
    }
}

#[tokio::test]
async fn a_call_blocked_by_a_content_filter_gets_a_refusal_in_each_protocols_format() {
    let reasons = ["\"content_filter\"", "\"stop_reason\":\"refusal\"", "\"refusal\":\"I will not\"", "\"SAFETY\""];
    for (path, reason) in PATHS.iter().zip(reasons) {
        for streams in [true, false] {
            let refuse = |ask: AgentCall| {
                let message = "I will not".to_owned();
                ask.answer.send(Err(Refusal { why: RefusalKind::Filtered, message })).unwrap();
            };
            let (status, body) = ask_for(path, streams, json!({}), refuse).await;
            assert!(status == 200 && body.contains(reason) && body.contains("I will not"), "{path}: {status} {body}");
            assert!(!body.contains("\"error\":{"), "{path}: {body}");
        }
    }
}

#[tokio::test]
async fn a_reply_that_breaks_off_after_its_beginning_is_an_error_that_clients_try_again() {
    for (path, kind) in PATHS.iter().zip(["server_error", "overloaded_error", "server_error", "UNAVAILABLE"]) {
        let breaks = |ask: AgentCall| {
            ask.pieces.unwrap().send(ReplyPiece::Text("Let".into()));
            ask.answer.send(Err(Refusal { why: RefusalKind::Unavailable, message: "it broke off".into() })).unwrap();
        };
        let (status, body) = ask_for(path, true, json!({}), breaks).await;
        assert!(status == 200 && body.contains("Let") && body.contains(kind), "{path}: {status} {body}");
        assert!(body.contains("it broke off"), "{path}: {body}");
    }
}

#[tokio::test]
async fn requests_whose_unsupported_parts_change_their_meaning_are_refused() {
    for (path, body) in [
        ("/v1/chat/completions", json!({"messages": [], "n": 2})),
        ("/v1/chat/completions", json!({"messages": [{"role": "robot"}]})),
        ("/v1/messages", json!({})),
        ("/v1/responses", json!({"input": "go on", "previous_response_id": "resp_1"})),
        ("/v1/responses", json!({"input": [{"type": "item_reference", "id": "x"}]})),
        ("/v1/responses", json!({"input": "hi", "background": true})),
        ("/v1beta/models/m:generateContent", json!({"contents": [], "cachedContent": "x"})),
    ] {
        let (status, answer) = post(path, &body, answers).await;
        assert_eq!(status, 400, "{body}: {answer}");
    }
    assert_eq!(post("/v1/completions", &json!({}), answers).await.0, 404);
}

#[test]
fn each_tool_result_becomes_a_separate_message() {
    let read = anthropic::read(&json!({
        "system": [{"type": "text", "text": "be good"}],
        "messages": [
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"},
                {"type": "tool_use", "id": "t", "name": "bash", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
                "content": [{"type": "text", "text": "out"}]}, {"type": "text", "text": "go on"}]},
        ],
        "tools": [{"name": "bash", "input_schema": {"type": "object"}}],
    }))
    .unwrap();
    let roles: Vec<Role> = read.request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::Assistant, Role::Tool, Role::User]);
    assert_eq!(read.request.messages[2].tool_call_id.as_deref(), Some("t"));
    assert_eq!(read.request.tools.len(), 1);
}

#[test]
fn a_text_is_cut_before_the_first_stop_sequence() {
    assert_eq!(stop_at("one two three", &["three".into(), "two".into(), String::new()]), "one ");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![
            "user",
            "assistant",
            "tool",
            "text",
            "tool_use",
            "tool_result",
            "function_call",
            "function_call_output",
            "reasoning",
            ".{0,8}"
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = prop_oneof![
            "messages",
            "role",
            "content",
            "type",
            "text",
            "tool_calls",
            "function",
            "arguments",
            "tools",
            "system",
            "stop",
            "input",
            "name",
            "parts",
            "functionCall",
            "functionResponse",
            "functionDeclarations",
            "arguments",
            "output",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_request_makes_a_parser_panic(messages in any_json(), tools in any_json()) {
        let body = json!({"messages": messages, "tools": tools});
        let others = json!({"input": messages, "contents": messages, "tools": tools, "generationConfig": tools});
        for body in [&body, &others, &messages] {
            let _ = (openai::read(body), anthropic::read(body), responses::read(body), gemini::read(body));
        }
    }
}

#[tokio::test]
async fn requests_with_long_names_or_many_stop_texts_are_refused() {
    let body = |model: &str, stops: Value| json!({"model": model, "messages": [{"role": "user", "content": "hi"}], "stop": stops});
    for (what, body) in [
        ("the name of the model", body(&"m".repeat(201), json!([]))),
        ("stop sequences", body("m", json!(vec!["x"; 17]))),
        ("stop sequences", body("m", json!(["x".repeat(201)]))),
    ] {
        let (status, said) = post("/v1/chat/completions", &body, answers).await;
        assert!(status == 400 && said.contains(what), "{status} {said}");
    }
    let (status, _) = post("/v1/chat/completions", &body(&"m".repeat(200), json!(vec!["x"; 16])), answers).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_reply_cut_by_the_runs_limit_is_marked_as_cut() {
    // The agent asks for up to 100 tokens, the harness allows 7, and the reply has exactly 7, so the reply counts as
    // cut.
    let cut =
        |ask: AgentCall| ask.answer.send(Ok(AnsweredCall { reply: reply(), most: Some(7), refusal: None })).unwrap();
    let body = json!({"max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]});
    let (_, said) = post("/v1/chat/completions", &body, cut).await;
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["choices"][0]["finish_reason"], "length");
    let (_, said) = post("/v1/messages", &body, cut).await;
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["stop_reason"], "max_tokens");
    // The reply does not count as cut if the server says that it is complete, or if it has seven tokens only together
    // with those of a failed try.
    let failed = Usage { output: 1, ..Usage::default() };
    for whole in [
        Reply { text: "All.".into(), finish: Some("stop".into()), tool_calls: Vec::new(), ..reply() },
        Reply { text: "All.".into(), failed, tool_calls: Vec::new(), ..reply() },
    ] {
        let answers = move |ask: AgentCall| {
            ask.answer.send(Ok(AnsweredCall { reply: whole.clone(), most: Some(7), refusal: None })).unwrap();
        };
        let (_, said) = post("/v1/chat/completions", &body, answers).await;
        assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["choices"][0]["finish_reason"], "stop");
    }
}

#[tokio::test]
async fn requests_without_the_key_are_refused_unread_and_not_counted() {
    let (to, connections) = mpsc::channel::<DuplexStream>(1);
    let (_gateway, mut asked) = serve(connections, Some("secret".into()), listed());
    let refused = async |path: &str, key: &str| {
        let (mut ours, theirs) = duplex(1 << 20);
        to.send(theirs).await.unwrap();
        // The request's head announces a body that is never sent, so only a gateway that does not read the body
        // answers.
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-length: 9\r\n\r\n");
        ours.write_all(head.as_bytes()).await.unwrap();
        let mut buffer = [0; 12];
        let read = tokio::time::timeout(Duration::from_secs(5), ours.read_exact(&mut buffer)).await;
        read.ok().map(|_| String::from_utf8_lossy(&buffer).into_owned())
    };
    for path in PATHS.into_iter().chain(["/v1/messages/count_tokens", "/v1beta/models/m:countTokens"]) {
        assert_eq!(refused(path, "guessed").await.as_deref(), Some("HTTP/1.1 403"), "{path}");
    }
    assert_eq!(refused("/v1/files", "guessed").await.as_deref(), Some("HTTP/1.1 404"));
    assert!(asked.try_recv().is_err(), "a stranger's requests are not told of");
    assert_eq!(refused("/v1/files", "secret").await.as_deref(), Some("HTTP/1.1 404"));
    assert!(matches!(asked.try_recv(), Ok(GatewayRequest::Refused(refusal)) if refusal.message.contains("/v1/files")));
}
