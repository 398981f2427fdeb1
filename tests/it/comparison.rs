//! Comparisons and verifiers over stored runs, from the command line.

use crate::support::Lab;
use serde_json::Value;

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
    // The same run is better in all four pairs. Of the 2^4 assignments of signs, only two are as extreme, so p is
    // `2 / 2^4`.
    assert!((row["p"].as_f64().unwrap() - 0.125).abs() < 1e-12);

    lab.ok(&["run", "-n", "1", "--agent", "noop", "--steps", "7", "--name", "other-budget"]);
    let said = lab.fails(2, &["compare", "all", "other-budget"]);
    assert!(said.contains("differ in the budget of an attempt"), "{said}");
    lab.ok(&["compare", "all", "other-budget", "--force"]);
    // The leaderboard also ranks runs with different budgets, but shows a warning.
    let notes =
        |other: &str| json(&lab.ok(&["report", "leaderboard", "all", other, "--json"]).stdout)["notes"].to_string();
    let warned = notes("other-budget");
    assert!(warned.contains("WARNING "), "{warned}");
    assert!(warned.contains("`all` and `other-budget` differ in the budget of an attempt"), "{warned}");
    assert!(!notes("some").contains("WARNING "), "{}", notes("some"));
    lab.ok(&["report", "all", "other-budget", "--html", "page.html"]);
    let page = lab.read("page.html");
    let alert = page.split_once("aria-label=\"What to distrust\"").unwrap().1.split_once("</div>").unwrap().0;
    assert!(alert.contains("differ in the budget of an attempt"), "{alert}");
    lab.fails(2, &["compare", "some"]);
}

#[test]
fn a_run_continued_over_a_changed_suite_is_compared_only_by_force_and_reported_with_a_warning() {
    let lab = Lab::new();
    let run = ["run", "-n", "1", "--limit", "1", "--no-baseline"];
    lab.ok(&[&run[..], &["--agent", "gold", "--agent", "noop", "--name", "r"]].concat());
    lab.ok(&["compare", "r"]);
    lab.edit("papers/tiny/paper.toml", "year = 2001", "year = 2002");
    lab.ok(&["resume", "r", "--changed-suite", "--no-baseline"]);
    lab.ok(&[&run[..], &["--agent", "noop", "--name", "other"]].concat());
    let change = "the definition or gold of `tiny` has changed since the run was started";
    // The attempts of the run differ among themselves, so it cannot be compared with other runs either.
    for runs in [&["r"][..], &["r", "other"], &["other", "r"]] {
        let said = lab.fails(2, &[&["compare"], runs].concat());
        assert!(said.contains(&format!("attempts of `r` are not comparable with each other: {change}")), "{said}");
        lab.ok(&[&["compare", "--force"], runs].concat());
    }
    for view in [&["report", "r", "--json"][..], &["report", "leaderboard", "r", "--json"], &["score", "r", "--json"]] {
        let notes = json(&lab.ok(view).stdout)["notes"].to_string();
        assert!(notes.contains("WARNING run `r` was continued") && notes.contains(change), "{view:?}: {notes}");
    }
    let text = lab.ok(&["report", "r"]).stdout;
    assert!(text.contains("- WARNING run `r` was continued with `--changed-suite`"), "{text}");
    lab.ok(&["report", "r", "--html", "page.html"]);
    let page = lab.read("page.html");
    let alert = page.split_once("aria-label=\"What to distrust\"").unwrap().1.split_once("</div>").unwrap().0;
    assert!(alert.contains("was continued with"), "{alert}");
}

#[test]
fn runs_of_one_name_are_distinguished_by_folder_and_counted_once() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "gold", "--name", "r1"]);
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r1", "--runs", "other"]);
    let report = json(&lab.ok(&["report", "runs/r1", "other/r1", "--json"]).stdout);
    let rows = report["rows"].as_array().unwrap();
    let passed = |agent: &str| rows.iter().find(|row| row["agent"] == agent).map(|row| row["passed"].clone());
    assert_eq!((passed("runs/r1/gold"), passed("other/r1/noop")), (Some(4.into()), Some(0.into())));
    let how = json(&lab.ok(&["report", "behaviour", "runs/r1", "other/r1", "--json"]).stdout);
    assert!(how["rows"].as_array().unwrap().iter().all(|row| row["trajectories"] == 4), "{how:#}");
    // Both runs have the same name, so labels begin with the runs' folders.
    let compared = json(&lab.ok(&["compare", "runs/r1", "other/r1", "--json"]).stdout);
    assert_eq!((&compared[0]["first"], &compared[0]["second"]), (&"runs/r1/gold".into(), &"other/r1/noop".into()));
    lab.ok(&["report", "runs/r1", "other/r1", "--html", "report.html"]);
    let page = lab.read("report.html");
    assert!(page.contains("runs/r1/gold") && page.contains("other/r1/noop"));

    let twice = ["r1", "./runs/../runs/r1"];
    for (view, more) in [(&[][..], &[][..]), (&["behaviour"], &[]), (&[], &["--html", "report.html"])] {
        let said = lab.fails(2, &[&["report"], view, &twice, more].concat());
        assert!(said.contains("is named twice"), "{said}");
    }
    lab.fails(2, &["compare", "r1", "runs/r1"]);
}

