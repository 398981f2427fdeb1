//! `verify`: what it measures is what trying everything would, and it is measured once.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use support::Lab;

/// The tree `measured` with its gold.
fn lab() -> Lab {
    static READY: OnceLock<Lab> = OnceLock::new();
    let lab = Lab::of(&READY, "measured", "bare", &["plain", "odd"]);
    // Trials of another test must not answer for this one's.
    let marker = format!("{}", lab.path("").display());
    lab.write("repos/plain/lab.txt", &marker);
    lab.write("repos/odd/lab.txt", &marker);
    lab
}

/// What `verify --json` says of one paper.
fn verify(lab: &Lab, arguments: &[&str]) -> serde_json::Value {
    let mut line = vec!["verify", "--no-mutants", "--json"];
    line.extend(arguments);
    let ran = lab.run(&line);
    let papers: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    papers[0].clone()
}

fn matrix(lab: &Lab, paper: &str) -> serde_json::Value {
    serde_json::from_str(&lab.read(&format!("papers/{paper}/dependencies.json"))).unwrap()
}

#[test]
fn a_traced_matrix_is_that_of_every_pair_at_a_fifth_of_its_cpu_time() {
    let lab = lab();
    let traced = verify(&lab, &["plain"]);
    let by_traces = matrix(&lab, "plain");
    let every = verify(&lab, &["plain", "--every-pair", "--fresh"]);
    assert_eq!(by_traces, matrix(&lab, "plain"));
    assert_eq!((traced["masked_runs"].as_u64(), every["masked_runs"].as_u64()), (Some(20), Some(200)));
    let cpu = |measured: &serde_json::Value| measured["cpu_seconds"].as_f64().unwrap();
    assert!(cpu(&traced) <= 0.2 * cpu(&every), "{} of {} s", cpu(&traced), cpu(&every));
    let needs = |experiment: &str| by_traces["needs"][experiment].as_array().unwrap().len();
    assert_eq!((needs("spread"), needs("digits"), needs("scales")), (4, 2, 5));
}

#[test]
fn no_odd_way_of_entering_a_function_or_losing_its_error_deceives_the_matrix() {
    let lab = lab();
    let traced = verify(&lab, &["odd"]);
    let by_traces = matrix(&lab, "odd");
    verify(&lab, &["odd", "--every-pair"]);
    assert_eq!(by_traces, matrix(&lab, "odd"));
    let needs = |experiment: &str| by_traces["needs"][experiment].as_array().unwrap().clone();
    assert_eq!(needs("caught"), ["odd/pieces.py::plain", "odd/pieces.py::swallowed"]);
    assert_eq!(needs("generators"), ["odd/pieces.py::steps", "odd/pieces.py::unstarted"]);
    assert_eq!(needs("methods").len(), 3);
    for (experiment, function) in [
        ("workers", "in_worker"),
        ("spawned", "in_spawned"),
        ("child", "in_child"),
        ("hidden", "in_hidden"),
        ("thread", "in_thread"),
        ("file", "part"),
        ("coroutine", "answer"),
        ("tolerant", "plain"),
        ("profiled", "watched"),
    ] {
        assert_eq!(needs(experiment), [format!("odd/pieces.py::{function}")], "{experiment}");
    }
    assert_eq!(traced["not_essential"], serde_json::json!(["odd/pieces.py::harmless", "odd/pieces.py::late"]));
    assert_eq!(traced["swallowed"], serde_json::json!(["odd/pieces.py::swallowed", "odd/pieces.py::in_thread"]));
    let notes = traced["notes"].to_string();
    assert!(notes.contains("experiment `hidden`: which functions it enters cannot be traced"), "{notes}");
}

#[test]
fn a_function_that_no_experiment_needs_is_named_and_makes_the_exit_code_3() {
    let lab = lab();
    lab.edit("papers/odd/paper.toml", "python -m odd", "python -B -m odd");
    lab.edit("papers/odd/gold.json", "python -m odd", "python -B -m odd");
    let ran = lab.run(&["verify", "odd", "--no-mutants"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stdout.contains("odd/pieces.py::harmless"), "{}", ran.stdout);
}
