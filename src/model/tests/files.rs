//! Tests of scripts, recordings and replays on disk.

use std::path::Path;

use serde_json::json;

use super::server::{CannedAnswer, TestServer};
use super::{open_here, openai_text, options, request};
use crate::error::{Error, FailureKind};
use crate::model::{Message, ModelAccess, ModelError, QueryFailed, Reply, Request, Role, ToolCall, Usage, open};

fn spec(form: &str, path: &Path) -> String {
    format!("{form}:{}", path.display())
}

fn at(call: u32) -> Request {
    Request { call, ..Request::default() }
}

fn asking(call: u32, text: &str) -> Request {
    Request {
        messages: vec![Message::new(Role::System, "Rules."), Message::new(Role::User, text)],
        call,
        ..Request::default()
    }
}

/// Opens a file that must be refused, and returns the error.
fn refused(form: &str, path: &Path) -> Error {
    open(&spec(form, path), &ModelAccess::default()).err().unwrap()
}

#[tokio::test]
async fn a_scripted_model_answers_each_call_with_the_reply_of_the_same_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    let lines = "\n{\"text\": \"one\", \"usage\": {\"input\": 5, \"output\": 2}, \"cost\": 0.25}\n\n\
                 {\"tool_calls\": [{\"name\": \"finish\", \"arguments\": {\"x\": 1}}, {\"name\": \"list_files\"}]}\n";
    let array = format!("[{}]", lines.trim().replace("\n\n", ","));
    for text in [lines, &array] {
        std::fs::write(&path, text).unwrap();
        let model = open(&spec("scripted", &path), &ModelAccess::default()).unwrap();
        for _ in 0..2 {
            let one = model.query(&at(0)).await.unwrap();
            let usage = Usage { input: 5, output: 2, ..Usage::default() };
            assert_eq!(one, Reply { text: "one".into(), usage, cost: 0.25, ..Reply::default() });
            let two = model.query(&at(1)).await.unwrap();
            let call = |id: &str, name: &str, arguments| ToolCall { id: id.into(), name: name.into(), arguments };
            let calls = [call("call-1-0", "finish", json!({"x": 1})), call("call-1-1", "list_files", json!({}))];
            assert_eq!(two.tool_calls, calls);
        }
        let beyond = model.query(&at(2)).await.unwrap_err();
        assert!(
            matches!(&beyond.error, ModelError::Exhausted(text) if text == "the script has 2 replies, none for call 2")
        );
    }
}

#[test]
fn an_invalid_script_of_replies_is_refused_with_its_file_and_the_line_of_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.jsonl");
    let good = "{\"text\": \"a\"}\n";
    let wrong = [
        (format!("{good}\n{{\"txt\": \"b\"}}\n"), Some(3), "unknown field `txt`"),
        (format!("{good}{{\"text\""), Some(2), "EOF"),
        ("[\n{\"text\": \"a\"},\n{\"tool_calls\": [{}]}\n]".into(), Some(3), "missing field `name`"),
        (String::new(), None, "no replies"),
        ("[]".into(), None, "no replies"),
        ("{\"cost\": -1}".into(), None, "negative cost"),
    ];
    for (text, line, words) in wrong {
        std::fs::write(&path, &text).unwrap();
        let error = refused("scripted", &path);
        assert_eq!(error.place, Some((path.clone(), line)), "{text}");
        assert!(error.kind == FailureKind::Usage && error.message.contains(words), "{text}: {error}");
    }
    assert_eq!(refused("scripted", Path::new("/no/such/file")).to_string(), "failed to read script `/no/such/file`");
}

#[tokio::test]
async fn a_replay_returns_the_recorded_replies_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let mut body = openai_text("Größe: 0.1 \u{1f600}\r\n\t\u{0}");
    body["choices"][0]["message"]["tool_calls"] =
        json!([{"id": "z", "type": "function", "function": {"name": "f", "arguments": "{\"b\": 0.1, \"a\": 1e-7}"}}]);
    let too_long = CannedAnswer::status(400, json!({"error": {"code": "context_length_exceeded", "message": "long"}}));
    let server = TestServer::start(vec![CannedAnswer::ok(body), too_long]).await;
    let recorded = open_here("m", &ModelAccess { record: Some(path.clone()), ..options(&server.url) });
    assert_eq!(recorded.name(), "m");
    let reply = recorded.query(&request()).await.unwrap();
    let error = recorded.query(&asking(2, "more")).await.unwrap_err();
    drop(server);

    let name = spec("replay", &path);
    let replay = open(&name, &ModelAccess::default()).unwrap();
    assert_eq!(replay.name(), name);
    let played = replay.query(&request()).await.unwrap();
    assert_eq!(serde_json::to_string(&played).unwrap(), serde_json::to_string(&reply).unwrap());
    assert_eq!(replay.query(&asking(2, "more")).await.unwrap_err(), error);
    assert!(matches!(error.error, ModelError::ContextLength(_)));

    let line: serde_json::Value =
        serde_json::from_str(std::fs::read_to_string(&path).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!(line["key"].as_str().unwrap().len(), 64);
    assert_eq!(line["request"]["messages"][1]["content"], "List the files.");
    assert_eq!(line["reply"]["usage"]["input"], 1000);
}

