//! The summary as CSV (RFC 4180, with a heading line; unknown values are empty cells).
//!
//! Columns have the names shown on the console, with underscores for spaces. Rates are from 0 to 1, times in seconds,
//! costs in dollars. Text cells are escaped by [`super::clean`] and cannot become formulas.

use std::collections::BTreeSet;

use super::clean::cell;
use super::{Summary, end_name};
use crate::error::Result;

/// One row for each agent, model and difficulty n, such as the number of masked functions (`all` in a row over all n):
/// `agent, model, n, samples, attempts, passed`, for each k `pass@k, pass@k_low, pass@k_high, pass@k_samples`, then
/// `reported, verified, unsupported, lost, ends` (as `answered 9; gave_up 1`), `steps, format_errors, cost_per_sample,
/// cost, input_tokens, output_tokens, tool_seconds, model_seconds, tokens_per_second, verify_seconds`, for each k above
/// 1 `pass^k, pass^k_low, pass^k_high`, `pass@1_worst, pass@1_best` (if every lost attempt had failed, or passed; empty
/// if no attempt was lost), `score` in families (kinds of task) with partial credit, `score_lines, score_lines_low,
/// score_lines_high` if lines of code are withheld, `pass_after_round_1` and so on if feedback was given, and the means
/// of the family's measures.
///
/// # Errors
/// Kind `Internal` if writing to memory fails.
pub fn csv(summary: &Summary) -> Result<String> {
    let ks: Vec<usize> =
        summary.rows.first().map(|row| row.pass_at.iter().map(|at| at.k).collect()).unwrap_or_default();
    let mut heading = names(&["agent", "model", "n", "samples", "attempts", "passed"]);
    for k in ks {
        heading.extend(["", "_low", "_high", "_samples"].map(|part| format!("pass@{k}{part}")));
    }
    heading.extend(names(&["reported", "verified", "unsupported", "lost", "ends", "steps", "format_errors"]));
    heading.extend(names(&["cost_per_sample", "cost", "input_tokens", "output_tokens"]));
    heading.extend(names(&["tool_seconds", "model_seconds", "tokens_per_second", "verify_seconds"]));
    for all in summary.rows.first().into_iter().flat_map(|row| &row.pass_all) {
        heading.extend(["", "_low", "_high"].map(|part| format!("pass^{}{part}", all.k)));
    }
    heading.extend(names(&["pass@1_worst", "pass@1_best"]));
    let measures: BTreeSet<&String> = summary.rows.iter().flat_map(|row| row.measures.keys()).collect();
    let has_score = summary.rows.iter().any(|row| row.score.is_some());
    heading.extend(has_score.then(|| "score".to_owned()));
    let has_lines = summary.rows.iter().any(|row| row.score_lines.is_some());
    if has_lines {
        heading.extend(names(&["score_lines", "score_lines_low", "score_lines_high"]));
    }
    let rounds = summary.rows.iter().map(|row| row.after_rounds.len()).max().unwrap_or_default();
    heading.extend((1..=rounds).map(|round| format!("pass_after_round_{round}")));
    heading.extend(measures.iter().map(|name| (*name).clone()));
    let rows = summary.rows.iter().map(|row| {
        let mut cells = vec![
            cell(&row.agent),
            cell(row.model.as_deref().unwrap_or_default()),
            row.n.map_or_else(|| "all".to_owned(), |n| n.to_string()),
            row.samples.to_string(),
            row.attempts.to_string(),
            row.passed.to_string(),
        ];
        for at in &row.pass_at {
            let bounds = at.interval.map(|interval| (interval.low, interval.high));
            cells.extend([at.rate, bounds.map(|b| b.0), bounds.map(|b| b.1)].map(number));
            cells.push(at.samples.to_string());
        }
        let ends: Vec<_> = row.ends.iter().map(|(end, count)| format!("{} {count}", end_name(*end))).collect();
        cells.extend([number(row.reported), number(row.verified), row.unsupported.to_string(), row.lost.to_string()]);
        cells.push(ends.join("; "));
        cells.extend([row.steps, row.format_errors, row.cost_per_sample, Some(row.cost)].map(number));
        cells.extend([row.usage.input, row.usage.output].map(|tokens| tokens.to_string()));
        cells.extend([row.tool_seconds, row.model_seconds, row.tokens_per_second, row.verify_seconds].map(number));
        for all in &row.pass_all {
            let bounds = all.interval.map(|interval| (interval.low, interval.high));
            cells.extend([all.rate, bounds.map(|b| b.0), bounds.map(|b| b.1)].map(number));
        }
        cells.extend([row.pass_at_worst, row.pass_at_best].map(number));
        cells.extend(has_score.then(|| number(row.score)));
        if has_lines {
            let bounds = row.score_lines_interval;
            cells.extend([row.score_lines, bounds.map(|it| it.low), bounds.map(|it| it.high)].map(number));
        }
        cells.extend((0..rounds).map(|round| number(row.after_rounds.get(round).copied())));
        cells.extend(measures.iter().map(|name| number(row.measures.get(*name).copied())));
        cells
    });
    Ok(write(&heading, rows))
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(super) fn write(heading: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = String::new();
    csv_line(&mut text, heading);
    for row in rows {
        csv_line(&mut text, row);
    }
    text
}

/// Appends one line of cells, quoted where RFC 4180 requires it. The `csv` crate isn't used because it scans the rest
/// of a long cell once for every 8 KiB written, which takes quadratic time.
pub(crate) fn csv_line<S: AsRef<str>>(text: &mut String, cells: impl IntoIterator<Item = S>) {
    for (place, cell) in cells.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        let cell = cell.as_ref();
        if cell.contains([',', '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(cell);
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_lines_parse_back_to_the_same_cells() {
        let rows = [vec!["a", "b,c", "say \"x\""], vec!["", "two\nlines", "\r"]];
        let mut text = String::new();
        for row in &rows {
            csv_line(&mut text, row);
        }
        let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let read: Vec<Vec<String>> =
            reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
        assert_eq!(read, rows);
    }
}
