//! A misbehaving model server, seen from the command line: how the attempt ends, and how the run ends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::Lab;
use crate::support::model_server::questions;
use serde_json::{Value, json};

/// Reaction of the server to one request. The server repeats the last of its reactions for ever.
#[derive(Clone)]
enum Turn {
    Answer(u16, &'static str, String),
    Hang,
    Garbage,
}

/// Starts a server on its own port, which runs until the test process ends.
fn serve(turns: Vec<Turn>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (number, stream) in questions(listener).enumerate() {
            let turn = turns[number.min(turns.len() - 1)].clone();
            std::thread::spawn(move || answer(stream, &turn));
        }
    });
    url
}

fn answer(mut stream: TcpStream, turn: &Turn) {
    read_request(&mut stream);
    write(stream, turn);
}

fn write(mut stream: TcpStream, turn: &Turn) {
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

/// Reads a request's head and then as many bytes as it announces. Returns the body.
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

/// Returns a whole reply that calls `final_answer`.
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
    arguments.extend(["--no-baseline", "-j", "1"]);
    if !more.contains(&"--price") {
        arguments.extend(["--price", "0,0"]);
    }
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

/// Starts a server with one answer for requests for the list of models and another one for all other requests. Also
/// returns the recorded requests.
fn listing(list: (u16, Value), reply: (u16, String)) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut first = [0; 4];
            let turn = match stream.peek(&mut first) {
                Ok(0) | Err(_) => continue,
                Ok(_) if &first == b"GET " => Turn::Answer(list.0, "", list.1.to_string()),
                Ok(_) => Turn::Answer(reply.0, "", reply.1.clone()),
            };
            let body = read_request(&mut stream);
            if let Ok(body) = serde_json::from_str(&body) {
                kept.lock().unwrap().push(body);
            }
            write(stream, &turn);
        }
    });
    (url, asked)
}

fn models(names: &[&str]) -> Value {
    json!({"object": "list", "data": names.iter().map(|name| json!({"id": name, "object": "model"})).collect::<Vec<_>>()})
}

