//! Scrubbing removes results from a paper's text. These tests check which numbers it removes from labelled excerpts
//! (`tests/scrub/README.md`) and from the papers in this repository.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output};

use autoexperiment::scrub::{AUDIT_FORMAT, Audit, MarkupFormat, ScrubOptions, ScrubRule, scrub};
use regex::Regex;

/// Returns a labelled text without its marks `{-...-}`, and the ranges of the marked numbers, in bytes.
fn unmark(marked: &str) -> (String, Vec<Range<usize>>) {
    let mark = Regex::new(r"\{-((?:[^{}]|\{,\})+?)-\}").unwrap();
    let mut text = String::new();
    let mut ranges = Vec::new();
    let mut copied = 0;
    for found in mark.captures_iter(marked) {
        let whole = found.get(0).unwrap();
        text.push_str(&marked[copied..whole.start()]);
        let start = text.len();
        text.push_str(&found[1]);
        ranges.push(start..text.len());
        copied = whole.end();
    }
    text.push_str(&marked[copied..]);
    (text, ranges)
}

/// Returns names and texts of the labelled excerpts in a folder.
fn excerpts(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scrub").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// Counts of right and wrong decisions about numbers.
#[derive(Default)]
struct Counts {
    removed_rightly: usize,
    removed_wrongly: usize,
    missed: usize,
    kept_rightly: usize,
    wrong: String,
}

impl Counts {
    fn precision(&self) -> f64 {
        self.removed_rightly as f64 / (self.removed_rightly + self.removed_wrongly) as f64
    }

    fn recall(&self) -> f64 {
        self.removed_rightly as f64 / (self.removed_rightly + self.missed) as f64
    }

    fn add(&mut self, name: &str, marked: &str) {
        let (text, marks) = unmark(marked);
        let scrubbed = scrub(&text, &ScrubOptions { format: MarkupFormat::detect(Path::new(name), &text), gold: &[] });
        let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut seen = vec![false; marks.len()];
        for number in &scrubbed.numbers {
            let line = &text[starts[number.line - 1]..];
            let start = starts[number.line - 1] + line.char_indices().nth(number.column - 1).unwrap().0;
            let end = start + number.text.len();
            assert_eq!(text[start..end], number.text, "{name}:{}", number.line);
            let mark = marks.iter().position(|mark| mark.start < end && start < mark.end);
            if let Some(mark) = mark {
                seen[mark] = true;
            }
            let count = match (mark.is_some(), number.removed) {
                (true, true) => &mut self.removed_rightly,
                (false, false) => &mut self.kept_rightly,
                (false, true) => &mut self.removed_wrongly,
                (true, false) => &mut self.missed,
            };
            *count += 1;
            if mark.is_some() != number.removed {
                let what = if number.removed { "wrongly removed" } else { "missed" };
                let line = line.lines().next().unwrap_or_default();
                let (rule, cue) = (number.rule, number.cue.as_deref().unwrap_or_default());
                let _ = writeln!(
                    self.wrong,
                    "{name}:{}:{}: {what} `{}` ({rule:?} {cue}): {line}",
                    number.line, number.column, number.text
                );
            }
        }
        for (mark, _) in marks.iter().zip(&seen).filter(|(_, seen)| !**seen) {
            self.missed += 1;
            let _ = writeln!(self.wrong, "{name}: not seen as a number: `{}`", &text[mark.clone()]);
        }
    }

    fn of(folder: &str) -> Self {
        let mut counts = Self::default();
        for (name, marked) in excerpts(folder) {
            counts.add(&name, &marked);
        }
        counts
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "precision {:.4}, recall {:.4}: {} removed rightly, {} wrongly, {} missed, {} kept rightly",
            self.precision(),
            self.recall(),
            self.removed_rightly,
            self.removed_wrongly,
            self.missed,
            self.kept_rightly
        )
    }
}

#[test]
fn results_are_separated_from_settings_in_the_excerpts_used_to_develop_the_rules() {
    let counts = Counts::of("development");
    println!("development: {counts}\n{}", counts.wrong);
    assert!(counts.precision() > 0.955 && counts.recall() > 0.96, "{counts}\n{}", counts.wrong);
}

#[test]
fn scrubbing_removes_results_and_keeps_settings_in_the_held_out_test_excerpts() {
    let counts = Counts::of("held-out");
    println!("held-out: {counts}");
    assert!(counts.precision() > 0.96 && counts.recall() > 0.86, "{counts}");
}

#[test]
fn results_are_separated_from_settings_in_a_text_written_after_the_last_change_of_the_rules() {
    let counts = Counts::of("later");
    println!("later: {counts}");
    assert!(counts.precision() > 0.8 && counts.recall() > 0.86, "{counts}");
}

#[test]
fn results_are_separated_from_settings_in_papers_from_three_fields_not_used_to_develop_the_rules() {
    let counts = Counts::of("practice");
    println!("practice: {counts}");
    assert!(counts.precision() > 0.85 && counts.recall() > 0.83, "{counts}\n{}", counts.wrong);
}

#[test]
fn every_digit_in_the_labelled_excerpts_is_part_of_a_number_that_scrubbing_lists() {
    for folder in ["development", "held-out", "later", "practice"] {
        for (name, marked) in excerpts(folder) {
            let (text, _) = unmark(&marked);
            let format = MarkupFormat::detect(Path::new(&name), &text);
            let mut left: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
            for number in scrub(&text, &ScrubOptions { format, gold: &[] }).numbers {
                let length = number.text.chars().count();
                left[number.line - 1][number.column - 1..number.column - 1 + length].fill('#');
            }
            for (line, chars) in left.iter().enumerate() {
                assert!(!chars.iter().any(char::is_ascii_digit), "{name}:{}: {}", line + 1, String::from_iter(chars));
            }
        }
    }
}

