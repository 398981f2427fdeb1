//! Mutants: small wrong versions of one function's body, which show whether its experiments notice mistakes.
//!
//! A mutant is one replaced range of the file's bytes inside the body. It is found in the syntax tree (`places`) and
//! checked by parsing the result. No two mutants of a function have the same text. Docstrings, strings, annotations,
//! decorators, `raise` and `assert` are never changed, because no working experiment could notice. A mutant's id is
//! made of the change and its position in the body, so it stays the same when other code changes.
//!
//! Most kinds are those of the literature on mutation testing (DeMillo, Lipton and Sayward, "Hints on test data
//! selection", 1978; Offutt et al., "An experimental determination of sufficient mutant operators", 1996). Some are
//! added for the code of experiments: array slices and axes, keyword arguments, `min` for `max`. The kinds from `Tie`
//! on are semantic: mistakes of a model that has read the paper carelessly (`careless`) and, from `Argument` on,
//! mistakes that are hard to see in working code (`habits`).

mod careless;
mod choice;
mod habits;
mod names;
mod places;
mod tables;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tree_sitter::{InputEdit, Parser, Point, Tree};

use super::encoding::line_of;
use super::module::Module;
use super::walk;
use crate::error::{Error, Result};
use places::SourceEdit;

pub use choice::choose;
pub(super) use places::statements;

/// Maximum characters of the old and of the new text in a mutant's id.
const SHOWN: usize = 32;

/// The kind of change that makes a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MutantKind {
    /// An operator replaced by another one: arithmetic or bitwise operators, and `and` by `or`.
    Operator,
    /// A comparison replaced by another one: `<` by `<=`, which includes the boundary, or by the opposite, `>=`.
    Compare,
    /// A minus sign, `not` or `~` left out.
    Unary,
    /// A number replaced by another one, or `True` by `False`.
    Constant,
    /// A range or a slice with another beginning or end.
    Boundary,
    /// A statement left out.
    Statement,
    /// Two neighbouring arguments, or parts of a returned tuple, swapped.
    Swap,
    /// A keyword argument left out.
    Keyword,
    /// Another value returned: `None`, 0, the first parameter, an empty container.
    Return,
    /// A condition negated.
    Condition,
    /// A related function called: `min` for `max`, `mean` for `sum`.
    Name,
    /// The last of several equal values taken instead of the first.
    Tie,
    /// A value that equals an edge, put on the wrong side of the edge: `side="right"` for `side="left"`.
    Side,
    /// A count n replaced by n - 1, for example by adding `ddof=1`.
    Degree,
    /// A divisor or a root left out.
    Scale,
    /// A limit or an absolute value left out.
    Guard,
    /// A step of the method left out, or done once instead of repeatedly.
    Step,
    /// Two steps swapped, so that one of them reads the wrong value: the old instead of the new, or the reverse.
    Order,
    /// A relative difference divided by the wrong value: `(a - b) / b` for `(a - b) / a`.
    Relative,
    /// An argument or an option ignored, with its default used instead.
    Argument,
    /// A copy left out, or an argument changed in place.
    Alias,
    /// A formula that fails for large or small numbers.
    Numerics,
    /// A greedy choice made instead of the best one.
    Greedy,
}

impl MutantKind {
    /// Number of kinds.
    pub const COUNT: usize = Self::Greedy as usize + 1;

    /// The kind's name; every id begins with its kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Compare => "compare",
            Self::Unary => "unary",
            Self::Constant => "constant",
            Self::Boundary => "boundary",
            Self::Statement => "statement",
            Self::Swap => "swap",
            Self::Keyword => "keyword",
            Self::Return => "return",
            Self::Condition => "condition",
            Self::Name => "name",
            Self::Tie => "tie",
            Self::Side => "side",
            Self::Degree => "degree",
            Self::Scale => "scale",
            Self::Guard => "guard",
            Self::Step => "step",
            Self::Order => "order",
            Self::Relative => "relative",
            Self::Argument => "argument",
            Self::Alias => "alias",
            Self::Numerics => "numerics",
            Self::Greedy => "greedy",
        }
    }
}

