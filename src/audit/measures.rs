//! What is measured of a paper.

use super::matrix::Effort;

/// Decides which mutants a function gets. Another number would change all evidence.
pub const MUTANT_SEED: u64 = 0;

/// What is measured, and how.
#[derive(Debug, Clone, Copy)]
pub struct Measures {
    /// How the dependency matrix is.
    pub effort: Effort,
    /// Mutants a function; `None` leaves what is known of them as it is.
    pub mutants: Option<usize>,
}
