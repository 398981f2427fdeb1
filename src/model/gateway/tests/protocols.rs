//! Tests how each protocol's requests are read and its replies written.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::{AgentCall, AnsweredCall, CallContext, Finish, RefusalKind, anthropic, gemini, openai, responses};
use super::{PATHS, ask_for};
use crate::model::{Effort, Reply, ReplyFormat, Request, Role, Thought, ToolCall, ToolCallChoice, Usage};

/// A small picture.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn thinking() -> Reply {
    let call = ToolCall { id: "c1".into(), name: "bash".into(), arguments: json!({"command": "ls"}) };
    Reply {
        text: "Let me look.".into(),
        reasoning: Some("Hm.".into()),
        tool_calls: vec![call],
        thoughts: vec![Thought::Block(json!({"type": "thinking", "thinking": "Hm.", "signature": "s"}))],
        usage: Usage { input: 100, cached: 40, output: 7, reasoning: 3, ..Usage::default() },
        ..Reply::default()
    }
}

/// Sends a request. Returns the body of the answer, the request that reached the model, and descriptions of the parts
/// that the gateway did not pass on to the model.
async fn send_request(path: &str, streams: bool, more: Value) -> (String, Request, Vec<String>) {
    let kept = Arc::new(Mutex::new(None));
    let keeps = kept.clone();
    let (status, body) = ask_for(path, streams, more, move |ask: AgentCall| {
        *keeps.lock().unwrap() = Some((ask.request, ask.left_out));
        ask.answer.send(Ok(AnsweredCall { reply: thinking(), most: None, refusal: None })).unwrap();
    })
    .await;
    assert_eq!(status, 200, "{body}");
    let (request, left_out) = kept.lock().unwrap().take().unwrap();
    (body, request, left_out)
}

#[tokio::test]
async fn options_are_parsed_in_every_protocol() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let chat = json!({
        "reasoning_effort": "high", "top_p": 0.9, "temperature": 0.3, "max_completion_tokens": 99, "top_k": 4,
        "parallel_tool_calls": false, "tool_choice": {"type": "function", "function": {"name": "bash"}},
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": schema}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    });
    let messages = json!({
        "output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}, "top_p": 0.9, "temperature": 0.3,
        "max_tokens": 99, "top_k": 4, "tool_choice": {"type": "tool", "name": "bash", "disable_parallel_tool_use": true},
        "tools": [{"name": "bash", "input_schema": schema, "cache_control": {"type": "ephemeral"}}],
        "output_format": {"type": "json_schema", "schema": schema},
    });
    let of_responses = json!({
        "reasoning": {"effort": "high", "summary": "auto"}, "top_p": 0.9, "temperature": 0.3, "max_output_tokens": 99,
        "top_k": 4, "parallel_tool_calls": false, "tool_choice": {"type": "function", "name": "bash"},
        "tools": [{"type": "function", "name": "bash", "parameters": schema}],
        "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}, "store": false,
    });
    let contents = json!({
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH"}, "topP": 0.9, "temperature": 0.3, "topK": 4,
            "maxOutputTokens": 99, "responseJsonSchema": schema},
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["bash"]}},
        "tools": [{"functionDeclarations": [{"name": "bash", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}]}],
    });
    for (path, more) in PATHS.into_iter().zip([chat, messages, of_responses, contents]) {
        let (_, request, left_out) = send_request(path, false, more).await;
        let (sampling, wishes) = (&request.sampling, &request.wishes);
        assert_eq!((sampling.effort, wishes.top_p), (Some(Effort::High), Some(0.9)), "{path}");
        assert_eq!((sampling.temperature, sampling.max_tokens), (Some(0.3), Some(99)), "{path}");
        assert_eq!(wishes.choice, Some(ToolCallChoice::Tool("bash".into())), "{path}");
        assert!(
            matches!(&wishes.format, Some(ReplyFormat::Schema { schema: asked, .. }) if *asked == schema),
            "{path}: {wishes:?}"
        );
        assert_eq!((request.tools.len(), &request.tools[0].parameters), (1, &schema), "{path}");
        assert_eq!(request.one_call, !path.contains("beta"), "{path}: Gemini has no such field");
        let named = left_out.join(" ");
        // The Responses API has no field for `top_k`.
        assert_eq!(
            (wishes.top_k.is_none(), named.contains("top_k")),
            (path == "/v1/responses", path == "/v1/responses"),
            "{path}: {named}"
        );
        assert_eq!(left_out.len(), usize::from(wishes.top_k.is_none()), "{path}: {left_out:?}");
    }
}

