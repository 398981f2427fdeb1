//! A model's server that misbehaves, seen from the command line: what the attempt ends as, what the run ends with.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::Lab;
use serde_json::{Value, json};

/// What the server does with each request, in turn; the last one goes on for ever.
#[derive(Clone)]
enum Turn {
    Answer(u16, &'static str, String),
    Hang,
    Garbage,
}

/// A server on a port of its own, for as long as the test process lives.
fn serve(turns: Vec<Turn>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        // A connection on which nothing is asked only shows that the server is there.
        let asked = listener.incoming().flatten().filter(|stream| stream.peek(&mut [0]).is_ok_and(|count| count > 0));
        for (number, stream) in asked.enumerate() {
            let turn = turns[number.min(turns.len() - 1)].clone();
            std::thread::spawn(move || answer(stream, &turn));
        }
    });
    url
}

fn answer(mut stream: TcpStream, turn: &Turn) {
    read_request(&mut stream);
    match turn {
        Turn::Answer(status, headers, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
        Turn::Hang => std::thread::sleep(Duration::from_mins(1)),
        Turn::Garbage => {
            let _ = stream.write_all(b"\x00\xffnot http at all\r\n\r\n");
        }
    }
}

/// Reads the head, then as much as it announces; gives the body.
pub fn read_request(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let head = text.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(head) = head {
            let lines = String::from_utf8_lossy(&text[..head]).to_lowercase();
            let length = lines.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
            if text.len() >= head + 4 + length.unwrap_or(0) {
                return String::from_utf8_lossy(&text[head + 4..]).into_owned();
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return String::new(),
            Ok(count) => text.extend_from_slice(&buffer[..count]),
        }
    }
}

/// A whole reply that calls `final_answer`.
fn reply() -> String {
    let arguments = json!({"answer": {"Experiment 1": {}}}).to_string();
    let call = json!({"id": "c", "type": "function", "function": {"name": "final_answer", "arguments": arguments}});
    let message = json!({"role": "assistant", "content": "done", "tool_calls": [call]});
    json!({
        "id": "x", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    })
    .to_string()
}

fn run(lab: &Lab, url: &str, more: &[&str]) -> crate::support::Ran {
    let mut arguments = vec!["run", "-n", "1", "--agent", "react", "--model", "m", "--base-url", url, "--name", "r"];
    arguments.extend(["--price", "0,0", "--no-baseline", "-j", "1"]);
    arguments.extend(more);
    lab.run(&arguments)
}

#[test]
fn a_server_that_limits_the_rate_is_asked_again_after_the_time_that_it_names() {
    let lab = Lab::new();
    let limited = Turn::Answer(429, "retry-after: 1\r\n", "{\"error\":{\"message\":\"slow down\"}}".into());
    let url = serve(vec![limited, Turn::Answer(200, "", reply())]);
    let begun = Instant::now();
    let ran = run(&lab, &url, &["--limit", "1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(lab.records("r")[0]["end"], "answered");
}

#[test]
fn a_server_that_hangs_or_answers_with_garbage_loses_attempts_but_fails_none() {
    let cut = Turn::Answer(200, "", reply()[..90].to_owned());
    for turn in [Turn::Hang, Turn::Garbage, cut, Turn::Answer(500, "", "oops".into())] {
        let lab = Lab::new();
        let more = ["--limit", "2", "--retries", "0", "--tries", "1", "--request-timeout", "0.5"];
        let ran = run(&lab, &serve(vec![turn]), &more);
        assert_eq!(ran.code, 8, "{}", ran.stderr);
        assert!(ran.stderr.contains("2 attempt(s) were lost to infrastructure"), "{}", ran.stderr);
        let records = lab.records("r");
        assert!(records.iter().all(|record| record["end"] == "model_error" && record["reported"].is_null()));
        assert_eq!(records.len(), 2);
    }
}

#[test]
fn a_wrong_key_or_an_unknown_model_stops_the_run_with_the_servers_words() {
    for (status, words) in [(401, "bad key"), (404, "no such model")] {
        let lab = Lab::new();
        let body = json!({"error": {"message": words}}).to_string();
        let ran = run(&lab, &serve(vec![Turn::Answer(status, "", body)]), &[]);
        assert_eq!(ran.code, 6, "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert_eq!(lab.records("r").len(), 1, "nothing was tried again");
    }
}

#[test]
fn a_conversation_that_the_server_refuses_fails_its_attempt_and_no_other() {
    let lab = Lab::new();
    let body = json!({"error": {"message": "content policy", "code": "content_filter"}}).to_string();
    let url = serve(vec![Turn::Answer(400, "", body), Turn::Answer(200, "", reply())]);
    let ran = run(&lab, &url, &["--limit", "2"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ends: Vec<Value> = lab.records("r").iter().map(|record| record["end"].clone()).collect();
    assert_eq!(ends, [json!("refused"), json!("answered")]);
    let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
    assert_eq!((&report["rows"][0]["attempts"], &report["rows"][0]["lost"]), (&json!(2), &json!(0)));
}
