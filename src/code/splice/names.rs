//! Finds names: those that a file binds at its top level, those that a piece of code uses, and those that statements in
//! a model's reply bind.

use std::collections::BTreeSet;
use std::ops::Range;

use tree_sitter::{Node, Tree};

/// A name that a top-level statement binds and that other code may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binding {
    /// The bound name.
    pub name: String,
    /// The statement that binds the name.
    pub kind: BindingKind,
}

/// The statement that binds a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BindingKind {
    /// The text of an import statement that binds only this name.
    Import(String),
    /// The range of a definition or an assignment.
    Code(Range<usize>),
}

/// Returns all names in a range of the tree, including names of attributes.
pub(super) fn mentioned(tree: &Tree, source: &str, range: &Range<usize>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut cursor = tree.walk();
    'tree: loop {
        let node = cursor.node();
        let apart = node.end_byte() <= range.start || node.start_byte() >= range.end;
        if !apart && cursor.goto_first_child() {
            continue;
        }
        if !apart && node.kind() == "identifier" {
            found.insert(source[node.byte_range()].to_owned());
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'tree;
            }
        }
    }
    found
}

/// Returns the names that a module binds at its top level, including bindings inside `if`, `try` and `with`.
pub(super) fn bound(tree: &Tree, source: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(source);
    // The tree's offsets are those of `source`. They are valid in the decoded text only if decoding has not changed the
    // length. Otherwise, replace every non-ASCII byte by one ASCII character.
    let text = if text.len() == source.len() { text } else { source.iter().map(|&byte| ascii(byte)).collect() };
    bindings(tree, &text).into_iter().map(|binding| binding.name).collect()
}

fn ascii(byte: u8) -> char {
    if byte.is_ascii() { char::from(byte) } else { '_' }
}

/// Returns the bindings at a module's top level, in source order.
pub(super) fn bindings(tree: &Tree, source: &str) -> Vec<Binding> {
    let mut found = Vec::new();
    let mut left = vec![tree.root_node()];
    while let Some(node) = left.pop() {
        match node.kind() {
            "import_statement" | "import_from_statement" => found.extend(imports(node, source)),
            "function_definition" | "class_definition" => found.extend(definition(node, node, source)),
            "decorated_definition" => {
                let inner = node.child_by_field_name("definition");
                found.extend(inner.and_then(|inner| definition(node, inner, source)));
            }
            "expression_statement" => found.extend(assignments(node, source)),
            _ => {
                let mut cursor = node.walk();
                let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
                left.extend(children.into_iter().rev());
            }
        }
    }
    found
}

fn definition(whole: Node<'_>, inner: Node<'_>, source: &str) -> Option<Binding> {
    let name = inner.child_by_field_name("name")?;
    let kind = BindingKind::Code(whole.byte_range());
    Some(Binding { name: source[name.byte_range()].to_owned(), kind })
}

/// Returns the bindings of `a = 1`, `a, b = 1, 2`, `a: int = 1`.
fn assignments(statement: Node<'_>, source: &str) -> Vec<Binding> {
    let mut cursor = statement.walk();
    let mut found = Vec::new();
    for child in statement.named_children(&mut cursor).filter(|child| child.kind() == "assignment") {
        let Some(left) = child.child_by_field_name("left") else { continue };
        let mut names = left.walk();
        let targets: Vec<Node<'_>> =
            if left.kind() == "identifier" { vec![left] } else { left.named_children(&mut names).collect() };
        for target in targets.into_iter().filter(|target| target.kind() == "identifier") {
            let kind = BindingKind::Code(statement.byte_range());
            found.push(Binding { name: source[target.byte_range()].to_owned(), kind });
        }
    }
    found
}

/// Returns one binding for each name that an import statement binds. The names bound by `from a import *` are unknown
/// and not returned.
fn imports(statement: Node<'_>, source: &str) -> Vec<Binding> {
    let text = |node: Node<'_>| source[node.byte_range()].split_whitespace().collect::<Vec<_>>().join(" ");
    let from = statement.child_by_field_name("module_name").map(text);
    let mut cursor = statement.walk();
    let mut found = Vec::new();
    for imported in statement.children_by_field_name("name", &mut cursor) {
        let written = text(imported);
        let alias = imported.child_by_field_name("alias").map(text);
        let name = match (&alias, &from) {
            (Some(alias), _) => alias.clone(),
            (None, Some(_)) => written.clone(),
            (None, None) => written.split('.').next().unwrap_or_default().to_owned(),
        };
        let line = match &from {
            Some(from) => format!("from {from} import {written}"),
            None => format!("import {written}"),
        };
        found.push(Binding { name, kind: BindingKind::Import(line) });
    }
    found
}

/// Returns the names of a signature's parameters, in order, with their stars (`*args`). Returns `None` if the text is
/// not a signature.
pub(super) fn parameters(header: &str) -> Option<Vec<String>> {
    let text = format!("{header} pass\n");
    let tree = crate::code::walk::parse(text.as_bytes())?;
    let mut node = tree.root_node().named_child(0)?;
    if node.kind() == "decorated_definition" {
        node = node.child_by_field_name("definition")?;
    }
    let list = node.child_by_field_name("parameters")?;
    let mut cursor = list.walk();
    let names = list.named_children(&mut cursor).filter(|child| child.kind() != "comment").map(|parameter| {
        let written = &text[parameter.byte_range()];
        written.split([':', '=']).next().unwrap_or_default().trim().to_owned()
    });
    Some(names.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::walk::parse;

    #[test]
    fn names_bound_at_module_level_are_found_and_names_bound_in_functions_or_classes_are_ignored() {
        let source = "import a.b, c as d\nfrom e import f as g, h\nfrom z import *\ntry:\n    import i\nexcept E:\n    i = None\n\
                      j, k = 1, 2\n@cache\ndef l():\n    import m\n    n = 1\nclass O:\n    p = 1\n";
        let names = bound(&parse(source.as_bytes()).unwrap(), source.as_bytes());
        assert_eq!(names.iter().map(String::as_str).collect::<String>(), "Oadghijkl");
    }

    #[test]
    fn an_import_of_several_names_is_split_by_name() {
        let source = "from e import (f as g,\n   h)\n";
        let kinds: Vec<BindingKind> =
            bindings(&parse(source.as_bytes()).unwrap(), source).into_iter().map(|binding| binding.kind).collect();
        let line = |text: &str| BindingKind::Import(text.to_owned());
        assert_eq!(kinds, [line("from e import f as g"), line("from e import h")]);
    }

    #[test]
    fn the_names_of_parameters_are_read_without_annotations_and_defaults() {
        let header = "async def f(self, /, a: int, b=[1, 2], *args: str, c: dict = {}, **kw) -> None:";
        assert_eq!(parameters(header).unwrap(), ["self", "/", "a", "b", "*args", "c", "**kw"]);
    }
}
