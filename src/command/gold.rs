//! `commands/<repo>.gold.json`: for each instruction of a repo, the results of a program that carries it out (the right
//! program), as measured by `autoexperiment gold --family command`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::argv::StartedProgram;
use super::calls::{self, ExpectedCall};
use super::manifest::CommandSet;
use super::observe::{ParserCall, RecordingPlan, Shift};
use crate::error::{Error, Result};
use crate::files::write_durably;
use crate::suite::EnvStamp;

/// Version of the format of gold files. No other version is written or read.
pub const FORMAT: u32 = 3;

/// For each instruction of a repo, the results of its right program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandGold {
    /// Format version.
    pub format: u32,
    /// Time at which the results were recorded.
    pub recorded: jiff::Timestamp,
    /// Digest of the repo in the attempts' sandboxes: sha256, hex.
    pub repo: String,
    /// The env in which the right programs were run.
    pub env: EnvStamp,
    /// The sandbox backend with which the right programs were run.
    pub sandbox: String,
    /// Results by the instruction's id.
    pub results: BTreeMap<String, GoldRun>,
}

/// The results of an instruction's right program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldRun {
    /// The source text of the program.
    pub program: String,
    /// The arguments that the program's parsers returned: one entry for each time that the program parsed arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ParserCall>,
    /// The calls of functions that the program makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<ExpectedCall>,
    /// The programs that the right program starts. Empty if `calls` or `functions` has an entry, because verification
    /// then compares these instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started: Vec<StartedProgram>,
    /// The result of running the right program while the recorder changes an argument that the program passes to the
    /// repo's code; `None` if no such change affects the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<ShiftOutcome>,
    /// Result of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Value>,
    /// Wall seconds of each run.
    pub seconds: Vec<f64>,
    /// For each requested argument, how verification notices that its value in the right program was changed: by
    /// `arguments`, by `outcome`, or by `failure` if the changed program fails.
    pub changes: BTreeMap<String, String>,
}

impl GoldRun {
    /// Returns what the recorder must record in attempts at the instruction.
    #[must_use]
    pub fn plan<'a>(&'a self, set: &'a CommandSet) -> RecordingPlan<'a> {
        RecordingPlan {
            set,
            watch: Some(calls::watch(&self.functions)),
            started: !self.started.is_empty(),
            stops: false,
            shift: self.shift.as_ref().map(|shifted| &shifted.shift),
            shifts: None,
        }
    }
}

/// The result of running a right program while the recorder changes an argument that the program passes to the repo's
/// code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftOutcome {
    /// The changed argument.
    pub shift: Shift,
    /// Result of the program with the change.
    pub outcome: Value,
}

impl CommandGold {
    /// Reads a gold file; `None` if it has another version and must be recorded again.
    ///
    /// # Errors
    /// Kind `Suite` if the file is invalid.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        #[derive(Deserialize)]
        struct FormatVersion {
            format: u32,
        }
        let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
        let broken = |error| {
            Error::suite("broken gold")
                .at(path, None)
                .because(error)
                .hint("remove it, and record it again with `autoexperiment gold --family command REPO`")
        };
        let version: FormatVersion = serde_json::from_slice(&bytes).map_err(broken)?;
        if version.format != FORMAT {
            return Ok(None);
        }
        serde_json::from_slice(&bytes).map(Some).map_err(broken)
    }

    /// Writes the gold file.
    ///
    /// # Errors
    /// Kind `Machine` if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::internal("failed to write gold").because(error))?;
        text.push('\n');
        write_durably(path, text.as_bytes())
    }
}
