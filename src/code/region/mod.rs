//! Regions: contiguous statements of one block, which can be masked without the rest of their function.
//!
//! A region is named by its function together with its first and last statement, or by two comments around it
//! ([`Bounds`]). Regions are found in the syntax tree, so they always consist of whole, adjacent statements of one
//! block, including everything nested in them. A mask replaces whole lines: from the first statement (in a function,
//! from the comments directly above it) to the end of the last statement's line. Comments below are included if they
//! are indented deeper than the statements or, at the end of a block, deeper than the line that opens the block.
//! Between comment tags, a mask replaces all lines.
//!
//! ```text
//!     for x in points:                         for x in points:
//!         # nearest one                →           raise NotImplementedError
//!         d = x - c                                total += n
//!         n = min(d ** 2)  # why
//!         total += n
//! ```
//!
//! A region is refused if Python could not compile the file without it, or if its lines cannot be replaced alone:
//! statements that share a line with others, a function's docstring, an import from `__future__`, and the binding of a
//! name that a nested function declares `nonlocal`.

mod propose;
mod statements;
mod tags;

use std::cell::LazyCell;
use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::encoding::line_of;
use super::extent;
use super::module::Module;
use super::walk;
use crate::error::{Error, Result};
use statements::{StatementBlock, blocks, last_token, normalised};

pub use tags::{TaggedRegion, tagged};

/// The statement that replaces a region. It also replaces the body of a masked function, after the docstring.
pub(super) const RAISE: &[u8] = b"raise NotImplementedError";

/// Contiguous statements of one block of a [`Module`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The function that contains the statements, as an index into the module's functions; `None` outside of functions.
    pub function: Option<usize>,
    /// The range that a mask replaces: whole lines, without the last line ending.
    pub range: Range<usize>,
    /// Line (from 1) on which the first statement begins.
    pub first_line: usize,
    /// Line (from 1) on which the last statement ends.
    pub last_line: usize,
    /// The white space before the first statement on its line.
    lead: Range<usize>,
    /// Number of statements in the block before the region, in the region, and after it.
    siblings: [usize; 3],
}

/// How a region is named within its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds<'text> {
    /// The region is named by the texts with which its first and last statements begin.
    Statements {
        /// Text with which the first statement begins. Any amount of white space counts as one space.
        first: &'text str,
        /// Text with which the last statement begins. The search starts at the region's first statement and stays in
        /// its block; a statement that consists of exactly this text is preferred. If `None`, the region is the first
        /// statement alone.
        last: Option<&'text str>,
        /// Number (from 1) of the first statement among all statements with the same beginning; `None` if there is only
        /// one.
        number: Option<usize>,
    },
    /// The region is named by two comments around it, such as `# <paper2code name="loss">` and
    /// `# </paper2code name="loss">`, or `# region loss` and `# endregion`.
    Tag {
        /// The region's name, such as `loss`.
        name: &'text str,
        /// Number (from 1) of the region among all regions of this name; `None` if there is only one.
        number: Option<usize>,
    },
}

impl Module {
    /// Finds a region. `function` is an index into [`Module::functions`]; `None` searches the code outside of all
    /// functions or, for a tag, the whole file.
    ///
    /// # Errors
    /// Returns an error of kind `Suite`, with a line if possible, if there is no such region or several, if it does not
    /// consist of whole statements of one block, or if the file would not compile without it.
    pub fn region(&self, function: Option<usize>, bounds: Bounds<'_>) -> Result<Region> {
        let readable = self.encoding.readable(self.source());
        let failed = || Error::internal("the file could be parsed once, but not a second time").at(self.path(), None);
        let tree = walk::parse(&readable).ok_or_else(failed)?;
        let found = Finder { module: self, tree: &tree, source: &readable, function };
        match bounds {
            Bounds::Statements { first, last, number } => found.by_statements(first, last, number),
            Bounds::Tag { name, number } => found.by_tag(name, number),
        }
    }

    /// Returns the text that replaces a region in a masked file.
    pub(super) fn stand_in(&self, region: &Region) -> Vec<u8> {
        [&self.source()[region.lead.clone()], RAISE].concat()
    }

    /// Returns the number of lines of a range that contain code, not counting blank lines and lines that are only a
    /// comment.
    #[must_use]
    pub fn code_lines(&self, range: &Range<usize>) -> usize {
        let is_code = |line: &[u8]| !line.is_empty() && !line.starts_with(b"#");
        let lines = self.source()[range.clone()].split(|&byte| byte == b'\n' || byte == b'\r');
        lines.filter(|line| is_code(line.trim_ascii())).count()
    }

