//! `verify` finds out which functions each experiment needs. The result is the same as if every experiment were run
//! with every function masked, and a second `verify` does not repeat the measurements.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::Lab;

/// Makes a lab of the tree `measured` with its gold.
fn lab() -> Lab {
    let lab = Lab::of("measured", "bare", &["plain", "odd"]);
    // Make the code different from that of other tests, so that their cached trials are not used.
    let marker = format!("{}", lab.path("").display());
    lab.write("repos/plain/lab.txt", &marker);
    lab.write("repos/odd/lab.txt", &marker);
    lab
}

/// Returns the output of `verify --json` for one paper.
fn verify(lab: &Lab, arguments: &[&str]) -> serde_json::Value {
    let mut line = vec!["verify", "--no-mutants", "--json"];
    line.extend(arguments);
    let ran = lab.run(&line);
    let papers: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    papers[0].clone()
}

/// Keeps only those functions and experiments of a manifest that contain one of these texts.
pub fn keep(lab: &Lab, paper: &str, texts: &[&str]) {
    let path = format!("papers/{paper}/paper.toml");
    let manifest = lab.read(&path);
    let kept: Vec<&str> = manifest
        .split("\n[[")
        .enumerate()
        .filter(|(place, part)| *place == 0 || texts.iter().any(|text| part.contains(text)))
        .map(|(_, part)| part)
        .collect();
    lab.write(&path, &kept.join("\n[["));
}

fn matrix(lab: &Lab, paper: &str) -> serde_json::Value {
    serde_json::from_str(&lab.read(&format!("papers/{paper}/dependencies.json"))).unwrap()
}

#[test]
#[ignore = "tries every pair of experiment and function, which takes a minute"]
fn tracing_gives_the_same_dependency_matrix_as_masking_every_pair_with_less_cpu_time() {
    let lab = lab();
    let traced = verify(&lab, &["plain"]);
    let by_traces = matrix(&lab, "plain");
    let every = verify(&lab, &["plain", "--every-pair", "--fresh"]);
    assert_eq!(by_traces, matrix(&lab, "plain"));
    assert_eq!((traced["masked_runs"].as_u64(), every["masked_runs"].as_u64()), (Some(20), Some(200)));
    let cpu = |measured: &serde_json::Value| measured["matrix_cpu_seconds"].as_f64().unwrap();
    assert!(cpu(&traced) <= 0.2 * cpu(&every), "{} of {} s", cpu(&traced), cpu(&every));
    let needs = |experiment: &str| by_traces["needs"][experiment].as_array().unwrap().len();
    assert_eq!((needs("spread"), needs("strings"), needs("scales")), (4, 2, 5));
    // Check the same for the paper `odd`, whose experiments enter functions in unusual ways.
    verify(&lab, &["odd"]);
    let by_traces = matrix(&lab, "odd");
    verify(&lab, &["odd", "--every-pair"]);
    assert_eq!(by_traces, matrix(&lab, "odd"));
}