#[test]
fn verifiers_choose_among_stored_attempts_and_keep_their_choices() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "-k", "2", "--agent", "gold", "--name", "r"]);
    let rows = json(&lab.ok(&["pick", "r", "--verifier", "execution", "--verifier", "oracle", "--json"]).stdout);
    assert_eq!(rows.as_array().unwrap().len(), 2);
    for row in rows.as_array().unwrap() {
        assert_eq!((row["samples"].as_u64(), row["k"].as_u64()), (Some(4), Some(2)));
        assert_eq!(row["rates"], json("[1.0, 1.0, 1.0]"));
    }
    let choices = lab.read("runs/r/choices.jsonl");
    assert_eq!(choices.lines().count(), 8);
    assert!(choices.contains("2 of 2 run; 2 of 2 agree"), "{choices}");
    lab.ok(&["pick", "r", "--verifier", "execution"]);
    assert_eq!(lab.read("runs/r/choices.jsonl"), choices, "no choice is made twice");

    // A verifier only asks its model if attempts differ, and the attempts of this run are all the same.
    lab.write("votes.jsonl", "{\"text\": \"\"}\n");
    let model = format!("scripted:{}", lab.path("votes.jsonl").display());
    lab.ok(&["pick", "r", "--verifier", "model", "--model", &model]);
    assert!(lab.read("runs/r/choices.jsonl").contains("all attempts are the same"));
    lab.fails(2, &["pick", "r", "--verifier", "model"]);
    lab.fails(2, &["pick", "r", "--verifier", "best"]);
}

#[test]
fn report_difficulty_names_functions_only_if_their_paper_is_unchanged_since_the_run() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1..3", "--agent", "noop", "--no-baseline", "--no-verify", "--name", "r"]);
    // Replace each record by six attempts. Those that mask function 0 always fail; of the others, two of three pass.
    let mut records = Vec::new();
    for record in lab.records("r") {
        let (_, masked) = record["sample"].as_str().unwrap().split_once('_').unwrap();
        let is_hard = masked.split(',').any(|function| function == "0");
        for attempt in 0..6 {
            let mut one = record.clone();
            one["attempt"] = attempt.into();
            one["pass"] = (!is_hard && attempt % 3 != 0).into();
            records.push(one);
        }
    }
    lab.write("runs/r/attempts.jsonl", &crate::support::json_lines(&records));
    let report = || json(&lab.ok(&["report", "difficulty", "r", "--json"]).stdout);
    let named = |report: &Value| -> Vec<bool> {
        report["functions"].as_array().unwrap().iter().map(|function| function["name"].is_string()).collect()
    };
    let before = report();
    assert!(!named(&before).is_empty() && named(&before).iter().all(|&named| named), "{before:#}");
    // The paper has changed since the run, so the number of a function in a sample's id may now mean another function.
    // The report therefore shows no function's name.
    lab.edit("papers/tiny/paper.toml", "description = \"The arithmetic mean.\"", "description = \"A mean.\"");
    let after = report();
    assert_eq!(named(&after), vec![false; named(&before).len()], "{after:#}");
    let said = "`tiny` may have changed since the run: its masked parts are shown by number, not by name";
    assert!(after["notes"].to_string().contains(said), "{}", after["notes"]);
    // A paper that cannot be read is not reported as gone.
    lab.edit("papers/tiny/paper.toml", "description = \"A mean.\"", "description = A mean.");
    let broken = report()["notes"].to_string();
    assert!(broken.contains("`tiny` cannot be read: ") && broken.contains("paper.toml"), "{broken}");
    assert!(!broken.contains("any more"), "{broken}");
    std::fs::remove_dir_all(lab.path("papers/tiny")).unwrap();
    assert!(report()["notes"].to_string().contains("is not in the suite any more"));
}

