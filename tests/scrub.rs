//! What scrubbing takes out of labelled excerpts (`tests/scrub/README.md`), and of the papers in this repository.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use autoexperiment::scrub::{Format, Options, scrub};
use regex::Regex;

/// A labelled text without its marks, and the ranges that they held, in bytes.
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

/// Right and wrong judgements, number by number.
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
        let scrubbed = scrub(&text, &Options { format: Format::detect(Path::new(name), &text), gold: &[] });
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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scrub").join(folder);
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        let mut counts = Self::default();
        for path in names {
            counts.add(path.file_name().unwrap().to_str().unwrap(), &std::fs::read_to_string(&path).unwrap());
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
fn results_are_told_from_settings_in_the_excerpts_that_the_rules_were_written_with() {
    let counts = Counts::of("development");
    println!("development: {counts}\n{}", counts.wrong);
    assert!(counts.precision() > 0.95 && counts.recall() > 0.95, "{counts}\n{}", counts.wrong);
}

#[test]
fn results_are_told_from_settings_in_excerpts_that_no_rule_was_fitted_to() {
    let counts = Counts::of("held-out");
    println!("held-out: {counts}");
    assert!(counts.precision() > 0.95 && counts.recall() > 0.85, "{counts}");
}

/// Numbers that scrubbing would take out of the papers in this repository, which hold no results.
#[test]
fn nothing_is_taken_from_the_papers_of_this_repository() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("papers");
    let mut wrong = String::new();
    let mut papers = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path().join("paper.md");
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        papers += 1;
        for number in scrub(&text, &Options { format: Format::Markdown, gold: &[] }).numbers {
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
