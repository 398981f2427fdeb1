//! Notebook tasks end to end: the cells that run before the agent, the agents that need no model, verification and its
//! measures.

use serde_json::{Value, json};

use crate::support::episodes::Served;
use crate::support::{Lab, undescribed_measures};

const MANIFEST: &str = r#"
family = "notebook"
title = "Add up the numbers of a table"
repo = "adder"
env = "tiny"
entry = "add.py"
query = 'Report the sum and the mean of the table, as a json structured as follows: {"sum": 0.0, "mean": 0.0}.'

[answer]
command = "python add.py"
result = { json_line = "stdout" }

[[block]]
id = "data"
category = "data"
cells = ["cells/data.py"]
goal = "write the table as the program reads it"

[[block]]
id = "config"
category = "configuration"
cells = ["cells/config.py"]
goal = "set the path of the table"

[[block]]
id = "run"
category = "goal"
needs = ["data", "config"]
cells = ["cells/run.py"]
goal = "run the program"

[[landmark]]
id = "converted"
block = "data"
pattern = 'converted \d rows'
check = { probe = "probes/converted.py" }

[[landmark]]
id = "configured"
block = "config"
pattern = 'path: table\.csv'
check = { entry = 'reads table\.csv' }
"#;

const PROGRAM: &str = r#"
import csv, json

with open("config.json") as file:
    path = json.load(file)["path"]
print("reads", path)
with open(path) as file:
    numbers = [float(row["value"]) for row in csv.DictReader(file)]
print(json.dumps({"sum": sum(numbers), "mean": sum(numbers) / len(numbers)}))
"#;