#[tokio::test]
async fn a_replayed_refusal_is_charged_like_the_recorded_one_unless_an_old_recording_lacks_the_usage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let charged = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 7}});
    let filtered = CannedAnswer::status(400, json!({"error": {"code": "content_filter", "message": "blocked"}}));
    let server = TestServer::start(vec![CannedAnswer::ok(charged), filtered]).await;
    let recorded = open_here("m", &ModelAccess { record: Some(path.clone()), ..options(&server.url) });
    let failed = recorded.query(&request()).await.unwrap_err();
    assert_eq!((failed.usage.input, failed.usage.output), (1000, 7));
    let replay = open(&spec("replay", &path), &ModelAccess::default()).unwrap();
    assert_eq!(replay.query(&request()).await.unwrap_err(), failed);

    let mut line: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(line["error"]["usage"]["input"], 1000);
    line["error"] = json!({"refused": "status 400: blocked"});
    std::fs::write(&path, format!("{line}\n")).unwrap();
    let replay = open(&spec("replay", &path), &ModelAccess::default()).unwrap();
    let older = QueryFailed::from(ModelError::Refused("status 400: blocked".into()));
    assert_eq!(replay.query(&request()).await.unwrap_err(), older);
}

#[tokio::test]
async fn a_call_that_is_refused_for_a_bad_api_key_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let server = TestServer::start(vec![CannedAnswer::status(401, json!({}))]).await;
    let model = open_here("m", &ModelAccess { record: Some(path.clone()), ..options(&server.url) });
    assert!(matches!(model.query(&request()).await.unwrap_err().error, ModelError::Denied(_)));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
}

#[tokio::test]
async fn a_recording_that_cannot_be_written_charges_its_reply_and_stops_all_calls() {
    let server = TestServer::start(vec![CannedAnswer::ok(openai_text("ok"))]).await;
    let model = open_here("m", &ModelAccess { record: Some("/dev/full".into()), ..options(&server.url) });
    let failed = model.query(&request()).await.unwrap_err();
    let told = "the model cannot be used: failed to write the recording `/dev/full`: No space left on device";
    assert!(failed.to_string().starts_with(told), "{failed}");
    assert_eq!((failed.usage.input, failed.usage.output), (1000, 100));
    assert!((failed.cost - 0.002).abs() < 1e-12, "{}", failed.cost);
    let again = model.query(&request()).await.unwrap_err();
    assert_eq!((again.error, again.cost), (failed.error, 0.0));
    assert_eq!(server.requests().len(), 1, "the provider is not asked again");
}

#[tokio::test]
async fn replies_to_equal_requests_are_replayed_in_order_and_start_again_after_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let answers = ["a", "b", "c"].map(|text| CannedAnswer::ok(openai_text(text)));
    let server = TestServer::start(answers.to_vec()).await;
    let options = ModelAccess { record: Some(path.clone()), ..options(&server.url) };
    // A second run continues the recording.
    let first = open_here("m", &options);
    first.query(&request()).await.unwrap();
    first.query(&request()).await.unwrap();
    open_here("m", &options).query(&request()).await.unwrap();

    let replay = open(&spec("replay", &path), &ModelAccess::default()).unwrap();
    let mut texts = Vec::new();
    for _ in 0..7 {
        texts.push(replay.query(&request()).await.unwrap().text);
    }
    assert_eq!(texts.concat(), "abcabca");
}

#[tokio::test]
async fn failures_of_the_network_are_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let server = TestServer::start(vec![CannedAnswer::status(500, json!({}))]).await;
    let model = open_here("m", &ModelAccess { record: Some(path.clone()), retries: 0, ..options(&server.url) });
    model.query(&request()).await.unwrap_err();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    assert!(refused("replay", &path).message.contains("the recording is empty"));
}

