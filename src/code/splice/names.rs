//! Finds names: those that a file binds at its top level, those that a piece of code uses, and those that statements in
//! a model's reply bind.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use tree_sitter::{Node, Tree};

/// A name that a top-level statement binds and that other code may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binding {
    /// The bound name.
    pub name: String,
    /// Offset of the statement that binds it.
    pub start: usize,
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

/// Returns the names of the attributes of one of these objects, such as `self`, that a range of the tree uses.
pub(super) fn attributes_of(tree: &Tree, source: &str, range: &Range<usize>, objects: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = starting_in(tree, range);
    while let Some(node) = left.pop() {
        let field = |name| node.child_by_field_name(name).map(|child| &source[child.byte_range()]);
        if node.kind() == "attribute" && field("object").is_some_and(|object| objects.contains(&object)) {
            found.extend(field("attribute").map(str::to_owned));
        }
        left.extend(node.named_children(&mut node.walk()));
    }
    found
}

/// Returns the names that code in a range of the tree needs from its surroundings: those that it uses but does not bind
/// as parameters or variables. Names of attributes and of keyword arguments do not count.
pub(super) fn needed(tree: &Tree, source: &str, range: &Range<usize>) -> BTreeSet<String> {
    // At the top level, code may need a name that it also binds, as a function that calls itself does.
    scope_of(tree, source, range).used
}

/// Returns the names that code in a range of the tree binds in its own scope, such as the variables of a function whose
/// body this is. Variables of nested functions and comprehensions do not count, and neither do names that the code
/// declares as `global`.
pub(super) fn bound_in(tree: &Tree, source: &str, range: &Range<usize>) -> BTreeSet<String> {
    let Scope { own, global, .. } = scope_of(tree, source, range);
    own.into_iter().filter(|name| !global.contains(name)).collect()
}

fn scope_of<'a>(tree: &Tree, source: &'a str, range: &Range<usize>) -> Scope<'a> {
    let mut scope = Scope::new(source);
    for node in starting_in(tree, range) {
        scope.visit(node);
    }
    scope
}

/// Returns the outermost nodes that begin in a range, in source order. Blocks do not count, because a block begins
/// where its first statement does.
fn starting_in<'tree>(tree: &'tree Tree, range: &Range<usize>) -> Vec<Node<'tree>> {
    let mut found = Vec::new();
    let mut left = vec![tree.root_node()];
    while let Some(node) = left.pop() {
        if !matches!(node.kind(), "module" | "block") && range.contains(&node.start_byte()) {
            found.push(node);
        } else if node.end_byte() > range.start && node.start_byte() < range.end {
            let mut cursor = node.walk();
            let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
            left.extend(children.into_iter().rev());
        }
    }
    found
}

/// The names that a function, class, lambda or comprehension uses, and those that it binds.
struct Scope<'a> {
    source: &'a str,
    used: BTreeSet<String>,
    own: BTreeSet<String>,
    /// Names declared as `global`, also in inner functions. An assignment to such a name does not make it a variable.
    global: BTreeSet<String>,
}

impl<'a> Scope<'a> {
    const fn new(source: &'a str) -> Self {
        Self { source, used: BTreeSet::new(), own: BTreeSet::new(), global: BTreeSet::new() }
    }

