//! Exports, read back by the projects whose formats they are in.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

#[path = "support/readers.rs"]
mod readers;
mod support;

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use readers::Readers;
use serde_json::{Value, json};
use support::{Lab, json_lines};

/// Shows with two calls at once, one in the text, one that is none, and an answer that is wrong.
fn replies() -> String {
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let usage = json!({ "input": 100, "cached": 40, "output": 10, "reasoning": 4 });
    json_lines(&[
        json!({ "text": "Look.", "reasoning": "First look.", "tool_calls": [call("command_line", json!({ "command": "ls" }))], "usage": usage, "cost": 0.01 }),
        json!({ "text": "```json\n{\"name\": \"command_line\", \"arguments\": {\"command\": \"echo new > new.txt\"}}\n```", "usage": usage, "cost": 0.01 }),
        json!({ "text": "Two.", "tool_calls": [call("read_file", json!({ "path": "paper.txt" })), call("read_file", json!({ "path": "data.json" }))], "usage": usage, "cost": 0.01 }),
        json!({ "text": "no call", "usage": usage, "cost": 0.01 }),
        json!({ "tool_calls": [call("final_answer", json!({ "answer": "{\"Experiment 1\": {\"arithmetic\": \"=1+1\"}}" }))], "usage": usage, "cost": 0.01 }),
    ])
}

/// A run of three agents, one of them with a model: two attempts at each of four samples.
fn ran() -> &'static Lab {
    static RAN: OnceLock<Lab> = OnceLock::new();
    RAN.get_or_init(|| {
        let lab = Lab::new();
        lab.write("replies.jsonl", &replies());
        let agents = ["--agent", "gold", "--agent", "noop", "--agent", "react", "--model", "scripted:replies.jsonl"];
        lab.ok(&[&["run", "-n", "1", "-k", "2", "--name", "r"], &agents[..]].concat());
        lab
    })
}

fn export(format: &str, to: &str) -> String {
    ran().ok(&["export", "r", "--format", format, "-o", to]).stdout
}

