//! The summary for a terminal: tables of at most 100 columns, each with a legend.

use std::collections::BTreeSet;

use comfy_table::{Cell, CellAlignment};

use super::clean::clean;
use super::curriculum::curriculum_console;
use super::names::{end_name, short_name};
use super::terminal::{
    decimal, dollars, percent, percent_with_interval, plain_table, tokens, too_few_legend, trimmed, wrap,
};
use super::verifiers::verifiers_console;
use super::{Summary, SummaryRow};
use crate::stats::{FEWEST_SAMPLES, Intervals};

/// Formats the summary as text that is readable without colour and ends with a line break.
#[must_use]
pub fn console(summary: &Summary) -> String {
    let mut parts = Vec::new();
    if !summary.rows.is_empty() {
        parts.push(rates(&summary.rows, summary.intervals()));
        parts.push(ends(&summary.rows));
        parts.extend(rounds(&summary.rows));
        parts.extend(measures(&summary.rows));
        parts.push(spent(&summary.rows));
    }
    parts.extend(summary.curricula.iter().map(curriculum_console));
    with_notes(parts, summary)
}

/// Formats the brief summary at the end of a run on a terminal: pass rates and the family's measures, without the
/// tables of how attempts ended and what they cost.
#[must_use]
pub fn brief_console(summary: &Summary) -> String {
    let mut parts = Vec::new();
    if !summary.rows.is_empty() {
        parts.extend(measures(&summary.rows));
        parts.push(rates(&summary.rows, summary.intervals()));
    }
    with_notes(parts, summary)
}

/// Appends the table of the verifiers' choices, and the notes.
fn with_notes(mut parts: Vec<String>, summary: &Summary) -> String {
    if !summary.verifiers.is_empty() {
        parts.push(verifiers_console(&summary.verifiers, summary.intervals()).trim_end().to_owned());
    }
    if !summary.notes.is_empty() {
        let lines = summary.notes.iter().map(|note| wrap(&format!("- {}", clean(note)), "  "));
        parts.push(format!("Notes\n{}", lines.collect::<Vec<_>>().join("\n")));
    }
    format!("{}\n", parts.join("\n\n"))
}

fn rates(rows: &[SummaryRow], how: Intervals) -> String {
    let table = |with_all: bool| {
        let mut heading = vec!["samples".to_owned(), "attempts".to_owned(), "passed".to_owned()];
        let all = |row: &SummaryRow| if with_all { row.pass_all.clone() } else { Vec::new() };
        if let Some(first) = rows.first() {
            heading.extend(first.pass_at.iter().map(|at| format!("pass@{}", at.k)));
            heading.extend(all(first).iter().map(|at| format!("pass^{}", at.k)));
        }
        heading.push("lost".to_owned());
        render(rows, &heading, key, |row| {
            let mut cells = vec![row.samples.to_string(), row.attempts.to_string(), row.passed.to_string()];
            cells.extend(row.pass_at.iter().map(|at| percent_with_interval(at.rate, at.interval)));
            cells.extend(all(row).iter().map(|at| percent(at.rate)));
            cells.push(row.lost.to_string());
            cells
        })
    };
    // Show the pass^k columns only if the table still fits, so that no line for the headings or for a row is wrapped.
    let wide = table(true);
    let has_room = rows.iter().any(|row| !row.pass_all.is_empty()) && wide.lines().count() == rows.len() + 1;
    let also = if has_room { " pass^k: that all of k attempts pass." } else { "" };
    let table = if has_room { wide } else { table(false) };
    let (level, over) = (100.0 * how.level, how.legend());
    let has_interval = |row: &SummaryRow| row.pass_at.iter().all(|at| at.rate.is_none() || at.interval.is_some());
    let few =
        if rows.iter().all(has_interval) { String::new() } else { format!(" {}", too_few_legend(FEWEST_SAMPLES, how)) };
    let legend = format!(
        "pass@k: chance in percent that one of k attempts passes, averaged over samples, with its {level:.0}% interval \
         ({over}).{also} lost: attempts lost to infrastructure, not in the rates.{few}"
    );
    format!("Pass rates\n{table}\n{}", wrap(&legend, ""))
}

fn ends(rows: &[SummaryRow]) -> String {
    // Only families (kinds of task) with partial credit have scores.
    let is_graded = rows.iter().any(|row| row.score.is_some());
    let mut heading = ["reported", "verified", "unsupported", "ends"].map(str::to_owned).to_vec();
    if is_graded {
        heading.insert(2, "score".to_owned());
    }
    let table = render(rows, &heading, key, |row| {
        let ends = row.ends.iter().map(|(end, count)| format!("{} {count}", end_name(*end).replace('_', " ")));
        let mut cells = vec![percent(row.reported), percent(row.verified)];
        if is_graded {
            cells.push(percent(row.score));
        }
        cells.extend([row.unsupported.to_string(), ends.collect::<Vec<_>>().join(", ")]);
        cells
    });
    let legend = "reported: percent of attempts whose answer agrees with gold. verified: percent whose code, run again, \
                  agrees with gold. unsupported: attempts reported rightly but not verified. ends: why attempts stopped.";
    let score = if is_graded { " score: percent of the task that was done, partial credit included." } else { "" };
    format!("How attempts ended\n{table}\n{}", wrap(&format!("{legend}{score}"), ""))
}

