//! Runs on the tiny suite, end to end: the verdicts, what an agent can and cannot get away with, the store.

use crate::support::Lab;
use serde_json::{Value, json};

fn tool(name: &str, arguments: &Value) -> Value {
    json!({"tool": name, "arguments": arguments})
}

/// Returns the gold of all experiments as an answer.
fn gold_answer(lab: &Lab) -> Value {
    let gold: Value = serde_json::from_str(&lab.read("papers/tiny/gold.json")).unwrap();
    let results = &gold["results"]["curtailed"];
    json!({
        "Experiment 1": results["means"]["result"],
        "Experiment 2": results["spread"]["result"],
        "Experiment 3": results["table"]["result"],
    })
}

#[test]
fn gold_passes_and_noop_fails_every_sample_verified() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "0..3", "--agent", "gold", "--agent", "noop", "--name", "r"]);
    let records = lab.records("r");
    // There are 1, 4, 5 and 2 samples with n from 0 to 3, because a function and the one nested in it are never masked
    // together. Each of the two agents attempts these 12 samples.
    assert_eq!(records.len(), 24);
    for record in &records {
        let gold = record["agent"] == "gold";
        assert_eq!(record["pass"], gold, "{record:#}");
        assert_eq!(record["reported"]["pass"], gold);
        // With nothing masked the unchanged code is right, though noop reports nothing.
        assert_eq!(record["verified"]["pass"], gold || record["n"] == 0);
        assert_eq!(record["end"], if gold { "answered" } else { "gave_up" });
    }
}

#[test]
fn a_right_answer_without_code_fails_verification_and_is_counted_as_unsupported() {
    let lab = Lab::new();
    let agent = lab.scripted("s", &[tool("final_answer", &json!({"answer": gold_answer(&lab)}))]);
    lab.ok(&["run", "--sample", "tiny_0", "--agent", &agent, "--name", "r"]);
    let record = &lab.records("r")[0];
    assert_eq!(
        (&record["pass"], &record["reported"]["pass"], &record["verified"]["pass"]),
        (&json!(false), &json!(true), &json!(false))
    );
    assert_eq!(record["verified"]["experiments"][0]["reason"], "exit code 1");
    let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
    assert_eq!(report["rows"][0]["unsupported"], 1);
    // With `--no-verify`, only the report counts, as in the published rule.
    lab.ok(&["run", "--sample", "tiny_0", "--agent", &agent, "--no-verify", "--name", "paper-rule"]);
    assert_eq!(lab.records("paper-rule")[0]["pass"], true);
}

#[test]
fn changes_to_protected_files_are_not_applied() {
    let lab = Lab::new();
    let forged =
        "import json\nprint(json.dumps({\"arithmetic\": 4.166666666666667, \"geometric\": 3.5830831474778333}))\n";
    let agent = lab.scripted(
        "s",
        &[
            tool("write_file", &json!({"path": "tiny/__main__.py", "content": forged})),
            tool("final_answer", &json!({"answer": gold_answer(&lab)})),
        ],
    );
    lab.ok(&["run", "--sample", "tiny_1", "--agent", &agent, "--name", "r"]);
    let record = &lab.records("r")[0];
    assert_eq!(record["ignored"], json!(["tiny/__main__.py"]));
    assert_eq!((&record["pass"], &record["reported"]["pass"]), (&json!(false), &json!(true)));
    let patch = lab.read("runs/r/diffs/scripted/tiny_1.0.patch");
    assert!(patch.contains("+++ b/tiny/__main__.py"), "{patch}");
}

