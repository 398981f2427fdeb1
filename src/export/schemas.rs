//! JSON Schemas of a run's files, of exported lines and rows, and of machine-readable output; stored in `schemas/`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use super::predictions::Prediction;
use super::table::{AttemptRow, ValueRow};
use super::training::TurnRow;
use crate::agent::TimedEvent;
use crate::error::{Error, Result};
use crate::model::ledger::LedgerEntry;
use crate::report::{ReportDocument, Status};
use crate::run::{AttemptRecord, RunFile};

/// Returns the schemas of the tables and of predictions by file name. Their properties are the columns.
///
/// # Errors
/// Kind `Internal` if serialisation fails.
pub fn tables() -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("attempts.schema.json", text::<AttemptRow>()?),
        ("values.schema.json", text::<ValueRow>()?),
        ("turns.schema.json", text::<TurnRow>()?),
        ("predictions.schema.json", text::<Prediction>()?),
    ])
}

/// Returns the schemas of a run's own files and of reports by file name.
///
/// # Errors
/// Kind `Internal` if serialisation fails.
pub fn stored() -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("run.schema.json", text::<RunFile>()?),
        ("record.schema.json", text::<AttemptRecord>()?),
        ("trajectory.schema.json", text::<TimedEvent>()?),
        ("ledger.schema.json", text::<LedgerEntry>()?),
        ("report.schema.json", text::<ReportDocument<'_>>()?),
        ("status.schema.json", text::<Status>()?),
    ])
}

/// Returns the schema of a type's serialised form, as the text of its file.
///
/// # Errors
/// Kind `Internal` if serialisation fails.
pub fn text<T: JsonSchema>() -> Result<String> {
    let schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Error::internal("failed to write a schema").because(error))?;
    text.push('\n');
    Ok(text)
}
