//! Code related to a function, found by the syntax tree: callers of the function, other functions that these callers
//! call, methods of its class and functions of its file.
//!
//! Functions called by the function itself are unknown, because its body is masked.

use std::collections::BTreeSet;
use std::path::Path;

use super::snippet::{Code, Snippet};
use crate::code::last_part;

/// Scores each snippet by its relation to a function: 4 for a caller, 3 for a method of the same class, 2 for another
/// function called by a caller, 1 for a function of the same file, 0 for all others.
#[must_use]
pub(super) fn nearness(code: &Code, snippets: &[Snippet], file: &Path, function: usize) -> Vec<f64> {
    let Some(module) = code.modules.get(file) else { return vec![0.0; snippets.len()] };
    let Some(target) = module.functions().get(function) else { return vec![0.0; snippets.len()] };
    // Code that calls a constructor or another special method contains the name of the class instead of the method's
    // name.
    let own = last_part(&target.name);
    let called = match &target.class {
        Some(class) if own.starts_with("__") => last_part(class),
        _ => own,
    };
    let calls = |snippet: &Snippet| -> BTreeSet<String> {
        let module = code.modules.get(&snippet.file);
        let calls = module.map(|module| module.calls(snippet.function)).unwrap_or_default();
        calls.iter().map(|call| last_part(call).to_owned()).collect()
    };
    let is_target = |snippet: &Snippet| snippet.file == file && snippet.function == function;
    let callers: Vec<bool> = snippets.iter().map(|it| !is_target(it) && calls(it).contains(called)).collect();
    let beside: BTreeSet<String> =
        snippets.iter().zip(&callers).filter(|(_, caller)| **caller).flat_map(|(it, _)| calls(it)).collect();
    snippets
        .iter()
        .zip(&callers)
        .map(|(snippet, &caller)| {
            let same_file = snippet.file == file;
            let other = code.modules.get(&snippet.file).and_then(|module| module.functions().get(snippet.function));
            let Some(other) = other.filter(|_| !is_target(snippet)) else { return 0.0 };
            if caller {
                4.0
            } else if same_file && target.class.is_some() && other.class == target.class {
                3.0
            } else if beside.contains(last_part(&other.name)) {
                2.0
            } else if same_file {
                1.0
            } else {
                0.0
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_score_highest_then_methods_of_the_class_callees_of_callers_and_functions_of_the_file() {
        let a = "class A:\n    def f(self):\n        raise NotImplementedError\n    def g(self):\n        return 1\n\n\ndef near():\n    return 2\n";
        let b =
            "def run(a):\n    return a.f() + helper()\n\n\ndef helper():\n    return 3\n\n\ndef far():\n    return 4\n";
        let code = Code::new([("a.py".into(), a.into()), ("b.py".into(), b.into())]);
        let snippets = code.snippets();
        let scores = nearness(&code, &snippets, Path::new("a.py"), 0);
        let named: Vec<(&str, u32)> =
            snippets.iter().zip(&scores).map(|(it, &score)| (it.at.as_str(), score as u32)).collect();
        let expected = [
            ("a.py::A.f", 0),
            ("a.py::A.g", 3),
            ("a.py::near", 1),
            ("b.py::run", 4),
            ("b.py::helper", 2),
            ("b.py::far", 0),
        ];
        assert_eq!(named, expected);
    }
}
