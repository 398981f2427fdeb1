//! Finds out which functions of a package an older version did not have.

use std::path::Path;

use crate::code::{CodeTokens, Identifiers, Module, containment, index_tree};

/// Share of a function's body that an older version must contain for the function to count as existing in it.
const KNOWN: f64 = 0.5;

/// The code of an older version of a package.
pub(super) struct EarlierVersion {
    modules: Vec<Module>,
}

impl EarlierVersion {
    /// Reads all Python files in a folder.
    pub(super) fn read(folder: &Path) -> Self {
        Self { modules: index_tree(folder).into_iter().filter_map(|(_, module)| module.ok()).collect() }
    }

    /// Whether the older version had this function, given by its index in its module. It had the function if one of its
    /// functions has the same name and at least half of the body's tokens in the same order. To find functions that
    /// were moved or renamed, it also counts if any of its files has at least half of the body's shingles (short
    /// sequences of tokens).
    pub(super) fn has(&self, module: &Module, function: usize) -> bool {
        let body = CodeTokens::split(module.source(), module.body_code(function));
        let name = &module.functions()[function].name;
        self.modules.iter().any(|old| {
            let same = (0..old.functions().len()).filter(|place| old.functions()[*place].name == *name);
            same.into_iter().any(|place| {
                let known = CodeTokens::split(old.source(), old.body_code(place));
                body.share_in_order(&known) >= KNOWN
            }) || containment(&body, &CodeTokens::new(old.source()), Identifiers::Normalised) >= KNOWN
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n    return total / len(values)\n\n\n\
        def span(values):\n    low = min(values)\n    high = max(values)\n    return high - low\n";

    fn is_fresh(code: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("old.py"), OLD).unwrap();
        let module = Module::parse("new.py", code.into()).unwrap();
        !EarlierVersion::read(folder.path()).has(&module, 0)
    }

    #[test]
    fn a_function_is_fresh_if_it_is_new_or_more_than_half_of_its_body_is() {
        let mean = "    total = 0\n    for value in values:\n        total += value\n    return total / len(values)\n";
        assert!(!is_fresh(&format!("def mean(values):\n{mean}")));
        // A function that was only renamed and given a docstring is not new.
        assert!(!is_fresh(&format!("def average(values):\n    '''The average.'''\n{mean}")));
        // A function is not new either if its body has one more line and one changed line.
        assert!(!is_fresh(&format!("def mean(values):\n    values = list(values)\n{}", mean.replace("= 0", "= 0.0"))));
        assert!(is_fresh(
            "def span(values):\n    order = sorted(values)\n    if not order:\n        raise ValueError('empty')\n    return abs(order[-1] - order[0])\n"
        ));
        assert!(is_fresh(
            "def product(values):\n    found = 1\n    while values:\n        found *= values.pop()\n    return found\n"
        ));
    }
}
