//! Finds all changes that make mutants of a body, in one walk over its syntax tree in source order.

use std::collections::HashSet;
use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::MutantKind;
use super::names::FunctionNames;
use super::tables;
use crate::code::walk::{children, is_space, parts};
use crate::code::{Function, Module};

/// A change that has not been checked by parsing yet.
pub(super) struct SourceEdit {
    pub kind: MutantKind,
    pub range: Range<usize>,
    pub replacement: Vec<u8>,
    pub trivial: bool,
}

/// Kinds of nodes of the syntax tree that are not mutated. Some are not code of the body, such as comments. In the
/// others, such as `raise` statements, no working experiment can notice a change.
const SKIPPED: &[&str] = &[
    "string",
    "concatenated_string",
    "comment",
    "type",
    "decorator",
    "raise_statement",
    "assert_statement",
    "import_statement",
    "import_from_statement",
    "future_import_statement",
    "global_statement",
    "nonlocal_statement",
    "type_alias_statement",
    "print_statement",
    "exec_statement",
];

/// Finds all changes that mutants can make to the function's body. Returns `None` if the tree does not contain the
/// function.
pub(super) fn find(tree: &Tree, module: &Module, function: usize) -> Option<Vec<SourceEdit>> {
    let function = &module.functions()[function];
    let node = definition(tree, function)?;
    let source = module.source();
    let mut walk = MutationWalk {
        source,
        edits: Vec::new(),
        seen: HashSet::new(),
        nonlocal: HashSet::new(),
        scopes: Vec::new(),
        names: FunctionNames::default(),
    };
    walk.collect(node);
    walk.learn(node);
    walk.ignored_parameters(node);
    walk.function(node);
    Some(walk.edits)
}

/// Returns the statements of the function's outermost block.
pub(in crate::code) fn statements<'tree>(tree: &'tree Tree, function: &Function) -> impl Iterator<Item = Node<'tree>> {
    let block = definition(tree, function).and_then(|node| node.child_by_field_name("body"));
    block.into_iter().flat_map(|block| parts(block).collect::<Vec<_>>())
}

/// Returns the function's node in the tree.
fn definition<'tree>(tree: &'tree Tree, function: &Function) -> Option<Node<'tree>> {
    let header = &function.header;
    let mut node = tree.root_node().named_descendant_for_byte_range(header.start, header.end)?;
    while node.kind() != "function_definition" || node.start_byte() != header.start {
        node = node.parent()?;
    }
    Some(node)
}

pub(super) struct MutationWalk<'source> {
    pub(super) source: &'source [u8],
    edits: Vec<SourceEdit>,
    /// Names that occur in the function before the node that is being visited.
    seen: HashSet<&'source [u8]>,
    /// Names that a nested function declares `nonlocal`.
    pub(super) nonlocal: HashSet<&'source [u8]>,
    /// For each function that the walk has entered, its first parameter except `self` and `cls`, if any. A mutant may
    /// return this parameter instead of the result.
    scopes: Vec<Option<Range<usize>>>,
    /// The names in the function that its mutants depend on, collected by [`Self::learn`].
    pub(super) names: FunctionNames<'source>,
}

