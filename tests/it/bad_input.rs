//! Bad input: each error names the fault, its place and a remedy, and has its own exit code.

use crate::support::Lab;

#[test]
fn broken_toml_is_named_with_its_line() {
    let lab = Lab::new();
    lab.edit("papers/tiny/paper.toml", "year = 2001", "year = = 2001");
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"error: [lab]/papers/tiny/paper.toml:3: extra `=`, expected nothing"#);
}

#[test]
fn an_unknown_field_is_named_with_its_line() {
    let lab = Lab::new();
    lab.edit(
        "papers/tiny/paper.toml",
        "description = \"The arithmetic mean.\"",
        "descripton = \"The arithmetic mean.\"",
    );
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"error: [lab]/papers/tiny/paper.toml:11: unknown field `descripton`, expected one of `at`, `description`, `passages`, `since`, `equivalent`"#);
}

#[test]
fn all_errors_of_a_manifest_are_reported_at_once() {
    let lab = Lab::new();
    lab.edit("papers/tiny/paper.toml", "year = 2001", "year = 'x'\nyeer = 2001");
    lab.edit(
        "papers/tiny/paper.toml",
        "description = \"The arithmetic mean.\"",
        "descripton = \"The arithmetic mean.\"",
    );
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"
    error: [lab]/papers/tiny/paper.toml:3: invalid type: string "x", expected u16
        [lab]/papers/tiny/paper.toml:4: unknown field `yeer`, expected one of `title`, `authors`, `year`, `url`, `published`, `first_commit`, `repo`, `env`, `protected`, `hidden`, `build`, `products`, `compiled`, `abi`, `function`, `region`, `experiment`
        [lab]/papers/tiny/paper.toml:12: unknown field `descripton`, expected one of `at`, `description`, `passages`, `since`, `equivalent`
    "#);
    let lab = Lab::new();
    lab.edit("papers/tiny/paper.toml", "tiny/means.py::arithmetic", "tiny/means.py::arithmetics");
    lab.edit("papers/tiny/paper.toml", "tiny/means.py::geometric", "tiny/mean.py::geometric");
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"
    error: [lab]/papers/tiny/paper.toml: function `tiny/means.py::arithmetics`: tiny/means.py: no function `arithmetics` in this file
        [lab]/papers/tiny/paper.toml: function `tiny/mean.py::geometric`: failed to read `[lab]/repos/tiny/tiny/mean.py`
      hint: did you mean `arithmetic`?
    "#);
}

