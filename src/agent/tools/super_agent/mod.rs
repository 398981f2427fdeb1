//! The tools of SUPER's agents (Bogin et al., 2024): a persistent Python session, edits by exact lines, submit.

mod edit;
mod execute;
mod interrupt;
#[cfg(test)]
mod tests;
mod wait;

pub use edit::SuperEdit;
pub use execute::Execute;
pub use interrupt::Interrupt;
pub use wait::Wait;

use std::time::Duration;

use super::{ToolFailure, wall};
use crate::agent::Context;
use crate::agent::python::session::PATIENCE;

/// Sets the time limit of the next call: the limit that the model requests, or else the limit set by the task, or else
/// the default time limit of a command, but at most SUPER's 5 minutes. Returns the previous setting.
fn be_patient(seconds: Option<f64>, context: &mut Context<'_>) -> Result<Option<Duration>, ToolFailure> {
    let before = context.session.patience;
    let default = before.unwrap_or_else(|| PATIENCE.min(context.budget.command_limit()));
    context.session.patience = Some(if seconds.is_some() { wall(seconds, context.budget)? } else { default });
    Ok(before)
}
