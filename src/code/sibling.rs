//! Siblings of a function: functions of the same name and parameters in other classes or files. The body of a sibling
//! can be put in place of the function's own body.

use super::function::last_part;
use super::module::Module;
use super::tokens::CodeTokens;

impl Module {
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
        // Require a body that begins below its header: only such a body can follow a docstring.
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
}
