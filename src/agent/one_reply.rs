//! Tasks that one reply can answer, as `single` and `ml-agent` are given them.

use std::sync::Arc;

use super::{Context, End, Ended, Task};
use crate::model::Model;

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

impl OneReply {
    /// The task and the model for the agent of this name; how its attempt ends where one of them is missing.
    pub(super) fn given<'a, 'b>(
        agent: &str,
        task: &'a Task,
        context: &Context<'b>,
    ) -> Result<(&'a Self, &'b dyn Model), Ended> {
        let task = task
            .part::<Self>()
            .ok_or_else(|| End::GaveUp.because(format!("`{agent}` attempts tasks only that one reply can answer")))?;
        let model = context
            .model
            .ok_or_else(|| End::ModelDenied.because(format!("`{agent}` needs a model and was given none")))?;
        Ok((task, model))
    }
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
