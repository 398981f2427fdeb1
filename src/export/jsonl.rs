//! Tables as JSON lines: one object per row with every column; unknown values are null.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::column::ExportTable;
use crate::error::Result;
use crate::files::WholeFile;

/// Writes a table into a file.
///
/// # Errors
/// Returns the errors of making the rows; kind `Machine` if the file cannot be written.
pub fn save<R: Serialize>(table: ExportTable<'_, R>, path: &Path) -> Result<PathBuf> {
    let mut destination = WholeFile::create_with_folders(path)?;
    for row in table.rows {
        destination.json_line(&row?)?;
    }
    destination.finish()
}
