//! Stores that are broken, cut off, or incomplete: they still give a report, which says what is missing.

use std::sync::LazyLock;

use crate::support::{Lab, copy};
use serde_json::Value;

/// Copies a lab with a run of four samples and two agents, which is made once.
fn lab() -> Lab {
    static MADE: LazyLock<Lab> = LazyLock::new(|| {
        let lab = Lab::new();
        lab.ok(&["run", "-n", "1", "--agent", "gold", "--agent", "noop", "--name", "r"]);
        lab
    });
    let lab = Lab::new();
    copy(&MADE.path("runs"), &lab.path("runs"));
    // Make the copied run refer to this lab's suite.
    let [made, own] = [&*MADE, &lab].map(|lab| lab.path("").display().to_string());
    lab.edit("runs/r/run.json", made.trim_end_matches('/'), own.trim_end_matches('/'));
    lab
}

/// Every read-only verb, on run `r`: each must find something to show.
const LOOKS: [&[&str]; 21] = [
    &["report", "r"],
    &["report", "r", "--csv"],
    &["report", "attempts", "r"],
    &["report", "values", "r"],
    &["report", "behaviour", "r"],
    &["report", "difficulty", "r"],
    &["report", "r", "--html", "report.html"],
    &["report", "r", "--figures", "figures"],
    &["compare", "r"],
    &["status", "r"],
    &["show", "r", "tiny_0", "--agent", "gold"],
    &["power", "--diff", "0.1", "--run", "r", "--agent", "gold"],
    &["pick", "r", "--verifier", "oracle", "--verifier", "majority"],
    &["export", "r", "--format", "inspect", "-o", "out"],
    &["export", "r", "--format", "csv", "-o", "out"],
    &["export", "r", "--format", "atif", "-o", "out"],
    &["export", "r", "--format", "predictions", "-o", "out"],
    &["export", "r", "--format", "traj", "-o", "out"],
    &["export", "r", "--format", "parquet", "-o", "out"],
    &["export", "r", "--format", "jsonl", "-o", "out"],
    &["export", "r", "--format", "harbor", "-o", "out"],
];

/// Makes a report, which must succeed. Returns its number of counted attempts, and its notes.
fn report(lab: &Lab, arguments: &[&str]) -> (u64, String) {
    let mut all = vec!["report", "--json"];
    all.extend(arguments);
    let report: Value = serde_json::from_str(&lab.ok(&all).stdout).unwrap();
    let rows = report["rows"].as_array().unwrap().iter();
    let attempts = rows.filter(|row| !row["n"].is_null()).map(|row| row["attempts"].as_u64().unwrap()).sum();
    (attempts, report["notes"].to_string())
}

#[test]
fn broken_and_torn_lines_are_left_out_and_named() {
    let lab = lab();
    let whole = lab.read("runs/r/attempts.jsonl");
    let mut lines: Vec<&str> = whole.lines().collect();
    lines[2] = "{\"agent\": garbage";
    let text = lines.join("\n");
    lab.write("runs/r/attempts.jsonl", &text[..text.len() - 300]);
    let (attempts, notes) = report(&lab, &["r"]);
    assert_eq!(attempts, 6);
    assert!(notes.contains("line 3 of `attempts.jsonl` is broken"), "{notes}");
    assert!(notes.contains("the last line of `attempts.jsonl` is cut off"), "{notes}");
    assert!(notes.contains(" stored, "), "{notes}");
    // Comparing, `report behaviour` and `show` work on the remaining lines.
    lab.ok(&["compare", "r"]);
    lab.ok(&["report", "behaviour", "r"]);
    lab.ok(&["show", "r", "tiny_0", "--agent", "gold"]);
}

