//! Episodes over OpenEnv's protocol: what clients get, what is stored, and what clients cannot do.

use std::io::Write as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::Message;

use crate::support::Lab;
use crate::support::episodes::{Client, Served, answers, descendants};

/// Waits until the run has this many records.
fn records(lab: &Lab, count: usize) -> Vec<Value> {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let path = lab.path("runs/s/attempts.jsonl");
        let records = if path.exists() { lab.records("s") } else { Vec::new() };
        if records.len() >= count {
            return records;
        }
        assert!(Instant::now() < until, "{} of {count} records", records.len());
        sleep(Duration::from_millis(50));
    }
}

/// Waits until the server has no process of an episode any more.
fn wait_until_alone(served: &Served) {
    let until = Instant::now() + Duration::from_secs(30);
    while !descendants(served.id()).is_empty() {
        assert!(Instant::now() < until, "processes are left: {:?}", descendants(served.id()));
        sleep(Duration::from_millis(50));
    }
}

/// Writes the masked functions of `tiny_0` again, runs the experiments and submits what they print.
fn solve(lab: &Lab, client: &mut Client) -> Value {
    let original = lab.read("repos/tiny/tiny/means.py");
    client.step("write_file", &json!({ "path": "tiny/means.py", "content": original }));
    let script = "import json, re, subprocess\nanswer = {}\nfor part in open('experiments.md').read().split('## ')[1:]:\n    \
                  command = re.search(r'^    (.+)$', part, re.M).group(1)\n    \
                  said = subprocess.run(command, shell=True, capture_output=True, text=True).stdout\n    \
                  lines = [line for line in said.splitlines() if line.startswith('{')]\n    \
                  half = re.search('first half: ([0-9.]+)', said)\n    \
                  found = {'first': float(half.group(1))} if half else json.loads(lines[-1]) if lines else json.load(open('results/spread.json'))\n    \
                  answer[part.splitlines()[0].strip()] = found\n\
                  print(json.dumps(answer))\n";
    client.step("write_file", &json!({ "path": "/tmp/all.py", "content": script }));
    let shown = client.shell("python /tmp/all.py");
    let answer = shown.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{shown}"));
    client.submit(&serde_json::from_str(answer).unwrap())
}

