//! `autoexperiment suite`: the table of a suite's papers, printed or written into a README.

use std::fs;
use std::process::Command;

use crate::support::{Lab, PROGRAM, copy};

const MARKS: &str = "# Title\n\n<!-- suite table: begin -->\nold\n<!-- suite table: end -->\n\nrest\n";

/// Makes a lab of the tiny suite's files without building its env or recording its gold, because nothing here needs
/// them.
fn lab() -> Lab {
    let lab = Lab::bare();
    copy("tests/trees/tiny".as_ref(), &lab.path(""));
    lab
}

#[test]
fn the_suite_page_of_the_docs_contains_the_current_output_of_the_command_suite() {
    let root = env!("CARGO_MANIFEST_DIR");
    let ran = Command::new(PROGRAM).args(["suite", "--markdown", "--suite", root]).output().unwrap();
    assert!(ran.status.success());
    let page = fs::read_to_string(format!("{root}/docs/suite.md")).unwrap();
    let begin = page.split_once("<!-- suite table: begin -->\n").unwrap().1;
    let table = begin.split_once("<!-- suite table: end -->").unwrap().0;
    assert_eq!(
        table.trim(),
        String::from_utf8(ran.stdout).unwrap().trim(),
        "type `autoexperiment suite --readme docs/suite.md`"
    );
}

#[test]
fn control_characters_of_a_manifest_reach_no_terminal() {
    let lab = lab();
    lab.edit("papers/tiny/paper.toml", "\"Tiny Means\"", "\"Tiny\\u001b]0;x\\u0007\\u001b[2J Means\"");
    lab.edit("papers/tiny/paper.toml", "\"Nobody\"", "\"No\\u009bbody\\nforged line\"");
    let listed = lab.ok(&["list", "tiny"]).stdout;
    assert!(listed.chars().all(|c| c == '\n' || !c.is_control()), "{listed:?}");
    let first = r"Tiny\u{1b}]0;x\u{7}\u{1b}[2J Means, No\u{9b}body\nforged line (2001)";
    assert_eq!(listed.lines().next(), Some(first));
}

#[test]
fn the_suite_command_writes_its_table_between_the_marks_of_a_readme_only_if_it_changed() {
    let lab = lab();
    lab.write("README.md", MARKS);
    let written = lab.ok(&["suite", "--readme", "README.md"]);
    assert_eq!((written.stdout.as_str(), written.stderr.as_str()), ("", "written: README.md\n"));
    let readme = lab.read("README.md");
    assert!(readme.starts_with("# Title\n\n<!-- suite table: begin -->\n\n| paper |"), "{readme}");
    assert!(readme.ends_with("\n\n<!-- suite table: end -->\n\nrest\n"), "{readme}");
    assert!(readme.contains(lab.ok(&["suite", "--markdown"]).stdout.trim()));
    assert_eq!(lab.ok(&["suite", "--readme", "README.md"]).stderr, "unchanged: README.md\n");
}

