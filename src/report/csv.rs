//! The summary, the attempts and the values as CSV (RFC 4180, with a heading line; unknown values are empty cells).
//!
//! Columns have the names shown on the console, with underscores for spaces. Rates are from 0 to 1, times in seconds,
//! costs in dollars. Text cells are escaped by [`super::clean`] and cannot become formulas.

use std::collections::BTreeSet;

use serde_json::Value;

use super::clean::cell;
use super::{Summary, end_name};
use crate::error::Result;
use crate::run::{AttemptRecord, counting, measure_names, measured};

/// One row for each agent, model and n (`all` for all n): `agent, model, n, samples, attempts, passed`, for each k
/// `pass@k, pass@k_low, pass@k_high, pass@k_samples`, then `reported, verified, unsupported, lost, ends` (as `answered
/// 9; gave_up 1`), `steps, format_errors, cost_per_sample, cost, input_tokens, output_tokens, tool_seconds,
/// model_seconds, tokens_per_second, verify_seconds`, for each k above 1 `pass^k, pass^k_low, pass^k_high`,
/// `pass@1_worst, pass@1_best` (if every lost attempt had failed, or passed; empty if no attempt was lost), `score` in families with partial
/// credit, `score_lines, score_lines_low, score_lines_high` if lines of code are withheld, `pass_after_round_1` and so
/// on if feedback was given, and the means of the family's measures.
///
/// # Errors
/// Kind `Internal`, should writing to memory fail.
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

/// A CSV table of single attempts or single values. It is written line by line, so it need not fit in memory.
///
/// The table of attempts has one row per record: the attempt (`agent, model, paper, sample, n, attempt`), whether it
/// counts (`counts`, see [`super::SummaryRow`]; a lost attempt never does), `started`, `end`, `end_detail`, `pass, reported,
/// verified, unsupported`, what it used, whether it was `lost` to infrastructure (`pass` is then empty) and, in
/// families with partial credit, `score` and the family's measures.
///
/// The table of values has one row per gold value of each verdict: the attempt as above, `source` (`reported` or
/// `verified`), `experiment`, `value` (its path), `gold`, `got`, `error` (relative, or absolute if gold is 0), `pass`
/// and `reason` (of the value, else of the experiment, else of the verdict).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detailed {
    /// One row per attempt.
    Attempts {
        /// Whether any attempt has partial credit.
        has_score: bool,
        /// Sorted names of all measures of the attempts.
        measures: Vec<String>,
    },
    /// One row per gold value.
    Values,
}

impl Detailed {
    /// Returns the table of attempts with the columns that these records need.
    #[must_use]
    pub fn attempts(records: &[AttemptRecord]) -> Self {
        let has_score = records.iter().any(|record| record.score().is_some());
        Self::Attempts { has_score, measures: measure_names(records) }
    }

    /// Returns the whole table of these records as one string.
    #[must_use]
    pub fn csv(&self, records: &[AttemptRecord]) -> String {
        let mut text = self.heading();
        for (record, counts) in records.iter().zip(counting(records)) {
            self.add(&mut text, record, counts);
        }
        text
    }

    /// Returns the heading line.
    #[must_use]
    pub fn heading(&self) -> String {
        let mut heading = names(&["agent", "model", "paper", "sample", "n", "attempt", "counts"]);
        match self {
            Self::Attempts { has_score, measures } => {
                heading.extend(names(&["started", "end", "end_detail", "pass", "reported", "verified", "unsupported"]));
                heading.extend(names(&["steps", "format_errors", "cost", "input_tokens", "output_tokens"]));
                heading.extend(names(&["tool_seconds", "model_seconds", "verify_seconds", "wall_seconds"]));
                heading.extend(names(&["changed_files", "ignored_files", "sandbox", "lost"]));
                heading.extend(has_score.then(|| "score".to_owned()));
                heading.extend(measures.iter().cloned());
            }
            Self::Values => {
                heading.extend(names(&["source", "experiment", "value", "gold", "got", "error", "pass", "reason"]));
            }
        }
        let mut text = String::new();
        csv_line(&mut text, heading);
        text
    }

    /// Appends the lines of one record; `counts` says whether it counts in the rates.
    pub fn add(&self, text: &mut String, record: &AttemptRecord, counts: bool) {
        match self {
            Self::Attempts { has_score, measures } => {
                csv_line(text, attempt_cells(record, counts, *has_score, measures));
            }
            Self::Values => add_values(text, record, counts),
        }
    }
}

fn attempt_cells(record: &AttemptRecord, counts: bool, has_score: bool, measures: &[String]) -> Vec<String> {
    let verdict = |verdict: &Option<crate::score::Verdict>| {
        verdict.as_ref().map(|verdict| verdict.pass.to_string()).unwrap_or_default()
    };
    let mut cells = identity(record, counts);
    cells.extend([record.started.to_string(), end_name(record.end)]);
    cells.push(cell(record.end_detail.as_deref().unwrap_or_default()));
    let lost = record.is_infrastructure();
    let pass = if lost { String::new() } else { record.pass.to_string() };
    cells.extend([pass, verdict(&record.reported), verdict(&record.verified)]);
    cells.extend([record.is_unsupported().to_string(), record.steps.to_string(), record.format_errors.to_string()]);
    cells.extend([record.cost.to_string(), record.usage.input.to_string(), record.usage.output.to_string()]);
    let seconds = [record.tool_seconds, record.model_seconds, record.verify_seconds, record.wall_seconds];
    cells.extend(seconds.map(|seconds| seconds.to_string()));
    cells.extend([record.changed.len().to_string(), record.ignored.len().to_string(), cell(&record.sandbox)]);
    cells.push(lost.to_string());
    cells.extend(has_score.then(|| number(record.score())));
    cells.extend(measured(record, measures).into_values().map(number));
    cells
}

fn add_values(text: &mut String, record: &AttemptRecord, counts: bool) {
    let verdicts = [("reported", &record.reported), ("verified", &record.verified)];
    for (source, verdict) in verdicts.into_iter().filter_map(|(source, verdict)| Some((source, verdict.as_ref()?))) {
        for experiment in &verdict.experiments {
            for value in &experiment.values {
                let above = [&value.reason, &experiment.reason, &verdict.reason];
                let reason = above.into_iter().flatten().next().filter(|_| !value.pass || !experiment.pass);
                let mut cells = identity(record, counts);
                cells.extend([source.to_owned(), cell(&experiment.experiment), cell(&value.path)]);
                cells.extend([plain(&value.gold), value.got.as_ref().map(plain).unwrap_or_default()]);
                cells.extend([number(value.error), value.pass.to_string()]);
                cells.push(reason.map(|reason| cell(reason)).unwrap_or_default());
                csv_line(text, cells);
            }
        }
    }
}

/// Cells that identify a row's attempt.
fn identity(record: &AttemptRecord, counts: bool) -> Vec<String> {
    vec![
        cell(&record.agent),
        cell(record.model.as_deref().unwrap_or_default()),
        cell(&record.paper),
        cell(&record.sample),
        record.n.to_string(),
        record.attempt.to_string(),
        (counts && !record.is_infrastructure()).to_string(),
    ]
}

/// Formats a JSON value as a cell: numbers unchanged, text guarded against formulas.
fn plain(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => cell(text),
        other => cell(&other.to_string()),
    }
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