#[test]
fn modules_that_shadow_the_library_or_protected_files_are_not_applied() {
    let lab = Lab::new();
    let printed = gold_answer(&lab)["Experiment 1"].to_string();
    let forged = format!("import os\nos.write(1, b'{printed}' + bytes([10]))\nos._exit(0)\n");
    for path in ["json.py", "tiny/__main__/__init__.py"] {
        let agent = lab.scripted(
            "s",
            &[
                tool("write_file", &json!({"path": path, "content": forged})),
                tool("final_answer", &json!({"answer": gold_answer(&lab)})),
            ],
        );
        let name = path.replace('/', "-");
        lab.ok(&["run", "--sample", "tiny_1", "--agent", &agent, "--name", &name]);
        let record = &lab.records(&name)[0];
        assert_eq!(record["ignored"], json!([path]), "{record:#}");
        assert_eq!((&record["pass"], &record["reported"]["pass"]), (&json!(false), &json!(true)), "{path}");
        let warnings = record["verified"]["warnings"].to_string();
        assert!(warnings.contains(path), "{warnings}");
    }
}

#[test]
fn code_of_one_experiment_cannot_change_what_the_next_one_runs() {
    let lab = Lab::new();
    let answer = gold_answer(&lab);
    let forged = format!(
        "import json, os\nos.makedirs('results', exist_ok=True)\nopen('results/spread.json', 'w').write({:?})\n\
         print('first half: 0.1')\n",
        answer["Experiment 2"].to_string()
    );
    // If an experiment imports this module, the module overwrites the protected script that later experiments run.
    let code = format!(
        "open('tiny/__main__.py', 'w').write({forged:?})\ndef arithmetic(values):\n    return 1.0\ngeometric = arithmetic\n"
    );
    let agent = lab.scripted(
        "s",
        &[
            tool("write_file", &json!({"path": "tiny/means.py", "content": code})),
            tool("final_answer", &json!({"answer": answer})),
        ],
    );
    lab.ok(&["run", "--sample", "tiny_0,2", "--agent", &agent, "--name", "r"]);
    let record = &lab.records("r")[0];
    let spread =
        record["verified"]["experiments"].as_array().unwrap().iter().find(|one| one["experiment"] == "spread").unwrap();
    assert_eq!((&spread["pass"], &record["pass"]), (&json!(false), &json!(false)), "{record:#}");
}

#[test]
fn changes_that_cannot_be_applied_are_listed_next_to_the_verdict() {
    let lab = Lab::new();
    let command = "cp tiny/means.py real.py; ln -sf ../real.py tiny/means.py";
    let agent = lab.scripted("s", &[tool("command_line", &json!({"command": command}))]);
    lab.ok(&["run", "--sample", "tiny_0", "--agent", &agent, "--name", "r"]);
    let record = &lab.records("r")[0];
    assert_eq!((&record["skipped"], &record["changed"]), (&json!(["tiny/means.py"]), &json!(["real.py"])));
    let warnings = record["verified"]["warnings"].to_string();
    assert!(warnings.contains("tiny/means.py"), "{warnings}");
}

#[test]
fn an_attempt_is_charged_for_the_time_that_reading_its_tree_takes() {
    let lab = Lab::new();
    let fill = json!({"command": "mkdir many && cd many && seq 30000 | xargs touch"});
    let agent = lab.scripted("s", &[tool("command_line", &fill)]);
    lab.ok(&["run", "--sample", "tiny_0", "--agent", &agent, "--no-baseline", "--no-verify", "--name", "r"]);
    let record = &lab.records("r")[0];
    assert!(record["unlisted"].as_u64().is_some_and(|more| more >= 20_000), "{record:#}");
    let trajectory = lab.read("runs/r/trajectories/scripted/tiny_0.0.jsonl");
    let events = trajectory.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tools: f64 =
        events.filter(|event| event["event"] == "observation").filter_map(|event| event["seconds"].as_f64()).sum();
    // The record's time also contains the examination of the 30,000 new files, which takes at least a microsecond for
    // each.
    assert!(tools > 0.0 && record["tool_seconds"].as_f64().unwrap() > tools + 0.03, "{tools}: {record:#}");
}

