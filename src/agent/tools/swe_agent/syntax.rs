//! Detects edits that break a Python file: syntax errors that the file has after the edit but not before.

use tree_sitter::{Node, Parser};

/// Returns the line (from 1) of the first syntax error in `after` if the edit added errors. Returns `None` if it added
/// none, or if the file is not Python.
#[must_use]
pub fn broken(path: &str, before: &str, after: &str) -> Option<usize> {
    if !path.to_lowercase().ends_with(".py") {
        return None;
    }
    let (old, new) = (errors(before)?, errors(after)?);
    // Count only the added errors, so that a file that was already broken can be repaired step by step.
    if new.len() > old.len() || (old.is_empty() && !new.is_empty()) { new.first().copied() } else { None }
}

/// Returns the lines with syntax errors.
fn errors(text: &str) -> Option<Vec<usize>> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_python::LANGUAGE.into()).ok()?;
    let tree = parser.parse(text, None)?;
    let mut found = Vec::new();
    let mut open: Vec<Node<'_>> = vec![tree.root_node()];
    while let Some(node) = open.pop() {
        if node.is_error() || node.is_missing() {
            found.push(node.start_position().row + 1);
        }
        if node.has_error() {
            let mut cursor = node.walk();
            open.extend(node.children(&mut cursor));
        }
    }
    found.sort_unstable();
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::broken;

    #[test]
    fn only_syntax_errors_that_an_edit_adds_are_reported() {
        let fine = "def f(x):\n    return x\n";
        assert_eq!(broken("a.py", fine, "def f(x):\n    return (x\n"), Some(2));
        assert_eq!(broken("a.py", fine, "def f(x)\n    return x\n"), Some(1));
        assert_eq!(broken("a.py", fine, "def f(x):\n    return 2 * x\n"), None);
        let bad = "def f(x:\n    return x\ny = 1\n";
        assert_eq!(broken("a.py", bad, "def f(x:\n    return x\ny = 2\n"), None, "it was broken before");
        assert_eq!(broken("a.txt", "one", "def f(x"), None);
    }
}
