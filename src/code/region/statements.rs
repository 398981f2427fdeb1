//! Blocks of a syntax tree and their statements.

use std::ops::Range;

use tree_sitter::Node;

/// A block of statements, or a whole module.
pub(super) struct StatementBlock<'tree> {
    /// The block's statements, in order, without comments.
    pub statements: Vec<Node<'tree>>,
    /// Offset of the statement that contains the block, such as the `for` of a loop; `None` for a module.
    pub owner: Option<usize>,
}

/// Returns the blocks in a node, including the node itself, in the order in which they begin. Nodes that `enters`
/// rejects are skipped together with their contents.
pub(super) fn blocks<'tree>(node: Node<'tree>, enters: &dyn Fn(Node<'_>) -> bool) -> Vec<StatementBlock<'tree>> {
    let mut found = Vec::new();
    let mut left = vec![node];
    while let Some(node) = left.pop() {
        let mut cursor = node.walk();
        let children: Vec<Node<'tree>> = node.named_children(&mut cursor).collect();
        if matches!(node.kind(), "block" | "module") {
            let statements: Vec<Node<'tree>> = children.iter().copied().filter(|it| is_statement(*it)).collect();
            // The block of a `match` holds cases, not statements.
            if statements.iter().all(|it| it.kind() != "case_clause") && !statements.is_empty() {
                found.push(StatementBlock { statements, owner: node.parent().map(|it| it.start_byte()) });
            }
        }
        left.extend(children.into_iter().filter(|it| enters(*it)).rev());
    }
    found
}

/// Whether a node inside a block is a statement.
fn is_statement(node: Node<'_>) -> bool {
    !matches!(node.kind(), "comment" | "line_continuation")
}

/// Returns the end of a node's last token; comments don't count as tokens.
pub(super) fn last_token(node: Node<'_>) -> usize {
    let mut node = node;
    loop {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        let holds = |it: &&Node<'_>| is_statement(**it) && it.end_byte() > it.start_byte();
        match children.iter().rev().find(holds) {
            Some(last) => node = *last,
            None => return node.end_byte(),
        }
    }
}

/// Returns the definition of the function whose `def` or `async` is at `start`.
pub(super) fn function_at(root: Node<'_>, start: usize) -> Option<Node<'_>> {
    let mut node = root.descendant_for_byte_range(start, start + 1)?;
    while node.kind() != "function_definition" || node.start_byte() != start {
        node = node.parent()?;
    }
    Some(node)
}

/// Calls `see` with every node that overlaps `range`.
pub(super) fn each<'tree>(root: Node<'tree>, range: &Range<usize>, see: &mut dyn FnMut(Node<'tree>)) {
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        if node.end_byte() <= range.start || node.start_byte() >= range.end {
            continue;
        }
        see(node);
        let mut cursor = node.walk();
        left.extend(node.children(&mut cursor));
    }
}

/// Whether `is` holds for any node that overlaps `range`.
pub(super) fn any(root: Node<'_>, range: &Range<usize>, is: &dyn Fn(Node<'_>) -> bool) -> bool {
    let mut found = false;
    each(root, range, &mut |node| found |= is(node));
    found
}

/// Replaces each run of white space in a text by a single space.
pub(super) fn normalised(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
