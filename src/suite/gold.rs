//! `papers/<id>/gold.json`: the results of the unmasked repo's experiments, recorded by `autoexperiment gold`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Experiment, Protocol};
use crate::error::{Error, Result};
use crate::files::write_durably;
use crate::tolerance::Tolerance;

/// The only format version of gold files that this program writes and reads.
pub const GOLD_FORMAT: u32 = 1;

/// A paper's gold results and how they were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gold {
    /// Format version.
    pub format: u32,
    /// Time of the recording.
    pub recorded: jiff::Timestamp,
    /// Digest of the repo: SHA-256, hex.
    pub repo: String,
    /// The environment.
    pub env: EnvStamp,
    /// The sandbox backend.
    pub sandbox: String,
    /// Digest of the base image, if the sandbox had one, as container engines write it: `sha256:...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Results by protocol, then by the experiment's id.
    pub results: BTreeMap<Protocol, BTreeMap<String, GoldResult>>,
}

/// The environment in which something was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvStamp {
    /// `venv` or `conda`.
    pub backend: String,
    /// Digest of the installed packages: SHA-256, hex.
    pub digest: String,
    /// Full version of the Python interpreter.
    pub python: String,
}

/// Gold of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldResult {
    /// The command that was run.
    pub command: String,
    /// The result.
    pub result: Value,
    /// Wall seconds of each repeat.
    pub seconds: Vec<f64>,
    /// Largest relative difference of any value between two repeats.
    pub spread: f64,
    /// Result of each repeat, kept only for stochastic experiments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Value>,
}

impl Experiment {
    /// Returns the tolerance of a comparison with gold. For a stochastic experiment, the tolerance follows from gold's
    /// repeats or, without gold, is the default.
    #[must_use]
    pub fn bounds(&self, gold: Option<&GoldResult>) -> Tolerance {
        self.declared_tolerance().bounds(gold.map_or(&[], |gold| &gold.repeats))
    }
}

impl GoldResult {
    /// Whether all repeats gave the same result, and the experiment is not stochastic.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.seconds.len() > 1 && self.spread == 0.0 && self.repeats.is_empty()
    }
}

impl Gold {
    /// Reads a gold file; `None` if it does not exist.
    ///
    /// # Errors
    /// Kind `Suite` for a broken file or an unknown format; kind `Machine` if the file cannot be read.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let broken = |error: serde_json::Error| {
            Error::suite(format!("broken gold file: {error}"))
                .at(path, Some(error.line()))
                .hint("record it again with `autoexperiment gold PAPER`")
        };
        let value: Value = serde_json::from_str(&text).map_err(broken)?;
        match value.get("format").and_then(Value::as_u64) {
            Some(format) if format == u64::from(GOLD_FORMAT) => serde_json::from_value(value).map_err(broken).map(Some),
            format => Err(Error::suite(format!(
                "gold file of format {}, this version reads format {GOLD_FORMAT}",
                format.map_or("unknown".to_owned(), |format| format.to_string())
            ))
            .at(path, None)
            .hint("record it again with `autoexperiment gold PAPER`, or update autoexperiment")),
        }
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// Kind `Machine` if it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::internal("failed to serialise gold").because(error))?;
        text.push('\n');
        write_durably(path, text.as_bytes())
    }
}
