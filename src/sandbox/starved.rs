//! Extra time for commands on a busy machine.

use std::time::Duration;

/// Maximum duration of a command, as a multiple of its limit, however busy the machine is. A command that takes longer
/// is stopped in the same way as at its limit.
const STRETCH: u32 = 6;

/// Maximum extension of the limit `wall` for time in which processes outside the sandbox keep a command from running.
#[must_use]
pub fn patience(wall: Duration) -> Duration {
    wall.saturating_mul(STRETCH - 1)
}