#[test]
fn inspect_ai_reads_the_logs_with_all_its_readers() {
    let Some(readers) = Readers::tables_and_logs() else { return };
    assert_eq!(export("inspect", "logs").lines().count(), 3);
    let found = readers.read("inspect_logs.py", &[&ran().path("logs")]);
    for agent in ["gold", "noop", "react"] {
        let log = &found[agent];
        assert_eq!((&log["status"], &log["version"], &log["epochs"]), (&json!("success"), &json!(2), &json!(2)));
        for readers in ["samples", "summaries", "rows"] {
            assert_eq!(log[readers], 8, "{agent} {readers}");
        }
        assert_eq!(log["columns"], json!(["score_reported", "score_verified"]));
    }
    assert_eq!(found["gold"]["scores"], json!({ "reported": 1.0, "verified": 1.0 }));
    assert_eq!(found["noop"]["scores"], json!({ "reported": 0.0, "verified": 0.0 }));
    let react = &found["react"];
    assert_eq!(react["messages"], 8 * 12, "every message of the model's once: {react}");
    let first = &react["first"];
    let roles: Vec<&str> = first["messages"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let expected = "system user assistant tool assistant user assistant tool tool assistant user assistant";
    assert_eq!(roles.join(" "), expected);
    assert_eq!((&first["model_events"], &first["inputs"]), (&json!(5), &json!([2, 4, 6, 9, 11])));
    assert_eq!(first["known"], true, "what the model was shown are messages of the sample");
    assert_eq!(first["tools"], json!(["command_line", "command_line", "read_file"]));
    assert_eq!((&first["tokens"], &first["event_tokens"]), (&json!(550), &json!(550)));
    assert_eq!(first["scores"], json!({ "reported": "I", "verified": "I" }));
}

#[test]
fn pandas_duckdb_and_datasets_read_the_same_tables() {
    let Some(readers) = Readers::tables_and_logs() else { return };
    for format in ["csv", "parquet", "jsonl"] {
        assert_eq!(export(format, "tables").lines().count(), 2);
    }
    let found = readers.read("tables.py", &[&ran().path("tables"), Path::new("schemas")]);
    for (table, rows, passed) in [("attempts", 24, 8), ("values", 132, 44)] {
        let table = &found[table];
        for reader in ["parquet", "csv", "datasets", "duckdb"] {
            assert_eq!(table[reader], rows, "{reader}: {table}");
        }
        assert_eq!((&table["passed"], &table["passed_lines"]), (&json!(passed), &json!(passed)));
        assert_eq!((&table["same_columns"], &table["valid"]), (&json!(true), &json!(rows)));
    }
    let (types, nulls) = (&found["attempts"]["types"], &found["attempts"]["nulls"]);
    assert_eq!((&types["started"], &types["pass"]), (&json!("TIMESTAMP WITH TIME ZONE"), &json!("BOOLEAN")));
    assert_eq!((&types["cost"], &types["n"], &types["model"]), (&json!("DOUBLE"), &json!("BIGINT"), &json!("VARCHAR")));
    assert_eq!((&nulls["model"], &nulls["answer"], &nulls["cost"]), (&json!(16), &json!(8), &json!(0)));
    assert_eq!((&found["attempts"]["started"], &found["values"]["errors"]), (&json!(true), &json!(true)));
}

#[test]
fn the_tables_have_the_columns_of_the_reports_and_guard_a_spreadsheet_as_they_do() {
    let lab = ran();
    let file = lab.ok(&["export", "r", "--format", "csv", "-o", "one/attempts.csv"]).stdout;
    assert_eq!(file.trim(), "one/attempts.csv");
    let exported = lab.read("one/attempts.csv");
    let columns: Vec<&str> = exported.lines().next().unwrap().split(',').collect();
    let shown = lab.ok(&["report", "r", "--attempts"]).stdout;
    for column in shown.lines().next().unwrap().split(',') {
        assert!(columns.contains(&column), "{column}");
    }
    export("csv", "guarded");
    assert!(
        lab.read("guarded/values.csv").contains(",\"\"\"=1+1\"\"\""),
        "text that is no number stands in JSON's quotes"
    );
}

#[test]
fn harbors_models_take_the_trajectories() {
    let Some(readers) = Readers::harbor() else { return };
    assert_eq!(export("atif", "atif").lines().count(), 24);
    let found = readers.read("harbor_files.py", &[&ran().path("atif")]);
    assert_eq!(found["trajectories"].as_object().unwrap().len(), 24);
    let react = &found["trajectories"]["react/tiny_0.0"];
    assert_eq!(react["steps"], json!(["system", "user", "agent", "agent", "agent", "agent", "user", "agent"]));
    assert_eq!((&react["tokens"], &react["total"]), (&json!(500), &json!(500)));
    assert_eq!(react["calls"], json!(["command_line", "command_line", "read_file", "read_file", "final_answer"]));
    assert_eq!(react["observations"], 4);
    assert_eq!(found["trajectories"]["noop/tiny_0.0"]["steps"], json!(["system"]));
    assert_eq!(found["trajectories"]["gold/tiny_0.0"]["steps"], json!(["agent"]));
}

/// Every file below a folder as text.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(texts(&entry.path()));
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
            found.push((entry.path().display().to_string(), text));
        }
    }
    found
}

#[test]
fn a_sample_is_a_task_of_harbor_that_gives_its_agent_neither_gold_nor_originals() {
    let lab = ran();
    lab.ok(&["export", "r", "--format", "harbor", "-o", "harbor"]);
    if let Some(readers) = Readers::harbor() {
        let found = readers.read("harbor_files.py", &[&lab.path("harbor")]);
        assert_eq!(
            (found["tasks"].as_object().unwrap().len(), found["trajectories"].as_object().unwrap().len()),
            (4, 24)
        );
        let task = &found["tasks"]["tiny_0"];
        assert_eq!((&task["name"], &task["verifier"]), (&json!("autoexperiment/tiny_0"), &json!("separate")));
        assert_eq!((&task["verifier_folder"], &task["network"]), (&json!("tests"), &json!("no-network")));
        assert_eq!((&task["solution"], &task["test"]), (&json!(true), &json!(true)));
    }
    let given = texts(&lab.path("harbor/tasks/tiny_0/environment"));
    assert!(
        given.iter().any(|(path, text)| path.ends_with("tiny/means.py") && text.contains("raise NotImplementedError"))
    );
    for (path, text) in given {
        for secret in ["body-of-arithmetic", "4.16666", "3.58308", "4.82638", "1.15833"] {
            assert!(!text.contains(secret), "{path}: {secret}");
        }
    }
    for part in ["tests/task.json", "solution/files/tiny/means.py", "environment/Dockerfile", "tests/Dockerfile"] {
        assert!(lab.path(&format!("harbor/tasks/tiny_0/{part}")).exists(), "{part}");
    }
    assert!(!lab.read("harbor/tasks/tiny_0/solution/experiments.json").contains("gold"));
}

