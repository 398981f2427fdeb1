//! What an agent that is a program of its own is told.

use minijinja::context;

use super::{render, task_values};
use crate::agent::{Limits, Task};

/// The task. The answer is read from the file `answer`; without one, from what the program prints at its end.
#[must_use]
pub fn task(task: &Task, limits: &Limits, answer: Option<&str>) -> String {
    render("external_task", context! { answer => answer.unwrap_or_default(), ..task_values(task, limits) })
}
