//! How far `ml-agent` looks for the repo that an instruction belongs to, and at it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of each of its stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reach {
    /// Most words that the model may search with.
    pub words: usize,
    /// Most repos that are looked at.
    pub repos: usize,
    /// Most replies for one repo until there is a program.
    pub replies: usize,
    /// Characters of a repo's documentation that the model plans by.
    pub docs: usize,
    /// Characters of a file that it reads.
    pub file: usize,
}

impl Default for Reach {
    /// Five repos, as published.
    fn default() -> Self {
        Self { words: 8, repos: 5, replies: 8, docs: 12_000, file: 8000 }
    }
}

impl Reach {
    /// Whether nothing else was asked for.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