/// Formats the table of pass rates in which samples are weighted by their lines of withheld code.
#[must_use]
pub fn lines_console(summary: &Summary) -> String {
    let heading = ["samples", "lines", "pass@1", "score_lines"].map(str::to_owned);
    let table = render(&summary.rows, &heading, key, |row| {
        vec![
            row.samples.to_string(),
            row.lines.map_or_else(|| "-".to_owned(), |lines| lines.to_string()),
            percent(row.pass_at_1.rate),
            match row.score_lines_interval {
                Some(interval) => percent_with_interval(row.score_lines, Some(interval)),
                None => percent(row.score_lines),
            },
        ]
    });
    let legend = "pass@1: percent of samples that pass. score_lines: the same with each sample weighted by its lines of \
                  withheld code, as ResearchCodeBench counts. lines: of all samples.";
    format!("Rates by lines\n{table}\n{}\n", wrap(legend, ""))
}

/// Formats a table of the measures that the family (kind of task) defines, over all n (such as the number of masked
/// functions): one row per measure, one column per agent.
fn measures(rows: &[SummaryRow]) -> Option<String> {
    let overall: Vec<&SummaryRow> = rows
        .iter()
        .filter(|row| {
            row.n.is_none() || !rows.iter().any(|it| it.n.is_none() && it.agent == row.agent && it.model == row.model)
        })
        .collect();
    let names: BTreeSet<&String> = overall.iter().flat_map(|row| row.measures.keys()).collect();
    if names.is_empty() {
        return None;
    }
    let mut table = plain_table();
    let agents = overall.iter().map(|row| short_name(&row.agent, row.model.as_deref()));
    table.set_header(std::iter::once("measure".to_owned()).chain(agents));
    for name in names {
        let value =
            |row: &&SummaryRow| row.measures.get(name).map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
        table.add_row(std::iter::once(name.clone()).chain(overall.iter().map(value)));
    }
    let table = trimmed(table, &[0]);
    let legend = "Means over samples of this kind of task's other measures. reported_: of the answer as it \
                  was given. verified_: of the work, run again.";
    Some(format!("Measures\n{table}\n{}", wrap(legend, "")))
}

/// Table of pass rates after each round of feedback.
fn rounds(rows: &[SummaryRow]) -> Option<String> {
    let most = rows.iter().map(|row| row.after_rounds.len()).max().filter(|most| *most > 0)?;
    let heading: Vec<String> = (1..=most).map(|round| format!("round {round}")).collect();
    let table = render(rows, &heading, key, |row| {
        (0..most).map(|round| percent(row.after_rounds.get(round).copied())).collect()
    });
    let legend = "Percent of attempts that pass after each round, averaged over samples. Feedback is given between rounds; an \
                  attempt that made fewer counts as it ended.";
    Some(format!("Pass rates after rounds of feedback\n{table}\n{}", wrap(legend, "")))
}

fn spent(rows: &[SummaryRow]) -> String {
    let heading = [
        "steps",
        "format errors",
        "cost per sample",
        "cost",
        "input tokens",
        "output tokens",
        "tool seconds",
        "model seconds",
        "verify seconds",
    ]
    .map(str::to_owned);
    let table = render(rows, &heading, key, |row| {
        vec![
            decimal(row.steps),
            decimal(row.format_errors),
            row.cost_per_sample.map_or_else(|| "-".to_owned(), dollars),
            dollars(row.cost),
            tokens(row.usage.input),
            tokens(row.usage.output),
            decimal(row.tool_seconds),
            decimal(row.model_seconds),
            decimal(row.verify_seconds),
        ]
    });
    let legend = "cost and tokens: in all, lost attempts included. steps, format errors, seconds: mean an attempt. \
                  cost per sample: of all attempts at it that count.";
    format!("What they took\n{table}\n{}", wrap(legend, ""))
}

/// Renders a table whose first columns are the agent and n (such as the number of masked functions). Text is
/// left-aligned, and numbers are right-aligned.
pub(super) fn render<R>(
    rows: &[R],
    heading: &[String],
    key: impl Fn(&R) -> (String, Option<String>, Option<usize>),
    cells: impl Fn(&R) -> Vec<String>,
) -> String {
    let mut table = plain_table();
    let columns = ["agent", "n"].into_iter().chain(heading.iter().map(String::as_str));
    table.set_header(columns.map(|name| aligned(name, name)));
    let mut previous = None;
    for row in rows {
        // Print an agent's name only in the first of its rows.
        let (agent, model, n) = key(row);
        let shown = short_name(&agent, model.as_deref());
        let repeated = previous.replace((agent.clone(), model.clone())) == Some((agent, model));
        let agent = if repeated { String::new() } else { shown };
        let n = n.map_or_else(|| "all".to_owned(), |n| n.to_string());
        let names = ["agent", "n"].into_iter().chain(heading.iter().map(String::as_str));
        let texts = [agent, n].into_iter().chain(cells(row));
        table.add_row(names.zip(texts).map(|(name, text)| aligned(name, &text)));
    }
    trimmed(table, &[0])
}

/// Returns the agent, the model and n (such as the number of masked functions) of a summary's row, as [`render`]
/// expects them.
fn key(row: &SummaryRow) -> (String, Option<String>, Option<usize>) {
    (row.agent.clone(), row.model.clone(), row.n)
}

fn aligned(column: &str, text: &str) -> Cell {
    let alignment = if matches!(column, "agent" | "ends") { CellAlignment::Left } else { CellAlignment::Right };
    Cell::new(text).set_alignment(alignment)
}
