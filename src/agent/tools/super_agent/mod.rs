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
