//! Blocks of a text: prose with its section, tables, and parts in which no number is a result.

use std::ops::Range;

use super::ScrubRule;
use super::words::{self, SectionKind};

/// A text with at least this many words counts as prose where most texts are not: in a table's cell, in front matter, and
/// in the arguments of commands before the document.
pub(super) const PROSE_WORDS: usize = 5;

/// A part of the text that is of one kind and belongs to one section.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextBlock {
    pub(super) range: Range<usize>,
    pub(super) kind: BlockKind,
    pub(super) section: SectionKind,
}

/// Kind of a block of the paper's text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BlockKind {
    /// Sentences.
    Prose,
    /// A heading.
    Heading,
    /// The caption of a table or a figure.
    Caption,
    /// A part of the text in which this rule keeps every number.
    Kept(ScrubRule),
    /// A table.
    Table(TableLayout),
}

/// Positions of a table's cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TableLayout {
    pub(super) rows: Vec<Vec<TableCell>>,
    /// Number of header rows.
    pub(super) header: usize,
    /// Position of the table's caption.
    pub(super) caption: Option<Range<usize>>,
    /// Whether columns have a fixed width, which replacements must preserve.
    pub(super) fixed_width: bool,
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableCell {
    pub(super) range: Range<usize>,
    /// Number of columns that the cell spans.
    pub(super) span: usize,
}

/// Returns the section that a heading starts; an unspecific heading continues the section above it.
pub(super) fn section(heading: &str, above: SectionKind) -> SectionKind {
    words::section(heading).unwrap_or(above)
}