#[tokio::test]
async fn replies_contain_the_models_thoughts_and_a_token_for_them_if_the_protocol_has_a_field_for_it() {
    let wants = |path: &str| match path {
        "/v1/messages" => json!({"thinking": {"type": "adaptive"}}),
        _ if path.contains("beta") => json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}}),
        _ => json!({}),
    };
    for path in PATHS {
        for streams in [false, true] {
            let (body, ..) = send_request(path, streams, wants(path)).await;
            assert!(body.contains("Hm."), "{path}: {body}");
            // The answer contains a token, which the agent sends back in its next request. By this token, the harness
            // finds the model's thoughts again. Only chat completions have no field for such a token: there, the
            // harness finds the thoughts by the id of a tool call.
            assert_eq!(body.contains("autoexperiment-thoughts-0"), path != PATHS[0], "{path} {streams}: {body}");
        }
    }
}

#[test]
fn the_signature_of_a_models_thoughts_is_sent_back_in_every_protocol() {
    let token = "autoexperiment-thoughts-0";
    let messages = json!({"messages": [{"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": token}, {"type": "text", "text": "yes"}]}]});
    let items = json!({"input": [{"type": "reasoning", "summary": [], "encrypted_content": token},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]},
        {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}]});
    let contents = json!({"contents": [{"role": "model", "parts": [{"text": "yes"},
        {"functionCall": {"name": "bash", "args": {}}, "thoughtSignature": token}]}]});
    for read in [anthropic::read(&messages), responses::read(&items), gemini::read(&contents)] {
        let mut messages = read.unwrap().request.messages;
        assert_eq!((messages.len(), messages[0].role, messages[0].content.as_str()), (1, Role::Assistant, "yes"));
        let mut given = super::super::thoughts::ThoughtStore::default();
        given.put_back(&mut messages.clone());
        given.keep(0, &thinking().thoughts);
        given.put_back(&mut messages);
        assert_eq!(messages[0].thoughts, thinking().thoughts);
    }
}

#[test]
fn pictures_are_passed_on_and_other_attachments_become_notes() {
    let address = format!("data:image/png;base64,{PNG}");
    let chat = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": address}}, {"type": "input_audio"}]}]});
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
    let messages = json!({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
        "content": [{"type": "text", "text": "see"}, picture, {"type": "document"}]}]}]});
    let items = json!({"input": [{"type": "function_call_output", "call_id": "t", "output": [
        {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": address},
        {"type": "input_image", "image_url": "https://example.org/a.png"}]}]});
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "see"},
        {"inlineData": {"mimeType": "image/png", "data": PNG}}, {"inlineData": {"mimeType": "image/png", "data": "?"}}]}]});
    for read in [openai::read(&chat), anthropic::read(&messages), responses::read(&items), gemini::read(&contents)] {
        let read = read.unwrap();
        let message = &read.request.messages[0];
        assert_eq!((message.images.len(), message.images[0].media_type.as_str()), (1, "image/png"));
        assert!(message.content.starts_with("see\n[a `"), "{}", message.content);
        assert_eq!(read.left_out.len(), 1, "{:?}", read.left_out);
    }
}

#[tokio::test]
async fn the_items_of_a_streamed_response_equal_those_of_a_whole_response() {
    let (whole, ..) = send_request("/v1/responses", false, json!({})).await;
    let (text, ..) = send_request("/v1/responses", true, json!({})).await;
    let events: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("response.created", "response.completed"));
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted() && numbers.len() == *numbers.last().unwrap() as usize + 1, "{numbers:?}");
    let done: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| &event["item"])
        .collect();
    let types: Vec<&str> = done.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["reasoning", "message", "function_call"]);
    assert_eq!(events.last().unwrap()["response"]["output"], json!(done));
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["output"], json!(done));
    assert_eq!(whole["usage"]["input_tokens_details"]["cached_tokens"], 40);
}