#[test]
fn every_command_that_reads_a_damaged_store_succeeds_and_names_the_missing_parts() {
    let lab = lab();
    let whole = lab.read("runs/r/attempts.jsonl");
    let lines: Vec<&str> = whole.lines().collect();
    // Take the lines of both agents at the same sample, so that there is something to compare.
    let of = |agent: &str| {
        let is_its =
            |line: &&&str| line.contains(&format!("\"agent\":\"{agent}\"")) && line.contains("\"sample\":\"tiny_0\"");
        *lines.iter().find(is_its).unwrap()
    };
    let (gold, noop) = (of("gold"), of("noop"));
    let cut = &lines[7][..lines[7].len() / 2];
    for (what, text, told) in [
        ("cut off in a line", format!("{gold}\n{noop}\n{cut}"), "is cut off"),
        ("a line of garbage", format!("{gold}\n\u{1}garbage \u{1b}[2J\n{noop}\n"), "line 2 of `attempts.jsonl`"),
        ("a line in a line", format!("{gold}\n{cut}{noop}\n{noop}\n"), "line 2 of `attempts.jsonl`"),
    ] {
        lab.write("runs/r/attempts.jsonl", &text);
        for look in LOOKS {
            let ran = lab.run(look);
            assert_eq!(ran.code, 0, "{what}: {look:?}\n{}\n{}", ran.stdout, ran.stderr);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            // These tables are for programs, and need not say that lines are missing.
            let is_data = look.iter().any(|part| ["--csv", "attempts", "values"].contains(part));
            // Lines are wrapped to fit a terminal.
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(is_data || said.contains(told), "{what}: {look:?}\n{said}");
            assert!(!said.contains('\u{1b}'), "{what}: {look:?}\n{said:?}");
            assert_eq!(lab.read("runs/r/attempts.jsonl"), text, "{what}: {look:?} has changed the store");
        }
    }
}

#[test]
fn broken_files_of_verifier_choices_and_votes_are_reported() {
    let lab = lab();
    lab.ok(&["pick", "r", "--verifier", "oracle"]);
    let whole = lab.read("runs/r/choices.jsonl");
    let lines: Vec<&str> = whole.lines().collect();
    let cut = &lines[1][..lines[1].len() / 2];
    lab.write("runs/r/choices.jsonl", &format!("{}\ngarbage\n{cut}", lines[0]));
    let told = ["left out of `choices.jsonl`: 1 broken line", "the last line of `choices.jsonl` is cut off"];
    let notes = report(&lab, &["r"]).1;
    assert!(told.iter().all(|told| notes.contains(told)), "{notes}");
    lab.ok(&["report", "r", "--html", "report.html"]);
    let page = lab.read("report.html");
    assert!(page.contains("1 broken line"), "{page:.3000}");
    let status = lab.ok(&["status", "r"]);
    assert!(told.iter().all(|told| status.stderr.contains(told)), "{}", status.stderr);
    // Missing choices are made again, and the new lines are not damaged by the line that was cut off.
    lab.ok(&["pick", "r", "--verifier", "oracle"]);
    assert_eq!(lab.read("runs/r/choices.jsonl").lines().filter(|line| line.ends_with('}')).count(), lines.len());

    // A file that cannot be read at all is reported as well.
    std::fs::create_dir(lab.path("runs/r/votes.jsonl")).unwrap();
    let status = lab.ok(&["status", "r"]);
    assert!(status.stderr.contains("the cost of the verifiers is unknown"), "{}", status.stderr);
    assert!(status.stdout.contains("8 of 8 attempts finished"), "{}", status.stdout);
    report(&lab, &["r"]);
}

#[test]
fn missing_parts_of_a_store_are_reported_even_if_the_export_cannot_be_written() {
    let lab = lab();
    let whole = lab.read("runs/r/attempts.jsonl");
    lab.write("runs/r/attempts.jsonl", &whole[..whole.len() - 300]);
    lab.write("file", "");
    let said = lab.fails(5, &["export", "r", "--format", "traj", "-o", "file/out"]);
    assert!(said.contains("the last line of `attempts.jsonl` is cut off"), "{said}");
}

#[test]
fn an_empty_or_half_made_run_says_what_is_missing() {
    let lab = lab();
    let first = lab.read("runs/r/attempts.jsonl").lines().next().unwrap().to_owned() + "\n";
    lab.write("runs/r/attempts.jsonl", &first);
    let (attempts, notes) = report(&lab, &["r"]);
    assert_eq!(attempts, 1);
    assert!(notes.contains("1 of 4 planned attempts stored, 3 missing"), "{notes}");
    assert!(notes.contains("0 of 4 planned attempts stored, 4 missing"), "{notes}");
    lab.ok(&["report", "difficulty", "r"]);
    lab.write("runs/r/attempts.jsonl", "");
    for view in ["overview", "lines", "behaviour", "difficulty", "leaderboard", "attempts", "values"] {
        lab.ok(&["report", view, "r"]);
    }
    lab.ok(&["report", "r", "--csv"]);
    assert!(report(&lab, &["r"]).1.contains("no attempt has been stored yet"));
    std::fs::remove_file(lab.path("runs/r/attempts.jsonl")).unwrap();
    assert_eq!(report(&lab, &["r"]).0, 0);
    assert!(lab.ok(&["status", "r"]).stdout.starts_with("r: not running, 0 of 8 attempts finished"));
}

