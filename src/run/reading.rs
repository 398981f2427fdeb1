//! Reads as much of a stored run as possible. A process that continues a run rejects broken records
//! ([`Store::records`]); a report instead uses the data that can be read, and notes what is missing.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::tail::{LineParser, NewValues};
pub use super::tail::{LinePosition, Tail};
use super::{Outcome, RunFile, Store, TryRecord, outcome_cache};
use crate::error::{Error, Result, with_causes};

/// The readable part of a run: its records, or a value that the reader made from each record.
#[derive(Debug)]
pub struct ReadableRun<T = Outcome> {
    /// The run's folder.
    pub store: Store,
    /// The contents of `run.json`; `None` if the file is missing or broken.
    pub run: Option<RunFile>,
    /// The run's records in the order in which they were written or, if they come from several files, sorted by the
    /// start of the attempts.
    pub records: Vec<T>,
    /// The position of each record.
    pub lines: Vec<LinePosition>,
    /// Position up to which the run's files were read.
    pub tail: Tail,
    /// Notes on missing data, a sentence each.
    pub notes: Vec<String>,
}

impl<T> ReadableRun<T> {
    /// The run's name.
    #[must_use]
    pub fn name(&self) -> String {
        name(&self.store, self.run.as_ref())
    }
}

/// A run's name, or its folder's name if the run's is unknown.
pub(super) fn name(store: &Store, run: Option<&RunFile>) -> String {
    let folder = || store.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
    run.map_or_else(folder, |run| run.run.clone())
}

/// A value that can be read from a record's line: the full record or its [`Outcome`].
pub trait StoredRecord: TryRecord + DeserializeOwned + Send {}

impl<T: TryRecord + DeserializeOwned + Send> StoredRecord for T {}

/// Reads a run. Leaves out and notes broken lines; also notes an incomplete last line and a missing `run.json`. While a
/// run is in progress its last line may be half written, which is not noted.
///
/// # Errors
/// Kind `Store` if the folder does not contain a run, has another format version, or cannot be read.
pub fn read<T: StoredRecord>(folder: &Path) -> Result<ReadableRun<T>> {
    gather(folder, &|line: &[u8], _| serde_json::from_slice(line))
}

/// Reads the outcomes of a run, like [`read`]. Outcomes that are in the run's cache are read from the cache.
///
/// # Errors
/// Same as [`read`].
pub fn read_outcomes(folder: &Path) -> Result<ReadableRun> {
    whole(folder, gather_on(folder, Tail::default(), outcome_cache::read)?)
}

/// Like [`read`], but keeps what `keep` returns for each line.
///
/// # Errors
/// Same as [`read`].
pub(super) fn gather<T: TryRecord + Send>(folder: &Path, keep: &impl LineParser<T>) -> Result<ReadableRun<T>> {
    whole(folder, gather_on(folder, Tail::default(), |store, tail| tail.read_on(store, keep))?)
}

/// Completes the first read of a run. `read` is `None` if a file changed while it was read, which is an error. If the
/// records come from several files, sorts them; if an attempt was made twice, lets only one of its records count.
fn whole<T: TryRecord>(folder: &Path, read: Option<ReadableRun<T>>) -> Result<ReadableRun<T>> {
    let changes =
        || Error::store(format!("`{}` was changed while it was being read", folder.display())).hint("try again");
    let mut read = read.ok_or_else(changes)?;
    if read.tail.files() > 1 {
        super::duplicates::resolve_duplicates(&mut read.records, &mut read.lines);
    }
    Ok(read)
}

/// Reads what was added to the run's files after the position `tail`, in the order of the files. Returns `None` if the
/// files have changed before this position.
///
/// # Errors
/// Same as [`read`].
pub fn read_on<T: StoredRecord>(folder: &Path, tail: Tail) -> Result<Option<ReadableRun<T>>> {
    gather_on(folder, tail, |store, tail| tail.read_on(store, &|line: &[u8], _| serde_json::from_slice(line)))
}

