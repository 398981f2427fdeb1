//! Prompts of external agents.

use minijinja::context;

use super::{general_values, render, task_values};
use crate::agent::{Limits, Replication, Task};

/// Renders the task. The prompt asks the agent to write its answer to the file `answer` or, if that is `None`, to print
/// it at the end of the program's output.
#[must_use]
pub fn task(task: &Task, limits: &Limits, answer: Option<&str>) -> String {
    let answer = answer.unwrap_or_default();
    match task.part::<Replication>() {
        Some(task) => render("external_task", context! { answer, ..task_values(task, limits) }),
        None => render("general_external", context! { answer, ..general_values(task, limits) }),
    }
}