impl<'source> MutationWalk<'source> {
    /// Walks the body of a function. Not recursive, because sources may be nested deeply.
    fn function(&mut self, root: Node<'_>) {
        self.scopes.push(self.first_parameter(root));
        let mut header: Vec<Node<'_>> = root.child_by_field_name("parameters").into_iter().collect();
        while let Some(node) = header.pop() {
            self.see(node);
            header.extend(children(node));
        }
        let mut stack: Vec<(Node<'_>, usize)> =
            root.child_by_field_name("body").map(|body| (body, 0)).into_iter().collect();
        while let Some((node, mut scope)) = stack.pop() {
            if SKIPPED.contains(&node.kind()) || !self.visit(node, scope) {
                continue;
            }
            self.see(node);
            if node.kind() == "function_definition" {
                self.scopes.push(self.first_parameter(node));
                scope = self.scopes.len() - 1;
            }
            stack.extend(children(node).rev().map(|child| (child, scope)));
        }
    }

    fn see(&mut self, node: Node<'_>) {
        if node.kind() == "identifier" {
            self.seen.insert(&self.source[node.byte_range()]);
        }
    }

    /// Collects the names in `nonlocal` statements.
    fn collect(&mut self, root: Node<'_>) {
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            let inside = node.kind() == "nonlocal_statement";
            for child in children(node) {
                if inside && child.kind() == "identifier" {
                    self.nonlocal.insert(&self.source[child.byte_range()]);
                }
                stack.push(child);
            }
        }
    }

    /// Adds the changes for a node. Returns whether to visit its children.
    fn visit(&mut self, node: Node<'_>, scope: usize) -> bool {
        match node.kind() {
            "binary_operator" | "boolean_operator" => {
                self.operator(node);
                self.division(node);
                self.naive_exponential(node);
            }
            "augmented_assignment" => self.augmented(node),
            "comparison_operator" => self.comparison(node),
            "unary_operator" | "not_operator" => self.unary(node),
            "integer" => self.number(node, tables::integers(self.text(node))),
            "float" => self.number(node, tables::floats(self.text(node))),
            "true" => self.push(MutantKind::Constant, node.byte_range(), "False"),
            "false" => self.push(MutantKind::Constant, node.byte_range(), "True"),
            "call" => self.call(node),
            "attribute" => self.attribute(node),
            "keyword_argument" => return self.keyword(node),
            "subscript" => self.subscript(node),
            "slice" => self.slice(node),
            "expression_statement" => {
                self.order(node);
                return self.statement(node);
            }
            "delete_statement" | "break_statement" | "continue_statement" => {
                self.push(MutantKind::Statement, node.byte_range(), "pass");
            }
            "return_statement" | "yield" => self.returned(node, scope),
            "if_statement" | "elif_clause" | "while_statement" => {
                if let Some(condition) = node.child_by_field_name("condition") {
                    self.condition(condition);
                }
                match node.kind() {
                    "if_statement" => self.guarded_step(node),
                    "while_statement" => self.single_round(node),
                    _ => {}
                }
            }
            "if_clause" => {
                if let Some(condition) = parts(node).next() {
                    self.condition(condition);
                }
            }
            "conditional_expression" => {
                if let Some(condition) = parts(node).nth(1) {
                    self.condition(condition);
                }
            }
            _ => {}
        }
        true
    }

    fn operator(&mut self, node: Node<'_>) {
        let Some(operator) = node.child_by_field_name("operator") else { return };
        let plain = |field| node.child_by_field_name(field).is_none_or(|side| !is_sequence(side));
        let trivial = !(plain("left") && plain("right"));
        if operator.kind() == "%" && node.child_by_field_name("left").is_some_and(is_sequence) {
            return;
        }
        for other in tables::operators(operator.kind()) {
            self.add(MutantKind::Operator, operator.byte_range(), other.as_bytes().to_vec(), trivial);
        }
    }

    fn augmented(&mut self, node: Node<'_>) {
        let Some(operator) = node.child_by_field_name("operator") else { return };
        for other in tables::operators(operator.kind().trim_end_matches('=')) {
            self.push(MutantKind::Operator, operator.byte_range(), &format!("{other}="));
        }
    }

    fn comparison(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        for operator in node.children_by_field_name("operators", &mut cursor) {
            for other in tables::comparisons(operator.kind()) {
                self.push(MutantKind::Compare, operator.byte_range(), other);
            }
        }
    }

    /// Adds a change that leaves out `-`, `~` or `not`. Leaving out `+` would have no effect.
    fn unary(&mut self, node: Node<'_>) {
        let (Some(operator), Some(argument)) = (node.child(0), node.child_by_field_name("argument")) else { return };
        if operator.kind() != "+" {
            self.push(MutantKind::Unary, operator.start_byte()..argument.start_byte(), "");
        }
    }

