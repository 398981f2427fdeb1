//! Saves the outcomes of a large run beside its records, so that reports need not parse all records each time.
//!
//! The cache is used only if the records that it was made from are still unchanged at the beginning of their files. The
//! files' change times (ctime) show this or, if they cannot, a checksum. Only records that were added later are then
//! parsed.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};

use serde::{Deserialize, Serialize};

use super::tail::{LinePosition, NewValues, Tail};
use super::{Outcome, Store};
use crate::error::{Error, Result};
use crate::files::WholeFile;

/// Name of the file in the run's folder.
const NAME: &str = "outcomes.cache";

/// Version of the format; increase it when an [`Outcome`] is stored or read differently.
const FORMAT: u32 = 2;

/// The cache is saved again if it lacks at least this many bytes of records. Parsing fewer bytes takes less than a
/// tenth of a second.
const LEAST_BYTES: u64 = 32 << 20;

/// Number of outcomes in a block, which is read and written as a whole.
const TOGETHER: usize = 1000;

/// The first line of the file, as JSON. Blocks of [`TOGETHER`] outcomes follow: the length of the block in bytes, then
/// each outcome with the position of its record, in Postcard format.
#[derive(Serialize, Deserialize)]
struct Heading {
    format: u32,
    tail: Tail,
    /// Number of outcomes.
    outcomes: usize,
}

/// Reads a run's outcomes: those in the cache, and then the records added since. Returns `None` if the records changed
/// while they were read.
///
/// # Errors
/// Kind `Store` if the records cannot be read.
pub(super) fn read(store: &Store, tail: &mut Tail) -> Result<Option<NewValues<Outcome>>> {
    read_and_save(store, tail, LEAST_BYTES)
}

/// Same as [`read`], and saves the outcomes if at least `least` bytes of records were not in the cache.
fn read_and_save(store: &Store, tail: &mut Tail, least: u64) -> Result<Option<NewValues<Outcome>>> {
    let mut outcomes = NewValues::default();
    if let Some((known, saved)) = load(store) {
        (outcomes, *tail) = (known, saved);
    }
    let known = tail.bytes();
    let Some((mut new, mut positions)) = tail.read_on(store, &outcome_of_line)? else { return Ok(None) };
    if outcomes.0.is_empty() {
        outcomes = (new, positions);
    } else {
        outcomes.0.append(&mut new);
        outcomes.1.append(&mut positions);
    }
    if tail.bytes() - known >= least {
        // Ignore a failure, for example on a read-only disk: the records are then parsed again next time.
        let _ = save(store, tail, &outcomes);
    }
    Ok(Some(outcomes))
}

fn outcome_of_line(line: &[u8], _: LinePosition) -> serde_json::Result<Outcome> {
    serde_json::from_slice(line)
}

fn load(store: &Store) -> Option<(NewValues<Outcome>, Tail)> {
    let mut file = BufReader::new(File::open(store.folder().join(NAME)).ok()?);
    let mut bytes = Vec::new();
    file.read_until(b'\n', &mut bytes).ok()?;
    let heading: Heading = serde_json::from_slice(&bytes).ok()?;
    if heading.format != FORMAT {
        return None;
    }
    let tail = heading.tail.if_only_extended(store)?;
    // Every record takes more than 100 bytes, so the records' size limits how much memory a broken heading can request.
    let room = heading.outcomes.min(usize::try_from(tail.bytes() / 100).unwrap_or_default());
    let mut outcomes = (Vec::with_capacity(room), Vec::with_capacity(room));
    while outcomes.0.len() < heading.outcomes {
        let mut length = [0; 4];
        file.read_exact(&mut length).ok()?;
        bytes.clear();
        file.by_ref().take(u32::from_le_bytes(length).into()).read_to_end(&mut bytes).ok()?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let ((outcome, place), behind) = postcard::take_from_bytes(rest).ok()?;
            outcomes.0.push(outcome);
            outcomes.1.push(place);
            rest = behind;
        }
    }
    (outcomes.0.len() == heading.outcomes).then_some((outcomes, tail))
}

