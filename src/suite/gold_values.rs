//! Finds gold values in what agents read: the paper's text, the texts of its manifest, the repo's files.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;

use super::marked::{plain, settings};
use super::written::{NumberInText, result_numbers, roundings, written_numbers};
use super::{Gold, LoadedPaper, Paper};
use crate::error::Error;

/// Numbers in a paper's text that agree with gold values are reported if the probability that at least as many values
/// agree by chance is below this limit. The limit is high, so that few results are missed: a result in the text spoils
/// every sample, and after a false alarm the text can always be reworded.
pub const CHANCE_IN_PROSE: f64 = 0.5;

/// Same as [`CHANCE_IN_PROSE`], for files of the repo. The limit is low, so that false alarms are rare: data must not
/// be changed, so nothing could be done about a false alarm in a data file.
const CHANCE_IN_FILES: f64 = 0.01;

/// A paper's gold values.
pub struct GoldValues {
    values: Vec<f64>,
    /// For each of `values`, the id of its experiment.
    experiments: Vec<String>,
}

impl GoldValues {
    /// Collects the gold values of the paper's experiments, both curtailed (shortened) and full. Leaves out small whole
    /// numbers such as counts, which occur in texts for other reasons.
    #[must_use]
    pub fn new(loaded: &LoadedPaper) -> Self {
        Self::of(loaded.gold.as_ref())
    }

    /// Same as [`new`](Self::new), but collects the values of `gold`; collects none if no gold was recorded.
    #[must_use]
    pub fn of(gold: Option<&Gold>) -> Self {
        let mut this = Self { values: Vec::new(), experiments: Vec::new() };
        for (id, gold) in gold.into_iter().flat_map(|gold| gold.results.values().flatten()) {
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

    /// Reports gold values in the paper's text and in the texts of its manifest, as errors with their places.
    #[must_use]
    pub fn in_paper(&self, loaded: &LoadedPaper) -> Vec<Error> {
        let marked = settings(&loaded.text);
        let look = |text: &str, path: &Path| {
            let mut numbers = written_numbers(text, 3);
            numbers.retain(|one| !marked.contains(&plain(one.token)));
            self.look(&numbers, CHANCE_IN_PROSE, path)
        };
        let mut found = look(&loaded.text, &loaded.dir.join("paper.md"));
        let manifest = loaded.dir.join("paper.toml");
        for (_, text) in loaded.paper.agent_texts() {
            found.extend(look(text, &manifest).into_iter().map(|mut error| {
                // Remove the line number, which counts from the beginning of the text, not of the file.
                error.place = Some((manifest.clone(), None));
                error
            }));
        }
        found
    }

    /// Replaces gold values in a text that agents read by `…`, so that [`in_paper`](Self::in_paper) finds none.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // Repeat this until no gold value is found. Each replacement leaves fewer numbers in the text. With fewer
        // numbers, it becomes less probable that one agrees with a gold value by chance, so numbers may be found that
        // were not found before.
        loop {
            let numbers = written_numbers(&text, 3);
            let found = roundings(&numbers, &self.values, CHANCE_IN_PROSE);
            let mut tokens: Vec<Range<usize>> = found.iter().map(|(one, _)| position(&text, one.token)).collect();
            if tokens.is_empty() {
                return text;
            }
            // `1,234.5` was read both as one number and as two numbers. So sort the longer one first, and drop the
            // numbers inside it.
            tokens.sort_by_key(|token| (token.start, Reverse(token.end)));
            let mut end = 0;
            tokens.retain(|token| {
                let is_apart = token.start >= end;
                end = end.max(token.end);
                is_apart
            });
            for token in tokens.into_iter().rev() {
                text.replace_range(token, "…");
            }
        }
    }

    /// Reports gold values in a file of the repo, as errors with their lines. Numbers are reported only if they have at
    /// least three digits (in prose) or four digits (elsewhere), not counting trailing zeros.
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

impl Paper {
    /// Lists the prose of the manifest that agents read, each text with the name of its place in the manifest. Commands
    /// are not in the list: agents read them too, but their numbers are settings, which may equal a result.
    pub(crate) fn agent_texts(&self) -> Vec<(String, &str)> {
        let mut texts = vec![("title".to_owned(), self.title.as_str())];
        texts.extend(self.authors.iter().map(|author| ("authors".to_owned(), author.as_str())));
        texts
            .extend(self.units.iter().map(|unit| (format!("description of `{}`", unit.at), unit.description.as_str())));
        // Agents do not see hidden experiments.
        let shown = self.experiments.iter().filter(|experiment| !experiment.hidden);
        texts.extend(
            shown.map(|shown| (format!("description of experiment `{}`", shown.id), shown.description.as_str())),
        );
        texts
    }
}

/// Returns the byte range of `part`, which must be a slice of `text`.
fn position(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_gold_values_are_hidden_in_a_text_the_search_for_leaks_finds_none() {
        let result = serde_json::json!({ "a": 1001, "b": 12.345, "c": [1234.5, -0.8125] });
        let values = GoldValues::collect("x", &result);
        let text = "`f(1001)` is 12.345, **12.35** or\n1,234.5; −0.8125 of 7 and 99.5, as x1001 is. 1001";
        let hidden = values.hide(text);
        assert_eq!(hidden, "`f(…)` is …, **…** or\n…; … of 7 and 99.5, as x1001 is. …");
        assert!(values.look(&written_numbers(&hidden, 3), CHANCE_IN_PROSE, Path::new("")).is_empty());
        assert_eq!(GoldValues::of(None).hide(text), text);
    }

    #[test]
    fn every_text_of_the_manifest_that_agents_read_is_searched_for_gold_values() {
        const MANIFEST: &str = "title = 'TITLE'\nauthors = ['A', 'AUTHOR']\nyear = 2007\nurl = 'u'\nrepo = 'p'\nenv = 'e'\n\n\
             [[function]]\nat = 'a.py::f'\ndescription = 'FUNCTION'\n\n\
             [[region]]\nname = 'r'\nat = 'a.py::g'\nfirst = 'return 2'\ndescription = 'REGION'\n\n\
             [[experiment]]\nid = 'one'\ndescription = 'EXPERIMENT'\ncommand = 'run --n 12.345'\n\
             result = { json_line = 'stdout' }\n\n\
             [[experiment]]\nid = 'two'\ndescription = 'HIDDEN'\nhidden = true\ncommand = 'run'\n\
             result = { json_line = 'stdout' }\n";
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("envs/e/environment.yml", "name: e\n");
        write("repos/p/a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n");
        write("papers/p/paper.md", "# T\n\nText.\n");
        let values = GoldValues::collect("one", &serde_json::json!({ "v": 12.345 }));
        let places = |word: &str| {
            write("papers/p/paper.toml", &MANIFEST.replace(word, "It is 12.35."));
            let suite = crate::suite::Suite::open(folder.path()).unwrap();
            values.in_paper(&LoadedPaper::load(&suite, "p").unwrap()).len()
        };
        for word in ["TITLE", "AUTHOR", "FUNCTION", "REGION", "EXPERIMENT"] {
            assert_eq!(places(word), 1, "{word}");
        }
        assert_eq!(places("HIDDEN"), 0);
    }
}
