//! A stored run as far as it can be read. Writing is strict ([`super::store`]); a report is made of what there is, and
//! says what is missing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufRead as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Deserialize;

use super::{AttemptRecord, Round, RunFile, Store, Tried};
use crate::agent::End;
use crate::error::{Error, Result, with_causes};
use crate::model::Usage;
use crate::sample::MASKED;
use crate::score::Verdict;

/// How much of each record is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Whole,
    /// What rates, costs and times are made of: no answer, results, files, nor verdicts below their figures. 100,000
    /// attempts then take some tens of megabytes.
    Outcome,
}

/// What could be read of a run.
#[derive(Debug)]
pub struct Reading {
    /// Its folder.
    pub store: Store,
    /// What it is; `None` when its `run.json` is gone or broken.
    pub run: Option<RunFile>,
    /// Its records, in the order of writing.
    pub records: Vec<AttemptRecord>,
    /// What is missing, a sentence each.
    pub notes: Vec<String>,
}

impl Reading {
    /// The run's name.
    #[must_use]
    pub fn name(&self) -> String {
        name(&self.store, self.run.as_ref())
    }
}

/// A run's name, or its folder's where that is not known.
pub(super) fn name(store: &Store, run: Option<&RunFile>) -> String {
    let folder = || store.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
    run.map_or_else(folder, |run| run.run.clone())
}

/// Bytes that are read and parsed at a time, by each processor. Small enough for its cache, and for a run of a few hundred
/// attempts to keep several busy.
const BLOCK: u64 = 1 << 20;

/// Bytes by which a block is read on to the end of its last line.
const REST: u64 = 1 << 16;

/// Most broken lines that are named one by one.
const NAMED: usize = 5;

/// Reads a run: broken lines are left out and named, a last line that was cut off and a lost `run.json` are told. Of a run
/// that goes on, the last line may be half written: that is nothing to tell.
///
/// # Errors
/// Kind `Store` when the folder holds no run at all, when it is of another format version, or cannot be read.
pub fn read(folder: &Path, detail: Detail) -> Result<Reading> {
    let Gathered { store, run, records, notes, .. } = gather(folder, |line, _| parse(line, detail))?;
    Ok(Reading { store, run, records, notes })
}

/// Where a record stands among a run's files of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The file's place among those of [`Store::record_files`].
    pub file: usize,
    /// Bytes before its line.
    pub offset: u64,
    /// Bytes of its line, without the line break.
    pub length: usize,
}

/// What was made of a run's records.
pub(super) struct Gathered<T> {
    pub store: Store,
    pub run: Option<RunFile>,
    pub records: Vec<T>,
    pub notes: Vec<String>,
    /// The files that records stand in.
    pub files: Vec<PathBuf>,
}

/// As [`read`], of what `keep` makes of each line.
///
/// # Errors
/// As [`read`].
pub(super) fn gather<T, F>(folder: &Path, keep: F) -> Result<Gathered<T>>
where
    T: Tried + Send,
    F: Fn(&[u8], Place) -> serde_json::Result<T> + Sync,
{
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
            notes.push(format!("what the run was to do is not known: {}", with_causes(&error)));
            (Store::at(folder), None)
        }
    };
    let mut records = Vec::new();
    let being_written = store.is_being_written();
    let files = files?;
    let is_shared = run.as_ref().is_some_and(|run: &RunFile| run.sharing.is_some());
    for (number, path) in files.iter().enumerate() {
        let keep = |line: &[u8], offset| keep(line, Place { file: number, offset, length: line.len() });
        let is_torn = read_file(path, &keep, &mut records, &mut notes)?;
        // What a shard did not come to write, others make again.
        if is_torn && !being_written && !is_shared {
            notes.push(format!("the last line of `{}` is cut off: that attempt is missing", file_name(path)));
        }
    }
    if files.len() > 1 {
        super::twice::settle(&mut records);
    }
    Ok(Gathered { store, run, records, notes, files })
}

/// What could be read of several runs.
#[derive(Debug)]
pub struct Readings {
    /// Those that could be read, if only in part.
    pub readings: Vec<Reading>,
    /// Those that could not, a sentence each.
    pub notes: Vec<String>,
}

