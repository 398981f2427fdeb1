//! `papers/<id>/evidence.json`: the measurements by `verify` that show how far a paper can be trusted.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::write_durably;

/// The format that this version writes and reads.
pub const EVIDENCE_FORMAT: u32 = 1;

/// Measurements of a paper's functions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperEvidence {
    /// Format version, [`EVIDENCE_FORMAT`].
    pub format: u32,
    /// Digest of the repo when the functions were measured: SHA-256, hex.
    pub repo: String,
    /// Whether the mutants were drawn by an early version of the program, which did not know the semantic kinds of
    /// mutants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain: bool,
    /// Number of kinds of mutants that the program knew when it drew the mutants; absent in files written by early
    /// versions of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<usize>,
    /// Digest of everything that the measurements depend on; `None` if the measurements found faults. While the digest
    /// stays the same, `verify` does not measure again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// Measurements by the functions' selectors.
    pub functions: BTreeMap<String, FunctionEvidence>,
}

/// Measurements of one function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionEvidence {
    /// Number of mutants that were run.
    pub mutants: usize,
    /// Number of mutants that made an experiment fail or changed its result.
    pub killed: usize,
    /// Number of mutants that were not killed and that the manifest marks as equivalent, with a reason.
    pub equivalent: usize,
    /// Ids of the mutants that were neither killed nor marked as equivalent: no experiment distinguishes them from the
    /// original.
    pub survivors: Vec<String>,
    /// Largest share of the function's body that is in one other place that agents see, 0 to 1, by 12-token shingles.
    pub containment: f64,
    /// The place that contains the share `containment` of the body: the selector of a function if at least half of the
    /// share is in that function, otherwise `file:line` or a file. Empty if `containment` is 0.
    pub contained_in: String,
}

impl FunctionEvidence {
    /// Returns the killed share of the mutants that are not equivalent; `None` if every mutant is equivalent.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        let real = self.mutants.saturating_sub(self.equivalent);
        (real > 0).then(|| self.killed as f64 / real as f64)
    }
}

/// Numbers of kinds of mutants that two early versions of the program knew; their files do not state the number. The
/// first version knew only kinds that change tokens. The second version also knew kinds that imitate the mistakes of a
/// careless reader of the paper.
const FIRST_KINDS: (usize, usize) = (11, 19);

impl PaperEvidence {
    /// Returns the number of kinds that the program knew when it drew the mutants. New kinds are always added at the
    /// end of [`MutantKind`](crate::code::MutantKind).
    #[must_use]
    pub fn known_kinds(&self) -> usize {
        self.kinds.unwrap_or(if self.plain { FIRST_KINDS.0 } else { FIRST_KINDS.1 })
    }

    /// Reads the file; `None` if it does not exist.
    ///
    /// # Errors
    /// Kind `Suite` for a broken file or an unknown format; kind `Machine` if the file cannot be read.
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

    /// Writes the file atomically.
    ///
    /// # Errors
    /// Kind `Machine` if it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::internal("failed to serialise evidence").because(error))?;
        text.push('\n');
        write_durably(path, text.as_bytes())
    }
}
