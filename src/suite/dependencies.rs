//! `papers/<id>/dependencies.json`: which experiment needs which function, as measured.

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
    /// Digest of the repo that it was measured on: sha256, hex.
    pub repo: String,
    /// For each experiment's id, the selectors of the functions without which it fails.
    pub needs: BTreeMap<String, BTreeSet<String>>,
}

impl Dependencies {
    /// Reads the file; `None` when there is none.
    ///
    /// # Errors
    /// Kind `Suite` for a broken file, an unknown format, or names that the manifest does not have.
    pub fn load(path: &Path, paper: &Paper) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let this: Self = serde_json::from_str(&text)
            .map_err(|error| Error::suite(format!("broken dependency matrix: {error}")).at(path, Some(error.line())))?;
        if this.format != 1 {
            return Err(Error::suite(format!("dependency matrix of format {}, this version reads 1", this.format))
                .at(path, None)
                .hint("update autoexperiment"));
        }
        let unknown = |what: String| {
            Error::suite(format!("no {what} in the manifest")).at(path, None).hint(format!(
                "the manifest has changed since: remove this file and measure it again with `autoexperiment verify {}`",
                paper.id
            ))
        };
        for (experiment, functions) in &this.needs {
            if !paper.experiments.iter().any(|known| known.id == *experiment) {
                return Err(unknown(format!("experiment `{experiment}`")));
            }
            for function in functions {
                if !paper.functions.iter().any(|known| known.at == *function) {
                    return Err(unknown(format!("function `{function}`")));
                }
            }
        }
        Ok(Some(this))
    }

    /// The tests of a sample: places in the manifest of the experiments that need any of these functions. All of them
    /// for n = 0.
    #[must_use]
    pub fn tests(&self, paper: &Paper, functions: &[usize]) -> Vec<usize> {
        (0..paper.experiments.len())
            .filter(|&experiment| {
                let id = &paper.experiments[experiment].id;
                functions.is_empty()
                    || self.needs.get(id).is_some_and(|needed| {
                        functions.iter().any(|&function| needed.contains(&paper.functions[function].at))
                    })
            })
            .collect()
    }
}
