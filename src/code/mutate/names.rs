//! The names in a mutated function that mutants depend on.

use std::collections::{HashMap, HashSet};

/// The names in a mutated function that mutants depend on.
#[derive(Default)]
pub(super) struct FunctionNames<'source> {
    /// Parameters that are never assigned.
    pub parameters: HashSet<&'source str>,
    /// Names of objects that the function changes in place.
    pub changed: HashSet<&'source str>,
    /// Names of largest or smallest values.
    pub extremes: HashSet<&'source str>,
    /// Literal defaults of the attributes of `self`: options of the class's `__init__`, and values in the class's body.
    pub options: HashMap<&'source str, &'source str>,
    /// Whether the function calls `exp`.
    pub exponentials: bool,
}