    fn visit(&mut self, node: Node<'_>) {
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "identifier" => drop(self.used.insert(self.source[node.byte_range()].to_owned())),
            "attribute" => self.visit_all(field("object")),
            "keyword_argument" => self.visit_all(field("value")),
            "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => {
                self.visit_all(["type", "right", "body", "alternative"].into_iter().filter_map(field));
                self.bind_all(field("left"));
            }
            "named_expression" => {
                self.visit_all(field("value"));
                self.bind_all(field("name"));
            }
            "as_pattern" => {
                let mut cursor = node.walk();
                let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
                let (aliases, others): (Vec<_>, Vec<_>) =
                    children.into_iter().partition(|child| child.kind() == "as_pattern_target");
                self.visit_all(others);
                self.bind_all(aliases);
            }
            "import_statement" | "import_from_statement" => {
                self.own.extend(imports(node, self.source).into_iter().map(|binding| binding.name));
            }
            "global_statement" => {
                let source = self.source;
                let mut cursor = node.walk();
                self.global.extend(node.named_children(&mut cursor).map(|name| source[name.byte_range()].to_owned()));
                self.visit_children(node);
            }
            "function_definition" | "class_definition" | "lambda" => {
                self.bind_all(field("name"));
                self.visit_all(["superclasses", "return_type"].into_iter().filter_map(field));
                let mut inner = Scope::new(self.source);
                if let Some(parameters) = field("parameters") {
                    let mut cursor = parameters.walk();
                    for parameter in parameters.named_children(&mut cursor) {
                        // The name is a field or, in `a: int` and `*args`, the first child.
                        let name = parameter.child_by_field_name("name").or(parameter.named_child(0));
                        inner.bind_all(name.or(Some(parameter)));
                        self.visit_all(
                            ["type", "value"].into_iter().filter_map(|part| parameter.child_by_field_name(part)),
                        );
                    }
                }
                inner.visit_all(field("body"));
                self.leave(inner);
            }
            "list_comprehension" | "set_comprehension" | "dictionary_comprehension" | "generator_expression" => {
                let mut inner = Scope::new(self.source);
                inner.visit_children(node);
                self.leave(inner);
            }
            _ => self.visit_children(node),
        }
    }

    fn visit_children(&mut self, node: Node<'_>) {
        self.visit_all(node.named_children(&mut node.walk()).collect::<Vec<_>>());
    }

    fn visit_all<'tree>(&mut self, nodes: impl IntoIterator<Item = Node<'tree>>) {
        for node in nodes {
            self.visit(node);
        }
    }

    /// Notes that the code binds the names in the targets of an assignment. A target such as `a.b` or `a[i]` uses `a`.
    fn bind_all<'tree>(&mut self, targets: impl IntoIterator<Item = Node<'tree>>) {
        for target in targets {
            match target.kind() {
                "identifier" => drop(self.own.insert(self.source[target.byte_range()].to_owned())),
                "attribute" | "subscript" => self.visit(target),
                _ => self.bind_all(target.named_children(&mut target.walk()).collect::<Vec<_>>()),
            }
        }
    }

    /// Adds what an inner scope uses and does not bind.
    fn leave(&mut self, inner: Scope<'_>) {
        let Scope { used, own, global, .. } = inner;
        self.used.extend(used.into_iter().filter(|name| !own.contains(name) || global.contains(name)));
        self.global.extend(global);
    }
}

/// Decodes a file such that offsets in its bytes are also valid in the text.
pub(super) fn text_of(source: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(source);
    // If decoding has changed the length, replace every non-ASCII byte by one ASCII character.
    if text.len() == source.len() { text } else { source.iter().map(|&byte| ascii(byte)).collect() }
}

fn ascii(byte: u8) -> char {
    if byte.is_ascii() { char::from(byte) } else { '_' }
}

/// Returns the bindings at a module's top level, including those inside `if`, `try` and `with`, in source order.
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

/// Returns the bindings of a model's reply that its function may need. A binding inside of a `try`, `if` or `with`
/// comes with this whole statement. Loops and `if __name__ == ...` are left out, because they are examples of how to
/// call the function. So are other statements that use `function` itself, except for definitions. Statements, except
/// for definitions, that need one of the function's `variables` are left out, because they are pieces of a function's
/// body.
pub(super) fn offered(tree: &Tree, source: &str, function: &str, variables: &BTreeSet<String>) -> Vec<Binding> {
    let (root, all) = (tree.root_node(), bindings(tree, source));
    let bound = bound_in(tree, source, &root.byte_range());
    let mut found = Vec::new();
    for statement in root.named_children(&mut root.walk()) {
        let range = statement.byte_range();
        let is_example = match statement.kind() {
            "for_statement" | "while_statement" => true,
            "if_statement" => {
                let condition = statement.child_by_field_name("condition");
                condition.is_some_and(|condition| source[condition.byte_range()].contains("__name__"))
            }
            "function_definition" | "class_definition" | "decorated_definition" => false,
            _ => {
                let needs = needed(tree, source, &range);
                let is_unbound = |name: &String| needs.contains(name) && !bound.contains(name);
                needs.contains(function) || variables.iter().any(is_unbound)
            }
        };
        if is_example {
            continue;
        }
        let is_compound = matches!(statement.kind(), "try_statement" | "if_statement" | "with_statement");
        let own = all.iter().filter(|binding| range.contains(&binding.start)).cloned();
        found.extend(own.map(|binding| Binding {
            kind: if is_compound { BindingKind::Code(range.clone()) } else { binding.kind },
            ..binding
        }));
    }
    found
}

fn definition(whole: Node<'_>, inner: Node<'_>, source: &str) -> Option<Binding> {
    let name = inner.child_by_field_name("name")?;
    let kind = BindingKind::Code(whole.byte_range());
    Some(Binding { name: source[name.byte_range()].to_owned(), start: whole.start_byte(), kind })
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
            found.push(Binding { name: source[target.byte_range()].to_owned(), start: statement.start_byte(), kind });
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
        found.push(Binding { name, start: statement.start_byte(), kind: BindingKind::Import(line) });
    }
    found
}

