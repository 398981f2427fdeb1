//! The summary as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::{CurriculumCourse, Summary, SummaryRow, VerifierRow, clean};
use crate::error::{Error, Result};
use crate::stats::Population;

/// Version of the layout; increased when a field changes its meaning or is removed.
const FORMAT: u32 = 1;

/// Output of `report --json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct ReportDocument<'a> {
    /// Version of the layout.
    pub format: u32,
    /// Confidence level of the intervals, such as 0.95.
    pub level: f64,
    /// The papers that the intervals are about.
    pub population: Population,
    /// One row for each agent, model and n. Rates are from 0 to 1. `ends` contains the number of attempts for each kind
    /// of end.
    pub rows: &'a [SummaryRow],
    /// One row for each verifier, agent, model and n; empty without verifiers.
    pub verifiers: &'a [VerifierRow],
    /// Success and difficulty over the course of each run with a curriculum; absent if no run has one.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub curricula: &'a [CurriculumCourse],
    /// Sentences about what is missing or was left out.
    pub notes: &'a [String],
}

/// Formats the summary as an indented [`ReportDocument`]. Characters that could control a terminal are written as `\u`
/// escapes, so the text is safe to print and parses to the same values.
///
/// # Errors
/// Kind `Internal` if serialisation fails.
pub fn json(summary: &Summary) -> Result<String> {
    let document = ReportDocument {
        format: FORMAT,
        level: summary.level,
        population: summary.population,
        rows: &summary.rows,
        verifiers: &summary.verifiers,
        curricula: &summary.curricula,
        notes: &summary.notes,
    };
    let text = serde_json::to_string_pretty(&document)
        .map_err(|error| Error::internal("failed to write the report as JSON").because(error))?;
    Ok(clean::safe_json(&text) + "\n")
}
