//! The names in a function that its mutants depend on.

use std::collections::{HashMap, HashSet};

/// The names in a function that its mutants depend on.
#[derive(Default)]
pub(super) struct FunctionNames<'source> {
    /// Parameters that are never assigned.
    pub parameters: HashSet<&'source str>,
    /// Names of objects that the function changes in place.
    pub changed: HashSet<&'source str>,
    /// Names of variables that hold a largest or smallest value.
    pub extremes: HashSet<&'source str>,
    /// Literal defaults of attributes of `self`: options of the class's `__init__`, and values in the class's body.
    pub options: HashMap<&'source str, &'source str>,
    /// Whether the function calls `exp`.
    pub exponentials: bool,
}
