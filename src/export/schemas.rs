//! JSON Schemas of the files of a run, of what is exported a line or a row at a time, and of what is printed for machines;
//! kept in `schemas/`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use super::predictions::Prediction;
use super::table::{AttemptRow, ValueRow};
use crate::agent::TimedEvent;
use crate::error::{Error, Result};
use crate::model::ledger::Entry;
use crate::report::{Document, Status};
use crate::run::{AttemptRecord, RunFile};

/// Schemas of the tables and of predictions, by the name of their file: their properties are the columns.
///
/// # Errors
/// Kind `Internal`, should serialisation fail.
pub fn tables() -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("attempts.schema.json", text::<AttemptRow>()?),
        ("values.schema.json", text::<ValueRow>()?),
        ("predictions.schema.json", text::<Prediction>()?),
    ])
}

/// Schemas of a run's own files and of reports, by the name of their file.
///
/// # Errors
/// Kind `Internal`, should serialisation fail.
pub fn stored() -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("run.schema.json", text::<RunFile>()?),
        ("record.schema.json", text::<AttemptRecord>()?),
        ("trajectory.schema.json", text::<TimedEvent>()?),
        ("ledger.schema.json", text::<Entry>()?),
        ("report.schema.json", text::<Document<'_>>()?),
        ("status.schema.json", text::<Status>()?),
    ])
}

/// The schema of what is written of a type, as its file holds it.
///
/// # Errors
/// Kind `Internal`, should serialisation fail.
pub fn text<T: JsonSchema>() -> Result<String> {
    let schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Error::internal("failed to write a schema").because(error))?;
    text.push('\n');
    Ok(text)
}
