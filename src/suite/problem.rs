//! Findings of checks.

use crate::error::Error;

/// Something that is wrong, or odd, with a paper.
#[derive(Debug)]
pub struct Problem {
    /// Whether results would be wrong; a warning otherwise.
    pub fatal: bool,
    /// The finding, with its place and a hint.
    pub error: Error,
}

impl Problem {
    /// Something that makes results wrong.
    #[must_use]
    pub const fn error(error: Error) -> Self {
        Self { fatal: true, error }
    }

    /// Something odd.
    pub const fn warning(error: Error) -> Self {
        Self { fatal: false, error }
    }
}
