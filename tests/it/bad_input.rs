//! Bad input: a clear error that says what was wrong, where, and what to do, with its own exit code.

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
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"error: [lab]/papers/tiny/paper.toml:11: unknown field `descripton`, expected one of `at`, `description`, `passages`, `equivalent`"#);
}

#[test]
fn a_missing_repo_is_named_with_where_it_belongs() {
    let lab = Lab::new();
    lab.edit("papers/tiny/paper.toml", "repo = \"tiny\"", "repo = \"nowhere\"");
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"
    error: [lab]/papers/tiny/paper.toml: there is no repo `nowhere`
      hint: it belongs in `[lab]/repos/nowhere`
    "#);
}

#[test]
fn a_selector_of_two_functions_says_how_to_tell_them_apart() {
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "def geometric", "def arithmetic(values):\n    return 1\n\n\ndef geometric");
    insta::assert_snapshot!(lab.fails(3, &["list"]), @r#"
    error: [lab]/papers/tiny/paper.toml: function `tiny/means.py::arithmetic`: tiny/means.py:5: `arithmetic` matches 2 functions
      hint: use `arithmetic#1` (line 5) or `arithmetic#2` (line 13)
    "#);
}

#[test]
fn a_selector_of_no_function_says_what_there_is() {
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
      hint: replace the link by a copy of what it points to, or remove it: attempts see nothing outside the repo
    "#);
}

