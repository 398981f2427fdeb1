//! Tests of failing servers: retries, waits and error texts.

use std::time::{Duration, Instant};

use serde_json::json;

use super::server::{CannedAnswer, TestServer};
use super::{KEY, open_here, openai_text, options, request};
use crate::model::{ModelAccess, ModelError, QueryFailed, Reply, Request, Usage};

/// Asks a server that gives these answers, with [`KEY`] as the key; returns the outcome and the server.
async fn ask(answers: Vec<CannedAnswer>) -> (Result<Reply, QueryFailed>, TestServer) {
    let server = TestServer::start(answers).await;
    let answer = open_here("m", &options(&server.url)).query(&request()).await;
    if let Err(error) = &answer {
        assert!(!error.to_string().contains(KEY), "the key is shown: {error}");
    }
    (answer, server)
}

fn good() -> CannedAnswer {
    CannedAnswer::ok(openai_text("ok"))
}

/// Returns an answer whose head may announce another length than its body has.
fn raw(content_type: &str, length: usize, body: &str) -> CannedAnswer {
    CannedAnswer::Raw(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ).into_bytes())
}

#[tokio::test]
async fn transient_failures_are_retried() {
    let whole = openai_text("ok").to_string();
    let half = &whole[..whole.len() / 2];
    let passing = [
        ("a server error", CannedAnswer::status(500, json!({"error": {"message": "oops"}}))),
        ("an overload", CannedAnswer::status(529, json!({"type": "error", "error": {"type": "overloaded_error"}}))),
        ("a connection closed at once", CannedAnswer::Close),
        ("a body that breaks off", raw("application/json", whole.len(), half)),
        ("broken JSON", raw("application/json", half.len(), half)),
        ("a page instead of JSON", raw("text/html", 15, "<html>!</html>\n")),
        ("no HTTP at all", CannedAnswer::Raw(b"SSH-2.0-OpenSSH\r\n".to_vec())),
        ("a list of no choices", CannedAnswer::ok(json!({"choices": []}))),
        ("an error in a good answer", CannedAnswer::ok(json!({"error": {"code": 502, "message": "upstream"}}))),
        ("silence", CannedAnswer::Hang),
        ("a body in drips", CannedAnswer::Drip),
    ];
    for (what, answer) in passing {
        let (reply, server) = ask(vec![answer, good()]).await;
        assert_eq!(reply.unwrap_or_else(|error| panic!("{what}: {error}")).text, "ok");
        assert_eq!(server.requests().len(), 2, "{what}");
    }
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    for status in [401, 402, 404] {
        let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY}.")}});
        let (answer, server) = ask(vec![CannedAnswer::status(status, body), good()]).await;
        let error = answer.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the model cannot be used: status {status}: Incorrect API key provided: [key].")
        );
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_too_long_conversation_has_its_own_error_and_is_not_retried() {
    let too_long = json!({"error": {"code": 400, "type": "exceed_context_size_error", "n_ctx": 16384,
        "message": "request (20030 tokens) exceeds the available context size (16384 tokens), try increasing it"}});
    let (answer, server) = ask(vec![CannedAnswer::status(400, too_long), good()]).await;
    assert!(matches!(answer.unwrap_err().error, ModelError::ContextLength(text) if text.contains("20030 tokens")));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_cause_of_the_last_try_is_reported() {
    let limited = CannedAnswer::status(429, json!({"error": {"message": "slow down"}}));
    let (answer, server) = ask(vec![limited, CannedAnswer::status(503, json!({"error": {"message": "down"}}))]).await;
    assert_eq!(answer.unwrap_err().to_string(), "the provider failed: status 503: down (after 3 tries)");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_refused_connection_is_a_failure_with_its_reason() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let error = open_here("m", &options(&url)).query(&request()).await.unwrap_err();
    assert!(matches!(error.error, ModelError::Unavailable(_)));
    assert!(!error.to_string().contains("unknown"), "nothing was sent, so nothing was charged: {error}");
    assert!(error.to_string().contains("refused") && error.to_string().contains("(after 3 tries)"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_behind_an_https_address_is_a_failure_that_says_so() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        }
    });
    let error = open_here("m", &options(&url)).query(&request()).await.unwrap_err();
    assert!(matches!(&error.error, ModelError::Unavailable(text) if text.contains("corrupt message")), "{error}");
}