#[tokio::test]
async fn custom_tools_and_tools_in_namespaces_are_called_in_their_own_format() {
    let tools = json!({"tools": [{"type": "custom", "name": "bash", "description": "runs",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
        {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]}]});
    let (body, request, left_out) = send_request("/v1/responses", false, tools).await;
    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((names, left_out.len()), (vec!["bash", "agents__spawn"], 0));
    assert!(request.tools[0].description.contains("start: /.+/"));
    let body: Value = serde_json::from_str(&body).unwrap();
    let call = &body["output"][2];
    assert_eq!((&call["type"], &call["input"]), (&json!("custom_tool_call"), &json!("{\"command\":\"ls\"}")));
    let back = json!({"input": [{"type": "custom_tool_call", "call_id": "a", "name": "bash", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "out"},
        {"type": "function_call", "call_id": "b", "name": "spawn", "namespace": "agents", "arguments": "{}"}]});
    let messages = responses::read(&back).unwrap().request.messages;
    assert_eq!(messages[0].tool_calls[0].arguments, json!({"input": "ls"}));
    assert_eq!((messages[1].content.as_str(), messages[2].tool_calls[0].name.as_str()), ("out", "agents__spawn"));
}

#[tokio::test]
async fn tools_declared_within_the_conversation_are_offered_and_called_in_their_declared_format() {
    // Codex sends these tools for models that it knows.
    let exec = json!({"type": "custom", "name": "bash", "description": "Runs JavaScript."});
    let wait = json!({"type": "function", "name": "wait", "parameters": {"type": "object", "properties": {}}});
    let agents = json!({"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]});
    let functions = json!({"type": "namespace", "name": "functions", "tools": [exec, wait]});
    let additional = json!({"type": "additional_tools", "role": "developer", "tools": [functions, agents]});
    let said = json!({"type": "message", "role": "user", "content": "hi"});
    for streams in [false, true] {
        let more = json!({"input": [additional, said], "reasoning": {"effort": "low", "context": "all_turns"}});
        let (body, request, left_out) = send_request("/v1/responses", streams, more).await;
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["bash", "wait", "agents__spawn"]);
        assert_eq!((request.messages.len(), left_out), (1, vec!["`reasoning.context`".to_owned()]));
        let item = if streams {
            let events =
                body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
            let mut done = events.filter(|event| event["type"] == "response.output_item.done");
            done.next_back().unwrap()["item"].clone()
        } else {
            serde_json::from_str::<Value>(&body).unwrap()["output"][2].clone()
        };
        assert_eq!((&item["type"], &item["name"]), (&json!("custom_tool_call"), &json!("bash")));
        assert_eq!((&item["namespace"], &item["input"]), (&json!("functions"), &json!("{\"command\":\"ls\"}")));
        // In the next request, the agent sends the call back as it got it.
        let output = json!({"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "out"});
        let back = responses::read(&json!({"input": [additional, said, item, output]})).unwrap().request.messages;
        assert_eq!(back[1].tool_calls[0].name, "bash");
    }
}

#[test]
fn tools_that_the_agents_tool_search_has_found_are_offered_to_the_model() {
    let search = json!({"type": "tool_search", "execution": "client", "description": "finds",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}});
    let call =
        json!({"type": "tool_search_call", "call_id": "a", "execution": "client", "arguments": {"query": "mail"}});
    let found = json!({"type": "namespace", "name": "mail", "tools": [{"type": "function", "name": "send"}]});
    let output = json!({"type": "tool_search_output", "call_id": "a", "execution": "client", "tools": [found]});
    let user = json!({"type": "message", "role": "user", "content": "hi"});
    let read = responses::read(&json!({"tools": [search], "input": [user, call, output]})).unwrap();
    let names: Vec<&str> = read.request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["tool_search", "mail__send"]);
    let messages = &read.request.messages;
    assert_eq!(messages[1].tool_calls[0].arguments, json!({"query": "mail"}));
    assert_eq!(messages[2].content, "These tools can be called now: mail__send.");
    let head = CallContext { kinds: read.kinds, ..CallContext::default() };
    let call = ToolCall { id: "b".into(), name: "tool_search".into(), arguments: json!({"query": "x"}) };
    let reply = Reply { tool_calls: vec![call], ..Reply::default() };
    let item = &responses::body(head, &reply, &Finish::ToolCalls)["output"][0];
    assert_eq!((&item["type"], &item["execution"]), (&json!("tool_search_call"), &json!("client")));
    assert_eq!((&item["call_id"], &item["arguments"]["query"]), (&json!("b"), &json!("x")));
}

#[test]
fn a_request_with_a_tool_that_cannot_be_passed_on_is_refused_and_the_tool_is_named() {
    let contents = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
    let (messages, input) = (json!([{"role": "user", "content": "hi"}]), json!("hi"));
    let additional = json!([{"type": "additional_tools", "tools": [{"type": "web_search"}]}]);
    for (read, what) in [
        (openai::read(&json!({"messages": messages, "tools": [{"type": "web_search"}]})), "web_search"),
        (
            anthropic::read(&json!({"messages": messages, "tools": [{"type": "web_search_20250305", "name": "w"}]})),
            "web_search_20250305",
        ),
        (responses::read(&json!({"input": input, "tools": [{"type": "file_search"}]})), "file_search"),
        (responses::read(&json!({"input": input, "tools": [{"type": "tool_search"}]})), "tool_search"),
        (responses::read(&json!({"input": additional})), "web_search"),
        (gemini::read(&json!({"contents": contents, "tools": [{"googleSearch": {}}]})), "googleSearch"),
    ] {
        let refusal = read.unwrap_err();
        assert_eq!(refusal.why, RefusalKind::Invalid);
        assert!(refusal.message.contains(&format!("cannot pass on the tool `{what}`")), "{}", refusal.message);
    }
}

#[test]
fn gemini_results_without_ids_are_matched_to_their_calls() {
    let part = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let result = |name: &str, said: &str| json!({"functionResponse": {"name": name, "response": {"output": said}}});
    let read = gemini::read(&json!({"contents": [
        {"role": "model", "parts": [part("a"), part("b"), part("a")]},
        {"role": "user", "parts": [result("b", "1"), result("a", "2"), result("a", "3")]},
    ]}));
    let messages = read.unwrap().request.messages;
    let ids: Vec<&str> = messages[0].tool_calls.iter().map(|call| call.id.as_str()).collect();
    let of = |place: usize| (messages[place].tool_call_id.as_deref().unwrap(), messages[place].content.as_str());
    assert_eq!([of(1), of(2), of(3)], [(ids[1], "1"), (ids[0], "2"), (ids[2], "3")]);
}

#[tokio::test]
async fn cut_and_stopped_replies_have_the_matching_finish_reason() {
    for (path, reply, word) in [
        (PATHS[0], Reply { cut: true, ..Reply::default() }, "\"finish_reason\":\"length\""),
        (PATHS[1], Reply { text: "a END".into(), ..Reply::default() }, "\"stop_sequence\":\"END\""),
        (PATHS[2], Reply { cut: true, ..Reply::default() }, "\"status\":\"incomplete\""),
        (PATHS[3], Reply { cut: true, ..Reply::default() }, "\"finishReason\":\"MAX_TOKENS\""),
    ] {
        for streams in [false, true] {
            let reply = reply.clone();
            let answers = move |ask: AgentCall| {
                ask.answer.send(Ok(AnsweredCall { reply: reply.clone(), most: None, refusal: None })).unwrap();
            };
            let (_, body) = ask_for(path, streams, json!({"stop_sequences": ["END"]}), answers).await;
            assert!(body.contains(word), "{path}: {body}");
        }
    }
}