#[test]
fn an_unknown_paper_agent_or_model_is_named_with_those_there_are() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.fails(2, &["run", "-p", "tinny", "--agent", "noop"]), @r#"
    error: no paper `tinny` in `[lab]`
      hint: the papers are: tiny
    "#);
    insta::assert_snapshot!(lab.fails(2, &["run", "--agent", "golden"]), @r#"
    error: there is no agent `golden`
      hint: the agents are `react`, `fixed`, `single`, `gold`, `noop`, `forger`, `mutant:P`, `random`, `copycat`, `scripted:FILE`; `cli:NAME` or `cli:FOLDER` for programs of their own; `python:FILE.py:NAME` for a function in Python; `react:KEY=VALUE,...` and `fixed:KEY=VALUE,...` with settings of their own
    "#);
    insta::assert_snapshot!(lab.fails(2, &["run", "--agent", "react"]), @r#"
    error: agent `react` needs a model
      hint: name one with `--model`, as `--model openai:gpt-5-mini`; see `autoexperiment run --help`
    "#);
    insta::assert_snapshot!(lab.fails(2, &["run", "--agent", "react", "--model", "llama"]), @r#"
    error: `llama` does not say which provider has the model
      hint: give `openai:NAME`, `anthropic:NAME`, `gemini:NAME`, `scripted:FILE`, `replay:FILE`, or the name of a model behind `--base-url`
    "#);
    insta::assert_snapshot!(lab.fails(6, &["run", "--agent", "react", "--model", "openai:gpt-4o"]), @r#"
    error: no key for `openai:gpt-4o`: the variable `OPENAI_API_KEY` is not set
      hint: set `OPENAI_API_KEY`, or use `scripted:FILE`, or a server of your own by `--base-url`
    "#);
    insta::assert_snapshot!(lab.fails(6, &["run", "--agent", "react", "--model", "x", "--base-url", "http://127.0.0.1:9/v1"]), @r#"
    error: the price of `x` at `http://127.0.0.1:9/v1/` is unknown
      hint: give dollars per million tokens read and written; `--price 0,0` says that it costs nothing
    "#);
}

#[test]
fn a_server_that_is_down_ends_the_run_before_anything_is_built_for_it() {
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
    insta::assert_snapshot!(lab.fails(2, &["run", "-n", "7", "--agent", "noop"]), @r#"
    error: there are no such samples
      hint: `autoexperiment list` shows how many there are
    "#);
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
      hint: no score would mean anything; see what differs (`autoexperiment doctor`), or record gold for this machine with `autoexperiment gold tiny`
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
fn gold_that_varies_or_is_no_number_is_refused() {
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
fn check_finds_gold_in_the_text_and_a_missing_passage() {
    let lab = Lab::new();
    assert!(lab.ok(&["check"]).stdout.starts_with("tiny: ok\n"));
    lab.edit("papers/tiny/paper.md", "is their sum", "(here 4.167) is their sum");
    lab.edit("papers/tiny/paper.toml", "passages = [\"Spread\"]", "passages = [\"Dispersion\"]");
    let ran = lab.run(&["check"]);
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(lab.redact(&ran.stdout), @r#"
    tiny: wrong
      error: [lab]/papers/tiny/paper.toml: function `tiny/spread.py::Spread.variance`: the text has no heading `Dispersion`
      error: [lab]/papers/tiny/paper.toml: function `tiny/spread.py::Spread.variance.square`: the text has no heading `Dispersion`
      error: [lab]/papers/tiny/paper.md:5: `4.167` is a gold value of experiment `means`
        hint: take results out of what agents read
      warning: [lab]/papers/tiny/evidence.json: mutants have not been measured
        hint: measure it with `autoexperiment verify tiny`
    "#);
}

#[test]
fn check_says_when_the_repo_is_no_longer_that_of_its_gold() {
    let lab = Lab::new();
    lab.edit("repos/tiny/tiny/means.py", "total = 0.0", "total = 0");
    insta::assert_snapshot!(lab.redact(&lab.ok(&["check"]).stdout), @r#"
    tiny: ok
      warning: [lab]/papers/tiny/gold.json: the repo has changed since gold was recorded
      warning: [lab]/papers/tiny/dependencies.json: the repo has changed since the dependency matrix was measured
      warning: [lab]/papers/tiny/evidence.json: mutants have not been measured
        hint: measure it with `autoexperiment verify tiny`
    "#);
}

#[test]
fn check_names_a_function_in_a_protected_file_and_goes_on_to_the_next_paper() {
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
      error: [lab]/papers/tiny/paper.toml: function `tiny/means.py::arithmetic` is in a protected file
        hint: an agent's changes to protected files are not taken over: unprotect it or leave the function out
      error: [lab]/papers/tiny/paper.toml: function `tiny/means.py::geometric` is in a protected file
        hint: an agent's changes to protected files are not taken over: unprotect it or leave the function out
      error: [lab]/papers/tiny/paper.toml: function `tiny/spread.py::Spread.variance` is in a protected file
        hint: an agent's changes to protected files are not taken over: unprotect it or leave the function out
      error: [lab]/papers/tiny/paper.toml: function `tiny/spread.py::Spread.variance.square` is in a protected file
        hint: an agent's changes to protected files are not taken over: unprotect it or leave the function out
      warning: [lab]/papers/tiny/evidence.json: mutants have not been measured
        hint: measure it with `autoexperiment verify tiny`
    "#);
}

#[test]
fn text_of_a_stranger_reaches_the_terminal_without_its_escapes() {
    let lab = Lab::new();
    let message = lab.fails(2, &["run", "--agent", "\u{1b}[2Jgold"]);
    assert!(!message.contains('\u{1b}'), "{message:?}");
}

#[test]
fn a_reader_of_stderr_that_has_gone_away_changes_nothing() {
    let lab = Lab::new();
    let mut child = lab.command(&["run", "--agent", "golden"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_run_has_a_plain_name() {
    let lab = Lab::new();
    for name in ["../x", "a/b", ""] {
        let message = lab.fails(2, &["run", "--agent", "noop", &format!("--name={name}")]);
        assert!(message.contains("is no name for a run"), "{message}");
    }
}

#[test]
fn a_folder_that_is_no_run_hides_no_other_from_a_report() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r"]);
    lab.write("runs/other/notes.txt", "");
    let ran = lab.ok(&["report", "runs/other", "runs/r"]);
    assert!(ran.stdout.contains("left out: `runs/other` is no run"), "{}", ran.stdout);
    assert!(ran.stdout.contains("r/noop"), "{}", ran.stdout);
    lab.fails(7, &["report", "runs/other"]);
}

#[test]
fn numbers_that_no_run_can_have_are_refused_before_a_folder_is_made() {
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
