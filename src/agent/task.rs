//! What an attempt is given, whatever the kind of task.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use super::Check;

/// What an attempt is given. An agent that can do any kind of task needs no more than `instructions` and `answer`; one
/// that knows a family asks for that family's [`Task::part`].
#[derive(Debug, Clone)]
pub struct Task {
    /// The sample's id.
    pub sample: String,
    /// Number of this attempt at the sample, from 0.
    pub attempt: u32,
    /// What the agent is to do, as it is told: Markdown.
    pub instructions: String,
    /// What its answer must be, a fragment: "one JSON object with the key `number`".
    pub answer: String,
    /// What `gold` does. On the host only: no other agent may look.
    pub solution: Solution,
    /// What `forger` does: it meets what can be measured without running anything, and does not do the task. Also on the
    /// host only.
    pub forgery: Option<Solution>,
    /// What a family gives to agents that know it.
    pub part: Option<Arc<dyn Any + Send + Sync>>,
}

impl Task {
    /// What the family gives to agents that know it; `None` in other families.
    #[must_use]
    pub fn part<T: Any>(&self) -> Option<&T> {
        self.part.as_deref()?.downcast_ref()
    }
}

/// How a task is solved: files are written, cells and commands run, and what they give is reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Solution {
    /// The files, by path in the repo.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The cells, run in the attempt's Python session. Where there are no commands, the last JSON object that a cell
    /// printed is the answer.
    pub cells: Vec<String>,
    /// The commands, whose results by their keys are the answer.
    pub checks: Vec<Check>,
    /// The answer, where it is not what the commands give.
    pub answer: Option<String>,
}
