//! Settings of the dynamic agent `react` on the tiny suite, end to end, in the sandbox that runs use by default.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Lab, Ran};
use serde_json::{Value, json};

const ANSWER: &str = r#"{"Experiment 1": {"arithmetic": 1, "geometric": 1}}"#;
const BODY: &str = "    return math.fsum(values) / len(values)";

/// Script that starts a program where no more namespaces can be made, as in a default container. It first waits for a
/// line on its standard input, which says that its user ids have been mapped and that it is root in its namespace.
const WITHOUT_NAMESPACES: &str = r#"read -r _; exec sh -e -c '
for limit in /proc/sys/user/max_*_namespaces; do echo 0 > "$limit"; done; exec "$0" "$@"' "$0" "$@""#;

fn call(name: &str, arguments: &Value) -> Value {
    json!({"text": "Next.", "tool_calls": [{"name": name, "arguments": arguments}]})
}

fn said(text: &str) -> Value {
    json!({ "text": text })
}

/// Runs `react` with these settings and these replies of the model on `tiny_0`, the sample that lacks the arithmetic
/// mean. Returns the observations.
fn run(settings: &str, replies: &[Value]) -> Vec<String> {
    let lab = Lab::new();
    run_by(&lab, settings, replies, |arguments| lab.run(arguments))
}

/// Same as [`run`], with the program started by `start`.
fn run_by(lab: &Lab, settings: &str, replies: &[Value], start: impl Fn(&[&str]) -> Ran) -> Vec<String> {
    lab.write("model.jsonl", &crate::support::json_lines(replies));
    let agent = format!("react:{settings}");
    let ran =
        start(&["run", "--sample", "tiny_0", "--agent", &agent, "--model", "scripted:model.jsonl", "--name", "r"]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
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
fn super_bench_agents_keep_one_python_session_between_calls() {
    crate::support::session::assert_lives(&run("tools=super", &crate::support::session::replies(BODY, ANSWER)));
}

#[test]
#[ignore = "needs root to map all users into a namespace, and a Python that every user may use"]
fn the_python_session_of_the_tools_for_super_works_in_a_sandbox_that_only_uses_landlock() {
    let lab = Lab::new();
    let start = |arguments: &[&str]| -> Ran {
        let own = lab.command(arguments);
        let mut command = Command::new("unshare");
        command.args(["--user", "sh", "-e", "-c", WITHOUT_NAMESPACES, crate::support::PROGRAM]).args(arguments);
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        // The user inside the namespace is not allowed to pass through root's home, so put home and cache elsewhere.
        command
            .env("HOME", lab.path("home"))
            .env("AUTOEXPERIMENT_CACHE", lab.path("cache"))
            .env("PATH", "/usr/bin:/bin");
        command
            .env_remove("PYENV_ROOT")
            .current_dir(lab.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user")).unwrap();
        let pid = child.id().to_string();
        let begun = Instant::now();
        while namespace(&pid) == namespace("self") {
            assert!(begun.elapsed() < Duration::from_mins(1), "`unshare --user` does not work here");
            std::thread::sleep(Duration::from_millis(10));
        }
        for map in ["uid_map", "gid_map"] {
            std::fs::write(format!("/proc/{pid}/{map}"), "0 0 4294967295").unwrap();
        }
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        child.wait_with_output().unwrap().into()
    };
    let shown = run_by(&lab, "tools=super", &crate::support::session::replies(BODY, ANSWER), start);
    let run: Value = serde_json::from_str(&lab.read("runs/r/run.json")).unwrap();
    assert_eq!(run["sessions"][0]["sandbox"], "landlock");
    crate::support::session::assert_lives(&shown);
}

#[test]
fn the_edit_tool_of_swe_agent_refuses_syntax_errors() {
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
fn an_agent_passes_with_one_shell_tool_called_in_text() {
    let edit = format!("I write it.\n```bash\nsed -i 's|    raise NotImplementedError|{BODY}|' tiny/means.py\n```");
    let report = format!("```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\necho '{ANSWER}'\n```");
    let shown = run("tools=bash,protocol=text,prompt=planning", &[said(&edit), said(&report)]);
    assert_eq!(shown, ["exit code 0, no output"]);
}

#[test]
fn settings_of_an_agent_are_stored_and_appear_in_its_label() {
    let lab = Lab::new();
    lab.write("model.jsonl", &crate::support::json_lines(&[call("final_answer", &json!({ "answer": ANSWER }))]));
    let own = "prompt=planning,context=8000,reflexion=2";
    let agents = [format!("react:{own},history=summary:4"), format!("react:{own},history=full,tools=bash")];
    let agents = ["--agent", &agents[0], "--agent", &agents[1], "--model", "scripted:model.jsonl"];
    lab.ok(&[&["run", "--sample", "tiny_0", "--name", "r"], &agents[..]].concat());
    let names: Vec<Value> = lab.records("r").iter().map(|record| record["agent"].clone()).collect();
    let own = "react+prompt=planning+context=8000+tools=bash+reflexion=2";
    assert!(names.contains(&json!("react+prompt=planning+history=summary-4+context=8000+reflexion=2")), "{names:?}");
    assert!(names.contains(&json!(own)), "{names:?}");
    let wrong = lab.fails(2, &["run", "--agent", "react:history=window", "--model", "scripted:model.jsonl"]);
    assert!(wrong.contains("`window` is not a value of `history`: give `full`, `window:K`"), "{wrong}");
    let other = lab.fails(2, &["run", "--agent", "react:repair=2", "--model", "scripted:model.jsonl"]);
    assert!(other.contains("`repair=2` is not a setting of `react`"), "{other}");
    assert!(other.contains("`repair` is a setting of `fixed`"), "{other}");
}
