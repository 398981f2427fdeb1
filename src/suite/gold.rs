//! `papers/<id>/gold.json`: what the unmasked repo's experiments give, as measured by `autoexperiment gold`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Protocol;
use crate::error::{Error, Result};
use crate::files::write_durably;

/// The only format version of gold files that this program writes and reads.
pub const GOLD_FORMAT: u32 = 1;

/// A paper's gold results and what they were measured with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gold {
    /// Format version.
    pub format: u32,
    /// When it was recorded.
    pub recorded: jiff::Timestamp,
    /// Digest of the repo: sha256, hex.
    pub repo: String,
    /// The environment.
    pub env: EnvStamp,
    /// The sandbox backend.
    pub sandbox: String,
    /// Digest of the base image, where the sandbox had one; as engines write it, `sha256:...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Results by protocol, then by the experiment's id.
    pub results: BTreeMap<Protocol, BTreeMap<String, GoldResult>>,
}

/// Which environment something was measured in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvStamp {
    /// `venv` or `conda`.
    pub backend: String,
    /// Digest of what was installed: sha256, hex.
    pub digest: String,
    /// Full version of the interpreter.
    pub python: String,
}

/// One experiment's gold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldResult {
    /// The command as it was run.
    pub command: String,
    /// The result.
    pub result: Value,
    /// Wall seconds of each repeat.
    pub seconds: Vec<f64>,
    /// Largest relative difference of any value between two repeats.
    pub spread: f64,
    /// What each repeat gave, kept where the experiment varies on purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Value>,
}

/// Fewest repeats of gold of an experiment that varies on purpose. With 96, the least p of a single reported result, one in
/// all draws, is well below the level of a report, so that an invented number is refused (docs/statistics.md); and 95% of
/// all golds leave a right solution a chance of 90% or more.
pub const FEWEST_REPEATS: usize = 96;

impl GoldResult {
    /// Whether it was the same every time, as far as was tried, and is not expected to vary.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.seconds.len() > 1 && self.spread == 0.0 && self.repeats.is_empty()
    }
}

impl Gold {
    /// Reads a gold file; `None` when there is none.
    ///
    /// # Errors
    /// Kind `Suite` for a broken file or an unknown format.
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

    /// Writes the file again, whole or not at all.
    ///
    /// # Errors
    /// Kind `Machine` when it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::internal("failed to serialise gold").because(error))?;
        text.push('\n');
        write_durably(path, text.as_bytes())
    }
}