#[tokio::test]
async fn failed_tries_that_the_provider_charged_are_counted() {
    let charged = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 7}});
    let (reply, _server) = ask(vec![CannedAnswer::ok(charged), good()]).await;
    let reply = reply.unwrap();
    assert_eq!((reply.usage.input, reply.usage.output), (2000, 107));
    assert!((reply.cost - 0.00307).abs() < 1e-12, "{}", reply.cost);
    // The reply itself has 100 tokens. This number decides whether the reply was cut only if the server does not say
    // why the reply ended.
    assert!(!reply.reaches(Some(90)), "the server says that the reply is complete");
    let unexplained = Reply { finish: None, ..reply };
    assert!(unexplained.reaches(Some(100)) && !unexplained.reaches(Some(101)) && !unexplained.reaches(None));
}

/// Returns the page of a firewall that blocks a request.
fn firewall() -> CannedAnswer {
    let page = "<html>Request blocked</html>";
    let head = "HTTP/1.1 403 Forbidden\r\ncontent-type: text/html\r\nconnection: close\r\n";
    CannedAnswer::Raw(format!("{head}content-length: {}\r\n\r\n{page}", page.len()).into_bytes())
}

#[tokio::test]
async fn a_refused_conversation_does_not_deny_the_model_if_another_one_is_answered() {
    let first = Request { call: 0, ..request() };
    for refused in [firewall(), CannedAnswer::status(400, json!({"error": {"message": "no"}}))] {
        // A short question with the same tools and roles shows whether the model can be used.
        let server = TestServer::start(vec![refused.clone(), good(), refused.clone(), good()]).await;
        let model = open_here("m", &options(&server.url));
        let failed = model.query(&first).await.unwrap_err();
        assert!(matches!(failed.error, ModelError::Rejected(_)), "{failed}");
        assert_eq!((failed.usage.input, failed.usage.output), (1000, 100), "the question is charged");
        let asked = &server.requests()[1].body;
        assert_eq!((asked["messages"].as_array().unwrap().len(), &asked["tools"][0]["type"]), (2, &json!("function")));
        // After the next refusal, the short question is asked again, because the account may have run out of money
        // since the last answer.
        assert!(matches!(model.query(&first).await.unwrap_err().error, ModelError::Rejected(_)));
        assert_eq!(server.requests().len(), 4);
        // The model cannot be used if the short question is refused, too.
        let (server, later) = (TestServer::start(vec![refused.clone()]).await, Request { call: 5, ..request() });
        let asked = if matches!(refused, CannedAnswer::Raw(_)) { &later } else { &first };
        let failed = open_here("m", &options(&server.url)).query(asked).await.unwrap_err();
        assert!(matches!(failed.error, ModelError::Denied(_)), "{failed}");
        // If the server fails to answer the short question, it remains unclear whether the model can be used.
        let server = TestServer::start(vec![refused, CannedAnswer::status(503, json!({}))]).await;
        let failed = open_here("m", &options(&server.url)).query(&first).await.unwrap_err();
        assert!(matches!(failed.error, ModelError::Unavailable(_)), "{failed}");
    }
}

