//! What an attempt has used so far, for those who watch it while it goes on.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Steps and dollars of an attempt that runs.
#[derive(Debug, Default)]
pub struct SoFar {
    steps: AtomicU32,
    /// The bits of the dollars.
    cost: AtomicU64,
}

impl SoFar {
    /// Tells how far it is.
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
