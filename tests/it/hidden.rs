//! Hidden files and hidden experiments: agents must not see them, and verification uses them.

use serde_json::{Value, json};

use crate::support::Lab;

/// A text that is in hidden files only.
const MARKER: &str = "marker-of-hidden-files";

/// Makes a copy of the tiny suite with hidden tests and a hidden reference of one function. If `only`, the hidden tests
/// are the paper's only experiment.
fn lab(only: bool) -> Lab {
    let lab = Lab::new();
    let manifest = lab.read("papers/tiny/paper.toml");
    let manifest = if only { manifest.split("[[experiment]]").next().unwrap().to_owned() } else { manifest };
    let manifest = manifest.replacen("protected = ", "hidden = [\"tests/*\", \"tiny/*_ref.py\"]\nprotected = ", 1);
    let experiment = "\n[[experiment]]\nid = \"checks\"\nhidden = true\ndescription = \"Hidden tests.\"\n\
                      command = \"PYTHONPATH=.:$PYTHONPATH python tests/check.py\"\nresult = { json_line = \"stdout\" }\n";
    lab.write("papers/tiny/paper.toml", &(manifest + experiment));
    std::fs::remove_file(lab.path("papers/tiny/dependencies.json")).unwrap();
    let body = "    total = 0.0\n    for value in values:\n        total += value\n    return total / len(values)\n";
    lab.write("repos/tiny/tiny/means_ref.py", &format!("# {MARKER}\ndef arithmetic(values):\n{body}"));
    lab.write(
        "repos/tiny/tests/check.py",
        &format!(
            "# {MARKER}\nimport json\nfrom tiny.means import arithmetic\nfrom tiny.means_ref import arithmetic as wanted\n\
             values = [1.0, 2.0, 4.5]\nprint(json.dumps({{'right': int(arithmetic(values) == wanted(values))}}))\n"
        ),
    );
    lab.ok(&["gold", "tiny", "--repeats", "2"]);
    lab
}

fn bash(command: &str) -> Value {
    json!({ "tool": "command_line", "arguments": { "command": command } })
}

#[test]
fn an_agent_finds_no_hidden_file_and_cannot_replace_one() {
    let lab = lab(true);
    let forge = "mkdir -p tests tiny/means_ref.py; echo \"print('{\\\"right\\\": 1}')\" > tests/check.py; \
                 echo x > tiny/means_ref.py/x; echo 'def arithmetic(values): return 7' > tiny/means.py";
    let steps = [
        bash(&format!("find .; grep -rl {MARKER} .; cat *.md")),
        bash(forge),
        json!({ "tool": "final_answer", "arguments": { "answer": {} } }),
    ];
    let agent = lab.scripted("s", &steps);
    lab.ok(&["run", "--sample", "tiny_0", "--agent", "gold", "--agent", "noop", "--agent", &agent, "--name", "r"]);
    let seen = lab.first_observation("r", "tiny_0");
    for hidden in ["check.py", "_ref", "./tests", MARKER, "run_experiments.sh"] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
    assert!(seen.contains("paper.txt") && seen.contains("Hidden tests are run"), "{seen}");
    let records = lab.records("r");
    let of = |agent: &str| records.iter().find(|record| record["agent"] == agent).unwrap();
    assert_eq!(of("gold")["pass"], true, "{:#}", of("gold"));
    assert_eq!(of("gold")["results"]["checks"]["result"]["right"], 1);
    for agent in ["noop", "scripted"] {
        let record = of(agent);
        assert_eq!((&record["pass"], &record["verified"]["pass"]), (&json!(false), &json!(false)), "{record:#}");
        // The only experiment is hidden, so agents report no values and nothing is compared.
        assert_eq!(record["reported"]["unchecked"], true, "{record:#}");
        assert_eq!(record["reported"]["experiments"], json!([]), "{record:#}");
    }
    let ignored = of("scripted")["ignored"].to_string();
    assert!(ignored.contains("tests/check.py") && ignored.contains("tiny/means_ref.py/x"), "{ignored}");
    assert_eq!(of("scripted")["results"]["checks"]["result"]["right"], 0);
}

