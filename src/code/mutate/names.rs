//! Names in a function that decide which mutants of the function are made.

use std::collections::{HashMap, HashSet};

/// Names in a function that decide which mutants of the function are made.
#[derive(Default)]
pub(super) struct FunctionNames<'source> {
    /// Parameters that are never assigned.
    pub parameters: HashSet<&'source str>,
    /// Names of objects that the function changes in place.
    pub changed: HashSet<&'source str>,
    /// Names of variables that hold a largest or smallest value.
    pub extremes: HashSet<&'source str>,
    /// Literal defaults of attributes of `self`, by the attribute's name. Such a default is either the default of the
    /// `__init__` parameter that is stored in the attribute, or the value that the class's body assigns to it.
    pub options: HashMap<&'source str, &'source str>,
    /// Whether the function calls `exp`.
    pub exponentials: bool,
}