#[test]
fn the_command_suite_refuses_a_readme_without_marks_for_its_table_and_leaves_it_unchanged() {
    let lab = lab();
    let broken = MARKS.replace("<!-- suite table: end -->\n", "");
    lab.write("README.md", &broken);
    let said = lab.fails(2, &["suite", "--readme", "README.md"]);
    insta::assert_snapshot!(said, @r"
    error: README.md: no line `<!-- suite table: end -->`
      hint: put a line `<!-- suite table: begin -->` and below it a line `<!-- suite table: end -->` where you want the table, each once
    ");
    assert_eq!(lab.read("README.md"), broken);
    lab.fails(2, &["suite", "--readme", "missing.md"]);
}

#[test]
fn missing_and_outdated_measurements_are_shown_as_a_dash() {
    let lab = lab();
    let row = |lab: &Lab| -> serde_json::Value {
        serde_json::from_str::<Vec<serde_json::Value>>(&lab.ok(&["suite", "--json"]).stdout).unwrap().remove(0)
    };
    assert_eq!(row(&lab)["containment"], serde_json::Value::Null);
    assert_eq!(row(&lab)["seconds"], serde_json::Value::Null);
    let functions = lab.read("papers/tiny/paper.toml");
    let functions: serde_json::Map<String, serde_json::Value> = functions
        .lines()
        .filter_map(|line| line.strip_prefix("at = \"")?.strip_suffix('"'))
        .map(|at| {
            let one = serde_json::json!({"mutants": 4, "killed": 3, "equivalent": 0, "survivors": ["a"],
                "containment": 0.125, "contained_in": "x.py::f"});
            (at.to_owned(), one)
        })
        .collect();
    let digest = autoexperiment::workspace::repo_digest(&lab.path("repos/tiny")).unwrap();
    let evidence = serde_json::json!({"format": 1, "repo": digest, "functions": functions});
    lab.write("papers/tiny/evidence.json", &evidence.to_string());
    assert_eq!((&row(&lab)["containment"], &row(&lab)["mutation_score"]), (&0.125.into(), &0.75.into()));
    let dependencies = serde_json::json!({"format": 1, "repo": digest, "needs": {"means": []}});
    lab.write("papers/tiny/dependencies.json", &dependencies.to_string());
    // The dependency matrix lacks two experiments. Such experiments count as tests of every sample.
    assert_eq!(row(&lab)["tests"][0], 2.0);
    lab.write("repos/tiny/new.txt", "changed");
    assert_eq!((&row(&lab)["containment"], &row(&lab)["tests"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let said = lab.ok(&["suite", "--json"]).stderr;
    assert_eq!(
        lab.redact(&said),
        "left out: [lab]/papers/tiny/evidence.json: measured on another state of the repo\nleft out: [lab]/papers/tiny/dependencies.json: measured on another state of the repo\n"
    );
}

#[test]
fn a_comment_in_fenced_code_is_not_a_passage_of_the_paper() {
    let lab = lab();
    let text = lab.read("papers/tiny/paper.md");
    lab.write("papers/tiny/paper.md", &format!("{text}\n```\n# Dispersion\n```\n"));
    lab.edit("papers/tiny/paper.toml", "passages = [\"Spread\"]", "passages = [\"Dispersion\"]");
    let ran = lab.run(&["check"]);
    assert!(ran.code == 3 && ran.stdout.contains("the text has no heading `Dispersion`"), "{}", ran.stdout);
}

#[test]
fn every_bundled_papers_gold_matrix_and_evidence_match_the_current_state_of_its_repo() {
    let root = env!("CARGO_MANIFEST_DIR");
    let ran = Command::new(PROGRAM).args(["check", "--suite", root]).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success() && !said.contains("warning"), "{said}");
}

#[test]
fn every_bundled_papers_reported_results_have_three_to_forty_values() {
    for paper in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/papers")).unwrap() {
        let gold = fs::read_to_string(paper.unwrap().path().join("gold.json")).unwrap();
        let gold: serde_json::Value = serde_json::from_str(&gold).unwrap();
        for (protocol, experiments) in gold["results"].as_object().unwrap() {
            for (id, experiment) in experiments.as_object().unwrap() {
                let count = values(&experiment["result"]);
                let is_hidden = id.starts_with("cases-");
                assert!((3..=40).contains(&count) || is_hidden && count <= 120, "{protocol} {id}: {count}");
            }
        }
    }
}

/// Counts the single values in a result.
fn values(result: &serde_json::Value) -> usize {
    match result {
        serde_json::Value::Array(items) => items.iter().map(values).sum(),
        serde_json::Value::Object(items) => items.values().map(values).sum(),
        _ => 1,
    }
}

#[test]
fn list_shows_the_number_of_samples_of_each_paper_for_each_n() {
    let lab = lab();
    insta::assert_snapshot!(lab.redact(&lab.ok(&["list", "--family", "masked"]).stdout), @"
     paper  title       checks  n=0  n=1  n=2  n=3
     tiny   Tiny Means       3    1    4    5    2

    samples of each paper by n, the number of masked functions
    suite: `[lab]`
    ");
    let listed = lab.ok(&["list", "--family", "masked", "tiny", "--json"]).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["samples"], serde_json::json!({"0": 1, "1": 4, "2": 5, "3": 2}));
    let said = lab.fails(2, &["list", "--family", "riddles"]);
    assert!(said.starts_with("error: there is no family `riddles`"), "{said}");
}
