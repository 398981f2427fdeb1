//! JSON Schemas of what is exported a line or a row at a time, kept in `schemas/`.

use schemars::{JsonSchema, schema_for};

use super::predictions::Prediction;
use super::table::{AttemptRow, ValueRow};
use crate::error::{Error, Result};

/// The schemas by the name of their file, as the file holds them.
///
/// # Errors
/// Kind `Internal`, should serialisation fail.
pub fn schemas() -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("attempts.schema.json", text::<AttemptRow>()?),
        ("values.schema.json", text::<ValueRow>()?),
        ("predictions.schema.json", text::<Prediction>()?),
    ])
}

fn text<T: JsonSchema>() -> Result<String> {
    let mut text = serde_json::to_string_pretty(&schema_for!(T))
        .map_err(|error| Error::internal("failed to write a schema").because(error))?;
    text.push('\n');
    Ok(text)
}