fn gather_on<T>(
    folder: &Path,
    mut tail: Tail,
    read: impl FnOnce(&Store, &mut Tail) -> Result<Option<NewValues<T>>>,
) -> Result<Option<ReadableRun<T>>> {
    let mut notes = Vec::new();
    let files = Store::at(folder).record_files();
    let (store, run) = match Store::open(folder) {
        Ok((store, run)) => (store, Some(run)),
        Err(error)
            if Store::at(folder).is_of_other_format() || !files.as_ref().is_ok_and(|files| !files.is_empty()) =>
        {
            return Err(error);
        }
        Err(error) => {
            notes.push(format!("the run's plan is unknown: {}", with_causes(&error)));
            (Store::at(folder), None)
        }
    };
    let being_written = store.is_being_written();
    let Some((records, lines)) = read(&store, &mut tail)? else { return Ok(None) };
    notes.extend(tail.notes());
    // In a shared run, another process repeats an attempt whose line is incomplete, so no attempt will be missing.
    if !being_written && run.as_ref().is_none_or(|run| run.sharing.is_none()) {
        let cut = |name| format!("the last line of `{name}` is cut off: that attempt is missing");
        notes.extend(tail.torn().map(cut));
    }
    Ok(Some(ReadableRun { store, run, records, lines, tail, notes }))
}

/// The readable parts of several runs.
#[derive(Debug)]
pub struct ReadableRuns {
    /// Runs that could be read, at least in part.
    pub readings: Vec<ReadableRun>,
    /// Notes on the folders that could not be read, a sentence each.
    pub notes: Vec<String>,
}

/// Reads runs. If one of several folders is not a run, as may happen with `runs/*`, the others are still read.
///
/// # Errors
/// Returns an error of [`read`] if none of the runs can be read.
pub fn read_all(folders: &[PathBuf]) -> Result<ReadableRuns> {
    let (readings, notes) = each_of(folders, read_outcomes)?;
    Ok(ReadableRuns { readings, notes })
}

