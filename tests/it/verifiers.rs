//! Verifiers, which choose one of the attempts at a sample, from the command line: for new and for stored runs, with
//! their costs, stopping and resuming.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::model_server::questions;
use crate::support::{Lab, json_lines};
use serde_json::{Value, json};

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn lines(lab: &Lab, file: &str) -> Vec<Value> {
    lab.read(file).lines().map(read).collect()
}

fn vote(letter: &str) -> Value {
    json!({"text": format!("It is {letter}.\n{{\"choice\": \"{letter}\"}}"), "cost": 1.0})
}

/// Arguments of a run in which some attempts at each of four samples pass and some fail.
const DIVERSE: [&str; 9] = ["run", "-n", "1", "-k", "4", "--agent", "mutant:0.5", "--no-baseline", "--name"];

/// Writes a scripted model that votes for the candidates with these letters, in turn. Returns the name of the verifier
/// that uses the model.
fn script(lab: &Lab, letters: &[&str]) -> String {
    let votes: Vec<Value> = letters.iter().map(|letter| vote(letter)).collect();
    lab.write("votes.jsonl", &json_lines(&votes));
    "model:scripted:votes.jsonl".to_owned()
}

#[test]
fn verifiers_choose_among_the_attempts_of_a_run_and_their_choices_are_in_its_report() {
    let lab = Lab::new();
    let model = script(&lab, &["A", "A", "A", "A"]);
    let verifiers = ["--verifier", "majority", "--verifier", "oracle", "--verifier", &model, "--orders", "2"];
    let ran = lab.ok(&[&DIVERSE[..], &["r"], &verifiers].concat());
    assert!(ran.stdout.contains("\nVerifiers\n") && ran.stdout.contains("100 ["), "{}", ran.stdout);
    assert!(ran.stdout.contains("cost $"), "{}", ran.stdout);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ran.stdout);
    assert_eq!(lines(&lab, "runs/r/choices.jsonl").len(), 3 * 4);

    let report = read(&lab.ok(&["report", "r", "--json"]).stdout);
    let rows = report["verifiers"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    let of = |name: &str| rows.iter().find(|row| row["verifier"].as_str().unwrap().starts_with(name)).unwrap();
    let oracle = of("oracle");
    assert_eq!(oracle["rates"][1], oracle["rates"][2]);
    assert_eq!(oracle["gap_closed"], 1.0, "{oracle:#}");
    assert!(oracle["gap_interval"].is_object() && oracle["intervals"].is_array(), "{oracle:#}");
    // Every vote is a call that costs a dollar. Samples whose candidates differ get two votes, with the candidates in
    // two orders.
    let votes = lines(&lab, "runs/r/votes.jsonl");
    assert!(!votes.is_empty());
    assert!((of("model")["cost"].as_f64().unwrap() - votes.len() as f64).abs() < 1e-9);
    // The letters number the candidates as they are shown. The two orders begin with different attempts, so a model
    // that always says A votes for two different attempts.
    let two: Vec<&Value> = votes.iter().filter(|vote| vote["sample"] == votes[0]["sample"]).collect();
    assert_ne!(two[0]["named"], two[1]["named"], "{two:?}");

    // `pick` with the same verifiers finds all choices stored, and makes no choice again.
    lab.ok(&["pick", "r", "--verifier", "majority", "--verifier", "oracle", "--verifier", &model]);
    assert_eq!(lines(&lab, "runs/r/choices.jsonl").len(), 3 * 4);
    // The page shows the verifiers' choices, and how much of the gap between the pass rate of one attempt (pass@1) and
    // that of the best attempt (pass@k) they close.
    lab.ok(&["report", "r", "--html", "page.html"]);
    let page = lab.read("page.html");
    assert!(page.contains("chosen by oracle") && page.contains("gap closed %"), "the page shows verifiers");
}

