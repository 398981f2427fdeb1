//! The summary as JSON.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Row, Summary, VerifierRow, clean};
use crate::error::{Error, Result};
use crate::stats::Population;

/// Version of the layout: raised when a field changes its meaning or goes.
const FORMAT: u32 = 1;

/// What `report --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document<'a> {
    /// Version of the layout.
    pub format: u32,
    /// Confidence level of the intervals, as 0.95.
    pub level: f64,
    /// Of what the intervals speak.
    pub population: Population,
    /// Rates are from 0 to 1, ends by name.
    pub rows: &'a [Row],
    /// What verifiers chose, where some did.
    pub verifiers: &'a [VerifierRow],
    /// What is missing or was left out, a sentence each.
    pub notes: &'a [String],
}

/// The summary as an indented [`Document`]. Characters that could steer a terminal are written as `\u` escapes, so that
/// the text is safe to print and reads back unchanged.
///
/// # Errors
/// Kind `Internal`, should serialisation fail.
pub fn json(summary: &Summary) -> Result<String> {
    let document = Document {
        format: FORMAT,
        level: summary.level,
        population: summary.population,
        rows: &summary.rows,
        verifiers: &summary.verifiers,
        notes: &summary.notes,
    };
    let text = serde_json::to_string_pretty(&document)
        .map_err(|error| Error::internal("failed to write the report as JSON").because(error))?;
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // The line breaks of the layout stay; inside strings serde_json has escaped them already.
        if c != '\n' && clean::is_unsafe(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe.push('\n');
    Ok(safe)
}
