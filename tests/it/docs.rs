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
    let mut there: BTreeSet<String> =
        there.map(|page| page.file_name().unwrap().to_string_lossy().into_owned()).collect();
    // The page `options.md` is not in the repository, because it is made when the site is built.
    there.insert("options.md".to_owned());
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
fn list_and_mask_work_as_on_the_start_page() {
    // Commands that build the env of a bundled paper are in the next test.
    let lab = Lab::bare();
    lab.ok(&["list"]);
    let diff = lab.ok(&["mask", "kmeanspp", "-f", "3"]).stdout;
    assert!(diff.contains("raise NotImplementedError"), "{diff}");
    let all = commands("index.md");
    assert!(all.iter().any(|line| line == "autoexperiment mask kmeanspp -f 3"), "{all:?}");
}

#[test]
fn the_page_of_options_has_the_help_of_every_command() {
    let lab = Lab::bare();
    let page = lab.ok(&["man", "--markdown"]).stdout;
    for command in ["run", "report", "report behaviour", "env lock", "rescore ml-bench", "clean", "man"] {
        let own = page.split(&format!("\n## {command}\n\n```text\n")).nth(1).unwrap_or_else(|| panic!("no {command}"));
        let own = own.split("\n```").next().unwrap();
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = lab.ok(&words).stdout;
        let first = help.lines().next().unwrap();
        assert!(own.starts_with(first.get(..60).unwrap_or(first)), "{command}: {own}");
    }
    assert!(!page.contains(lab.path("").to_str().unwrap()), "no value of a variable is on the page");
}

#[test]
fn the_settings_of_agents_in_the_docs_are_those_of_the_program() {
    let listed: serde_json::Value = serde_json::from_str(&Lab::bare().ok(&["agents", "--json"]).stdout).unwrap();
    let mut table = "| setting | of | what it does |\n|---|---|---|\n".to_owned();
    for setting in listed["settings"].as_array().unwrap() {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let agents = setting["agents"].as_array().unwrap().iter().map(|agent| {
            let default = text(&agent[1]);
            let default = if default.is_empty() { default } else { format!(" [{default}]") };
            format!("`{}`{default}", text(&agent[0]))
        });
        let agents: Vec<String> = agents.collect();
        let value = text(&setting["value"]).replace('|', "\\|");
        writeln!(table, "| `{}={value}` | {} | {} |", text(&setting["key"]), agents.join(", "), text(&setting["help"]))
            .unwrap();
    }
    let path = root().join("docs/agents.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- settings -->\n").unwrap();
    let (there, after) = rest.split_once("<!-- /settings -->").unwrap();
    if std::env::var_os("AUTOEXPERIMENT_WRITE_SCHEMAS").is_some() {
        fs::write(&path, format!("{before}<!-- settings -->\n{table}<!-- /settings -->{after}")).unwrap();
    } else {
        let how = "AUTOEXPERIMENT_WRITE_SCHEMAS=1 cargo test --test it docs";
        assert_eq!(there, table, "the table of settings is written by `{how}`");
    }
}

#[test]
#[ignore = "needs PyPI"]
fn the_commands_of_the_start_page_work() {
    works("index.md", "");
}

#[test]
#[ignore = "needs half a minute"]
fn the_commands_of_the_page_on_a_first_sweep_work() {
    works("first-sweep.md", "");
}

#[test]
#[ignore = "needs half a minute"]
fn every_command_of_the_page_about_comparing_agents_works() {
    works("comparing.md", "");
}

#[test]
#[ignore = "needs half a minute"]
fn the_commands_of_the_page_on_verifiers_work() {
    works("first-verifier.md", "");
}

#[test]
#[ignore = "needs half a minute"]
fn the_commands_of_the_page_on_shards_work() {
    works("first-shards.md", "");
}
