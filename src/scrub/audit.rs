//! The audit: every number of a text, and what became of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Format, Scrubbed, SeenNumber};

/// The only format version of audits that this program writes.
pub const AUDIT_FORMAT: u32 = 1;

/// What `--audit` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Format version.
    pub format: u32,
    /// How the text was read.
    pub text_format: Format,
    /// How many numbers were removed.
    pub removed: usize,
    /// How many were kept.
    pub kept: usize,
    /// All of them, in the order of the text.
    pub numbers: Vec<SeenNumber>,
}

impl Audit {
    /// The audit of a scrubbed text.
    #[must_use]
    pub fn new(scrubbed: &Scrubbed, text_format: Format) -> Self {
        let removed = scrubbed.removed();
        let kept = scrubbed.numbers.len() - removed;
        Self { format: AUDIT_FORMAT, text_format, removed, kept, numbers: scrubbed.numbers.clone() }
    }
}
