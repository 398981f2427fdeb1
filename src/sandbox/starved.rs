//! Extra time for commands on a busy machine.

use std::time::Duration;

/// Maximum duration of a command on a busy machine, as a multiple of the command's time limit. A command that takes
/// longer is stopped like one that exceeds its limit.
const STRETCH: u32 = 6;

/// Returns by how much the time limit `wall` is extended at most, to make up for time in which processes outside the
/// sandbox keep a command from running.
#[must_use]
pub fn patience(wall: Duration) -> Duration {
    wall.saturating_mul(STRETCH - 1)
}