/// Whether a node defines a function or a class.
pub(super) fn is_definition(node: Node<'_>) -> bool {
    matches!(node.kind(), "function_definition" | "class_definition" | "decorated_definition")
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

/// Whether a body that was written for one signature fits the other, because the parameters have the same names. `self`
/// and `cls` are not compared.
pub(super) fn same_parameters(own: Option<&[String]>, theirs: Option<&[String]>) -> bool {
    let (Some(own), Some(theirs)) = (own, theirs) else { return true };
    let receiver = |names: &[String]| names.first().is_some_and(|first| first == "self" || first == "cls");
    let bare = |names: &[String]| names[usize::from(receiver(names))..].to_vec();
    bare(own) == bare(theirs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::walk::parse;

    #[test]
    fn names_bound_at_module_level_are_found_and_names_bound_in_functions_or_classes_are_ignored() {
        let source = "import a.b, c as d\nfrom e import f as g, h\nfrom z import *\ntry:\n    import i\nexcept E:\n    i = None\n\
                      j, k = 1, 2\n@cache\ndef l():\n    import m\n    n = 1\nclass O:\n    p = 1\n";
        let found = bindings(&parse(source.as_bytes()).unwrap(), source);
        let names: BTreeSet<&str> = found.iter().map(|binding| binding.name.as_str()).collect();
        assert_eq!(names.into_iter().collect::<String>(), "Oadghijkl");
    }

    #[test]
    fn the_text_of_a_file_has_the_same_byte_offsets_as_the_file() {
        assert_eq!(text_of("'é'".as_bytes()), "'é'");
        assert_eq!(text_of(b"'\xe9' + '\xe9\xe9'"), "'_' + '__'");
    }

    #[test]
    fn needed_names_are_neither_parameters_nor_variables_nor_attributes() {
        let source = "@cache\ndef f(a, *b, c: T = D, **d) -> R:\n    e, g.h = a.i(j=k), 1\n    with o() as p, q:\n        pass\n\
                      \x20   for r in s:\n        t += u\n    def v(w):\n        return w + x + e\n\
                      \x20   return [y for y in z if (A := y)] + list(map(lambda B: B + C, b))\nF = 1\n";
        let tree = parse(source.as_bytes()).unwrap();
        let names = needed(&tree, source, &(0..source.find("\nF").unwrap()));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(names, ["C", "D", "R", "T", "cache", "g", "k", "list", "map", "o", "q", "s", "u", "x", "z"]);
    }

    #[test]
    fn a_name_declared_as_global_is_needed_although_it_is_assigned_and_is_not_a_variable() {
        let source =
            "def f(a):\n    global b, c\n    b = a\n    d = 1\n    def e():\n        global d\n        d = b\n";
        let tree = parse(source.as_bytes()).unwrap();
        let names: Vec<String> = needed(&tree, source, &(0..source.len())).into_iter().collect();
        assert_eq!(names, ["b", "c", "d"]);
        let body = "global b\nb, a[0] = c\nfor d in [e for e in b]:\n    def g():\n        h = 1\n";
        let tree = parse(body.as_bytes()).unwrap();
        let names: Vec<String> = bound_in(&tree, body, &(0..body.len())).into_iter().collect();
        assert_eq!(names, ["d", "g"]);
    }

    #[test]
    fn the_first_method_of_a_class_needs_only_its_own_names() {
        let source = "class A:\n    def f(self):\n        return a\n\n    def g(self):\n        return b\n";
        let tree = parse(source.as_bytes()).unwrap();
        let range = source.find("def f").unwrap()..source.find("\n\n").unwrap();
        let names: Vec<String> = needed(&tree, source, &range).into_iter().collect();
        assert_eq!(names, ["a"]);
    }

    #[test]
    fn examples_of_calls_offer_nothing_and_a_guarded_import_comes_with_its_whole_statement() {
        let source = "try:\n    import cupy as xp\nexcept ImportError:\n    xp = None\nRATE = 2\ndef f(a):\n    return a\n\
                      b = f(1)\nfor c in b:\n    d = c\nif __name__ == '__main__':\n    e = 1\n";
        let tree = parse(source.as_bytes()).unwrap();
        let found = offered(&tree, source, "f", &BTreeSet::new());
        let names: Vec<&str> = found.iter().map(|binding| binding.name.as_str()).collect();
        assert_eq!(names, ["xp", "xp", "RATE", "f"]);
        assert_eq!(found[0].kind, BindingKind::Code(0..source.find("\nRATE").unwrap()));
    }

    #[test]
    fn a_statement_that_needs_a_variable_of_the_function_is_not_offered() {
        let source = "y = 2\na = x + 1\nb = y + 1\nwith c as d:\n    e = d\n";
        let tree = parse(source.as_bytes()).unwrap();
        let variables: BTreeSet<String> = ["x", "y", "d"].map(str::to_owned).into();
        let found = offered(&tree, source, "f", &variables);
        let names: Vec<&str> = found.iter().map(|binding| binding.name.as_str()).collect();
        assert_eq!(names, ["y", "b", "e"]);
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