#[test]
fn attempts_are_reported_without_their_run_file() {
    let lab = lab();
    let whole = lab.read("runs/r/run.json");
    lab.write("runs/r/run.json", &whole[..whole.len() / 2]);
    let (attempts, notes) = report(&lab, &["r"]);
    assert_eq!(attempts, 8);
    assert!(notes.contains("the run's plan is unknown") && notes.contains("broken run file"), "{notes}");
    std::fs::remove_file(lab.path("runs/r/run.json")).unwrap();
    assert_eq!(report(&lab, &["r"]).0, 8);
    lab.ok(&["status", "r"]);
    // Without its `run.json`, it is unknown whether a run's attempts are comparable with those of another run.
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "other"]);
    assert!(lab.fails(2, &["compare", "r", "other"]).contains("so it is not known how its attempts were measured"));
    lab.ok(&["compare", "r", "other", "--force"]);
    // Without `run.json`, a run's settings are lost. So the run cannot be exported, and `pick` does not know where the
    // suite is unless `--suite` says so.
    assert!(lab.fails(7, &["export", "r", "--format", "csv", "-o", "out"]).contains("is not a run"));
    assert!(lab.fails(2, &["pick", "r", "--verifier", "oracle"]).contains("--suite DIR"));
    lab.ok(&["pick", "r", "--verifier", "oracle", "--suite", "."]);
    lab.ok(&["power", "--diff", "0.1", "--run", "r", "--agent", "gold"]);
    lab.ok(&["show", "r", "tiny_0", "--agent", "gold"]);
    lab.ok(&["report", "r", "--html", "report.html"]);
}

#[test]
fn a_report_on_several_runs_leaves_out_a_run_written_by_a_newer_version() {
    let lab = lab();
    lab.ok(&["run", "--sample", "tiny_0", "--agent", "gold", "--name", "newer"]);
    lab.edit("runs/newer/run.json", "\"format\": 1", "\"format\": 2");
    let (attempts, notes) = report(&lab, &["newer", "r"]);
    assert_eq!(attempts, 8);
    assert!(notes.contains("the run is of format 2, this version reads format 1"), "{notes}");
    lab.fails(7, &["report", "newer"]);
    lab.fails(2, &["report", "newer", "nowhere"]);
    // Every command refuses a run of a newer version that is given alone.
    for look in LOOKS {
        let of_newer: Vec<&str> = look.iter().map(|&part| if part == "r" { "newer" } else { part }).collect();
        let said = lab.fails(7, &of_newer);
        assert!(said.contains("the run is of format 2"), "{look:?}: {said}");
    }
}

#[test]
fn a_run_can_be_reported_after_its_paper_was_removed() {
    let lab = lab();
    std::fs::remove_dir_all(lab.path("papers/tiny")).unwrap();
    assert_eq!(report(&lab, &["r"]).0, 8);
    lab.ok(&["report", "behaviour", "r"]);
    let said = lab.ok(&["report", "difficulty", "r"]).stdout;
    assert!(said.contains("`tiny` is not in the suite any more"), "{said}");
    let needs_paper = |look: &[&str]| look[0] == "pick" || look.contains(&"harbor");
    for look in LOOKS.iter().filter(|look| !needs_paper(look)) {
        lab.ok(look);
    }
    // Without the paper, no Harbor task can be made.
    let said = lab.fails(5, &["export", "r", "--format", "harbor", "-o", "out"]);
    assert!(said.contains("papers/tiny/paper.toml"), "{said}");
    // Verifiers leave out the samples of missing papers, and here no other sample is left.
    assert!(lab.fails(5, &["pick", "r", "--verifier", "oracle"]).contains("its samples are left out"));
}

#[test]
fn a_single_attempt_has_every_kind_of_report() {
    let lab = Lab::new();
    lab.ok(&["run", "--sample", "tiny_0", "--agent", "gold", "--name", "r"]);
    assert_eq!(report(&lab, &["r"]).0, 1);
    lab.ok(&["report", "behaviour", "r"]);
    assert!(lab.ok(&["report", "difficulty", "r"]).stdout.contains("no decline can be fitted"));
    // There is only one agent, so nothing to compare.
    for look in LOOKS.iter().filter(|look| look[0] != "compare") {
        lab.ok(look);
    }
    assert!(lab.fails(2, &["compare", "r"]).contains("nothing to compare"));
}
