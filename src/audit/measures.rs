//! Options for measuring how a paper's experiments react to masked and to mutated functions.

use super::matrix::MatrixMethod;

/// Seed that selects a function's mutants. Another seed would select other mutants, so every `evidence.json` would
/// change.
pub const MUTANT_SEED: u64 = 0;

/// Options for measuring how a paper's experiments react to masked and to mutated functions.
#[derive(Debug, Clone, Copy)]
pub struct Measures {
    /// How to measure the dependency matrix, which contains the effect of masking each function on each experiment.
    pub effort: MatrixMethod,
    /// Number of mutants per function; `None` leaves the stored results of mutants as they are.
    pub mutants: Option<usize>,
}
