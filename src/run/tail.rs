//! Reads the files of records once, then only what was appended. Remembers where each record's line begins.

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io::BufRead as _;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{AttemptRecord, Store};
use crate::error::{Error, Result};

/// Bytes that each processor reads and parses at a time. The number is so small that a block fits into the processor's
/// cache, and that a run of a few hundred attempts keeps several processors busy.
pub(super) const BLOCK: u64 = 1 << 20;

/// Number of bytes read at a time after the end of a block of [`BLOCK`] bytes, to complete the last line that begins in
/// the block.
const REST: u64 = 1 << 16;

/// Maximum number of broken lines that are listed individually.
const NAMED: usize = 5;

/// If a file's last change is at least this many seconds old, a further change certainly gets a different change time.
const SETTLED: i64 = 2;

/// Number of bytes before the current position that are kept. When reading continues, they are compared with the file,
/// to notice whether the file was rewritten.
const KEPT: u64 = 1 << 14;

/// Position of a record's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinePosition {
    /// Index of the line's file in the [`Tail`].
    pub(super) file: usize,
    /// Byte offset of the line in the file.
    pub(super) at: u64,
}

/// Converts a line at this position to the value to keep.
pub(super) trait LineParser<T>: Fn(&[u8], LinePosition) -> serde_json::Result<T> + Sync {}

impl<T, F: Fn(&[u8], LinePosition) -> serde_json::Result<T> + Sync> LineParser<T> for F {}

/// New values with their positions.
pub(super) type NewValues<T> = (Vec<T>, Vec<LinePosition>);

/// Position up to which each file of a run's records was read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tail {
    files: Vec<FollowedFile>,
}

/// One file of records.
#[derive(Debug, Serialize, Deserialize)]
struct FollowedFile {
    path: PathBuf,
    /// State of the file when it was last read; `None` if it was not read yet.
    seen: Option<FileState>,
    /// Whether the file's last change was at least [`SETTLED`] seconds old when the state `seen` was read. Otherwise
    /// the file may have changed again within the same tick of the kernel's clock, and an equal state does not prove
    /// that the file is unchanged.
    is_settled: bool,
    /// Byte offset up to which lines are read.
    read: u64,
    /// Checksum of the bytes before the offset `read`.
    checksum: u32,
    /// The bytes before the offset `read`, kept for comparison.
    #[serde(skip)]
    before: Vec<u8>,
    /// Number of lines so far, including empty and broken ones.
    lines: usize,
    /// The first broken lines, with their errors.
    broken: Vec<(usize, String)>,
    /// Number of broken lines that are not in `broken`.
    unnamed: usize,
    /// Whether the file ends in the middle of a line.
    is_torn: bool,
}

/// State of a file. A change of the file or its contents gives it another state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileState {
    /// Device and inode number. They differ if another file has since been given this file's name.
    file: (u64, u64),
    length: u64,
    /// Time of the last change in seconds and nanoseconds. Programs cannot set it, unlike the time of modification.
    changed: (i64, i64),
}

impl FileState {
    fn new(file: &Metadata) -> Self {
        Self { file: (file.dev(), file.ino()), length: file.len(), changed: (file.ctime(), file.ctime_nsec()) }
    }

    fn is_settled(&self) -> bool {
        crate::files::now().as_second() - self.changed.0 >= SETTLED
    }
}

impl Tail {
    /// Prepares a stored position, so that reading can continue there. Returns `None` if a file is missing, or if its
    /// part before the position has changed since the position was stored.
    pub(super) fn if_only_extended(mut self, store: &Store) -> Option<Self> {
        let paths = store.record_files().ok()?;
        for file in &mut self.files {
            // Find the file by its name only, because the run's folder may have been renamed or copied.
            file.path = paths.iter().find(|path| path.file_name() == file.path.file_name())?.clone();
            let opened = File::open(&file.path).ok()?;
            let state = FileState::new(&opened.metadata().ok()?);
            let is_unchanged = file.is_settled && file.seen == Some(state);
            if !is_unchanged && checksum(&opened, file.read).ok()? != Some(file.checksum) {
                return None;
            }
            file.is_settled = state.is_settled();
            file.seen = Some(state);
            file.before = last_bytes(&opened, file.read).ok()?;
        }
        Some(self)
    }

