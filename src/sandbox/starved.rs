//! How much longer a command may take on a busy machine.

use std::time::Duration;

/// How many times its limit a command may take in all, however busy the machine is. At that end it is stopped as at its limit.
const STRETCH: u32 = 6;

/// How much longer than `wall` a command may take, as long as processes outside its sandbox keep it from running.
#[must_use]
pub fn patience(wall: Duration) -> Duration {
    wall.saturating_mul(STRETCH - 1)
}