/// The papers of this repository contain no results, so scrubbing must not remove any of their numbers.
#[test]
fn scrubbing_the_papers_of_this_repository_removes_no_number() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("papers");
    let mut wrong = String::new();
    let mut papers = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path().join("paper.md");
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        papers += 1;
        for number in scrub(&text, &ScrubOptions { format: MarkupFormat::Markdown, gold: &[] }).numbers {
            if number.removed {
                let line = text.lines().nth(number.line - 1).unwrap();
                let _ = writeln!(
                    wrong,
                    "{}:{}: `{}` {:?} {:?}: {line}",
                    path.display(),
                    number.line,
                    number.text,
                    number.rule,
                    number.cue
                );
            }
        }
    }
    assert!(papers >= 4);
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn command(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_autoexperiment"))
        .arg("scrub")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

const TEXT: &str = "# Results\n\nWith a learning rate of 0.1, accuracy is 93.4%.\n";
const SCRUBBED: &str = "# Results\n\nWith a learning rate of 0.1, accuracy is [removed]%.\n";

#[test]
fn scrub_prints_a_diff_and_writes_files_only_if_an_option_asks_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("paper.md");
    std::fs::write(&text, TEXT).unwrap();

    let shown = command(folder.path(), &["paper.md"]);
    assert_eq!(shown.status.code(), Some(0));
    let diff = String::from_utf8(shown.stdout).unwrap();
    assert!(diff.contains("-With a learning rate of 0.1, accuracy is 93.4%.\n+With a learning rate of 0.1"), "{diff}");
    let summary = "1 of 2 numbers removed (1 result-words), 1 kept\n";
    assert_eq!(String::from_utf8(shown.stderr).unwrap(), summary);
    assert_eq!(std::fs::read_to_string(&text).unwrap(), TEXT);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    assert_eq!(command(folder.path(), &["paper.md", "-o", "out.md"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(folder.path().join("out.md")).unwrap(), SCRUBBED);
    let again = command(folder.path(), &["paper.md", "-o", "out.md", "--audit", "audit.json"]);
    assert_eq!(again.status.code(), Some(2), "an existing file is not overwritten");
    assert!(!folder.path().join("audit.json").exists(), "a refused command writes nothing");
    assert_eq!(command(folder.path(), &["paper.md", "--audit", "out.md"]).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(folder.path().join("out.md")).unwrap(), SCRUBBED);

    assert_eq!(command(folder.path(), &["paper.md", "--write"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&text).unwrap(), SCRUBBED);
}

#[test]
fn the_check_names_remaining_results_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("paper.md"), TEXT).unwrap();
    std::fs::write(folder.path().join("scrubbed.md"), SCRUBBED).unwrap();
    let left = command(folder.path(), &["paper.md", "--check"]);
    assert_eq!(left.status.code(), Some(3));
    assert_eq!(String::from_utf8(left.stdout).unwrap(), "paper.md:3:42: `93.4` (result-words, `accuracy`)\n");
    assert_eq!(command(folder.path(), &["scrubbed.md", "--check"]).status.code(), Some(0));

    std::fs::write(folder.path().join("gold.json"), r#"{"results": {"full": {"a": {"result": [0.10004]}}}}"#).unwrap();
    let text = TEXT.replace("0.1,", "0.100,");
    std::fs::write(folder.path().join("precise.md"), text).unwrap();
    let leak = command(folder.path(), &["precise.md", "--check", "--gold", "gold.json"]);
    assert!(String::from_utf8(leak.stdout).unwrap().starts_with("precise.md:3:25: `0.100` (gold)\n"));
}

#[test]
fn the_audit_of_scrub_lists_for_every_number_whether_it_was_removed_and_by_which_rule() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("paper.md"), TEXT).unwrap();
    for _ in 0..2 {
        assert_eq!(command(folder.path(), &["paper.md", "--audit", "audit.json"]).status.code(), Some(0));
    }
    let json = std::fs::read_to_string(folder.path().join("audit.json")).unwrap();
    let audit: Audit = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (audit.format, audit.text_format, audit.removed, audit.kept),
        (AUDIT_FORMAT, MarkupFormat::Markdown, 1, 1)
    );
    let seen: Vec<_> = audit.numbers.iter().map(|n| (n.line, n.column, n.text.as_str(), n.removed, n.rule)).collect();
    assert_eq!(seen, [(3, 25, "0.1", false, ScrubRule::SettingWords), (3, 42, "93.4", true, ScrubRule::ResultWords)]);
}

#[test]
fn scrub_refuses_a_missing_or_wrongly_encoded_text_and_an_invalid_gold_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("latin.md"), b"Accuracy \xe9 93.4%").unwrap();
    let refused = command(folder.path(), &["latin.md"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("error: latin.md: the text is not UTF-8"));
    assert_eq!(command(folder.path(), &["missing.md"]).status.code(), Some(2));
    std::fs::write(folder.path().join("gold.json"), "{}").unwrap();
    std::fs::write(folder.path().join("paper.md"), TEXT).unwrap();
    assert_eq!(command(folder.path(), &["paper.md", "--gold", "gold.json"]).status.code(), Some(3));
}
