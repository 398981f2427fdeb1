//! `papers/<id>/dependencies.json`: the measured dependency matrix, that is, which experiment needs which function.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Paper;
use crate::error::{Error, Result};

/// The dependency matrix of a paper.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dependencies {
    /// Format version, 1.
    pub format: u32,
    /// Digest of the repo when the matrix was measured: SHA-256, hex.
    pub repo: String,
    /// For each experiment's id, the names of the functions and regions (other maskable parts of the code) that its
    /// result depends on.
    pub needs: BTreeMap<String, BTreeSet<String>>,
    /// Functions and experiments in the file that the manifest no longer has.
    #[serde(skip)]
    pub gone: Vec<String>,
}

impl Dependencies {
    /// Reads the file; `None` if it does not exist. Entries of functions and experiments that the manifest no longer
    /// has are dropped, and their names kept in [`Dependencies::gone`]; the other entries remain valid.
    ///
    /// # Errors
    /// Kind `Suite` for a broken file or an unknown format; kind `Machine` if the file cannot be read.
    pub fn load(path: &Path, paper: &Paper) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let mut this: Self = serde_json::from_str(&text)
            .map_err(|error| Error::suite(format!("broken dependency matrix: {error}")).at(path, Some(error.line())))?;
        if this.format != 1 {
            return Err(Error::suite(format!("dependency matrix of format {}, this version reads 1", this.format))
                .at(path, None)
                .hint("update autoexperiment"));
        }
        let known: BTreeSet<&str> = paper.units.iter().map(|unit| unit.at.as_str()).collect();
        let mut gone = BTreeSet::new();
        this.needs.retain(|id, functions| {
            functions
                .retain(|function| known.contains(function.as_str()) || !gone.insert(format!("function `{function}`")));
            let kept = paper.experiments.iter().any(|experiment| experiment.id == *id);
            kept || !gone.insert(format!("experiment `{id}`"))
        });
        this.gone = gone.into_iter().collect();
        Ok(Some(this))
    }

    /// Returns the ids of the manifest's experiments that the matrix does not have.
    #[must_use]
    pub fn unmeasured<'paper>(&self, paper: &'paper Paper) -> Vec<&'paper str> {
        let ids = paper.experiments.iter().map(|experiment| experiment.id.as_str());
        ids.filter(|id| !self.needs.contains_key(*id)).collect()
    }

    /// Returns a sample's tests, as indices into the manifest's experiments: the experiments that need any of these
    /// functions, and those that the matrix does not have; all experiments if no function is masked.
    #[must_use]
    pub fn tests(&self, paper: &Paper, functions: &[usize]) -> Vec<usize> {
        (0..paper.experiments.len())
            .filter(|&experiment| {
                let id = &paper.experiments[experiment].id;
                functions.is_empty() || functions.iter().any(|&function| self.is_test_of(id, &paper.units[function].at))
            })
            .collect()
    }

    /// Whether an experiment is a test of the samples that mask this function: it needs the function, or the matrix does
    /// not have the experiment.
    #[must_use]
    pub fn is_test_of(&self, experiment: &str, function: &str) -> bool {
        self.needs.get(experiment).is_none_or(|needed| needed.contains(function))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_on_missing_experiments_and_functions_are_named_and_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = r#"
            title = "T"
            authors = []
            year = 2000
            url = ""
            repo = "r"
            env = "e"
            function = [{ at = "a.py::f", description = "" }]
            experiment = [{ id = "one", description = "", command = "true", result = { json_line = "stdout" } }]"#;
        let path = folder.path().join("paper.toml");
        std::fs::write(&path, manifest).unwrap();
        let paper = Paper::load(&path, "x").unwrap();
        let path = folder.path().join("dependencies.json");
        let needs = r#"{"one": ["a.py::f", "a.py::struck"], "cut": ["a.py::f"]}"#;
        std::fs::write(&path, format!(r#"{{"format": 1, "repo": "", "needs": {needs}}}"#)).unwrap();
        let matrix = Dependencies::load(&path, &paper).unwrap().unwrap();
        assert_eq!(matrix.gone, ["experiment `cut`", "function `a.py::struck`"]);
        assert_eq!(matrix.tests(&paper, &[0]), [0]);
        assert_eq!(matrix.needs.len(), 1);
    }

    #[test]
    fn an_experiment_that_the_matrix_lacks_is_a_test_of_every_function() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = |id: &str| {
            format!(r#"{{ id = "{id}", description = "", command = "true", result = {{ json_line = "stdout" }} }}"#)
        };
        let manifest = format!(
            "title = \"T\"\nauthors = []\nyear = 2000\nurl = \"\"\nrepo = \"r\"\nenv = \"e\"\n\
             function = [{{ at = \"a.py::f\", description = \"\" }}]\nexperiment = [{}, {}, {}]\n",
            experiment("one"),
            experiment("needless"),
            experiment("new")
        );
        let path = folder.path().join("paper.toml");
        std::fs::write(&path, manifest).unwrap();
        let paper = Paper::load(&path, "x").unwrap();
        let needs = BTreeMap::from([
            ("one".to_owned(), BTreeSet::from(["a.py::f".to_owned()])),
            ("needless".to_owned(), BTreeSet::new()),
        ]);
        let matrix = Dependencies { format: 1, needs, ..Dependencies::default() };
        assert_eq!(matrix.tests(&paper, &[0]), [0, 2]);
        assert_eq!(matrix.unmeasured(&paper), ["new"]);
    }
}
