//! Watching a run: events for other programs, the status as seen by another process, and a single attempt.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::Lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

#[test]
fn json_events_are_one_object_a_line_from_the_plan_to_the_end() {
    let lab = Lab::new();
    let ran = lab.ok(&["run", "-n", "1", "--agent", "gold", "--name", "r", "--json-events"]);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert_eq!((named("planned").len(), named("started").len(), named("finished").len()), (1, 4, 4));
    assert_eq!(named("planned")[0]["total"], 4);
    assert!(named("finished").iter().all(|event| event["outcome"] == "pass" && event["end"] == "answered"));
    assert!(events.iter().all(|event| event["time"].is_string()));
    assert_eq!(events.last().unwrap()["event"], "ended");
    assert_eq!(events.last().unwrap()["outcome"], "complete");
}

#[test]
fn without_a_terminal_progress_is_plain_lines() {
    let lab = Lab::new();
    let ran = lab.ok(&["run", "-n", "1", "--agent", "gold", "--name", "r"]);
    let last = ran.stderr.lines().rfind(|line| line.starts_with("4/4")).unwrap();
    assert!(last.contains("0 running, 4 passed, 0 failed") && last.contains("$0.00"), "{last}");
    assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
}

#[test]
fn on_a_terminal_the_attempts_that_run_are_shown_with_their_step_seconds_and_dollars() {
    let lab = Lab::new();
    let step = |command: &str| json!({"tool": "command_line", "arguments": {"command": command}});
    lab.write("steps", &crate::support::json_lines(&[step("true"), step("sleep 4")]));
    let line = "exec \"$PROGRAM\" run --sample tiny_0 --agent scripted:steps --name r --no-baseline";
    let command = lab.command(&["-qefc", line, "/dev/null"]);
    let mut on_terminal = std::process::Command::new("script");
    on_terminal.args(command.get_args()).current_dir(lab.path("")).stdin(Stdio::null()).env("TERM", "xterm");
    on_terminal.env("PROGRAM", command.get_program());
    on_terminal.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let shown = String::from_utf8_lossy(&on_terminal.output().unwrap().stdout).into_owned();
    let running = regex::Regex::new(r"tiny_0\.0 scripted: step [12], [0-9.]+ ?s, \$0\.00").unwrap();
    assert!(running.is_match(&shown), "{shown:?}");
}

#[test]
fn status_shows_a_run_from_another_terminal_during_and_after_it() {
    let lab = Lab::new();
    lab.write("steps", "{\"tool\": \"command_line\", \"arguments\": {\"command\": \"sleep 60\"}}\n");
    let agent = format!("scripted:{}", lab.path("steps").display());
    let arguments = ["run", "-n", "1", "--agent", "noop", "--agent", &agent, "--name", "r", "--no-baseline", "-j", "2"];
    let child = lab.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = || -> Value { serde_json::from_str(&lab.ok(&["status", "r", "--json"]).stdout).unwrap() };
    let begun = Instant::now();
    // Wait until two attempts of `noop` are finished and two of the other agent sleep. No further attempt can then
    // start, because only two may run at once.
    let settled = |status: &Value| status["running"] == 2 && status["finished"] == 2;
    while !lab.path("runs/r/lock").exists() || !settled(&status()) {
        assert!(begun.elapsed() < Duration::from_mins(2), "the two attempts were not told of");
        std::thread::sleep(Duration::from_millis(100));
    }
    let going = status();
    assert_eq!((&going["being_written"], &going["planned"]), (&json!(true), &json!(8)));
    assert!(lab.ok(&["status", "r"]).stdout.starts_with("r: running, "));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    child.wait_with_output().unwrap();
    let stopped = status();
    assert_eq!((&stopped["being_written"], &stopped["running"]), (&json!(false), &json!(0)));
    assert_eq!(stopped["finished"], going["finished"]);
    lab.fails(2, &["status", "nowhere"]);
}

#[test]
fn one_attempt_is_shown_from_its_start_to_its_verdict_without_escape_sequences() {
    let lab = Lab::new();
    let hostile = "printf 'A\\033[2J\\033]0;title\\007B\\rC'; python3 -c 'raise SystemExit(3)'";
    let steps = [
        json!({"tool": "command_line", "arguments": {"command": hostile}}),
        json!({"tool": "final_answer", "arguments": {"answer": "{}"}}),
    ];
    lab.write("steps", &crate::support::json_lines(&steps));
    let agent = format!("scripted:{}", lab.path("steps").display());
    lab.ok(&["run", "--sample", "tiny_0", "--agent", &agent, "--agent", "noop", "-k", "2", "--name", "r"]);
    let shown = lab.ok(&["show", "r", "tiny_0.1", "--agent", "scripted"]).stdout;
    assert!(shown.contains("tiny_0 attempt 1 by scripted") && shown.contains("exit code 3"), "{shown}");
    assert!(shown.contains(r"A\u{1b}[2J\u{1b}]0;title\u{7}B\rC"), "{shown}");
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    assert!(shown.contains("experiment means") && shown.contains("verification of means"), "{shown}");
    let said = lab.fails(2, &["show", "r", "tiny_0"]);
    assert!(said.contains("both attempted `tiny_0`"), "{said}");
    assert!(lab.fails(2, &["show", "r", "tiny_3.7"]).contains("has no trajectory of `tiny_3.7`"));

    // The report on behaviour: in both attempts the first run of code crashed, and no attempt recovered.
    let how: Value = serde_json::from_str(&lab.ok(&["report", "behaviour", "r", "--json"]).stdout).unwrap();
    let row = how["rows"].as_array().unwrap().iter().find(|row| row["agent"] == "scripted").unwrap();
    assert_eq!((&row["ran"], &row["first_crashed"], &row["recovered"]), (&json!(2), &json!(2), &json!(0)), "{row:#}");
}

#[test]
fn power_is_computed_from_assumptions_and_from_a_run() {
    let lab = Lab::new();
    let rows = |arguments: &[&str]| -> Value {
        let mut all = vec!["power", "--diff", "0.05", "--json"];
        all.extend(arguments);
        serde_json::from_str::<Value>(&lab.ok(&all).stdout).unwrap()["rows"].clone()
    };
    let assumed = rows(&["--n", "1..3", "--k", "5", "--rate", "0.4", "--cost", "0.1"]);
    // For each of three n, a row for a single attempt and a row for five attempts.
    assert_eq!(assumed.as_array().unwrap().len(), 6);
    assert_eq!((assumed[1]["n"].clone(), assumed[1]["k"].clone()), (json!(1), json!(5)));
    assert_eq!(assumed[0]["available"], 4);
    let (attempts, cost) = (assumed[1]["attempts"].as_f64().unwrap(), assumed[1]["cost"].as_f64().unwrap());
    assert!((cost - 0.1 * attempts).abs() < 1e-6);
    lab.ok(&["run", "-n", "1", "-k", "2", "--agent", "mutant:0.5", "--name", "r"]);
    assert_eq!(rows(&["--run", "r"]).as_array().unwrap().len(), 1);
    lab.fails(2, &["power", "--diff", "1.5"]);
}
