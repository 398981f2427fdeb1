//! `autoexperiment rescore` on small files of the tests' own and, if the folder `../shared/data` next to this project
//! exists, on the published results in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{PROGRAM, Ran, json_lines};
use serde_json::{Value, json};

/// Returns a folder of published results. If it does not exist, prints a note and returns `None`.
fn published(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1).take(2);
    let found = folder.map(|above| above.join("shared/data").join(name)).find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("skipped: no `../shared/data/{name}`");
    }
    found
}

fn rescore(arguments: &[&str]) -> Ran {
    let output = Command::new(PROGRAM).arg("rescore").args(arguments).output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn rescored(arguments: &[&str]) -> Value {
    let ran = rescore(&[arguments, &["--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Writes a file of JSON lines in a temporary folder.
fn file(lines: &[Value]) -> (tempfile::TempDir, String) {
    text_file(&json_lines(lines))
}

fn text_file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

fn is_near(value: &Value, wanted: f64) -> bool {
    (value.as_f64().unwrap() - wanted).abs() < 5e-5
}

#[test]
fn rescoring_the_published_super_attempts_gives_their_stored_scores() {
    let Some(folder) = published("super") else { return };
    let files = ["react-super", "swe-agent"].map(|agent| folder.join(format!("super_rescore_masked_{agent}.jsonl")));
    let files = files.each_ref().map(|file| file.to_str().unwrap());
    for (file, [submitted, accuracy, landmarks, script]) in
        [(files[0], [0.6528, 0.4115, 0.7164, 0.6573]), (files[1], [0.6597, 0.4521, 0.7348, 0.6923])]
    {
        let got = rescored(&["super-trajectories", file]);
        assert_eq!((&got["attempts"], &got["differs"]), (&json!(144), &json!([])), "{got}");
        for (name, wanted) in
            [("submitted", submitted), ("accuracy", accuracy), ("landmarks", landmarks), ("script", script)]
        {
            assert!(is_near(&got[name], wanted), "{name}: {got}");
        }
    }
    let both = rescored(&["super-trajectories", files[0], files[1]]);
    assert_eq!((&both["attempts"], &both["differs"]), (&json!(288), &json!([])));
    let told = rescore(&["super-trajectories", files[0], files[1]]).stderr;
    assert!(told.contains("`submitted` of 287 attempts, `accuracy` of 169 with gold"), "{told}");
}

#[test]
fn rescoring_names_the_tasks_whose_stored_scores_contradict_the_published_rule_of_super() {
    let attempt = |task: &str, stored: Value, submission: Value, gold: Value| {
        json!({"task_id": task, "stored": stored, "submission": submission, "pseudo_gold": gold,
               "last_action_type": if submission.is_null() { "exception" } else { "submit" }})
    };
    let stored = |submitted: u8, accuracy: f64| json!({"submitted": submitted, "output_match": accuracy, "checkpoints": 0.5, "entrypoint": null});
    let (_folder, path) = file(&[
        attempt("right", stored(1, 1.0), json!({"a": 1}), json!({"a": 1, "b": 2})),
        attempt("wrong accuracy", stored(1, 0.5), json!({"a": 1}), json!({"a": 1, "b": 2})),
        attempt("wrong submitted", stored(1, 0.0), json!(null), json!(null)),
        attempt("nothing scores", stored(0, 1.0), json!(null), json!(null)),
        attempt("gold unknown", stored(1, 1.0), json!({"a": 1}), json!(null)),
        attempt("text", stored(1, 0.0), json!("a: 1"), json!({"a": 1})),
        attempt("empty", stored(0, 0.0), json!({}), json!({"a": 1})),
        json!({"task_id": "bare", "stored": {"submitted": 1}}),
        json!({"task_id": "barest"}),
    ]);
    let got = rescored(&["super-trajectories", &path]);
    assert_eq!(got["differs"], json!(["wrong accuracy", "wrong submitted", "nothing scores"]));
    assert_eq!((&got["attempts"], &got["script"]), (&json!(9), &Value::Null));
    assert!(is_near(&got["submitted"], 6.0 / 8.0) && is_near(&got["accuracy"], 3.5 / 7.0), "{got}");
    assert_eq!(got["landmarks"], json!(0.5));
    // If the same file is given twice, each task is still named once.
    let twice = rescored(&["super-trajectories", &path, &path]);
    assert_eq!((&twice["attempts"], &twice["differs"]), (&json!(18), &got["differs"]));
}

#[test]
fn stored_script_scores_that_contradict_the_recorded_steps_are_reported() {
    let attempt = |task: &str, stored: u8, seconds: Value, traceback: bool| {
        let step = json!({"scripts": ["run.py"], "python_m": false, "seconds": seconds, "traceback": traceback, "arg_error": []});
        json!({"task_id": task, "set": "masked", "query_scripts": ["run.py"], "script_steps": [step],
               "stored": {"entrypoint": stored}})
    };
    let (_folder, path) = file(&[
        attempt("ran", 1, json!(30), false),
        attempt("not stored", 0, json!(30), false),
        attempt("failed", 1, json!(30), true),
        attempt("too short", 1, json!(3), false),
        attempt("perhaps", 1, json!(10), false),
        attempt("unknown", 1, json!(null), false),
    ]);
    let got = rescored(&["super-trajectories", &path]);
    assert_eq!(got["differs"], json!(["not stored", "failed", "too short"]));
}

#[test]
fn stored_results_may_contain_nan_and_other_numbers_that_json_lacks() {
    let (_folder, path) = text_file(
        "\u{feff}{\"task_id\": \"nan\", \"end\": \"submit\", \"submission\": {\"loss\": NaN}, \"pseudo_gold\": {\"loss\": NaN},\
         \"stored\": {\"submitted\": 1, \"output_match\": 0.0, \"checkpoints\": NaN}}\n\n",
    );
    let got = rescored(&["super-trajectories", &path]);
    assert_eq!((&got["attempts"], &got["landmarks"], &got["differs"]), (&json!(1), &Value::Null, &json!([])));
}

#[test]
fn a_line_that_is_not_a_result_is_named_with_its_file() {
    for (verb, text, line, wrong) in [
        ("super-trajectories", "{\"task_id\": \"a\"}\n\nnonsense\n", 3, "not JSON"),
        ("super-trajectories", "{\"task_id\": \"a\"}\n{\"task_id\": ", 2, "not JSON"),
        ("super-trajectories", "[1]\n", 1, "not a JSON object"),
        ("super-trajectories", "{}\n", 1, "`task_id` is missing"),
        (
            "super-trajectories",
            "{\"task_id\": \"a\", \"stored\": {\"submitted\": \"yes\"}}",
            1,
            "`stored.submitted` is not a number",
        ),
        (
            "ml-bench",
            "{\"type\": \"Bash Script\", \"arguments\": \"{'a': true}\", \"output\": \"\"}",
            1,
            "`arguments` is not a Python dict",
        ),
        ("ml-bench", "{\"type\": \"Bash Script\", \"arguments\": \"{}\"}", 1, "`output` is missing"),
        ("researchcodebench", "{\"model\": \"M\", \"snippet\": \"s\", \"value\": {}}", 1, "`value` is not a list"),
    ] {
        let (_folder, path) = text_file(text);
        let ran = rescore(&[verb, &path, "--json"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{verb}");
        assert!(ran.stderr.contains(&format!("{path}:{line}: {wrong}")), "{}", ran.stderr);
    }
    let (_folder, empty) = text_file("");
    let ran = rescore(&["super-trajectories", &empty, "--json"]);
    assert!(ran.code == 3 && ran.stderr.contains("the file is empty"), "{}", ran.stderr);
    let ran = rescore(&["ml-bench", "/no/such/file"]);
    assert!(ran.code != 0 && ran.stderr.contains("/no/such/file"), "{}", ran.stderr);
}

#[test]
fn rescoring_the_published_ml_bench_rows_and_replies_gives_the_published_counts() {
    let Some(folder) = published("ml_bench") else { return };
    let (rows, replies) = (folder.join("rows.jsonl"), folder.join("gpt-4.1_outputs.jsonl"));
    let (rows, replies) = (rows.to_str().unwrap(), replies.to_str().unwrap());
    let golds = rescored(&["ml-bench", rows]);
    assert_eq!(golds["rows"], 130);
    assert_eq!(golds["shipped"], json!({"arguments": 118, "kind": 130, "both": 118}));
    let replied = rescored(&["ml-bench", rows, "--outputs", replies]);
    assert_eq!(replied["rows"], 130);
    assert_eq!(replied["shipped"], json!({"arguments": 109, "kind": 106, "both": 87}));
    for checks in [&golds, &replied] {
        assert!(checks["strict"]["arguments"].as_u64() <= checks["shipped"]["arguments"].as_u64(), "{checks}");
    }
}

#[test]
fn ml_bench_rows_are_checked_by_the_published_and_strict_rules_and_one_right_reply_suffices() {
    let row = |id: u8, kind: &str, arguments: &str, output: &str| json!({"github_id": 1, "id": id, "type": kind, "arguments": arguments, "output": output});
    let (_rows, rows) = file(&[
        row(1, "Bash Script", "{'lr': 1e-4}", "python run.py --lr 0.0001"),
        row(2, "Bash Script", "{'epochs': 2}", "python run.py --epochs 20"),
        row(3, "Python Code", "{'name': None, 'sizes': [1, 2]}", "make(name=None, sizes=[1, 2])"),
    ]);
    assert_eq!(
        rescored(&["ml-bench", &rows]),
        json!({"rows": 3, "shipped": {"arguments": 3, "kind": 3, "both": 3}, "strict": {"arguments": 2, "kind": 3, "both": 2}})
    );
    let (_replies, replies) = file(&[
        json!({"github_id": 1, "id": 1, "output": ["make()", "python run.py --lr 0.0001"]}),
        json!({"github_id": 1, "id": 2, "output": "Use 2:\n```python\nrun(epochs=2)\n```"}),
        json!({"github_id": 2, "id": 3, "output": ["to no row"]}),
    ]);
    let ran = rescore(&["ml-bench", &rows, "--outputs", &replies]);
    assert!(
        ran.stderr.contains("1 rows have no reply") && ran.stderr.contains("1 replies belong to no row"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.trim_start().starts_with("rules"), "{}", ran.stdout);
    assert_eq!(
        rescored(&["ml-bench", &rows, "--outputs", &replies]),
        json!({"rows": 3, "shipped": {"arguments": 2, "kind": 1, "both": 1}, "strict": {"arguments": 2, "kind": 1, "both": 1}})
    );
}

#[test]
fn the_published_rates_of_researchcodebench_are_reproduced_exactly() {
    let Some(folder) = published("researchcodebench") else { return };
    let text = std::fs::read_to_string(folder.join("overall.json")).unwrap();
    let wanted: Value = serde_json::from_str(&text).unwrap();
    let got = rescored(&["researchcodebench", folder.join("results.jsonl").to_str().unwrap()]);
    assert_eq!(got, wanted);
    assert_eq!(got.as_object().unwrap().len(), 16);
}

#[test]
fn rates_are_means_over_completions_of_the_snippets_that_a_model_has_results_for() {
    let result = |model: &str, snippet: &str, value: Value| json!({"model": model, "paper": "p", "snippet": snippet, "value": value});
    let one = |lines: u8, passed: Value| json!({"snippet_code_line_count": lines, "completion_idx": 0, "passed": passed, "exit_code": 0});
    let two = |lines: u8, passed: bool| json!({"snippet_code_line_count": lines, "completion_idx": 1, "passed": passed, "exit_code": 1});
    let (_folder, path) = file(&[
        result("B", "x", json!([one(3, json!(true)), two(3, false)])),
        result("B", "y", json!([one(1, json!(false)), two(1, true)])),
        result("A", "x", json!([one(3, json!(true))])),
        result("A", "y", json!([one(9, json!(null))])),
    ]);
    let ran = rescore(&["researchcodebench", &path]);
    assert!(ran.stderr.contains("1 snippets have a completion without a result"), "{}", ran.stderr);
    assert_eq!(
        rescored(&["researchcodebench", &path]),
        json!({"B": {"line_rate": 50.0, "task_rate": 50.0}, "A": {"line_rate": 100.0, "task_rate": 100.0}})
    );
}

#[test]
fn rescoring_core_bench_gives_the_same_intervals_as_an_independent_computation_in_python() {
    let Some(folder) = published("core_bench") else { return };
    let got = rescored(&["core-bench", folder.join("core_train.json").to_str().unwrap()]);
    assert_eq!(got.as_object().unwrap().len(), 45);
    // Computed independently, by the same formula in Python.
    for (task, question, low, high) in [
        ("capsule-7038571", "Report the average AUC", 0.919_923_361_3, 0.951_251_036_7),
        ("capsule-5286757", "Report the train loss", 0.030_539_966_9, 0.069_517_437_4),
        ("capsule-3249574", "Report the F1-score", 0.849_178_459_4, 1.081_681_540_6),
        ("capsule-3272782", "Report Average FNMR", -0.035_473_056_1, 0.054_139_722_8),
        ("capsule-3272782", "Report Average FMR", 0.0, 0.0),
    ] {
        let questions = got[task].as_object().unwrap();
        let (_, accepted) = questions.iter().find(|(name, _)| name.starts_with(question)).unwrap();
        for (bound, wanted) in [("low", low), ("high", high)] {
            assert!((accepted[bound].as_f64().unwrap() - wanted).abs() < 1e-9, "{task} {bound}: {accepted}");
        }
    }
    assert!(got["capsule-7156696"].as_object().unwrap().values().any(|accepted| accepted == "Blue"));
}

#[test]
fn rescoring_refuses_a_task_of_core_bench_with_too_little_or_inconsistent_gold() {
    let task = |results: Value| json!([{"capsule_id": "one", "results": results}]).to_string();
    let (_folder, path) = text_file(&task(json!([{"a": 1, "b": "x"}, {"a": 3, "b": "x"}])));
    let accepted = rescored(&["core-bench", &path]);
    assert_eq!(accepted["one"]["b"], "x");
    // 2 ± 12.7062 · √2 · √1.5, with one degree of freedom.
    assert!(is_near(&accepted["one"]["a"]["high"], 24.007_8), "{accepted}");
    for (results, wrong) in [
        (json!([{"a": 1}]), "an interval needs two gold results"),
        (json!([{"a": "x"}, {"a": "y"}]), "differ"),
        (json!([{"a": 1}, {}]), "no answer to"),
    ] {
        let (_folder, path) = text_file(&task(results));
        let ran = rescore(&["core-bench", &path]);
        assert!(ran.code == 3 && ran.stderr.contains("task `one`") && ran.stderr.contains(wrong), "{}", ran.stderr);
    }
}
