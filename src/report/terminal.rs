//! Formatting shared by the console reports: tables that fit a terminal, line wrapping, rounded numbers.

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width};

use crate::stats::{FEWEST_PAPERS, Interval, Intervals};

/// Shown in place of an interval if there are too few samples or papers for one.
pub(super) const TOO_FEW: &str = "[too few]";

/// Explanation of [`TOO_FEW`] for a legend.
pub(super) fn too_few_legend(fewest: usize, how: Intervals) -> String {
    let group = how.group;
    format!("{TOO_FEW}: an interval takes {fewest} samples, and for {group}s like these {FEWEST_PAPERS} {group}s.")
}

/// Maximum line width in columns.
pub(super) const WIDTH: u16 = 100;
/// Columns that an agent's name may use before it is broken.
const NAME_WIDTH: u16 = 18;

/// Creates a table without borders that is never wider than [`WIDTH`].
pub(super) fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table
}

/// Renders a table without trailing blanks or leading padding. The columns in `names` get room for their longest entry,
/// up to [`NAME_WIDTH`], because otherwise comfy-table wraps names earlier than headings.
pub(super) fn trimmed(mut table: Table, names: &[usize]) -> String {
    let widths = table.column_max_content_widths();
    for (place, longest) in widths.into_iter().enumerate() {
        let Some(column) = table.column_mut(place) else { continue };
        if place == 0 {
            column.set_padding((0, 1));
        }
        if names.contains(&place) {
            // A constraint's width includes the padding.
            let width = longest.min(NAME_WIDTH) + column.padding_width();
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

pub(super) fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1}", 100.0 * rate))
}

/// Formats a rate in percent with its interval, as `60.0 [45.2, 73.1]`.
pub(super) fn percent_with_interval(rate: Option<f64>, interval: Option<Interval>) -> String {
    match interval {
        _ if rate.is_none() => percent(None),
        Some(it) => format!("{} [{}, {}]", percent(rate), percent(Some(it.low)), percent(Some(it.high))),
        None => format!("{} {TOO_FEW}", percent(rate)),
    }
}

pub(super) fn decimal(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.abs() < 1000.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

pub(super) fn dollars(value: f64) -> String {
    match value {
        1000.0.. => format!("${value:.0}"),
        10.0..1000.0 | 0.0 => format!("${value:.2}"),
        _ => format!("${value:.4}"),
    }
}

pub(super) fn tokens(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{:.0}k", count as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.0}M", count as f64 / 1e6),
        _ => format!("{:.0}G", count as f64 / 1e9),
    }
}

/// Wraps text at blanks to lines of at most [`WIDTH`] columns; all but the first line start with `indent`.
pub(super) fn wrap(text: &str, indent: &str) -> String {
    wrap_to(text, indent, usize::from(WIDTH))
}

/// Same as [`wrap`], for lines of at most `width` characters. Words are never broken.
pub(crate) fn wrap_to(text: &str, indent: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > indent.len() && last + 1 + word.chars().count() > width {
            lines.push(format!("{indent}{word}"));
        } else if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}