#[test]
fn the_dependency_matrix_is_right_for_functions_entered_in_unusual_ways_and_swallowed_errors() {
    let lab = lab();
    let traced = verify(&lab, &["odd"]);
    let by_traces = matrix(&lab, "odd");
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
    keep(&lab, "odd", &["::harmless\"", "::swallowed\"", "\"caught\""]);
    let ran = lab.run(&["verify", "odd", "--no-mutants"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let said = "paper `odd`: function `odd/pieces.py::harmless` is not essential";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(ran.stdout.contains("catches the error: odd/pieces.py::swallowed"), "{}", ran.stdout);
}

#[test]
fn a_killed_verification_resumes_and_a_finished_verification_repeats_no_trial() {
    let lab = lab();
    // All trials of a complete verification: ten traces, a masked run for each of twenty functions, ten runs with two
    // threads.
    let whole = 10 + 20 + 10;
    let mut child = lab
        .command(&["verify", "plain", "--no-mutants", "--jobs", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Each finished trial adds a line to these files in the cache. Other tests use the files, too, but their trials
    // have other digests.
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/trials");
    let lines = || {
        ["plain.jsonl", "plain.kept.jsonl"]
            .iter()
            .map(|name| fs::read_to_string(cache.join(name)).unwrap_or_default().lines().count())
            .sum::<usize>()
    };
    let before = lines();
    let begun = Instant::now();
    while lines() < before + 4 && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let rest = verify(&lab, &["plain"])["trials_made"].as_u64().unwrap();
    assert!(rest < whole, "{rest} of {whole}");
    assert_eq!(verify(&lab, &["plain"])["trials_made"].as_u64(), Some(0));
    let stored = lab.read("papers/plain/dependencies.json");
    // The machine may be busy with other tests, so take the fastest of several.
    let times = (0..5).map(|_| {
        let begun = Instant::now();
        let ran = lab.ok(&["verify", "plain", "--no-mutants"]);
        assert!(ran.stderr.contains("plain: nothing has changed since it was verified"), "{}", ran.stderr);
        begun.elapsed()
    });
    let quickest = times.min().unwrap();
    assert!(quickest < Duration::from_secs(3), "{quickest:?}");
    assert_eq!(lab.read("papers/plain/dependencies.json"), stored);
}

#[test]
fn a_faulty_experiment_is_reported_with_a_remedy_and_other_papers_continue() {
    let wrong = [
        (
            "    values = [",
            "    if name == \"steps\":\n        raise ValueError(\"no steps\")\n    values = [",
            4,
            "paper `plain`, experiment `steps`: exit code 1",
        ),
        (
            "    values = [",
            "    while name == \"steps\":\n        pass\n    values = [",
            4,
            "paper `plain`, experiment `steps`: timed out after",
        ),
        (
            "    print(json.dumps(result))",
            "    if name != \"steps\":\n        print(json.dumps(result))",
            4,
            "paper `plain`, experiment `steps`: ",
        ),
        (
            "    print(json.dumps(result))",
            "    if name == \"steps\":\n        import time\n        result[\"gaps\"] = str(time.time_ns())\n    print(json.dumps(result))",
            4,
            "paper `plain`, experiment `steps`: its result varies: `gaps` was ",
        ),
        (
            "    print(json.dumps(result))",
            "    result[\"gaps\"] = -5\n    print(json.dumps(result))",
            4,
            "paper `plain`, experiment `steps`: it does not reproduce its gold result here",
        ),
        (
            "from . import figures",
            "import surely_not_installed\nfrom . import figures",
            4,
            "paper `plain`, experiment `steps`: the repo's imports fail: ModuleNotFoundError: No module named \
             'surely_not_installed'",
        ),
    ];
    for (place, (from, to, code, expected)) in wrong.into_iter().enumerate() {
        let lab = lab();
        lab.edit("repos/plain/plain/__main__.py", from, to);
        lab.edit(
            "papers/plain/paper.toml",
            "command = \"python -m plain steps\"",
            "command = \"python -m plain steps\"\ntime_limit = 2.0",
        );
        keep(&lab, "plain", &["::gaps\"", "\"steps\""]);
        keep(&lab, "odd", &["::plain\"", "\"caught\""]);
        // Verify all papers only in the first case, to see that a fault of one paper does not stop the others.
        let papers: &[&str] = if place == 0 { &[] } else { &["plain"] };
        let ran = lab.run(&[&["verify", "--no-mutants"][..], papers].concat());
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{expected}\n{}", ran.stderr);
        assert!(ran.stderr.contains("  hint: "), "{}", ran.stderr);
        assert_eq!(lab.path("papers/odd/dependencies.json").exists(), place == 0, "{}", ran.stderr);
        assert!(!lab.path("papers/plain/dependencies.json").exists());
    }
}

#[test]
fn the_option_recheck_of_verify_finds_a_false_matrix_and_false_evidence_in_stored_files() {
    let lab = lab();
    keep(&lab, "plain", &["::gaps\"", "::signs\"", "::mirror\"", "\"steps\"", "\"mirrors\""]);
    lab.ok(&["verify", "plain", "--mutants", "3"]);
    let honest = lab.ok(&["verify", "plain", "--recheck", "0.2", "--seed", "7"]);
    assert!(
        honest.stderr.contains("`--seed 7`") && honest.stderr.contains(", 0 differ from the stored results"),
        "{}",
        honest.stderr
    );
    let mut lying = matrix(&lab, "plain");
    let needs = lying["needs"].as_object_mut().unwrap();
    for needed in needs.values_mut() {
        *needed = serde_json::json!(["plain/figures.py::mirror"]);
    }
    lab.write("papers/plain/dependencies.json", &lying.to_string());
    let message = lab.fails(4, &["verify", "plain", "--recheck", "0.3", "--seed", "7"]);
    assert!(message.contains("but the stored file says that it does"), "{message}");
    assert_eq!(matrix(&lab, "plain"), lying, "nothing is written");
    let mut evidence: serde_json::Value = serde_json::from_str(&lab.read("papers/plain/evidence.json")).unwrap();
    evidence["functions"]["plain/figures.py::mirror"]["containment"] = 0.25.into();
    lab.write("papers/plain/evidence.json", &evidence.to_string());
    let message = lab.fails(4, &["verify", "plain", "--recheck", "0", "--seed", "7"]);
    assert!(message.contains("is in one other file, but the stored file says 25%"), "{message}");
}