/// One wrong version of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mutant {
    /// The change and its position, as in `compare:3.14 < -> <=`. The line is counted from the first statement that is
    /// not a docstring, the column in bytes from 1. Long texts are cut; ids that would be equal get `#2` and so on.
    pub id: String,
    /// The kind of change.
    pub kind: MutantKind,
    /// Line (from 1) of the change in the file.
    pub line: usize,
    /// The text that is replaced.
    pub before: String,
    /// The new text.
    pub after: String,
    /// Whether the mutant says little about the quality of the experiments, so that it is chosen last. Either every run
    /// of the function detects the mutant, for example because the only definition of a name is left out, or hardly any
    /// run does, for example because a sum is computed in single precision.
    pub trivial: bool,
    /// The bytes of the file that are replaced.
    #[serde(skip)]
    pub range: Range<usize>,
    #[serde(skip)]
    replacement: Vec<u8>,
}

impl Module {
    /// Returns all mutants of a function's body, including nested functions, in source order. `function` is an index
    /// into [`Module::functions`].
    ///
    /// # Errors
    /// Kind `Internal` if the file, which was parsed before, cannot be parsed again in the same way.
    pub fn mutants(&self, function: usize) -> Result<Vec<Mutant>> {
        let readable = self.encoding.readable(self.source());
        let failed = || {
            Error::internal("the file could be parsed once, but not in the same way a second time")
                .at(self.path(), None)
        };
        let mut proof = ParseCheck::new(&readable).ok_or_else(failed)?;
        let mut edits = places::find(&proof.tree, self, function).ok_or_else(failed)?;
        // If several changes give the same text, only the first is kept. Put the kind `Return` last, so that the
        // mutant gets the other kind, which describes the mistake better.
        edits.sort_by_key(|edit| edit.kind == MutantKind::Return);
        let code = self.body_code(function);
        let first = self.first_line_of_code(&proof.tree, function);
        let mut texts: HashSet<Vec<u8>> = HashSet::from([self.source()[code.clone()].to_vec()]);
        let mut ids: HashMap<String, usize> = HashMap::new();
        let mut mutants = Vec::new();
        for mut edit in edits {
            self.keep_words_apart(&mut edit);
            if edit.range.start < code.start || edit.range.end > code.end {
                continue;
            }
            let mut text = self.source()[code.start..edit.range.start].to_vec();
            text.extend_from_slice(&edit.replacement);
            text.extend_from_slice(&self.source()[edit.range.end..code.end]);
            if texts.contains(&text) || !proof.holds(&self.encoding.readable(&edit.replacement), &edit.range) {
                continue;
            }
            texts.insert(text);
            mutants.push(self.mutant(edit, first, &mut ids));
        }
        mutants.sort_by_key(|mutant| mutant.range.start);
        Ok(mutants)
    }

    /// Returns the file's bytes with this mutant's replacement. Nothing is parsed.
    #[must_use]
    pub fn mutant_text(&self, mutant: &Mutant) -> Vec<u8> {
        let source = self.source();
        let mut text = Vec::with_capacity(source.len() + mutant.replacement.len());
        text.extend_from_slice(&source[..mutant.range.start]);
        text.extend_from_slice(&mutant.replacement);
        text.extend_from_slice(&source[mutant.range.end..]);
        text
    }

    fn mutant(&self, edit: SourceEdit, first: usize, ids: &mut HashMap<String, usize>) -> Mutant {
        let SourceEdit { kind, range, replacement, trivial } = edit;
        let line = line_of(self.source(), range.start);
        let start = self.source()[..range.start].iter().rposition(|&byte| byte == b'\n' || byte == b'\r');
        let column = range.start - start.map_or(0, |end| end + 1) + 1;
        let before = self.encoding.text(&self.source()[range.clone()]);
        let after = self.encoding.text(&replacement);
        let place = (line + 1).saturating_sub(first);
        let mut id =
            format!("{}:{place}.{column} {} -> {}", kind.name(), shorten_for_id(&before), shorten_for_id(&after));
        let number = ids.entry(id.clone()).and_modify(|number| *number += 1).or_insert(1);
        if *number > 1 {
            id = format!("{id} #{number}");
        }
        Mutant { id, kind, line, before, after, trivial, range, replacement }
    }