#[test]
fn another_shard_completes_the_choices_of_a_shard_that_was_killed_while_choosing() {
    let lab = Lab::new();
    let run = [&DIVERSE[..], &["r", "--verifier", "majority", "--shard", "1/2", "--claim-timeout", "3s"]].concat();
    lab.ok(&run);
    let choices = lab.read("runs/r/choices.jsonl");
    assert_eq!(choices.lines().count(), 4);
    // Change the shard's files so that they look as if the shard had been killed after two choices.
    let half: String = choices.split_inclusive('\n').take(2).collect();
    lab.write("runs/r/choices.jsonl", &half);
    let beats: Vec<_> = walkdir::WalkDir::new(lab.path("runs/r")).into_iter().flatten().collect();
    let beats = beats.iter().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "beat"));
    for beat in beats {
        let text = std::fs::read_to_string(beat.path()).unwrap();
        std::fs::write(beat.path(), text.replace("ended  ", "running")).unwrap();
    }
    lab.ok(&["resume", "r", "--shard", "2/2", "--no-baseline"]);
    assert_eq!(lab.read("runs/r/choices.jsonl").lines().count(), 4);
}

#[test]
fn the_cost_limit_of_a_run_includes_its_verifiers_and_resume_requests_only_missing_votes() {
    let lab = Lab::new();
    let model = script(&lab, &["A", "A", "B", "B"]);
    let verifiers = ["--verifier", &model, "--verifier", "majority", "--max-cost", "2.5"];
    let said = lab.fails(10, &[&DIVERSE[..], &["r"], &verifiers].concat());
    assert!(said.contains("resume"), "{said}");
    // Each call costs a dollar. The third call is made, because the limit of 2.5 dollars is not used up when it begins.
    assert_eq!(lines(&lab, "runs/r/votes.jsonl").len(), 3);
    let choices = lines(&lab, "runs/r/choices.jsonl");
    let of = |name: &str| choices.iter().filter(|line| line["verifier"].as_str().unwrap().starts_with(name)).count();
    assert_eq!((of("majority"), of("model")), (4, 1), "what costs nothing is chosen all the same");

    lab.ok(&["resume", "r", "--max-cost", "100", "--no-baseline"]);
    let votes = lines(&lab, "runs/r/votes.jsonl");
    let mut asked: Vec<String> = votes.iter().map(|vote| format!("{} {}", vote["sample"], vote["order"])).collect();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), votes.len(), "no vote is cast twice: {votes:?}");
    assert_eq!(lines(&lab, "runs/r/choices.jsonl").len(), 8);

    // For a run that is already stored, `--max-cost` limits only the verifiers' costs.
    lab.ok(&[&DIVERSE[..], &["s"]].concat());
    let over = ["pick", "s", "--verifier", &model, "--max-cost"];
    let ran = lab.run(&[&over[..], &["1"]].concat());
    assert_eq!((ran.code, lines(&lab, "runs/s/votes.jsonl").len()), (10, 1), "{}", ran.stderr);
    assert_eq!(lab.run(&[&over[..], &["1"]].concat()).code, 10, "what was spent before counts");
    assert_eq!(lines(&lab, "runs/s/votes.jsonl").len(), 1);
    lab.ok(&[&over[..], &["100"]].concat());
}

#[test]
fn votes_for_nonexistent_candidates_are_counted_and_the_model_is_asked_again() {
    let lab = Lab::new();
    let model = script(&lab, &["Z", "A", "Z", "17"]);
    lab.ok(&[&DIVERSE[..], &["r"], &["--verifier", &model]].concat());
    let votes = lines(&lab, "runs/r/votes.jsonl");
    let asked = votes.len() / 4;
    let named = |value: Value| votes.iter().filter(|vote| vote["named"] == value).count();
    assert_eq!((named(json!({"unknown": "Z"})), named(json!({"unknown": "17"}))), (2 * asked, asked), "{votes:?}");
    for choice in lines(&lab, "runs/r/choices.jsonl") {
        // For the second order, neither of the model's two replies names a candidate, so only one of two votes counts.
        let alike = choice["reason"] == "all attempts are the same";
        assert!(alike || choice["reason"].as_str().unwrap().starts_with("1 of 2 votes"), "{choice}");
        assert!(alike || choice["unknown"] == 3, "{choice}");
    }
    let report = lab.ok(&["report", "r"]).stdout;
    let said = format!("named a candidate that does not exist {} times.", 3 * asked);
    assert!(report.replace('\n', " ").contains(&said), "{report}");

    let model = script(&lab, &["Z", "", "?", "{"]);
    lab.ok(&[&DIVERSE[..], &["nobody"], &["--verifier", &model]].concat());
    let choices = lab.read("runs/nobody/choices.jsonl");
    assert!(choices.contains("no vote could be read; chose the first attempt"), "{choices}");
}

