//! Findings of checks.

use crate::error::Error;

/// Something that is wrong or suspicious in a paper's files.
#[derive(Debug)]
pub struct Problem {
    /// Whether the problem makes results wrong; if not, it is only a warning.
    pub fatal: bool,
    /// The finding, with its place and a hint.
    pub error: Error,
}

impl Problem {
    /// Creates a fatal problem: one that makes results wrong.
    #[must_use]
    pub const fn error(error: Error) -> Self {
        Self { fatal: true, error }
    }

    /// Creates a warning.
    pub const fn warning(error: Error) -> Self {
        Self { fatal: false, error }
    }
}