/// Makes a task whose cells use most of the features of cells.
fn lab() -> Lab {
    let lab = Lab::new();
    for (path, text) in [
        ("tasks/sums.adder/task.toml", MANIFEST),
        ("tasks/sums.adder/answer.json", r#"{"sum": 6.0, "mean": 2.0}"#),
        (
            "tasks/sums.adder/cells/data.py",
            "rows = !cut -f2 raw.tsv\n# %%\nwith open('table.csv', 'w') as file:\n    file.write('\\n'.join(rows) + '\\n')\n\
             print('converted', len(rows) - 1, 'rows')",
        ),
        (
            "tasks/sums.adder/cells/config.py",
            "%%writefile config.json\n{\"path\": \"table.csv\"}\n# %%\nimport json\nprint('path:', json.load(open('config.json'))['path'])",
        ),
        ("tasks/sums.adder/cells/run.py", "!python add.py"),
        ("tasks/sums.adder/record.json", r#"{"changed": ["config.json"], "calls": {}}"#),
        (
            "tasks/sums.adder/probes/converted.py",
            "print('reached' if open('table.csv').read().split() == ['value', '1', '2', '3'] else 'another table')",
        ),
        ("repos/adder/add.py", PROGRAM),
        ("repos/adder/config.json", r#"{"path": "/home/me/table.csv"}"#),
        ("repos/adder/raw.tsv", "id\tvalue\na\t1\nb\t2\nc\t3\n"),
    ] {
        lab.write(path, text);
    }
    lab
}

fn measure(record: &Value, verdict: &str, name: &str) -> Option<f64> {
    record[verdict]["measures"][name].as_f64()
}

#[test]
fn gold_passes_noop_fails_and_a_forger_passes_only_by_the_published_measures() {
    let lab = lab();
    let listed = lab.ok(&["list", "--family", "notebook"]).stdout;
    assert!(listed.contains("sums.adder"), "{listed}");
    assert!(listed.starts_with(" task") && listed.contains("samples of each task by n"), "{listed}");
    let planned = lab.ok(&["run", "--family", "notebook", "-n", "1", "--agent", "gold", "--dry-run"]).stdout;
    assert!(planned.starts_with(" task") && !planned.contains("paper"), "{planned}");
    let agents = ["--agent", "gold", "--agent", "noop", "--agent", "forger"];
    lab.ok(&[&["run", "--family", "notebook", "-n", "0..3", "--name", "r"][..], &agents].concat());
    let told = lab.ok(&["status", "r"]).stdout;
    assert!(!told.contains("paper"), "{told}");
    let told = lab.ok(&["report", "r", "--intervals", "papers"]).stdout;
    assert!(told.contains("over repos like these") && !told.contains("paper"), "{told}");
    let told = lab.ok(&["compare", "r"]).stdout;
    assert!(told.contains("over samples of these repos") && !told.contains("paper"), "{told}");
    let records = lab.records("r");
    // The sets of blocks that a sample may withhold: {}, {run}, {data, run}, {config, run}, all.
    assert_eq!(records.len(), 5 * 3, "{records:?}");
    for record in &records {
        let told = format!("{record:#}");
        let verified = |name: &str| measure(record, "verified", name);
        let early = record["verified"]["warnings"].to_string().contains("was hit before the agent began");
        assert!(!early, "{told}");
        match record["agent"].as_str().unwrap() {
            "gold" => {
                assert_eq!(record["pass"], true, "{told}");
                for name in ["accuracy", "execution", "replays"] {
                    assert_eq!(verified(name), Some(1.0), "{name}: {told}");
                }
                assert_eq!(verified("landmarks").or(Some(1.0)), Some(1.0), "{told}");
                assert_eq!(measure(record, "reported", "landmarks"), Some(1.0), "{told}");
            }
            "noop" => {
                assert_eq!(record["pass"], false, "{told}");
                for name in ["accuracy", "execution", "replays", "landmarks"] {
                    assert_eq!(verified(name).or(Some(0.0)), Some(0.0), "{name}: {told}");
                }
            }
            _ => {
                assert_eq!(record["pass"], false, "{told}");
                for name in ["landmarks", "script", "submitted"] {
                    assert_eq!(measure(record, "reported", name), Some(1.0), "{name}: {told}");
                }
                for name in ["accuracy", "execution", "replays", "landmarks"] {
                    assert_eq!(verified(name).or(Some(0.0)), Some(0.0), "{name}: {told}");
                }
            }
        }
    }
    // The cells that ran before the agent are marked in the trajectory, and all views of a run show them.
    let shown = lab.ok(&["show", "r", "sums.adder_2", "--agent", "gold"]).stdout;
    assert!(shown.contains("cell before the agent began: done") && shown.contains("converted 3 rows"), "{shown}");
    let report = lab.ok(&["report", "r"]).stdout;
    assert!(report.contains("verified_accuracy") && report.contains("reported_landmarks_floor"), "{report}");
    // The page shows the measures too, each with its meaning.
    assert_eq!(undescribed_measures("notebook", &records), [""; 0].map(str::to_owned).into());
    lab.ok(&["report", "r", "--html", "r.html"]);
    let page = lab.read("r.html");
    let (_, section) = page.split_once("id=\"measures\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    for part in
        ["verified_<wbr>accuracy", "reported_<wbr>script", ">n = 0<", ">n = 3<", "n = 0: everything is executed"]
    {
        assert!(section.contains(part), "{part}: {section}");
    }
    // Scoring the stored run again gives the same verdicts.
    let verdicts = |records: Vec<Value>| -> Vec<Value> { records.iter().map(|it| it["verified"].clone()).collect() };
    lab.ok(&["score", "r"]);
    assert_eq!(verdicts(records), verdicts(lab.records("r")));
}

#[test]
fn a_task_is_refused_if_a_block_needs_an_unknown_block_or_one_without_a_landmark() {
    let lab = lab();
    lab.edit("tasks/sums.adder/task.toml", "block = \"config\"", "block = \"data\"");
    let refused = lab.fails(3, &["list", "--family", "notebook"]);
    assert!(refused.contains("block `config` has no landmark"), "{refused}");
    lab.edit("tasks/sums.adder/task.toml", "needs = [\"data\", \"config\"]", "needs = [\"data\", \"other\"]");
    let refused = lab.fails(3, &["list", "--family", "notebook"]);
    assert!(refused.contains("block `run` needs `other`, which is not an earlier block"), "{refused}");
}

#[test]
#[ignore = "takes a minute"]
fn verify_proves_a_sound_notebook_task_and_names_the_faults_of_a_broken_one() {
    let lab = lab();
    let mut manifest = lab.read("tasks/sums.adder/task.toml");
    for change in [
        "data: `converted` becomes `convertedx`",
        "data: `1` becomes `2`",
        "data: `rows` becomes `rowsx`",
        "config: `path` becomes `pathx` (2)",
    ] {
        manifest.extend(["[[harmless]]\nchange = '", change, "'\nbecause = 'it is only printed'\n"]);
    }
    lab.write("tasks/sums.adder/task.toml", &manifest);
    let proven = lab.ok(&["verify", "--family", "notebook", "--json"]).stdout;
    let proven: Value = serde_json::from_str(&proven).unwrap();
    let proof = &proven[0];
    let told = format!("{proof:#}");
    assert_eq!(proof["item"], "sums.adder", "{told}");
    assert_eq!(proof["gold"], json!({"passed": 3, "made": 3}), "{told}");
    assert_eq!(proof["noop"], json!({"passed": 0, "made": 3}), "{told}");
    assert_eq!(proof["forger"], json!({"passed": 0, "made": 1}), "{told}");
    assert_eq!(proof["faults"], json!([]), "{told}");
    let loses = |unit: usize| proof["units"][unit]["loses"].clone();
    assert_eq!(loses(0), json!(["answer", "landmark:converted"]), "{told}");
    assert_eq!(loses(1), json!(["answer", "landmark:configured"]), "{told}");
    assert_eq!(loses(2), json!(["answer"]), "{told}");
    assert_eq!(proof["trials"].as_array().map(Vec::len), Some(6), "{told}");
    // The temporary runs that `verify` made have been removed.
    let proofs = crate::support::prepared::cache().join("proofs");
    let left = std::fs::read_dir(proofs).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("notebook-sums.adder-")).count();
    assert_eq!(left, 0);
    // Add two faults: the block `config` changes nothing any more, and the pattern of its landmark already matches the
    // output of the cells before the block.
    lab.edit("repos/adder/config.json", "/home/me/table.csv", "table.csv");
    lab.edit("tasks/sums.adder/task.toml", r"'path: table\.csv'", r"'table|converted'");
    let ran = lab.run(&["verify", "--family", "notebook", "sums.adder"]);
    assert_eq!(ran.code, 3, "{}\n{}", ran.stdout, ran.stderr);
    let said = lab.redact(&ran.stderr);
    assert!(said.contains("block `config` does not matter"), "{said}");
    assert!(said.contains("the cells before block `config` reach landmark `configured`"), "{said}");
    assert!(said.contains("1 of 1 tasks: `sums.adder`"), "{said}");
    assert!(ran.stdout.contains("sums.adder: wrong; gold passes 3 of 3"), "{}", ran.stdout);
    // Change gold to an answer that the gold cells do not give.
    lab.edit("tasks/sums.adder/answer.json", "6.0", "7.0");
    let said = lab.fails(4, &["verify", "--family", "notebook"]);
    assert!(said.contains("gold fails in attempt 1") && said.contains("`sum`: submitted wrongly"), "{said}");
}

/// Cells of the block `config` that make the program find its table.
const CONFIGURED: &str = "%%writefile config.json\n{\"path\": \"table.csv\"}\n# %%\n";

#[test]
fn a_solution_passes_only_if_it_runs_the_given_program_and_reaches_every_landmark() {
    let lab = lab();
    lab.ok(&["gold", "--family", "notebook", "sums.adder"]);
    let record: Value = serde_json::from_str(&lab.read("tasks/sums.adder/record.json")).unwrap();
    assert_eq!(record["changed"], json!(["config.json"]), "{record:#}");
    assert_eq!(record["calls"]["add.py::<module>"][0], json!(1.0), "{record:#}");
    let answer: Value = serde_json::from_str(&lab.read("tasks/sums.adder/answer.json")).unwrap();
    assert_eq!(answer, json!({"sum": 6.0, "mean": 2.0}));
    let print = "print('{\"sum\": 6.0, \"mean\": 2.0}')";
    let program = |text: &str| format!("# replaces: run\n%%writefile add.py\n{text}\n# %%\n{print}");
    let configured = |cells: &str| format!("# replaces: config\n{CONFIGURED}{cells}");
    for (name, text) in [
        // Verification uses the files that the agent left, however they were written.
        ("right-other-spelling", "# replaces: config\nopen('config.json', 'w').write('{\"path\":\\n\"table.csv\"}')".to_owned()),
        ("right-scratch-file", configured("%%writefile look.py\nprint('looking')\n# %%\n!python look.py")),
        ("wrong-entry-replaced", program(&format!("{print}\nprint('reads table.csv')"))),
        ("wrong-entry-wrapped", program("print('reads table.csv')\nexec(open('real.py').read()) if 0 else None")),
        ("wrong-results-written", configured("%%writefile add.py\nprint('reads table.csv')\nprint(open('answer.json').read())\n# %%\nopen('answer.json', 'w').write('{\"sum\": 6.0, \"mean\": 2.0}')")),
        ("wrong-module-shadowed", format!("# replaces: config\n%%writefile json.py\nload = lambda file: {{'path': 'table.csv'}}\ndef dumps(value):\n    return '{{\"sum\": 6.0, \"mean\": 2.0}}'\n# %%\n{print}")),
        ("wrong-site-customised", format!("# replaces: config\n%%writefile sitecustomize.py\nimport builtins\n{print}\n# %%\n{print}")),
        ("wrong-data-tampered", "# replaces: data\nopen('raw.tsv', 'w').write('id\\tvalue\\na\\t3\\nb\\t2\\nc\\t1\\n')\n# %%\nrows = !cut -f2 raw.tsv\nopen('table.csv', 'w').write('value\\n1\\n2\\n3\\n')".to_owned()),
        ("wrong-subset", "# replaces: data\nopen('table.csv', 'w').write('value\\n2\\n')".to_owned()),
        ("wrong-same-sum", "# replaces: data\nopen('table.csv', 'w').write('value\\n2\\n2\\n2\\n')".to_owned()),
        ("wrong-rounded", "# replaces: run\nprint('{\"sum\": 6.004, \"mean\": 2.0}')".to_owned()),
        ("wrong-nothing-submitted", "# replaces: run\nimport time\ntime.sleep(0.1)".to_owned()),
    ] {
        lab.write(&format!("solutions/sums.adder/{name}.py"), &text);
    }
    let tried = lab.ok(&["verify", "--family", "notebook", "--solutions", "solutions", "--json"]).stdout;
    let tried: Value = serde_json::from_str(&tried).unwrap();
    let trials = tried[0]["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 12, "{tried:#}");
    let why = |name: &str| trials.iter().find(|trial| trial["name"] == name).unwrap()["why"].as_str().unwrap();
    assert!(why("wrong-entry-replaced").contains("`add.py::<module>` was changed"), "{tried:#}");
    assert!(why("wrong-data-tampered").contains("`raw.tsv` was changed"), "{tried:#}");
    assert!(why("wrong-same-sum").contains("another table"), "{tried:#}");
    // A wrong solution that is labelled right, and a right one that is labelled wrong.
    lab.write("other/sums.adder/right-subset.py", "# replaces: data\nprint('no')");
    lab.write(
        "other/sums.adder/wrong-nothing.py",
        "# replaces: config\n%%writefile config.json\n{\"path\": \"table.csv\"}",
    );
    let refused = lab.fails(3, &["verify", "--family", "notebook", "--solutions", "other"]);
    assert!(refused.contains("the right solution `right-subset` fails"), "{refused}");
    assert!(refused.contains("the wrong solution `wrong-nothing` passes"), "{refused}");
    lab.write("other/sums.adder/wrong-nothing.py", "print()");
    let refused = lab.fails(2, &["verify", "--family", "notebook", "--solutions", "other"]);
    assert!(refused.contains("the first line is not `# replaces: BLOCK ...`"), "{refused}");
}

#[test]
fn the_option_scoring_reference_lets_the_published_accuracy_decide_whether_an_attempt_passes() {
    let lab = lab();
    lab.edit("tasks/sums.adder/answer.json", "6.0", "6.004");
    let sample = ["run", "--family", "notebook", "--sample", "sums.adder_0,1,2", "--agent", "gold"];
    lab.ok(&[&sample[..], &["--name", "strict"]].concat());
    lab.ok(&[&sample[..], &["--name", "published", "--scoring", "reference"]].concat());
    for (run, pass) in [("strict", false), ("published", true)] {
        let record = &lab.records(run)[0];
        assert_eq!(record["pass"], pass, "{record:#}");
        assert_eq!(measure(record, "reported", "accuracy"), Some(1.0), "{record:#}");
    }
}

/// Returns the solutions of the bundled tasks, by task.
fn solutions() -> Vec<(String, Vec<std::path::PathBuf>)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = |folder: &std::path::Path| -> Vec<_> {
        std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect()
    };
    let tasks = files(&root.join("tests/solutions")).into_iter();
    tasks.map(|task| (task.file_name().unwrap().to_string_lossy().into_owned(), files(&task))).collect()
}

#[test]
fn every_block_of_the_bundled_tasks_has_three_wrong_solutions() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = solutions();
    assert_eq!(all.len(), std::fs::read_dir(root.join("tasks")).unwrap().count());
    for (task, files) in all {
        let named = |kind: &str| -> Vec<String> {
            let of = files.iter().filter(|file| file.file_name().unwrap().to_string_lossy().starts_with(kind));
            of.map(|file| std::fs::read_to_string(file).unwrap().lines().next().unwrap().to_owned() + " ").collect()
        };
        assert!(named("right-").len() >= 2, "{task}");
        let manifest = std::fs::read_to_string(root.join("tasks").join(&task).join("task.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        for block in manifest["block"].as_array().unwrap() {
            let id = format!(" {} ", block["id"].as_str().unwrap());
            let wrong = named("wrong-").iter().filter(|head| head.contains(&id)).count();
            assert!(wrong >= 3, "{task}: {wrong} wrong solutions for `{id}`");
        }
    }
}

/// Tries the solutions of a bundled task whose file names contain one of these texts.
fn try_solutions(task: &str, named: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::create_dir(folder.path().join(task)).unwrap();
    for (_, files) in solutions().into_iter().filter(|(id, _)| id == task) {
        for file in files {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if named.iter().any(|part| name.contains(part)) {
                std::fs::copy(&file, folder.path().join(task).join(name)).unwrap();
            }
        }
    }
    let (suite, folder) = (root.to_str().unwrap(), folder.path().to_str().unwrap());
    Lab::new().ok(&["verify", "--family", "notebook", "--suite", suite, "--solutions", folder, task]);
}

#[test]
fn some_wrong_solutions_of_bundled_tasks_are_caught_without_running_the_entry_script() {
    try_solutions("text.curriculum", &["wrong-imports-module", "wrong-split-copied"]);
    try_solutions("trades.embedder", &["wrong-epochs-one", "wrong-documents-last"]);
}

#[test]
#[ignore = "takes an hour on two cores"]
fn right_and_wrong_solutions_of_the_bundled_tasks_are_distinguished() {
    for (task, _) in solutions() {
        try_solutions(&task, &["-"]);
    }
}

#[test]
fn check_finds_errors_in_tasks_of_the_notebook_family_without_running_code() {
    let lab = lab();
    let checked = lab.ok(&["check", "--family", "notebook"]).stdout;
    assert!(checked.contains("sums.adder: ok"), "{checked}");
    lab.edit("tasks/sums.adder/answer.json", "\"mean\": 2.0", "\"mean\": 2.718, \"count\": 3");
    lab.edit("tasks/sums.adder/task.toml", "entry = \"add.py\"", "entry = \"sum.py\"");
    lab.write("repos/adder/README.md", "It prints `converted 3 rows` and a mean of 2.718.\n");
    lab.write("tasks/sums.adder/probes/old.py", "print('reached')");
    let ran = lab.run(&["check", "--family", "notebook"]);
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    for problem in [
        "the query does not name the answer's key `count`",
        "the repo has no file `sum.py`, which is the entry",
        "`README.md`: `2.718` is a gold value",
        "`README.md` holds what landmark `converted` looks for",
        "`probes/old.py` is not used by any block or landmark",
    ] {
        assert!(ran.stdout.contains(problem), "{problem}\n{}", ran.stdout);
    }
}

#[test]
#[ignore = "needs PyPI"]
fn cells_give_the_same_output_as_in_a_real_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let run = |program: &std::path::Path, arguments: &[&str]| {
        let output = std::process::Command::new(program).args(arguments).output().unwrap();
        let said = [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
        assert!(output.status.success(), "{arguments:?}\n{said}");
    };
    let venv = folder.path().join("venv");
    run("python3".as_ref(), &["-m", "venv", venv.to_str().unwrap()]);
    let python = venv.join("bin/python");
    run(&python, &["-m", "pip", "install", "-q", "ipykernel==7.4.0", "jupyter_client==8.10.0"]);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("tests/it/support/side_by_side.py");
    run(&python, &[script.to_str().unwrap(), root.join("src/kernel/session.py").to_str().unwrap()]);
}

/// Starts a model server that gives these replies in turn. Also returns the recorded requests.
fn serve(replies: Vec<String>) -> (String, std::sync::Arc<std::sync::Mutex<Vec<Value>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in crate::support::model_server::questions(listener) {
            let body = crate::provider::read_request(&mut stream);
            let Ok(body) = serde_json::from_str::<Value>(&body) else { continue };
            let number = {
                let mut log = log.lock().unwrap();
                log.push(body);
                log.len() - 1
            };
            let message = json!({"role": "assistant", "content": replies[number.min(replies.len() - 1)]});
            let reply = json!({
                "id": "x", "object": "chat.completion", "created": 0, "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            });
            let text = reply.to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", text.len());
            let whole = format!("{head}connection: close\r\n\r\n{text}");
            let _ = std::io::Write::write_all(&mut stream, whole.as_bytes());
        }
    });
    (url, asked)
}

#[test]
fn the_react_preset_super_sends_each_request_as_one_prompt_and_one_history_message() {
    let lab = lab();
    let act = |thought: &str, action: &str, content: &str| {
        format!("Thought: {thought}\nAction: {action}\n<content>\n{content}\n</content>")
    };
    let edit = "config.json\n<<<BEFORE_EDIT>>>\n{\"path\": \"/home/me/table.csv\"}\n<<<AFTER_EDIT>>>\n{\"path\": \"table.csv\"}";
    let replies = vec![
        act("I look.", "execute", "!cat config.json\nprint('x' * 60000)") + "\nObservation: made up",
        act("The path is another one's.", "edit", edit),
        "I am not sure.".to_owned(),
        act("Now the run.", "execute", "!python add.py"),
        act("Done.", "submit", r#"{"sum": 6.0, "mean": 2.0}"#),
    ];
    let (url, asked) = serve(replies);
    let agent = ["--agent", "react:preset=super", "--model", "m", "--base-url", &url, "--price", "0,0"];
    let sample = ["run", "--family", "notebook", "--sample", "sums.adder_1,2", "--name", "r"];
    lab.ok(&[&sample[..], &agent].concat());
    let record = &lab.records("r")[0];
    let told = format!("{record:#}");
    assert_eq!(
        (&record["pass"], &record["steps"], &record["format_errors"]),
        (&json!(true), &json!(5), &json!(1)),
        "{told}"
    );
    let asked = asked.lock().unwrap();
    // One recorded request per reply. The initial request for the server's list of models is a GET request, which
    // `serve` does not record.
    assert_eq!(asked.len(), 5, "{asked:?}");
    for (number, body) in asked.iter().enumerate() {
        let messages = body["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, if number == 0 { vec!["user"] } else { vec!["user", "assistant"] });
        assert_eq!(messages[0], asked[0]["messages"][0]);
        assert!((body["temperature"].as_f64().unwrap() - 0.2).abs() < 1e-6 && body.get("tools").is_none(), "{body}");
    }
    let prompt = asked[0]["messages"][0]["content"].as_str().unwrap();
    assert!(
        prompt.contains("Report the sum and the mean") && prompt.contains("Three pieces of other sessions"),
        "{prompt}"
    );
    let history = |number: usize| asked[number]["messages"][1]["content"].as_str().unwrap();
    let count = |number: usize| history(number).matches('x').count();
    // The newest observation keeps its last 50,000 characters, older ones their last 500.
    assert!((49_000..50_100).contains(&count(1)), "{}", count(1));
    assert!((400..600).contains(&count(2)), "{}", count(2));
    assert!(!history(4).contains("made up"), "{}", history(4));
    assert!(
        history(3).contains("I am not sure.\nObservation: nothing was run: the reply has no line `Action:`"),
        "{}",
        history(3)
    );
    assert!(history(4).contains("reads table.csv\n"), "{}", history(4));
    drop(asked);
    let shown = lab.ok(&["show", "r", "sums.adder_1,2"]).stdout;
    assert!(shown.contains("The path is another one's.") && shown.contains("reads table.csv"), "{shown}");
}

#[test]
fn notebook_tasks_can_be_solved_with_the_swe_agent_tools_and_in_a_second_try() {
    let lab = lab();
    let call =
        |name: &str, arguments: Value| json!({"text": "Next.", "tool_calls": [{"name": name, "arguments": arguments}]});
    let answer = json!({"answer": r#"{"sum": 6.0, "mean": 2.0}"#});
    let run = |name: &str, agent: &str, replies: &[Value]| {
        lab.write("model.jsonl", &crate::support::json_lines(replies));
        let model = ["--agent", agent, "--model", "scripted:model.jsonl", "--name", name];
        lab.ok(&[&["run", "--family", "notebook", "--sample", "sums.adder_1,2"][..], &model].concat());
        let record = lab.records(name).remove(0);
        assert_eq!(record["pass"], true, "{record:#}");
        let agent = record["agent"].as_str().unwrap();
        lab.read(&format!("runs/{name}/trajectories/{agent}/sums.adder_1,2.0.jsonl"))
    };
    let replies = [
        call("open", json!({"path": "config.json"})),
        call("edit", json!({"start_line": 1, "end_line": 1, "replacement": "{\"path\": \"table.csv\"}"})),
        call("command_line", json!({"command": "python add.py"})),
        call("submit", answer.clone()),
    ];
    assert!(run("swe", "react:tools=swe-agent", &replies).contains("reads table.csv"));
    let mut replies = vec![json!({"text": "Hm."}); 5];
    replies.push(json!({"text": "Next time, run the program."}));
    let config = "open('config.json', 'w').write('{\"path\": \"table.csv\"}')";
    replies.extend([call("execute", json!({ "code": config })), call("execute", json!({"code": "!python add.py"}))]);
    replies.push(call("submit", answer));
    let tried = run("again", "react:tools=super,reflexion=2", &replies);
    assert!(tried.contains("Next time, run the program.") && tried.contains("no results were reported"), "{tried}");
}

#[test]
fn a_notebook_task_is_played_as_an_episode() {
    let lab = lab();
    let served = Served::start(&lab, &["--family", "notebook", "-n", "1..3"]);
    let mut client = served.client();
    let sample = json!({ "sample": "sums.adder_1,2" });
    let first = client.reset(&sample);
    let prompt = first["observation"]["prompt"].as_str().unwrap();
    assert!(prompt.contains("Report the sum and the mean"), "{first:#}");
    client.step("write_file", &json!({ "path": "config.json", "content": "{\"path\": \"table.csv\"}" }));
    assert!(client.shell("python add.py").contains("reads table.csv"));
    let right = json!({ "sum": 6.0, "mean": 2.0 });
    let last = client.submit(&right);
    assert_eq!((&last["reward"], &last["metadata"]["pass"]), (&json!(1.0), &json!(true)), "{last:#}");
    // The right answer without the work is worth nothing.
    client.reset(&sample);
    let last = client.submit(&right);
    assert_eq!((&last["reward"], &last["done"]), (&json!(0.0), &json!(true)), "{last:#}");
    drop(client);
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    assert_eq!(lab.records("s").len(), 2);
    assert!(lab.ok(&["report", "s"]).stdout.contains("serve:policy"));
}
