//! Agents that are Python functions: what they can do, and how their attempts end if they fail.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::support::{Lab, json_lines};

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("agents.py", include_str!("function/agents.py"));
    lab
}

/// Runs these agents on a sample, and returns the records by agent.
fn attempted(lab: &Lab, agents: &[&str], options: &[&str]) -> BTreeMap<String, Value> {
    let specs: Vec<String> = agents.iter().map(|agent| format!("python:agents.py:{agent}")).collect();
    let mut arguments = vec!["run", "--sample", "tiny_0", "--name", "r", "--no-baseline"];
    for spec in &specs {
        arguments.extend(["--agent", spec]);
    }
    arguments.extend(options);
    lab.ok(&arguments);
    lab.records("r").into_iter().map(|it| (it["agent"].as_str().unwrap().to_owned(), it)).collect()
}

#[test]
fn an_agent_that_is_a_python_function_works_in_the_sandbox_and_is_verified() {
    let lab = lab();
    let records = attempted(&lab, &["solves", "waits_for_nothing"], &[]);
    let solved = &records["solves"];
    assert_eq!((&solved["pass"], &solved["end"]), (&json!(true), &json!("answered")), "{solved:#}");
    assert_eq!(solved["changed"], json!(["results/spread.json", "tiny/means.py"]));
    assert!(solved["tool_seconds"].as_f64().unwrap() > 0.0);
    let trajectory = lab.read("runs/r/trajectories/solves/tiny_0.0.jsonl");
    for part in ["\"tool\":\"exec\"", "\"tool\":\"write\"", "this goes to the record", "\"event\":\"program\""] {
        assert!(trajectory.contains(part), "{part}: {trajectory}");
    }
    assert_eq!(records["waits_for_nothing"]["pass"], false);
    lab.ok(&["show", "r", "tiny_0", "--agent", "solves", "--no-pager"]);
}

#[test]
fn an_agent_function_that_raises_crashes_or_is_killed_fails_its_attempt() {
    let lab = lab();
    let agents =
        ["raises", "leaves", "crashes", "is_killed", "is_killed_once", "talks_nonsense", "sleeps", "returns_nothing"];
    let records = attempted(&lab, &agents, &["--time", "3", "--tries", "2"]);
    for (agent, end, detail) in [
        ("raises", "gave_up", "it raised ZeroDivisionError: division by zero"),
        ("leaves", "gave_up", "by itself with exit code 3"),
        ("crashes", "gave_up", "its process died of signal 11"),
        ("talks_nonsense", "gave_up", "message 1 does not follow the protocol"),
        ("returns_nothing", "gave_up", "it returned no answer"),
        // The agent may have killed its own process, so signal 9 counts as its failure and not as a loss to
        // infrastructure.
        ("is_killed", "gave_up", "its process died of signal 9"),
        ("is_killed_once", "gave_up", "its process died of signal 9"),
        ("sleeps", "time_limit", ""),
    ] {
        let record = &records[agent];
        let said = record["end_detail"].as_str().unwrap_or_default();
        assert!(said.contains(detail), "{agent}: {record:#}");
        assert_eq!((&record["end"], &record["pass"]), (&json!(end), &json!(false)), "{agent}: {record:#}");
    }
    assert!(records["sleeps"]["tool_seconds"].as_f64().unwrap() >= 2.9);
    // The child process that the agent started is gone, too.
    let child = lab.read("child");
    let state = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(" Z "), "{state}");
}

#[test]
fn an_agent_function_that_exhausts_memory_fails_its_attempt_and_the_run_continues() {
    let lab = lab();
    let agents = ["eats", "nibbles", "has_a_child_that_eats", "waits_for_nothing"];
    let records = attempted(&lab, &agents, &["--memory", "256", "--tries", "1", "--jobs", "1"]);
    for agent in ["eats", "nibbles"] {
        let record = &records[agent];
        let said = record["end_detail"].as_str().unwrap_or_default();
        let told = said.starts_with("it raised MemoryError") && said.ends_with("at most 256 MiB (`--memory`)");
        assert!(told && record["end"] == "gave_up" && record["pass"] == false, "{agent}: {record:#}");
    }
    // A child process has the same memory limit, and the function decides what to do when the child fails.
    let record = &records["has_a_child_that_eats"];
    assert_eq!((&record["end"], &record["answer"]), (&json!("answered"), &json!("{\"child\": \"MemoryError\"}")));
    assert_eq!(records["waits_for_nothing"]["end"], "answered");
}