#[test]
fn an_episode_is_stored_and_judged_like_any_attempt() {
    let lab = Lab::new();
    let served = Served::start(&lab, &[]);
    let mut client = served.client();
    let first = client.reset(&json!({ "sample": "tiny_0" }));
    assert!(first["observation"]["prompt"].as_str().unwrap().contains("tiny/means.py::arithmetic"), "{first:#}");
    let tools: Vec<&str> =
        first["observation"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(tools.contains(&"command_line") && tools.contains(&"final_answer"), "{tools:?}");
    assert!(!tools.contains(&"understand_file"), "there is no model: {tools:?}");
    assert_eq!((&first["reward"], &first["done"]), (&Value::Null, &json!(false)));
    let last = solve(&lab, &mut client);
    assert_eq!((&last["reward"], &last["done"]), (&json!(1.0), &json!(true)), "{last:#}");
    assert_eq!((&last["metadata"]["pass"], &last["metadata"]["share"]), (&json!(true), &json!(1.0)));
    let (_, state) = client.ask("state", &json!({}));
    assert_eq!((&state["done"], &state["reward"]), (&json!(true), &json!(1.0)), "{state:#}");
    // The next attempt at the same sample has the next number.
    client.reset(&json!({ "sample": "tiny_0" }));
    let failed = client.submit(&answers(&lab));
    assert_eq!(failed["reward"], 0.0, "a right report of masked code: {failed:#}");
    assert_eq!(failed["metadata"]["reported"]["pass"], true);
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    let records = lab.records("s");
    let of = |key: &str| records.iter().map(|record| record[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("agent"), [json!("serve:policy"), json!("serve:policy")]);
    assert_eq!((of("attempt"), of("pass")), (vec![json!(0), json!(1)], vec![json!(true), json!(false)]));
    assert_eq!(records[0]["changed"], json!(["results/spread.json", "tiny/means.py"]));
    let trajectory = lab.read("runs/s/trajectories/serve:policy/tiny_0.0.jsonl");
    for part in ["\"event\":\"reply\"", "\"tool\":\"write_file\"", "\"event\":\"verification\"", "\"role\":\"system\""]
    {
        assert!(trajectory.contains(part), "{part}: {trajectory}");
    }
    assert!(lab.ok(&["report", "s"]).stdout.contains("serve:policy"));
    lab.ok(&["show", "s", "tiny_0", "--agent", "serve:policy", "--no-pager"]);
    let refused = lab.fails(2, &["resume", "s"]);
    assert!(refused.contains("serve --resume s"), "{refused}");
}

#[test]
fn a_run_of_episodes_continues_after_its_server_was_killed() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--reward", "share", "--curriculum", "0.5", "--jobs", "3"]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    client.submit(&json!({}));
    records(&lab, 1);
    client.reset(&json!({ "sample": "tiny_0" }));
    client.shell("echo half of the work");
    served.kill();
    drop(client);
    let resume = ["serve", "--resume", "s", "--no-baseline", "--port", "0"];
    let stored = [("--reward", "pass"), ("-n", "2"), ("--after", "2026-01-01"), ("--env", "venv"), ("--seed", "1")];
    for (option, value) in stored.into_iter().chain([("--curriculum", "0.4")]) {
        let refused = lab.fails(2, &[&resume[..], &[option, value]].concat());
        assert!(refused.contains("--resume"), "{refused}");
    }
    let served = Served::run(lab.command(&resume));
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    let last = solve(&lab, &mut client);
    assert_eq!((&last["reward"], &last["done"]), (&json!(1.0), &json!(true)), "{last:#}");
    drop(client);
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    let numbers: Vec<Value> = lab.records("s").iter().map(|record| record["attempt"].clone()).collect();
    assert_eq!(numbers, [0, 1], "the killed episode has no record");
    let file: Value = serde_json::from_str(&lab.read("runs/s/run.json")).unwrap();
    assert_eq!(file["configuration"]["serving"]["reward"], "share", "{file:#}");
    lab.ok(&["run", "-p", "tiny", "-n", "1", "--limit", "1", "--agent", "noop", "--name", "other"]);
    let refused = lab.fails(2, &["serve", "--resume", "other", "--port", "0"]);
    assert!(refused.contains("autoexperiment resume other"), "{refused}");
}

#[test]
fn the_reward_share_is_the_share_of_right_checks() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--reward", "share"]);
    let mut client = served.client();
    // `tiny_2` masks `variance`, which only one experiment needs, so without this function no check is right. `tiny_0`
    // masks `arithmetic`, which all experiments need.
    let first = client.reset(&json!({ "sample": "tiny_2" }));
    assert_eq!(first["metadata"]["n"], 1);
    let none = client.submit(&json!({}));
    assert_eq!((&none["reward"], &none["metadata"]["pass"]), (&json!(0.0), &json!(false)), "{none:#}");
    client.reset(&json!({ "sample": "tiny_0" }));
    let all = solve(&lab, &mut client);
    assert_eq!(all["reward"], 1.0, "{all:#}");
}