#[test]
fn shown_experiments_are_reported_and_hidden_ones_are_not() {
    let lab = lab(false);
    lab.ok(&["run", "--sample", "tiny_0", "--agent", "gold", "--name", "r"]);
    let record = &lab.records("r")[0];
    assert_eq!(record["pass"], true, "{record:#}");
    let ids = |verdict: &str| -> Vec<String> {
        let all = record[verdict]["experiments"].as_array().unwrap().iter();
        all.map(|one| one["experiment"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("reported"), ["means", "spread", "table"]);
    assert_eq!(ids("verified"), ["means", "spread", "table", "checks"]);
}

#[test]
fn without_verification_a_run_warns_of_hidden_experiments_and_refuses_samples_without_shown_experiments() {
    let run = ["run", "--sample", "tiny_0", "--agent", "gold", "--no-verify", "--name", "r"];
    let part = lab(false);
    let warned = part.ok(&run).stderr;
    assert!(warned.contains("1 of 1 samples have hidden experiments"), "{warned}");
    assert_eq!(part.records("r")[0]["pass"], true);
    let refused = lab(true).fails(2, &run);
    assert!(refused.contains("hidden experiments only") && refused.contains("--no-verify"), "{refused}");
}

#[test]
fn feedback_between_rounds_does_not_mention_hidden_tests() {
    let lab = lab(false);
    let call =
        |name: &str, arguments: Value| json!({"text": "Next.", "tool_calls": [{"name": name, "arguments": arguments}]});
    let code = lab.read("repos/tiny/tiny/means.py").replace("total / len(values)", "total / 3");
    let write = call("write_file", json!({"path": "tiny/means.py", "content": code}));
    let report = call("final_answer", json!({ "answer": {} }));
    lab.write("model.jsonl", &crate::support::json_lines(&[write, report.clone(), report]));
    let run = ["run", "--sample", "tiny_0", "--agent", "react:feedback=4", "--model", "scripted:model.jsonl"];
    lab.ok(&[&run[..], &["--name", "r"]].concat());
    let agent = lab.records("r")[0]["agent"].as_str().unwrap().to_owned();
    let trajectory = lab.read(&format!("runs/r/trajectories/{agent}/tiny_0.0.jsonl"));
    let told = trajectory.lines().filter(|line| !line.contains("\"verification\""));
    let told: Vec<&str> = told.filter(|line| line.contains("does not give the right result")).collect();
    assert!(!told.is_empty(), "{trajectory}");
    for line in told {
        assert!(line.contains("- means") && !line.contains("checks"), "{line}");
    }
}

#[test]
fn code_of_shown_experiments_cannot_read_hidden_files_in_verification() {
    let lab = lab(false);
    let means = lab.read("repos/tiny/tiny/means.py");
    let borrowed = "\n\nfrom tiny.means_ref import arithmetic\n";
    let steps = [
        json!({ "tool": "write_file", "arguments": { "path": "tiny/means.py", "content": format!("{means}{borrowed}") } }),
        json!({ "tool": "final_answer", "arguments": { "answer": {} } }),
    ];
    let agent = lab.scripted("s", &steps);
    lab.ok(&["run", "--sample", "tiny_0", "--agent", &agent, "--name", "r"]);
    let record = &lab.records("r")[0];
    let error = |experiment: &str| record["results"][experiment]["error"].as_str().unwrap_or("none").to_owned();
    assert_eq!(error("means"), "exit code 1", "{record:#}");
    assert_eq!((error("checks"), &record["results"]["checks"]["result"]["right"]), ("none".to_owned(), &json!(1)));
}

#[test]
fn feedback_ends_once_all_shown_experiments_pass_even_if_hidden_tests_fail() {
    let lab = lab(false);
    let call =
        |name: &str, arguments: Value| json!({"text": "Next.", "tool_calls": [{"name": name, "arguments": arguments}]});
    // This code is wrong only for the values of the hidden test.
    let code = lab.read("repos/tiny/tiny/means.py");
    let wrong = code.replace(
        "return total / len(values)",
        "return total / len(values) if list(values) != [1.0, 2.0, 4.5] else -1.0",
    );
    assert_ne!(wrong, code);
    let gold: Value = serde_json::from_str(&lab.read("papers/tiny/gold.json")).unwrap();
    let mut answer = serde_json::Map::new();
    for (place, id) in ["means", "spread", "table"].iter().enumerate() {
        answer.insert(format!("experiment_{}", place + 1), gold["results"]["curtailed"][id]["result"].clone());
    }
    let write = call("write_file", json!({"path": "tiny/means.py", "content": wrong}));
    let report = call("final_answer", json!({ "answer": answer }));
    lab.write("model.jsonl", &crate::support::json_lines(&[write, report.clone(), report]));
    let run = ["run", "--sample", "tiny_0", "--agent", "react:feedback=4", "--model", "scripted:model.jsonl"];
    lab.ok(&[&run[..], &["--name", "r"]].concat());
    let record = &lab.records("r")[0];
    assert_eq!((&record["pass"], &record["reported"]["pass"]), (&json!(false), &json!(true)), "{record:#}");
    assert_eq!(record["rounds"].as_array().map(Vec::len), Some(1), "{record:#}");
}

#[test]
fn mask_and_export_hide_files_from_the_agent_but_give_them_to_the_verifier() {
    let lab = lab(false);
    lab.ok(&["mask", "tiny", "-f", "0", "-o", "masked"]);
    let shown = |folder: &str| {
        let entries = walkdir::WalkDir::new(lab.path(folder)).into_iter().flatten();
        let names = entries.map(|entry| entry.path().display().to_string());
        names.filter(|name| name.ends_with("check.py") || name.ends_with("_ref.py")).count()
    };
    assert!(lab.path("masked/tiny/means.py").exists());
    assert_eq!(shown("masked"), 0);
    assert!(!lab.path("masked/tests").exists());
    lab.ok(&["run", "--sample", "tiny_0", "--agent", "noop", "--no-baseline", "--name", "r"]);
    lab.ok(&["export", "r", "--format", "harbor", "-o", "harbor"]);
    let task = "harbor/tasks/tiny_0";
    assert_eq!(shown(&format!("{task}/environment")), 0);
    assert!(!lab.path(&format!("{task}/environment/workspace/tests")).exists());
    assert_eq!(shown(&format!("{task}/solution")), 0);
    assert_eq!(shown(&format!("{task}/tests/original")), 2);
    for file in ["instruction.md", "environment/workspace/experiments.md", "solution/experiments.json"] {
        let text = lab.read(&format!("{task}/{file}"));
        assert!(!text.contains("check"), "{file}: {text}");
    }
    let tests: Value = serde_json::from_str(&lab.read(&format!("{task}/tests/task.json"))).unwrap();
    let hidden: Vec<&Value> = tests["experiments"].as_array().unwrap().iter().map(|one| &one["hidden"]).collect();
    assert_eq!(hidden, [false, false, false, true]);
}

#[test]
fn check_finds_visible_solutions_and_hidden_globs_that_hide_nothing() {
    let lab = lab(false);
    assert!(lab.ok(&["check", "tiny"]).stdout.contains("tiny: ok"));
    // Use a longer function, because bodies of a few tokens are not compared.
    let body = "    best = None\n    for first in values:\n        for second in values:\n            if best is None or \
                abs(first - second) > best:\n                best = abs(first - second)\n    return best / len(values)\n";
    for file in ["repos/tiny/tiny/means.py", "repos/tiny/tiny/means_ref.py"] {
        let text = lab.read(file);
        lab.write(file, &format!("{text}\n\ndef widest(values):\n    \"\"\"The widest distance.\"\"\"\n{body}"));
    }
    let manifest = lab.read("papers/tiny/paper.toml");
    let function = "[[function]]\nat = \"tiny/means.py::widest\"\ndescription = \"The widest distance.\"\npassages = [\"Means\"]\n\n";
    lab.write("papers/tiny/paper.toml", &manifest.replacen("[[experiment]]", &format!("{function}[[experiment]]"), 1));
    let hidden = lab.run(&["check", "tiny"]).stdout;
    assert!(!hidden.contains("also in a file that agents see"), "{hidden}");
    lab.edit("papers/tiny/paper.toml", "\"tiny/*_ref.py\"", "\"tiny/*_reference.py\"");
    let shown = lab.run(&["check", "tiny"]).stdout;
    assert!(shown.contains("hidden glob `tiny/*_reference.py` matches no file"), "{shown}");
    assert!(shown.contains("`tiny/means.py::widest` is also in a file that agents see"), "{shown}");
    assert!(shown.contains("means_ref.py"), "{shown}");
    lab.edit("papers/tiny/paper.toml", "hidden = true\n", "");
    let runs = lab.run(&["check", "tiny"]).stdout;
    assert!(runs.contains("experiment `checks` runs the hidden file `tests/check.py`"), "{runs}");
}
