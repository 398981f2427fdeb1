//! Finds all functions and all calls in one walk over a syntax tree, in source order.

use std::ops::Range;
use std::sync::LazyLock;

use tree_sitter::{Language, Node, Parser, Tree, TreeCursor};

use super::extent;
use super::function::Function;
use super::joined;

/// Tree-sitter's grammar of Python.
pub(super) static PYTHON: LazyLock<Language> = LazyLock::new(|| tree_sitter_python::LANGUAGE.into());

/// Parses a text. Returns `None` only if the grammar does not fit the tree-sitter library, which is a bug.
pub(super) fn parse(text: &[u8]) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&PYTHON).ok()?;
    let tree = parser.parse(text, None)?;
    if !tree.root_node().has_error() {
        return Some(tree);
    }
    let again = joined::stretches(text).and_then(|kept| {
        parser.set_included_ranges(&kept).ok()?;
        parser.parse(text, None).filter(|again| !again.root_node().has_error())
    });
    Some(again.unwrap_or(tree))
}

pub(super) fn children(node: Node<'_>) -> impl DoubleEndedIterator<Item = Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect::<Vec<_>>().into_iter()
}

/// Returns the named children of a node, without comments and line continuations.
pub(super) fn parts(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    children(node).filter(|child| child.is_named() && !is_space(*child))
}

/// Whether a node is a comment or a line continuation.
pub(super) fn is_space(node: Node<'_>) -> bool {
    matches!(node.kind(), "comment" | "line_continuation")
}

/// Iterates over the nodes within a range of bytes, in source order. A node comes before the nodes inside it.
pub(super) fn nodes_within<'tree>(tree: &'tree Tree, range: &Range<usize>) -> impl Iterator<Item = Node<'tree>> {
    let range = range.clone();
    let mut waiting = vec![tree.root_node()];
    std::iter::from_fn(move || {
        while let Some(node) = waiting.pop() {
            if node.end_byte() <= range.start || range.end <= node.start_byte() {
                continue;
            }
            waiting.extend(children(node).rev());
            if range.start <= node.start_byte() && node.end_byte() <= range.end {
                return Some(node);
            }
        }
        None
    })
}

/// Numeric ids of the grammar's node kinds and fields that the walk uses.
struct Kinds {
    module: u16,
    block: u16,
    function: u16,
    class: u16,
    lambda: u16,
    decorated: u16,
    decorator: u16,
    call: u16,
    r#yield: u16,
    comment: u16,
    line_continuation: u16,
    expression_statement: u16,
    parenthesized: u16,
    string: u16,
    concatenated: u16,
    colon: u16,
    r#async: u16,
    body: u16,
    name: u16,
    callee: u16,
}

static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
    let named = |kind| PYTHON.id_for_node_kind(kind, true);
    let token = |kind| PYTHON.id_for_node_kind(kind, false);
    let field = |name: &str| PYTHON.field_id_for_name(name).map_or(0, u16::from);
    Kinds {
        module: named("module"),
        block: named("block"),
        function: named("function_definition"),
        class: named("class_definition"),
        lambda: named("lambda"),
        decorated: named("decorated_definition"),
        decorator: named("decorator"),
        call: named("call"),
        r#yield: named("yield"),
        comment: named("comment"),
        line_continuation: named("line_continuation"),
        expression_statement: named("expression_statement"),
        parenthesized: named("parenthesized_expression"),
        string: named("string"),
        concatenated: named("concatenated_string"),
        colon: token(":"),
        r#async: token("async"),
        body: field("body"),
        name: field("name"),
        callee: field("function"),
    }
});

/// Result of the walk: the functions and calls of a file, and the errors found in the file.
#[derive(Default)]
pub(super) struct Contents {
    /// Functions in the order of their `def`. Functions of the same name are not numbered yet.
    pub functions: Vec<Function>,
    /// Ranges of the called expressions, in the order in which the calls begin, outer before inner.
    pub calls: Vec<Range<usize>>,
    /// Line of the first function or class whose name cannot be read in the file's encoding.
    pub unreadable_name: Option<usize>,
    /// Line and fault of the first block that Python would refuse although the grammar accepts it.
    pub bad_block: Option<(usize, &'static str)>,
}

/// Kind of a scope that contains a node.
enum NodeScope {
    Function(usize),
    Class(String),
    Lambda,
}

/// Walks the tree of a file. `source` contains the file's original bytes, even if the tree was parsed from the
/// substitute text that `Encoding::readable` returns. `read` decodes a name.
pub(super) fn walk(tree: &Tree, source: &[u8], read: impl Fn(&[u8]) -> Option<String>) -> Contents {
    let mut walk = ModuleWalk {
        source,
        found: Contents::default(),
        scopes: Vec::new(),
        blocks: Vec::new(),
        decorators: None,
        last: (0, 0),
    };
    let mut cursor = tree.walk();
    let mut depth = 0_usize;
    loop {
        walk.enter(cursor.node(), depth, &read);
        if cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        walk.leaf(&cursor);
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                walk.leave(0);
                return walk.found;
            }
            depth -= 1;
            walk.leave(depth);
        }
        walk.leave(depth);
    }
}

