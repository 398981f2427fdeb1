//! The audit of a scrubbed text: a list of the text's numbers that says for each number whether it was removed, and
//! why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MarkupFormat, Scrubbed, SeenNumber};

/// The only format version of audits that this program writes.
pub const AUDIT_FORMAT: u32 = 1;

/// Contents of the file written by `--audit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Format version.
    pub format: u32,
    /// Format in which the text was read.
    pub text_format: MarkupFormat,
    /// Count of the removed numbers.
    pub removed: usize,
    /// Count of the kept numbers.
    pub kept: usize,
    /// All numbers, in the order of the text.
    pub numbers: Vec<SeenNumber>,
}

impl Audit {
    /// Creates the audit of a scrubbed text.
    #[must_use]
    pub fn new(scrubbed: &Scrubbed, text_format: MarkupFormat) -> Self {
        let removed = scrubbed.removed();
        let kept = scrubbed.numbers.len() - removed;
        Self { format: AUDIT_FORMAT, text_format, removed, kept, numbers: scrubbed.numbers.clone() }
    }
}