    /// Checks in this masked file that the statement which replaces a region begins and ends at the right place in a
    /// block. If there is no other mask (`alone`), the block must also have as many other statements as before.
    pub(super) fn prove_stand_in(&self, region: &Region, at: &Range<usize>, alone: bool) -> Result<(), String> {
        let readable = self.encoding.readable(self.source());
        let tree = walk::parse(&readable).ok_or("the file does not parse")?;
        let start = at.start + region.lead.len();
        for StatementBlock { statements, .. } in blocks(tree.root_node(), &|_| true) {
            let Some(place) = statements.iter().position(|it| it.start_byte() == start) else { continue };
            let statement = statements[place];
            if statement.kind() != "raise_statement" || last_token(statement) != at.end {
                break;
            }
            let around = [place, 1, statements.len() - place - 1];
            let expected = [region.siblings[0], 1, region.siblings[2]];
            return if alone && around != expected {
                Err(format!(
                    "the block of a region has {around:?} statements (before, at and after it) instead of {expected:?}"
                ))
            } else {
                Ok(())
            };
        }
        Err("the replacement of a region is not a separate statement".to_owned())
    }
}

/// A search for a region.
struct Finder<'a> {
    module: &'a Module,
    tree: &'a Tree,
    source: &'a [u8],
    function: Option<usize>,
}

impl<'a> Finder<'a> {
    fn wrong(&self, line: Option<usize>, message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::suite(message).at(self.module.path(), line).hint(hint)
    }

    fn line(&self, at: usize) -> usize {
        line_of(self.source, at)
    }

    /// Describes where the search takes place, for messages.
    fn place(&self) -> String {
        let function = self.function.map(|index| self.module.functions()[index].label());
        function.map_or_else(|| "the file outside of functions".to_owned(), |label| format!("`{label}`"))
    }

