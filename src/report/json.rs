//! The summary as JSON.

use std::fmt::Write;

use super::{Summary, clean};
use crate::error::{Error, Result};

/// Version of the layout: raised when a field changes its meaning or goes.
const FORMAT: u32 = 1;

/// The summary as indented JSON: `format`, `level` (of the intervals), `rows` (the fields of [`super::Row`], rates from 0 to 1, ends by name), `verifiers`
/// (the fields of [`super::VerifierRow`]) and `notes`. Characters that could steer a terminal are written as `\u` escapes, so that the text is safe to print and
/// reads back unchanged.
///
/// # Errors
/// Kind `Internal`, should serialisation fail.
pub fn json(summary: &Summary) -> Result<String> {
    let value = serde_json::json!({
        "format": FORMAT,
        "level": summary.level,
        "rows": summary.rows,
        "verifiers": summary.verifiers,
        "notes": summary.notes,
    });
    let text = serde_json::to_string_pretty(&value)
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