#[test]
fn model_calls_are_metered_and_a_reached_limit_raises_an_exception() {
    let lab = lab();
    let reply = json!({"text": "word", "cost": 0.125, "usage": {"input": 10, "output": 2}});
    lab.write("model.jsonl", &json_lines(&vec![reply; 20]));
    let options = ["--model", "scripted:model.jsonl", "--steps", "3"];
    let records = attempted(&lab, &["asks", "asks_on", "never_stops_asking"], &options);
    for (agent, end) in [("asks", "answered"), ("asks_on", "step_limit"), ("never_stops_asking", "step_limit")] {
        let record = &records[agent];
        assert_eq!(record["end"], end, "{record:#}");
        assert_eq!((&record["steps"], &record["cost"]), (&json!(3), &json!(0.375)), "{record:#}");
    }
    assert_eq!(records["asks"]["answer"], "{\"said\": [\"word\", \"word\", \"word\"]}");
    let trajectory = lab.read("runs/r/trajectories/asks/tiny_0.0.jsonl");
    let asked: Vec<Value> = trajectory
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|event: &Value| event["event"] == "asked")
        .collect();
    assert_eq!(asked.len(), 3);
    // The record of a call contains only the messages that the call adds, and the number of earlier messages that it
    // keeps.
    assert_eq!((&asked[2]["kept"], &asked[2]["messages"][0]["content"]), (&json!(4), &json!("More.")));
}

#[test]
fn errors_in_an_agents_file_are_reported_before_anything_runs() {
    let lab = lab();
    lab.write("broken.py", "import nothing_of_this_name\n");
    for (spec, said) in [
        ("python:nowhere.py", "failed to read the agent's file"),
        ("python:broken.py:x", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("python:agents.py:absent", "has no function `absent`"),
        ("python:agents.py", "give the agent's name"),
        ("python:agents.py:unmarked", "an agent's parameters are `task`, `sandbox` and `model`, not `wrong`"),
    ] {
        let told = lab.fails(2, &["run", "--sample", "tiny_0", "--agent", spec]);
        assert!(told.contains(said) && told.contains("hint:"), "{spec}: {told}");
    }
    let told = lab.fails(2, &["run", "--sample", "tiny_0", "--agent", "python:agents.py:asks"]);
    assert!(told.contains("needs a model"), "{told}");
    let mut command = lab.command(&["run", "--sample", "tiny_0", "--agent", "python:agents.py:solves"]);
    let output = command.env("AUTOEXPERIMENT_PYTHON", "/nowhere/python").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(5) && told.contains("AUTOEXPERIMENT_PYTHON"), "{told}");
}

#[test]
fn mask_masks_any_python_file_and_prints_json() {
    let lab = Lab::new();
    lab.write("m.py", "class A:\n    def f(self): return 1\n\ndef g():\n    return 2\n");
    let masked = lab.ok(&["mask", "--source", "m.py", "--function", "A.f=One."]).stdout;
    assert_eq!(
        masked,
        "class A:\n    def f(self):\n        \"\"\"One.\"\"\"\n        raise NotImplementedError\n\ndef g():\n    return 2\n"
    );
    let told = lab.fails(3, &["mask", "--source", "m.py", "--function", "h"]);
    assert!(told.contains("`h`") && told.contains("hint"), "{told}");
    let json: Value = serde_json::from_str(&lab.ok(&["mask", "tiny", "-f", "0", "--json"]).stdout).unwrap();
    assert_eq!(json["sample"], "tiny_0");
    assert!(json["files"][0]["masked"].as_str().unwrap().contains("raise NotImplementedError"));
}
