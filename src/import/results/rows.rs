//! Reads JSON lines as written by Python, with `NaN` and `Infinity`, one line at a time. Errors name file and line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::score::read_python_json;

/// An object in a file, with its file and line.
#[derive(Debug)]
pub(super) struct ImportedRow {
    fields: Map<String, Value>,
    path: PathBuf,
    line: usize,
}

impl ImportedRow {
    /// Returns the value of a field; `None` if the field is absent or null.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// Whether the field exists, even if it is null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Returns the text of a required field.
    pub(super) fn text(&self, name: &str) -> Result<&str> {
        let value = self.get(name).ok_or_else(|| self.wrong(format!("`{name}` is missing")))?;
        value.as_str().ok_or_else(|| self.wrong(format!("`{name}` is not text: `{}`", short(value))))
    }

    /// Returns a required id, which may be text or an integer.
    pub(super) fn id(&self, name: &str) -> Result<String> {
        match self.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(other) => Err(self.wrong(format!("`{name}` is not an id: `{}`", short(other)))),
            None => Err(self.wrong(format!("`{name}` is missing"))),
        }
    }

    /// Creates an error about this row.
    pub(super) fn wrong(&self, message: impl Into<String>) -> Error {
        Error::suite(message).at(&self.path, Some(self.line))
    }
}

/// Shortens a value for messages.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Calls `each` with the objects in a file, in order. Empty lines are skipped.
///
/// # Errors
/// Kind `Suite`, with file and line, for a line that is not a JSON object, and for a file without objects; kind `Usage`
/// or `Machine` if the file cannot be read; and the errors of `each`.
pub(super) fn for_each(path: &Path, mut each: impl FnMut(ImportedRow) -> Result<()>) -> Result<()> {
    let unreadable = |error| Error::unreadable(path, error);
    let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
    let (mut bytes, mut is_empty) = (Vec::new(), true);
    for line in 1.. {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(unreadable)? == 0 {
            break;
        }
        let wrong = |message: String| Error::suite(message).at(path, Some(line));
        let text = std::str::from_utf8(&bytes).map_err(|error| wrong(format!("not UTF-8: {error}")))?;
        let text = if line == 1 { text.trim_start_matches('\u{feff}') } else { text }.trim();
        if text.is_empty() {
            continue;
        }
        is_empty = false;
        let fields = match read_python_json(text) {
            Ok(Value::Object(fields)) => fields,
            Ok(other) => {
                return Err(wrong(format!("not a JSON object: `{}`", short(&other)))
                    .hint("the file must have one JSON object per line"));
            }
            Err(error) => {
                return Err(wrong(format!("not JSON: {}", error.replacen("at line 1 column", "at column", 1)))
                    .hint("the file must have one JSON object per line"));
            }
        };
        each(ImportedRow { fields, path: path.to_owned(), line })?;
    }
    if is_empty {
        let hint = "the file must have one JSON object per line: was it downloaded whole?";
        return Err(Error::suite("the file is empty").at(path, None).hint(hint));
    }
    Ok(())
}
