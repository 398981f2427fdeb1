//! The documentation given to an attempt. n, the difficulty, is 0 to 3: the larger n is, the less the documentation
//! helps.
//!
//! The settings are those of ML-Bench. n = 0: the section with the instructions for the task ("oracle segment"). n = 1:
//! the window of 10 sentences that BM25 ranks first for the instruction, among the first 1,000 sentences. n = 2: the
//! whole documentation. n = 3: nothing but the instruction.

use super::loaded::LoadedCommands;
use super::manifest::Instruction;
use crate::agent::retrieval::bm25::{Bm25, ranked};
use crate::suite::sections;

/// Number of sentences in each window of the documentation that BM25 ranks. Only the first [`MOST`] sentences are
/// searched.
const WINDOW: usize = 10;
const MOST: usize = 1000;

/// Names of ML-Bench's settings, by the difficulty n.
pub(super) const LAYERS: [&str; 4] = ["oracle segment", "BM25 passage", "README", "instruction only"];

/// The difficulty n at which the whole documentation is given, as text and as files.
pub const README: usize = 2;

/// Returns the documentation for an attempt of difficulty `n`, in Markdown; `None` if the attempt gets none.
#[must_use]
pub fn context(loaded: &LoadedCommands, instruction: &Instruction, n: usize) -> Option<String> {
    match n {
        0 => oracle(loaded, instruction),
        1 => passage(loaded, &instruction.text),
        README => Some(loaded.docs.iter().map(|(_, text)| text.trim()).collect::<Vec<_>>().join("\n\n")),
        _ => None,
    }
}

/// Returns the section of the documentation that explains the task.
#[must_use]
pub fn oracle(loaded: &LoadedCommands, instruction: &Instruction) -> Option<String> {
    let (_, text) = loaded.docs.iter().find(|(file, _)| *file == instruction.oracle.file)?;
    let section = sections(text).into_iter().find(|section| section.heading == instruction.oracle.heading)?;
    Some(format!("## {}\n\n{}", section.heading, section.text.trim()))
}

fn passage(loaded: &LoadedCommands, query: &str) -> Option<String> {
    let all: Vec<String> = loaded.docs.iter().flat_map(|(_, text)| sentences(text)).take(MOST).collect();
    let windows: Vec<String> = all.chunks(WINDOW).map(|window| window.join("\n")).collect();
    let scores = Bm25::new(windows.iter().map(String::as_str)).scores(query);
    let best = ranked(&scores).first().copied().unwrap_or_default();
    windows.into_iter().nth(best)
}

/// Splits a Markdown text into sentences of its prose and lines of code, tables and headings.
fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut prose = String::new();
    let mut fenced = false;
    let flush = |prose: &mut String, found: &mut Vec<String>| {
        let whole = std::mem::take(prose);
        let mut rest = whole.trim();
        while let Some(end) = rest.find(". ") {
            found.push(rest[..=end].to_owned());
            rest = rest[end + 1..].trim_start();
        }
        found.extend((!rest.is_empty()).then(|| rest.to_owned()));
    };
    for line in text.lines() {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```");
        fenced ^= is_fence;
        if is_fence || fenced || trimmed.is_empty() || trimmed.starts_with(['#', '|', '-', '*']) {
            flush(&mut prose, &mut found);
            found.extend((!is_fence && !trimmed.is_empty()).then(|| line.trim_end().to_owned()));
        } else {
            prose.push_str(trimmed);
            prose.push(' ');
        }
    }
    flush(&mut prose, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_split_into_sentences_and_code_into_lines() {
        let text = "# Title\n\nOne sentence. Another\none, over lines.\n\n```\nls -l\npwd. x\n```\n- item. one\n";
        let expected = ["# Title", "One sentence.", "Another one, over lines.", "ls -l", "pwd. x", "- item. one"];
        assert_eq!(sentences(text), expected);
    }
}
