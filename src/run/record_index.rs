//! An index of a run's records, from which full records are read on request, so that processing a large run record by
//! record needs little memory.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reading::{LinePosition, ReadableRun, each_of, gather, labels_of, name};
use super::{AttemptRecord, Outcome, RunFile, Store, Try, TryRecord, counting};
use crate::error::{Error, Result};

/// Identification and position of a record, in about 200 bytes of memory.
#[derive(Debug)]
pub struct IndexedRecord {
    /// The agent's label.
    pub agent: Arc<str>,
    /// The model's name.
    pub model: Option<Arc<str>>,
    /// The sample's id.
    pub sample: Arc<str>,
    /// Number of the attempt at its sample.
    pub attempt: u32,
    /// Whether statistics use this record. If an attempt has several records, they use only one of them, see
    /// [`counting`].
    pub counts: bool,
    started: jiff::Timestamp,
    seconds: f64,
    cost: f64,
    is_lost: bool,
    is_superseded: bool,
    /// Whether another record of the same try contains the cost.
    has_no_cost: bool,
    measures: Vec<String>,
    place: LinePosition,
    /// Length of the record's line in bytes, without the line break.
    length: usize,
}

impl IndexedRecord {
    fn new(record: Outcome, place: LinePosition, length: usize) -> Self {
        Self {
            counts: false,
            started: record.started,
            seconds: record.wall_seconds,
            cost: record.cost,
            is_lost: record.is_infrastructure(),
            is_superseded: false,
            has_no_cost: false,
            measures: record.measures().into_keys().collect(),
            agent: record.agent,
            model: record.model,
            sample: record.sample,
            attempt: record.attempt,
            place,
            length,
        }
    }
}

impl TryRecord for IndexedRecord {
    fn which(&self) -> Try<'_> {
        Try {
            agent: &self.agent,
            model: self.model.as_deref(),
            sample: &self.sample,
            attempt: self.attempt,
            started: self.started,
            seconds: self.seconds,
            cost: self.cost,
            is_lost: self.is_lost,
        }
    }

    fn supersede(&mut self) {
        (self.is_lost, self.is_superseded) = (true, true);
    }

    fn remove_cost(&mut self) {
        (self.cost, self.has_no_cost) = (0.0, true);
    }
}

/// Runs with their names in reports over several runs, and a sentence about each run that could not be opened.
pub type NamedRuns = (Vec<(String, RecordIndex)>, Vec<String>);

/// A run whose records are read one at a time.
#[derive(Debug)]
pub struct RecordIndex {
    /// The run's folder.
    pub store: Store,
    /// The contents of `run.json`; `None` if the file is missing or broken.
    pub run: Option<RunFile>,
    /// The run's records, in the order of writing or, if they come from several files, by the start of the attempts.
    pub records: Vec<IndexedRecord>,
    /// Notes on missing data, a sentence each.
    pub notes: Vec<String>,
    files: Vec<(PathBuf, File)>,
}

impl RecordIndex {
    /// Builds the index of a run's records; reads the same records as [`read`](super::reading::read).
    ///
    /// # Errors
    /// Kind `Store` if the folder does not contain a run, has another format version, or cannot be read.
    pub fn open(folder: &Path) -> Result<Self> {
        let brief = |line: &[u8], place| Ok(IndexedRecord::new(serde_json::from_slice(line)?, place, line.len()));
        let ReadableRun { store, run, mut records, tail, notes, .. } = gather(folder, &brief)?;
        for (place, counts) in counting(&records).into_iter().enumerate() {
            records[place].counts = counts;
        }
        let open = |path: &Path| match File::open(path) {
            Ok(file) => Ok((path.to_owned(), file)),
            Err(error) => Err(Error::store(format!("failed to read `{}`", path.display())).because(error)),
        };
        let files = tail.paths().map(open).collect::<Result<_>>()?;
        Ok(Self { store, run, records, notes, files })
    }

    /// Opens several runs. Returns each with its name in reports over all of them, and a sentence about each run that
    /// could not be opened.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open) if none of the runs can be read.
    pub fn open_all(folders: &[PathBuf]) -> Result<NamedRuns> {
        let (opened, notes) = each_of(folders, Self::open)?;
        let named: Vec<(String, &Store)> =
            opened.iter().map(|run| (name(&run.store, run.run.as_ref()), &run.store)).collect();
        let labels = labels_of(&named);
        Ok((labels.into_iter().zip(opened).collect(), notes))
    }