/// Reads runs. One folder among several that is no run, as `runs/*` may hold, hides none of the others.
///
/// # Errors
/// Those of [`read`] when none of them can be read.
pub fn read_all(folders: &[PathBuf], detail: Detail) -> Result<Readings> {
    let (mut readings, mut notes, mut first_error) = (Vec::new(), Vec::new(), None);
    for folder in folders {
        match read(folder, detail) {
            Ok(reading) => readings.push(reading),
            Err(error) => {
                notes.push(format!("left out: {}", with_causes(&error)));
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if readings.is_empty() => Err(error),
        _ => Ok(Readings { readings, notes }),
    }
}

/// What runs are called beside each other: by their names, and by their folders where names repeat, as those of several
/// machines may.
#[must_use]
pub fn labels(readings: &[Reading]) -> Vec<String> {
    let named: Vec<(String, &Store)> = readings.iter().map(|reading| (reading.name(), &reading.store)).collect();
    labels_of(&named)
}

/// The same, of runs with these names and stores.
pub(super) fn labels_of(named: &[(String, &Store)]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (name, store) in named {
        let is_repeated = named.iter().filter(|(other, _)| other == name).count() > 1;
        let mut label = if is_repeated { store.folder().display().to_string() } else { name.clone() };
        // A run may bear the name of another's folder.
        if labels.contains(&label) {
            label = format!("{label} ({})", labels.len() + 1);
        }
        labels.push(label);
    }
    labels
}

/// What is kept of a line that begins behind so many bytes.
trait Keep<T>: Fn(&[u8], u64) -> serde_json::Result<T> + Sync {}

impl<T, F: Fn(&[u8], u64) -> serde_json::Result<T> + Sync> Keep<T> for F {}

/// Appends the records of one file; whether its last line is cut off.
fn read_file<T: Send>(path: &Path, keep: &impl Keep<T>, records: &mut Vec<T>, notes: &mut Vec<String>) -> Result<bool> {
    let failed = |error| Error::store(format!("failed to read `{}`", path.display())).because(error);
    let file = File::open(path).map_err(failed)?;
    // What a run that goes on appends meanwhile is left for the next report.
    let length = file.metadata().map_err(failed)?.len();
    let blocks = usize::try_from(length.div_ceil(BLOCK)).unwrap_or(usize::MAX);
    let read: Vec<_> = (0..blocks)
        .into_par_iter()
        .map_init(Vec::new, |bytes, place| read_block(&file, place as u64, bytes, keep))
        .collect();
    let (mut lines, mut broken, mut unnamed, mut is_torn) = (0, Vec::new(), 0, false);
    for block in read {
        let mut block = block.map_err(failed)?;
        records.append(&mut block.records);
        broken.extend(block.broken.into_iter().map(|(line, what)| (lines + line, what)));
        unnamed += block.unnamed;
        lines += block.lines;
        is_torn |= block.is_torn;
    }
    for (line, what) in broken.iter().take(NAMED) {
        notes.push(format!("line {line} of `{}` is broken and left out: {what}", file_name(path)));
    }
    let more = broken.len().saturating_sub(NAMED) + unnamed;
    if more > 0 {
        notes.push(format!("{more} more lines of `{}` are broken and left out", file_name(path)));
    }
    Ok(is_torn)
}

fn file_name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// The lines that begin in one block of a file.
struct Block<T> {
    records: Vec<T>,
    /// Number of lines, empty and broken ones included.
    lines: usize,
    /// The first broken ones, by their number in the block from 1, and what is wrong with them.
    broken: Vec<(usize, String)>,
    /// How many more are broken.
    unnamed: usize,
    /// Whether the file ends without a line break, behind something.
    is_torn: bool,
}

/// Reads the lines that begin in this block. `bytes` is only there to be used again.
fn read_block<T>(file: &File, place: u64, bytes: &mut Vec<u8>, keep: &impl Keep<T>) -> std::io::Result<Block<T>> {
    let start = place * BLOCK;
    // The byte before tells whether a line begins with the block.
    let from = start.saturating_sub(1);
    bytes.clear();
    read_on(file, from, start + BLOCK - from, bytes)?;
    let mut block = Block { records: Vec::new(), lines: 0, broken: Vec::new(), unnamed: 0, is_torn: false };
    let first = match place {
        0 => 0,
        // A line that begins behind the block's last byte is the next one's.
        _ => match break_in(bytes.split_last().map_or(&[], |(_, head)| head))? {
            Some(behind) => behind,
            None => return Ok(block),
        },
    };
    while bytes.last() != Some(&b'\n') {
        let before = bytes.len();
        read_on(file, from + before as u64, REST, bytes)?;
        if let Some(behind) = break_in(&bytes[before..])? {
            bytes.truncate(before + behind);
        } else if bytes.len() == before {
            break;
        }
    }
    let mut rest = &bytes[first..];
    loop {
        let offset = from + (bytes.len() - rest.len()) as u64;
        let mut behind = rest;
        let length = behind.skip_until(b'\n')?;
        let Some(line) = rest[..length].strip_suffix(b"\n") else {
            // A whole record may lack its line break only; resuming drops it all the same.
            block.is_torn = !rest.trim_ascii().is_empty();
            return Ok(block);
        };
        rest = behind;
        block.lines += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match keep(line, offset) {
            Ok(record) => block.records.push(record),
            Err(error) if block.broken.len() < NAMED => block.broken.push((block.lines, error.to_string())),
            Err(_) => block.unnamed += 1,
        }
    }
}

/// The place behind the first line break. As the standard library looks for one, which is not byte by byte.
fn break_in(bytes: &[u8]) -> std::io::Result<Option<usize>> {
    let mut rest = bytes;
    let behind = rest.skip_until(b'\n')?;
    Ok(bytes[..behind].ends_with(b"\n").then_some(behind))
}

/// Appends at most so many bytes of a file; fewer at its end only.
fn read_on(file: &File, from: u64, most: u64, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let begun = bytes.len();
    bytes.resize(begun + usize::try_from(most).unwrap_or(usize::MAX), 0);
    let mut filled = begun;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + (filled - begun) as u64) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(())
}

pub(super) fn parse(line: &[u8], detail: Detail) -> serde_json::Result<AttemptRecord> {
    let record: AttemptRecord = match detail {
        Detail::Whole => serde_json::from_slice(line)?,
        Detail::Outcome => serde_json::from_slice(line).map(Outcome::record)?,
    };
    if record.cost < 0.0 {
        return Err(serde::de::Error::custom("a negative cost"));
    }
    Ok(record)
}

/// A record's line without what [`Detail::Outcome`] leaves out, which is skipped while reading.
#[derive(Deserialize)]
struct Outcome<'a> {
    #[serde(borrow)]
    agent: Cow<'a, str>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    family: Option<Cow<'a, str>>,
    #[serde(borrow)]
    paper: Cow<'a, str>,
    #[serde(borrow)]
    sample: Cow<'a, str>,
    n: usize,
    #[serde(default)]
    lines: Option<usize>,
    attempt: u32,
    started: jiff::Timestamp,
    end: End,
    #[serde(default)]
    end_detail: Option<String>,
    #[serde(default)]
    reported: Option<Figures>,
    #[serde(default)]
    verified: Option<Figures>,
    pass: bool,
    #[serde(default)]
    rounds: Vec<Round>,
    steps: u32,
    format_errors: u32,
    usage: Usage,
    cost: f64,
    tool_seconds: f64,
    model_seconds: f64,
    verify_seconds: f64,
    wall_seconds: f64,
    #[serde(default)]
    verification_lost: bool,
}

