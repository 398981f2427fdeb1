//! Stores outcomes of trials (runs of an experiment on a changed repo) on disk. Each line of the file contains an
//! outcome and its key, which is a digest of everything that decides the outcome.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::{Appender, json_lines};

/// Stored outcomes by their keys. Several processes may append to one file: each line is written with one call.
pub(super) struct Journal<T> {
    state: Mutex<JournalState<T>>,
}

struct JournalState<T> {
    known: HashMap<String, T>,
    file: Appender,
}

#[derive(Serialize, Deserialize)]
struct JournalLine<T> {
    key: String,
    outcome: T,
}

impl<T: Clone + Serialize + DeserializeOwned> Journal<T> {
    /// Opens or creates the file. Unreadable lines, for instance one cut off by a kill, are ignored: those trials run
    /// again.
    ///
    /// # Errors
    /// Kind `Machine` if the file cannot be read or created.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |error| Error::io("open", path, error);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = Appender::share(path).map_err(failed)?;
        let bytes = std::fs::read(path).map_err(failed)?;
        let known = json_lines::<JournalLine<T>>(&bytes)
            .filter_map(|line| line.value.ok())
            .map(|line| (line.key, line.outcome))
            .collect();
        Ok(Self { state: Mutex::new(JournalState { known, file }) })
    }

    /// Returns the stored outcome of the trial with this key.
    pub(super) fn get(&self, key: &str) -> Option<T> {
        self.lock().known.get(key).cloned()
    }

    /// Stores an outcome: first on disk, then in memory.
    ///
    /// # Errors
    /// Kind `Machine` if it cannot be written.
    pub(super) fn put(&self, key: String, outcome: &T) -> Result<()> {
        let line = JournalLine { key, outcome: outcome.clone() };
        let mut state = self.lock();
        state
            .file
            .append(&line)
            .map_err(|error| Error::machine("failed to store the result of an experiment").because(error))?;
        state.known.insert(line.key, line.outcome);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, JournalState<T>> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::ExperimentOutcome;
    use super::*;
    use crate::sandbox::Exit;

    #[test]
    fn the_journal_of_a_killed_process_is_read_without_its_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/paper.jsonl");
        let outcome = ExperimentOutcome {
            exit: Exit::Code(0),
            result: Ok(serde_json::json!({"loss": 0.1})),
            runs: Vec::new(),
            stderr: String::new(),
            wall: 1.5,
            cpu: 0.5,
        };
        Journal::open(&path).unwrap().put("one".to_owned(), &outcome).unwrap();
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_within(..torn.len() / 2);
        std::fs::write(&path, torn).unwrap();
        let journal = Journal::open(&path).unwrap();
        assert_eq!(journal.get("one"), Some(outcome.clone()));
        journal.put("two".to_owned(), &outcome).unwrap();
        let journal: Journal<ExperimentOutcome> = Journal::open(&path).unwrap();
        assert_eq!(journal.get("two"), Some(outcome));
        assert_eq!(journal.get("three"), None);
    }
}
