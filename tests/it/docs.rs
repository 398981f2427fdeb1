//! The documentation: its links lead somewhere, every page is in the site, and the commands on its pages work.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::support::{Lab, PROGRAM};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Returns the pages: README, DESIGN and those in docs.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("DESIGN.md")];
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|it| it == "md")));
    pages.sort();
    pages
}

/// Makes an anchor of a heading, as GitHub and the site do.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

#[test]
fn links_between_pages_lead_to_files_and_headings() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for found in link.captures_iter(&text) {
            let target = &found[1];
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').map_or((target, None), |(file, it)| (file, Some(it)));
            let file = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let leads = match heading {
                None => file.exists(),
                Some(wanted) => fs::read_to_string(&file).is_ok_and(|text| {
                    text.lines()
                        .filter(|line| line.starts_with('#'))
                        .any(|it| anchor(it.trim_start_matches('#').trim()) == wanted)
                }),
            };
            if !leads {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_is_in_the_site() {
    let site = fs::read_to_string(root().join("mkdocs.yml")).unwrap();
    let listed: BTreeSet<String> =
        Regex::new(r"(?m): ([\w-]+\.md)$").unwrap().captures_iter(&site).map(|it| it[1].to_owned()).collect();
    let there = pages().into_iter().filter(|page| page.parent().unwrap().ends_with("docs"));
    let there: BTreeSet<String> = there.map(|page| page.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(listed, there);
}

/// Returns the commands of a page's shell blocks, except those that need something that tests do not have.
fn commands(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let blocks = Regex::new(r"(?s)```sh\n(.*?)```").unwrap();
    let lines = blocks.captures_iter(&text).flat_map(|it| it[1].lines().map(str::to_owned).collect::<Vec<_>>());
    lines
        .filter(|line| !line.starts_with("pip ") && !line.starts_with("export ") && !line.contains("--model"))
        .collect()
}

/// Runs a page's commands in one shell, in an empty folder.
fn works(page: &str, leave_out: &str) {
    let lab = Lab::bare();
    let lines: Vec<String> =
        commands(page).into_iter().filter(|line| leave_out.is_empty() || !line.contains(leave_out)).collect();
    let script = format!("set -e\nautoexperiment() {{ {PROGRAM} \"$@\"; }}\n{}", lines.join("\n"));
    let mut command = std::process::Command::new("bash");
    for (name, value) in lab.command(&[]).get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let output = command.args(["-c", &script]).current_dir(lab.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(lines.len() > 2 && output.status.success(), "{page}: {said}");
}

#[test]
fn the_commands_of_the_start_work() {
    // Commands that build the env of a bundled paper are in the next test.
    let lab = Lab::bare();
    lab.ok(&["list"]);
    let diff = lab.ok(&["mask", "kmeanspp", "-f", "3"]).stdout;
    assert!(diff.contains("raise NotImplementedError"), "{diff}");
    let all = commands("index.md");
    assert!(all.iter().any(|line| line == "autoexperiment mask kmeanspp -f 3"), "{all:?}");
}

/// Returns the names that a help text lists under a heading such as `Commands:`.
fn listed(help: &str, heading: &Regex) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_in = false;
    for line in help.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            is_in = heading.is_match(line);
        } else if is_in && line.starts_with("  ") && !line.starts_with("   ") {
            names.extend(line.split_whitespace().next().filter(|name| *name != "help").map(str::to_owned));
        }
    }
    names
}

/// Appends the help of a command, and then the help of its subcommands.
fn describe(lab: &Lab, words: &[&str], page: &mut String) {
    let help = lab.ok(&[words, &["--help"]].concat()).stdout;
    // Help contains the value of a set variable; remove it.
    let help = Regex::new(r"\[env: (\w+)=[^\]]*\]").unwrap().replace_all(&help, "[env: $1]");
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    writeln!(page, "\n## {}\n\n```text\n{}\n```", words.join(" "), lines.join("\n").trim()).unwrap();
    for name in listed(&help, &Regex::new("^Commands:$").unwrap()) {
        describe(lab, &[words, &[&name]].concat(), page);
    }
}

#[test]
fn the_page_of_options_equals_help() {
    let lab = Lab::bare();
    let groups = Regex::new("^(Papers|Runs|This machine):$").unwrap();
    let mut page = "# Options\n\nWhat `--help` says of each command. This page is written by a test \
                    (`AUTOEXPERIMENT_WRITE_SCHEMAS=1 cargo test --test it docs`).\n"
        .to_owned();
    let verbs = listed(&lab.ok(&["--help"]).stdout, &groups);
    assert!(verbs.len() > 20, "{verbs:?}");
    for verb in &verbs {
        describe(&lab, &[verb], &mut page);
    }
    let path = root().join("docs/options.md");
    if std::env::var_os("AUTOEXPERIMENT_WRITE_SCHEMAS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "docs/options.md is not what `--help` says; it says how to write it");
}

#[test]
#[ignore = "needs PyPI"]
fn the_whole_start_works() {
    works("index.md", "");
}

#[test]
#[ignore = "needs half a minute"]
fn the_first_sweep_works() {
    works("first-sweep.md", "");
}

#[test]
#[ignore = "needs half a minute"]
fn the_comparison_of_agents_works() {
    works("comparing.md", "");
}

#[test]
#[ignore = "needs half a minute"]
fn the_first_verifier_works() {
    works("first-verifier.md", "");
}

#[test]
#[ignore = "needs half a minute"]
fn the_run_in_pieces_works() {
    works("first-shards.md", "");
}
