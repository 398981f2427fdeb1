//! The file of recorded calls. It has one JSON line per call, `{"key": ..., "request": ..., "reply": ...}`; if the
//! provider did not accept the conversation, `"error"` takes the place of `"reply"`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{QueryFailed, Reply, Request};
use crate::error::{Error, Result};
use crate::files::hex;

/// Beginning of every line. An incomplete last line that begins like this was torn when a run was killed, and is
/// skipped. Any other incomplete line means that the file is not a recording.
const START: &[u8] = b"{\"key\":\"";

/// The recorded outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedOutcome {
    /// The model's reply.
    Reply(Box<Reply>),
    /// The error for a conversation that was too long or refused.
    #[serde(rename = "error")]
    Failed(QueryFailed),
}

/// One recorded call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedCall {
    /// The request's [`key`].
    pub(super) key: String,
    /// The whole request.
    pub(super) request: Request,
    /// The outcome.
    #[serde(flatten)]
    pub(super) outcome: RecordedOutcome,
    /// The provider's name of the model. A replay passes it to external agents, whose requests depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
}

/// Returns the SHA-256, in hex, of the request as JSON with sorted keys. Fields that recordings leave out do not count.
pub(super) fn key(request: &Request) -> String {
    let mut value = serde_json::to_value(request).unwrap_or_default();
    value.sort_all_objects();
    hex(&Sha256::digest(value.to_string()))
}

/// Reads a recording and calls `each` for every call in order. Skips a torn last line, which a killed run leaves
/// behind. Returns the number of bytes before that line.
///
/// # Errors
/// Kind `Usage` if the file cannot be read, or, with file and line, if it is not a recording.
pub(super) fn read(path: &Path, mut each: impl FnMut(RecordedCall)) -> Result<u64> {
    let file = File::open(path)
        .map_err(|error| Error::usage(format!("failed to read recording `{}`", path.display())).because(error))?;
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    let mut whole = 0;
    for number in 1.. {
        line.clear();
        let length = lines
            .read_until(b'\n', &mut line)
            .map_err(|error| Error::usage(format!("failed to read recording `{}`", path.display())).because(error))?;
        let is_torn = line.last() != Some(&b'\n') && (line.starts_with(START) || START.starts_with(&line));
        if length == 0 || is_torn {
            break;
        }
        each(serde_json::from_slice(&line).map_err(|error| {
            Error::usage("this line is not a recorded call")
                .at(path, Some(number))
                .hint("give a file that `--record` has written")
                .because(error)
        })?);
        whole += length as u64;
    }
    Ok(whole)
}
