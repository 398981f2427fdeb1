//! Tasks whose answer is a single reply, and the agents for them: `single` and `ml-agent`.

pub(in crate::agent) mod limits;
pub(in crate::agent) mod ml_agent;
pub(in crate::agent) mod single;

use std::sync::Arc;

use crate::agent::{AttemptEnd, Context, End, Task};
use crate::model::Model;

/// The data of a task whose answer is a single reply.
#[derive(Debug, Clone)]
pub struct OneReply {
    /// The whole task as one prompt, including the format of the reply.
    pub prompt: String,
    /// The task without the name of the repo, for agents that have to find the repo.
    pub unplaced: String,
    /// Language of the code block that holds the program.
    pub fence: &'static str,
    /// All repos of the suite.
    pub shelf: Arc<Vec<ShownRepo>>,
}

impl OneReply {
    /// Returns the task's data and the model. If either is missing, returns the reason why the attempt ends, in a
    /// message that names the `agent`.
    pub(super) fn given<'a, 'b>(
        agent: &str,
        task: &'a Task,
        context: &Context<'b>,
    ) -> Result<(&'a Self, &'b dyn Model), AttemptEnd> {
        let task = task
            .part::<Self>()
            .ok_or_else(|| End::GaveUp.because(format!("`{agent}` attempts only tasks that one reply can answer")))?;
        let model = context
            .model
            .ok_or_else(|| End::ModelDenied.because(format!("`{agent}` needs a model and was given none")))?;
        Ok((task, model))
    }
}

/// A repo, as it is shown to an agent that has to choose a repo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRepo {
    /// The repo's id.
    pub id: String,
    /// The repo's documentation.
    pub docs: String,
    /// Paths and contents of the repo's files.
    pub files: Vec<(String, String)>,
}