/// A block, or the whole module, whose statements are being visited.
struct OpenBlock {
    depth: usize,
    line: usize,
    empty: bool,
    /// Offset of the block's first statement at the beginning of a line; `None` if the walk has not met one yet.
    first: Option<usize>,
}

struct ModuleWalk<'source> {
    source: &'source [u8],
    found: Contents,
    /// The scopes that contain the current node, innermost last, each with the depth of the node that opens it.
    scopes: Vec<(usize, NodeScope)>,
    /// Start and decorators of a decorated definition, until the walk enters the definition itself.
    decorators: Option<(usize, Vec<Range<usize>>)>,
    /// The blocks that contain the current node, innermost last.
    blocks: Vec<OpenBlock>,
    /// End of the last token that is not a comment: offset and row.
    last: (usize, usize),
}

impl ModuleWalk<'_> {
    fn enter(&mut self, node: Node<'_>, depth: usize, read: &impl Fn(&[u8]) -> Option<String>) {
        let kind = node.kind_id();
        let kinds = &*KINDS;
        self.align(node, depth);
        if kind == kinds.block || kind == kinds.module {
            let line = node.start_position().row + 1;
            self.blocks.push(OpenBlock { depth, line, empty: kind == kinds.block, first: None });
        } else if kind == kinds.call {
            if let Some(callee) = node.child_by_field_id(kinds.callee) {
                self.found.calls.push(callee.byte_range());
            }
        } else if kind == kinds.function || kind == kinds.class {
            let name = node.child_by_field_id(kinds.name).and_then(|name| read(&self.source[name.byte_range()]));
            if name.is_none() {
                self.found.unreadable_name.get_or_insert(node.start_position().row + 1);
            }
            let name = self.qualified(&name.unwrap_or_default());
            let scope = if kind == kinds.class {
                self.decorators = None;
                NodeScope::Class(name)
            } else {
                NodeScope::Function(self.add(node, name))
            };
            self.scopes.push((depth, scope));
        } else if kind == kinds.lambda {
            self.scopes.push((depth, NodeScope::Lambda));
        } else if kind == kinds.decorated {
            let mut cursor = node.walk();
            let decorators = node.children(&mut cursor).filter(|child| child.kind_id() == kinds.decorator);
            let decorators = decorators.map(|child| trim_end(self.source, child.byte_range())).collect();
            self.decorators = Some((node.start_byte(), decorators));
        } else if kind == kinds.r#yield && node.is_named() {
            self.mark_generator(node.start_byte());
        }
    }

    /// Checks that a statement is at the column of its block.
    fn align(&mut self, node: Node<'_>, depth: usize) {
        let Some(block) = self.blocks.last_mut().filter(|block| block.depth + 1 == depth) else { return };
        let kind = node.kind_id();
        if !node.is_named() || kind == KINDS.comment || kind == KINDS.line_continuation {
            return;
        }
        block.empty = false;
        let position = node.start_position();
        if position.row == self.last.1 && self.last.0 > 0 {
            return;
        }
        let at = node.start_byte();
        match block.first {
            None if extent::begins_line(self.source, at) => block.first = Some(at),
            Some(first) if !extent::aligned(self.source, first, at) => {
                self.found.bad_block.get_or_insert((position.row + 1, "this line is not aligned with its block"));
            }
            _ => {}
        }
    }

    fn leaf(&mut self, cursor: &TreeCursor<'_>) {
        let node = cursor.node();
        let kind = node.kind_id();
        if kind != KINDS.comment && kind != KINDS.line_continuation && node.end_byte() > node.start_byte() {
            self.last = (node.end_byte(), node.end_position().row);
        }
    }

    /// Leaves every scope whose node is at `depth` or deeper.
    fn leave(&mut self, depth: usize) {
        while let Some(block) = self.blocks.pop_if(|block| block.depth >= depth) {
            if block.empty {
                self.found.bad_block.get_or_insert((block.line, "a block without a statement"));
            }
        }
        while let Some((_, scope)) = self.scopes.pop_if(|(at, _)| *at >= depth) {
            if let NodeScope::Function(index) = scope {
                let calls = self.found.calls.len();
                let function = &mut self.found.functions[index];
                function.body = extent::body(self.source, function.header.start, function.header.end, self.last.0);
                function.whole.end = function.body.end;
                function.calls.end = calls;
                function.last_line = self.last.1 + 1;
            }
        }
    }

    /// Adds a function when the walk enters it. The function's end is filled in when the walk leaves it.
    fn add(&mut self, node: Node<'_>, name: String) -> usize {
        let kinds = &*KINDS;
        let mut colon = node.end_byte();
        let mut first = None;
        let mut is_async = false;
        let mut cursor = node.walk();
        let mut more = cursor.goto_first_child();
        while more {
            let child = cursor.node();
            if cursor.field_id().is_some_and(|field| u16::from(field) == kinds.body) {
                first = first_statement(child);
                break;
            }
            if child.kind_id() == kinds.colon {
                colon = child.end_byte();
            }
            is_async |= child.kind_id() == kinds.r#async;
            more = cursor.goto_next_sibling();
        }
        let start = node.start_byte();
        let (whole, decorators) = self.decorators.take().unwrap_or((start, Vec::new()));
        let parent = self.scopes.iter().rev().find_map(|(_, scope)| match scope {
            NodeScope::Function(index) => Some(*index),
            _ => None,
        });
        let class = match self.scopes.last() {
            Some((_, NodeScope::Class(name))) => Some(name.clone()),
            _ => None,
        };
        let first_line = node.start_position().row + 1;
        // The function's range of calls begins with the calls in its signature. `Module` removes these calls from the
        // range when all calls are known.
        let calls = self.found.calls.len();
        self.found.functions.push(Function {
            name,
            number: None,
            whole: whole..node.end_byte(),
            header: start..colon,
            body: colon..node.end_byte(),
            docstring: first.and_then(|first| docstring(first, self.source)),
            decorators,
            first_line,
            last_line: first_line,
            is_async,
            is_generator: false,
            parent,
            class,
            calls: calls..calls,
            indent: extent::indent(self.source, start, first.map_or(start, |first| first.start_byte())),
            line_ending: extent::line_ending(self.source, colon),
        });
        self.found.functions.len() - 1
    }

    fn qualified(&self, name: &str) -> String {
        let outer = self.scopes.iter().rev().find_map(|(_, scope)| match scope {
            NodeScope::Function(index) => Some(self.found.functions[*index].name.as_str()),
            NodeScope::Class(name) => Some(name.as_str()),
            NodeScope::Lambda => None,
        });
        outer.map_or_else(|| name.to_owned(), |outer| format!("{outer}.{name}"))
    }

    /// Marks the innermost function that contains the `yield` at `at` as a generator. A `yield` in a parameter's
    /// default value belongs to the function outside.
    fn mark_generator(&mut self, at: usize) {
        for (_, scope) in self.scopes.iter().rev() {
            match scope {
                NodeScope::Function(index) if at >= self.found.functions[*index].header.end => {
                    self.found.functions[*index].is_generator = true;
                    return;
                }
                NodeScope::Function(_) => {}
                NodeScope::Class(_) | NodeScope::Lambda => return,
            }
        }
    }
}

