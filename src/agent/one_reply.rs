//! Tasks that one reply can answer, as `single` and `ml-agent` are given them.

use std::sync::Arc;

/// What a family gives to agents whose answer is one reply.
#[derive(Debug, Clone)]
pub struct OneReply {
    /// A prompt that says all, and how to reply.
    pub prompt: String,
    /// The task without the name of its repo, for an agent that has to find that.
    pub unplaced: String,
    /// The language of the block that holds the program.
    pub fence: &'static str,
    /// All repos of the suite.
    pub shelf: Arc<Vec<Shelved>>,
}

/// A repo as somebody who has to choose one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelved {
    /// Its id.
    pub id: String,
    /// Its documentation.
    pub docs: String,
    /// Path and text of its files.
    pub files: Vec<(String, String)>,
}
