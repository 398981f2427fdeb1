//! A text's blocks: prose by section, tables, and stretches in which no number is a result.

use std::ops::Range;

use super::Rule;
use super::words::{self, Section};

/// A piece of the text that is judged on its own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    pub(super) range: Range<usize>,
    pub(super) kind: BlockKind,
    pub(super) section: Section,
}

/// What sort of piece.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BlockKind {
    /// Sentences.
    Prose,
    /// A heading.
    Heading,
    /// The caption of a table or a figure.
    Caption,
    /// Every number is kept, by this rule.
    Kept(Rule),
    /// A table.
    Table(Table),
}

/// Where a table's cells are.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Vec<Cell>>,
    /// How many rows are header.
    pub(super) header: usize,
    /// Where its caption is.
    pub(super) caption: Option<Range<usize>>,
    /// Columns have a fixed width, which a replacement must keep.
    pub(super) fixed_width: bool,
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    pub(super) range: Range<usize>,
    /// How many columns it takes.
    pub(super) span: usize,
}

/// The section that a heading opens; a heading that says nothing of its kind leaves a text in the section above it.
pub(super) fn section(heading: &str, above: Section) -> Section {
    words::section(heading).unwrap_or(above)
}
