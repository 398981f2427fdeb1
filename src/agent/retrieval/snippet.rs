//! A repo's code as snippets: the functions and methods of its Python files, in the state that an agent sees.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::code::Module;

/// The Python files of a repo in the state that an agent sees: masked, or with the code written so far.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// Every file that can be parsed, by path.
    pub modules: BTreeMap<PathBuf, Module>,
}

/// A function of a repo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// The function's file, as a path in the repo.
    pub file: PathBuf,
    /// The function's index in the file's module.
    pub function: usize,
    /// The function's name, as `path/file.py::Class.method`.
    pub at: String,
    /// The function's source code.
    pub text: String,
}

impl Code {
    /// Parses files. Files that cannot be parsed are omitted.
    pub fn new(files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let parsed = files.into_iter().filter_map(|(path, bytes)| {
            let module = Module::parse(path.clone(), bytes).ok()?;
            Some((path, module))
        });
        Self { modules: parsed.collect() }
    }

    /// Returns all functions that are not nested in others, in the order of file and position.
    #[must_use]
    pub fn snippets(&self) -> Vec<Snippet> {
        let mut found = Vec::new();
        for (file, module) in &self.modules {
            for (index, function) in module.functions().iter().enumerate().filter(|(_, it)| it.parent.is_none()) {
                let source = module.source();
                let start =
                    source[..function.whole.start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
                let lines = &source[start..function.body.end.max(function.whole.end)];
                found.push(Snippet {
                    file: file.clone(),
                    function: index,
                    at: module.selector(index).to_string(),
                    text: dedent(&String::from_utf8_lossy(lines)),
                });
            }
        }
        found
    }
}

/// Removes the first line's indentation from all lines.
fn dedent(text: &str) -> String {
    let indent = &text[..text.len() - text.trim_start_matches([' ', '\t']).len()];
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(indent).unwrap_or(line)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_are_functions_with_their_decorators_and_without_nested_ones() {
        let source = "class A:\n    @p\n    def f(self):\n        def g():\n            return 1\n        return g\n";
        let code = Code::new([("a.py".into(), source.into()), ("b.py".into(), b"def (".to_vec())]);
        let snippets = code.snippets();
        assert_eq!(snippets.len(), 1);
        assert_eq!(snippets[0].at, "a.py::A.f");
        assert_eq!(snippets[0].text, "@p\ndef f(self):\n    def g():\n        return 1\n    return g");
    }
}
