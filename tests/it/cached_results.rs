//! Results that are cached from run to run: those of verification's checks and, on request, a model's replies.

use std::process::Command;

use serde_json::Value;

use crate::ledger::counting_server;
use crate::support::{Lab, Ran};

/// Makes a lab with its own cache of results, into which only the envs of the shared cache are linked.
fn lab() -> Lab {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("cache")).unwrap();
    let envs = crate::support::prepared::cache().join("envs");
    std::os::unix::fs::symlink(envs, lab.path("cache/envs")).unwrap();
    lab
}

fn command(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = lab.command(arguments);
    command.env("AUTOEXPERIMENT_CACHE", lab.path("cache")).env_remove("AUTOEXPERIMENT_FRESH");
    command
}

fn ok(lab: &Lab, arguments: &[&str]) -> Ran {
    let ran: Ran = command(lab, arguments).output().unwrap().into();
    assert_eq!(ran.code, 0, "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
    ran
}

/// Returns how many checks of an agent's attempts were run, and how many had a cached result.
fn checks(lab: &Lab, run: &str, agent: &str) -> (usize, usize) {
    let (mut ran, mut known) = (0, 0);
    for record in lab.records(run).iter().filter(|record| record["agent"] == agent) {
        let cached = record["cached_checks"].as_array().map_or(0, Vec::len);
        known += cached;
        ran += record["results"].as_object().unwrap().len() - cached;
    }
    (ran, known)
}

fn verdicts(lab: &Lab, run: &str) -> Vec<Value> {
    let mut found: Vec<Value> = lab
        .records(run)
        .iter()
        .map(|record| serde_json::json!([record["agent"], record["sample"], record["attempt"], record["verified"]]))
        .collect();
    found.sort_by_key(Value::to_string);
    found
}

/// Returns the files of cached results.
fn kept(lab: &Lab) -> Vec<std::path::PathBuf> {
    let files = walkdir::WalkDir::new(lab.path("cache/results")).into_iter().flatten();
    files.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path).collect()
}

#[test]
fn the_same_code_is_verified_once_and_recorded_as_cached() {
    let lab = lab();
    let run = |name: &str, more: &[&str]| {
        let common = [
            "run", "-n", "1", "--limit", "2", "-k", "2", "-j", "1", "--agent", "gold", "--agent", "noop", "--name",
            name,
        ];
        ok(&lab, &[common.as_slice(), more].concat());
    };
    run("a", &[]);
    // The second attempt at each sample left the same code as the first, so the results of its checks were cached.
    let (ran, known) = checks(&lab, "a", "gold");
    assert!(ran > 0 && ran == known, "{ran} run, {known} known");
    // Failing checks are run every time.
    let failing = checks(&lab, "a", "noop");
    assert!(failing.0 > 0 && failing.1 == 0, "{failing:?}");
    let files = kept(&lab);
    assert_eq!(files.len(), 3 + ran, "three of the baseline, and one of each check that was run");
    run("b", &[]);
    assert_eq!((checks(&lab, "b", "gold"), checks(&lab, "b", "noop")), ((0, ran + known), failing));
    run("c", &["--fresh"]);
    assert_eq!(checks(&lab, "c", "gold"), (ran + known, 0));
    assert_eq!(kept(&lab).len(), files.len());
    for name in ["b", "c"] {
        assert_eq!(verdicts(&lab, name), verdicts(&lab, "a"), "{name}");
    }
    let sample = lab.records("b")[0]["sample"].as_str().unwrap().to_owned();
    let shown = ok(&lab, &["show", "b", &sample, "--agent", "gold", "--no-pager"]).stdout;
    assert!(shown.contains("known from the same code"), "{shown}");
    // If gold's repeats differ, the experiment is random. A result is then one draw of several and is not reused.
    let gold = lab.read("papers/tiny/gold.json");
    assert!(gold.contains("\"spread\": 0.0"));
    lab.write("papers/tiny/gold.json", &gold.replace("\"spread\": 0.0", "\"spread\": 0.001"));
    run("d", &[]);
    assert_eq!(checks(&lab, "d", "gold"), (ran + known, 0));
}

#[test]
fn the_baseline_check_of_gold_comes_from_the_cache_unless_fresh_is_given() {
    let lab = lab();
    let arguments = ["run", "-n", "0", "--agent", "noop", "--no-verify"];
    ok(&lab, &[arguments.as_slice(), &["--name", "a"]].concat());
    let files = kept(&lab);
    assert_eq!(files.len(), 3);
    for file in &files {
        let mut known: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        known["result"] = serde_json::json!({"other": 1});
        std::fs::write(file, known.to_string()).unwrap();
    }
    let refused: Ran = command(&lab, &[arguments.as_slice(), &["--name", "b"]].concat()).output().unwrap().into();
    assert_ne!(refused.code, 0, "what was known is what counts");
    assert!(refused.stderr.contains("does not reproduce its gold here"), "{}", refused.stderr);
    ok(&lab, &[arguments.as_slice(), &["--name", "c", "--fresh"]].concat());
    // Run `c` has replaced the changed results in the cache, so a run passes again.
    ok(&lab, &[arguments.as_slice(), &["--name", "d"]].concat());
}

#[test]
fn replies_are_cached_only_on_request_and_a_cached_reply_costs_nothing() {
    let lab = lab();
    let (url, plan) = counting_server();
    let served = || plan.lock().unwrap().served;
    let run = |name: &str, more: &[&str]| {
        let before = served();
        let common = [
            "run",
            "-n",
            "1",
            "--limit",
            "2",
            "-k",
            "2",
            "--agent",
            "react",
            "--model",
            "m",
            "--base-url",
            &url,
            "--price",
            "0,1000",
            "--max-tokens",
            "5",
            "--steps",
            "2",
            "--no-verify",
            "--no-baseline",
            "--name",
            name,
        ];
        ok(&lab, &[common.as_slice(), more].concat());
        let records = lab.records(name);
        let sum = |what: &str| records.iter().map(|record| record[what].as_f64().unwrap_or_default()).sum::<f64>();
        (served() - before, sum("steps"), sum("cached_replies"), sum("cost"))
    };
    let cache = ["--model-cache", "replies"];
    let (asked, steps, cached, cost) = run("a", &cache);
    // The attempts at a sample are independent draws, so no attempt uses a reply that the model gave to another
    // attempt.
    assert_eq!((asked, steps as u64, cached), (8, 8, 0.0));
    assert!((cost - 8.0 * 0.005).abs() < 1e-9, "{cost}");
    assert_eq!(run("b", &cache), (0, steps, steps, 0.0));
    let status: Value = serde_json::from_str(&lab.ok(&["status", "b", "--json"]).stdout).unwrap();
    assert_eq!((status["cost"].as_f64(), status["reserved"].as_f64()), (Some(0.0), Some(0.0)), "{status}");
    let usage = |name: &str| {
        let mut found: Vec<_> = lab.records(name).iter().map(|record| record["usage"].to_string()).collect();
        found.sort();
        found
    };
    assert_eq!(usage("a"), usage("b"));
    assert_eq!(run("c", &["--seed", "1", "--model-cache", "replies"]).0, 8, "another seed asks anew");
    assert_eq!(run("d", &[]).0, 8, "nothing is kept unless that is asked for");
}
