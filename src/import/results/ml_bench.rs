//! ML-Bench's rows: static checks of the rows' gold programs or of stored replies.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::rows::{ImportedRow, for_each, short};
use crate::error::Result;
use crate::score::ml_bench::{ProgramKind, StaticCheck, read_arguments, shipped_check, strict_check};

/// Numbers of rows that pass the static checks.
#[derive(Debug, Default, Serialize)]
pub struct StaticChecks {
    /// Number of rows.
    pub rows: usize,
    /// Rows that pass by ML-Bench's published rules.
    pub shipped: PassingRows,
    /// Rows that pass by this program's stricter rules.
    pub strict: PassingRows,
    /// Rows without a reply, which count as failed.
    #[serde(skip)]
    pub unanswered: usize,
    /// Number of replies that belong to no row.
    #[serde(skip)]
    pub unasked: usize,
}

/// Numbers of passing rows. A row with several replies passes if one of them passes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PassingRows {
    /// Number of rows whose arguments all have the right values.
    pub arguments: usize,
    /// Number of rows whose program is of the requested kind: Bash or Python.
    pub kind: usize,
    /// Number of rows in which one reply passes both checks, of the arguments and of the kind.
    pub both: usize,
}

impl PassingRows {
    fn add(&mut self, checks: &[StaticCheck]) {
        self.arguments += usize::from(checks.iter().any(StaticCheck::has_arguments));
        self.kind += usize::from(checks.iter().any(|check| check.kind));
        self.both += usize::from(checks.iter().any(StaticCheck::passes));
    }
}

/// Checks the gold programs in `rows` or, if given, the replies in `replies`.
///
/// # Errors
/// An error with file and line for anything that is not a row or a reply.
pub fn check_rows(rows: &Path, replies: Option<&Path>) -> Result<StaticChecks> {
    let mut checks = StaticChecks::default();
    let mut given = replies.map(read_replies).transpose()?;
    let mut answered = 0;
    for_each(rows, |row| {
        let kind = ProgramKind::published(row.text("type")?);
        let none = Value::Null;
        let arguments = read_arguments(row.get("arguments").unwrap_or(&none))
            .map_err(|error| row.wrong(format!("`arguments` is not a Python dict: {error}")))?;
        let programs = if let Some(given) = &mut given {
            let reply = given.get_mut(&key(&row)?);
            checks.unanswered += usize::from(reply.is_none());
            reply.map_or_else(Vec::new, |(programs, is_asked)| {
                answered += usize::from(!std::mem::replace(is_asked, true));
                programs.clone()
            })
        } else {
            outputs(&row)?
        };
        let check = |by: fn(&str, &[_], ProgramKind) -> StaticCheck| -> Vec<StaticCheck> {
            programs.iter().map(|program| by(program, &arguments, kind)).collect()
        };
        checks.rows += 1;
        checks.shipped.add(&check(shipped_check));
        checks.strict.add(&check(strict_check));
        Ok(())
    })?;
    checks.unasked = given.map_or(0, |given| given.len() - answered);
    Ok(checks)
}

/// Replies to each row, by the row's key. The flag is set when the row itself is read; at the end, replies without the
/// flag belong to no row.
type Replies = HashMap<(String, String), (Vec<String>, bool)>;

fn read_replies(path: &Path) -> Result<Replies> {
    let mut replies = Replies::new();
    for_each(path, |row| {
        replies.entry(key(&row)?).or_default().0.extend(outputs(&row)?);
        Ok(())
    })?;
    Ok(replies)
}

/// Returns the key of a row. The field `id` alone is not unique.
fn key(row: &ImportedRow) -> Result<(String, String)> {
    Ok((row.id("github_id")?, row.id("id")?))
}

/// Returns the programs in a row or reply, which may be one string or a list of strings.
fn outputs(row: &ImportedRow) -> Result<Vec<String>> {
    match row.get("output") {
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                Value::String(text) => Ok(text.clone()),
                // Null means that the provider gave no reply.
                Value::Null => Ok(String::new()),
                other => Err(row.wrong(format!("`output` contains something other than text: `{}`", short(other)))),
            })
            .collect(),
        Some(other) => Err(row.wrong(format!("`output` is not text: `{}`", short(other)))),
        None => Err(row.wrong("`output` is missing")),
    }
}