    /// Returns the blocks of the function without those of nested functions and classes or, if no function is given,
    /// the blocks outside of functions. Outer blocks come first.
    fn own_blocks(&self) -> Vec<StatementBlock<'a>> {
        let Some(index) = self.function else {
            return blocks(self.tree.root_node(), &|node| node.kind() != "function_definition");
        };
        let start = self.module.functions()[index].header.start;
        let body = statements::function_at(self.tree.root_node(), start).and_then(|it| it.child_by_field_name("body"));
        let own = |node: Node<'_>| !matches!(node.kind(), "function_definition" | "class_definition");
        body.map_or_else(Vec::new, |body| blocks(body, &own))
    }

    fn by_statements(&self, first: &str, last: Option<&str>, number: Option<usize>) -> Result<Region> {
        let blocks = self.own_blocks();
        let text = |node: &Node<'_>| normalised(&self.source[node.start_byte()..last_token(*node)]);
        let places = |wanted: &str, fits: &dyn Fn(&str, &str) -> bool| -> Vec<(usize, usize)> {
            let wanted = normalised(wanted.as_bytes());
            let all = blocks.iter().enumerate();
            let all = all.flat_map(|(block, it)| it.statements.iter().enumerate().map(move |it| (block, it)));
            let fitting = all.filter(|(_, (_, node))| fits(&text(node), &wanted));
            fitting.map(|(block, (place, _))| (block, place)).collect()
        };
        let node = |&(block, place): &(usize, usize)| blocks[block].statements[place];
        let mut found = places(first, &|text, wanted| text == wanted);
        if found.is_empty() {
            found = places(first, &|text, wanted| !wanted.is_empty() && text.starts_with(wanted));
        }
        found.sort_by_key(|place| node(place).start_byte());
        let lines = || found.iter().map(|place| self.line(node(place).start_byte()).to_string()).collect::<Vec<_>>();
        let (block, start) = match (found.as_slice(), number) {
            ([], _) => {
                let message = format!("no statement of {} begins with `{first}`", self.place());
                return Err(self.wrong(None, message, "copy the beginning of the statement's first line"));
            }
            ([one], None | Some(1)) => *one,
            (several, Some(number)) if (1..=several.len()).contains(&number) => several[number - 1],
            (several, _) => {
                let message = format!("{} statements of {} begin with `{first}`", several.len(), self.place());
                let hint = format!("they are on the lines {}: say which with `number`, from 1", lines().join(", "));
                return Err(self.wrong(None, message, hint));
            }
        };
        let statements = &blocks[block].statements;
        let end = match last {
            None => start,
            Some(last) => {
                let wanted = normalised(last.as_bytes());
                let rest = || (start..statements.len()).map(|place| (place, text(&statements[place])));
                let exact = rest().find(|(_, text)| *text == wanted);
                let near = || rest().find(|(_, text)| !wanted.is_empty() && text.starts_with(&wanted));
                exact.or_else(near).map(|(place, _)| place).ok_or_else(|| {
                    let line = self.line(statements[start].start_byte());
                    let message = format!("no statement that begins with `{last}` follows `{first}` in the same block");
                    self.wrong(
                        Some(line),
                        message,
                        "a region is neighbours of one block: it begins and ends in the same one",
                    )
                })?
            }
        };
        self.region(&blocks[block], start, end, None)
    }

    fn by_tag(&self, name: &str, number: Option<usize>) -> Result<Region> {
        let within = match self.function {
            Some(index) => self.module.functions()[index].whole.clone(),
            None => 0..self.source.len(),
        };
        let pairs = tags::pairs(self.tree, self.source).map_err(|(line, what)| {
            self.wrong(
                Some(line),
                what,
                "close each tag with one of the same name, and a nested tag before the one around it",
            )
        })?;
        let named = |pair: &&tags::TagPair| {
            pair.name == name && within.start <= pair.open.start && pair.close.end <= within.end
        };
        let found: Vec<&tags::TagPair> = pairs.iter().filter(named).collect();
        let pair = match (found.as_slice(), number) {
            ([], _) => {
                let message = format!("no comments mark a region `{name}` in {}", self.place());
                let hint = format!("put `# region {name}` before it and `# endregion` after it");
                return Err(self.wrong(None, message, hint));
            }
            ([one], None | Some(1)) => *one,
            (several, Some(number)) if (1..=several.len()).contains(&number) => several[number - 1],
            (several, _) => {
                let lines: Vec<String> = several.iter().map(|pair| self.line(pair.open.start).to_string()).collect();
                let message = format!("{} regions are marked `{name}`", several.len());
                let hint = format!("they begin on the lines {}: say which with `number`, from 1", lines.join(", "));
                return Err(self.wrong(None, message, hint));
            }
        };
        self.between(pair)
    }

    /// Returns the region that consists of the statements between the two comments of `pair`.
    fn between(&self, pair: &tags::TagPair) -> Result<Region> {
        let (from, to) = (pair.open.end, pair.close.start);
        let all = blocks(self.tree.root_node(), &|_| true);
        // Use the outermost block that has a statement between the two comments.
        let inside = |node: &Node<'_>| from <= node.start_byte() && last_token(*node) <= to;
        let found = all.iter().find_map(|block| {
            let first = block.statements.iter().position(inside)?;
            let count = block.statements[first..].iter().take_while(|node| inside(node)).count();
            Some((block, first, first + count - 1))
        });
        let line = self.line(pair.open.start);
        let hint = "put both comments on lines of their own, around neighbours of one block";
        let Some((block, first, last)) = found else {
            return Err(self.wrong(Some(line), format!("no statement is in the region `{}`", pair.name), hint));
        };
        let (start, end) = (block.statements[first].start_byte(), last_token(block.statements[last]));
        let empty = |text: &[u8]| {
            text.split(|&byte| byte == b'\n' || byte == b'\r')
                .map(<[u8]>::trim_ascii)
                .all(|line| line.is_empty() || line.starts_with(b"#") || line == b"\\" || line == b";")
        };
        if !empty(&self.source[from..start])
            || !empty(&self.source[extent::end_of_logical_line(self.source, end).min(to)..to])
        {
            let message = format!("the region `{}` is not whole statements of one block", pair.name);
            return Err(self.wrong(Some(line), message, hint));
        }
        self.region(block, first, last, Some((from, to)))
    }

    /// Returns the region from the statement `first` to the statement `last` of a block. If the offsets of two comments
    /// are given as `lines`, the region consists of all lines between the comments.
    fn region(
        &self,
        block: &StatementBlock<'a>,
        first: usize,
        last: usize,
        lines: Option<(usize, usize)>,
    ) -> Result<Region> {
        let (from, until) = (block.statements[first], block.statements[last]);
        let (start, end) = (from.start_byte(), last_token(until));
        let next = block.statements.get(last + 1).map(Node::start_byte);
        let first_line = self.line(start);
        let refused =
            |what: &str, hint: &str| Err(self.wrong(Some(first_line), format!("a region cannot {what}"), hint));
        let shares = !extent::begins_line(self.source, start)
            || next.is_some_and(|next| !extent::begins_line(self.source, next));
        if shares {
            return refused("share a line with other code", "begin and end it with statements on lines of their own");
        }
        let function = self.innermost(from);
        if let (Some(wanted), false) = (self.function, function == self.function) {
            let wanted = self.module.functions()[wanted].label();
            return refused(
                "be in a nested function or class",
                &format!("name the function around it, not `{wanted}`"),
            );
        }
        if let Some(docstring) = function.and_then(|index| self.module.functions()[index].docstring.clone())
            && docstring.start < end
            && start < docstring.end
        {
            return refused("hold the docstring", "begin it behind the docstring, which stays");
        }
        let range = match lines {
            Some((from, to)) => self.lines_between(from, to),
            None => self.lines_of(block, start, end, next.is_none(), function.is_some()),
        };
        let future = statements::any(self.tree.root_node(), &range, &|node| node.kind() == "future_import_statement");
        if future {
            return refused("hold an import from `__future__`", "begin it behind that import");
        }
        if let Some(name) = function.and_then(|index| self.nonlocal_of(index, &range)) {
            let what = format!("use `{name}`, which a nested function outside of the region declares as nonlocal");
            return refused(
                &what,
                "the rest might not compile: include the nested function in the region, or leave the name out",
            );
        }
        Ok(Region {
            function,
            range,
            first_line,
            last_line: self.line(end.saturating_sub(1)),
            lead: extent::start_of_line(self.source, start)..start,
            siblings: [first, last - first + 1, block.statements.len() - last - 1],
        })
    }

    /// Returns the range that a mask replaces for the statements from `start` to `end`.
    fn lines_of(
        &self,
        block: &StatementBlock<'a>,
        start: usize,
        end: usize,
        ends_block: bool,
        in_function: bool,
    ) -> Range<usize> {
        // Keep comments that mark another region. A comment that looks like such a mark but has no counterpart is
        // treated as a description of the statements, so it is removed.
        let pairs = LazyCell::new(|| tags::pairs(self.tree, self.source).unwrap_or_default());
        let marks = |at: usize| pairs.iter().any(|pair| pair.open.start == at || pair.close.start == at);
        let comment = |at: usize| {
            let node = self.tree.root_node().descendant_for_byte_range(at, at + 1);
            node.is_some_and(|it| it.kind() == "comment" && it.start_byte() == at && !marks(at))
        };
        // Outside of functions, keep the comments above: they may be the file's licence and encoding.
        let begin = if in_function {
            extent::start_with_comments(self.source, start, comment)
        } else {
            extent::start_of_line(self.source, start)
        };
        let owner = block.owner.filter(|_| ends_block);
        let depth = extent::column(self.source, owner.unwrap_or(start));
        begin..extent::end(self.source, end, depth)
    }

    /// Returns the lines after the line of `from` and before the line of `to`, without blank lines at either end.
    fn lines_between(&self, from: usize, to: usize) -> Range<usize> {
        let source = self.source;
        let mut start = extent::next_line(source, extent::end_of_line(source, from));
        while source[start..extent::end_of_line(source, start)].trim_ascii().is_empty() && start < to {
            start = extent::next_line(source, extent::end_of_line(source, start));
        }
        let inside = &source[start..extent::start_of_line(source, to)];
        let end = start + inside.trim_ascii_end().len();
        // Include white space at the end of the last line.
        start..extent::end_of_line(source, end)
    }

    /// Returns the innermost function or class around a statement if it is a function, otherwise `None`.
    fn innermost(&self, node: Node<'_>) -> Option<usize> {
        let mut around = node.parent();
        while let Some(it) = around {
            match it.kind() {
                "class_definition" => return None,
                "function_definition" => {
                    return self
                        .module
                        .functions()
                        .iter()
                        .position(|function| function.header.start == it.start_byte());
                }
                _ => around = it.parent(),
            }
        }
        None
    }

    /// Returns a name that is bound in `range` and that a nested function of `function`, outside of `range`, declares
    /// `nonlocal`.
    fn nonlocal_of(&self, function: usize, range: &Range<usize>) -> Option<String> {
        let whole = self.module.functions()[function].body.clone();
        let mut names = Vec::new();
        statements::each(self.tree.root_node(), &whole, &mut |node| {
            let outside = node.end_byte() <= range.start || node.start_byte() >= range.end;
            if node.kind() == "nonlocal_statement" && outside {
                let mut cursor = node.walk();
                names.extend(node.named_children(&mut cursor).map(|it| self.source[it.byte_range()].to_vec()));
            }
        });
        let named = |name: &Vec<u8>| {
            let is = |node: Node<'_>| node.kind() == "identifier" && self.source[node.byte_range()] == **name;
            statements::any(self.tree.root_node(), range, &is)
        };
        names.iter().find(|name| named(name)).map(|name| self.module.encoding.text(name))
    }
}

#[cfg(test)]
mod tests;
