//! The task of an attempt, whatever the kind of task (family) is.

pub(super) mod check;
pub(super) mod replication;

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::Check;

/// The task of an attempt. An agent for all kinds of tasks needs only `instructions` and `answer`. An agent made for
/// one kind of task (family) also uses the data that [`Task::part`] returns.
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
    /// The cheat that the agent `forger` carries out. It does not do the task, but passes every check that does not run
    /// the agent's code again. It stays on the host, and no other agent may use it.
    pub forgery: Option<Solution>,
    /// Data for agents that are made for the task's family (kind of task). The type of the data depends on the family.
    pub part: Option<Arc<dyn Any + Send + Sync>>,
}

impl Task {
    /// Returns the data for agents that are made for the task's family. Each family has its own type of such data.
    /// Returns `None` if `T` is not the type of the task's family.
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
    /// Cells to run in the attempt's Python session.
    pub cells: Vec<String>,
    /// The commands to run, each with a key for its result.
    pub checks: Vec<Check>,
    /// The answer to report. If it is `None`, the commands' results by key are the answer or, without commands, the
    /// last JSON object that a cell prints.
    pub answer: Option<String>,
}