    /// Returns the line of the first statement that is not a docstring.
    fn first_line_of_code(&self, tree: &Tree, function: usize) -> usize {
        let after = self.functions()[function].docstring.as_ref().map_or(0, |docstring| docstring.end);
        statements(tree, &self.functions()[function])
            .find(|statement| statement.start_byte() >= after)
            .map_or(self.functions()[function].first_line, |statement| statement.start_position().row + 1)
    }

    /// Adds a space if a change would merge two words, such as `return` and `x` in `return-x` without the sign.
    fn keep_words_apart(&self, edit: &mut SourceEdit) {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
        let source = self.source();
        let before = source[..edit.range.start].last();
        let after = source.get(edit.range.end);
        let first = edit.replacement.first().or(after);
        if before.is_some_and(is_word) && first.is_some_and(is_word) {
            edit.replacement.insert(0, b' ');
        }
        if edit.replacement.last().is_some_and(is_word) && after.is_some_and(is_word) {
            edit.replacement.push(b' ');
        }
    }
}

/// Formats a text for an id: on one line, and cut to [`SHOWN`] characters.
fn shorten_for_id(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        return "nothing".to_owned();
    }
    if line.chars().count() <= SHOWN {
        return line;
    }
    line.chars().take(SHOWN - 3).chain("...".chars()).collect()
}

/// Checks that changed texts can be parsed. Only the changed part is parsed again, which takes a tenth of the time.
struct ParseCheck<'text> {
    parser: Parser,
    tree: Tree,
    text: &'text [u8],
    /// Offsets of the starts of all lines.
    lines: Vec<usize>,
    /// Whether the text parses only with [`walk::parse`], which always parses the whole text.
    joined: bool,
}

impl<'text> ParseCheck<'text> {
    fn new(text: &'text [u8]) -> Option<Self> {
        let mut parser = Parser::new();
        parser.set_language(&walk::PYTHON).ok()?;
        let plain = parser.parse(text, None)?;
        let joined = plain.root_node().has_error();
        let tree = if joined { walk::parse(text)? } else { plain };
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        (!tree.root_node().has_error()).then_some(Self { parser, tree, text, lines, joined })
    }

    /// Whether the text, with `range` replaced, parses without errors.
    fn holds(&mut self, replacement: &[u8], range: &Range<usize>) -> bool {
        let mut text = Vec::with_capacity(self.text.len() + replacement.len());
        text.extend_from_slice(&self.text[..range.start]);
        text.extend_from_slice(replacement);
        text.extend_from_slice(&self.text[range.end..]);
        let parsed = if self.joined {
            walk::parse(&text)
        } else {
            let tree = self.edited_tree(replacement, range);
            self.parser.parse(&text, Some(&tree))
        };
        parsed.is_some_and(|tree| !tree.root_node().has_error())
    }

    /// Returns the tree with its nodes moved to where they are once `range` is replaced.
    fn edited_tree(&self, replacement: &[u8], range: &Range<usize>) -> Tree {
        let start = self.point(range.start);
        let lines: Vec<&[u8]> = replacement.split(|&byte| byte == b'\n').collect();
        let rows = lines.len() - 1;
        let last = lines.last().map_or(0, |line| line.len());
        let column = if rows > 0 { last } else { start.column + last };
        let mut tree = self.tree.clone();
        tree.edit(&InputEdit {
            start_byte: range.start,
            old_end_byte: range.end,
            new_end_byte: range.start + replacement.len(),
            start_position: start,
            old_end_position: self.point(range.end),
            new_end_position: Point::new(start.row + rows, column),
        });
        tree
    }

    fn point(&self, at: usize) -> Point {
        let row = self.lines.partition_point(|&line| line <= at) - 1;
        Point::new(row, at - self.lines[row])
    }
}

#[cfg(test)]
mod tests;