#[test]
fn check_reports_todo_parts_of_a_paper_and_missing_or_outdated_locks() {
    let lab = Lab::new();
    lab.edit("papers/tiny/paper.toml", "year = 2001", "year = 0 # TODO");
    lab.edit("papers/tiny/paper.toml", "title = \"Tiny Means\"", "title = \"TODO\"");
    lab.edit("papers/tiny/paper.toml", "The geometric mean, by logarithms.", "TODO: what `geometric` does");
    lab.edit("papers/tiny/paper.md", "is their sum", "is their sum\n\nTODO: describe it.\n");
    lab.edit("envs/tiny/environment.yml", "dependencies:", "# changed\ndependencies:");
    let ran = lab.run(&["check"]);
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(lab.redact(&ran.stdout), @r#"
    tiny: wrong
      error: [lab]/papers/tiny/paper.toml:1: the title is still to be written
      error: [lab]/papers/tiny/paper.toml:3: the year is still 0
      error: [lab]/papers/tiny/paper.toml:15: the description of function `tiny/means.py::geometric` is still to be written
      error: [lab]/papers/tiny/paper.md:7: the text has `TODO` in 1 place(s)
      warning: [lab]/papers/tiny/gold.json: no gold of the full protocol of `means`: `run --full` needs it
        hint: record it with `autoexperiment gold tiny --full`
      error: [lab]/envs/tiny/venv.lock: `[lab]/envs/tiny/environment.yml` was changed after it was locked
        hint: type `autoexperiment env lock tiny`
      warning: [lab]/papers/tiny/evidence.json: mutants have not been measured
        hint: measure it with `autoexperiment verify tiny`
    "#);
    let lab = Lab::new();
    std::fs::remove_file(lab.path("envs/tiny/venv.lock")).unwrap();
    let said = lab.run(&["check"]);
    assert!(said.code == 3 && said.stdout.contains("error: the env `tiny` is not locked"), "{}", said.stdout);
}

#[test]
fn a_missing_script_or_recording_is_a_usage_error_for_agents_and_models() {
    let lab = Lab::new();
    lab.fails(2, &["run", "--agent", "scripted:nowhere"]);
    for model in ["scripted:nowhere", "replay:nowhere"] {
        let said = lab.fails(2, &["run", "--agent", "react", "--model", model]);
        assert!(said.contains("nowhere"), "{said}");
    }
}

#[test]
fn a_run_that_does_not_exist_is_a_usage_error_that_names_the_newest_run() {
    let lab = Lab::new();
    let said = lab.fails(2, &["report"]);
    assert!(said.contains("there are no runs in `runs`"), "{said}");
    lab.ok(&["run", "-n", "1", "--limit", "1", "--agent", "noop", "--name", "b", "--no-baseline"]);
    lab.ok(&["run", "-n", "1", "--limit", "2", "--agent", "noop", "--name", "a", "--no-baseline"]);
    for verb in [&["report", "nope"][..], &["status", "nope"], &["show", "nope", "tiny_0"], &["resume", "nope"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(lab.fails(2, verb), @r#"
            error: there is no run `nope`
              hint: `autoexperiment runs` lists those in `runs`; the newest, `latest`, is `a`
            "#);
        }
    }
    // Commands use the newest run if no name or `latest` is given.
    for verb in [&["report"][..], &["report", "latest"], &["status"], &["show", "latest", "tiny_0"]] {
        lab.ok(verb);
    }
    let report = lab.ok(&["report", "attempts"]).stdout;
    assert_eq!(report.lines().count(), 3, "{report}");
    let listed = lab.ok(&["runs"]).stdout;
    let names: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["a", "b"], "{listed}");
    assert!(listed.contains("2/2") && listed.contains("complete"), "{listed}");
    // If one try of an attempt was lost and another try was not, the attempt does not count as lost.
    let mut lost = lab.records("b").remove(0);
    (lost["end"], lost["pass"]) = ("sandbox_lost".into(), false.into());
    lab.write("runs/b/attempts.jsonl", &format!("{}{lost}\n", lab.read("runs/b/attempts.jsonl")));
    let rows: serde_json::Value = serde_json::from_str(&lab.ok(&["runs", "--json"]).stdout).unwrap();
    assert_eq!((&rows[1]["run"], &rows[1]["finished"], &rows[1]["lost"]), (&"b".into(), &1.into(), &0.into()));
    // If the newest run cannot be read, `latest` is an error and does not mean an older run.
    let mut newest: serde_json::Value = serde_json::from_str(&lab.read("runs/a/run.json")).unwrap();
    newest["format"] = 99.into();
    lab.write("runs/a/run.json", &newest.to_string());
    let listed = lab.ok(&["runs"]);
    assert!(listed.stderr.contains("left out: `runs/a` cannot be read: ") && listed.stderr.contains("format 99"));
    assert_eq!(listed.stdout.lines().nth(1).and_then(|line| line.split_whitespace().next()), Some("b"));
    assert!(lab.fails(7, &["resume", "latest"]).contains("format 99"));
    lab.write("runs/b/run.json", &newest.to_string());
    assert_eq!(lab.ok(&["runs"]).stdout, "", "no heading above no rows");
}

#[test]
fn a_number_of_masked_functions_that_no_paper_has_is_reported() {
    let lab = Lab::new();
    let ran = lab.ok(&["run", "-n", "2..6", "--limit", "1", "--agent", "noop", "--no-baseline"]);
    let told = "warning: there are no samples with 4, 5, 6 masked functions; those drawn have at most 3";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(lab.ok(&["sample", "-n", "2..6"]).stderr.contains(told));
}

#[test]
fn a_dry_run_describes_the_run_and_creates_nothing() {
    let lab = Lab::new();
    let model = ["--model", "openai:gpt-5-mini", "--max-cost", "4"];
    let mut command = lab.command(
        &[&["run", "tiny", "-n", "1..2", "-k", "2", "--agent", "gold,react", "--dry-run"], &model[..]].concat(),
    );
    let output = command.env("OPENAI_API_KEY", "none").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in
        ["tiny   1        4", "cost at most:  $4.00 (`--max-cost`)", "nothing was run", "model's own time of `react`"]
    {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }
    // Without `--max-cost`, the dry run also shows the highest cost if attempts are lost and made again.
    let unlimited = ["run", "tiny", "-n", "1", "--limit", "1", "-k", "2", "--agent", "react", "--dry-run"];
    let mut command = lab.command(&[&unlimited[..], &model[..2]].concat());
    let said = String::from_utf8(command.env("OPENAI_API_KEY", "none").output().unwrap().stdout).unwrap();
    let most = "cost at most:  $2.00, 2 attempts of at most $1.00 (`--cost`); $6.00 if all are lost";
    assert!(said.contains(most), "{said}");
    assert!(std::fs::read_dir(lab.path("runs")).map_or(true, |mut runs| runs.next().is_none()), "no run was made");
}

#[test]
fn a_changed_suite_is_refused_before_anything_is_made_ready() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--limit", "1", "--agent", "noop", "--name", "r", "--no-baseline"]);
    lab.edit("repos/tiny/tiny/means.py", "total = 0.0", "total = 0");
    insta::assert_snapshot!(lab.fails(3, &["resume", "r"]), @r#"
    error: the repo of `tiny` has changed since the run was started
      hint: its attempts would no longer be comparable: undo the change, start a new run, or continue anyway with `--changed-suite`
    "#);
    lab.edit("repos/tiny/tiny/means.py", "total = 0  #", "total = 0.0  #");
    lab.edit("papers/tiny/paper.toml", "year = 2001", "year = 2002");
    insta::assert_snapshot!(lab.fails(3, &["resume", "r"]), @r#"
    error: the definition or gold of `tiny` has changed since the run was started
      hint: its attempts would no longer be comparable: undo the change, start a new run, or continue anyway with `--changed-suite`
    "#);
}

#[test]
fn every_command_accepts_papers_and_functions_in_the_same_forms() {
    let lab = Lab::new();
    for papers in [&["tiny"][..], &["-p", "tiny"], &["--papers", "tiny"]] {
        for verb in ["list", "check", "suite", "sample", "mask"] {
            lab.ok(&[&[verb], papers].concat());
        }
        let said = lab.fails(2, &[&["run", "--agent", "golden"], papers].concat());
        assert!(said.contains("there is no agent `golden`"), "{said}");
    }
    lab.fails(2, &["gold"]);
    let masked = |function: &str| lab.ok(&["mask", "tiny", "-f", function]).stdout;
    assert_eq!(masked("1"), masked("tiny/means.py::geometric"));
    assert_eq!(masked("0,1"), masked("tiny/means.py::geometric,arithmetic"));
    assert!(lab.fails(2, &["mask", "tiny", "-f", "geo"]).contains("has no function `geo`"));
    let ran = lab.ok(&["run", "-n", "1", "--limit", "1", "--agent", "noop,mutant:0.5", "--name", "r", "--no-baseline"]);
    assert!(ran.stdout.contains("noop") && ran.stdout.contains("mutant-0.5"), "{}", ran.stdout);
}

#[test]
fn a_missing_repo_is_reported_with_the_folder_where_the_repo_belongs() {
    let lab = Lab::new();
    lab.edit("papers/tiny/paper.toml", "repo = \"tiny\"", "repo = \"nowhere\"");
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"
    error: [lab]/papers/tiny/paper.toml: there is no repo `nowhere`
      hint: it belongs in `[lab]/repos/nowhere`
    "#);
}

#[test]
fn the_error_for_an_ambiguous_function_name_suggests_numbered_names() {
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "def geometric", "def arithmetic(values):\n    return 1\n\n\ndef geometric");
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"
    error: [lab]/papers/tiny/paper.toml: function `tiny/means.py::arithmetic`: tiny/means.py:5: `arithmetic` matches 2 functions
      hint: use `arithmetic#1` (line 5) or `arithmetic#2` (line 13)
    "#);
}

#[test]
fn a_selector_without_a_match_suggests_a_similar_function() {
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "def geometric", "def geometrical");
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"
    error: [lab]/papers/tiny/paper.toml: function `tiny/means.py::geometric`: tiny/means.py: no function `geometric` in this file
      hint: did you mean `geometrical`?
    "#);
}

