//! How much longer a command may take on a busy machine.

use std::time::Duration;

use super::{Exec, Exit, Fault};

/// How many times as long a command may take in all, where other processes have the processors.
const STRETCH: u32 = 30;

/// How much longer than `wall` a command may take, as long as other processes keep it from running.
#[must_use]
pub fn patience(wall: Duration) -> Duration {
    wall.saturating_mul(STRETCH - 1)
}

/// The command's result, unless it was stopped before it had run for `wall`: then it is not known whether it would have
/// ended in time.
///
/// # Errors
/// [`Fault::Lost`] if so.
pub fn in_time(exec: Exec, wall: Duration) -> Result<Exec, Fault> {
    if exec.exit != Exit::TimedOut || exec.starved.is_zero() || exec.starved < patience(wall) {
        return Ok(exec);
    }
    Err(Fault::lost(format!(
        "the machine is too busy: other processes had the processors for {:.0} of the {:.0} s that a command took, so \
             whether it keeps its limit of {:.0} s cannot be told; run fewer at once (`-j`)",
        exec.starved.as_secs_f64(),
        exec.wall.as_secs_f64(),
        wall.as_secs_f64()
    )))
}
