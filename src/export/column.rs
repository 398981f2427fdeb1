//! Rows and columns of a table, shared by all table formats.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// Integer.
    Integer,
    /// Floating-point number.
    Number,
    /// True or false.
    Boolean,
    /// Point in time.
    Time,
    /// List of integers.
    Integers,
    /// List of floating-point numbers.
    Numbers,
    /// List of truth values.
    Booleans,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The column's name.
    pub name: String,
    /// Type of its values.
    pub kind: ColumnKind,
}

/// A table whose rows are made one at a time while it is written.
pub struct ExportTable<'a, R> {
    /// `attempts` or `values`.
    pub name: &'static str,
    /// The rows.
    pub rows: Box<dyn Iterator<Item = Result<R>> + 'a>,
    /// Names of the measures that the kind of task (family) defines. Their columns follow those of the row type.
    pub measures: Vec<String>,
}

impl<R: JsonSchema> ExportTable<'_, R> {
    /// Returns all columns.
    ///
    /// # Errors
    /// Returns the errors of [`columns`].
    pub fn columns(&self) -> Result<Vec<Column>> {
        let measured = self.measures.iter().map(|name| Column { name: name.clone(), kind: ColumnKind::Number });
        Ok(columns::<R>()?.into_iter().chain(measured).collect())
    }
}

/// Derives the columns of a table from the schema of its row type.
///
/// # Errors
/// Kind `Internal` for a field whose type has no column type, which the tests would show.
pub fn columns<R: JsonSchema>() -> Result<Vec<Column>> {
    let schema = schemars::schema_for!(R);
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    properties.into_iter().map(|(name, property)| column(name, &property)).collect()
}

fn column(name: String, property: &Value) -> Result<Column> {
    let kinds: Vec<&str> = match &property["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect(),
        _ => Vec::new(),
    };
    let kind = match (kinds.as_slice(), property["format"].as_str()) {
        (["string"], Some("date-time")) => ColumnKind::Time,
        (["string"], _) => ColumnKind::Text,
        (["integer"], _) => ColumnKind::Integer,
        (["number"], _) => ColumnKind::Number,
        (["boolean"], _) => ColumnKind::Boolean,
        (["array"], _) => match property["items"]["type"].as_str() {
            Some("integer") => ColumnKind::Integers,
            Some("number") => ColumnKind::Numbers,
            Some("boolean") => ColumnKind::Booleans,
            _ => return Err(unfit(&name)),
        },
        _ => return Err(unfit(&name)),
    };
    Ok(Column { name, kind })
}

fn unfit(name: &str) -> Error {
    Error::internal(format!("no column fits the field `{name}`"))
}

/// Returns a row's cells by column name.
pub(super) fn cells<R: Serialize>(row: &R) -> Result<Map<String, Value>> {
    match serde_json::to_value(row) {
        Ok(Value::Object(cells)) => Ok(cells),
        Ok(_) => Err(Error::internal("a table row is not an object")),
        Err(error) => Err(Error::internal("failed to write a row of a table").because(error)),
    }
}
