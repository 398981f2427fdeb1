//! What to measure about a paper.

use super::matrix::Effort;

/// Decides which mutants a function gets. A different number would change all evidence.
pub const MUTANT_SEED: u64 = 0;

/// What to measure, and how.
#[derive(Debug, Clone, Copy)]
pub struct Measures {
    /// How to measure the dependency matrix.
    pub effort: Effort,
    /// Mutants per function; `None` leaves the stored results of mutants as they are.
    pub mutants: Option<usize>,
}