#[tokio::test]
async fn an_unrecorded_request_is_compared_with_the_nearest_recorded_one() {
    let folder = tempfile::tempdir().unwrap();
    let (script, path) = (folder.path().join("script"), folder.path().join("calls.jsonl"));
    std::fs::write(&script, "{\"text\": \"a\"}\n{\"text\": \"b\"}").unwrap();
    let record = ModelAccess { record: Some(path.clone()), ..ModelAccess::default() };
    let recorded = open(&spec("scripted", &script), &record).unwrap();
    recorded.query(&asking(1, "Took 1.5 s")).await.unwrap();
    recorded.query(&Request { messages: vec![Message::new(Role::User, "far")], ..at(1) }).await.unwrap();
    let replay = open(&spec("replay", &path), &ModelAccess::default()).unwrap();

    let mut warm = asking(1, "Took 1.5 s");
    warm.sampling.temperature = Some(1.0);
    let mut longer = asking(1, "Took 1.5 s");
    longer.messages.push(Message::new(Role::Assistant, "Well."));
    let mut shorter = asking(1, "Took 1.5 s");
    shorter.messages.pop();
    let cases = [
        (asking(1, "Took 2.5 s"), "message 1 (user) differs from character 5 on: `1.5 s` recorded, `2.5 s` asked"),
        (longer, "message 2 (assistant) of the request is not in the recording"),
        (shorter, "message 1 (user) of the recording is not in the request"),
        (warm, "the sampling differs"),
        (Request { tools: request().tools, ..asking(1, "Took 1.5 s") }, "the tools on offer differ"),
        (asking(9, "Took 1.5 s"), "no reply for call 9: no recorded attempt made so many calls"),
    ];
    for (asked, words) in cases {
        let error = replay.query(&asked).await.unwrap_err();
        assert!(matches!(&error.error, ModelError::Exhausted(text) if text.contains(words)), "{words}: {error}");
    }
}

#[tokio::test]
async fn a_torn_last_line_is_removed_before_recording_continues() {
    let folder = tempfile::tempdir().unwrap();
    let (script, path) = (folder.path().join("script"), folder.path().join("calls.jsonl"));
    std::fs::write(&script, "{\"text\": \"a\"}\n{\"text\": \"b\"}").unwrap();
    let record = ModelAccess { record: Some(path.clone()), ..ModelAccess::default() };
    let scripted = spec("scripted", &script);
    open(&scripted, &record).unwrap().query(&at(0)).await.unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [whole.as_slice(), &whole[..30]].concat()).unwrap();

    let replay = open(&spec("replay", &path), &ModelAccess::default()).unwrap();
    assert_eq!(replay.query(&at(0)).await.unwrap().text, "a");
    open(&scripted, &record).unwrap().query(&at(1)).await.unwrap();
    let replay = open(&spec("replay", &path), &ModelAccess::default()).unwrap();
    assert_eq!(replay.query(&at(1)).await.unwrap().text, "b");
}

#[test]
fn a_file_that_is_not_a_recording_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let (script, path) = (folder.path().join("script"), folder.path().join("notes.md"));
    std::fs::write(&script, "{}").unwrap();
    for text in ["# Notes\nno recording\n", "# Notes without an end"] {
        std::fs::write(&path, text).unwrap();
        let error =
            open(&spec("scripted", &script), &ModelAccess { record: Some(path.clone()), ..ModelAccess::default() })
                .err();
        let error = error.unwrap_or_else(|| panic!("{text:?} was taken for a recording"));
        assert_eq!((error.kind, error.place), (FailureKind::Usage, Some((path.clone(), Some(1)))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    let again = ModelAccess { record: Some(path.clone()), ..ModelAccess::default() };
    assert!(open(&spec("replay", &path), &again).err().unwrap().message.contains("cannot be recorded again"));
}

#[tokio::test]
async fn concurrent_calls_are_recorded_as_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (script, path) = (folder.path().join("script"), folder.path().join("calls.jsonl"));
    std::fs::write(&script, "{\"text\": \"a\"}").unwrap();
    let record = ModelAccess { record: Some(path.clone()), ..ModelAccess::default() };
    let model = open(&spec("scripted", &script), &record).unwrap();
    let calls = (0..64).map(|number| {
        let model = std::sync::Arc::clone(&model);
        tokio::task::spawn(async move { model.query(&asking(0, &number.to_string().repeat(5000))).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    let replay = open(&spec("replay", &path), &ModelAccess::default()).unwrap();
    for number in 0..64 {
        assert_eq!(replay.query(&asking(0, &number.to_string().repeat(5000))).await.unwrap().text, "a");
    }
}
