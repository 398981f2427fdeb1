//! Takes the results out of a paper's text, and says of every number why it went or stayed.
//!
//! An agent that is to replicate a paper must not read its results. [`scrub`] replaces them by a marker and leaves what
//! a replication needs: equations, settings, sizes. It is pure: a text goes in; a text and the judgement of each number
//! come out.
//!
//! How a number is judged:
//!
//! 1. The text is cut into blocks (`line_layout`, `latex_layout`): prose by section, captions, tables, and stretches
//!    where no number is a result: code, display equations, bibliographies, layout.
//! 2. In prose, what has one meaning only is settled by a rule of its own (`prose`, `symbols`): citations, references,
//!    years, versions, names such as ResNet-50, symbols with a value, sizes such as 28 x 28, ratios such as 2.5x faster.
//! 3. For the rest, words nearby are weighed (`evidence`): metrics and claims for a result, settings, actions and
//!    counted things against it. Numbers in a list, a range or around ± are judged together.
//! 4. In tables the columns and rows of settings and sizes stay, and all other numbers of the body go, if the table looks
//!    like one of results (`table`). Header and labels stay.
//! 5. With gold values given, roundings of them go as well, unless so many are to be expected by chance (`gold`).
//!
//! 6. What a comment of the text names as a setting stays.
//!
//! What a pass has removed can change how a neighbour is judged, so passes are made until nothing changes: scrubbing a
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

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Markdown, as pandoc understands it.
    Markdown,
    /// LaTeX.
    Latex,
    /// Plain text, as `pandoc -t plain` writes it.
    Plain,
}

impl Format {
    /// The format by the file's extension, or else by what the text looks like.
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

/// The rule that decided about a number. The names are part of the audit's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
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
    /// Kept: part of a name, as in ResNet-50, CIFAR-10, top-5 or x_1.
    Name,
    /// Kept: the number of a list's item or of a heading.
    Numbering,
    /// Kept: names a section, figure, table, equation, theorem, page.
    Reference,
    /// Kept: a citation in brackets.
    Citation,
    /// Kept: a year, a date or a time of day.
    Date,
    /// Kept: the version or model of a program or machine.
    Version,
    /// Kept: base or exponent of a power, an index.
    Power,
    /// Kept: a symbol's value or bound.
    Symbol,
    /// Kept: a member of a set in braces.
    Range,
    /// Kept: the level of an interval, a quantile or a test.
    Level,
    /// Kept: a size, such as 28 x 28, 8-bit, 16 GB, or the whole of which a part is told.
    Size,
    /// Removed: a ratio, as in 2.5 times faster, a 120-fold speed-up.
    Ratio,
    /// Removed: a test's statistic.
    Statistic,
    /// Removed: the words nearby speak for a result.
    ResultWords,
    /// Kept: the words nearby speak for a setting or a size, or for nothing.
    SettingWords,
    /// Kept: a table's header.
    TableHeader,
    /// Kept: a table's column of labels.
    TableLabel,
    /// Kept: a column or row of settings or sizes in a table.
    TableSetting,
    /// Kept: a table that does not look like one of results.
    TableOther,
    /// Removed: the body of a table of results.
    TableResult,
    /// Removed: a rounding of a gold value.
    Gold,
    /// Kept: named as a setting by a comment, `settings: ...`.
    Marked,
}

/// What the caller knows beside the text.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// How the text is written.
    pub format: Format,
    /// Gold values; their roundings are removed.
    pub gold: &'a [f64],
}

/// The judgement of one number.
#[derive(Debug, Clone, PartialEq)]
struct Judged {
    range: Range<usize>,
    remove: bool,
    rule: Rule,
    /// The word that weighed most.
    cue: Option<String>,
    /// Where it stands, which decides how it is replaced.
    place: Place,
}

/// Where a number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Prose,
    Cell { fixed_width: bool },
}

/// What replaces a removed number in prose.
const MARKER: &str = "[removed]";

/// The same for LaTeX, where a bracket could be taken for an option of a command.
const LATEX_MARKER: &str = "\\textrm{[removed]}";

/// What is in a table's cell.
const CELL_MARKER: &str = "—";

/// The same for LaTeX; the braces keep columns that are aligned at the decimal point working.
const LATEX_CELL_MARKER: &str = "{---}";

/// Everything that stands for a removed number, longer ones first.
const MARKERS: [&str; 4] = [LATEX_MARKER, MARKER, LATEX_CELL_MARKER, CELL_MARKER];

/// Judges every number of a text, in the order of the text.
fn judge(text: &str, options: &Options<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    let blocks = match options.format {
        Format::Latex => latex_layout::blocks(text),
        Format::Markdown | Format::Plain => line_layout::blocks(text, options.format),
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
        number.rule = Rule::Marked;
        number.cue = None;
    }
    judged
}

/// Every number of a stretch in which none is a result.
fn keep_all(text: &str, range: Range<usize>, rule: Rule) -> Vec<Judged> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        if let Some((end, _)) = number::at(text, at)
            && end <= range.end
        {
            found.push(Judged { range: at..end, remove: false, rule, cue: None, place: Place::Prose });
            at = end;
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}