    /// Number of bytes read so far.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.read).sum()
    }

    /// Number of files.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Paths of the files, in the order of [`LinePosition::file`].
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Applies `keep` to the new records and returns the results with their positions; `None` if a part read before has
    /// changed, so that everything must be read again.
    ///
    /// # Errors
    /// Kind `Store` if a file cannot be read.
    pub(super) fn read_on<T: Send>(
        &mut self,
        store: &Store,
        keep: &impl LineParser<T>,
    ) -> Result<Option<NewValues<T>>> {
        let paths = store.record_files()?;
        if self.files.iter().any(|known| !paths.contains(&known.path)) {
            return Ok(None);
        }
        let mut further = (Vec::new(), Vec::new());
        for path in paths {
            let place = self.files.iter().position(|known| known.path == path).unwrap_or_else(|| {
                self.files.push(FollowedFile::new(path));
                self.files.len() - 1
            });
            let file = &mut self.files[place];
            let path = file.path.clone();
            let failed = |error| Error::store(format!("failed to read `{}`", path.display())).because(error);
            let opened = File::open(&path).map_err(failed)?;
            if !file.is_as_read(&opened).map_err(failed)? {
                return Ok(None);
            }
            file.read_on(&opened, place, keep, &mut further)?;
        }
        Ok(Some(further))
    }

    /// Reads the full record at a position.
    ///
    /// # Errors
    /// Kind `Store` if its file cannot be read, or no longer has a record at this position.
    pub fn whole(&self, line: LinePosition) -> Result<AttemptRecord> {
        let path = self.files.get(line.file).map_or(Path::new(""), |file| &file.path);
        let read = || {
            let mut file = BufReader::new(File::open(path)?);
            file.seek(SeekFrom::Start(line.at))?;
            let mut bytes = Vec::new();
            file.read_until(b'\n', &mut bytes)?;
            Ok(serde_json::from_slice(&bytes)?)
        };
        read().map_err(|error: std::io::Error| {
            Error::store(format!("failed to read a record of `{}`", path.display())).because(error)
        })
    }

    /// Notes on broken lines: in each file, a sentence for each of the first few, and a sentence with the number of the
    /// others.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for file in &self.files {
            let name = file_name(&file.path);
            for (line, what) in file.broken.iter().take(NAMED) {
                notes.push(format!("line {line} of `{name}` is broken and left out: {what}"));
            }
            let more = file.broken.len().saturating_sub(NAMED) + file.unnamed;
            if more > 0 {
                notes.push(format!("{more} more lines of `{name}` are broken and left out"));
            }
        }
        notes
    }

    /// Names of the files whose last line is incomplete.
    pub fn torn(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.files.iter().filter(|file| file.is_torn).map(|file| file_name(&file.path))
    }
}

fn file_name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

impl FollowedFile {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            seen: None,
            is_settled: false,
            read: 0,
            checksum: 0,
            before: Vec::new(),
            lines: 0,
            broken: Vec::new(),
            unnamed: 0,
            is_torn: false,
        }
    }

    /// Whether the part of the file that was read earlier is unchanged.
    fn is_as_read(&mut self, file: &File) -> std::io::Result<bool> {
        let now = FileState::new(&file.metadata()?);
        self.is_settled = now.is_settled();
        let Some(before) = self.seen.replace(now) else { return Ok(true) };
        // Replacing a file changes its inode. Editing or truncating a file changes its time without making the file
        // longer.
        if now.file != before.file || now.length < self.read || (now.length <= before.length && now != before) {
            return Ok(false);
        }
        Ok(last_bytes(file, self.read)? == self.before)
    }

    /// Appends the new records of the file, whose index is `place`, to `records`, and their positions to `lines`.
    fn read_on<T: Send>(
        &mut self,
        file: &File,
        place: usize,
        keep: &impl LineParser<T>,
        (records, lines): &mut NewValues<T>,
    ) -> Result<()> {
        let failed = |error| Error::store(format!("failed to read `{}`", self.path.display())).because(error);
        // A running process may append more data meanwhile. They are left for the next call.
        let length = self.seen.map_or(0, |seen| seen.length);
        let blocks = usize::try_from((length - self.read).div_ceil(BLOCK)).unwrap_or(usize::MAX);
        let base = LinePosition { file: place, at: self.read };
        self.is_torn = false;
        // Read only a few blocks at once: the records of these blocks need additional memory until they are moved to
        // `records`.
        let at_once = 4 * rayon::current_num_threads();
        for first in (0..blocks).step_by(at_once) {
            let behind = blocks.min(first + at_once);
            let read: Vec<_> = (first..behind)
                .into_par_iter()
                .map_init(Vec::new, |bytes, number| read_block(file, base, number as u64, bytes, keep))
                .collect();
            let before = records.len();
            for block in read {
                let mut block = block.map_err(failed)?;
                records.append(&mut block.records.0);
                lines.append(&mut block.records.1);
                self.broken.extend(block.broken.into_iter().map(|(line, what)| (self.lines + line, what)));
                self.unnamed += block.unnamed;
                self.lines += block.lines;
                self.is_torn |= block.is_torn;
                let mut checksum = Hasher::new_with_initial_len(self.checksum, self.read);
                checksum.combine(&block.checksum);
                self.checksum = checksum.finalize();
                self.read = block.end.unwrap_or(self.read);
            }
            if first == 0 {
                // Reserve room for the records of all further blocks, assuming that each block has as many records as
                // the blocks read so far have on average. Vectors that grow by doubling would need memory for all
                // records twice while copying.
                let more = (records.len() - before).div_ceil(behind.max(1)) * (blocks - behind);
                records.reserve(more);
                lines.reserve(more);
            }
        }
        self.before = last_bytes(file, self.read).map_err(failed)?;
        Ok(())
    }
}