#[test]
fn harbors_verifier_passes_the_gold_solution_and_neither_masked_nor_cheating_code() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        println!("skipped: no /usr/bin/python3, which every user can run");
        return;
    }
    let lab = Lab::new();
    lab.ok(&["run", "--sample", "tiny_0,1", "--agent", "noop", "--name", "r"]);
    lab.ok(&["export", "r", "--format", "harbor", "-o", "harbor"]);
    let task = lab.path("harbor/tasks/tiny_0-1");
    std::fs::create_dir(lab.path("bin")).unwrap();
    std::os::unix::fs::symlink(python, lab.path("bin/python")).unwrap();
    // Experiments run as nobody, who has to reach the interpreter, and must not read gold.
    for (path, mode) in [(lab.path(""), 0o755), (lab.path("bin"), 0o755), (task.join("tests"), 0o700)] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    let run = |arguments: &[&Path]| {
        let path = format!("{}:/usr/bin:/bin", lab.path("bin").display());
        let ran = Command::new(python).args(arguments).env("PATH", path).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    let logs = lab.path("logs");
    let reward = |workspace: &Path| -> Value {
        run(&[&task.join("tests/verify.py"), &task.join("tests"), workspace, &logs]);
        serde_json::from_str(&lab.read("logs/reward.json")).unwrap()
    };
    let masked = task.join("environment/workspace");
    assert_eq!(reward(&masked), json!({ "reward": 0.0, "reported": 0.0, "verified": 0.0 }));

    let gold = lab.path("gold");
    support::copy(&masked, &gold);
    support::copy(&task.join("solution/files"), &gold);
    run(&[&task.join("solution/measure.py"), &task.join("solution/experiments.json"), &gold]);
    assert_eq!(reward(&gold), json!({ "reward": 1.0, "reported": 1.0, "verified": 1.0 }));
    lab.edit("gold/answer.json", "4.16", "5.16");
    assert_eq!(reward(&gold), json!({ "reward": 0.0, "reported": 0.0, "verified": 1.0 }));

    // Answers that no reader is prepared for count as none, and so does a link to gold.
    let deep = "[".repeat(200_000);
    let huge = format!("{{\"means\": {{\"arithmetic\": 1{}}}}}", "0".repeat(400));
    let digits = format!("{{\"means\": {{\"arithmetic\": {}}}}}", "9".repeat(6000));
    let nested = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    for answer in [deep.as_str(), &huge, &digits, &nested, "", "\u{0}"] {
        lab.write("gold/answer.json", answer);
        assert_eq!(reward(&gold), json!({ "reward": 0.0, "reported": 0.0, "verified": 1.0 }), "{answer:.40}");
    }
    std::fs::remove_file(gold.join("answer.json")).unwrap();
    std::os::unix::fs::symlink(task.join("tests/task.json"), gold.join("answer.json")).unwrap();
    assert_eq!(reward(&gold)["reported"], 0.0);
    std::fs::remove_file(gold.join("answer.json")).unwrap();

    // Reads gold, writes the reward, changes the data, puts a module in the place of Python's own.
    let secret = task.join("tests/task.json");
    let means = format!(
        "import json\n\n\ndef arithmetic(values):\n    try:\n        open('{}', 'w').write('{{\"reward\": 1}}')\n    except OSError:\n        pass\n    \
         return json.load(open('{}'))['experiments'][0]['gold']['arithmetic']\n\n\ndef geometric(values):\n    return 1\n",
        logs.join("reward.json").display(),
        secret.display()
    );
    lab.write("gold/tiny/means.py", &means);
    lab.write("gold/data.json", "[1]");
    lab.write("gold/json.py", "raise SystemExit(0)\n");
    let cheated = reward(&gold);
    let verdict: Value = serde_json::from_str(&lab.read("logs/verdict.json")).unwrap();
    assert_eq!(verdict["ignored"], json!(["data.json", "json.py"]));
    if nix::unistd::geteuid().is_root() {
        assert_eq!(cheated, json!({ "reward": 0.0, "reported": 0.0, "verified": 0.0 }));
        assert_eq!(verdict["experiments"]["means"]["error"], "exit code 1");
    }
}

