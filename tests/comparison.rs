//! Comparisons and verifiers over stored runs, from the command line.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod support;

use serde_json::Value;
use support::Lab;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn runs_are_compared_on_the_samples_that_both_have() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1..2", "--agent", "gold", "--name", "all"]);
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "some"]);
    let rows = json(&lab.ok(&["compare", "all", "some", "--json"]).stdout);
    let row = &rows[0];
    assert_eq!((row["samples"].as_u64(), row["unmatched"].as_u64()), (Some(4), Some(5)));
    assert_eq!((row["difference"].as_f64(), row["only_first"].as_u64()), (Some(-1.0), Some(4)));
    // Four pairs that all go one way: 2 / 2^4.
    assert!((row["p"].as_f64().unwrap() - 0.125).abs() < 1e-12);

    lab.ok(&["run", "-n", "1", "--agent", "noop", "--steps", "7", "--name", "other-budget"]);
    let said = lab.fails(2, &["compare", "all", "other-budget"]);
    assert!(said.contains("differ in the budget of an attempt"), "{said}");
    lab.ok(&["compare", "all", "other-budget", "--force"]);
    lab.fails(2, &["compare", "some"]);
}

#[test]
fn runs_of_one_name_are_told_apart_by_their_folders_and_none_counts_twice() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "gold", "--name", "r1"]);
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r1", "--runs", "other"]);
    let report = json(&lab.ok(&["report", "runs/r1", "other/r1", "--json"]).stdout);
    let rows = report["rows"].as_array().unwrap();
    let passed = |agent: &str| rows.iter().find(|row| row["agent"] == agent).map(|row| row["passed"].clone());
    assert_eq!((passed("runs/r1/gold"), passed("other/r1/noop")), (Some(4.into()), Some(0.into())));
    let how = json(&lab.ok(&["report", "runs/r1", "other/r1", "--how", "--json"]).stdout);
    assert!(how["rows"].as_array().unwrap().iter().all(|row| row["trajectories"] == 4), "{how:#}");

    for more in [&[][..], &["--how"], &["--html", "report.html"]] {
        let said = lab.fails(2, &[&["report", "r1", "./runs/../runs/r1"], more].concat());
        assert!(said.contains("is named twice"), "{said}");
    }
    lab.fails(2, &["compare", "r1", "runs/r1"]);
}

#[test]
fn verifiers_choose_among_stored_attempts_and_keep_their_choices() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "-k", "2", "--agent", "gold", "--name", "r"]);
    let rows = json(&lab.ok(&["verify-runs", "r", "--verifier", "execution", "--verifier", "oracle", "--json"]).stdout);
    assert_eq!(rows.as_array().unwrap().len(), 2);
    for row in rows.as_array().unwrap() {
        assert_eq!((row["samples"].as_u64(), row["k"].as_u64()), (Some(4), Some(2)));
        assert_eq!(row["rates"], json("[1.0, 1.0, 1.0]"));
    }
    let choices = lab.read("runs/r/choices.jsonl");
    assert_eq!(choices.lines().count(), 8);
    assert!(choices.contains("2 of 2 run; 2 of 2 agree"), "{choices}");
    lab.ok(&["verify-runs", "r", "--verifier", "execution"]);
    assert_eq!(lab.read("runs/r/choices.jsonl"), choices, "no choice is made twice");

    // A model is asked only where attempts differ: these are all the same.
    lab.write("votes.jsonl", "{\"text\": \"\"}\n");
    let model = format!("scripted:{}", lab.path("votes.jsonl").display());
    lab.ok(&["verify-runs", "r", "--verifier", "model", "--model", &model]);
    assert!(lab.read("runs/r/choices.jsonl").contains("all attempts are the same"));
    lab.fails(2, &["verify-runs", "r", "--verifier", "model"]);
    lab.fails(2, &["verify-runs", "r", "--verifier", "best"]);
}
