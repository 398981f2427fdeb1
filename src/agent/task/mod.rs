//! The task of an attempt, for any family.

pub(super) mod check;
pub(super) mod replication;

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::Check;

/// The task of an attempt. A general agent needs only `instructions` and `answer`; an agent that knows a family uses
/// that family's [`Task::part`].
#[derive(Debug, Clone)]
pub struct Task {
    /// The sample's id.
    pub sample: String,
    /// Number of this attempt at the sample, from 0.
    pub attempt: u32,
    /// The instructions for the agent, in Markdown.
    pub instructions: String,
    /// The form of the answer, as a fragment: "one JSON object with the key `number`".
    pub answer: String,
    /// The solution that `gold` follows. On the host only: no other agent may use it.
    pub solution: Solution,
    /// The forgery that `forger` follows: it satisfies what can be measured without running anything, without doing the
    /// task. Also on the host only.
    pub forgery: Option<Solution>,
    /// The family's own part of the task, for agents that know the family.
    pub part: Option<Arc<dyn Any + Send + Sync>>,
}

impl Task {
    /// The family's own part of the task; `None` if the task is of another family.
    #[must_use]
    pub fn part<T: Any>(&self) -> Option<&T> {
        self.part.as_deref()?.downcast_ref()
    }
}

/// A solution of a task: files to write, cells and commands to run, and the answer to report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Solution {
    /// The files: paths in the repo and contents.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Cells run in the attempt's Python session. Without commands, the last JSON object that a cell printed is the
    /// answer.
    pub cells: Vec<String>,
    /// The commands. Their results, by key, are the answer.
    pub checks: Vec<Check>,
    /// The answer, if it doesn't consist of the commands' results.
    pub answer: Option<String>,
}
