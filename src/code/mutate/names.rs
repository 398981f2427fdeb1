//! The names of the function that is changed.

use std::collections::{HashMap, HashSet};

/// The names of the function that is changed, as far as mutants depend on them.
#[derive(Default)]
pub(super) struct Names<'source> {
    /// Its parameters that it never assigns.
    pub parameters: HashSet<&'source str>,
    /// Names of objects that it changes in place.
    pub changed: HashSet<&'source str>,
    /// Names of largest or smallest values.
    pub extremes: HashSet<&'source str>,
    /// Literal defaults of the attributes of `self`: options of the class's `__init__`, and values in the class's body.
    pub options: HashMap<&'source str, &'source str>,
    /// Whether it calls `exp`.
    pub exponentials: bool,
}
