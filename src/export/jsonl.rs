//! Tables as JSON lines: an object a line, every column in each, null for what is not known.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::column::Table;
use crate::error::Result;
use crate::files::WholeFile;

/// Writes a table into a file.
///
/// # Errors
/// Those of making the rows; kind `Machine` when it cannot be written.
pub fn save<R: Serialize>(table: Table<'_, R>, path: &Path) -> Result<PathBuf> {
    let mut destination = WholeFile::create_with_folders(path)?;
    for row in table.rows {
        destination.json_line(&row?)?;
    }
    destination.finish()
}
