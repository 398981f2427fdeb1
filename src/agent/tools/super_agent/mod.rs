//! The tools of SUPER's agents (Bogin et al., 2024): they run code in a persistent Python session, replace exact lines
//! of files, and submit the answer.

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

/// Sets the time limit of the next call. This is the limit that the model requests; or else the limit that the task
/// sets; or else the default time limit of a command or SUPER's 5 minutes, whichever is shorter. Returns the previous
/// setting, which the caller restores after the call.
fn be_patient(seconds: Option<f64>, context: &mut Context<'_>) -> Result<Option<Duration>, ToolFailure> {
    let before = context.session.patience;
    let default = before.unwrap_or_else(|| PATIENCE.min(context.budget.command_limit()));
    context.session.patience = Some(if seconds.is_some() { wall(seconds, context.budget)? } else { default });
    Ok(before)
}