#[derive(Deserialize)]
struct Figures {
    pass: bool,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    measures: BTreeMap<String, f64>,
}

impl Outcome<'_> {
    fn record(self) -> AttemptRecord {
        let verdict =
            |it: Figures| Verdict { pass: it.pass, score: it.score, measures: it.measures, ..Verdict::default() };
        AttemptRecord {
            agent: self.agent.into_owned(),
            model: self.model.map(Cow::into_owned),
            family: self.family.map_or_else(|| MASKED.to_owned(), Cow::into_owned),
            paper: self.paper.into_owned(),
            sample: self.sample.into_owned(),
            n: self.n,
            lines: self.lines,
            attempt: self.attempt,
            started: self.started,
            end: self.end,
            end_detail: self.end_detail,
            answer: None,
            reported: self.reported.map(verdict),
            verified: self.verified.map(verdict),
            observed: serde_json::Map::new(),
            results: serde_json::Map::new(),
            pass: self.pass,
            rounds: self.rounds,
            steps: self.steps,
            format_errors: self.format_errors,
            usage: self.usage,
            cost: self.cost,
            tool_seconds: self.tool_seconds,
            model_seconds: self.model_seconds,
            verify_seconds: self.verify_seconds,
            wall_seconds: self.wall_seconds,
            verification_lost: self.verification_lost,
            unexplained: false,
            changed: Vec::new(),
            skipped: Vec::new(),
            unlisted: 0,
            ignored: Vec::new(),
            sandbox: String::new(),
            cached_checks: Vec::new(),
            cached_replies: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// What is read of a store whose only file of attempts has this text.
    fn reading(text: &[u8], detail: Detail) -> Reading {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("attempts.jsonl"), text).unwrap();
        read(folder.path(), detail).unwrap()
    }

    #[test]
    fn a_store_cut_off_anywhere_is_read_up_to_there() {
        let text = (0..3).map(line).collect::<String>();
        let breaks = text.match_indices('\n').map(|(at, _)| at);
        for cut in (0..=text.len()).step_by(7).chain(breaks) {
            let read = reading(&text.as_bytes()[..cut], Detail::Outcome);
            let whole = text[..cut].matches('\n').count();
            assert_eq!(read.records.len(), whole, "{cut}");
            let told = read.notes.iter().any(|note| note.contains("is cut off"));
            assert_eq!(told, cut > 0 && !text[..cut].ends_with('\n'), "{cut}: {:?}", read.notes);
            assert!(read.notes[0].contains("is no run"), "{:?}", read.notes);
        }
    }

    #[test]
    fn the_half_written_line_of_a_run_that_goes_on_is_nothing_to_tell() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("attempts.jsonl"), line(0) + "{\"agent\"").unwrap();
        let is_told = || {
            let read = read(folder.path(), Detail::Outcome).unwrap();
            assert_eq!(read.records.len(), 1);
            read.notes.iter().any(|note| note.contains("is cut off"))
        };
        let lock = Store::at(folder.path()).lock().unwrap();
        assert!(!is_told());
        drop(lock);
        assert!(is_told());
    }

    #[test]
    fn broken_lines_are_named_and_left_out() {
        let mut text = line(0).into_bytes();
        text.extend(b"garbage\n\n\xff\xfe\n{\"agent\": 3}\n");
        text.extend(line(1).into_bytes());
        for detail in [Detail::Whole, Detail::Outcome] {
            let read = reading(&text, detail);
            assert_eq!(read.records.iter().map(|record| record.attempt).collect::<Vec<_>>(), [0, 1]);
            let broken: Vec<_> = read.notes.iter().filter(|note| note.contains("is broken")).collect();
            assert_eq!(broken.len(), 3, "{:?}", read.notes);
            assert!(
                broken[0].starts_with("line 2 of `attempts.jsonl`") && broken[1].starts_with("line 4"),
                "{broken:?}"
            );
        }
        let many = reading("garbage\n".repeat(9).as_bytes(), Detail::Outcome);
        assert!(many.notes.last().unwrap().starts_with("4 more lines"), "{:?}", many.notes);
    }

    /// A record's line of so many bytes, its line break included.
    fn padded(attempt: u32, length: u64) -> String {
        let line = line(attempt);
        let more = " ".repeat(length as usize - line.len());
        line.replace("\"answer\":\"", &format!("\"answer\":\"{more}"))
    }

    #[test]
    fn wherever_blocks_end_each_line_is_read_once_and_in_its_place() {
        for first in [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK] {
            // Behind it a line of several blocks, a broken one, an empty one, and many more.
            let mut text = padded(0, first) + &padded(1, 3 * BLOCK - 7) + "garbage\n\n";
            text.extend((2..3000).map(|attempt| padded(attempt, 900 + u64::from(attempt % 7))));
            for torn in ["", "{\"agent\""] {
                let read = reading((text.clone() + torn).as_bytes(), Detail::Outcome);
                assert!(read.records.iter().map(|record| record.attempt).eq(0..3000), "{first}");
                let notes = read.notes[1..].join("\n");
                assert!(notes.contains("line 3 of `attempts.jsonl` is broken"), "{first}: {notes}");
                assert_eq!(read.notes.len(), if torn.is_empty() { 2 } else { 3 }, "{first}: {notes}");
                assert_eq!(notes.contains("is cut off"), !torn.is_empty(), "{first}: {notes}");
            }
        }
    }

    #[test]
    fn outcomes_hold_what_rates_are_made_of_and_nothing_else() {
        let text = line(0);
        let [whole, outcome] = [Detail::Whole, Detail::Outcome]
            .map(|detail| reading(text.as_bytes(), detail).records.into_iter().next().unwrap());
        assert!(whole.answer.is_some() && outcome.answer.is_none());
        assert_eq!(outcome.reported.as_ref().map(|verdict| verdict.pass), Some(true));
        assert_eq!((outcome.cost, &outcome.sample, outcome.started), (whole.cost, &whole.sample, whole.started));
        assert_eq!((outcome.measures(), outcome.measures().len()), (whole.measures(), 1));
    }

    #[test]
    fn a_negative_cost_is_told_and_lowers_no_sum() {
        let text = line(0) + &line(1).replace("\"cost\":0.25", "\"cost\":-9.0");
        for detail in [Detail::Whole, Detail::Outcome] {
            let read = reading(text.as_bytes(), detail);
            assert_eq!(read.records.len(), 1);
            assert!(
                read.notes.iter().any(|note| note.contains("is broken") && note.contains("cost")),
                "{:?}",
                read.notes
            );
        }
    }

    #[test]
    fn a_folder_without_a_run_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path(), Detail::Outcome).is_err());
        assert!(read(&folder.path().join("none"), Detail::Outcome).is_err());
    }
}