#[test]
fn a_wrong_key_or_unknown_model_ends_the_run_before_anything_is_built() {
    let said = |words: &str| json!({"error": {"message": words}});
    for (list, reply, words) in [
        ((401, said("bad key")), (401, "bad key"), "status 401: bad key"),
        ((200, models(&["a", "b"])), (404, "m: nobody"), "status 404: m: nobody (it has `a`, `b`)"),
        ((404, said("model_not_found")), (404, "no such model"), "status 404: no such model"),
        ((400, said("API key not valid")), (400, "API key not valid"), "status 400: API key not valid"),
    ] {
        let lab = Lab::new();
        let (url, _) = listing(list, (reply.0, said(reply.1).to_string()));
        let ran = run(&lab, &url, &[]);
        assert_eq!(ran.code, 6, "{}", ran.stderr);
        assert!(ran.stderr.contains("error: `m` cannot be asked: the model cannot be used: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(words) && ran.stderr.contains("nothing was run"), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains("AUTOEXPERIMENT_API_KEY"), "{}", ran.stderr);
        assert!(!lab.path("runs/r").exists(), "no run was made");
    }
}

#[test]
fn a_model_that_the_servers_list_lacks_is_used_if_it_answers_a_test_call() {
    let lab = Lab::new();
    for (name, list, asked) in [
        ("listed", (200, models(&["m"])), 1),
        ("alias", (200, models(&["m-2025-01-01"])), 2),
        ("forbidden", (403, json!({"error": {"message": "missing scope"}})), 2),
        ("none", (404, json!({"detail": "Not Found"})), 1),
        ("page", (200, json!("hello")), 1),
    ] {
        let (url, kept) = listing(list, (200, reply()));
        let ran = run(&lab, &url, &["--limit", "1", "--price", "1,2"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        // Each call reads 10 tokens and writes 5. If a test call to the model was made before the run (`asked` is 2),
        // its cost is reported and is part of the run's cost.
        let status: Value = serde_json::from_str(&lab.ok(&["status", "r", "--json"]).stdout).unwrap();
        let (spent, each) = (status["cost"].as_f64().unwrap(), 0.00002);
        assert!((spent - each * f64::from(asked)).abs() < 1e-12, "{name}: {status:#}");
        let told = "a test call to the model cost $0.000020 (10 tokens read, 5 written)";
        assert_eq!(ran.stderr.contains(told), asked == 2, "{name}: {}", ran.stderr);
        let probes = lab.read("runs/r/ledger.jsonl").lines().filter(|line| line.contains("probed")).count();
        assert_eq!(probes, usize::from(asked == 2), "{name}");
        assert!((lab.records("r")[0]["cost"].as_f64().unwrap() - each).abs() < 1e-12, "{name}: no attempt pays for it");
        std::fs::remove_dir_all(lab.path("runs/r")).unwrap();
        let kept = kept.lock().unwrap();
        assert_eq!(kept.len(), asked as usize, "{name}: {kept:#?}");
        if asked == 2 {
            assert!(
                kept[0]["max_tokens"].as_u64().or(kept[0]["max_completion_tokens"].as_u64()) == Some(16),
                "{kept:#?}"
            );
        }
    }
}

#[test]
fn doctor_reports_price_and_features_of_a_model_and_whether_it_answers() {
    let lab = Lab::new();
    let call = |arguments: &str| {
        let call = json!({"id": "c", "type": "function", "function": {"name": "add", "arguments": arguments}});
        let message = json!({"role": "assistant", "content": "", "reasoning_content": "Two.", "tool_calls": [call]});
        json!({"id": "x", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}})
        .to_string()
    };
    let probe = |url: &str, more: &[&str]| {
        lab.run(&[&["doctor", "--probe", "m", "--base-url", url, "--price", "1,10,0.1,2"], more].concat())
    };
    let (url, asked) = listing((200, models(&["m"])), (200, call("{\"a\": 2, \"b\": 3}")));
    let ran = probe(&url, &["--describe", "reasoning=true,sampling=false"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for line in [
        "answers:    yes, in ",
        "price:      $1 read, $0.1 from the cache, $2 to the cache, $10 written, per million tokens\n",
        "this call:  $0.002000; 1000 tokens read, 100 written, 0 of these for reasoning\n",
        "tools:      called as asked\n",
        "reasoning:  takes an effort or a budget\n",
        "thoughts:   kept and sent back\n",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("before it:"), "the list has it: {}", ran.stdout);
    assert_eq!(asked.lock().unwrap()[0]["tools"][0]["function"]["name"], "add");

    let (url, _) = listing((200, models(&["m-2025"])), (200, call("{\"a\": 2}")));
    let ran = probe(&url, &[]);
    let before = "before it:  a test call to the model cost $0.002000 (1000 tokens read, 100 written)\n";
    assert!(ran.stdout.contains(before), "{}", ran.stdout);
    assert!(ran.stdout.contains("tools:      called, but not as asked: add {\"a\":2}\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("reasoning:  takes no effort that is known\n"), "{}", ran.stdout);

    let text = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "5\u{1b}[31m"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}});
    let (url, _) = listing((404, json!({})), (200, text.to_string()));
    let ran = probe(&url, &[]);
    assert!(
        ran.stdout.contains("tools:      the model called no tool; use the setting `protocol=text`. It said: 5"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains('\u{1b}') && ran.stdout.contains("thoughts:   none that go back"), "{}", ran.stdout);

    let denied = json!({"error": {"message": "bad key"}});
    let (url, _) = listing((401, denied.clone()), (401, denied.to_string()));
    let ran = probe(&url, &[]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`m` does not answer: the model cannot be used: status 401: bad key"),
        "{}",
        ran.stderr
    );
    assert!(lab.fails(2, &["doctor", "--describe", "images=true"]).contains("--probe"));
}

#[test]
fn a_conversation_refused_by_the_server_fails_its_own_attempt_and_no_other_attempt() {
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
