//! A small real model replies through an OpenAI-compatible server, and `react` works with it.

use std::time::Instant;

use crate::support::Lab;
use crate::support::local_model::{LocalModel, NAME};
use autoexperiment::agent::conversation;
use autoexperiment::agent::{End, Event, Trajectory};
use autoexperiment::model::{Message, ModelAccess, ModelError, ReplyPiece, Request, Role, Sampling, Tool, Usage, open};
use serde_json::{Value, json};

fn ask(text: String) -> Request {
    Request {
        messages: vec![Message::new(Role::System, "You write Python."), Message::new(Role::User, text)],
        tools: Vec::new().into(),
        sampling: Sampling { temperature: Some(0.0), seed: Some(1), max_tokens: Some(128), ..Sampling::default() },
        ..Request::default()
    }
}

#[tokio::test]
#[ignore = "downloads 500 MB and runs a small language model"]
async fn a_real_model_reports_usage_and_a_recording_replays_its_replies_without_the_model() {
    let server = LocalModel::start();
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("calls.jsonl");
    let options = ModelAccess {
        base_url: Some(server.base_url.clone()),
        price: Some((0.0, 0.0)),
        record: Some(recording.clone()),
        ..ModelAccess::default()
    };
    let model = open(NAME, &options).unwrap();
    let request = ask("Write a function that returns the n-th Fibonacci number.".into());
    let start = Instant::now();
    let reply = model.query(&request).await.unwrap();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} tokens read and {} written in {seconds:.1} s, {:.1} written a second:\n{}",
        reply.usage.input,
        reply.usage.output,
        reply.usage.output as f64 / seconds,
        reply.text
    );
    assert!(reply.text.contains("def "), "{reply:?}");
    assert!(reply.usage.input > 20 && (1..=128).contains(&reply.usage.output), "{:?}", reply.usage);
    assert!(reply.cost.abs() < f64::EPSILON);

    // The streamed reply is the same, in several pieces.
    let (to, mut from) = autoexperiment::model::pieces();
    let streamed = model.stream(&request, &to).await.unwrap();
    let mut pieces = Vec::new();
    while let Some((_, ReplyPiece::Text(piece))) = from.try_next() {
        pieces.push(piece);
    }
    assert_eq!((pieces.concat(), streamed.usage.output), (streamed.text, reply.usage.output));
    assert!(pieces.len() > 5, "{pieces:?}");

    // A model this small may or may not call a tool, so test only that a request with a tool works.
    let mut with_tool = ask("List the files with the tool.".into());
    with_tool.tools = vec![Tool {
        name: "list_files".into(),
        description: "Lists the files of a folder.".into(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }]
    .into();
    let offered = model.query(&with_tool).await.unwrap();
    println!("{offered:?}");
    assert!(offered.text.contains("list_files") || !offered.tool_calls.is_empty(), "{offered:?}");

    let too_long = model.query(&ask("word ".repeat(20_000))).await.unwrap_err();
    assert!(matches!(too_long.error, ModelError::ContextLength(_)), "{too_long}");

    drop(server);
    let replay = open(&format!("replay:{}", recording.display()), &ModelAccess::default()).unwrap();
    assert_eq!(replay.query(&request).await.unwrap(), reply);
}