#[test]
fn a_prediction_is_a_patch_that_git_applies_to_the_masked_repo() {
    let lab = ran();
    assert_eq!(export("predictions", "predictions").lines().count(), 6);
    let lines = lab.read("predictions/gold.1.jsonl");
    let predictions: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(predictions.len(), 4);
    for prediction in predictions {
        let keys: Vec<&String> = prediction.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["instance_id", "model_name_or_path", "model_patch"]);
        assert_eq!(prediction["model_name_or_path"], "gold");
        let sample = prediction["instance_id"].as_str().unwrap();
        let function = sample.strip_prefix("tiny_").unwrap();
        let tree = format!("masked-{function}");
        lab.ok(&["mask", "tiny", "-f", function, "-o", &tree]);
        let masked = std::process::Command::new("grep")
            .args(["-rc", "raise NotImplementedError", "tiny"])
            .current_dir(lab.path(&tree))
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&masked.stdout).contains(":1"));
        lab.write("one.patch", prediction["model_patch"].as_str().unwrap());
        let applied =
            Command::new("git").arg("apply").arg(lab.path("one.patch")).current_dir(lab.path(&tree)).output().unwrap();
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
        for file in ["tiny/means.py", "tiny/spread.py"] {
            assert_eq!(lab.read(&format!("{tree}/{file}")), lab.read(&format!("repos/tiny/{file}")), "{sample}");
        }
    }
    let message = lab.fails(2, &["export", "r", "--format", "predictions", "-o", "all.jsonl"]);
    assert!(message.contains("6 combinations of agent, model and attempt"), "{message}");
}

#[test]
fn a_traj_has_what_swe_agents_viewer_shows() {
    export("traj", "traj");
    let traj: Value = serde_json::from_str(&ran().read("traj/react/tiny_0.0.traj")).unwrap();
    let steps = traj["trajectory"].as_array().unwrap();
    assert_eq!(steps.len(), 5);
    for step in steps {
        for key in ["action", "observation", "response", "thought", "state", "execution_time", "query", "extra_info"] {
            assert!(step.get(key).is_some(), "{key}");
        }
    }
    assert_eq!((&steps[0]["thought"], &steps[0]["response"]), (&json!("First look."), &json!("Look.")));
    assert!(steps[2]["observation"].as_str().unwrap().contains("not run"));
    assert_eq!(traj["history"].as_array().unwrap().len(), 12);
    assert_eq!(
        (&traj["info"]["exit_status"], &traj["info"]["model_stats"]["api_calls"]),
        (&json!("submitted"), &json!(5))
    );
    assert!(traj["info"]["submission"].as_str().unwrap().contains("+new"));
}