/// Calls `open` on each folder. Returns the results, and one sentence for each folder that cannot be read.
///
/// # Errors
/// Returns the first error of `open` if no folder can be read.
pub(super) fn each_of<T>(folders: &[PathBuf], open: impl Fn(&Path) -> Result<T>) -> Result<(Vec<T>, Vec<String>)> {
    let (mut opened, mut notes, mut first_error) = (Vec::new(), Vec::new(), None);
    for folder in folders {
        match open(folder) {
            Ok(run) => opened.push(run),
            Err(error) => {
                notes.push(format!("left out: {}", with_causes(&error)));
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if opened.is_empty() => Err(error),
        _ => Ok((opened, notes)),
    }
}

/// Labels of runs that are shown together: their names, or their folders where names repeat, for example on several
/// machines.
#[must_use]
pub fn labels(readings: &[ReadableRun]) -> Vec<String> {
    let named: Vec<(String, &Store)> = readings.iter().map(|reading| (reading.name(), &reading.store)).collect();
    labels_of(&named)
}

/// Same as [`labels`], for runs with these names and stores.
pub(super) fn labels_of(named: &[(String, &Store)]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (name, store) in named {
        let is_repeated = named.iter().filter(|(other, _)| other == name).count() > 1;
        let mut label = if is_repeated { store.folder().display().to_string() } else { name.clone() };
        // Check this label, too: a run's name may also be the folder name of another run.
        if labels.contains(&label) {
            label = format!("{label} ({})", labels.len() + 1);
        }
        labels.push(label);
    }
    labels
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tail::BLOCK;
    use super::*;
    use crate::agent::End;
    use crate::run::AttemptRecord;
    use crate::score::Verdict;

    fn line(attempt: u32) -> String {
        let sample = crate::sample::masked("x_0,3");
        let measures = BTreeMap::from([("accuracy".to_owned(), 0.5)]);
        let verdict = Verdict { pass: true, measures, warnings: vec!["w".into()], ..Verdict::default() };
        let record = AttemptRecord {
            end: End::Answered,
            pass: true,
            reported: Some(verdict),
            answer: Some("{\"a\": \"\\u001b\"}".into()),
            cost: 0.25,
            ..AttemptRecord::blank("react", &sample, attempt)
        };
        serde_json::to_string(&record).unwrap() + "\n"
    }

    /// Reads a store whose only file of records has this text.
    fn reading<T: StoredRecord>(text: &[u8]) -> ReadableRun<T> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("attempts.jsonl"), text).unwrap();
        read(folder.path()).unwrap()
    }

    #[test]
    fn a_store_cut_off_at_any_byte_is_read_up_to_the_cut() {
        let text = (0..3).map(line).collect::<String>();
        let breaks = text.match_indices('\n').map(|(at, _)| at);
        for cut in (0..=text.len()).step_by(7).chain(breaks) {
            let read = reading::<Outcome>(&text.as_bytes()[..cut]);
            let whole = text[..cut].matches('\n').count();
            assert_eq!(read.records.len(), whole, "{cut}");
            let told = read.notes.iter().any(|note| note.contains("is cut off"));
            assert_eq!(told, cut > 0 && !text[..cut].ends_with('\n'), "{cut}: {:?}", read.notes);
            assert!(read.notes[0].contains("is not a run"), "{:?}", read.notes);
        }
    }

    #[test]
    fn a_half_written_line_of_a_running_run_is_not_reported() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("attempts.jsonl"), line(0) + "{\"agent\"").unwrap();
        let is_told = || {
            let read = read::<Outcome>(folder.path()).unwrap();
            assert_eq!(read.records.len(), 1);
            read.notes.iter().any(|note| note.contains("is cut off"))
        };
        let lock = Store::at(folder.path()).lock().unwrap();
        assert!(!is_told());
        drop(lock);
        assert!(is_told());
    }

    #[test]
    fn broken_lines_of_a_record_file_are_reported_by_number_and_left_out() {
        let mut text = line(0).into_bytes();
        text.extend(b"garbage\n\n\xff\xfe\n{\"agent\": 3}\n");
        text.extend(line(1).into_bytes());
        let (records, outcomes) = (reading::<AttemptRecord>(&text), reading::<Outcome>(&text));
        assert_eq!(records.records.iter().map(|record| record.attempt).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(outcomes.records.iter().map(|record| record.attempt).collect::<Vec<_>>(), [0, 1]);
        for notes in [records.notes, outcomes.notes] {
            let broken: Vec<_> = notes.iter().filter(|note| note.contains("is broken")).collect();
            assert_eq!(broken.len(), 3, "{notes:?}");
            assert!(
                broken[0].starts_with("line 2 of `attempts.jsonl`") && broken[1].starts_with("line 4"),
                "{broken:?}"
            );
        }
        let many = reading::<Outcome>("garbage\n".repeat(9).as_bytes());
        assert!(many.notes.last().unwrap().starts_with("4 more lines"), "{:?}", many.notes);
    }

    /// Returns a record's line with a length of `length` bytes, including its line break.
    fn padded(attempt: u32, length: u64) -> String {
        let line = line(attempt);
        let more = " ".repeat(length as usize - line.len());
        line.replace("\"answer\":\"", &format!("\"answer\":\"{more}"))
    }

    #[test]
    fn every_line_is_read_exactly_once_even_if_it_crosses_or_touches_a_block_boundary() {
        for first in [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK] {
            // The first line ends at a block boundary or next to one. A line of several blocks, a broken line, an empty
            // line and many ordinary lines follow.
            let mut text = padded(0, first) + &padded(1, 3 * BLOCK - 7) + "garbage\n\n";
            text.extend((2..3000).map(|attempt| padded(attempt, 900 + u64::from(attempt % 7))));
            for torn in ["", "{\"agent\""] {
                let read = reading::<Outcome>((text.clone() + torn).as_bytes());
                assert!(read.records.iter().map(|record| record.attempt).eq(0..3000), "{first}");
                let notes = read.notes[1..].join("\n");
                assert!(notes.contains("line 3 of `attempts.jsonl` is broken"), "{first}: {notes}");
                assert_eq!(read.notes.len(), if torn.is_empty() { 2 } else { 3 }, "{first}: {notes}");
                assert_eq!(notes.contains("is cut off"), !torn.is_empty(), "{first}: {notes}");
            }
        }
    }

    #[test]
    fn outcomes_read_from_lines_equal_those_of_the_full_records() {
        let text = line(0);
        let whole = reading::<AttemptRecord>(text.as_bytes()).records.remove(0);
        let outcome = reading::<Outcome>(text.as_bytes()).records.remove(0);
        assert_eq!(outcome, Outcome::from(&whole));
        assert_eq!((outcome.measures(), outcome.measures().len()), (whole.measures(), 1));
    }

    #[test]
    fn a_negative_cost_is_reported_and_not_subtracted() {
        let text = line(0) + &line(1).replace("\"cost\":0.25", "\"cost\":-9.0");
        let (records, outcomes) = (reading::<AttemptRecord>(text.as_bytes()), reading::<Outcome>(text.as_bytes()));
        assert_eq!((records.records.len(), outcomes.records.len()), (1, 1));
        for notes in [records.notes, outcomes.notes] {
            assert!(notes.iter().any(|note| note.contains("is broken") && note.contains("cost")), "{notes:?}");
        }
    }

    #[test]
    fn a_folder_without_a_run_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read::<Outcome>(folder.path()).is_err());
        assert!(read::<Outcome>(&folder.path().join("none")).is_err());
    }

    #[test]
    fn appended_lines_are_read_and_changed_files_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("attempts.jsonl");
        let append = |text: &str| {
            use std::io::Write as _;
            std::fs::File::options().create(true).append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
        };
        append(&(line(0) + "garbage\n" + &line(1)[..20]));
        let first = read::<Outcome>(folder.path()).unwrap();
        assert_eq!(first.records.len(), 1);
        append(&(line(1)[20..].to_owned() + "\n" + &line(2) + "more garbage\n"));
        let next = read_on::<Outcome>(folder.path(), first.tail).unwrap().unwrap();
        assert!(next.records.iter().map(|record| record.attempt).eq([1, 2]));
        assert!(next.notes.iter().any(|note| note.starts_with("line 6 of")), "{:?}", next.notes);
        // A full record can be read by its position.
        let whole = next.tail.whole(next.lines[1]).unwrap();
        assert!((whole.attempt, whole.answer.is_some()) == (2, true));
        let none = read_on::<Outcome>(folder.path(), next.tail).unwrap().unwrap();
        assert!(none.records.is_empty() && none.notes.len() == 3, "{:?}", none.notes);
        // The new text has the same length but different content.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"attempt\":2", "\"attempt\":7") + &line(3)).unwrap();
        assert!(read_on::<Outcome>(folder.path(), none.tail).unwrap().is_none());
    }

    #[test]
    fn shortened_and_deleted_files_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        for (name, attempt) in [("attempts-0.jsonl", 0), ("attempts-1.jsonl", 1)] {
            std::fs::write(folder.path().join(name), line(attempt)).unwrap();
        }
        let both = || read::<Outcome>(folder.path()).unwrap();
        assert_eq!(both().records.len(), 2);
        let tail = both().tail;
        std::fs::write(folder.path().join("attempts-1.jsonl"), "").unwrap();
        assert!(read_on::<Outcome>(folder.path(), tail).unwrap().is_none());
        let tail = both().tail;
        std::fs::remove_file(folder.path().join("attempts-1.jsonl")).unwrap();
        assert!(read_on::<Outcome>(folder.path(), tail).unwrap().is_none());
    }
}
