//! Parses TOML and reports all errors at once, so that a user can correct a file in one edit.

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

use crate::error::{Error, line_at};

/// Maximum number of errors to report; more are reported after these are corrected.
const MOST: usize = 20;

/// Parses a TOML text.
///
/// # Errors
/// Kind `Suite`, with file and line of the first error. Each other error is on a separate line of the message.
pub fn from_toml<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, Error> {
    let first = match toml::from_str(text) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    let (table, broken) = DeTable::parse_recoverable(text);
    let mut faults: Vec<Error> = broken.iter().map(|error| located_error(text, path, error)).collect();
    if faults.is_empty() {
        faults = misread::<T>(text, path, table);
    }
    let line = |fault: &Error| fault.place.as_ref().and_then(|(_, line)| *line);
    faults.sort_by_key(line);
    // Other errors on the same line usually follow from the first one.
    faults.dedup_by_key(|fault| line(fault));
    Err(Error::all(faults).unwrap_or_else(|| located_error(text, path, &first)))
}

/// Returns the number, from 1, of the line in a TOML document on which this text is the value of a key, for example of
/// `id`.
#[must_use]
pub fn line_naming(text: &str, value: &str) -> Option<usize> {
    let given =
        |line: &str| line.split_once('=').is_some_and(|(_, given)| given.trim().trim_matches(['"', '\'']) == value);
    text.lines().position(given).map(|place| place + 1)
}

/// Formats a text as a TOML string, so that parsing gives the same text.
#[must_use]
pub fn toml_string(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn located_error(text: &str, path: &Path, error: &toml::de::Error) -> Error {
    let line = error.span().map(|span| line_at(text, span.start));
    Error::suite(error.message().trim().to_owned()).at(path, line)
}

/// Finds all errors in a valid TOML text that doesn't fit the type: repeatedly removes the faulty part and parses the
/// rest again, until there is no error left.
fn misread<T: DeserializeOwned>(text: &str, path: &Path, mut table: Spanned<DeTable<'_>>) -> Vec<Error> {
    let mut faults = Vec::new();
    let mut gone: Vec<String> = Vec::new();
    let mut misnamed = false;
    while faults.len() < MOST {
        let Err(error) = T::deserialize(Deserializer::from(table.clone())) else { break };
        // The field is missing only because an earlier pass of this loop removed it, after reporting its error.
        if gone.iter().any(|key| error.message().trim() == format!("missing field `{key}`")) {
            break;
        }
        let unknown = error.message().starts_with("unknown field");
        // If a field's name is misspelt, the correct name is also missing; report only the misspelt name.
        let slip = misnamed && error.message().starts_with("missing field");
        if !slip {
            faults.push(located_error(text, path, &error));
        }
        misnamed = unknown;
        match error.span().and_then(|span| take_out(table.get_mut(), span.start, unknown)) {
            Some(key) => gone.push(key),
            None => break,
        }
    }
    faults
}

/// Removes the part of a document that has an error, which is at position `at`. Returns the top-level key if it was
/// removed together with its value, an empty text if only a part of its value was removed, and `None` if nothing is at
/// `at`.
///
/// If the value is a list, only the list's element at `at` is removed. If this element is a table and the error is an
/// unknown key (`unknown`), only this key of the table is removed.
fn take_out(table: &mut DeTable<'_>, at: usize, unknown: bool) -> Option<String> {
    let key = key_at(table, at)?;
    if let Some(DeValue::Array(items)) = table.get_mut(key.as_str()).map(Spanned::get_mut)
        && let Some(place) = items.iter().rposition(|item| holds(item, at))
    {
        if unknown
            && let Some(DeValue::Table(inner)) = items.get_mut(place).map(Spanned::get_mut)
            && let Some(inside) = inner.keys().find(|key| key.span().contains(&at)).map(|key| key.get_ref().to_string())
        {
            inner.remove(inside.as_str());
            return Some(String::new());
        }
        let mut rest = DeArray::new();
        let others = items.iter().enumerate().filter(|(other, _)| *other != place);
        others.for_each(|(_, item)| rest.push(item.clone()));
        *items = rest;
        return Some(String::new());
    }
    table.remove(key.as_str());
    Some(key)
}

/// Returns the top-level key at this position, or the top-level key whose value is at this position.
fn key_at(table: &DeTable<'_>, at: usize) -> Option<String> {
    let found = table.iter().find(|(key, value)| key.span().contains(&at) || holds(value, at));
    found.map(|(key, _)| key.get_ref().to_string())
}

/// Whether a value is at this position. The span of a table covers only its header, so keys and values inside the table
/// are checked too.
fn holds(value: &Spanned<DeValue<'_>>, at: usize) -> bool {
    value.span().contains(&at)
        || match value.get_ref() {
            DeValue::Array(items) => items.iter().any(|item| holds(item, at)),
            DeValue::Table(inner) => inner.iter().any(|(key, value)| key.span().contains(&at) || holds(value, at)),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only read")]
    struct Book {
        title: String,
        year: u16,
        #[serde(default)]
        part: Vec<Chapter>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only read")]
    struct Chapter {
        name: String,
    }

    fn faults(text: &str) -> String {
        from_toml::<Book>(text, Path::new("f.toml")).unwrap_err().to_string()
    }

    #[test]
    fn every_error_in_a_toml_file_is_reported_with_its_line() {
        let text = "title = 1\nyear = 'x'\nyeer = 2\n\n[[part]]\nnam = 'a'\nname = 'a'\nnaam = 'b'\n\n[[part]]\nname = \
                    2\n\n[[part]]\nname = 'c'\n";
        insta::assert_snapshot!(faults(text), @r#"
        f.toml:1: invalid type: integer `1`, expected a string
        f.toml:2: invalid type: string "x", expected u16
        f.toml:3: unknown field `yeer`, expected one of `title`, `year`, `part`
        f.toml:6: unknown field `nam`, expected `name`
        f.toml:8: unknown field `naam`, expected `name`
        f.toml:11: invalid type: integer `2`, expected a string
        "#);
        insta::assert_snapshot!(faults("title = = 1\nyear = 2\nyear = 3\n"), @r#"
        f.toml:1: extra `=`, expected nothing
        f.toml:3: duplicate key
        "#);
        insta::assert_snapshot!(faults("title = 'x'\n"), @r#"f.toml:1: missing field `year`"#);
    }

    #[test]
    fn valid_toml_is_parsed() {
        let read: Book = from_toml("title = 'x'\nyear = 2\n", Path::new("f.toml")).unwrap();
        assert_eq!((read.title.as_str(), read.year, read.part.len()), ("x", 2, 0));
    }
}
