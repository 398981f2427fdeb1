//! Limits of `ml-agent`'s search for the repo that the requested program belongs to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of the stages of `ml-agent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reach")]
#[serde(default)]
pub struct MlAgentLimits {
    /// Maximum number of search words.
    pub words: usize,
    /// Maximum number of repos considered.
    pub repos: usize,
    /// Maximum number of replies per repo.
    pub replies: usize,
    /// Characters shown of a repo's documentation for planning.
    pub docs: usize,
    /// Characters shown of each file that the model reads.
    pub file: usize,
}

impl Default for MlAgentLimits {
    /// Returns the default limits. ML-Bench's own agent considers five repos, too.
    fn default() -> Self {
        Self { words: 8, repos: 5, replies: 8, docs: 12_000, file: 8000 }
    }
}

impl MlAgentLimits {
    /// Whether these are the default limits.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
