//! Progress of a running attempt, for display.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Steps and dollars of a running attempt.
#[derive(Debug, Default)]
pub struct LiveUsage {
    steps: AtomicU32,
    /// Dollars, stored as the bits of an `f64`.
    cost: AtomicU64,
}

impl LiveUsage {
    /// Updates steps and dollars.
    pub fn set(&self, steps: u32, cost: f64) {
        self.steps.store(steps, Ordering::Relaxed);
        self.cost.store(cost.to_bits(), Ordering::Relaxed);
    }

    /// Steps so far.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Dollars so far.
    #[must_use]
    pub fn cost(&self) -> f64 {
        f64::from_bits(self.cost.load(Ordering::Relaxed))
    }
}