#[tokio::test]
async fn an_invalid_tool_call_that_the_server_refuses_to_return_is_a_reply() {
    let said = json!({"error": {"message": "Failed to call a function.", "type": "invalid_request_error",
        "code": "tool_use_failed", "failed_generation": "<function=list_files>{"}});
    let event = super::providers::events(&[&format!("data: {said}")]);
    for (answer, streams) in [(CannedAnswer::status(400, said.clone()), false), (event, true)] {
        for call in [0, 3] {
            let server = TestServer::start(vec![answer.clone()]).await;
            let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
            let model = open_here("m", &free);
            let (to, _from) = crate::model::pieces();
            let request = Request { call, ..request() };
            let reply = if streams { model.stream(&request, &to).await } else { model.query(&request).await }.unwrap();
            assert_eq!(
                (reply.text.as_str(), reply.finish.as_deref()),
                ("<function=list_files>{", Some("tool_use_failed"))
            );
            assert!(reply.estimated && reply.usage.output > 0 && server.requests().len() == 1, "{reply:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_states_a_wait_in_its_error_is_asked_more_often_than_the_number_of_retries() {
    let limited = CannedAnswer::status(429, json!({"error": {"message": "Rate limited, try again in 20ms."}}));
    let (reply, server) = ask(vec![limited.clone(), limited.clone(), limited.clone(), limited.clone(), good()]).await;
    assert_eq!((reply.unwrap().text.as_str(), server.requests().len()), ("ok", 5));
    // Without retries, the call is made once.
    let server = TestServer::start(vec![limited, good()]).await;
    let once = ModelAccess { retries: 0, ..options(&server.url) };
    assert!(open_here("m", &once).query(&request()).await.is_err() && server.requests().len() == 1);
}

#[tokio::test]
async fn a_failed_call_is_charged_for_the_tries_that_the_provider_charged() {
    let charged = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 7}});
    // In the first call, all three tries are charged. In the second call, a charged try is followed by a permanent
    // failure.
    let (answer, _server) = ask(vec![CannedAnswer::ok(charged.clone())]).await;
    let failed = answer.unwrap_err();
    assert!(matches!(failed.error, ModelError::Unavailable(_)), "{failed}");
    assert_eq!((failed.usage.input, failed.usage.output), (3000, 21));
    assert!((failed.cost - 0.00321).abs() < 1e-12, "{}", failed.cost);

    let (answer, _server) = ask(vec![CannedAnswer::ok(charged), CannedAnswer::status(401, json!({}))]).await;
    let failed = answer.unwrap_err();
    assert!(matches!(&failed.error, ModelError::Denied(text) if text.ends_with("(after 2 tries)")), "{failed}");
    assert_eq!((failed.usage.input, failed.usage.output), (1000, 7));
    assert!((failed.cost - 0.00107).abs() < 1e-12, "{}", failed.cost);
}

#[tokio::test]
async fn the_error_of_a_failed_call_says_how_many_tries_had_an_unknown_cost() {
    let down = CannedAnswer::status(503, json!({"error": {"message": "down"}}));
    let (answer, _server) = ask(vec![CannedAnswer::Hang, CannedAnswer::Close, down]).await;
    assert_eq!(
        answer.unwrap_err().to_string(),
        "the provider failed: status 503: down (after 3 tries); what 2 of them cost is unknown and not counted"
    );
}

#[tokio::test]
async fn a_reply_states_how_many_earlier_tries_got_no_complete_answer() {
    let (answer, _server) = ask(vec![CannedAnswer::Hang, CannedAnswer::Close, good()]).await;
    let reply = answer.unwrap();
    assert_eq!((reply.unanswered, reply.usage.input), (2, 1000));
    let down = CannedAnswer::status(503, json!({"error": {"message": "down"}}));
    let (answer, _server) = ask(vec![down, good()]).await;
    assert_eq!(answer.unwrap().unanswered, 0, "a server that is down charges nothing");
    let (answer, _server) = ask(vec![CannedAnswer::Close]).await;
    assert_eq!(answer.unwrap_err().unanswered, 3);
}

#[tokio::test]
async fn a_reply_with_broken_usage_is_charged_for_the_readable_counts() {
    let mut body = openai_text("ok");
    body["usage"]["completion_tokens"] = json!("many");
    let (answer, _server) = ask(vec![CannedAnswer::ok(body)]).await;
    let reply = answer.unwrap();
    assert!(reply.estimated && reply.usage.input == 1000 && reply.usage.output > 0, "{reply:?}");
    assert!(reply.cost > 0.001, "{}", reply.cost);
}

