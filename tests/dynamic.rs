//! The settings of dynamic agents on the tiny suite, end to end, in the sandbox that runs are made in.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use serde_json::{Value, json};
use support::Lab;

const ANSWER: &str = r#"{"Experiment 1": {"arithmetic": 1, "geometric": 1}}"#;
const BODY: &str = "    return math.fsum(values) / len(values)";

fn call(name: &str, arguments: &Value) -> Value {
    json!({"text": "Next.", "tool_calls": [{"name": name, "arguments": arguments}]})
}

fn said(text: &str) -> Value {
    json!({ "text": text })
}

/// Runs `react` with these settings and replies on `tiny_0`, the sample without the arithmetic mean; the observations.
fn run(settings: &str, replies: &[Value]) -> Vec<String> {
    let lab = Lab::new();
    lab.write("model.jsonl", &support::json_lines(replies));
    let agent = format!("react:{settings}");
    lab.ok(&["run", "--sample", "tiny_0", "--agent", &agent, "--model", "scripted:model.jsonl", "--name", "r"]);
    let record = &lab.records("r")[0];
    assert_eq!(record["end"], "answered", "{record:#}");
    assert_eq!(record["verified"]["pass"], true, "{record:#}");
    let left: Vec<&str> = record["changed"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert!(left.iter().all(|path| *path == "tiny/means.py" || path.contains("__pycache__")), "{left:?}");
    let folder = record["agent"].as_str().unwrap();
    let trajectory = lab.read(&format!("runs/r/trajectories/{folder}/tiny_0.0.jsonl"));
    let lines = trajectory.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let observations = lines.filter(|line| line["event"] == "observation");
    observations.map(|line| line["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_python_session_of_super_lives_in_the_sandbox_from_call_to_call() {
    let edit = json!({"path": "tiny/means.py", "old_lines": "    raise NotImplementedError", "new_lines": BODY});
    let shown = run(
        "tools=super",
        &[
            call("execute", &json!({"code": "from tiny import means\nx = [1, 2, 3]"})),
            call("edit", &edit),
            call("execute", &json!({"code": "import importlib\nimportlib.reload(means).arithmetic(x)"})),
            call("submit", &json!({ "answer": ANSWER })),
        ],
    );
    assert_eq!((shown[0].as_str(), shown[2].as_str()), ("no output", "2.0"));
}

#[test]
fn the_tools_of_swe_agent_edit_within_the_syntax() {
    let edit = |text: &str| call("edit", &json!({"start_line": 7, "end_line": 7, "replacement": text}));
    let shown = run(
        "tools=swe-agent,history=window:2",
        &[
            call("search_dir", &json!({"text": "NotImplementedError"})),
            call("open", &json!({"path": "tiny/means.py"})),
            edit("    return (math.fsum(values)"),
            edit(BODY),
            call("submit", &json!({ "answer": ANSWER })),
        ],
    );
    assert!(shown[0].contains("tiny/means.py (1)"), "{}", shown[0]);
    assert!(shown[1].contains("\n7:    raise NotImplementedError"), "{}", shown[1]);
    assert!(shown[2].starts_with("error: nothing was changed"), "{}", shown[2]);
}

#[test]
fn one_shell_by_text_is_enough() {
    let edit = format!("I write it.\n```bash\nsed -i 's|    raise NotImplementedError|{BODY}|' tiny/means.py\n```");
    let report = format!("```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\necho '{ANSWER}'\n```");
    let shown = run("tools=bash,protocol=text,prompt=planning", &[said(&edit), said(&report)]);
    assert_eq!(shown, ["exit code 0, no output"]);
}

#[test]
fn settings_of_a_run_and_of_an_agent_are_kept_and_named() {
    let lab = Lab::new();
    lab.write("model.jsonl", &support::json_lines(&[call("final_answer", &json!({ "answer": ANSWER }))]));
    let options = ["--prompt", "planning", "--history", "summary:4", "--context-tokens", "8000", "--reflexion", "2"];
    let agents = ["--agent", "react", "--agent", "react:history=full,tools=bash", "--model", "scripted:model.jsonl"];
    lab.ok(&[&["run", "--sample", "tiny_0", "--name", "r"], &options[..], &agents[..]].concat());
    let run: Value = serde_json::from_str(&lab.read("runs/r/run.json")).unwrap();
    let settings = &run["configuration"]["settings"];
    assert_eq!((&settings["prompt"], &settings["history"]), (&json!("planning"), &json!("summary:4")));
    assert_eq!((&settings["context_tokens"], &settings["reflexion"]), (&json!(8000), &json!(2)));
    let names: Vec<Value> = lab.records("r").iter().map(|record| record["agent"].clone()).collect();
    let own = "react+prompt=planning+context=8000+tools=bash+reflexion=2";
    assert!(names.contains(&json!("react+prompt=planning+history=summary-4+context=8000+reflexion=2")), "{names:?}");
    assert!(names.contains(&json!(own)), "{names:?}");
    let wrong = lab.fails(2, &["run", "--agent", "react", "--history", "window", "--model", "scripted:model.jsonl"]);
    assert!(wrong.contains("`window` is no history: give `full`, `window:K`"), "{wrong}");
}
