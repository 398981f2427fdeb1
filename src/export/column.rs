//! A table's rows and columns, which every format of tables is written from.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A time.
    Time,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

/// A table of rows, which are made one at a time while it is written.
pub struct Table<'a, R> {
    /// `attempts` or `values`.
    pub name: &'static str,
    /// Its rows.
    pub rows: Box<dyn Iterator<Item = Result<R>> + 'a>,
    /// Names of what the family measured, columns behind those of the row's type.
    pub measures: Vec<String>,
}

impl<R: JsonSchema> Table<'_, R> {
    /// All columns.
    ///
    /// # Errors
    /// As [`columns`].
    pub fn columns(&self) -> Result<Vec<Column>> {
        let measured = self.measures.iter().map(|name| Column { name: name.clone(), kind: Kind::Number });
        Ok(columns::<R>()?.into_iter().chain(measured).collect())
    }
}

/// The columns of a table, from its row's schema.
///
/// # Errors
/// Kind `Internal` for a field that fits no column, which the tests would show.
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
        (["string"], Some("date-time")) => Kind::Time,
        (["string"], _) => Kind::Text,
        (["integer"], _) => Kind::Integer,
        (["number"], _) => Kind::Number,
        (["boolean"], _) => Kind::Boolean,
        _ => return Err(Error::internal(format!("no column fits the field `{name}`"))),
    };
    Ok(Column { name, kind })
}

/// A row as its cells by name.
pub(super) fn cells<R: Serialize>(row: &R) -> Result<Map<String, Value>> {
    match serde_json::to_value(row) {
        Ok(Value::Object(cells)) => Ok(cells),
        Ok(_) => Err(Error::internal("a row of a table is no object")),
        Err(error) => Err(Error::internal("failed to write a row of a table").because(error)),
    }
}
