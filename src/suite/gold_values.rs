//! Finds gold values in what agents read: the paper's text, the manifest's descriptions, the repo's files.

use std::path::Path;

use super::LoadedPaper;
use super::marked::{plain, settings};
use super::written::{NumberInText, result_numbers, roundings, written_numbers};
use crate::error::Error;

/// Highest probability with which gold values in a paper's text may be there by chance and are still reported. The
/// probability is high, because the text can always be reworded, and a result in the text spoils every sample.
pub const CHANCE_IN_PROSE: f64 = 0.5;

/// Highest probability with which gold values in a file of the repo may be there by chance and are still reported. The
/// probability is low, because data must stay as it is.
const CHANCE_IN_FILES: f64 = 0.01;

/// A paper's gold values.
pub struct GoldValues {
    values: Vec<f64>,
    /// The experiment of each value.
    experiments: Vec<String>,
}

impl GoldValues {
    /// Collects the results of the paper's experiments, curtailed and full, except small whole numbers such as counts,
    /// which occur in texts for other reasons.
    #[must_use]
    pub fn new(loaded: &LoadedPaper) -> Self {
        let mut this = Self { values: Vec::new(), experiments: Vec::new() };
        for (id, gold) in loaded.gold.iter().flat_map(|gold| gold.results.values().flatten()) {
            result_numbers(&gold.result, &mut |value| {
                this.values.push(value);
                this.experiments.push(id.clone());
            });
        }
        this
    }

    /// Collects the values of a single result.
    #[must_use]
    pub fn collect(id: &str, result: &serde_json::Value) -> Self {
        let mut values = Vec::new();
        result_numbers(result, &mut |value| values.push(value));
        Self { experiments: vec![id.to_owned(); values.len()], values }
    }

    /// Reports gold values in the paper's text and in the manifest's descriptions, as errors with their places.
    #[must_use]
    pub fn in_paper(&self, loaded: &LoadedPaper) -> Vec<Error> {
        let marked = settings(&loaded.text);
        let look = |text: &str, path: &Path| {
            let mut numbers = written_numbers(text, 3);
            numbers.retain(|one| !marked.contains(&plain(one.token)));
            self.look(&numbers, CHANCE_IN_PROSE, path)
        };
        let mut found = look(&loaded.text, &loaded.dir.join("paper.md"));
        let functions = loaded.paper.units.iter().map(|unit| &unit.description);
        let experiments = loaded.paper.experiments.iter().map(|experiment| &experiment.description);
        let manifest = loaded.dir.join("paper.toml");
        for description in functions.chain(experiments) {
            found.extend(look(description, &manifest).into_iter().map(|mut error| {
                // The line is relative to the description, not to the file.
                error.place = Some((manifest.clone(), None));
                error
            }));
        }
        found
    }

    /// Reports gold values in a file of the repo, as errors with their lines. Values need three digits in prose, four
    /// elsewhere, not counting trailing zeros.
    #[must_use]
    pub fn in_file(&self, path: &Path, text: &str) -> Vec<Error> {
        if self.values.is_empty() {
            return Vec::new();
        }
        let prose = path.extension().is_none_or(|ending| {
            ["md", "rst", "txt", "tex", "html", "ipynb"].iter().any(|known| ending.eq_ignore_ascii_case(known))
        });
        let least = if prose { 3 } else { 4 };
        let mut numbers = written_numbers(text, least);
        numbers.retain(|one| one.written.sharp_digits >= least);
        self.look(&numbers, CHANCE_IN_FILES, path)
    }

    fn look(&self, numbers: &[NumberInText<'_>], chance: f64, path: &Path) -> Vec<Error> {
        roundings(numbers, &self.values, chance)
            .into_iter()
            .map(|(one, value)| {
                let experiment = &self.experiments[value];
                Error::suite(format!("`{}` is a gold value of experiment `{experiment}`", one.token))
                    .at(path, Some(one.line))
                    .hint("take results out of what agents read")
            })
            .collect()
    }
}