fn save(store: &Store, tail: &Tail, (outcomes, places): &NewValues<Outcome>) -> Result<()> {
    let path = store.folder().join(NAME);
    let mut file = WholeFile::create(&path)?;
    file.json_line(&serde_json::json!({ "format": FORMAT, "tail": tail, "outcomes": outcomes.len() }))?;
    for (outcomes, places) in outcomes.chunks(TOGETHER).zip(places.chunks(TOGETHER)) {
        let mut bytes = Vec::new();
        for pair in outcomes.iter().zip(places) {
            bytes = postcard::to_extend(&pair, bytes)
                .map_err(|error| Error::internal("failed to serialise an outcome").because(error))?;
        }
        let length = u32::try_from(bytes.len()).map_err(|error| Error::internal("long outcomes").because(error))?;
        let written = file.write_all(&length.to_le_bytes()).and_then(|()| file.write_all(&bytes));
        written.map_err(|error| Error::io("write", &path, error))?;
    }
    file.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use itertools::Itertools as _;

    use super::*;
    use crate::agent::End;
    use crate::run::{AttemptRecord, Round};

    fn line(attempt: u32) -> String {
        let sample = crate::sample::masked("x_0,3");
        let record = AttemptRecord {
            end: End::Answered,
            answer: Some("a".repeat(1000)),
            end_detail: Some("ä\"\n".to_owned()),
            cost: 0.1 + 0.2,
            curriculum: Some(u64::MAX),
            ..AttemptRecord::blank("react", &sample, attempt)
        };
        serde_json::to_string(&record).unwrap() + "\n"
    }

    /// A run with records in two files, with a broken line and an attempt in both files.
    fn run(folder: &Path) -> [PathBuf; 2] {
        let files = [folder.join("attempts-1.jsonl"), folder.join("attempts-2.jsonl")];
        let first = (0..20).map(line).collect::<String>() + "garbage\n";
        std::fs::write(&files[0], first).unwrap();
        std::fs::write(&files[1], (19..40).map(line).collect::<String>()).unwrap();
        files
    }

    /// Checks that reading with and without the cache gives the same outcomes. Returns whether the cache was used.
    fn is_read_from_cache(folder: &Path) -> bool {
        let store = Store::at(folder);
        let was_cached = load(&store).is_some();
        let mut tails = [Tail::default(), Tail::default()];
        let found = read_and_save(&store, &mut tails[0], 1).unwrap().unwrap();
        assert_eq!(found, tails[1].read_on(&store, &outcome_of_line).unwrap().unwrap());
        assert_eq!(tails[0].notes(), tails[1].notes());
        assert_eq!(Outcome::from(&tails[0].whole(found.1[3]).unwrap()), found.0[3]);
        was_cached
    }

    #[test]
    fn a_large_run_is_read_from_its_cache_until_any_of_its_records_changes() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("run");
        std::fs::create_dir(&folder).unwrap();
        let [first, second] = run(&folder);
        assert!(!is_read_from_cache(&folder));
        assert!(is_read_from_cache(&folder));
        // An edit in the middle of a file that keeps its length and modification time is noticed: by the checksum if
        // the kernel's time of change (ctime) is recent, otherwise by the ctime.
        for (from, to) in [(7, 8), (8, 7)] {
            let modified = std::fs::metadata(&first).unwrap().modified().unwrap();
            let mut text = std::fs::read_to_string(&first).unwrap();
            let at = text.rfind(&format!("\"attempt\":{from}")).unwrap();
            text.replace_range(at..at + 11, &format!("\"attempt\":{to}"));
            let mut file = std::fs::File::options().write(true).open(&first).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.set_modified(modified).unwrap();
            drop(file);
            assert!(!is_read_from_cache(&folder), "{from}");
            std::thread::sleep(Duration::from_millis(3100));
            assert!(is_read_from_cache(&folder));
        }
        // The cache of a moved or copied run is used.
        let moved = place.path().join("moved");
        std::fs::rename(&folder, &moved).unwrap();
        assert!(is_read_from_cache(&moved));
        std::fs::create_dir(&folder).unwrap();
        for name in [NAME.as_ref(), first.file_name().unwrap(), second.file_name().unwrap()] {
            std::fs::copy(moved.join(name), folder.join(name)).unwrap();
        }
        assert!(is_read_from_cache(&folder));
        // An incomplete or broken cache is not used. Neither is a cache that covers a file that no longer exists.
        let cache = std::fs::read(folder.join(NAME)).unwrap();
        let heading = cache.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let mut broken = cache.clone();
        broken[heading + 4] ^= 255;
        for bad in [&cache[..cache.len() - 1], &cache[..heading], &broken, b"", b"{}\n"] {
            std::fs::write(folder.join(NAME), bad).unwrap();
            assert!(!is_read_from_cache(&folder), "{}", bad.len());
        }
        std::fs::remove_file(&second).unwrap();
        assert!(!is_read_from_cache(&folder));
    }

    #[test]
    fn only_records_that_were_added_after_the_cache_was_saved_are_parsed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let [_, second] = run(folder);
        let append = |path: &Path, text: &str| {
            let file = std::fs::File::options().append(true).create(true).open(path);
            file.unwrap().write_all(text.as_bytes()).unwrap();
        };
        // The last line is incomplete, as if it were still being written. The first step of the loop adds the rest of
        // it.
        let (head, rest) = (line(40)[..50].to_owned(), line(40)[50..].to_owned());
        append(&second, &head);
        assert!(!is_read_from_cache(folder));
        for (path, added, attempts) in [
            (second.clone(), format!("{rest}garbage\n{}", line(41)), vec![40, 41]),
            (folder.join("attempts-3.jsonl"), line(42), vec![42]),
            (second.clone(), String::new(), vec![]),
        ] {
            append(&path, &added);
            let store = Store::at(folder);
            let (known, mut tail) = load(&store).unwrap();
            let (more, _) = tail.read_on(&store, &outcome_of_line).unwrap().unwrap();
            assert!(more.iter().map(|outcome| outcome.attempt).eq(attempts));
            let whole = Tail::default().read_on(&store, &outcome_of_line).unwrap().unwrap().0.len();
            assert_eq!(known.0.len() + more.len(), whole);
            assert!(is_read_from_cache(folder));
        }
        // An edit of an old record is noticed even if records were added after it.
        let text = std::fs::read_to_string(&second).unwrap();
        std::fs::write(&second, text.replacen("\"attempt\":30", "\"attempt\":31", 1) + &line(43)).unwrap();
        assert!(!is_read_from_cache(folder));
    }

    #[test]
    fn the_fields_of_cached_outcomes_match_the_snapshot_for_the_current_format_number() {
        let outcome = Outcome {
            model: Some("m".into()),
            family: "f".into(),
            lines: Some(1),
            end_detail: Some("d".into()),
            reported: Some(crate::run::VerdictSummary {
                score: Some(0.5),
                measures: [("m".to_owned(), 1.0)].into(),
                unchecked: true,
                ..Default::default()
            }),
            verified: Some(crate::run::VerdictSummary::default()),
            rounds: vec![Round { pass: false, reported: false, verified: Some(true), steps: 1, cost: 0.5 }],
            verification_lost: true,
            curriculum: Some(1),
            ..Outcome::blank("a", &crate::sample::masked("x_0"), 0)
        };
        let value = serde_json::to_value(&outcome).unwrap();
        let fields = value.as_object().unwrap().keys().join(" ");
        insta::assert_snapshot!(format!("{FORMAT}: {fields}\n{}\n{}", value["reported"], value["rounds"]), @r#"
        2: agent model family paper sample n lines attempt started end end_detail reported verified pass rounds steps format_errors usage cost tool_seconds model_seconds verify_seconds wall_seconds verification_lost curriculum
        {"pass":false,"score":0.5,"measures":{"m":1.0},"unchecked":true}
        [{"pass":false,"reported":false,"verified":true,"steps":1,"cost":0.5}]
        "#);
    }
}
