//! Exports, read back by the projects whose formats they are in.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::support::browser::Browser;
use crate::support::readers::Readers;
use crate::support::{Lab, json_lines};
use autoexperiment::cli::lines::{EventLine, SampleLine};
use autoexperiment::export::schemas;
use serde_json::{Value, json};

/// Replies of a model: one with a call, one with a call in its text, one with two calls at once, one without a call,
/// and one with a wrong answer.
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

/// Makes a run of three agents, one of them with a model: two attempts at each of four samples.
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
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn the_newest_and_the_oldest_supported_inspect_ai_read_the_exported_logs() {
    assert_eq!(export("inspect", "logs").lines().count(), 3);
    for readers in [Readers::general(), Readers::oldest()] {
        inspect_reads(&readers);
    }
}

fn inspect_reads(readers: &Readers) {
    let found = readers.read("inspect_logs.py", &[&ran().path("logs")]);
    for agent in ["gold", "noop", "react"] {
        let log = &found[agent];
        assert_eq!((&log["status"], &log["version"], &log["epochs"]), (&json!("success"), &json!(2), &json!(2)));
        for readers in ["samples", "summaries", "rows"] {
            assert_eq!(log[readers], 8, "{agent} {readers}");
        }
        assert_eq!(log["columns"], json!(["score_pass", "score_reported", "score_verified"]));
    }
    assert_eq!(found["gold"]["scores"], json!({ "pass": 1.0, "reported": 1.0, "verified": 1.0 }));
    assert_eq!(found["noop"]["scores"], json!({ "pass": 0.0, "reported": 0.0, "verified": 0.0 }));
    let react = &found["react"];
    assert_eq!(react["messages"], 8 * 12, "every message of the model's once: {react}");
    // An agent without a model has no conversation, so each of its samples has one message: the question.
    assert_eq!((&found["gold"]["messages"], &found["noop"]["messages"]), (&json!(8), &json!(8)));
    let first = &react["first"];
    let roles: Vec<&str> = first["messages"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let expected = "system user assistant tool assistant user assistant tool tool assistant user assistant";
    assert_eq!(roles.join(" "), expected);
    assert_eq!((&first["model_events"], &first["inputs"]), (&json!(5), &json!([2, 4, 6, 9, 11])));
    assert_eq!(first["known"], true, "what the model was shown are messages of the sample");
    assert_eq!(first["tools"], json!(["command_line", "command_line", "read_file", "read_file"]));
    assert_eq!((&first["tokens"], &first["event_tokens"]), (&json!(550), &json!(550)));
    assert_eq!(first["scores"], json!({ "pass": "I", "reported": "I", "verified": "I" }));
}

/// Inspect's own viewer of a folder of logs, on loopback; stopped when dropped.
struct InspectView {
    child: Child,
    address: String,
}

impl InspectView {
    fn start(readers: &Readers, logs: &Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = readers.program("inspect");
        command.args(["view", "start", "--host", "127.0.0.1", "--port", &port.to_string(), "--log-dir"]).arg(logs);
        command.env("HOME", logs).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert_eq!(child.try_wait().unwrap(), None, "the viewer has ended");
            assert!(begun.elapsed() < Duration::from_mins(2), "the viewer does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        Self { child, address: format!("http://127.0.0.1:{port}/") }
    }
}

impl Drop for InspectView {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs other projects' readers, which it installs from PyPI, and chromium"]
fn inspect_view_shows_every_sample_in_a_browser() {
    let readers = Readers::general();
    export("inspect", "viewed");
    let found = readers.read("inspect_logs.py", &[&ran().path("viewed")]);
    let viewer = InspectView::start(&readers, &ran().path("viewed"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let browser = Browser::start().await;
        // Make the window large, because the page only contains what fits into it.
        browser.look(1400, 6000, false).await;
        // Inspect's page does not signal when it has changed its view.
        let go = async |hash: String| browser.run(&format!("location.hash = {hash:?}")).await;
        let shows = |text: &str| format!("document.body.innerText.includes({text:?})");
        browser.open(&viewer.address).await;
        browser.until(&shows("3 items")).await;
        for agent in ["react", "gold", "noop"] {
            let log = found[agent]["file"].as_str().unwrap();
            go(format!("#/logs/{log}/samples")).await;
            browser.until(&shows("8 Samples")).await;
            for (sample, epoch) in (0..4).flat_map(|place| [(place, 1), (place, 2)]) {
                go(format!("#/logs/{log}/samples/sample/tiny_{sample}/{epoch}/messages")).await;
                browser.until(&shows(&format!("Sample tiny_{sample} (Epoch {epoch})"))).await;
                let message =
                    if agent == "react" { "You are a research engineer." } else { "masked functions of the paper" };
                browser.until(&shows(message)).await;
            }
        }
        let log = found["react"]["file"].as_str().unwrap();
        go(format!("#/logs/{log}/samples/sample/tiny_0/1/messages")).await;
        let said = ["First look.", "Look.", "echo new > new.txt", "Two.", "paper.txt", "no call", "final_answer"];
        for text in said {
            browser.until(&shows(text)).await;
        }
        let taken = browser.devtools("Page.captureScreenshot", json!({ "format": "png" })).await;
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, taken["data"].as_str().unwrap());
        let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        std::fs::create_dir_all(&pictures).unwrap();
        std::fs::write(pictures.join("inspect-view.png"), bytes.unwrap()).unwrap();
        go(format!("#/logs/{log}/samples/sample/tiny_0/1/scoring")).await;
        browser.until(&shows("means: fail, 0 of 2 values right")).await;
        go(format!("#/logs/{log}/samples/sample/tiny_0/1/transcript")).await;
        browser.until(&shows("command_line")).await;
        let mut complaints = browser.complaints().await;
        // The viewer asks for an optional file next to the logs, which only Inspect writes.
        complaints.retain(|complaint| !complaint.contains("/api/flow"));
        assert_eq!(complaints, [""; 0]);
    });
}

#[test]
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn pandas_duckdb_and_datasets_read_the_same_tables() {
    for format in ["csv", "parquet", "jsonl"] {
        assert_eq!(export(format, "tables").lines().count(), 2);
    }
    for readers in [Readers::general(), Readers::oldest()] {
        same_tables(&readers);
    }
}

fn same_tables(readers: &Readers) {
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
fn exported_tables_have_the_reports_columns_and_guard_against_formulas() {
    let lab = ran();
    let file = lab.ok(&["export", "r", "--format", "csv", "-o", "one/attempts.csv"]).stdout;
    assert_eq!(file.trim(), "one/attempts.csv");
    let exported = lab.read("one/attempts.csv");
    let columns: Vec<&str> = exported.lines().next().unwrap().split(',').collect();
    let shown = lab.ok(&["report", "attempts", "r"]).stdout;
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
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn harbors_data_models_accept_the_trajectories() {
    let readers = Readers::harbor();
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

#[test]
fn an_exported_trajectory_defines_the_tools_that_were_offered_to_the_agent() {
    export("atif", "atif-tools");
    let agent = |path: &str| {
        let text = ran().read(&format!("atif-tools/{path}/tiny_0.0.json"));
        serde_json::from_str::<Value>(&text).unwrap()["agent"].take()
    };
    let react = agent("react");
    let tools = react["tool_definitions"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    for name in ["command_line", "read_file", "final_answer"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(tools.iter().all(|tool| tool["function"]["parameters"]["type"] == "object"), "{tools:?}");
    assert_eq!(agent("gold")["tool_definitions"], Value::Null);
}

/// Reads every file below a folder as text.
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
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn harbor_reads_the_tasks_and_the_trajectories() {
    let readers = Readers::harbor();
    export("harbor", "harbor-read");
    let found = readers.read("harbor_files.py", &[&ran().path("harbor-read")]);
    assert_eq!((found["tasks"].as_object().unwrap().len(), found["trajectories"].as_object().unwrap().len()), (4, 24));
    let task = &found["tasks"]["tiny_0"];
    assert_eq!((&task["name"], &task["verifier"]), (&json!("autoexperiment/tiny_0"), &json!("separate")));
    assert_eq!((&task["verifier_folder"], &task["network"]), (&json!("tests"), &json!("no-network")));
    assert_eq!((&task["solution"], &task["test"]), (&json!(true), &json!(true)));
    let folder = ran().path("harbor-read/tasks");
    assert_eq!(
        toml::from_str::<Value>(&ran().read("harbor-read/tasks/tiny_0/task.toml")).unwrap()["schema_version"],
        "1.4"
    );
    // Check Harbor's own rules, such as that the verifier shares nothing with the agent, and that tests are not in its
    // image.
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let linted = readers.program("harbor").arg("lint").args(folders).output().unwrap();
    let (said, why) = (String::from_utf8_lossy(&linted.stdout), String::from_utf8_lossy(&linted.stderr));
    assert!(linted.status.success(), "{said}{why}");
}

/// Exports the task of a sample, and prepares it for its verifier.
fn harbor_task(lab: &Lab, sample: &str) -> PathBuf {
    let python = Path::new("/usr/bin/python3");
    assert!(python.exists(), "this test needs /usr/bin/python3, which every user can run");
    lab.ok(&["run", "--sample", sample, "--agent", "noop", "--name", "r"]);
    lab.ok(&["export", "r", "--format", "harbor", "-o", "harbor"]);
    let task = lab.path("harbor/tasks").join(sample.replace(',', "-"));
    std::fs::create_dir(lab.path("bin")).unwrap();
    std::os::unix::fs::symlink(python, lab.path("bin/python")).unwrap();
    // Experiments run as the user `nobody`, who must reach the interpreter but must not read gold, which is in `tests`.
    for (path, mode) in [(lab.path(""), 0o755), (lab.path("bin"), 0o755), (task.join("tests"), 0o700)] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    task
}

/// Runs a script of a task.
fn harbor_python(lab: &Lab, arguments: &[&Path]) {
    let path = format!("{}:/usr/bin:/bin", lab.path("bin").display());
    let ran = Command::new("/usr/bin/python3").args(arguments).env("PATH", path).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Returns the reward that a task's verifier gives to a workspace.
fn harbor_reward(lab: &Lab, task: &Path, workspace: &Path) -> Value {
    harbor_python(lab, &[&task.join("tests/verify.py"), &task.join("tests"), workspace, &lab.path("logs")]);
    serde_json::from_str(&lab.read("logs/reward.json")).unwrap()
}

#[test]
fn a_harbor_task_of_a_function_and_a_region_is_described_and_verified() {
    let lab = Lab::new();
    let region = "\n[[region]]\nname = \"sum\"\nat = \"tiny/means.py::arithmetic\"\nfirst = \"for value in values:\"\n\
                  description = \"Adds all values.\"\npassages = [\"Means\"]\n";
    lab.write("papers/tiny/paper.toml", &(lab.read("papers/tiny/paper.toml") + region));
    // Remove the measurements of which experiments need the region. Without them, all experiments count.
    std::fs::remove_file(lab.path("papers/tiny/dependencies.json")).unwrap();
    let task = harbor_task(&lab, "tiny_1,4");
    let told = std::fs::read_to_string(task.join("instruction.md")).unwrap();
    for part in [
        "These functions and parts of functions are missing.",
        "- `tiny/means.py::geometric`: The geometric mean, by logarithms. (in the paper: Means)",
        "- `tiny/means.py::arithmetic[sum]`: Adds all values. Only this part of `arithmetic` in `tiny/means.py` is missing, \
         about 2 lines of code: a `raise NotImplementedError` is in its place. (in the paper: Means)",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let masked = task.join("environment/workspace");
    let code = std::fs::read_to_string(masked.join("tiny/means.py")).unwrap();
    assert!(code.contains("body-of-arithmetic") && !code.contains("body-of-geometric"), "{code}");
    assert_eq!(code.matches("    raise NotImplementedError\n").count(), 2, "{code}");
    assert_eq!(harbor_reward(&lab, &task, &masked), json!({ "reward": 0.0, "reported": 0.0, "verified": 0.0 }));

    let solved = lab.path("solved");
    crate::support::copy(&masked, &solved);
    crate::support::copy(&task.join("solution/files"), &solved);
    harbor_python(&lab, &[&task.join("solution/measure.py"), &task.join("solution/experiments.json"), &solved]);
    let all = json!({ "reward": 1.0, "reported": 1.0, "verified": 1.0 });
    assert_eq!(harbor_reward(&lab, &task, &solved), all);
    // Put other statements in place of the region: first some that give the same result, then some that do not.
    let (before, after) = code.split_once("    raise NotImplementedError\n").unwrap();
    let after = after.replace("    raise NotImplementedError", "    return math.prod(values) ** (1 / len(values))");
    for (region, verified) in [("total += sum(values)", 1.0), ("total += values[0]", 0.0)] {
        lab.write("solved/tiny/means.py", &format!("{before}    {region}\n{after}"));
        let expected = json!({ "reward": verified, "reported": 1.0, "verified": verified });
        assert_eq!(harbor_reward(&lab, &task, &solved), expected, "{region}");
    }
}

#[test]
fn harbors_verifier_passes_the_gold_solution_and_rejects_masked_code_and_cheating_code() {
    let lab = Lab::new();
    let task = harbor_task(&lab, "tiny_0,1");
    let logs = lab.path("logs");
    let run = |arguments: &[&Path]| harbor_python(&lab, arguments);
    let reward = |workspace: &Path| harbor_reward(&lab, &task, workspace);
    let masked = task.join("environment/workspace");
    assert_eq!(reward(&masked), json!({ "reward": 0.0, "reported": 0.0, "verified": 0.0 }));

    let gold = lab.path("gold");
    crate::support::copy(&masked, &gold);
    crate::support::copy(&task.join("solution/files"), &gold);
    run(&[&task.join("solution/measure.py"), &task.join("solution/experiments.json"), &gold]);
    assert_eq!(reward(&gold), json!({ "reward": 1.0, "reported": 1.0, "verified": 1.0 }));
    lab.edit("gold/answer.json", "4.16", "5.16");
    assert_eq!(reward(&gold), json!({ "reward": 0.0, "reported": 0.0, "verified": 1.0 }));

    // An answer may spell the name of an experiment in other ways, but must not give two results for one experiment.
    let answer = lab.read("gold/answer.json").replace("5.16", "4.16");
    for (from, to) in [("Experiment 1", "experiment_1"), ("Experiment 1", "1"), ("Experiment 2", "Experiment #2 ")] {
        assert!(answer.contains(from), "{answer}");
        lab.write("gold/answer.json", &answer.replace(from, to));
        assert_eq!(reward(&gold), json!({ "reward": 1.0, "reported": 1.0, "verified": 1.0 }), "{to}");
    }
    lab.write("gold/answer.json", &answer.replacen('{', "{\"1\": 7, ", 1));
    assert_eq!(reward(&gold)["reported"], 0.0);
    // As in a run, files with names that snapshots leave out do not count as changes of the attempt.
    lab.write("gold/answer.json", &answer);
    for path in ["tiny/means.py.orig", "tiny/means.py~", ".pytest_cache/means.py", "json.pyc"] {
        lab.write(&format!("gold/{path}"), "raise SystemExit(1)\n");
    }
    assert_eq!(reward(&gold)["reward"], 1.0);
    let verdict: Value = serde_json::from_str(&lab.read("logs/verdict.json")).unwrap();
    assert_eq!(verdict["ignored"], json!([]));

    // An answer that would overwhelm a parser counts as no answer, and so does a link to the file with gold.
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

    // Code that reads gold, writes the reward, changes the data, and replaces a module of Python's library.
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
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn swe_bench_reads_the_predictions() {
    for readers in [Readers::general(), Readers::oldest()] {
        predictions_are_read(&readers);
    }
}

fn predictions_are_read(readers: &Readers) {
    export("predictions", "predictions-read");
    let found = readers.read("predictions.py", &[&ran().path("predictions-read")]);
    assert_eq!(found.as_object().unwrap().len(), 6);
    assert_eq!(
        found["gold.1.jsonl"]["tiny_3"],
        json!({ "model": "gold", "files": ["results/spread.json", "tiny/spread.py"] })
    );
    let react = &found["react.0.jsonl"]["tiny_0"];
    assert!(react["model"].as_str().unwrap().starts_with("react__scripted:"), "{react}");
    assert_eq!(react["files"], json!(["new.txt"]));
    assert_eq!(found["noop.0.jsonl"]["tiny_0"]["files"], json!([]));
}

#[test]
fn a_traj_file_has_every_field_of_swe_agents_own_files() {
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
    let observation = steps[2]["observation"].as_str().unwrap();
    assert!(observation.lines().count() > 1 && !observation.contains("not run"), "{observation}");
    assert_eq!(traj["history"].as_array().unwrap().len(), 12);
    assert_eq!(
        (&traj["info"]["exit_status"], &traj["info"]["model_stats"]["api_calls"]),
        (&json!("submitted"), &json!(5))
    );
    assert!(traj["info"]["submission"].as_str().unwrap().contains("+new"));
}

#[test]
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn swe_agents_inspector_shows_every_trajectory() {
    let readers = Readers::general();
    let lab = Lab::bare();
    crate::support::copy(&ran().path("runs/r"), &lab.path("runs/r"));
    // An attempt whose diff is missing is still exported.
    std::fs::remove_file(lab.path("runs/r/diffs/react/tiny_1.1.patch")).unwrap();
    let said = lab.ok(&["export", "r", "--format", "traj", "-o", "inspected"]).stderr;
    assert!(said.contains("attempt 1 of `react` at `tiny_1` has no diff"), "{said}");
    let found = readers.read("trajs.py", &[&lab.path("inspected")]);
    assert_eq!(found.as_object().unwrap().len(), 24);
    let react = &found["react/tiny_0.0.traj"];
    let roles: Vec<&str> = react["roles"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let expected = "system user assistant tool assistant user assistant tool tool assistant user assistant model_patch";
    assert_eq!(roles.join(" "), expected);
    assert!(react["patches"][0].as_str().unwrap().contains("+new"));
    let statistics = ["Instance Cost: $0.05", "Tokens Sent: 500", "Tokens Received: 50", "API Calls: 5"];
    assert_eq!(react["statistics"], json!(statistics));
    assert_eq!(found["react/tiny_1.1.traj"]["patches"], json!([]));
    assert_eq!(found["gold/tiny_0.0.traj"]["roles"], json!(["user", "model_patch"]));
    assert_eq!(found["noop/tiny_0.0.traj"]["roles"], json!(["user"]));
}

/// Makes a run with trajectories that are cut off, broken and missing, and a missing diff, and exports it to `r.eval`
/// and `p.jsonl`.
fn exported_with_gaps() -> Lab {
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
    lab
}

#[test]
fn missing_and_truncated_data_is_reported_and_the_rest_exported() {
    exported_with_gaps();
}

#[test]
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn inspect_ai_reads_the_exported_log_of_a_run_with_missing_and_truncated_files() {
    let readers = Readers::general();
    let lab = exported_with_gaps();
    std::fs::create_dir(lab.path("logs")).unwrap();
    std::fs::rename(lab.path("r.eval"), lab.path("logs/r.eval")).unwrap();
    assert_eq!(readers.read("inspect_logs.py", &[&lab.path("logs")])["react"]["rows"], 4);
}

#[test]
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn lost_attempts_are_exported_as_samples_with_an_error_and_do_not_affect_rates() {
    let readers = Readers::general();
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
fn attempts_of_a_paper_with_an_overlong_name_are_exported_to_separate_files() {
    let lab = Lab::new();
    let long = "t".repeat(251);
    crate::support::copy(&lab.path("papers/tiny"), &lab.path(&format!("papers/{long}")));
    lab.ok(&["run", "-p", &long, "-n", "1", "--limit", "2", "--agent", "gold", "--no-baseline", "--name", "r"]);
    let records = lab.records("r");
    assert!(records.len() == 2 && records.iter().all(|record| record["pass"] == true), "{records:#?}");
    for format in ["traj", "predictions", "atif"] {
        lab.ok(&["export", "r", "--format", format, "-o", format]);
        let files = walkdir::WalkDir::new(lab.path(format)).into_iter().flatten();
        let files = files.filter(|entry| entry.file_type().is_file()).count();
        assert_eq!(files, if format == "predictions" { 1 } else { 2 }, "{format}");
    }
    let shown = lab.ok(&["status", "r"]).stdout + &lab.ok(&["report", "r"]).stdout;
    assert!(!shown.contains('~'), "{shown}");
    // In the run, the attempts are still found by their original, long names.
    let shown = lab.ok(&["show", "r", &format!("{long}_1")]).stdout;
    assert!(shown.contains("gold: pass"), "{shown}");
}

#[test]
fn export_refuses_a_run_without_finished_attempts_and_a_single_file_for_several_logs() {
    let lab = ran();
    let message = lab.fails(2, &["export", "r", "--format", "inspect", "-o", "all.eval"]);
    assert!(message.contains("3 combinations of agent and model") && message.contains("give a folder"), "{message}");
    assert!(!lab.path("all.eval").exists());
    lab.write("runs/empty/run.json", &lab.read("runs/r/run.json"));
    assert!(lab.fails(7, &["export", "empty", "--format", "jsonl", "-o", "x"]).contains("has no finished attempt"));
    assert!(lab.fails(2, &["export", "gone", "--format", "jsonl", "-o", "x"]).contains("there is no run"));
}

/// Returns all files below a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let below = |path: String| path[folder.display().to_string().len() + 1..].to_owned();
    let mut found: Vec<String> = texts(folder).into_iter().map(|(path, _)| below(path)).collect();
    found.sort();
    found
}

#[test]
fn every_record_is_exported_into_the_folder_even_if_an_agents_name_is_not_a_file_name() {
    let lab = Lab::bare();
    crate::support::copy(&ran().path("runs/r"), &lab.path("runs/odd"));
    let long = "é".repeat(300);
    let mut records = lab.records("odd");
    records.retain(|record| record["agent"] == "noop" && record["attempt"] == 0);
    for (record, name) in records.iter_mut().zip(["../../outside", "a/b", &long, "noop"]) {
        record["agent"] = json!(name);
    }
    lab.write("runs/odd/attempts.jsonl", &json_lines(&records));
    for format in ["csv", "parquet", "jsonl", "inspect"] {
        let said = lab.ok(&["export", "odd", "--format", format, "-o", &format!("out/{format}")]).stderr;
        assert_eq!(said.contains("is not a valid name of an agent or sample"), format == "inspect", "{format}: {said}");
    }
    assert_eq!(lab.read("out/csv/attempts.csv").lines().count(), 5);
    assert_eq!(files(&lab.path("out/inspect")).len(), 4);
    for format in ["atif", "traj"] {
        let ran = lab.ok(&["export", "odd", "--format", format, "-o", &format!("out/{format}")]);
        assert_eq!(ran.stdout.lines().count(), 4, "{}", ran.stdout);
        let written = files(&lab.path(&format!("out/{format}")));
        assert_eq!(written.len(), 4, "{written:?}");
        for part in ["-..-..-outside-", "a-b-", "ééé", "noop/"] {
            assert!(written.iter().any(|path| path.starts_with(part)), "{part}: {written:?}");
        }
    }
    assert!(!lab.path("outside").exists() && !lab.path("../outside").exists());
}

#[test]
fn an_agent_with_two_models_has_files_for_each() {
    let lab = Lab::bare();
    crate::support::copy(&ran().path("runs/r"), &lab.path("runs/two"));
    let mut records = lab.records("two");
    records.retain(|record| record["agent"] == "react" && record["attempt"] == 0);
    // In file names, the names of the first two models become the same: the files of both are kept. The other two
    // records have the same model.
    for (record, model) in records.iter_mut().zip(["openai:a/b", "openai:a-b", "other", "other"]) {
        record["model"] = json!(model);
    }
    lab.write("runs/two/attempts.jsonl", &json_lines(&records));
    lab.ok(&["export", "two", "--format", "predictions", "-o", "p"]);
    let written = files(&lab.path("p"));
    assert_eq!(written.len(), 3, "{written:?}");
    assert!(written.contains(&"react__other.0.jsonl".to_owned()), "{written:?}");
    assert_eq!(lab.read("p/react__other.0.jsonl").lines().count(), 2);
    for format in ["atif", "traj"] {
        lab.ok(&["export", "two", "--format", format, "-o", format]);
        let written = files(&lab.path(format));
        assert_eq!(written.len(), 4, "{written:?}");
        assert_eq!(written.iter().filter(|path| path.starts_with("react__other/")).count(), 2, "{written:?}");
    }
}

#[test]
fn an_export_names_only_a_few_of_many_attempts_without_data_and_counts_the_rest() {
    let lab = Lab::bare();
    crate::support::copy(&ran().path("runs/r"), &lab.path("runs/bare"));
    std::fs::remove_dir_all(lab.path("runs/bare/trajectories")).unwrap();
    std::fs::remove_dir_all(lab.path("runs/bare/diffs")).unwrap();
    let said = lab.ok(&["export", "bare", "--format", "traj", "-o", "x"]).stderr;
    assert_eq!(said.lines().count(), 12, "{said}");
    for part in ["19 more attempts have no trajectory", "19 more attempts have no diff"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn attempts_with_a_reply_in_the_trajectory_are_exported_although_no_model_is_recorded() {
    let lab = Lab::bare();
    crate::support::copy(&ran().path("runs/r"), &lab.path("runs/odd"));
    let mut records = lab.records("odd");
    records.retain(|record| record["agent"] == "react");
    for record in &mut records {
        record.as_object_mut().unwrap().remove("model");
    }
    lab.write("runs/odd/attempts.jsonl", &json_lines(&records));
    for format in ["inspect", "atif", "traj", "predictions"] {
        lab.ok(&["export", "odd", "--format", format, "-o", &format!("out/{format}")]);
    }
}

#[test]
fn a_record_with_a_negative_cost_is_left_out_with_a_warning_and_negative_zero_becomes_zero() {
    let lab = Lab::bare();
    crate::support::copy(&ran().path("runs/r"), &lab.path("runs/odd"));
    let mut records = lab.records("odd");
    records.truncate(3);
    (records[0]["cost"], records[1]["cost"]) = (json!(-1.0), json!(-0.0));
    lab.write("runs/odd/attempts.jsonl", &json_lines(&records));
    let said = lab.ok(&["export", "odd", "--format", "csv", "-o", "x"]).stderr;
    assert!(said.contains("line 1 of `attempts.jsonl` is broken and left out") && said.contains("cost"), "{said}");
    let attempts = lab.read("x/attempts.csv");
    assert_eq!(attempts.lines().count(), 3, "{attempts}");
    assert!(!attempts.contains(",-0"), "{attempts}");
    let shown = lab.ok(&["report", "attempts", "odd"]);
    assert!(shown.stderr.contains("line 1 of `attempts.jsonl`") && !shown.stdout.contains(",-0"), "{}", shown.stdout);
}

/// Returns all schemas, by the name of their file.
fn all_schemas() -> Vec<(&'static str, String)> {
    let printed = [
        ("event.schema.json", schemas::text::<EventLine<'_>>().unwrap()),
        ("sample.schema.json", schemas::text::<SampleLine<'_>>().unwrap()),
    ];
    [schemas::tables().unwrap(), schemas::stored().unwrap(), printed.into()].concat()
}

#[test]
fn the_schemas_in_the_repo_are_those_of_the_code() {
    for (name, text) in all_schemas() {
        let path = Path::new("schemas").join(name);
        if std::env::var_os("AUTOEXPERIMENT_WRITE_SCHEMAS").is_some() {
            std::fs::create_dir_all("schemas").unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(kept, text, "{name}: type AUTOEXPERIMENT_WRITE_SCHEMAS=1 cargo test --test it schemas");
    }
    let mut kept: Vec<_> = std::fs::read_dir("schemas").unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let mut known: Vec<std::ffi::OsString> = all_schemas().into_iter().map(|(name, _)| name.into()).collect();
    kept.sort();
    known.sort();
    assert_eq!(kept, known);
}

#[test]
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn stored_and_printed_data_follows_the_schemas() {
    let readers = Readers::general();
    let lab = Lab::new();
    lab.write("replies.jsonl", &replies());
    let agents = ["--agent", "gold", "--agent", "noop", "--agent", "react", "--model", "scripted:replies.jsonl"];
    let events = lab.ok(&[&["run", "-n", "0..2", "--json-events", "--name", "r"], &agents[..]].concat()).stdout;
    lab.write("checked/event", &events);
    lab.write("checked/sample", &lab.ok(&["sample", "-n", "1..2"]).stdout);
    let one_line = |text: &str| json_lines(&[serde_json::from_str(text).unwrap()]);
    lab.write("checked/report", &one_line(&lab.ok(&["report", "r", "--json"]).stdout));
    lab.write("checked/status", &one_line(&lab.ok(&["status", "r", "--json"]).stdout));
    lab.write("checked/run", &one_line(&lab.read("runs/r/run.json")));
    lab.write("checked/record", &lab.read("runs/r/attempts.jsonl"));
    let trajectories = texts(&lab.path("runs/r/trajectories"));
    lab.write("checked/trajectory", &trajectories.into_iter().map(|(_, text)| text).collect::<String>());
    let found = readers.read("schemas.py", &[&lab.path("checked"), Path::new("schemas")]);
    for (name, text) in [("event", &events), ("record", &lab.read("runs/r/attempts.jsonl"))] {
        assert_eq!(found[name]["valid"], text.lines().count(), "{name}: {found}");
    }
    for name in ["event", "sample", "report", "status", "run", "record", "trajectory"] {
        assert!(found[name]["valid"].as_u64().unwrap() > 0, "{name}: {found}");
        assert_eq!(found[name]["wrong"], json!([]), "{name}");
        assert_eq!(found[name]["unknown"], json!([]), "{name}: fields that the schema does not tell of");
    }
}

/// Returns the rows of a documented table: name, type, description.
fn documented(heading: &str) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string("docs/formats.md").unwrap();
    let mut lines = text.lines().skip_while(|line| !line.trim_start_matches('#').trim().starts_with(heading));
    let lines = lines.by_ref().skip(1).take_while(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
            let (kind, description) = rest.strip_suffix(" |")?.split_once(" | ")?;
            Some((name.to_owned(), kind.to_owned(), description.to_owned()))
        })
        .collect()
}

#[test]
fn the_documented_columns_are_those_that_are_written_in_their_order() {
    let lab = ran();
    for format in ["csv", "jsonl"] {
        export(format, "columns");
    }
    export("predictions", "columns/predictions");
    export("turns", "columns/turns.jsonl");
    let headings =
        [("attempts", "`attempts`"), ("values", "`values`"), ("turns", "`turns`"), ("predictions", "Predictions")];
    for ((name, heading), (file, text)) in headings.into_iter().zip(schemas::tables().unwrap()) {
        assert!(file.starts_with(name));
        let documented = documented(heading);
        let schema: Value = serde_json::from_str(&text).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        let names: Vec<&String> = documented.iter().map(|(column, ..)| column).collect();
        assert_eq!(names, properties.keys().collect::<Vec<_>>(), "{name}");
        for (column, kind, description) in &documented {
            let property = &properties[column];
            assert_eq!(property["description"].as_str().unwrap(), description, "{name} {column}");
            let written = match (&property["type"], property["format"].as_str()) {
                (Value::String(_), Some("date-time")) => "time".to_owned(),
                (Value::String(kind), _) => kind.clone(),
                (kinds, _) => format!("{}, or {}", kinds[0].as_str().unwrap(), kinds[1].as_str().unwrap()),
            };
            assert_eq!(&written, kind, "{name} {column}");
        }
        let path =
            if name == "predictions" { "columns/predictions/gold.0.jsonl" } else { &format!("columns/{name}.jsonl") };
        for line in lab.read(path).lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            assert_eq!(names, row.as_object().unwrap().keys().collect::<Vec<_>>(), "{name}");
        }
        if ["attempts", "values"].contains(&name) {
            let csv = lab.read(&format!("columns/{name}.csv"));
            assert_eq!(names, csv.lines().next().unwrap().split(',').collect::<Vec<_>>(), "{name}");
        }
    }
}

/// Text that could do harm: control sequences for terminals, unusual line ends, marks that reverse text, markup, a
/// formula.
const HOSTILE: &str = "=cmd|' /C calc'!A0 \u{0}\u{7}\u{1b}[31m\u{1b}]0;x\u{7}\r\n\u{85}\u{2028}\u{202e}\u{feff}\u{fffe}\u{10ffff} \"\\ <script>alert(1)</script> ../../outside";

/// Makes a run and fills its store with hostile text, as a hostile model and agent could.
fn hostile_run(lab: &Lab) {
    let long = HOSTILE.to_owned() + &"\u{1F9EA}x".repeat(1 << 18);
    lab.write("replies.jsonl", &replies());
    lab.ok(&["run", "-n", "1", "--agent", "react", "--model", "scripted:replies.jsonl", "--name", "r"]);
    let mut records = lab.records("r");
    for (place, record) in records.iter_mut().enumerate() {
        // Use the text of a megabyte only once, because the speed of readers is not tested here.
        let long = if place == 0 { long.as_str() } else { HOSTILE };
        record["model"] = json!(format!("openai:../../{HOSTILE}"));
        record["answer"] = json!(long);
        record["end_detail"] = json!(HOSTILE);
        record["changed"] = json!(["../../outside", "/etc/passwd", HOSTILE]);
        record["sandbox"] = json!(HOSTILE);
        record["cost"] = json!(1e308);
        record["wall_seconds"] = json!(1e308);
        record["tool_seconds"] = json!(-1e308);
        record["results"] = json!({ HOSTILE: HOSTILE });
        record["usage"] = json!({ "input": u64::MAX, "cached": u64::MAX, "cache_written": u64::MAX, "output": u64::MAX, "reasoning": u64::MAX });
        for verdict in ["reported", "verified"] {
            record[verdict]["reason"] = json!(HOSTILE);
            let values = &mut record[verdict]["experiments"][0]["values"];
            let value = |path: &str, gold: Value, got: Value| json!({ "path": path, "gold": gold, "got": got, "error": null, "pass": false });
            *values = json!([
                value(HOSTILE, json!(1e-300), json!("NaN")),
                value("Infinity", json!(u64::MAX), json!(1e308)),
                value(long, json!(-1e308), json!([[HOSTILE], { HOSTILE: 1e308 }])),
            ]);
        }
    }
    lab.write("runs/r/attempts.jsonl", &json_lines(&records));
    let mut deep = json!(HOSTILE);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    for place in 0..4 {
        let path = format!("runs/r/trajectories/react/tiny_{place}.0.jsonl");
        let mut lines: Vec<Value> = lab.read(&path).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut calls = 0;
        for line in &mut lines {
            let fields = line.as_object_mut().unwrap();
            fields["at"] = json!(1e308);
            for name in ["content", "text", "reasoning", "raw"] {
                if fields.contains_key(name) {
                    let is_long = place == 0 && fields["event"] == "observation" && calls == 1;
                    fields.insert(name.to_owned(), json!(if is_long { long.as_str() } else { HOSTILE }));
                }
            }
            if fields.contains_key("usage") {
                fields["usage"] = json!({ "input": u64::MAX, "cached": 1, "output": u64::MAX, "reasoning": 1 });
                fields["cost"] = json!(1e308);
            }
            if let Some(list) = fields.get_mut("tool_calls").and_then(Value::as_array_mut) {
                for call in list {
                    // All calls of a reply have the same id and deeply nested arguments; those of the first call are
                    // not an object.
                    *call = json!({ "id": "same", "name": HOSTILE, "arguments": if calls == 0 { deep.clone() } else { json!({ HOSTILE: deep }) } });
                    calls += 1;
                }
            }
            if fields.contains_key("call_id") {
                fields["call_id"] = json!("same");
            }
        }
        lab.write(&path, &json_lines(&lines));
        let patch = format!(
            "diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n+{}\n",
            HOSTILE.replace(['\r', '\n'], "")
        );
        lab.write(&format!("runs/r/diffs/react/tiny_{place}.0.patch"), &patch);
    }
    std::fs::write(lab.path("runs/r/diffs/react/tiny_1.0.patch"), b"+\xff\xfe").unwrap();
    // A lone surrogate is not valid Unicode, so this line cannot be read, and ends the readable part of the trajectory.
    let cut = lab.read("runs/r/trajectories/react/tiny_2.0.jsonl")
        + "{\"at\": 1, \"event\": \"answer\", \"raw\": \"\\ud800\"}\n";
    lab.write("runs/r/trajectories/react/tiny_2.0.jsonl", &cut);
}

#[test]
fn hostile_text_does_not_break_exports_or_write_elsewhere() {
    let lab = Lab::new();
    hostile_run(&lab);
    let outside = |lab: &Lab| {
        let mut found: Vec<String> = texts(&lab.path("")).into_iter().map(|(path, _)| path).collect();
        found.retain(|path| !path.starts_with(&lab.path("out").display().to_string()) && !path.contains("/scratch/"));
        found.sort();
        found
    };
    let before = outside(&lab);
    let mut said = String::new();
    for format in ["inspect", "harbor", "traj", "csv", "parquet", "jsonl", "predictions"] {
        let ran = lab.ok(&["export", "r", "--format", format, "-o", &format!("out/{format}")]);
        said += &ran.stderr;
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{format}: {text:?}");
        }
    }
    assert_eq!(outside(&lab), before);
    assert!(said.contains("`tiny_2` is cut off before its line 18: unexpected end of hex escape"), "{said}");
    assert!(said.contains("the diff of attempt 0 of `react` at `tiny_1` is not UTF-8"), "{said}");
    let csv = lab.read("out/csv/attempts.csv") + &lab.read("out/csv/values.csv");
    assert!(!csv.contains(['\u{1b}', '\u{7}', '\u{0}', '\u{202e}']));
    assert!(!csv.contains(",=cmd") && !csv.contains(",\"=cmd"));
}

#[test]
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn third_party_readers_read_the_exports_of_a_hostile_run() {
    let readers = Readers::general();
    let lab = Lab::new();
    hostile_run(&lab);
    for (format, folder) in [
        ("csv", "tables"),
        ("parquet", "tables"),
        ("jsonl", "tables"),
        ("inspect", "inspect"),
        ("traj", "traj"),
        ("predictions", "predictions"),
        ("harbor", "harbor"),
    ] {
        lab.ok(&["export", "r", "--format", format, "-o", &format!("out/{folder}")]);
    }
    let found = readers.read("tables.py", &[&lab.path("out/tables"), Path::new("schemas")]);
    for (table, rows) in [("attempts", 4), ("values", found["values"]["parquet"].as_u64().unwrap())] {
        for reader in ["parquet", "csv", "datasets", "duckdb", "valid"] {
            assert_eq!(found[table][reader], rows, "{table} {reader}");
        }
    }
    assert_eq!(found["attempts"]["answers"], true, "text is read as it was written");
    let log = &readers.read("inspect_logs.py", &[&lab.path("out/inspect")])["react"];
    assert_eq!((&log["rows"], &log["samples"], &log["summaries"]), (&json!(4), &json!(4), &json!(4)));
    let found = readers.read("trajs.py", &[&lab.path("out/traj")]);
    assert_eq!(found.as_object().unwrap().len(), 4);
    let found = readers.read("predictions.py", &[&lab.path("out/predictions")]);
    assert_eq!(found["react.0.jsonl"]["tiny_0"]["files"], json!(["new.txt"]));
    let found = Readers::harbor().read("harbor_files.py", &[&lab.path("out/harbor")]);
    assert_eq!(found["trajectories"].as_object().unwrap().len(), 4);
}

#[test]
fn completions_and_manual_pages_name_every_verb() {
    let lab = Lab::bare();
    let help = lab.ok(&["help"]).stdout;
    let verbs = help.lines().skip_while(|line| *line != "Papers:").take_while(|line| *line != "Options:");
    let verbs = verbs.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs: Vec<&str> = verbs.filter_map(|line| line.split_whitespace().next()).collect();
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
