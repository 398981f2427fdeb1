//! Finds functions with similar bodies. Siblings have the same name and parameters, in other classes or files, and the
//! body of one can replace the body of the other. Opposites, such as `__eq__` and `__ne__`, have bodies that differ
//! only in comparisons, truth values, `and`, `or` and `not`.

use super::function::last_part;
use super::module::Module;
use super::similarity::{Identifiers, containment};
use super::tokens::CodeTokens;

/// Minimum number of tokens of a function's body for [`Module::has_opposite`]. Shorter bodies are alike by chance.
const LEAST_TOKENS: usize = 24;

impl Module {
    /// Whether this file has an opposite of the function: another function that contains at least the share `least`
    /// (0 to 1) of this function's body if all comparisons, truth values, `and` and `or` are treated as equal and `not`
    /// is ignored.
    pub(crate) fn has_opposite(&self, function: usize, least: f64) -> bool {
        let range = self.body_code(function);
        let tokens = |range| CodeTokens::split(self.source(), range).without_truth();
        let own = tokens(range.clone());
        let others = (0..self.functions().len()).map(|other| self.body_code(other));
        own.len() >= LEAST_TOKENS
            && others
                .filter(|other| other.end <= range.start || range.end <= other.start)
                .any(|other| containment(&own, &tokens(other), Identifiers::Kept) >= least)
    }

    /// Replaces the body of `function` by the body of `sibling`, a function of the module `other`. Returns the share
    /// (0 to 1) of the replaced body's tokens that the sibling's body has in the same order, and the file's new bytes.
    /// Returns `None` if the two functions differ in name, parameters or indentation, if their bodies are the same, or
    /// if the result does not parse.
    pub(crate) fn with_body_of_sibling(&self, function: usize, other: &Self, sibling: usize) -> Option<(f64, Vec<u8>)> {
        let (own, its) = (&self.functions()[function], &other.functions()[sibling]);
        let header = |module: &Self, range: &std::ops::Range<usize>| -> Vec<u8> {
            module.source()[range.clone()].iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
        };
        let is_sibling = last_part(&own.name) == last_part(&its.name)
            && own.indent == its.indent
            && header(self, &own.header) == header(other, &its.header);
        let (range, from) = (self.body_code(function), other.body_code(sibling));
        let (body, its_body) = (&self.source()[range.clone()], &other.source()[from.clone()]);
        // The sibling's body must begin below its header: a body on the header's line cannot be put below a docstring.
        let is_block = its_body.trim_ascii_start().len() < its_body.len() && its_body.contains(&b'\n');
        if !is_sibling || !is_block || body.trim_ascii() == its_body.trim_ascii() {
            return None;
        }
        let mut text = self.source().to_vec();
        text.splice(range.clone(), its_body.iter().copied());
        let share = CodeTokens::split(self.source(), range).share_in_order(&CodeTokens::split(other.source(), from));
        Self::parse(self.path(), text.clone()).ok().map(|_| (share, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_a_sibling_method_replaces_a_methods_body() {
        let own = "class A:\n    def f(self, x):\n        \"\"\"Of A.\"\"\"\n        return x\n\n    def g(self):\n        return 1\n";
        let other = "class B:\n    def f(self,\n          x):\n        y = x + 1\n        return y\n\n    def g(self, more):\n        return 2\n";
        let (own, other) = [own, other].map(|text| Module::parse("m.py", text.as_bytes().to_vec()).unwrap()).into();
        let (share, text) = own.with_body_of_sibling(0, &other, 0).unwrap();
        assert!(share > 0.4 && share <= 1.0, "{share}");
        let expected =
            "class A:\n    def f(self, x):\n        \"\"\"Of A.\"\"\"\n        y = x + 1\n        return y\n";
        assert!(String::from_utf8(text).unwrap().starts_with(expected));
        assert_eq!(own.with_body_of_sibling(1, &other, 1), None);
        assert_eq!(own.with_body_of_sibling(0, &own, 0), None);
    }

    #[test]
    fn two_functions_are_opposites_if_their_bodies_differ_only_in_comparisons_and_truth_values() {
        let source = "class A:\n    def __eq__(self, other):\n        if isinstance(other, A):\n            return self.x == other.x and self.y == other.y\n        return False\n\n    \
            def __ne__(self, other):\n        if not isinstance(other, A):\n            return True\n        return self.x != other.x or self.y != other.y\n\n    \
            def swapped(self, other):\n        if isinstance(other, A):\n            return self.x != other.x or not self.y == other.y\n        return True\n\n    \
            def far(self, other):\n        if isinstance(other, A):\n            return self.x - other.x + abs(self.y - other.y) ** 2\n        return None\n";
        let module = Module::parse("m.py", source.as_bytes().to_vec()).unwrap();
        let found: Vec<bool> = (0..4).map(|function| module.has_opposite(function, 0.6)).collect();
        assert_eq!(found, [true, false, true, false]);
    }
}
