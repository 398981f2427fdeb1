//! Tables as Parquet: a column a field, each of them optional, uncompressed but dictionary-encoded.
//!
//! Written column by column without Arrow, which would be most of this program's dependencies.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::column::{Column, Kind, Table, cells};
use crate::error::{Error, Result};
use crate::files::WholeFile;

/// Rows that are written together, and held in memory for it.
const GROUP: usize = 10_000;

/// Writes a table into a file.
///
/// # Errors
/// Kind `Machine` when it cannot be written.
pub fn save<R: Serialize + JsonSchema>(table: &Table<R>, path: &Path) -> Result<PathBuf> {
    let failed = |error: ParquetError| Error::machine(format!("failed to write `{}`", path.display())).because(error);
    let columns = table.columns()?;
    let schema = parse_message_type(&message(table.name, &columns)).map_err(failed)?;
    let written_by = KeyValue::new("autoexperiment".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![written_by])).build();
    let destination = WholeFile::create_with_folders(path)?;
    let mut writer = SerializedFileWriter::new(destination, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
    for rows in table.rows.chunks(GROUP) {
        let rows = rows.iter().map(cells).collect::<Result<Vec<_>>>()?;
        let group = writer.next_row_group().map_err(failed)?;
        write_group(group, &columns, &rows).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)?.finish()
}

/// The schema, as Parquet writes it down.
fn message(name: &str, columns: &[Column]) -> String {
    let mut text = format!("message {name} {{\n");
    for Column { name, kind } in columns {
        let (kind, logical) = match kind {
            Kind::Text => ("BYTE_ARRAY", " (STRING)"),
            Kind::Integer => ("INT64", ""),
            Kind::Number => ("DOUBLE", ""),
            Kind::Boolean => ("BOOLEAN", ""),
            Kind::Time => ("INT64", " (TIMESTAMP(MILLIS,true))"),
        };
        let _ = writeln!(text, "  OPTIONAL {kind} {name}{logical};");
    }
    text.push('}');
    text
}

fn write_group<W: std::io::Write + Send>(
    mut group: SerializedRowGroupWriter<'_, W>,
    columns: &[Column],
    rows: &[Map<String, Value>],
) -> Result<(), ParquetError> {
    for column in columns {
        let cells: Vec<&Value> = rows.iter().map(|row| row.get(&column.name).unwrap_or(&Value::Null)).collect();
        // A level of 1 for a value, of 0 for none.
        let levels: Vec<i16> = cells.iter().map(|cell| i16::from(!cell.is_null())).collect();
        let Some(mut writer) = group.next_column()? else { break };
        match writer.untyped() {
            ColumnWriter::ByteArrayColumnWriter(typed) => {
                let texts: Vec<ByteArray> = cells.iter().filter_map(|cell| Some(cell.as_str()?.into())).collect();
                typed.write_batch(&texts, Some(&levels), None)?;
            }
            ColumnWriter::Int64ColumnWriter(typed) => {
                let numbers: Vec<i64> = cells.iter().filter_map(|cell| integer(cell, column.kind)).collect();
                typed.write_batch(&numbers, Some(&levels), None)?;
            }
            ColumnWriter::DoubleColumnWriter(typed) => {
                let numbers: Vec<f64> = cells.iter().filter_map(|cell| cell.as_f64()).collect();
                typed.write_batch(&numbers, Some(&levels), None)?;
            }
            ColumnWriter::BoolColumnWriter(typed) => {
                let truths: Vec<bool> = cells.iter().filter_map(|cell| cell.as_bool()).collect();
                typed.write_batch(&truths, Some(&levels), None)?;
            }
            _ => return Err(ParquetError::General(format!("no writer for the column `{}`", column.name))),
        }
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// A whole number, or a time as milliseconds since 1970.
fn integer(cell: &Value, kind: Kind) -> Option<i64> {
    match kind {
        Kind::Time => Some(cell.as_str()?.parse::<jiff::Timestamp>().ok()?.as_millisecond()),
        // A cell that is not null has to have a value, and no true count comes near the largest.
        _ => cell.as_i64().or_else(|| cell.is_u64().then_some(i64::MAX)),
    }
}