#[test]
fn a_bad_message_gets_its_error_code_and_the_session_continues() {
    let lab = Lab::new();
    let served = Served::start(&lab, &[]);
    let mut client = served.client();
    let step = r#"{"type":"step","data":{"tool":"command_line","arguments":{"command":"ls"}}}"#;
    for (message, code) in [
        ("{", "INVALID_JSON"),
        (r#"{"type":"mcp","data":{}}"#, "UNKNOWN_TYPE"),
        (step, "EXECUTION_ERROR"),
        (r#"{"type":"reset","data":{"sample":"tiny_99"}}"#, "VALIDATION_ERROR"),
        (r#"{"type":"reset","data":{"sample":"../../etc"}}"#, "VALIDATION_ERROR"),
        (r#"{"type":"reset","data":{"paper":"nothing"}}"#, "VALIDATION_ERROR"),
        (r#"{"type":"reset","data":{"index":100000}}"#, "VALIDATION_ERROR"),
        (r#"{"type":"reset","data":{"client":"a/b"}}"#, "VALIDATION_ERROR"),
        (r#"{"type":"step","data":{"arguments":{}}}"#, "VALIDATION_ERROR"),
    ] {
        assert_eq!(client.refused(message), code, "{message}");
    }
    client.socket.send(Message::binary(vec![0, 1])).unwrap();
    assert_eq!(client.answer().1["code"], "INVALID_JSON");
    client.reset(&json!({ "n": 1, "seed": 3 }));
    let wrong = client.step("no_such_tool", &json!({}));
    assert_eq!(wrong["observation"]["error"], true, "{wrong:#}");
    let wrong = client.step("submit", &json!({ "answer": "no JSON" }));
    assert_eq!((&wrong["observation"]["error"], &wrong["done"]), (&json!(true), &json!(false)), "{wrong:#}");
    client.submit(&json!({}));
    assert_eq!(client.refused(step), "EXECUTION_ERROR", "the episode is over");
    assert_eq!(client.refused("{"), "INVALID_JSON", "no episode waits for a call");
}

/// Calls that a learner may make by mistake, as its client sends them.
const MALFORMED: [&str; 5] = [
    r#"{"type":"step","data":{"tool":"command_line","arguments":{"command":"echo \ud83d"}}}"#,
    r#"{"type":"step","data":{"tool":"wait"}}"#,
    r#"{"type":"step","data":{"tool":5}}"#,
    "{",
    r#"{"type":"step","data":{"tool":"command_line","arguments":"no object"}}"#,
];

#[test]
fn a_malformed_call_is_charged_and_answered_however_it_is_malformed() {
    let lab = Lab::new();
    let served = Served::start(&lab, &[]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    for (count, message) in MALFORMED.iter().enumerate() {
        assert_eq!(client.ask("state", &json!({})).1["step_count"], count, "{message}");
        client.send(*message);
        let (kind, data) = client.answer();
        assert_eq!(kind, "observation", "{message}: {data:#}");
        let is_last = count + 1 == MALFORMED.len();
        assert_eq!(data["done"], is_last, "{message}: {data:#}");
        assert!(is_last || data["observation"]["error"] == true, "{message}: {data:#}");
    }
    let records = records(&lab, 1);
    assert_eq!((&records[0]["end"], &records[0]["pass"]), (&json!("format_errors"), &json!(false)), "{records:#?}");
    // NaN as a result is an answer, which is wrong.
    client.reset(&json!({ "sample": "tiny_0" }));
    client.send(r#"{"type":"step","data":{"tool":"submit","arguments":{"answer":{"Experiment 1":{"mean":NaN}}}}}"#);
    let (_, data) = client.answer();
    assert_eq!((&data["reward"], &data["metadata"]["end"]), (&json!(0.0), &json!("answered")), "{data:#}");
}

#[test]
fn an_unreadable_last_call_ends_an_episode_at_its_limit() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--steps", "1"]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    client.send("{");
    let (_, data) = client.answer();
    assert_eq!((&data["done"], &data["metadata"]["end"]), (&json!(true), &json!("step_limit")), "{data:#}");
}

#[test]
fn a_refused_reset_leaves_the_running_episode_alone() {
    let lab = Lab::new();
    let served = Served::start(&lab, &[]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    for asked in [json!({ "paper": "nothing" }), json!({ "sample": "tiny_99" }), json!({ "index": 100_000 })] {
        let (kind, data) = client.ask("reset", &asked);
        assert_eq!((kind.as_str(), &data["code"]), ("error", &json!("VALIDATION_ERROR")), "{asked}");
    }
    assert!(client.shell("echo still here").contains("still here"));
    assert_eq!(client.submit(&json!({}))["metadata"]["end"], "answered");
    assert_eq!(records(&lab, 1).len(), 1);
}

#[test]
fn a_resumed_run_hands_out_the_interrupted_sample_again_also_after_refused_requests() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["-n", "1..3"]);
    let mut client = served.client();
    assert_eq!(client.refused(r#"{"type":"reset","data":{"paper":"nothing"}}"#), "VALIDATION_ERROR");
    let mut samples = Vec::new();
    for _ in 0..4 {
        samples.push(client.reset(&json!({}))["metadata"]["sample"].clone());
        if samples.len() < 4 {
            client.submit(&json!({}));
            records(&lab, samples.len());
        }
    }
    served.kill();
    drop(client);
    let served = Served::run(lab.command(&["serve", "--resume", "s", "--no-baseline", "--port", "0"]));
    let again = served.client().reset(&json!({}))["metadata"]["sample"].clone();
    assert_eq!(again, samples[3], "{samples:?}");
    // A server that refused no request draws the same samples, so refused requests do not use up samples.
    let other = Lab::new();
    let served = Served::start(&other, &["-n", "1..3"]);
    let mut client = served.client();
    for sample in &samples {
        assert_eq!(&client.reset(&json!({}))["metadata"]["sample"], sample, "{samples:?}");
    }
}

#[test]
fn a_limit_truncates_an_episode() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--steps", "2"]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    let shown = client.shell("echo one");
    assert!(shown.contains("This is your last step"), "{shown}");
    let last = client.step("command_line", &json!({ "command": "echo two" }));
    assert_eq!((&last["done"], &last["metadata"]["truncated"]), (&json!(true), &json!(true)), "{last:#}");
    assert_eq!(last["metadata"]["end"], "step_limit");
}

#[test]
fn a_right_answer_still_counts_after_the_tool_time_is_used_up() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--time", "3"]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    let original = lab.read("repos/tiny/tiny/means.py");
    client.step("write_file", &json!({ "path": "tiny/means.py", "content": original }));
    let use_up_time = |client: &mut Client| {
        for _ in 0..5 {
            if client.shell("sleep 30").contains("The tool time is used up") {
                return;
            }
        }
        panic!("the tool time is not used up");
    };
    use_up_time(&mut client);
    let last = client.submit(&answers(&lab));
    assert_eq!((&last["reward"], &last["metadata"]["end"]), (&json!(1.0), &json!("answered")), "{last:#}");
    // Once the tool time is used up, any call other than submitting an answer ends the episode.
    client.reset(&json!({ "sample": "tiny_0" }));
    use_up_time(&mut client);
    let last = client.step("command_line", &json!({ "command": "echo late" }));
    assert_eq!((&last["reward"], &last["metadata"]["end"]), (&json!(0.0), &json!("time_limit")), "{last:#}");
}

#[test]
fn with_the_tool_bash_an_unreadable_answer_after_the_time_is_used_up_ends_the_episode() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--time", "2", "--tools", "bash"]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    for round in 0.. {
        assert!(round < 5, "the tool time is not used up");
        let shown = client.step("bash", &json!({ "command": "sleep 30" }));
        if shown["observation"]["text"].as_str().unwrap().contains("The tool time is used up") {
            break;
        }
    }
    let last = client.step("submit", &json!({ "answer": "no JSON" }));
    assert_eq!((&last["done"], &last["metadata"]["end"]), (&json!(true), &json!("time_limit")), "{last:#}");
}

#[test]
fn a_session_whose_episode_is_over_is_closed_after_the_idle_time() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--idle", "3"]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_2" }));
    client.submit(&json!({}));
    let begun = Instant::now();
    loop {
        match client.socket.read() {
            Ok(Message::Ping(_)) => assert!(begun.elapsed() < Duration::from_secs(30), "the session is still open"),
            Ok(Message::Close(_)) | Err(_) => break,
            Ok(other) => panic!("{other:?}"),
        }
    }
}

#[test]
#[ignore = "needs Docker"]
fn docker_runs_an_episode_that_is_judged_like_any_attempt() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--sandbox", "docker"]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    let last = solve(&lab, &mut client);
    assert_eq!((&last["reward"], &last["done"]), (&json!(1.0), &json!(true)), "{last:#}");
    client.reset(&json!({ "sample": "tiny_0" }));
    let failed = client.submit(&answers(&lab));
    assert_eq!(failed["reward"], 0.0, "a right report of masked code: {failed:#}");
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    assert_eq!(lab.records("s").len(), 2);
}

#[test]
fn a_full_server_refuses_new_episodes_until_one_is_ended() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--jobs", "1"]);
    let mut one = served.client();
    let mut other = served.client();
    one.reset(&json!({ "sample": "tiny_0" }));
    assert_eq!(other.refused(r#"{"type":"reset","data":{"sample":"tiny_1"}}"#), "CAPACITY_REACHED");
    // A second reset by the same client abandons the running episode and starts another in its place.
    let again = one.reset(&json!({ "sample": "tiny_2" }));
    assert_eq!(again["metadata"]["sample"], "tiny_2");
    drop(one);
    let records = records(&lab, 2);
    assert!(records.iter().all(|record| record["end"] == "gave_up" && record["pass"] == false), "{records:#?}");
    let begun = Instant::now();
    while other.ask("reset", &json!({ "sample": "tiny_1" })).0 == "error" {
        assert!(begun.elapsed() < Duration::from_secs(30));
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_episode_is_given_up_if_its_client_leaves_during_a_call() {
    let lab = Lab::new();
    let served = Served::start(&lab, &[]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    client.send(r#"{"type":"step","data":{"tool":"command_line","arguments":{"command":"sleep 300"}}}"#);
    sleep(Duration::from_millis(500));
    assert!(!descendants(served.id()).is_empty());
    let begun = Instant::now();
    drop(client);
    let records = records(&lab, 1);
    assert!(begun.elapsed() < Duration::from_mins(1), "the call went on");
    assert_eq!(records[0]["end"], "gave_up", "{records:#?}");
    assert!(records[0]["end_detail"].as_str().unwrap().contains("the client left"), "{records:#?}");
    wait_until_alone(&served);
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    let left: Vec<_> = walkdir::WalkDir::new(lab.path("scratch"))
        .min_depth(1)
        .into_iter()
        .flatten()
        .filter(|entry| entry.file_type().is_file())
        .collect();
    assert!(left.len() <= 1, "{left:?}");
}

#[test]
fn episodes_that_run_when_the_server_is_stopped_are_cancelled() {
    let lab = Lab::new();
    let served = Served::start(&lab, &[]);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    client.shell("echo something was done");
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    let records = lab.records("s");
    assert_eq!((records.len(), &records[0]["end"]), (1, &json!("cancelled")), "{records:#?}");
}

#[test]
fn a_slow_call_returns_pending_observations_until_its_result_is_ready() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--patience", "0.3"]);
    let mut client = served.client();
    let (_, mut shown) = client.ask("reset", &json!({ "sample": "tiny_0" }));
    while shown["observation"]["pending"] == true {
        shown = client.ask("step", &json!({ "tool": "wait" })).1;
    }
    let (kind, shown) =
        client.ask("step", &json!({ "tool": "command_line", "arguments": { "command": "sleep 2; echo done" } }));
    assert_eq!((kind.as_str(), &shown["observation"]["pending"]), ("observation", &json!(true)), "{shown:#}");
    let (_, state) = client.ask("state", &json!({}));
    assert_eq!((&state["pending"], &state["done"]), (&json!(true), &json!(false)), "{state:#}");
    // A second call while the first call runs is refused and does no harm.
    assert_eq!(client.refused(r#"{"type":"step","data":{"tool":"command_line"}}"#), "EXECUTION_ERROR");
    let mut waited = client.ask("step", &json!({ "tool": "wait" })).1;
    while waited["observation"]["pending"] == true {
        waited = client.ask("step", &json!({ "tool": "wait" })).1;
    }
    assert!(waited["observation"]["text"].as_str().unwrap().contains("done"), "{waited:#}");
    let nothing = client.ask("step", &json!({ "tool": "wait" })).1;
    assert_eq!(nothing["observation"]["error"], true, "there is nothing to wait for: {nothing:#}");
}

#[test]
fn clients_that_flood_or_read_nothing_or_call_during_verification_harm_nobody() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--jobs", "4"]);
    // A client that sends a message of a hundred megabytes.
    let mut large = served.client();
    large.reset(&json!({ "sample": "tiny_0" }));
    let _ = large.socket.send(Message::text("x".repeat(100 << 20)));
    // A client that sends many messages and never reads the answers.
    let mut deaf = served.client();
    deaf.reset(&json!({ "sample": "tiny_1" }));
    let socket = deaf.socket.get_mut();
    socket.set_nonblocking(true).unwrap();
    let frame = |text: &str| [&[0x81, 0x80 | text.len() as u8, 0, 0, 0, 0], text.as_bytes()].concat();
    let question = frame(r#"{"type":"state"}"#).repeat(1000);
    while socket.write(&question).is_ok() {}
    // A client that calls a tool while its answer is being verified.
    let mut hasty = served.client();
    hasty.reset(&json!({ "sample": "tiny_2" }));
    hasty.send(r#"{"type":"step","data":{"tool":"submit","arguments":{"answer":"{}"}}}"#);
    hasty.send(r#"{"type":"step","data":{"tool":"command_line","arguments":{"command":"echo late"}}}"#);
    assert_eq!(hasty.answer().1["done"], true);
    assert_eq!(hasty.answer().1["code"], "EXECUTION_ERROR");
    // Another client can work at the same time.
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    let solved = solve(&lab, &mut client);
    assert_eq!(solved["reward"], 1.0, "{solved:#}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 400 << 10, "{peak} KiB");
}

#[test]
fn tasks_are_listed_by_splits_that_share_no_function() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["-n", "1,2", "--held-out", "0.4", "--seed", "5"]);
    let list = |served: &Served, split: &str| {
        let (status, body) = served.http("POST", "/autoexperiment/tasks", Some(&json!({ "split": split })), &[]);
        assert_eq!(status, 200, "{body}");
        body["tasks"].as_array().unwrap().clone()
    };
    let (train, test) = (list(&served, "train"), list(&served, "test"));
    let units = |tasks: &[Value]| -> std::collections::BTreeSet<String> {
        let ids = tasks.iter().map(|task| task["sample"].as_str().unwrap().rsplit_once('_').unwrap().1.to_owned());
        ids.flat_map(|ids| ids.split(',').map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    assert!(!train.is_empty() && !test.is_empty());
    assert!(units(&train).is_disjoint(&units(&test)), "{train:?} {test:?}");
    let (_, count) = served.http("POST", "/autoexperiment/num_tasks", Some(&json!({ "split": "train" })), &[]);
    assert_eq!(count["num_tasks"], train.len());
    let (_, one) = served.http("POST", "/autoexperiment/task", Some(&json!({ "split": "test", "index": 0 })), &[]);
    assert_eq!(one["task"]["sample"], test[0]["sample"]);
    assert!(one["task"]["prompt"].as_str().unwrap().contains("tiny"), "{one}");
    let (status, _) = served.http("POST", "/autoexperiment/task", Some(&json!({ "split": "test", "index": 99 })), &[]);
    assert_eq!(status, 400);
    assert_eq!(served.http("GET", "/list_environments", None, &[]), (200, json!(["autoexperiment"])));
    assert_eq!(served.http("GET", "/nothing/splits", None, &[]).0, 404);
    assert_eq!(served.http("GET", "/health", None, &[]), (200, json!({ "status": "healthy" })));
    // The same index and the same seed give the same sample, in every session.
    let mut client = served.client();
    let by_index = client.reset(&json!({ "split": "test", "index": 0 }));
    assert_eq!(by_index["metadata"]["sample"], test[0]["sample"]);
    let drawn = client.reset(&json!({ "seed": 9 }))["metadata"]["sample"].clone();
    assert_eq!(served.client().reset(&json!({ "seed": 9 }))["metadata"]["sample"], drawn);
    assert!(train.iter().any(|task| task["sample"] == drawn));
}

#[test]
fn only_programs_of_this_machine_or_with_the_token_are_served() {
    let lab = Lab::new();
    let refused = lab.fails(2, &["serve", "--listen", "0.0.0.0:0", "--no-baseline"]);
    assert!(refused.contains("--token"), "{refused}");
    assert!(lab.fails(2, &["serve", "--token", "short", "--no-baseline"]).contains("too short"));
    let served = Served::start(&lab, &[]);
    assert_eq!(served.http("GET", "/health", None, &["Host: evil.example"]).0, 403);
    assert_eq!(served.http("GET", "/health", None, &["Origin: https://evil.example"]).0, 403);
    drop(served);
    let other = Lab::new();
    let token = "0123456789abcdef";
    let served = Served::start(&other, &["--token", token]);
    assert_eq!(served.http("GET", "/health", None, &[]).0, 401);
    assert!(served.try_client("/ws").is_err());
    assert_eq!(served.http("GET", "/health", None, &[&format!("Authorization: Bearer {token}")]).0, 200);
    let mut client = served.client_at(&format!("/ws?token={token}"));
    let first = client.reset(&json!({}));
    assert_eq!(first["metadata"]["agent"], "serve:client");
}

#[test]
fn a_unix_socket_serves_this_user_alone_and_is_removed() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = Lab::new();
    let path = lab.path("episodes.sock");
    let served = Served::start(&lab, &["--socket", path.to_str().unwrap()]);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let (mut socket, _) = tungstenite::client("ws://localhost/ws", stream).unwrap();
    socket.send(Message::text(r#"{"type":"state"}"#)).unwrap();
    assert!(socket.read().unwrap().to_text().unwrap().contains("\"step_count\":0"));
    drop(socket);
    served.stop();
    assert!(!path.exists());
}

#[test]
fn a_curriculum_draws_harder_samples_for_a_learner_that_succeeds() {
    let lab = Lab::new();
    assert!(lab.fails(2, &["serve", "--curriculum", "1.5"]).contains("between 0 and 1"));
    lab.ok(&["run", "-n", "1,2", "--agent", "gold,noop", "--no-baseline", "--name", "before"]);
    let options = ["-n", "1,2,3", "--held-out", "0", "--curriculum", "0.5", "--window", "4", "--difficulty", "before"];
    let served = Served::start(&lab, &options);
    let mut client = served.client();
    // The client chooses this sample, so the curriculum does not count it.
    client.reset(&json!({ "sample": "tiny_0" }));
    client.submit(&json!({}));
    for _ in 0..8 {
        let first = client.reset(&json!({}));
        if first["metadata"]["n"].as_u64().unwrap() <= 1 {
            for file in ["means", "spread"] {
                let original = lab.read(&format!("repos/tiny/tiny/{file}.py"));
                client.step("write_file", &json!({ "path": format!("tiny/{file}.py"), "content": original }));
            }
        }
        client.submit(&answers(&lab));
    }
    drop(client);
    served.stop();
    let records = lab.records("s");
    let draws: Vec<&Value> = records.iter().map(|record| &record["curriculum"]).collect();
    assert_eq!(draws[0], &Value::Null);
    assert_eq!(draws[1..], (0..8).map(|draw| json!(draw)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    let report = lab.ok(&["report", "s"]).stdout;
    assert!(report.contains("Curriculum") && report.contains("mean n"), "{report}");
    let json: Value = serde_json::from_str(&lab.ok(&["report", "s", "--json"]).stdout).unwrap();
    assert_eq!(json["curricula"][0]["parts"].as_array().unwrap().len(), 2, "{json:#}");
    lab.ok(&["report", "s", "--html", "page.html"]);
    assert!(lab.read("page.html").contains("Curriculum of run s"));
}

/// Clients that are killed at random moments: no process, file or session is left behind, and the server continues to
/// serve.
#[test]
#[ignore = "takes a minute"]
fn clients_killed_at_random_leave_no_processes_files_or_sessions() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--jobs", "64"]);
    let address = served.authority().to_owned();
    let script = r#"
import json, os, socket, sys, threading, base64, random, struct, time
host, port = sys.argv[1].split(":")
def play(seed):
    s = socket.create_connection((host, int(port)))
    s.sendall(f"GET /ws?client=killed HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    s.recv(4096)
    def send(text):
        data = text.encode()
        head = struct.pack("!BBH", 0x81, 0x80 | 126, len(data)) if len(data) > 125 else struct.pack("!BB", 0x81, 0x80 | len(data))
        s.sendall(head + b"\0\0\0\0" + data)
    while True:
        send(json.dumps({"type": "reset", "data": {"n": 1}})); s.recv(1 << 20)
        for _ in range(3):
            send(json.dumps({"type": "step", "data": {"tool": "command_line", "arguments": {"command": "sleep 0.2; echo x"}}})); s.recv(1 << 20)
        send(json.dumps({"type": "step", "data": {"tool": "submit", "arguments": {"answer": "{}"}}})); s.recv(1 << 20)
for seed in range(8):
    threading.Thread(target=play, args=(seed,), daemon=True).start()
time.sleep(1000)
"#;
    lab.write("clients.py", script);
    for round in 0..8 {
        let mut clients: Vec<_> = (0..8)
            .map(|_| {
                let mut command = std::process::Command::new("python3");
                command.arg(lab.path("clients.py")).arg(&address).stderr(std::process::Stdio::null()).spawn().unwrap()
            })
            .collect();
        for (place, client) in clients.iter_mut().enumerate() {
            sleep(Duration::from_millis((round * 131 + place as u64 * 97) % 700 + 200));
            client.kill().unwrap();
            client.wait().unwrap();
        }
    }
    let until = Instant::now() + Duration::from_mins(2);
    loop {
        let (_, about) = served.http("GET", "/metadata", None, &[]);
        if about["running"] == 0 {
            break;
        }
        assert!(Instant::now() < until, "{about}");
        sleep(Duration::from_millis(200));
    }
    wait_until_alone(&served);
    let mut client = served.client();
    client.reset(&json!({ "sample": "tiny_0" }));
    assert_eq!(solve(&lab, &mut client)["reward"], 1.0);
    drop(client);
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    let records = lab.records("s");
    assert!(records.len() > 64, "{}", records.len());
    for record in &records {
        assert!(["gave_up", "answered"].contains(&record["end"].as_str().unwrap()), "{record:#}");
    }
}
