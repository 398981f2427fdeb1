//! Follows the records of all shards, reading what was added since the last time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use serde::Deserialize;

use crate::agent::End;
use crate::error::{Error, Result};
use crate::run::Store;

/// How an attempt ended, according to its record.
#[derive(Debug, Deserialize)]
pub struct RecordedEnd<'a> {
    /// The agent's label.
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
    /// The sample's id.
    #[serde(borrow)]
    pub sample: Cow<'a, str>,
    /// Number of the attempt.
    pub attempt: u32,
    /// Why the attempt stopped.
    pub end: End,
    /// Details of the end.
    #[serde(default)]
    pub end_detail: Option<String>,
    /// Whether the agent had finished and only the verification was lost to infrastructure.
    #[serde(default)]
    pub verification_lost: bool,
}

/// Position up to which each file was read.
#[derive(Debug, Default)]
pub(super) struct TailPositions {
    read: HashMap<PathBuf, u64>,
}

impl TailPositions {
    /// Passes every new record to `each`. Skips broken lines, which [`Store::records`] reports as errors.
    ///
    /// # Errors
    /// Kind `Store` if a file cannot be read.
    pub fn read(&mut self, store: &Store, mut each: impl FnMut(RecordedEnd<'_>)) -> Result<()> {
        for path in store.record_files()? {
            let failed = |error| Error::store(format!("failed to read `{}`", path.display())).because(error);
            let from = self.read.get(&path).copied().unwrap_or_default();
            let file = File::open(&path).map_err(failed)?;
            let length = file.metadata().map_err(failed)?.len();
            let mut bytes = vec![0; usize::try_from(length.saturating_sub(from)).unwrap_or_default()];
            file.read_exact_at(&mut bytes, from).map_err(failed)?;
            // Read only up to the last line break, because another process may still be writing the line after it.
            let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
            for line in bytes[..whole].split(|&byte| byte == b'\n') {
                if let Ok(ended) = serde_json::from_slice(line) {
                    each(ended);
                }
            }
            self.read.insert(path, from + whole as u64);
        }
        Ok(())
    }
}
