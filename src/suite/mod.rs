//! Papers, repos and envs: load, check, describe.
//!
//! A suite is a folder with `papers/<id>/`, `repos/<id>/` and `envs/<id>/`. [`Suite`] finds them; [`LoadedPaper`] is
//! one paper with everything that a run needs, each file read and parsed once.

mod bodies;
mod bundled;
mod check;
pub(crate) mod copies;
mod dates;
mod dependencies;
mod evidence;
mod faults;
mod gold;
mod gold_values;
mod loaded;
mod marked;
mod paper;
mod pieces;
mod problem;
mod secrets;
mod section;
mod spans;
mod unfinished;
mod written;

use std::path::{Path, PathBuf};

pub(crate) use bodies::{Bodies, ShingleOccurrence};
pub(crate) use bundled::{BUNDLED, STARTER, bundled, is_bundled};
pub use check::check;
pub(crate) use check::contradictions;
pub use dates::PartialDate;
pub use dependencies::Dependencies;
pub(crate) use evidence::{EVIDENCE_FORMAT, FunctionEvidence, PaperEvidence};
pub(crate) use faults::is_manifest_id;
pub(crate) use gold::GOLD_FORMAT;
pub use gold::{EnvStamp, Gold, GoldResult};
pub(crate) use gold_values::{CHANCE_IN_PROSE, GoldValues};
pub use loaded::LoadedPaper;
pub(crate) use loaded::MaskedFile;
pub(crate) use marked::{plain, settings};
pub(crate) use paper::CurtailedEvidence;
pub use paper::{Experiment, ManifestFunction, ManifestRegion, Paper, Parameters, Protocol, ResultRule, Stdout, Unit};
pub(crate) use pieces::Piece;
pub use problem::Problem;
pub use secrets::secrets;
pub use section::Section;
pub(crate) use section::sections;
pub(crate) use unfinished::TODO;
pub(crate) use written::{result_numbers, roundings, written_numbers};

use crate::error::{Error, Result};
pub use crate::tolerance::ToleranceRule;

/// A folder of papers, repos and envs.
#[derive(Debug, Clone)]
pub struct Suite {
    root: PathBuf,
}

impl Suite {
    /// Opens the suite in this folder.
    ///
    /// # Errors
    /// Kind `Suite` if it has no `papers` folder.
    pub fn open(root: &Path) -> Result<Self> {
        if !root.join("papers").is_dir() {
            return Err(Error::suite(format!("no suite in `{}`: there is no folder `papers`", root.display()))
                .hint("name a suite's folder with `--suite DIR`, or write one with `autoexperiment init`"));
        }
        let root = std::path::absolute(root).map_err(|error| Error::io("resolve", root, error))?;
        Ok(Self { root })
    }

    /// The suite's folder, absolute.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the ids of all papers, sorted.
    ///
    /// # Errors
    /// Kind `Machine` if the folder cannot be read.
    pub fn ids(&self) -> Result<Vec<String>> {
        let folder = self.root.join("papers");
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))? {
            let entry = entry.map_err(|error| Error::io("read", &folder, error))?;
            if entry.path().join("paper.toml").is_file()
                && let Ok(id) = entry.file_name().into_string()
            {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// Returns the given papers without duplicates, or all papers if none is given; sorted.
    ///
    /// # Errors
    /// Kind `Usage` for a paper that does not exist, and the errors of [`Suite::ids`].
    pub fn select(&self, asked: &[String]) -> Result<Vec<String>> {
        let known = self.ids()?;
        if asked.is_empty() {
            return Ok(known);
        }
        for id in asked {
            if !known.contains(id) {
                return Err(Error::usage(format!("no paper `{id}` in `{}`", self.root.display()))
                    .hint(format!("the papers are: {}", known.join(", "))));
            }
        }
        let mut asked = asked.to_vec();
        asked.sort();
        asked.dedup();
        Ok(asked)
    }

    /// Returns a paper's folder.
    #[must_use]
    pub fn paper_dir(&self, id: &str) -> PathBuf {
        self.root.join("papers").join(id)
    }

    /// Returns a repo's folder.
    #[must_use]
    pub fn repo_dir(&self, id: &str) -> PathBuf {
        self.root.join("repos").join(id)
    }

    /// Returns an env's folder.
    #[must_use]
    pub fn env_dir(&self, id: &str) -> PathBuf {
        self.root.join("envs").join(id)
    }
}