#[test]
fn verifier_options_are_checked_before_any_work() {
    let lab = Lab::new();
    let fails = |more: &[&str]| lab.fails(2, &[&["run", "--agent", "gold", "--no-baseline"], more].concat());
    insta::assert_snapshot!(fails(&["-k", "2", "--verifier", "best"]), @r#"
    error: there is no verifier `best`
      hint: the verifiers are `none`, `majority`, `execution`, `model`, `model:NAME`, `execution+model`, `oracle`
    "#);
    insta::assert_snapshot!(fails(&["-k", "2", "--verifier", "model"]), @r#"
    error: verifier `model` needs a model
      hint: give one with `--model`, or as `model:openai:gpt-5-mini`
    "#);
    insta::assert_snapshot!(fails(&["--verifier", "majority"]), @r#"
    error: verifier `majority` has no choice: there is only one attempt at each sample
      hint: make several attempts at each sample with `-k 5`
    "#);
    assert!(fails(&["-k", "2", "--verifier", "majority", "--orders", "0"]).contains("1..=26"));
    assert!(std::fs::read_dir(lab.path("runs")).is_ok_and(|runs| runs.count() == 0), "no run was begun");
}

/// Starts a model server that votes for A `answers` times and then does not reply.
fn serve(answers: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in questions(listener) {
            let number = count.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || {
                if number < answers {
                    answer(stream);
                } else {
                    std::thread::sleep(Duration::from_mins(2));
                }
            });
        }
    });
    (url, asked)
}

fn answer(mut stream: TcpStream) {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&text).contains("\"messages\"") || !text.ends_with(b"}") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => text.extend_from_slice(&buffer[..count]),
        }
    }
    let body = json!({
        "id": "x", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "{\"choice\": \"A\"}"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000},
    })
    .to_string();
    let head = "HTTP/1.1 200 X\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let _ = stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
}

#[test]
fn a_run_killed_during_verification_keeps_finished_judgements() {
    let lab = Lab::new();
    let (url, asked) = serve(3);
    let settings = |url: &str| {
        ["--verifier", "model", "--model", "m", "--base-url", url, "--price", "1000,1000", "--retries", "0"]
            .map(str::to_owned)
    };
    let own = settings(&url);
    let arguments: Vec<&str> = DIVERSE.into_iter().chain(["r"]).chain(own.iter().map(String::as_str)).collect();
    let mut child = lab.command(&arguments).stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while asked.load(Ordering::SeqCst) < 4 {
        assert!(begun.elapsed() < Duration::from_mins(5), "the verifier asks nobody");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let votes = lab.read("runs/r/votes.jsonl");
    assert_eq!((votes.lines().count(), lines(&lab, "runs/r/choices.jsonl").len()), (3, 1));
    // A line that was torn by the kill is not taken for a vote.
    lab.write("runs/r/votes.jsonl", &format!("{votes}{{\"verifier\": \"mod"));
    lab.edit("runs/r/run.json", &url, &serve(100).0);
    lab.ok(&["resume", "r", "--no-baseline"]);
    let after = lab.read("runs/r/votes.jsonl");
    assert!(after.starts_with(&votes), "{after}");
    let whole: Vec<Value> = after.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut asked: Vec<String> = whole.iter().map(|vote| format!("{} {}", vote["sample"], vote["order"])).collect();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), whole.len(), "no vote is cast twice: {after}");
    let cost: f64 = lines(&lab, "runs/r/choices.jsonl").iter().map(|choice| choice["cost"].as_f64().unwrap()).sum();
    assert!((cost - whole.len() as f64).abs() < 1e-9, "each vote costs a dollar, also those before the kill");
}