/// Returns the first child of a block that is a statement.
fn first_statement(block: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = block.walk();
    block
        .named_children(&mut cursor)
        .find(|child| child.kind_id() != KINDS.comment && child.kind_id() != KINDS.line_continuation)
}

/// Returns the range of the docstring if this statement is one: one or several plain string literals, with or without
/// parentheses. Bytes, f-strings and template strings are not docstrings.
fn docstring(statement: Node<'_>, source: &[u8]) -> Option<Range<usize>> {
    if statement.kind_id() != KINDS.expression_statement || statement.child_count() != 1 {
        return None;
    }
    let mut node = first_statement(statement)?;
    while node.kind_id() == KINDS.parenthesized {
        node = first_statement(node)?;
    }
    let mut cursor = node.walk();
    let plain = if node.kind_id() == KINDS.concatenated {
        node.named_children(&mut cursor)
            .filter(|child| child.kind_id() == KINDS.string)
            .all(|part| is_plain(part, source))
    } else {
        node.kind_id() == KINDS.string && is_plain(node, source)
    };
    plain.then(|| statement.byte_range())
}

fn is_plain(string: Node<'_>, source: &[u8]) -> bool {
    let text = &source[string.byte_range()];
    let prefix = text.iter().take_while(|byte| byte.is_ascii_alphabetic());
    prefix.into_iter().all(|letter| matches!(letter.to_ascii_lowercase(), b'r' | b'u'))
}

fn trim_end(source: &[u8], range: Range<usize>) -> Range<usize> {
    range.start..range.start + source[range.clone()].trim_ascii_end().len()
}