/// The model's text cannot be predicted. The test checks that the attempt ends in one of the known ways whatever the
/// text is, and that the record, the report and the conversation agree on it.
#[test]
#[ignore = "downloads 500 MB and runs a small language model"]
fn react_attempts_with_a_real_model_end_as_recorded_and_reported() {
    let server = LocalModel::start();
    let lab = Lab::new();
    lab.ok(&[
        "run",
        "--sample",
        "tiny_1",
        "--sample",
        "tiny_3",
        "--agent",
        "react",
        "--name",
        "r",
        "--jobs",
        "1",
        "--model",
        NAME,
        "--base-url",
        &server.base_url,
        "--price",
        "0,0",
        "--temperature",
        "0.7",
        "--steps",
        "4",
        "--time",
        "1m",
        "--max-tokens",
        "150",
        "--describe",
        "tokens=true",
    ]);
    let records = lab.records("r");
    assert_eq!(records.len(), 2);
    let mut taken = Usage::default();
    for record in &records {
        let end: End = serde_json::from_value(record["end"].clone()).unwrap();
        assert!(!end.is_infrastructure(), "{record:#}");
        let file = format!("runs/r/trajectories/react/{}.0.jsonl", record["sample"].as_str().unwrap());
        let lines = Trajectory::read(&lab.path(&file)).unwrap();
        assert!(lines.iter().any(|line| matches!(line.event, Event::Ended { end: told, .. } if told == end)));

        // The record's sums equal those of the trajectory's lines.
        let mut usage = Usage::default();
        let (mut steps, mut waited, mut tools) = (0, 0.0, 0.0);
        for line in &lines {
            match &line.event {
                Event::Reply { step, usage: used, seconds, finish, weights, tokens, .. } => {
                    steps += 1;
                    // This server returns the ids of the tokens that it writes, but not those of the prompt's tokens.
                    let tokens = tokens.as_ref().unwrap();
                    assert_eq!((tokens.completion.len(), tokens.prompt.len()), (used.output as usize, 0));
                    assert!(
                        tokens.logprobs.len() == tokens.completion.len()
                            && tokens.logprobs.iter().all(|one| *one <= 0.0)
                    );
                    assert!(finish.is_some() && weights.is_some(), "{finish:?} {weights:?}");
                    assert_eq!(*step, steps, "steps are numbered from 1 without a gap");
                    assert!(used.input > 0 && used.output > 0, "{used:?}");
                    usage += *used;
                    waited += seconds;
                }
                Event::ToolModelCall { usage: used, seconds, .. } => {
                    usage += *used;
                    waited += seconds;
                }
                Event::Observation { seconds, .. } => tools += seconds,
                _ => {}
            }
        }
        assert!((1..=4).contains(&steps));
        assert_eq!(record["steps"], steps);
        assert_eq!(serde_json::from_value::<Usage>(record["usage"].clone()).unwrap(), usage);
        let seconds = |key: &str| record[key].as_f64().unwrap();
        assert!((seconds("model_seconds") - waited).abs() < 0.01, "{waited}: {record:#}");
        // Reading the files that a tool needs counts as tool time, even if the tool's call is then refused. No
        // observation contains that time, so the record's sum may be larger.
        assert!(seconds("tool_seconds") >= tools - 0.01, "{tools}: {record:#}");
        assert!(seconds("cost").abs() < f64::EPSILON);
        taken += usage;

        // The conversation can be replayed: system, user, then the model and its tools in turns.
        let conversation = conversation::replay(&lines);
        let roles: Vec<Role> = conversation.iter().map(|message| message.role).collect();
        assert_eq!(roles[..3], [Role::System, Role::User, Role::Assistant]);
        assert_eq!(roles.iter().filter(|role| **role == Role::Assistant).count(), steps as usize);
        println!("{}: {end:?} after {steps} steps, {usage:?}, {waited:.0} s", record["sample"]);
    }
    let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
    let row = &report["rows"][0];
    assert_eq!((&row["agent"], &row["model"]), (&json!("react"), &json!(NAME)));
    assert_eq!((&row["attempts"], &row["lost"]), (&json!(2), &json!(0)));
    assert_eq!(serde_json::from_value::<Usage>(row["usage"].clone()).unwrap(), taken);
    let shown = lab.ok(&["report", "r"]).stdout;
    assert!(shown.contains(NAME), "{shown}");
}

/// The same for the fixed agent: its attempts end in one of the known ways whatever the model's text is, and are
/// scored.
#[test]
#[ignore = "downloads 500 MB and runs a small language model"]
fn attempts_of_the_fixed_agent_with_a_real_model_end_and_are_scored() {
    let server = LocalModel::start();
    let lab = Lab::new();
    let agents = ["--agent", "fixed", "--agent", "fixed:paper=oracle,repair=1,reasoning=60"];
    let model = ["--model", NAME, "--base-url", &server.base_url, "--price", "0,0", "--temperature", "0"];
    let run = ["run", "--sample", "tiny_0", "--sample", "tiny_2", "--max-tokens", "200", "--jobs", "1", "--name", "r"];
    lab.ok(&[&run[..], &agents[..], &model[..]].concat());
    let records = lab.records("r");
    assert_eq!(records.len(), 4);
    for record in &records {
        let end: End = serde_json::from_value(record["end"].clone()).unwrap();
        assert!(!end.is_infrastructure(), "{record:#}");
        assert!(record["reported"].is_object() && record["verified"].is_object(), "{record:#}");
        let usage: Usage = serde_json::from_value(record["usage"].clone()).unwrap();
        assert!(usage.input > 100 && usage.output > 0, "{usage:?}");
        println!("{} {}: {end:?}, passed: {}, {usage:?}", record["agent"], record["sample"], record["pass"]);
    }
}