#[test]
fn what_is_cut_off_or_gone_is_said_and_the_rest_is_exported() {
    let lab = Lab::new();
    lab.write("replies.jsonl", &replies());
    lab.ok(&["run", "-n", "1", "--agent", "react", "--model", "scripted:replies.jsonl", "--name", "r"]);
    let whole = lab.read("runs/r/trajectories/react/tiny_0.0.jsonl");
    let lines: Vec<&str> = whole.lines().collect();
    lab.write("runs/r/trajectories/react/tiny_0.0.jsonl", &format!("{}\n{}", lines[..5].join("\n"), &lines[5][..9]));
    lab.write("runs/r/trajectories/react/tiny_1.0.jsonl", &format!("{}\ngarbage\n{}\n", lines[0], lines[1]));
    std::fs::remove_file(lab.path("runs/r/trajectories/react/tiny_2.0.jsonl")).unwrap();
    std::fs::remove_file(lab.path("runs/r/diffs/react/tiny_3.0.patch")).unwrap();
    let said = lab.ok(&["export", "r", "--format", "inspect", "-o", "r.eval"]).stderr;
    for part in
        ["`tiny_0` is cut off before its line 6", "`tiny_1` is cut off before its line 2", "`tiny_2` has no trajectory"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = lab.ok(&["export", "r", "--format", "predictions", "-o", "p.jsonl"]).stderr;
    assert!(said.contains("`tiny_3` has no diff"), "{said}");
    assert_eq!(lab.read("p.jsonl").lines().count(), 3);
    if let Some(readers) = Readers::tables_and_logs() {
        std::fs::create_dir(lab.path("logs")).unwrap();
        std::fs::rename(lab.path("r.eval"), lab.path("logs/r.eval")).unwrap();
        assert_eq!(readers.read("inspect_logs.py", &[&lab.path("logs")])["react"]["rows"], 4);
    }
}

#[test]
fn attempts_that_infrastructure_lost_are_samples_with_an_error_and_in_no_rate() {
    let Some(readers) = Readers::tables_and_logs() else { return };
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r"]);
    let mut records = lab.records("r");
    records[0]["end"] = json!("sandbox_lost");
    records[0]["end_detail"] = json!("it died");
    for verdict in ["reported", "verified"] {
        records[0].as_object_mut().unwrap().remove(verdict);
    }
    lab.write("runs/r/attempts.jsonl", &json_lines(&records));
    lab.ok(&["export", "r", "--format", "inspect", "-o", "logs"]);
    let log = &readers.read("inspect_logs.py", &[&lab.path("logs")])["noop"];
    assert_eq!((&log["rows"], &log["errors"]), (&json!(4), &json!(1)));
    assert_eq!(log["scores"]["reported"], 0.0);
}

#[test]
fn a_run_with_nothing_finished_and_a_file_for_several_logs_are_refused() {
    let lab = ran();
    let message = lab.fails(2, &["export", "r", "--format", "inspect", "-o", "all.eval"]);
    assert!(message.contains("3 combinations of agent and model") && message.contains("name a folder"), "{message}");
    assert!(!lab.path("all.eval").exists());
    lab.write("runs/empty/run.json", &lab.read("runs/r/run.json"));
    assert!(lab.fails(7, &["export", "empty", "--format", "jsonl", "-o", "x"]).contains("has no finished attempt"));
    lab.write("runs/hostile/run.json", &lab.read("runs/r/run.json"));
    let mut record = lab.records("r").remove(0);
    record["agent"] = json!("../../outside");
    lab.write("runs/hostile/attempts.jsonl", &json_lines(&[record]));
    assert!(lab.fails(7, &["export", "hostile", "--format", "atif", "-o", "x"]).contains("can be no agent or sample"));
    assert!(lab.fails(7, &["export", "gone", "--format", "jsonl", "-o", "x"]).contains("is no run"));
}

#[test]
fn the_schemas_in_the_repo_are_those_of_the_code() {
    for (name, text) in autoexperiment::export::schemas::schemas().unwrap() {
        let path = Path::new("schemas").join(name);
        if std::env::var_os("AUTOEXPERIMENT_WRITE_SCHEMAS").is_some() {
            std::fs::create_dir_all("schemas").unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(kept, text, "{name}: type AUTOEXPERIMENT_WRITE_SCHEMAS=1 cargo test --test export schemas");
    }
}

#[test]
fn every_column_is_documented_with_the_description_of_its_schema() {
    let documented = std::fs::read_to_string("docs/formats.md").unwrap();
    for (name, text) in autoexperiment::export::schemas::schemas().unwrap() {
        let schema: Value = serde_json::from_str(&text).unwrap();
        for (column, property) in schema["properties"].as_object().unwrap() {
            let row = format!("| `{column}` |");
            let description = property["description"].as_str().unwrap();
            assert!(
                documented.lines().any(|line| line.starts_with(&row) && line.contains(description)),
                "{name}: {row} {description}"
            );
        }
    }
}

#[test]
fn completions_and_manual_pages_name_every_verb() {
    let lab = Lab::bare();
    let help = lab.ok(&["help"]).stdout;
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<&str> =
        verbs.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    for shell in ["bash", "zsh", "fish"] {
        let completions = lab.ok(&["completions", shell]).stdout;
        for verb in &verbs {
            assert!(completions.contains(verb), "{shell} {verb}");
        }
    }
    assert!(lab.ok(&["man"]).stdout.contains(".TH autoexperiment 1"));
    lab.ok(&["man", "-o", "man"]);
    for verb in verbs.iter().filter(|verb| **verb != "help") {
        let page = lab.read(&format!("man/autoexperiment-{verb}.1"));
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
    }
    lab.write("completions.bash", &lab.ok(&["completions", "bash"]).stdout);
    assert!(Command::new("bash").arg("-n").arg(lab.path("completions.bash")).status().unwrap().success());
}
