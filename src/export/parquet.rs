//! Tables as Parquet: every column is optional, uncompressed and dictionary-encoded.
//!
//! This module writes the columns itself instead of using Arrow, which would add more dependencies than the rest of
//! this program has.

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

use super::column::{Column, ColumnKind, ExportTable, cells};
use crate::error::{Error, Result};
use crate::files::WholeFile;

/// Maximum number of rows in a row group, which is held in memory until it is written.
const GROUP: usize = 10_000;
/// Bytes of text after which a row group is written, even if it has few rows.
const GROUP_TEXT: usize = 8 << 20;

/// Writes a table into a file.
///
/// # Errors
/// Returns the errors of making the rows; kind `Machine` if the file cannot be written.
pub fn save<R: Serialize + JsonSchema>(table: ExportTable<'_, R>, path: &Path) -> Result<PathBuf> {
    let failed = |error: ParquetError| Error::machine(format!("failed to write `{}`", path.display())).because(error);
    let columns = table.columns()?;
    let schema = parse_message_type(&message(table.name, &columns)).map_err(failed)?;
    let written_by = KeyValue::new("autoexperiment".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![written_by])).build();
    let destination = WholeFile::create_with_folders(path)?;
    let mut writer = SerializedFileWriter::new(destination, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
    let mut group = RowGroup::new(&columns);
    for row in table.rows {
        group.add(cells(&row?)?);
        if group.is_full() {
            write_group(writer.next_row_group().map_err(failed)?, &group).map_err(failed)?;
            group = RowGroup::new(&columns);
        }
    }
    if group.rows > 0 {
        write_group(writer.next_row_group().map_err(failed)?, &group).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)?.finish()
}

/// Returns the schema in Parquet's notation.
fn message(name: &str, columns: &[Column]) -> String {
    let mut text = format!("message {name} {{\n");
    for Column { name, kind } in columns {
        let list = |element: &str| {
            format!("  OPTIONAL group {name} (LIST) {{ REPEATED group list {{ REQUIRED {element} element; }} }}\n")
        };
        let (kind, logical) = match kind {
            ColumnKind::Text => ("BYTE_ARRAY", " (STRING)"),
            ColumnKind::Integer => ("INT64", ""),
            ColumnKind::Number => ("DOUBLE", ""),
            ColumnKind::Boolean => ("BOOLEAN", ""),
            ColumnKind::Time => ("INT64", " (TIMESTAMP(MILLIS,true))"),
            ColumnKind::Integers | ColumnKind::Numbers | ColumnKind::Booleans => {
                text += &list(match kind {
                    ColumnKind::Integers => "INT64",
                    ColumnKind::Numbers => "DOUBLE",
                    _ => "BOOLEAN",
                });
                continue;
            }
        };
        let _ = writeln!(text, "  OPTIONAL {kind} {name}{logical};");
    }
    text.push('}');
    text
}

/// A row group, stored column by column.
struct RowGroup<'a> {
    columns: Vec<(&'a Column, Vec<Value>)>,
    rows: usize,
    text: usize,
}

impl<'a> RowGroup<'a> {
    fn new(columns: &'a [Column]) -> Self {
        Self { columns: columns.iter().map(|column| (column, Vec::new())).collect(), rows: 0, text: 0 }
    }

    fn add(&mut self, mut row: Map<String, Value>) {
        for (column, cells) in &mut self.columns {
            let cell = row.remove(&column.name).unwrap_or_default();
            self.text += cell.as_str().map_or_else(|| cell.as_array().map_or(0, |list| 8 * list.len()), str::len);
            cells.push(cell);
        }
        self.rows += 1;
    }

    const fn is_full(&self) -> bool {
        self.rows >= GROUP || self.text >= GROUP_TEXT
    }
}

fn write_group<W: std::io::Write + Send>(
    mut writers: SerializedRowGroupWriter<'_, W>,
    group: &RowGroup<'_>,
) -> Result<(), ParquetError> {
    for (column, cells) in &group.columns {
        let Some(mut writer) = writers.next_column()? else { break };
        let is_list = matches!(column.kind, ColumnKind::Integers | ColumnKind::Numbers | ColumnKind::Booleans);
        let (values, levels, repeated) = if is_list { elements(cells) } else { single(cells) };
        let repeated = repeated.as_deref();
        match writer.untyped() {
            ColumnWriter::ByteArrayColumnWriter(typed) => {
                let texts: Vec<ByteArray> = values.iter().filter_map(|cell| Some(cell.as_str()?.into())).collect();
                typed.write_batch(&texts, Some(&levels), repeated)?;
            }
            ColumnWriter::Int64ColumnWriter(typed) => {
                let numbers: Vec<i64> = values.iter().filter_map(|cell| integer(cell, column.kind)).collect();
                typed.write_batch(&numbers, Some(&levels), repeated)?;
            }
            ColumnWriter::DoubleColumnWriter(typed) => {
                let numbers: Vec<f64> = values.iter().filter_map(|cell| cell.as_f64()).collect();
                typed.write_batch(&numbers, Some(&levels), repeated)?;
            }
            ColumnWriter::BoolColumnWriter(typed) => {
                let truths: Vec<bool> = values.iter().filter_map(|cell| cell.as_bool()).collect();
                typed.write_batch(&truths, Some(&levels), repeated)?;
            }
            _ => return Err(ParquetError::General(format!("no writer for the column `{}`", column.name))),
        }
        writer.close()?;
    }
    writers.close()?;
    Ok(())
}

/// Values of a column, with their definition and repetition levels.
type LevelledValues<'a> = (Vec<&'a Value>, Vec<i16>, Option<Vec<i16>>);

/// Values of a column of single values: definition level 1 for a value, 0 for null.
fn single(cells: &[Value]) -> LevelledValues<'_> {
    (cells.iter().collect(), cells.iter().map(|cell| i16::from(!cell.is_null())).collect(), None)
}

/// Elements of a column of lists: definition level 2 for an element, 1 for an empty list, 0 for null; repetition level
/// 0 for the first of a list, 1 for the others.
fn elements(cells: &[Value]) -> LevelledValues<'_> {
    let (mut values, mut levels, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        match cell.as_array().filter(|list| !list.is_empty()) {
            Some(list) => {
                values.extend(list);
                levels.extend(list.iter().map(|_| 2));
                repeated.extend((0..list.len()).map(|place| i16::from(place > 0)));
            }
            None => {
                levels.push(i16::from(cell.is_array()));
                repeated.push(0);
            }
        }
    }
    (values, levels, Some(repeated))
}

/// Converts an integer, or a time to milliseconds since 1970.
fn integer(cell: &Value, kind: ColumnKind) -> Option<i64> {
    match kind {
        ColumnKind::Time => Some(cell.as_str()?.parse::<jiff::Timestamp>().ok()?.as_millisecond()),
        // Replace a number above the maximum by the maximum, because a cell that isn't null must have a value. No real
        // count is that large.
        _ => cell.as_i64().or_else(|| cell.is_u64().then_some(i64::MAX)),
    }
}
