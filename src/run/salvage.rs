//! Reads what can be read of a run that is broken, and says what could not.
//!
//! For looking at a run only. Whatever goes on with one, or compares it, reads it with [`Store::open`] and
//! [`Store::records`], which refuse what they cannot read whole.

use std::path::Path;

use super::{AttemptRecord, RunFile, Store};
use crate::error::{Error, Result};

/// As much of a run as can be read.
#[derive(Debug)]
pub struct Salvaged {
    /// The folder.
    pub store: Store,
    /// What the run is, where its `run.json` can be read.
    pub run: Option<RunFile>,
    /// The attempts whose lines can be read.
    pub records: Vec<AttemptRecord>,
    /// What could not be read, a sentence each.
    pub notes: Vec<String>,
}

/// Reads a run's folder.
///
/// # Errors
/// Kind `Store` when there is no such folder.
pub fn salvage(folder: &Path) -> Result<Salvaged> {
    if !folder.is_dir() {
        // Its message says how to name a run.
        Store::open(folder)?;
        return Err(Error::store(format!("`{}` is no folder", folder.display())));
    }
    let (store, run, mut notes) = match Store::open(folder) {
        Ok((store, run)) => (store, Some(run), Vec::new()),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            (Store::at(folder), None, vec![format!("what the run is cannot be read: {error}{cause}")])
        }
    };
    let records = read_records(&store, &mut notes);
    Ok(Salvaged { store, run, records, notes })
}

fn read_records(store: &Store, notes: &mut Vec<String>) -> Vec<AttemptRecord> {
    let mut records = Vec::new();
    let paths = match store.record_files() {
        Ok(paths) => paths,
        Err(error) => {
            notes.push(error.to_string());
            return records;
        }
    };
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) => {
                notes.push(format!("`{name}` cannot be read: {error}"));
                continue;
            }
        };
        let mut broken: Vec<usize> = Vec::new();
        for (number, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(record) if line.ends_with(b"\n") => records.push(record),
                _ if !line.ends_with(b"\n") => {
                    notes.push(format!("`{name}` is cut off in its last line: that attempt is left out"));
                }
                _ => broken.push(number + 1),
            }
        }
        if let [first, rest @ ..] = broken.as_slice() {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            notes.push(format!("`{name}`: line {first}{more} cannot be read; what stood there is left out"));
        }
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    #[test]
    fn what_can_be_read_of_a_broken_run_is_and_the_rest_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let sample: Sample = "x_0".parse().unwrap();
        let line = serde_json::to_string(&AttemptRecord::blank("a", &sample, 0)).unwrap();
        let text = format!("{line}\ngarbage\n\u{0}\n{line}\n{}", &line[..40]);
        std::fs::write(folder.path().join("attempts.jsonl"), text).unwrap();
        std::fs::write(folder.path().join("run.json"), "{\"format\": 99}").unwrap();
        let found = salvage(folder.path()).unwrap();
        assert!(found.run.is_none());
        assert_eq!(found.records.len(), 2);
        let notes = found.notes.join("\n");
        for part in ["format 99", "line 2 and 1 more", "cut off in its last line"] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
        assert_eq!(salvage(&folder.path().join("none")).unwrap_err().kind, crate::error::Kind::Store);
    }
}