#[tokio::test]
async fn status_400_means_an_unusable_model_at_the_first_call_and_a_rejected_request_later() {
    let server =
        TestServer::start(vec![CannedAnswer::status(400, json!({"error": {"message": "invalid messages[3]"}}))]).await;
    let model = open_here("m", &options(&server.url));
    let later = model.query(&request()).await.unwrap_err();
    assert_eq!(later.to_string(), "the provider rejected the request: status 400: invalid messages[3]");
    // This request is followed by a short question, which the server refuses, too.
    let first = model.query(&Request { call: 0, ..request() }).await.unwrap_err();
    assert_eq!(first.to_string(), "the model cannot be used: status 400: invalid messages[3]");
    // With `foreign`, an external agent wrote the request. If the server refuses it, even at the first call, the
    // request may be wrong, so the error does not say that the model cannot be used.
    let strange = model.query(&Request { call: 0, foreign: true, ..request() }).await.unwrap_err();
    assert_eq!(strange.error, later.error);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_reply_withheld_by_a_filter_is_reported_as_a_refusal_and_charged() {
    let openai = json!({
        "choices": [{"index": 0, "finish_reason": "content_filter", "message": {"role": "assistant", "content": null}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
    });
    let anthropic = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": "refusal", "usage": {"input_tokens": 1000, "output_tokens": 10}});
    let gemini = json!({"candidates": [{"finishReason": "SAFETY"}],
        "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 10, "totalTokenCount": 1010}});
    for (spec, body, reason) in
        [("openai:m", openai, "content_filter"), ("anthropic:m", anthropic, "refusal"), ("gemini:m", gemini, "SAFETY")]
    {
        let server = TestServer::start(vec![CannedAnswer::ok(body)]).await;
        let failed = open_here(spec, &options(&server.url)).query(&request()).await.unwrap_err();
        let told = format!("the provider refused the conversation: {reason}: the reply was withheld");
        assert_eq!(failed.to_string(), told, "{spec}");
        assert!((failed.cost - 0.0011).abs() < 1e-12, "{spec}: {}", failed.cost);
        assert_eq!(server.requests().len(), 1, "{spec}");
    }
}

#[tokio::test]
async fn a_wait_that_the_provider_asks_for_is_respected() {
    for (name, value, least) in [("retry-after", "1".to_owned(), 1000), ("retry-after-ms", "300".to_owned(), 300)] {
        let limited = CannedAnswer::Json(429, vec![(name, value)], json!({"error": {"message": "slow down"}}));
        let (reply, server) = ask(vec![limited, good()]).await;
        assert_eq!(reply.unwrap().text, "ok");
        let asked = server.requests();
        let waited = asked[1].at - asked[0].at;
        let range = Duration::from_millis(least)..Duration::from_millis(least + 5000);
        assert!(range.contains(&waited), "{name}: waited {waited:?}");
    }
}

#[tokio::test]
async fn a_requested_wait_until_a_date_is_respected() {
    // A date in a header has whole seconds, so a date two seconds ahead asks for a wait of one to two seconds.
    let date = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC) + jiff::SignedDuration::from_secs(2);
    let value = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let limited = CannedAnswer::Json(503, vec![("retry-after", value)], json!({}));
    let (reply, server) = ask(vec![limited, good()]).await;
    assert_eq!(reply.unwrap().text, "ok");
    let waited = server.requests()[1].at - server.requests()[0].at;
    assert!((Duration::from_millis(800)..Duration::from_secs(6)).contains(&waited), "waited {waited:?}");
}

#[tokio::test]
async fn requests_to_servers_that_hang_or_drip_end_at_the_time_limit() {
    for answer in [CannedAnswer::Hang, CannedAnswer::Drip] {
        let server = TestServer::start(vec![answer]).await;
        let limited = ModelAccess { retries: 0, request_timeout: Duration::from_millis(200), ..options(&server.url) };
        let start = Instant::now();
        let error = open_here("m", &limited).query(&request()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the provider failed: no whole answer within 0.2 s; what it cost is unknown and not counted"
        );
        assert_eq!((error.usage, error.cost), (Usage::default(), 0.0), "no figure is invented");
        let took = start.elapsed();
        assert!((Duration::from_millis(200)..Duration::from_secs(5)).contains(&took), "took {took:?}");
    }
}

#[tokio::test]
async fn tokens_that_a_server_does_not_report_are_estimated_and_a_free_server_costs_nothing() {
    let mut body = openai_text("ok");
    body.as_object_mut().unwrap().remove("usage");
    let (answer, server) = ask(vec![CannedAnswer::ok(body)]).await;
    let reply = answer.unwrap();
    assert!(reply.estimated && reply.usage.input > 50 && reply.usage.output > 0 && reply.cost > 0.0, "{reply:?}");
    let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
    let unpaid = open_here("m", &free).query(&request()).await.unwrap();
    assert_eq!((unpaid.usage, unpaid.estimated), (reply.usage, true));
    assert!(unpaid.cost.abs() < f64::EPSILON);
}

#[tokio::test]
async fn a_prompt_blocked_by_gemini_is_reported_as_a_refusal() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 1000}});
    let server = TestServer::start(vec![CannedAnswer::ok(blocked.clone())]).await;
    let error = open_here("gemini:m", &options(&server.url)).query(&request()).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider refused the conversation: the prompt was blocked: SAFETY");
    assert_eq!((error.usage.input, error.cost), (1000, 0.001));
    assert_eq!(server.requests().len(), 1);

    // A stream gives the same error for the blocked prompt, although `genai` does not report in a stream why a reply is
    // missing.
    let event = super::providers::events(&[&format!("data: {blocked}")]);
    let server = TestServer::start(vec![event, CannedAnswer::ok(blocked)]).await;
    let free = ModelAccess { price: Some((0.0, 0.0)), ..options(&server.url) };
    let (to, _from) = crate::model::pieces();
    let streamed = open_here("gemini:m", &free).stream(&request(), &to).await.unwrap_err();
    assert_eq!(streamed.error, error.error);
}