#[test]
fn a_syntax_error_in_the_repo_is_refused_not_guessed_at() {
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "total = 0.0", "total = = 0.0");
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"
    error: [lab]/papers/tiny/paper.toml: function `tiny/means.py::arithmetic`: tiny/means.py:7: syntax error
      hint: a file that does not parse cannot be masked safely: correct it, or leave it out of the manifest
    "#);
}

#[test]
fn a_link_out_of_the_repo_is_refused() {
    let lab = Lab::new();
    std::os::unix::fs::symlink("/etc/passwd", lab.path("repos/tiny/link")).unwrap();
    insta::assert_snapshot!(lab.fails(3, &["run", "--agent", "noop"]), @r#"
    copying repo `tiny`
    error: [lab]/repos/tiny/link: a symbolic link points outside the repo, to `/etc/passwd`
      hint: replace the link by a copy of what it points to, or remove it: attempts cannot see anything outside the repo
    "#);
}

#[test]
fn an_unknown_paper_agent_or_model_is_reported_with_the_known_ones() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.fails(2, &["run", "-p", "tinny", "--agent", "noop"]), @r#"
    error: no paper `tinny` in `[lab]`
      hint: the papers are: tiny
    "#);
    insta::assert_snapshot!(lab.fails(2, &["run", "--agent", "golden"]), @r#"
    error: there is no agent `golden`
      hint: the agents are `react`, `fixed`, `single`, `ml-agent`, `gold`, `noop`, `forger`, `mutant:P`, `random`, `copycat`, `scripted:FILE`, `replies:FILE`; `cli:NAME` or `cli:FOLDER` for an external agent; `python:FILE.py:NAME` for a function in Python; `react:KEY=VALUE,...`, `fixed:KEY=VALUE,...` and `ml-agent:KEY=VALUE,...` for agents with settings
    "#);
    insta::assert_snapshot!(lab.fails(2, &["run", "--agent", "react"]), @r#"
    error: agent `react` needs a model
      hint: give one with `--model`, such as `--model openai:gpt-5-mini`; see `autoexperiment run --help`
    "#);
    insta::assert_snapshot!(lab.fails(2, &["run", "--agent", "react", "--model", "llama"]), @r#"
    error: `llama` does not say which provider has the model
      hint: give `openai:NAME`, `anthropic:NAME`, `gemini:NAME`, `scripted:FILE`, `replay:FILE`, or the name of a model behind `--base-url`
    "#);
    insta::assert_snapshot!(lab.fails(6, &["run", "--agent", "react", "--model", "openai:gpt-4o"]), @r#"
    error: no key for `openai:gpt-4o`: the variable `OPENAI_API_KEY` is not set
      hint: set `OPENAI_API_KEY`, or use `scripted:FILE`, or your own server (`--base-url`)
    "#);
    insta::assert_snapshot!(lab.fails(6, &["run", "--agent", "react", "--model", "x", "--base-url", "http://127.0.0.1:9/v1"]), @r#"
    error: the price of `x` at `http://127.0.0.1:9/v1/` is unknown
      hint: give dollars per million tokens read and written; `--price 0,0` says that it costs nothing
    "#);
}

#[test]
fn a_server_that_is_down_ends_the_run_before_anything_is_built() {
    let lab = Lab::new();
    let down = ["--model", "x", "--base-url", "http://127.0.0.1:9/v1", "--price", "0,0"];
    let said = lab.fails(11, &[&["run", "--agent", "react"], &down[..]].concat());
    assert!(
        said.contains("error: `x` cannot be asked: the provider failed: nothing answers at `127.0.0.1:9`"),
        "{said}"
    );
    assert!(said.contains("hint: start its server or correct `--base-url`") && !said.contains("baseline"), "{said}");
    assert!(std::fs::read_dir(lab.path("runs")).is_ok_and(|mut runs| runs.next().is_none()), "no run was made");
    let said = lab.fails(11, &["doctor", "--probe", "x", "--base-url", "http://127.0.0.1:9/v1", "--price", "0,0"]);
    assert!(said.contains("`x` does not answer: the provider failed: nothing answers at `127.0.0.1:9`"), "{said}");
}

#[test]
fn a_sample_that_does_not_exist_is_refused() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.fails(2, &["run", "--sample", "tiny_9", "--agent", "noop"]), @r#"
    error: paper `tiny` has no function 9
      hint: it has 4, numbered from 0: `autoexperiment list tiny`
    "#);
    insta::assert_snapshot!(lab.fails(2, &["run", "--sample", "tiny_2,3", "--agent", "noop"]), @r#"
    error: a function and one nested in it are never masked together
      hint: `autoexperiment list tiny` shows the functions
    "#);
    for verb in [&["run", "--agent", "noop"][..], &["sample"]] {
        let said = lab.fails(2, &[verb, &["-n", "7"]].concat());
        assert!(said.contains("there are no samples with 7 masked functions: there are at most 3"), "{said}");
        let said = lab.fails(2, &[verb, &["--units", "regions"]].concat());
        assert!(
            said.contains("none of the chosen papers lists regions to mask") && said.contains("leave out `--units`"),
            "{said}"
        );
    }
    let said = lab.fails(2, &["regions", "--tags", "nowhere/at_all.py"]);
    assert!(said.contains("there is no file or folder `nowhere/at_all.py`"), "{said}");
    let mut list = lab.command(&["list"]);
    let listed =
        list.env_remove("HOME").env_remove("XDG_CACHE_HOME").env_remove("AUTOEXPERIMENT_CACHE").output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    insta::assert_snapshot!(lab.fails(2, &["sample", "-n", "3..1"]), @r#"
    error: `3..1` is not a number of masked functions
      hint: give a number, a range with both ends included as `1..5`, or a list as `1,2,5`
    "#);
}

#[test]
fn a_repo_that_does_not_reproduce_its_gold_stops_the_run() {
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "return total / len(values)", "return 1.2 * total / len(values)");
    insta::assert_snapshot!(lab.fails(4, &["run", "--agent", "noop"]), @r#"
    copying repo `tiny`
    building env `tiny`
    warning: the repo of `tiny` has changed since its gold was recorded
    checking the gold baseline of `tiny`: 0 of 3 experiments
    error: paper `tiny` does not reproduce its gold here: experiment `means`: `arithmetic` is 5.0, gold 4.166666666666667
      hint: scores would be meaningless; see what differs (`autoexperiment doctor`), or record gold for this machine with `autoexperiment gold tiny`
    "#);
}

#[test]
fn a_paper_without_gold_says_how_to_record_it() {
    let lab = Lab::new();
    std::fs::remove_file(lab.path("papers/tiny/gold.json")).unwrap();
    insta::assert_snapshot!(lab.fails(4, &["run", "--agent", "noop"]), @r#"
    error: paper `tiny` has no curtailed gold
      hint: record it with `autoexperiment gold tiny`
    "#);
}

#[test]
fn gold_that_varies_or_is_not_a_number_is_refused() {
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "total = 0.0", "import os; total = float(os.urandom(1)[0])");
    let message = lab.fails(4, &["gold", "tiny", "--repeats", "6"]);
    assert!(message.contains("varies from"), "{message}");
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "total = 0.0", "total = float('nan')");
    let message = lab.fails(4, &["gold", "tiny"]);
    assert!(message.contains("experiment `means`"), "{message}");
}

#[test]
fn an_experiment_that_fails_for_gold_shows_its_error() {
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "total = 0.0", "raise ValueError('seven')");
    let message = lab.fails(4, &["gold", "tiny"]);
    assert!(message.contains("ValueError: seven") && message.contains("exit code 1"), "{message}");
}

#[test]
fn the_check_command_reports_a_gold_value_in_the_papers_text_and_a_missing_passage() {
    let lab = Lab::new();
    assert!(lab.ok(&["check"]).stdout.starts_with("tiny: ok\n"));
    lab.edit("papers/tiny/paper.md", "is their sum", "(here 4.167) is their sum");
    lab.edit("papers/tiny/paper.toml", "passages = [\"Spread\"]", "passages = [\"Dispersion\"]");
    let ran = lab.run(&["check"]);
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(lab.redact(&ran.stdout), @r#"
    tiny: wrong
      warning: [lab]/papers/tiny/gold.json: no gold of the full protocol of `means`: `run --full` needs it
        hint: record it with `autoexperiment gold tiny --full`
      error: [lab]/papers/tiny/paper.toml: function `tiny/spread.py::Spread.variance`: the text has no heading `Dispersion`
      error: [lab]/papers/tiny/paper.toml: function `tiny/spread.py::Spread.variance.square`: the text has no heading `Dispersion`
      error: [lab]/papers/tiny/paper.md:5: `4.167` is a gold value of experiment `means`
        hint: take results out of what agents read
      warning: [lab]/papers/tiny/evidence.json: mutants have not been measured
        hint: measure it with `autoexperiment verify tiny`
    "#);
}

#[test]
fn check_reports_a_repo_that_changed_after_gold_was_recorded() {
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "total = 0.0", "total = 0");
    insta::assert_snapshot!(lab.redact(&lab.ok(&["check"]).stdout), @r#"
    tiny: ok
      warning: [lab]/papers/tiny/gold.json: no gold of the full protocol of `means`: `run --full` needs it
        hint: record it with `autoexperiment gold tiny --full`
      warning: [lab]/papers/tiny/gold.json: the repo has changed since gold was recorded
      warning: [lab]/papers/tiny/dependencies.json: the repo has changed since the dependency matrix was measured
        hint: measure it with `autoexperiment verify tiny`
      warning: [lab]/papers/tiny/evidence.json: mutants have not been measured
        hint: measure it with `autoexperiment verify tiny`
    "#);
}

#[test]
fn check_names_a_function_in_a_protected_file_and_continues_with_the_next_paper() {
    let lab = Lab::new();
    crate::support::copy(&lab.path("papers/tiny"), &lab.path("papers/a-broken-one"));
    lab.edit("papers/a-broken-one/paper.toml", "year = 2001", "year = 'x'");
    lab.edit("papers/tiny/paper.toml", "\"data.json\"", "\"tiny/*.py\"");
    let ran = lab.run(&["check"]);
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(lab.redact(&ran.stdout), @r#"
    a-broken-one: wrong
      error: [lab]/papers/a-broken-one/paper.toml:3: invalid type: string "x", expected u16
    tiny: wrong
      warning: [lab]/papers/tiny/gold.json: no gold of the full protocol of `means`: `run --full` needs it
        hint: record it with `autoexperiment gold tiny --full`
      error: [lab]/papers/tiny/paper.toml: function `tiny/means.py::arithmetic` is in a protected file
        hint: verification ignores an agent's changes to protected files: take the file out of `protected`, or leave the function out
      error: [lab]/papers/tiny/paper.toml: function `tiny/means.py::geometric` is in a protected file
        hint: verification ignores an agent's changes to protected files: take the file out of `protected`, or leave the function out
      error: [lab]/papers/tiny/paper.toml: function `tiny/spread.py::Spread.variance` is in a protected file
        hint: verification ignores an agent's changes to protected files: take the file out of `protected`, or leave the function out
      error: [lab]/papers/tiny/paper.toml: function `tiny/spread.py::Spread.variance.square` is in a protected file
        hint: verification ignores an agent's changes to protected files: take the file out of `protected`, or leave the function out
      warning: [lab]/papers/tiny/evidence.json: mutants have not been measured
        hint: measure it with `autoexperiment verify tiny`
    "#);
}

#[test]
fn escape_sequences_in_untrusted_text_do_not_reach_the_terminal() {
    let lab = Lab::new();
    let message = lab.fails(2, &["run", "--agent", "\u{1b}[2Jgold"]);
    assert!(!message.contains('\u{1b}'), "{message:?}");
}

#[test]
fn a_closed_stderr_does_not_change_the_exit_code() {
    let lab = Lab::new();
    let mut child = lab.command(&["run", "--agent", "golden"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_run_name_that_is_not_a_plain_file_name_is_refused() {
    let lab = Lab::new();
    for name in ["../x", "a/b", ""] {
        let message = lab.fails(2, &["run", "--agent", "noop", &format!("--name={name}")]);
        assert!(message.contains("is not a valid name for a run"), "{message}");
    }
}

#[test]
fn a_folder_that_is_not_a_run_does_not_hide_runs_from_a_report() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r"]);
    lab.write("runs/other/notes.txt", "");
    let ran = lab.ok(&["report", "runs/other", "runs/r"]);
    assert!(ran.stdout.contains("left out: `runs/other` is not a run"), "{}", ran.stdout);
    assert!(ran.stdout.contains("r/noop"), "{}", ran.stdout);
    lab.fails(7, &["report", "runs/other"]);
}

#[test]
fn impossible_numbers_in_options_of_run_are_refused_before_a_folder_is_made() {
    let lab = Lab::new();
    for wrong in [
        &["-k", "4294967295"][..],
        &["-k", "0"],
        &["-k", "1000000", "-n", "1..3"],
        &["-j", "0"],
        &["-j", "4294967295"],
        &["--limit", "0"],
        &["--limit", "99999999999"],
        &["--steps", "0"],
        &["--steps", "4294967295"],
        &["--tries", "0"],
        &["--tokens", "0"],
        &["--max-tokens", "0"],
        &["-n", "1..4294967295"],
    ] {
        let mut arguments = vec!["run", "--agent", "noop", "--name", "r"];
        arguments.extend(wrong);
        let message = lab.fails(2, &arguments);
        assert!(!message.contains("panicked"), "{wrong:?}: {message}");
        assert!(!lab.path("runs/r").exists(), "{wrong:?}");
    }
    lab.ok(&["run", "-n", "1", "--limit", "1", "--agent", "noop", "--name", "r", "--no-baseline"]);
    for wrong in ["0", "4294967295"] {
        lab.fails(2, &["resume", "r", "-j", wrong]);
    }
}
