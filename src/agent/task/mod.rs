//! The task of an attempt, for any family.

pub(super) mod check;
pub(super) mod replication;

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::Check;

/// The task of an attempt. A general agent needs only `instructions` and `answer`; an agent made for one family uses
/// that family's [`Task::part`].
#[derive(Debug, Clone)]
pub struct Task {
    /// The sample's id.
    pub sample: String,
    /// Number of this attempt, from 0, among the attempts at the sample.
    pub attempt: u32,
    /// The instructions for the agent, in Markdown.
    pub instructions: String,
    /// The form of the answer, as part of a sentence: "one JSON object with the key `number`".
    pub answer: String,
    /// The solution that the agent `gold` carries out. It stays on the host, and no other agent may use it.
    pub solution: Solution,
    /// The cheat that the agent `forger` carries out. It satisfies every measure that does not re-run the agent's code,
    /// but does not do the task. It stays on the host, too.
    pub forgery: Option<Solution>,
    /// Data of the task that is specific to its family, for agents made for that family.
    pub part: Option<Arc<dyn Any + Send + Sync>>,
}

impl Task {
    /// Returns the family's data of type `T`; `None` if the task belongs to another family.
    #[must_use]
    pub fn part<T: Any>(&self) -> Option<&T> {
        self.part.as_deref()?.downcast_ref()
    }
}

/// A solution of a task: files to write, cells and commands to run, and the answer to report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Solution {
    /// The files to write, as paths in the repo and contents.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Cells to run in the attempt's Python session. If there are no commands, the last JSON object that a cell prints
    /// is the answer.
    pub cells: Vec<String>,
    /// The commands to run. Their results, by key, are the answer.
    pub checks: Vec<Check>,
    /// The answer, if it is not made of the commands' results.
    pub answer: Option<String>,
}