#[tokio::test]
async fn a_response_that_fails_in_its_stream_says_why_and_is_charged() {
    let failed = |code: &str| {
        let response = json!({"id": "r", "object": "response", "status": "failed", "model": "m", "output": [],
            "error": {"code": code, "message": "said so"}, "usage": {"input_tokens": 1000, "output_tokens": 10}});
        json!({"type": "response.failed", "response": response})
    };
    let error = |code: &str| json!({"type": "error", "code": code, "message": "said so", "param": null});
    for (event, is_refused, input) in [
        (failed("invalid_prompt"), true, 1000),
        (failed("server_error"), false, 3000),
        (error("invalid_prompt"), true, 0),
        (error("server_error"), false, 0),
    ] {
        let server = TestServer::start(vec![super::providers::events(&[&format!("data: {event}")])]).await;
        let free = ModelAccess {
            price: Some((0.0, 0.0)),
            description: "api=responses".parse().unwrap(),
            ..options(&format!("{}/v1", server.url))
        };
        let (to, _from) = crate::model::pieces();
        let failed = open_here("openai:m", &free).stream(&request(), &to).await.unwrap_err();
        assert_eq!(matches!(failed.error, ModelError::Refused(_)), is_refused, "{event}: {failed}");
        assert!(failed.to_string().contains("said so"), "{failed}");
        assert_eq!(failed.usage.input, input, "{event}");
    }
}

#[tokio::test]
async fn too_long_conversations_are_recognised_in_errors_of_anthropic_and_gemini() {
    let anthropic = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 215000 tokens > 200000 maximum"}});
    let gemini = json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}]);
    for (spec, body, words) in
        [("anthropic:m", anthropic, "prompt is too long"), ("gemini:m", gemini, "The input token count")]
    {
        let server = TestServer::start(vec![CannedAnswer::status(400, body)]).await;
        let error = open_here(spec, &options(&server.url)).query(&request()).await.unwrap_err();
        assert!(matches!(error.error, ModelError::ContextLength(_)), "{error}");
        let start = format!("the conversation is too long for the model: status 400: {words}");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}