#[test]
fn functions_are_named_by_the_suite_of_their_own_run() {
    let (one, other) = (Lab::new(), Lab::new());
    // After the runs, the paper is removed from the first run's suite. The second run's suite still has it.
    one.ok(&["run", "-n", "1", "--agent", "noop", "--name", "a"]);
    other.ok(&["run", "-n", "1", "--agent", "noop", "--name", "b"]);
    std::fs::rename(one.path("papers/tiny"), one.path("papers/moved")).unwrap();
    let second = other.path("runs/b").display().to_string();
    let report = json(&one.ok(&["report", "difficulty", "a", &second, "--json"]).stdout);
    assert!(!report["notes"].to_string().contains("shown by number"), "{}", report["notes"]);
    let alone = json(&one.ok(&["report", "difficulty", "a", "--json"]).stdout);
    assert!(alone["notes"].to_string().contains("is not in the suite any more"), "{}", alone["notes"]);
    let elsewhere = json(&one.ok(&["report", "difficulty", &second, "--json", "--suite", "."]).stdout);
    assert!(elsewhere["notes"].to_string().contains("is not in the suite `.`"), "{}", elsewhere["notes"]);
}

#[test]
fn power_refuses_a_named_suite_that_is_missing_but_needs_no_suite_by_default() {
    let lab = Lab::new();
    let rows = |more: &[&str]| {
        json(&lab.ok(&[&["power", "--diff", "0.2", "--json"], more].concat()).stdout)["rows"][0]["available"].clone()
    };
    assert_eq!(rows(&[]), 4);
    assert_eq!(rows(&["--suite", "."]), 4);
    let said = lab.fails(3, &["power", "--diff", "0.2", "--suite", "nowhere"]);
    assert!(said.contains("nowhere"), "{said}");
    std::fs::rename(lab.path("papers"), lab.path("elsewhere")).unwrap();
    assert_eq!(rows(&[]), Value::Null);
}

/// Returns the commands of the table in `docs/agents.md`, with their purposes.
fn commands_of_the_docs() -> Vec<(String, String)> {
    let docs = std::fs::read_to_string("docs/agents.md").unwrap();
    let (_, table) = docs.split_once("## The paper's experiments").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix("` |"));
    rows.map(|row| {
        let (what, command) = row.split_once(" | `").unwrap();
        (what.to_owned(), command.to_owned())
    })
    .collect()
}