/// Starts a server whose models always say this. Also returns the recorded requests.
fn saying(said: &'static str) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    std::thread::spawn(move || {
        for mut stream in questions(listener) {
            kept.lock().unwrap().push(read(&crate::provider::read_request(&mut stream)));
            let body = json!({
                "choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
            })
            .to_string();
            let head = "HTTP/1.1 200 X\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let _ = stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        }
    });
    (url, asked)
}

#[test]
fn a_model_named_for_a_verifier_judges_a_stored_run_with_settings_that_suit_the_model() {
    let lab = Lab::new();
    lab.ok(&[&DIVERSE[..], &["r"]].concat());
    let (url, asked) = saying("Both.\n{\"choice\": \"B\"}");
    let judge = ["pick", "r", "--base-url", &url, "--price", "1,10", "--orders", "1", "--verifier"];
    let ran = lab.ok(&[&judge[..], &["model:judge", "--json"]].concat());
    let rows = read(&ran.stdout);
    assert_eq!((&rows[0]["verifier"], &rows[0]["samples"]), (&json!("model:judge*1"), &json!(4)), "{rows:#}");
    let calls = asked.lock().unwrap().len();
    assert!(calls > 0 && (rows[0]["cost"].as_f64().unwrap() - 0.002 * calls as f64).abs() < 1e-9, "{rows:#}");
    let bound = |body: &Value| body["max_tokens"].as_u64().or(body["max_completion_tokens"].as_u64());
    for body in std::mem::take(&mut *asked.lock().unwrap()) {
        assert_eq!((&body["model"], &body["temperature"], bound(&body)), (&json!("judge"), &json!(0.0), Some(1024)));
        // In each diff, the file of the masked function comes first, even if others precede it in the alphabet.
        let shown = body["messages"][0]["content"].as_str().unwrap();
        assert_eq!(shown.matches("```diff\ndiff --git a/tiny/").count(), shown.matches("```diff\n").count(), "{shown}");
    }
    // A reasoning model is asked without a temperature, and with room for its reasoning.
    let reasons = ["model:thinker", "--describe", "reasoning=true,sampling=false"];
    lab.ok(&[&judge[..], &reasons].concat());
    let bodies = std::mem::take(&mut *asked.lock().unwrap());
    assert_eq!(bodies.len(), calls);
    for body in bodies {
        assert_eq!((&body["model"], body.get("temperature"), bound(&body)), (&json!("thinker"), None, Some(16_384)));
    }
    assert_eq!(lab.run(&[&judge[..], &["model"]].concat()).code, 2, "there is a server, but no model");
}

#[test]
fn votes_that_cannot_be_read_are_counted_in_the_report() {
    let lab = Lab::new();
    lab.ok(&[&DIVERSE[..], &["r"]].concat());
    let (url, asked) = saying("I cannot decide.");
    let judge = ["pick", "r", "--verifier", "model:judge", "--base-url", &url, "--price", "0,0", "--orders", "1"];
    let ran = lab.ok(&judge);
    let calls = asked.lock().unwrap().len();
    let said = format!("gave no vote that could be read {calls} times.");
    assert!(ran.stdout.replace('\n', " ").contains(&said), "{said}: {}", ran.stdout);
    let report = read(&lab.ok(&["report", "r", "--json"]).stdout);
    assert_eq!(report["verifiers"][0]["unreadable"], calls, "{report:#}");
    // A model that refuses every request is reported before it is asked about any sample.
    let down = ["pick", "r", "--verifier", "model:judge", "--base-url", "http://127.0.0.1:9/v1", "--price", "0,0"];
    let said = lab.fails(11, &down);
    assert!(said.contains("`judge` cannot be asked: the provider failed: nothing answers at `127.0.0.1:9`"), "{said}");
}