    fn number(&mut self, node: Node<'_>, others: Vec<String>) {
        for other in others {
            self.push(MutantKind::Constant, node.byte_range(), &other);
        }
    }

    fn call(&mut self, node: Node<'_>) {
        let (Some(callee), Some(arguments)) =
            (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
        else {
            return;
        };
        let name = callee.child_by_field_name("attribute").unwrap_or(callee);
        let name = if name.kind() == "identifier" { self.text(name) } else { "" };
        if callee.kind() == "identifier"
            && let Some(other) = tables::built_in(name)
        {
            self.push(MutantKind::Name, callee.byte_range(), other);
        }
        if arguments.kind() != "argument_list" {
            return;
        }
        let all: Vec<Node<'_>> = parts(arguments).collect();
        self.careless_call(node, callee, name, &all);
        self.habitual_call(node, callee, name, &all);
        if matches!(name, "range" | "arange") {
            self.range(&all);
        }
        if !tables::is_symmetric(name) {
            for pair in all.windows(2) {
                if pair.iter().all(|argument| !argument.kind().contains("splat") && !is_keyword(*argument)) {
                    self.swap(pair[0], pair[1]);
                }
            }
        }
        for (at, argument) in all.iter().enumerate().filter(|(_, argument)| is_keyword(**argument)) {
            // Also remove the comma after the argument. The last argument loses the comma before it.
            let range = match (all.get(at + 1), at.checked_sub(1)) {
                (Some(next), _) => argument.start_byte()..next.start_byte(),
                (None, Some(before)) => all[before].end_byte()..argument.end_byte(),
                (None, None) => argument.byte_range(),
            };
            self.push(MutantKind::Keyword, range, "");
        }
    }

    fn range(&mut self, arguments: &[Node<'_>]) {
        if arguments.iter().any(|argument| argument.kind().contains("splat") || is_keyword(*argument)) {
            return;
        }
        let (start, stop) = match arguments {
            [stop] => (None, *stop),
            [start, stop, ..] => (Some(*start), *stop),
            [] => return,
        };
        // Skip integer literals, because `number` already makes mutants of them.
        let written = |node: Node<'_>| node.kind() == "integer";
        match start {
            None => self.wrap(MutantKind::Boundary, stop, "1, ", ""),
            Some(start) if !written(start) => self.wrap(MutantKind::Boundary, start, "", " + 1"),
            Some(_) => {}
        }
        if !written(stop) {
            self.wrap(MutantKind::Boundary, stop, "", " - 1");
        }
    }

    fn attribute(&mut self, node: Node<'_>) {
        let (Some(object), Some(name)) = (node.child_by_field_name("object"), node.child_by_field_name("attribute"))
        else {
            return;
        };
        if self.text(object) == "self" {
            self.ignored_option(node, self.text(name));
            return;
        }
        if let Some(other) = tables::attribute(self.text(name)) {
            self.push(MutantKind::Name, name.byte_range(), other);
        }
    }

    /// Adds a change of a keyword argument: `axis=0` becomes `axis=1`, `side="left"` becomes `side="right"`, and the
    /// reverse. Returns whether to visit the children of `node`.
    fn keyword(&mut self, node: Node<'_>) -> bool {
        let (Some(name), Some(value)) = (node.child_by_field_name("name"), node.child_by_field_name("value")) else {
            return true;
        };
        let (kind, other) = match (self.text(name), self.text(value)) {
            ("axis", "0") => (MutantKind::Boundary, "1"),
            ("axis", "1") => (MutantKind::Boundary, "0"),
            ("side", "\"left\"") => (MutantKind::Side, "\"right\""),
            ("side", "\"right\"") => (MutantKind::Side, "\"left\""),
            _ => return true,
        };
        self.push(kind, value.byte_range(), other);
        false
    }

    /// Adds a change of `x[:]` that leaves out the last element.
    fn subscript(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let parts: Vec<Node<'_>> = node.children_by_field_name("subscript", &mut cursor).collect();
        if let [only] = parts[..]
            && self.text(only) == ":"
        {
            self.push(MutantKind::Boundary, only.byte_range(), ":-1");
        }
    }

    fn slice(&mut self, node: Node<'_>) {
        let Some(colon) = children(node).find(|child| child.kind() == ":") else { return };
        let start = parts(node).find(|child| child.end_byte() <= colon.start_byte());
        let stop = children(node).filter(|child| !is_space(*child)).skip_while(|child| child.id() != colon.id()).nth(1);
        let stop = stop.filter(Node::is_named);
        if let Some(start) = start.filter(|start| self.text(*start) != "0") {
            self.push(MutantKind::Boundary, start.byte_range(), "");
        }
        match stop {
            Some(stop) => self.push(MutantKind::Boundary, stop.byte_range(), ""),
            None if start.is_some() => self.push(MutantKind::Boundary, colon.byte_range(), ":-1"),
            None => {}
        }
    }

    /// Adds a change that replaces an expression statement, such as a call or an assignment, by `pass`. Returns whether
    /// to visit the statement's children.
    fn statement(&mut self, node: Node<'_>) -> bool {
        let Some(inner) = parts(node).next() else { return true };
        let left = inner.child_by_field_name("left").filter(|_| inner.kind() == "assignment");
        match inner.kind() {
            "string" | "concatenated_string" | "ellipsis" => return false,
            "assignment" if inner.child_by_field_name("right").is_none() => return false,
            _ => {}
        }
        let names = left.map(|left| self.bound(left)).unwrap_or_default();
        if names.iter().any(|name| self.nonlocal.contains(name)) {
            return true;
        }
        let trivial = names.iter().any(|name| !self.seen.contains(name));
        self.add(MutantKind::Statement, node.byte_range(), b"pass".to_vec(), trivial);
        true
    }

    /// Returns the names that an assignment to `left` binds.
    fn bound(&self, left: Node<'_>) -> Vec<&'source [u8]> {
        let mut stack = vec![left];
        let mut names = Vec::new();
        while let Some(node) = stack.pop() {
            match node.kind() {
                "identifier" => names.push(&self.source[node.byte_range()]),
                "pattern_list" | "tuple_pattern" | "list_pattern" | "list_splat_pattern" | "expression_list" => {
                    stack.extend(children(node));
                }
                _ => {}
            }
        }
        names
    }

    fn returned(&mut self, node: Node<'_>, scope: usize) {
        let Some(value) = parts(node).next() else { return };
        if node.kind() == "yield" && children(node).any(|child| child.kind() == "from") {
            return;
        }
        let text = self.text(value);
        self.last_step(value);
        if matches!(value.kind(), "expression_list" | "tuple") {
            for pair in parts(value).collect::<Vec<_>>().windows(2) {
                self.swap(pair[0], pair[1]);
            }
        }
        if let Some(Some(first)) = self.scopes.get(scope) {
            let first = self.source[first.clone()].to_vec();
            if first != text.as_bytes() {
                self.add(MutantKind::Return, value.byte_range(), first, false);
            }
        }
        let empty = match value.kind() {
            "list" | "list_comprehension" => "[]",
            "dictionary" | "dictionary_comprehension" => "{}",
            "set" | "set_comprehension" => "set()",
            _ => "0",
        };
        let compact = |text: &str| text.split_whitespace().collect::<String>();
        for default in [empty, "None"] {
            if compact(text) != default {
                self.push(MutantKind::Return, value.byte_range(), default);
            }
        }
    }

    /// Adds a change that negates a condition. Does nothing if another mutant has the same effect: a changed
    /// comparison, a `not` left out, or a swapped constant.
    fn condition(&mut self, node: Node<'_>) {
        let mut inner = node;
        while inner.kind() == "parenthesized_expression" {
            let Some(child) = parts(inner).next() else { return };
            inner = child;
        }
        let single = inner.kind() == "comparison_operator" && parts(inner).count() == 2;
        if !single && !matches!(inner.kind(), "not_operator" | "true" | "false") {
            self.wrap(MutantKind::Condition, node, "not ", "");
        }
    }

    fn swap(&mut self, first: Node<'_>, second: Node<'_>) {
        let words = |node: Node<'_>| {
            let mut words = Vec::new();
            let mut stack = vec![node];
            while let Some(node) = stack.pop() {
                if node.child_count() == 0 && !matches!(node.kind(), "comment" | "line_continuation" | "(" | ")") {
                    words.push(&self.source[node.byte_range()]);
                }
                stack.extend(children(node));
            }
            words
        };
        if words(first) == words(second) {
            return;
        }
        let between = &self.source[first.end_byte()..second.start_byte()];
        let replacement = [&self.source[second.byte_range()], between, &self.source[first.byte_range()]].concat();
        self.add(MutantKind::Swap, first.start_byte()..second.end_byte(), replacement, false);
    }

    /// Adds a change that puts text before and after an expression. The expression gets parentheses unless it is
    /// simple.
    fn wrap(&mut self, kind: MutantKind, node: Node<'_>, before: &str, after: &str) {
        let text = &self.source[node.byte_range()];
        let simple = before.ends_with(", ")
            || matches!(node.kind(), "identifier" | "integer" | "attribute" | "call" | "parenthesized_expression");
        let (open, close) = if simple { ("", "") } else { ("(", ")") };
        let replacement = [before.as_bytes(), open.as_bytes(), text, close.as_bytes(), after.as_bytes()].concat();
        self.add(kind, node.byte_range(), replacement, false);
    }

    pub(super) fn push(&mut self, kind: MutantKind, range: Range<usize>, replacement: &str) {
        self.add(kind, range, replacement.as_bytes().to_vec(), false);
    }

    pub(super) fn add(&mut self, kind: MutantKind, range: Range<usize>, replacement: Vec<u8>, trivial: bool) {
        self.edits.push(SourceEdit { kind, range, replacement, trivial });
    }

    /// Returns a node's text, or an empty string if it is not UTF-8.
    pub(super) fn text(&self, node: Node<'_>) -> &'source str {
        std::str::from_utf8(&self.source[node.byte_range()]).unwrap_or_default()
    }

    fn first_parameter(&self, function: Node<'_>) -> Option<Range<usize>> {
        let parameters = function.child_by_field_name("parameters")?;
        let name = |parameter: Node<'_>| match parameter.kind() {
            "identifier" => Some(parameter.byte_range()),
            "typed_parameter" => {
                parts(parameter).next().filter(|it| it.kind() == "identifier").map(|it| it.byte_range())
            }
            _ => parameter.child_by_field_name("name").map(|name| name.byte_range()),
        };
        let ranges: Vec<_> = parts(parameters).filter_map(name).collect();
        ranges.into_iter().find(|range| !matches!(&self.source[range.clone()], b"self" | b"cls"))
    }
}

pub(super) fn is_keyword(argument: Node<'_>) -> bool {
    argument.kind() == "keyword_argument"
}

/// Whether an expression is a literal string, list or tuple, which most operators do not support.
fn is_sequence(node: Node<'_>) -> bool {
    matches!(node.kind(), "string" | "concatenated_string" | "list" | "list_comprehension" | "tuple")
}

/// Iterates over a node and all nodes below it.
pub(super) fn descendants(root: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let mut stack = vec![root];
    std::iter::from_fn(move || {
        let node = stack.pop()?;
        stack.extend(children(node));
        Some(node)
    })
}
