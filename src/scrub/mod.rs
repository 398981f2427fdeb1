//! Removes the results from a paper's text, and records for every number why it was removed or kept.
//!
//! An agent that replicates a paper must not read its results. [`scrub`] replaces them by a marker and keeps what a
//! replication needs: equations, settings, sizes. It is a pure function from a text to a text with a decision on each
//! number.
//!
//! How a number is judged:
//!
//! 1. The text is split into blocks (`line_layout`, `latex_layout`): prose by section, captions, tables, and stretches
//!    in which no number is a result: code, display equations, bibliographies, layout.
//! 2. In prose, unambiguous numbers are kept or removed by fixed rules (`prose`, `symbols`): citations, references, years,
//!    versions, names such as ResNet-50, symbols with a value, sizes such as 28 x 28, ratios such as 2.5x faster.
//! 3. For the others, nearby words are weighed (`evidence`): metrics and claims count towards a result; settings,
//!    actions and counted things count against it. Numbers in a list, a range or around ± are judged together.
//! 4. In tables, the columns and rows of settings and sizes are kept, and all other numbers of the body are removed if
//!    the table looks like one of results (`table`). Header and labels are kept.
//! 5. If gold values are given, numbers that are roundings of gold values are removed as well. Short roundings are kept
//!    if chance alone would give as many (`gold`).
//! 6. Numbers that a comment in the text declares to be settings are kept.
//!
//! A removal can change how a neighbour is judged, so passes repeat until nothing changes. Therefore scrubbing a
//! scrubbed text changes nothing.

mod audit;
mod evidence;
mod gold;
mod html_table;
mod latex;
mod latex_layout;
mod layout;
mod line_layout;
mod line_table;
mod number;
mod prose;
mod rewrite;
mod sentences;
mod symbols;
mod table;
#[cfg(test)]
mod tests;
mod token;
mod words;

use std::ops::Range;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::suite::{plain, settings};

pub use audit::{AUDIT_FORMAT, Audit};
pub use rewrite::{Scrubbed, SeenNumber, scrub};

/// Markup of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Format")]
#[serde(rename_all = "snake_case")]
pub enum MarkupFormat {
    /// Markdown as understood by pandoc.
    Markdown,
    /// LaTeX.
    Latex,
    /// Plain text as written by `pandoc -t plain`.
    Plain,
}

impl MarkupFormat {
    /// Detects the format from the file's extension or, failing that, from the text.
    #[must_use]
    pub fn detect(path: &Path, text: &str) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "md" | "markdown" | "qmd" | "rmd" => return Self::Markdown,
            "tex" | "latex" | "ltx" => return Self::Latex,
            _ => {}
        }
        if text.contains("\\begin{") || text.contains("\\section{") || text.contains("\\documentclass") {
            return Self::Latex;
        }
        let markdown = |line: &str| {
            line.starts_with("# ") || line.starts_with("## ") || line.starts_with("```") || line.starts_with("|-")
        };
        if text.lines().any(markdown) { Self::Markdown } else { Self::Plain }
    }
}

