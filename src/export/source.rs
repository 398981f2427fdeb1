//! A stored run opened for export.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use super::names::ContenderFileNames;
use crate::agent::TimedEvent;
use crate::error::{Error, Result};
use crate::files::{JsonLine, json_lines};
use crate::run::family::Families;
use crate::run::record_index::{IndexedRecord, RecordIndex};
use crate::run::{AttemptRecord, RunFile, Store, is_file_name};

/// Maximum number of attempts with the same problem that get a sentence of their own in the notes.
const NAMED: usize = 5;

/// A stored run opened for export. Only an index of the records is in memory; each record is read when needed.
pub struct ExportSource {
    /// The contents of `run.json`.
    pub run: RunFile,
    briefs: RecordIndex,
    families: Families,
    missing: RefCell<BTreeMap<FileProblem, (Vec<String>, usize)>>,
}

/// A problem with an attempt's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileProblem {
    /// The name of the attempt's agent or sample cannot be part of a file name.
    Name,
    /// The trajectory is missing.
    Trajectory,
    /// The trajectory has an unreadable line, so its end is left out.
    Rest,
    /// The diff is missing.
    Diff,
    /// The diff isn't valid UTF-8.
    Text,
}

impl FileProblem {
    /// Returns the end of a note that begins with the number of further attempts with this problem.
    const fn of_others(self) -> &'static str {
        match self {
            Self::Name => "more attempts have an agent or sample whose name is not a valid file name",
            Self::Trajectory => "more attempts have no trajectory",
            Self::Rest => "more attempts have a trajectory that is cut off",
            Self::Diff => "more attempts have no diff",
            Self::Text => "more attempts have a diff that is not UTF-8 and was converted",
        }
    }
}

impl ExportSource {
    /// Opens a run's folder. Broken lines are left out and noted, as in reports.
    ///
    /// # Errors
    /// Kind `Store` if the folder isn't a run, has another format version, or lacks its `run.json`.
    pub fn open(folder: &Path, families: &Families) -> Result<Self> {
        let mut briefs = RecordIndex::open(folder)?;
        let run = match briefs.run.take() {
            Some(run) => run,
            // `run.json` could not be read. This call returns the reason as its error.
            None => Store::open(folder)?.1,
        };
        Ok(Self { run, briefs, families: families.clone(), missing: RefCell::default() })
    }

    /// Iterates over all records, including those of tries that were lost because the infrastructure failed. Each has a
    /// flag that says whether the record counts (see [`Self::attempts`]). Reads one record at a time.
    pub fn records(&self) -> impl Iterator<Item = Result<(AttemptRecord, bool)>> {
        self.briefs.each()
    }

    /// Returns the sorted names of all measures.
    #[must_use]
    pub fn measures(&self) -> Vec<String> {
        let names: std::collections::BTreeSet<&String> = self.briefs.measures().collect();
        names.into_iter().cloned().collect()
    }

    /// Iterates over the record that counts for each attempt: its last try that was not lost or, if all tries were
    /// lost, its last try. Only these tries have their trajectory and diff under the store's usual file names.
    pub fn attempts(&self) -> impl Iterator<Item = &IndexedRecord> {
        self.briefs.records.iter().filter(|brief| brief.counts)
    }

    /// Reads the whole record of an attempt.
    ///
    /// # Errors
    /// Kind `Store` if the record is gone.
    pub fn whole(&self, brief: &IndexedRecord) -> Result<AttemptRecord> {
        self.briefs.whole(brief)
    }

    /// Returns the file names that exports use for the run's agents and models.
    #[must_use]
    pub fn names(&self) -> ContenderFileNames {
        ContenderFileNames::for_attempts(self.attempts())
    }

    /// Reads the events of an attempt up to the first unreadable line. A missing or truncated trajectory is noted.
    pub fn lines(&self, record: &AttemptRecord) -> Vec<TimedEvent> {
        if !self.has_files(record) {
            return Vec::new();
        }
        let path = self.briefs.store.trajectory(&record.agent, &record.sample, record.attempt);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) => {
                self.note(FileProblem::Trajectory, || format!("{} has no trajectory: {error}", name(record)));
                return Vec::new();
            }
        };
        let mut lines = Vec::new();
        for JsonLine { number, value, .. } in json_lines(&text) {
            match value {
                Ok(line) => lines.push(line),
                Err(error) => {
                    let of =
                        || format!("the trajectory of {} is cut off before its line {number}: {error}", name(record));
                    self.note(FileProblem::Rest, of);
                    break;
                }
            }
        }
        lines
    }

    /// Reads the diff of an attempt; `None` and a note if it is missing.
    pub fn patch(&self, record: &AttemptRecord) -> Option<String> {
        if !self.has_files(record) {
            return None;
        }
        match std::fs::read(self.briefs.store.diff(&record.agent, &record.sample, record.attempt)) {
            Ok(bytes) => Some(String::from_utf8(bytes).unwrap_or_else(|error| {
                let of = || format!("the diff of {} is not UTF-8 and was converted, so it may not apply", name(record));
                self.note(FileProblem::Text, of);
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            })),
            Err(error) => {
                self.note(FileProblem::Diff, || format!("{} has no diff: {error}", name(record)));
                None
            }
        }
    }

    /// Whether the attempt's names can be part of a file name. A store may come from somebody else and contain names
    /// that lead out of its folder.
    fn has_files(&self, record: &AttemptRecord) -> bool {
        let odd = [&record.agent, &record.sample].into_iter().find(|name| !is_file_name(name));
        if let Some(odd) = odd {
            self.note(FileProblem::Name, || {
                format!(
                    "{} has neither trajectory nor diff: `{odd}` is not a valid name of an agent or sample",
                    name(record)
                )
            });
        }
        odd.is_none()
    }

    /// Describes an attempt's task in a sentence. Some export formats require a question for every attempt, even if its
    /// agent asked no model.
    #[must_use]
    pub fn sentence(&self, record: &AttemptRecord) -> String {
        let known = self.families.get(&record.family);
        let sentence = known.and_then(|family| Ok(family.sentence(&family.sample(&record.sample)?)));
        sentence.unwrap_or_else(|_| format!("Sample `{}` of `{}`, n = {}.", record.sample, record.paper, record.n))
    }

    /// Fails for a run without attempts.
    ///
    /// # Errors
    /// Kind `Store`.
    pub fn require_attempts(&self) -> Result<()> {
        if self.briefs.records.is_empty() {
            return Err(Error::store(format!("run `{}` has no finished attempt", self.run.run))
                .hint("continue it with `autoexperiment resume RUN`"));
        }
        Ok(())
    }

    /// Records a problem with an attempt; only the first few get a sentence of their own.
    fn note(&self, what: FileProblem, words: impl FnOnce() -> String) {
        let mut missing = self.missing.borrow_mut();
        let (named, others) = missing.entry(what).or_default();
        if named.len() < NAMED { named.push(words()) } else { *others += 1 }
    }

    /// Returns the problems found so far: one sentence each for the first few attempts, and one for all others.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.briefs.notes.clone();
        for (what, (named, others)) in &*self.missing.borrow() {
            notes.extend(named.iter().cloned());
            notes.extend((*others > 0).then(|| format!("{others} {}", what.of_others())));
        }
        notes
    }
}

/// Returns the words by which notes refer to an attempt.
fn name(record: &AttemptRecord) -> String {
    format!("attempt {} of `{}` at `{}`", record.attempt, record.agent, record.sample)
}