#[test]
fn verification_does_not_read_a_result_file_that_the_agent_wrote() {
    let lab = Lab::new();
    let gold = gold_answer(&lab)["Experiment 2"].to_string();
    let agent = lab.scripted(
        "s",
        &[
            tool("write_file", &json!({"path": "results/spread.json", "content": gold})),
            tool("final_answer", &json!({"answer": gold_answer(&lab)})),
        ],
    );
    lab.ok(&["run", "--sample", "tiny_2", "--agent", &agent, "--name", "r"]);
    assert_eq!(lab.records("r")[0]["verified"]["pass"], false);
}

#[test]
fn nothing_that_an_agent_can_reach_holds_an_original_body_or_a_gold_value() {
    let lab = Lab::new();
    lab.ok(&["run", "--sample", "tiny_0,1", "--agent", "gold", "--name", "before"]);
    // Search for the bodies of the masked functions, the first digits of all gold values that are not in the data, and
    // files by name.
    let search = "{ grep -rlE 'body-of-(arithmetic|geometric)|4[.]16666|3[.]58308|4[.]82638|1[.]15833' / \
                  --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr; ls -d .git ../../../*/repos; \
                  find / -name gold.json -o -name 'attempts*.jsonl' -o -name 'means*.pyc'; } 2>/dev/null; \
                  grep -c body-of-variance tiny/spread.py; echo done";
    let agent = lab.scripted("s", &[tool("command_line", &json!({"command": search}))]);
    lab.ok(&["run", "--sample", "tiny_0,1", "--agent", &agent, "--name", "r"]);
    let seen = lab.first_observation("r", "tiny_0,1");
    // The search has found nothing except the body of `variance`, which this sample does not mask.
    assert!(seen.contains("1\ndone") && !seen.contains('/'), "{seen}");
    // Without a sandbox the search finds the body, which shows that the search works.
    let here = format!("grep -rl body-of-arithmetic {}; echo done", lab.path("repos").display());
    let agent = lab.scripted("s", &[tool("command_line", &json!({"command": here}))]);
    lab.ok(&["run", "--sample", "tiny_0,1", "--agent", &agent, "--sandbox", "none", "--name", "none"]);
    assert!(lab.first_observation("none", "tiny_0,1").contains("means.py"));
}

#[test]
fn a_repo_that_contains_the_result_file_of_an_experiment_is_refused() {
    let lab = Lab::new();
    lab.write("repos/tiny/results/spread.json", "{}");
    let message = lab.fails(3, &["run", "--agent", "noop"]);
    assert!(message.contains("the repo holds the result of experiment `spread`"), "{message}");
    assert!(lab.fails(3, &["gold", "tiny"]).contains("every agent would be given it"));
    assert_eq!(lab.run(&["check"]).code, 3);
}

#[test]
fn no_sample_or_paper_is_run_twice_however_often_it_is_named() {
    let lab = Lab::new();
    lab.ok(&["run", "-p", "tiny", "-p", "tiny", "--limit", "2", "--agent", "noop", "--name", "p"]);
    assert_eq!(lab.records("p").len(), 2);
    lab.ok(&[
        "run", "--sample", "tiny_0", "--sample", "tiny_0", "--sample", "tiny_00", "--agent", "noop", "--name", "s",
    ]);
    assert_eq!(lab.records("s").len(), 1);
}