/// The rule that decided on a number. The names are part of the audit's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Rule")]
#[serde(rename_all = "kebab-case")]
pub enum ScrubRule {
    /// Kept: code, verbatim text, or a program listing.
    Code,
    /// Kept: part of an equation.
    Equation,
    /// Kept: the list of references.
    Bibliography,
    /// Kept: front matter, preamble, column specifications.
    Layout,
    /// Kept: within a citation, a link, a label or inline code.
    Markup,
    /// Kept: part of a name, such as ResNet-50, CIFAR-10, top-5 or x_1.
    Name,
    /// Kept: number of a list item or a heading.
    Numbering,
    /// Kept: number of a section, figure, table, equation, theorem or page.
    Reference,
    /// Kept: a citation in brackets.
    Citation,
    /// Kept: a year, a date or a time of day.
    Date,
    /// Kept: version or model of a program or machine.
    Version,
    /// Kept: base or exponent of a power, or an index.
    Power,
    /// Kept: value or bound of a symbol.
    Symbol,
    /// Kept: a member of a set in braces.
    Range,
    /// Kept: level of an interval, a quantile or a test.
    Level,
    /// Kept: a size, such as 28 x 28, 8-bit or 16 GB, or the whole in "94 of 100".
    Size,
    /// Removed: a ratio, such as 2.5 times faster or a 120-fold speed-up.
    Ratio,
    /// Removed: a test statistic.
    Statistic,
    /// Removed: nearby words indicate a result.
    ResultWords,
    /// Kept: nearby words indicate a setting or a size, or no word indicates anything.
    SettingWords,
    /// Kept: header of a table.
    TableHeader,
    /// Kept: column of labels in a table.
    TableLabel,
    /// Kept: column or row of settings or sizes in a table.
    TableSetting,
    /// Kept: table that does not look like one of results.
    TableOther,
    /// Removed: body of a table of results.
    TableResult,
    /// Removed: rounding of a gold value.
    Gold,
    /// Kept: named as a setting in a comment that begins with `settings:`.
    Marked,
}

/// Input of [`scrub`] besides the text.
#[derive(Debug, Clone, Copy)]
pub struct ScrubOptions<'a> {
    /// Markup of the text.
    pub format: MarkupFormat,
    /// Gold values, whose roundings are removed.
    pub gold: &'a [f64],
}

/// The decision on one number.
#[derive(Debug, Clone, PartialEq)]
struct NumberDecision {
    range: Range<usize>,
    remove: bool,
    rule: ScrubRule,
    /// The word nearby that counted most for this decision.
    cue: Option<String>,
    /// Context of the number, which determines its replacement.
    place: MarkerContext,
}

/// Context of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkerContext {
    Prose,
    Cell { fixed_width: bool },
}

/// Replacement for a removed number in prose.
const MARKER: &str = "[removed]";

/// Replacement for a removed number in LaTeX prose, where a plain bracket could be read as a command's option.
const LATEX_MARKER: &str = "\\textrm{[removed]}";

/// Replacement for a removed number in a table cell.
const CELL_MARKER: &str = "—";

/// Replacement for a removed number in a LaTeX table cell; the braces keep decimal-aligned columns working.
const LATEX_CELL_MARKER: &str = "{---}";

/// All replacements, longest first.
const MARKERS: [&str; 4] = [LATEX_MARKER, MARKER, LATEX_CELL_MARKER, CELL_MARKER];

/// Judges every number of a text, in the order of the text.
fn judge(text: &str, options: &ScrubOptions<'_>) -> Vec<NumberDecision> {
    let mut judged = Vec::new();
    let blocks = match options.format {
        MarkupFormat::Latex => latex_layout::blocks(text),
        MarkupFormat::Markdown | MarkupFormat::Plain => line_layout::blocks(text, options.format),
    };
    for block in blocks {
        let range = block.range.clone();
        match &block.kind {
            layout::BlockKind::Kept(rule) => judged.extend(keep_all(text, range, *rule)),
            layout::BlockKind::Table(table) => table::judge(text, table, &block, options.format, &mut judged),
            kind => {
                let heading = *kind == layout::BlockKind::Heading;
                sentences::judge(text, range, options.format, block.section, heading, &mut judged);
            }
        }
    }
    gold::judge(text, &mut judged, options.gold);
    let marked = settings(text);
    for number in
        judged.iter_mut().filter(|number| number.remove && marked.contains(&plain(&text[number.range.clone()])))
    {
        number.remove = false;
        number.rule = ScrubRule::Marked;
        number.cue = None;
    }
    judged
}

/// Returns decisions to keep every number in `range`, all by the same rule.
fn keep_all(text: &str, range: Range<usize>, rule: ScrubRule) -> Vec<NumberDecision> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        if let Some((end, _)) = number::at(text, at)
            && end <= range.end
        {
            found.push(NumberDecision { range: at..end, remove: false, rule, cue: None, place: MarkerContext::Prose });
            at = end;
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}
