//! The documentation: its links lead somewhere, every page is in the site, and what its pages tell one to type works.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::support::{Lab, PROGRAM};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The pages: README, DESIGN and those in docs.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("DESIGN.md")];
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|it| it == "md")));
    pages.sort();
    pages
}

/// A heading as GitHub and the site make an anchor of it.
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

/// The commands of a page's shell blocks, without those that need what a test has not.
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
    // What builds the env of a bundled paper is in the next test.
    let lab = Lab::bare();
    lab.ok(&["list"]);
    let diff = lab.ok(&["mask", "kmeanspp", "-f", "3"]).stdout;
    assert!(diff.contains("raise NotImplementedError"), "{diff}");
    let all = commands("index.md");
    assert!(all.iter().any(|line| line == "autoexperiment mask kmeanspp -f 3"), "{all:?}");
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