#[test]
fn a_run_resumes_over_a_changed_suite_only_on_request() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--limit", "1", "--agent", "noop", "--name", "r"]);
    lab.edit("papers/tiny/paper.toml", "year = 2001", "year = 2002");
    let message = lab.fails(3, &["resume", "r"]);
    assert!(message.contains("definition or gold of `tiny` has changed"), "{message}");
    let resumed = lab.ok(&["resume", "r", "--changed-suite", "--no-baseline"]).stdout;
    assert!(resumed.contains("- WARNING run `r` was continued with `--changed-suite`"), "{resumed}");
    let run: Value = serde_json::from_str(&lab.read("runs/r/run.json")).unwrap();
    assert_eq!((&run["sessions"][0]["baseline"], &run["sessions"][1]["baseline"]), (&json!(true), &json!(false)));
    assert_eq!(run["sessions"][1]["differences"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_is_resumed_from_any_folder() {
    let lab = Lab::new();
    lab.scripted("s", &[tool("command_line", &json!({"command": "true"}))]);
    lab.ok(&["run", "-n", "1", "--agent", "scripted:s", "--name", "r"]);
    let ran = lab.command(&["resume", &lab.path("runs/r").display().to_string()]).current_dir("/").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn mask_writes_the_tree_that_an_agent_is_given() {
    let lab = Lab::new();
    lab.ok(&["mask", "tiny", "-f", "0", "-o", "out"]);
    assert!(lab.read("out/tiny/means.py").contains("raise NotImplementedError"));
    assert!(lab.read("out/paper.txt").contains("Tiny Means"));
    assert!(lab.path("out/run_experiments.sh").exists() && !lab.path("out.partial").exists());
    let diff = lab.ok(&["mask", "tiny", "-f", "0"]).stdout;
    assert!(diff.contains("-    total = 0.0") && diff.contains("+    raise NotImplementedError"), "{diff}");
    lab.fails(2, &["mask", "tiny", "-f", "0", "-o", "out"]);
}

#[test]
fn resuming_a_finished_run_changes_nothing_and_prints_the_same_report() {
    let lab = Lab::new();
    let first = lab.ok(&["run", "-n", "1", "--agent", "gold", "--name", "r"]).stdout;
    let before = lab.read("runs/r/attempts.jsonl");
    let second = lab.ok(&["resume", "r"]).stdout;
    assert_eq!(first, second);
    assert_eq!(before, lab.read("runs/r/attempts.jsonl"));
}

#[test]
fn attempts_lost_to_infrastructure_are_in_no_rate_and_made_again_on_resume() {
    let lab = Lab::new();
    // A server that closes every connection.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let model = ["--agent", "react", "--model", "any", "--base-url", &url, "--price", "0,0", "--retries", "0"];
    let mut arguments = vec!["run", "-n", "1", "--limit", "1", "--agent", "noop", "--tries", "2", "--name", "r"];
    arguments.extend(model);
    let message = lab.fails(8, &arguments);
    assert!(message.contains("1 attempt(s) were lost to infrastructure"), "{message}");
    assert!(message.contains("autoexperiment resume runs/r"), "{message}");
    let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!((&rows[0]["agent"], &rows[0]["attempts"], &rows[0]["lost"]), (&json!("noop"), &json!(1), &json!(0)));
    assert_eq!((&rows[1]["agent"], &rows[1]["attempts"], &rows[1]["lost"]), (&json!("react"), &json!(0), &json!(1)));
    let before = lab.records("r").len();
    assert_eq!(before, 1 + 2, "each try is on record");
    // `resume` makes only the lost attempts again.
    lab.fails(8, &["resume", "r"]);
    let records = lab.records("r");
    assert!(records[before..].iter().all(|record| record["agent"] == "react"));
    assert_eq!(records.len(), before + 2);
}

#[test]
fn a_run_stops_before_its_cost_limit_and_continues_with_a_higher_one() {
    let lab = Lab::new();
    lab.write("replies", "{\"text\": \"no call\", \"cost\": 0.5}\n{\"text\": \"none\", \"cost\": 0.5}\n");
    let model = format!("scripted:{}", lab.path("replies").display());
    let run = ["run", "-n", "1", "--agent", "react", "--model", &model, "--name", "r", "--max-cost", "2", "-j", "1"];
    let message = lab.fails(10, &run);
    assert!(message.contains("--max-cost"), "{message}");
    assert_eq!(lab.records("r").len(), 2);
    lab.ok(&["resume", "r", "--max-cost", "100"]);
    let records = lab.records("r");
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|record| record["cost"] == 1.0 && record["end"] == "cost_limit"), "{records:#?}");
}

#[test]
fn a_recorded_run_plays_back_byte_for_byte() {
    let lab = Lab::new();
    let replies = [
        json!({"text": "look", "tool_calls": [{"name": "command_line", "arguments": {"command": "cat tiny/means.py"}}], "usage": {"input": 5, "cached": 0, "output": 7, "reasoning": 0}}),
        json!({"text": "report", "tool_calls": [{"name": "final_answer", "arguments": {"answer": gold_answer(&lab)}}]}),
    ];
    lab.write("replies", &crate::support::json_lines(&replies));
    let scripted = format!("scripted:{}", lab.path("replies").display());
    let replay = format!("replay:{}", lab.path("recording").display());
    let record = lab.path("recording").display().to_string();
    lab.ok(&["run", "-n", "1", "--agent", "react", "--model", &scripted, "--record", &record, "--name", "first"]);
    lab.ok(&["run", "-n", "1", "--agent", "react", "--model", &replay, "--name", "second"]);
    for sample in ["tiny_0", "tiny_1", "tiny_2", "tiny_3"] {
        let said = |run: &str| {
            let text = lab.read(&format!("runs/{run}/trajectories/react/{sample}.0.jsonl"));
            let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let said = events.filter(|event| event["event"] == "reply" || event["event"] == "message");
            said.map(|mut event| {
                for time in ["at", "seconds"] {
                    event.as_object_mut().unwrap().remove(time);
                }
                event.to_string()
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(said("first"), said("second"));
    }
}

#[test]
fn a_stored_run_is_rescored_without_running_code() {
    let lab = Lab::new();
    lab.ok(&["run", "--sample", "tiny_1", "--agent", "gold", "--name", "r"]);
    lab.edit("papers/tiny/gold.json", "3.58308314747783", "9.58308314747783");
    let ran = lab.ok(&["score", "r", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["rows"][0]["passed"], 0);
    assert!(ran.stderr.contains("gold tiny_1.0: fails now, passes in the store"), "{}", ran.stderr);
    assert_eq!(lab.records("r")[0]["pass"], true, "the store is as it was");
}

#[test]
fn require_pass_reports_failed_attempts_by_the_exit_code() {
    let lab = Lab::new();
    lab.ok(&["run", "--sample", "tiny_0", "--agent", "gold", "--require-pass"]);
    let message = lab.fails(9, &["run", "--sample", "tiny_0", "--agent", "noop", "--require-pass"]);
    assert!(message.contains("at least one attempt failed"), "{message}");
}

#[test]
fn gold_check_compares_value_by_value_and_does_not_change_the_stored_gold() {
    let lab = Lab::new();
    let recorded = lab.read("papers/tiny/gold.json");
    let same: Value = serde_json::from_str(&lab.ok(&["gold", "--check", "--json", "tiny"]).stdout).unwrap();
    assert_eq!(same[0]["env"]["backend"], "venv");
    for experiment in same[0]["experiments"].as_array().unwrap() {
        assert_eq!((&experiment["worst"], &experiment["values"]), (&json!(0.0), &experiment["equal"]));
    }
    assert_eq!(lab.read("papers/tiny/gold.json"), recorded);
    // With a gold value that is 1% too large, the check passes and reports the difference. With one that is twice as
    // large, the check fails.
    let mut gold: Value = serde_json::from_str(&recorded).unwrap();
    let value = &mut gold["results"]["curtailed"]["means"]["result"]["arithmetic"];
    let right = value.as_f64().unwrap();
    for (factor, code, within) in [(1.01, 0, true), (2.0, 4, false)] {
        gold["results"]["curtailed"]["means"]["result"]["arithmetic"] = json!(right * factor);
        lab.write("papers/tiny/gold.json", &gold.to_string());
        let ran = lab.run(&["gold", "--check", "--json", "tiny"]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        let compared: Value = serde_json::from_str(&ran.stdout).unwrap();
        let means = &compared[0]["experiments"][0];
        assert_eq!((&means["pass"], &means["equal"]), (&json!(within), &json!(1)), "{means}");
        let worst = means["worst"].as_f64().unwrap();
        assert!((worst - (1.0 - 1.0 / factor)).abs() < 1e-9, "{means}");
        assert!(within || ran.stderr.contains("1 of 3 experiments"), "{}", ran.stderr);
    }
}
