//! `papers/<id>/evidence.json`: what `verify` measured of how far a paper can be trusted.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::write_durably;

/// The format that this version writes and reads.
pub const EVIDENCE_FORMAT: u32 = 1;

/// What was measured of a paper's functions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Format version, [`EVIDENCE_FORMAT`].
    pub format: u32,
    /// Digest of the repo that it was measured on: sha256, hex.
    pub repo: String,
    /// Whether its mutants were drawn when there were none of the semantic kinds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain: bool,
    /// Number of kinds of mutants when they were drawn; absent before there were those of ignored arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<usize>,
    /// Digest of all that it follows from, where what was measured was in order: while it is the same, `verify` measures
    /// nothing again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// By the functions' selectors.
    pub functions: BTreeMap<String, FunctionEvidence>,
}

/// What was measured of one function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionEvidence {
    /// Mutants that were run.
    pub mutants: usize,
    /// Of these, those that made an experiment fail or give another result.
    pub killed: usize,
    /// Of the others, those that the manifest marks as equivalent, with a reason.
    pub equivalent: usize,
    /// Ids of the rest: mutants that no experiment tells from the original.
    pub survivors: Vec<String>,
    /// The largest part of its body that is in another place that agents see, 0 to 1, by 12-token shingles.
    pub containment: f64,
    /// Where that is: a selector or a file; empty for nowhere.
    pub contained_in: String,
}

impl FunctionEvidence {
    /// Killed mutants, of those that are not equivalent; `None` where there are none.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        let real = self.mutants.saturating_sub(self.equivalent);
        (real > 0).then(|| self.killed as f64 / real as f64)
    }
}

/// Kinds of mutants when only tokens were changed, and when careless readings had been added.
const FIRST_KINDS: (usize, usize) = (11, 19);

impl Evidence {
    /// How many of the kinds of mutants, in their order, the mutants were drawn from.
    #[must_use]
    pub fn known_kinds(&self) -> usize {
        self.kinds.unwrap_or(if self.plain { FIRST_KINDS.0 } else { FIRST_KINDS.1 })
    }

    /// Reads the file; `None` when there is none.
    ///
    /// # Errors
    /// Kind `Suite` for a broken file or an unknown format.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let this: Self = serde_json::from_str(&text)
            .map_err(|error| Error::suite(format!("broken evidence: {error}")).at(path, Some(error.line())))?;
        if this.format != EVIDENCE_FORMAT {
            return Err(Error::suite(format!("evidence of format {}, this version reads 1", this.format))
                .at(path, None)
                .hint("update autoexperiment"));
        }
        Ok(Some(this))
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// Kind `Machine` when it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::internal("failed to serialise evidence").because(error))?;
        text.push('\n');
        write_durably(path, text.as_bytes())
    }
}