/// The last bytes before an offset of a file.
fn last_bytes(file: &File, place: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_on(file, place.saturating_sub(KEPT), place.min(KEPT), &mut bytes)?;
    Ok(bytes)
}

/// The checksum of the first `length` bytes of a file; `None` if the file is shorter.
fn checksum(file: &File, length: u64) -> std::io::Result<Option<u32>> {
    let starts: Vec<u64> = (0..length).step_by(BLOCK as usize).collect();
    let blocks = starts.into_par_iter().map_init(Vec::new, |bytes, start| {
        bytes.clear();
        read_on(file, start, BLOCK.min(length - start), bytes)?;
        let mut checksum = Hasher::new();
        checksum.update(bytes);
        Ok((checksum, bytes.len() as u64))
    });
    let (mut whole, mut read) = (Hasher::new(), 0);
    for (checksum, bytes) in blocks.collect::<std::io::Result<Vec<_>>>()? {
        whole.combine(&checksum);
        read += bytes;
    }
    Ok((read == length).then(|| whole.finalize()))
}

/// The lines that begin in one block of a file.
struct FileBlock<T> {
    records: NewValues<T>,
    /// Byte offset of the end of the block's last line.
    end: Option<u64>,
    /// Checksum of the lines.
    checksum: Hasher,
    /// Number of lines, including empty and broken ones.
    lines: usize,
    /// The first broken lines: each line's number within the block, from 1, and its error.
    broken: Vec<(usize, String)>,
    /// Number of broken lines that are not in `broken`.
    unnamed: usize,
    /// Whether the file ends in the middle of a line.
    is_torn: bool,
}

/// Reads the lines that begin in the block with the number `place`. Block 0 begins at the position `base`, where a line
/// begins. `bytes` is a buffer to reuse.
fn read_block<T>(
    file: &File,
    base: LinePosition,
    place: u64,
    bytes: &mut Vec<u8>,
    keep: &impl LineParser<T>,
) -> std::io::Result<FileBlock<T>> {
    let start = base.at + place * BLOCK;
    // Also read the byte before the block, because it shows whether a line begins at the start of the block.
    let from = if place == 0 { start } else { start - 1 };
    bytes.clear();
    read_on(file, from, start + BLOCK - from, bytes)?;
    let records = (Vec::new(), Vec::new());
    let mut block = FileBlock {
        records,
        end: None,
        checksum: Hasher::new(),
        lines: 0,
        broken: Vec::new(),
        unnamed: 0,
        is_torn: false,
    };
    let first = match place {
        0 => 0,
        // Do not look for a line break in the block's last byte: the line after such a line break belongs to the next
        // block.
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
    let whole = bytes.len() as u64;
    loop {
        let at = from + whole - rest.len() as u64;
        let mut behind = rest;
        let length = behind.skip_until(b'\n')?;
        let Some(line) = rest[..length].strip_suffix(b"\n") else {
            // A line without a line break counts as torn even if it is otherwise complete, because resuming the run
            // drops its record.
            block.is_torn = !rest.trim_ascii().is_empty();
            block.checksum.update(&bytes[first..bytes.len() - rest.len()]);
            return Ok(block);
        };
        rest = behind;
        block.lines += 1;
        block.end = Some(at + length as u64);
        if line.trim_ascii().is_empty() {
            continue;
        }
        let place = LinePosition { at, ..base };
        match keep(line, place) {
            Ok(record) => {
                block.records.0.push(record);
                block.records.1.push(place);
            }
            Err(error) if block.broken.len() < NAMED => block.broken.push((block.lines, error.to_string())),
            Err(_) => block.unnamed += 1,
        }
    }
}

/// The offset after the first line break. Uses the standard library's search, which is faster than searching byte by
/// byte.
fn break_in(bytes: &[u8]) -> std::io::Result<Option<usize>> {
    let mut rest = bytes;
    let behind = rest.skip_until(b'\n')?;
    Ok(bytes[..behind].ends_with(b"\n").then_some(behind))
}

/// Appends `most` bytes of a file to the buffer; fewer only at the file's end.
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
