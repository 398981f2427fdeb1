//! What an agent that is a program of its own is told.

use minijinja::context;

use super::{general_values, render, task_values};
use crate::agent::{Limits, Replication, Task};

/// The task. The answer is read from the file `answer`; without one, from what the program prints at its end.
#[must_use]
pub fn task(task: &Task, limits: &Limits, answer: Option<&str>) -> String {
    let answer = answer.unwrap_or_default();
    match task.part::<Replication>() {
        Some(task) => render("external_task", context! { answer, ..task_values(task, limits) }),
        None => render("general_external", context! { answer, ..general_values(task, limits) }),
    }
}