#[test]
fn every_experiment_of_the_autoexperiment_paper_runs_with_its_documented_command() {
    let commands = commands_of_the_docs();
    let figures = ["Figure 2", "Figure 3", "Figure 4, r", "Figure 4, i", "Figure 5"];
    for part in figures.iter().chain(&["Table 2", "Table 3", "Table 6", "Table 8", "Table 9"]) {
        assert!(commands.iter().any(|(what, _)| what.starts_with(part)), "{part} has a command");
    }
    let lab = Lab::new();
    // Each set of tools has its own call that submits the answer. These replies make all of these calls in turn, so
    // that every agent ends.
    let answer = r#"{"Experiment 1": {"arithmetic": 1}}"#;
    let call = |name: &str, arguments: Value| serde_json::json!({"text": "Next.", "tool_calls": [{"name": name, "arguments": arguments}], "cost": 0.001});
    let printed = format!("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '{answer}'");
    let turn = [
        call("final_answer", serde_json::json!({ "answer": answer })),
        call("submit", serde_json::json!({ "answer": answer })),
        call("bash", serde_json::json!({ "command": printed })),
    ];
    let replies: Vec<Value> = turn.iter().cycle().take(60).cloned().collect();
    lab.write("model.jsonl", &crate::support::json_lines(&replies));
    let program = std::path::Path::new(crate::support::PROGRAM).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for (what, command) in commands {
        // To save time, attempt only one sample, and verify only if the command has verifiers, because they use the
        // verified results.
        let verify = if command.contains("--verifier") { "" } else { "--no-verify " };
        let quick =
            command.replace("autoexperiment run ", &format!("autoexperiment run --limit 1 --no-baseline {verify}"));
        // Leave out embeddings, which are refused because these tests have no embedding model.
        let quick = quick.replace("embedding,", "");
        let mut shell = std::process::Command::new("bash");
        let ours = lab.command(&[]);
        for (name, value) in ours.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            shell.env(name, value);
        }
        shell.args(["-e", "-c", &quick]).current_dir(lab.path("")).env("PATH", &path);
        shell.env("MODEL", "scripted:model.jsonl").env("MODELS", "scripted:model.jsonl");
        let output = shell.output().unwrap();
        let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{what}: {command}\n{out}\n{said}");
    }
    let agents = |run: &str| {
        let mut labels: Vec<String> =
            lab.records(run).iter().map(|record| record["agent"].as_str().unwrap().to_owned()).collect();
        labels.sort();
        labels.dedup();
        labels.len()
    };
    let counts = ["reasoning", "contexts", "tools", "agents", "promptings", "retrieval", "tries"].map(agents);
    assert_eq!(counts, [4, 5, 4, 2, 12, 4, 2]);
    assert_eq!(agents("steps-20"), 1);
    let verifiers = json(&lab.ok(&["report", "pass-at-5", "--json"]).stdout)["verifiers"].clone();
    let mut names: Vec<&str> =
        verifiers.as_array().unwrap().iter().map(|row| row["verifier"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(lab.path("by-n.html").exists() && lab.path("steps.html").exists());
}

#[test]
fn without_the_papers_file_no_text_of_the_paper_is_in_workspace_or_prompt() {
    let lab = Lab::new();
    let call = |name: &str, arguments: Value| serde_json::json!({"text": "", "tool_calls": [{"name": name, "arguments": arguments}]});
    let replies = [
        call("command_line", serde_json::json!({"command": "ls; echo mine > paper.txt"})),
        call("final_answer", serde_json::json!({"answer": "{\"Experiment 1\": {}}"})),
    ];
    lab.write("model.jsonl", &crate::support::json_lines(&replies));
    let mut arguments = vec!["run", "--sample", "tiny_1", "--agent", "react", "--agent", "react:paper-file=false"];
    arguments.extend(["--model", "scripted:model.jsonl", "--no-baseline", "--name", "r"]);
    lab.ok(&arguments);
    for (agent, has) in [("react", true), ("react+paper-file=false", false)] {
        let record = lab.records("r").into_iter().find(|record| record["agent"] == agent).unwrap();
        assert_eq!(record["end"], "answered", "{record:#}");
        let told = lab.read(&format!("runs/r/trajectories/{agent}/tiny_1.0.jsonl"));
        let mut lines = told.lines().map(json);
        let shown = lines.find(|line| line["event"] == "observation").unwrap();
        let listed = shown["content"].as_str().unwrap();
        assert_eq!(listed.contains("paper.txt"), has, "{listed}");
        assert!(listed.contains("experiments.md"), "{listed}");
        let prompts = told.lines().map(json).filter(|line| line["event"] == "message");
        let prompts: Vec<String> = prompts.map(|line| line["content"].to_string()).collect();
        assert_eq!(prompts.concat().contains("paper.txt"), has, "{prompts:?}");
    }
}

#[test]
fn every_comparison_of_the_autoexperiment_paper_is_an_option_of_run_or_an_agents_setting() {
    let help = Lab::bare().ok(&["run", "--help"]).stdout;
    let flags = "--agent --model --steps --verifier --orders -n, -k, --max-cost --temperature";
    for flag in flags.split_whitespace() {
        assert!(help.contains(&format!("{flag} ")), "{flag} is not in:\n{help}");
    }
    let settings = Lab::bare().ok(&["agents"]).stdout;
    for key in "paper code prompt history tools protocol reflexion reasoning repair fill feedback".split(' ') {
        assert!(settings.contains(&format!("\n  {key}=")), "{key} is not in:\n{settings}");
    }
    for heading in ["Samples:", "Agents and models:", "Verifiers:", "Budget:"] {
        assert!(help.contains(&format!("\n{heading}\n")), "{heading} is not in:\n{help}");
    }
}

#[test]
fn two_runs_have_parity_where_their_ranges_overlap() {
    let lab = Lab::new();
    for (agent, name) in [("gold", "a"), ("gold", "b"), ("noop", "c")] {
        lab.ok(&["run", "-n", "1", "--limit", "2", "-k", "2", "--agent", agent, "--name", name]);
    }
    let file = json(&lab.ok(&["parity", "a", "b", "--json", "--adapter", "ours"]).stdout);
    let entry = &file[0];
    assert_eq!((&entry["adapter_name"], &entry["number_of_runs"]), (&"ours".into(), &2.into()));
    assert_eq!(entry["metrics"][0]["harbor_runs"], serde_json::json!([100.0, 100.0]));
    assert_eq!(entry["ranges_overlap"], true);
    let same = lab.ok(&["parity", "a", "c"]);
    assert!(same.stdout.contains("no parity") && !same.stderr.contains("warning"), "{}", same.stderr);
    lab.fails(2, &["parity", "a", "a"]);
    lab.ok(&["run", "-n", "1", "--limit", "2", "-k", "2", "--agent", "gold", "--steps", "7", "--name", "d"]);
    let said = lab.ok(&["parity", "a", "d"]).stderr;
    assert!(said.contains("warning: the two sides differ in the budget of an attempt"), "{said}");
}
