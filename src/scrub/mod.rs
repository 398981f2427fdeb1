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

/// The rule by which a number is kept or removed. The rules' names are part of the audit's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Rule")]
#[serde(rename_all = "kebab-case")]
pub enum ScrubRule {
    /// Keeps a number in code, in verbatim text or in a program listing.
    Code,
    /// Keeps a number that is part of an equation.
    Equation,
    /// Keeps a number in the list of references.
    Bibliography,
    /// Keeps a number that is part of the layout: short values in front matter, the preamble, column specifications.
    Layout,
    /// Keeps a number within the markup of a citation, a link or a label, or within inline code.
    Markup,
    /// Keeps a number that is part of a name, such as ResNet-50, CIFAR-10 or top-5.
    Name,
    /// Keeps the number of a list item, a heading or an equation.
    Numbering,
    /// Keeps a number after a word such as section, figure, table, equation, theorem or page.
    Reference,
    /// Keeps a number of a citation in brackets, such as `[12]`.
    Citation,
    /// Keeps a number that is a year, or part of a date or of a time of day.
    Date,
    /// Keeps the version or model number of a program or machine.
    Version,
    /// Keeps the base or exponent of a power, such as 10^6, or an index, such as x_1.
    Power,
    /// Keeps the value or bound of a symbol, such as 5 in n = 5.
    Symbol,
    /// Keeps a member of a set in braces, such as {0.1, 0.2}.
    Range,
    /// Keeps the level of an interval, a quantile or a test.
    Level,
    /// Keeps a size, such as 28 x 28, 8-bit or 16 GB.
    Size,
    /// Removes a ratio, such as 2.5 times faster or a 120-fold speed-up.
    Ratio,
    /// Removes a test statistic, such as 6.32 in t(4) = 6.32.
    Statistic,
    /// Removes a number because nearby words indicate a result.
    ResultWords,
    /// Keeps a number because nearby words indicate a setting or a size, or because no word indicates anything.
    SettingWords,
    /// Keeps a number in the header of a table.
    TableHeader,
    /// Keeps a number in a table's column of labels.
    TableLabel,
    /// Keeps a number in a table's column or row of settings or sizes.
    TableSetting,
    /// Keeps a number in a table that does not look like a table of results.
    TableOther,
    /// Removes a number in the body of a table of results.
    TableResult,
    /// Removes a number that is a rounding of a gold value.
    Gold,
    /// Keeps a number that a comment beginning with `settings:` names as a setting.
    Marked,
}

/// Input of [`scrub`] besides the text.
#[derive(Debug, Clone, Copy)]
pub struct ScrubOptions<'a> {
    /// Markup of the text.
    pub format: MarkupFormat,
    /// Gold values. Numbers in the text that are roundings of gold values are removed.
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
