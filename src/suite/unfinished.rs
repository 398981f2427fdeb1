//! Finds the placeholders that `autoexperiment new` left for a person to fill in, and that agents would see.

use super::problem::Problem;
use super::spans::{ManifestPart, line_of};
use super::{LoadedPaper, Protocol};
use crate::error::Error;

/// Placeholder for text that only a person can write.
pub const TODO: &str = "TODO";

/// Reports placeholders in a paper's manifest and text as errors, and missing gold of the full protocol as a warning.
#[must_use]
pub fn unfinished(loaded: &LoadedPaper) -> Vec<Problem> {
    let (paper, manifest) = (&loaded.paper, loaded.dir.join("paper.toml"));
    let source = std::fs::read_to_string(&manifest).unwrap_or_default();
    let mut problems = Vec::new();
    let mut add = |what: String, line: Option<usize>| {
        problems.push(Problem::error(Error::suite(what).at(&manifest, line)));
    };
    let line = |key: &str| source.lines().position(|line| line.trim_start().starts_with(key)).map(|line| line + 1);
    let missing = |text: &str| text.trim().is_empty() || text.trim_start().starts_with(TODO);
    if missing(&paper.title) {
        add("the title is still to be written".to_owned(), line("title"));
    }
    if paper.authors.iter().any(|author| missing(author)) {
        add("the authors are still to be written".to_owned(), line("authors"));
    }
    if paper.year == 0 {
        add("the year is still 0".to_owned(), line("year"));
    }
    if paper.url.trim_start().starts_with(TODO) {
        add("the url is still to be written".to_owned(), line("url"));
    }
    for (place, unit) in paper.units.iter().enumerate().filter(|(_, one)| missing(&one.description)) {
        let at = line_of(paper.part(place), &source);
        add(format!("the description of {} `{}` is still to be written", unit.kind(), unit.at), at);
    }
    for (place, experiment) in paper.experiments.iter().enumerate().filter(|(_, one)| missing(&one.description)) {
        let at = line_of(ManifestPart::Experiment(place), &source);
        add(format!("the description of experiment `{}` is still to be written", experiment.id), at);
    }
    let open: Vec<usize> = loaded
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim_start_matches(['#', ' ', '*', '-']).starts_with(TODO))
        .map(|(line, _)| line + 1)
        .collect();
    if let Some(first) = open.first() {
        let what = format!("the text has `{TODO}` in {} place(s)", open.len());
        problems.push(Problem::error(Error::suite(what).at(loaded.dir.join("paper.md"), Some(*first))));
    }
    if loaded.text.trim().is_empty() {
        problems.push(Problem::error(Error::suite("the text is empty").at(loaded.dir.join("paper.md"), None)));
    }
    problems.extend(full_gold(loaded));
    problems
}

/// Reports experiments with a separate full protocol whose gold was never recorded.
fn full_gold(loaded: &LoadedPaper) -> Option<Problem> {
    let gold = loaded.gold.as_ref()?;
    let full = gold.results.get(&Protocol::Full);
    let missing = loaded.paper.experiments.iter().filter(|one| {
        one.parameters.full != one.parameters.curtailed && full.is_none_or(|full| !full.contains_key(&one.id))
    });
    let missing = missing.map(|one| format!("`{}`", one.id)).collect::<Vec<_>>();
    (!missing.is_empty()).then(|| {
        Problem::warning(
            Error::suite(format!("no gold of the full protocol of {}: `run --full` needs it", missing.join(", ")))
                .at(loaded.dir.join("gold.json"), None)
                .hint(format!("record it with `autoexperiment gold {} --full`", loaded.paper.id)),
        )
    })
}
