//! Proposes regions (adjacent statements to be masked) that make up a given share of a function, for tasks that are
//! easier than writing a whole function.

use std::ops::Range;

use tree_sitter::Node;

use super::statements::{blocks, function_at, last_token};
use super::{Bounds, Region};
use crate::code::extent;
use crate::code::module::Module;
use crate::code::walk;
use crate::error::{Error, Result};

/// A proposed region and its name for a manifest.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The share of the function's lines that was asked for, 0 to 1.
    pub share: f64,
    /// Beginning of the region's first statement.
    pub first: String,
    /// Beginning of the region's last statement, if it has several statements.
    pub last: Option<String>,
    /// Number (from 1) of the first statement among all statements with the same beginning; `None` if there is only
    /// one.
    pub number: Option<usize>,
    /// Number of lines of code in the region.
    pub lines: usize,
    /// The proposed region.
    pub region: Region,
}

/// Adjacent statements of one block: the first and last statement, and the number of lines of code.
struct StatementRange<'tree> {
    statements: [Node<'tree>; 2],
    lines: usize,
}

impl Module {
    /// Proposes one region for each share (0 to 1) of a function's lines of code: the region with the nearest number of
    /// lines, if that is between 0.5 and 1.5 times the requested number. No two proposals are the same, and two overlap
    /// only if one contains the other. `function` is an index into [`Module::functions`].
    ///
    /// # Errors
    /// Returns an error of kind `Internal` if parsing the file a second time gives another result.
    pub fn propose(&self, function: usize, shares: &[f64]) -> Result<Vec<Proposal>> {
        let readable = self.encoding.readable(self.source());
        let failed = || {
            Error::internal("the file could be parsed once, but not in the same way a second time")
                .at(self.path(), None)
        };
        let tree = walk::parse(&readable).ok_or_else(failed)?;
        let whole = &self.functions()[function];
        let definition = function_at(tree.root_node(), whole.header.start).ok_or_else(failed)?;
        let all = self.code_lines(&self.body_code(function));
        let candidates = self.candidates(definition, whole.docstring.as_ref().map_or(0, |it| it.end), all);
        let mut shares = shares.to_vec();
        shares.sort_by(|a, b| b.total_cmp(a));
        let mut found: Vec<Proposal> = Vec::new();
        for share in shares {
            let wanted = share * all as f64;
            let distance = |it: &&StatementRange<'_>| (it.lines as f64 - wanted).abs();
            let mut near: Vec<&StatementRange<'_>> =
                candidates.iter().filter(|it| 2.0 * distance(it) <= wanted).collect();
            // The sort is stable, so among regions whose sizes are equally near the wanted size, the first and
            // outermost is used.
            near.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
            let named = near.into_iter().filter_map(|candidate| self.named(function, share, candidate, &readable));
            let mut fitting = named.filter(|it| found.iter().all(|other| fits(&it.region.range, &other.region.range)));
            found.extend(fitting.next());
        }
        Ok(found)
    }

    /// Returns all sequences of adjacent statements in all blocks of a function. Sequences with the docstring, and the
    /// whole body, are left out.
    fn candidates<'tree>(&self, definition: Node<'tree>, docstring: usize, all: usize) -> Vec<StatementRange<'tree>> {
        let own = |node: Node<'_>| !matches!(node.kind(), "function_definition" | "class_definition");
        let Some(body) = definition.child_by_field_name("body") else { return Vec::new() };
        let mut found = Vec::new();
        for block in blocks(body, &own) {
            let statements: Vec<Node<'_>> =
                block.statements.into_iter().filter(|it| it.start_byte() >= docstring).collect();
            for (place, &first) in statements.iter().enumerate() {
                for &last in &statements[place..] {
                    let start = extent::start_of_line(self.source(), first.start_byte());
                    let lines = self.code_lines(&(start..last_token(last)));
                    if lines < all {
                        found.push(StatementRange { statements: [first, last], lines });
                    }
                }
            }
        }
        found
    }

    /// Returns a candidate with its name for a manifest; `None` if it is not a valid region, or if the beginnings of
    /// its statements do not identify it.
    fn named(&self, function: usize, share: f64, candidate: &StatementRange<'_>, source: &[u8]) -> Option<Proposal> {
        let [first, last] = candidate.statements;
        let beginning = |node: Node<'_>| {
            let end = extent::end_of_line(source, node.start_byte()).min(last_token(node));
            String::from_utf8_lossy(&source[node.start_byte()..end]).trim().to_owned()
        };
        let begin = beginning(first);
        let end = (first != last).then(|| beginning(last));
        let of_number = |number| {
            let bounds = Bounds::Statements { first: &begin, last: end.as_deref(), number };
            let region = self.region(Some(function), bounds).ok()?;
            let (start, end) = (region.lead.end, last_token(last));
            let same = start == first.start_byte() && region.range.start < end && end <= region.range.end;
            (same && region.siblings[1] == count(first, last)).then_some((number, region))
        };
        let (number, region) = std::iter::once(None).chain((1..10).map(Some)).find_map(of_number)?;
        Some(Proposal { share, first: begin, last: end, number, lines: candidate.lines, region })
    }
}

/// Counts the statements from `first` to `last` in the same block.
fn count(first: Node<'_>, last: Node<'_>) -> usize {
    let is_statement = |node: &Node<'_>| !matches!(node.kind(), "comment" | "line_continuation");
    let mut number = 1;
    let mut node = first;
    while node != last {
        let Some(next) = node.next_named_sibling() else { break };
        node = next;
        number += usize::from(is_statement(&node));
    }
    number
}

/// Whether two ranges are different, and either do not overlap or one contains the other.
fn fits(one: &Range<usize>, other: &Range<usize>) -> bool {
    let apart = one.end <= other.start || other.end <= one.start;
    let holds = |outer: &Range<usize>, inner: &Range<usize>| outer.start <= inner.start && inner.end <= outer.end;
    one != other && (apart || holds(one, other) || holds(other, one))
}
