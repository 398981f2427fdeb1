//! The tools of SUPER's agents (Bogin et al., 2024): a Python session that lasts, edits by exact lines, submit.

mod edit;
mod execute;
mod interrupt;
#[cfg(test)]
mod tests;
mod wait;

pub use edit::Edit;
pub use execute::Execute;
pub use interrupt::Interrupt;
pub use wait::Wait;

use std::time::Duration;

use super::{Failure, wall};
use crate::agent::Context;
use crate::agent::python_session::PATIENCE;

/// Sets how long the next call may take: what the model asks for, else what the task says, else what a command may take,
/// but no more than SUPER's 5 minutes. Gives back what was set before.
fn be_patient(seconds: Option<f64>, context: &mut Context<'_>) -> Result<Option<Duration>, Failure> {
    let before = context.session.patience;
    let default = before.unwrap_or_else(|| PATIENCE.min(context.budget.command_limit()));
    context.session.patience = Some(if seconds.is_some() { wall(seconds, context.budget)? } else { default });
    Ok(before)
}
