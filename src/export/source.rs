//! A stored run, opened for export.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use crate::agent::TimedEvent;
use crate::error::{Error, Result};
use crate::files::{JsonLine, json_lines};
use crate::run::family::Families;
use crate::run::reading::{Detail, Reading, read};
use crate::run::{AttemptRecord, RunFile, Store, counting, is_file_name};

/// A stored run, opened for export.
pub struct Source {
    /// What the run is.
    pub run: RunFile,
    store: Store,
    families: Families,
    records: Vec<AttemptRecord>,
    counts: Vec<bool>,
    notes: RefCell<Vec<String>>,
}

impl Source {
    /// Opens a run's folder. Broken lines are left out and noted, as in reports.
    ///
    /// # Errors
    /// Kind `Store` when it is no run, of another format version, or its `run.json` is lost.
    pub fn open(folder: &Path, families: &Families) -> Result<Self> {
        let Reading { store, run, mut records, mut notes } = read(folder, Detail::Whole)?;
        let run = match run {
            Some(run) => run,
            // Tells what is wrong with it.
            None => Store::open(folder)?.1,
        };
        // Files are named after these, and a store may come from somebody else.
        let mut odd: BTreeMap<String, usize> = BTreeMap::new();
        records.retain(|record| {
            let wrong = [&record.agent, &record.sample].into_iter().find(|name| !is_file_name(name));
            if let Some(wrong) = wrong {
                *odd.entry(wrong.clone()).or_default() += 1;
            }
            wrong.is_none()
        });
        for (wrong, count) in odd {
            notes.push(format!("left out: {count} record(s) of `{wrong}`, which can be no agent or sample"));
        }
        let counts = counting(&records);
        Ok(Self { run, store, families: families.clone(), records, counts, notes: notes.into() })
    }

    /// All records, those of tries that infrastructure lost included, each with whether it counts.
    pub fn records(&self) -> impl Iterator<Item = (&AttemptRecord, bool)> {
        self.records.iter().zip(self.counts.iter().copied())
    }

    /// The records that stand for an attempt: of several tries the one that counts, lost ones only where no try
    /// succeeded. Only of these are the trajectory and the diff those that the store names.
    pub fn attempts(&self) -> impl Iterator<Item = &AttemptRecord> {
        self.records().filter_map(|(record, counts)| counts.then_some(record))
    }

    /// The events of an attempt, up to the first line that cannot be read. Without a trajectory there are none, and
    /// either is noted.
    pub fn lines(&self, record: &AttemptRecord) -> Vec<TimedEvent> {
        let path = self.store.trajectory(&record.agent, &record.sample, record.attempt);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) => {
                self.note(format!("{} has no trajectory: {error}", name(record)));
                return Vec::new();
            }
        };
        let mut lines = Vec::new();
        for JsonLine { number, value, .. } in json_lines(&text) {
            match value {
                Ok(line) => lines.push(line),
                Err(error) => {
                    self.note(format!(
                        "the trajectory of {} is cut off before its line {number}: {error}",
                        name(record)
                    ));
                    break;
                }
            }
        }
        lines
    }

    /// The diff of an attempt as stored; `None`, noted, when there is none.
    pub fn patch(&self, record: &AttemptRecord) -> Option<String> {
        match std::fs::read(self.store.diff(&record.agent, &record.sample, record.attempt)) {
            Ok(bytes) => Some(String::from_utf8(bytes).unwrap_or_else(|error| {
                self.note(format!("the diff of {} is no UTF-8, and was made so: it may not apply", name(record)));
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            })),
            Err(error) => {
                self.note(format!("{} has no diff: {error}", name(record)));
                None
            }
        }
    }

    /// What an attempt was made at, in a sentence: for formats that want to know what was asked where no model was.
    #[must_use]
    pub fn sentence(&self, record: &AttemptRecord) -> String {
        let known = self.families.get(&record.family);
        let sentence = known.and_then(|family| Ok(family.sentence(&family.sample(&record.sample)?)));
        sentence.unwrap_or_else(|_| format!("Sample `{}` of `{}`, n = {}.", record.sample, record.paper, record.n))
    }

    /// Refuses a run without attempts: there is nothing to write.
    ///
    /// # Errors
    /// Kind `Store`.
    pub fn require_attempts(&self) -> Result<()> {
        if self.records.is_empty() {
            return Err(Error::store(format!("run `{}` has no finished attempt", self.run.run))
                .hint("continue it with `autoexperiment resume RUN`"));
        }
        Ok(())
    }

    /// Tells of something that is missing from what is written.
    pub(super) fn note(&self, what: String) {
        self.notes.borrow_mut().push(what);
    }

    /// What was missing so far, a sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }
}

/// An attempt as notes name it.
fn name(record: &AttemptRecord) -> String {
    format!("attempt {} of `{}` at `{}`", record.attempt, record.agent, record.sample)
}