    /// Reads the full record.
    ///
    /// # Errors
    /// Kind `Store` if the record can no longer be read.
    pub fn whole(&self, brief: &IndexedRecord) -> Result<AttemptRecord> {
        let LinePosition { file, at } = brief.place;
        let (path, file) =
            self.files.get(file).ok_or_else(|| Error::internal("an indexed record belongs to no file of the run"))?;
        let failed =
            || Error::store(format!("`{}` was changed while it was being read", path.display())).hint("try again");
        let mut line = vec![0; brief.length];
        file.read_exact_at(&mut line, at).map_err(|error| failed().because(error))?;
        let mut record: AttemptRecord = serde_json::from_slice(&line).map_err(|error| failed().because(error))?;
        if brief.is_superseded {
            record.supersede();
        }
        if brief.has_no_cost {
            record.remove_cost();
        }
        Ok(record)
    }

    /// Reads all full records, one at a time. Returns with each record whether statistics use it
    /// ([`IndexedRecord::counts`]).
    pub fn each(&self) -> impl Iterator<Item = Result<(AttemptRecord, bool)>> {
        self.records.iter().map(|brief| Ok((self.whole(brief)?, brief.counts)))
    }

    /// The agents that have records or planned attempts in the run, each with its model.
    #[must_use]
    pub fn contenders(&self) -> BTreeSet<(String, Option<String>)> {
        let of_records = self.records.iter().map(|record| (&*record.agent, record.model.as_deref()));
        let planned = self.run.iter().flat_map(|run| &run.planned);
        let of_plan = planned.map(|planned| (planned.agent.as_str(), planned.model.as_deref()));
        // Many records have the same agent and model, so remove duplicates before cloning the names.
        let contenders: BTreeSet<_> = of_records.chain(of_plan).collect();
        contenders.into_iter().map(|(agent, model)| (agent.to_owned(), model.map(str::to_owned))).collect()
    }

    /// Names of the measures that the records' verdicts contain in addition to pass or fail, with repetitions.
    pub fn measures(&self) -> impl Iterator<Item = &String> {
        self.records.iter().flat_map(|record| &record.measures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::run::reading::read;

    fn line(sample: &str, end: End, text: &str, second: i64) -> String {
        let record = AttemptRecord {
            end,
            answer: Some(text.to_owned()),
            started: jiff::Timestamp::from_second(second).unwrap(),
            ..AttemptRecord::blank("react", &crate::sample::masked(sample), 0)
        };
        serde_json::to_string(&record).unwrap() + "\n"
    }

    #[test]
    fn records_read_one_by_one_equal_those_read_at_once() {
        let folder = tempfile::tempdir().unwrap();
        // The lines end before, at and after a boundary of the blocks in which the file is read. One line is broken,
        // and one is empty.
        let long = "x".repeat((1 << 20) - 300);
        let first = line("x_0", End::Answered, &long, 5)
            + "garbage\n\n"
            + &line("x_1", End::Answered, "ä\"\\", 3)
            + &line("x_2", End::SandboxLost, &long, 4)
            + &line("x_2", End::Answered, "b", 6);
        // The file of another shard; attempt `x_1` is in both files.
        let second = line("x_1", End::Answered, "twice", 7) + &line("x_3", End::GaveUp, "c", 1);
        std::fs::write(folder.path().join("attempts-1.jsonl"), first).unwrap();
        for files in [1, 2] {
            if files == 2 {
                std::fs::write(folder.path().join("attempts-2.jsonl"), &second).unwrap();
            }
            let all = read::<AttemptRecord>(folder.path()).unwrap();
            let briefs = RecordIndex::open(folder.path()).unwrap();
            let each: Vec<(AttemptRecord, bool)> = briefs.each().map(Result::unwrap).collect();
            assert_eq!(each.iter().map(|(record, _)| record.clone()).collect::<Vec<_>>(), all.records, "{files}");
            assert_eq!(each.iter().map(|(_, counts)| *counts).collect::<Vec<_>>(), counting(&all.records));
            assert_eq!(briefs.notes, all.notes);
            assert_eq!(each.len(), if files == 1 { 4 } else { 6 });
        }
    }
}
