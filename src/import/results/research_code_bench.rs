//! ResearchCodeBench's stored results, scored by the published line rate and task rate.
//!
//! A model has several completions per snippet, which are numbered. Each completion number has its own rate over the
//! model's snippets, and the model's rate is the mean of these rates, as published. Also as published, a snippet is
//! left out if one of its completions has no result.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::mean;
use super::rows::{ImportedRow, for_each, short};
use crate::error::Result;

/// A model's rates in percent; null if there are no snippets to compute them from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ModelRates {
    /// Number of lines in passing snippets, in percent of the lines of all snippets.
    pub line_rate: Option<f64>,
    /// Number of passing snippets, in percent of all snippets.
    pub task_rate: Option<f64>,
}

/// Counts for one completion number of one model.
#[derive(Debug, Default)]
struct SnippetCounts {
    lines: u64,
    passed_lines: u64,
    snippets: u64,
    passed_snippets: u64,
}

/// The result of one completion of a snippet.
struct Completion {
    number: u64,
    lines: u64,
    passed: bool,
}

/// Reads a file of results. Returns the rates by model, in the file's order, and the number of snippets left out.
///
/// # Errors
/// An error with file and line for anything that is not a result.
pub fn rates(file: &Path) -> Result<(Vec<(String, ModelRates)>, usize)> {
    let mut models: Vec<(String, BTreeMap<u64, SnippetCounts>)> = Vec::new();
    let mut left_out = 0;
    for_each(file, |row| {
        let model = row.text("model")?;
        let Some(completions) = completions(&row)? else {
            left_out += 1;
            return Ok(());
        };
        let index = models.iter().position(|(name, _)| name == model).unwrap_or_else(|| {
            models.push((model.to_owned(), BTreeMap::new()));
            models.len() - 1
        });
        for Completion { number, lines, passed } in completions {
            let tally = models[index].1.entry(number).or_default();
            tally.snippets += 1;
            tally.lines += lines;
            if passed {
                tally.passed_snippets += 1;
                tally.passed_lines += lines;
            }
        }
        Ok(())
    })?;
    let rates = models.into_iter().map(|(model, tallies)| {
        let over = |passed: fn(&SnippetCounts) -> u64, all: fn(&SnippetCounts) -> u64| {
            let with_some = tallies.values().filter(|tally| all(tally) > 0);
            mean(&with_some.map(|tally| passed(tally) as f64 / all(tally) as f64 * 100.0).collect::<Vec<_>>())
        };
        let line_rate = over(|tally| tally.passed_lines, |tally| tally.lines);
        let task_rate = over(|tally| tally.passed_snippets, |tally| tally.snippets);
        (model, ModelRates { line_rate, task_rate })
    });
    Ok((rates.collect(), left_out))
}

/// Returns the results of all completions of a snippet; `None` if a result is missing.
fn completions(row: &ImportedRow) -> Result<Option<Vec<Completion>>> {
    row.text("snippet")?;
    let values = match row.get("value") {
        Some(Value::Array(values)) => values,
        Some(other) => return Err(row.wrong(format!("`value` is not a list: `{}`", short(other)))),
        None => return Err(row.wrong("`value` is missing")),
    };
    let mut completions = Vec::with_capacity(values.len());
    for (position, value) in (0..).zip(values) {
        let Value::Object(value) = value else {
            return Err(row.wrong(format!("`value` contains something other than an object: `{}`", short(value))));
        };
        let passed = match value.get("passed") {
            Some(Value::Bool(passed)) => *passed,
            None | Some(Value::Null) => return Ok(None),
            Some(other) => return Err(row.wrong(format!("`passed` is neither true nor false: `{}`", short(other)))),
        };
        let lines = whole(row, value, "snippet_code_line_count")?
            .ok_or_else(|| row.wrong("`snippet_code_line_count` is missing"))?;
        let number = whole(row, value, "completion_idx")?.unwrap_or(position);
        completions.push(Completion { number, lines, passed });
    }
    Ok(Some(completions))
}

fn whole(row: &ImportedRow, value: &Map<String, Value>, name: &str) -> Result<Option<u64>> {
    match value.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(number) => {
            let read = number.as_u64();
            read.map(Some).ok_or_else(|| row.wrong(format!("`{name}` is not a whole number: `{}`", short(number))))
        }
    }
}
