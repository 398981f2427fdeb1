//! A stored run, opened for export.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use super::names::Names;
use crate::agent::TimedEvent;
use crate::error::{Error, Result};
use crate::files::{JsonLine, json_lines};
use crate::run::brief::{Brief, Briefs};
use crate::run::family::Families;
use crate::run::{AttemptRecord, RunFile, Store, is_file_name};

/// Attempts of which the same is missing that are named one by one.
const NAMED: usize = 5;

/// A stored run, opened for export. What is held of it in memory says which records there are; each is read when it is
/// asked for.
pub struct Source {
    /// What the run is.
    pub run: RunFile,
    briefs: Briefs,
    families: Families,
    missing: RefCell<BTreeMap<Missing, (Vec<String>, usize)>>,
}

/// What may be missing of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    /// Its agent or sample can be the name of no file.
    Name,
    /// Its trajectory.
    Trajectory,
    /// The end of its trajectory.
    Rest,
    /// Its diff.
    Diff,
    /// A diff in UTF-8.
    Text,
}

impl Missing {
    /// What is said of the attempts beyond those that are named.
    const fn of_others(self) -> &'static str {
        match self {
            Self::Name => "more attempts are of an agent or sample whose name no file can have",
            Self::Trajectory => "more attempts have no trajectory",
            Self::Rest => "more attempts have a trajectory that is cut off",
            Self::Diff => "more attempts have no diff",
            Self::Text => "more attempts have a diff that is no UTF-8, and was made so",
        }
    }
}

impl Source {
    /// Opens a run's folder. Broken lines are left out and noted, as in reports.
    ///
    /// # Errors
    /// Kind `Store` when it is no run, of another format version, or its `run.json` is lost.
    pub fn open(folder: &Path, families: &Families) -> Result<Self> {
        let mut briefs = Briefs::open(folder)?;
        let run = match briefs.run.take() {
            Some(run) => run,
            // Tells what is wrong with it.
            None => Store::open(folder)?.1,
        };
        Ok(Self { run, briefs, families: families.clone(), missing: RefCell::default() })
    }

    /// All records, those of tries that infrastructure lost included, each with whether it counts; read one at a time.
    pub fn records(&self) -> impl Iterator<Item = Result<(AttemptRecord, bool)>> {
        self.briefs.each()
    }

    /// Names of all that the records measured, sorted.
    #[must_use]
    pub fn measures(&self) -> Vec<String> {
        let names: std::collections::BTreeSet<&String> = self.briefs.measures().collect();
        names.into_iter().cloned().collect()
    }

    /// The records that stand for an attempt: of several tries the one that counts, lost ones only where no try
    /// succeeded. Only of these are the trajectory and the diff those that the store names.
    pub fn attempts(&self) -> impl Iterator<Item = &Brief> {
        self.briefs.records.iter().filter(|brief| brief.counts)
    }

    /// The whole record of an attempt.
    ///
    /// # Errors
    /// Kind `Store` when it is not there any more.
    pub fn whole(&self, brief: &Brief) -> Result<AttemptRecord> {
        self.briefs.whole(brief)
    }

    /// What files of its agents and models are named after.
    #[must_use]
    pub fn names(&self) -> Names {
        Names::of(self.attempts())
    }

    /// The events of an attempt, up to the first line that cannot be read. Without a trajectory there are none, and
    /// either is noted.
    pub fn lines(&self, record: &AttemptRecord) -> Vec<TimedEvent> {
        if !self.has_files(record) {
            return Vec::new();
        }
        let path = self.briefs.store.trajectory(&record.agent, &record.sample, record.attempt);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) => {
                self.note(Missing::Trajectory, || format!("{} has no trajectory: {error}", name(record)));
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
                    self.note(Missing::Rest, of);
                    break;
                }
            }
        }
        lines
    }

    /// The diff of an attempt as stored; `None`, noted, when there is none.
    pub fn patch(&self, record: &AttemptRecord) -> Option<String> {
        if !self.has_files(record) {
            return None;
        }
        match std::fs::read(self.briefs.store.diff(&record.agent, &record.sample, record.attempt)) {
            Ok(bytes) => Some(String::from_utf8(bytes).unwrap_or_else(|error| {
                let of = || format!("the diff of {} is no UTF-8, and was made so: it may not apply", name(record));
                self.note(Missing::Text, of);
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            })),
            Err(error) => {
                self.note(Missing::Diff, || format!("{} has no diff: {error}", name(record)));
                None
            }
        }
    }

    /// Whether the store can have files of an attempt. A store may come from somebody else, and its names lead elsewhere.
    fn has_files(&self, record: &AttemptRecord) -> bool {
        let odd = [&record.agent, &record.sample].into_iter().find(|name| !is_file_name(name));
        if let Some(odd) = odd {
            self.note(Missing::Name, || {
                format!("{} has neither trajectory nor diff: `{odd}` can be no agent or sample", name(record))
            });
        }
        odd.is_none()
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
        if self.briefs.records.is_empty() {
            return Err(Error::store(format!("run `{}` has no finished attempt", self.run.run))
                .hint("continue it with `autoexperiment resume RUN`"));
        }
        Ok(())
    }

    /// Keeps what is missing of an attempt, in words of the first few only.
    fn note(&self, what: Missing, words: impl FnOnce() -> String) {
        let mut missing = self.missing.borrow_mut();
        let (named, others) = missing.entry(what).or_default();
        if named.len() < NAMED { named.push(words()) } else { *others += 1 }
    }

    /// What was missing so far: a sentence each for the first few attempts, and one for all others.
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

/// An attempt as notes name it.
fn name(record: &AttemptRecord) -> String {
    format!("attempt {} of `{}` at `{}`", record.attempt, record.agent, record.sample)
}
