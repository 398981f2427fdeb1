//! Append-only files of JSON lines. If the process is killed, at most the line being written is lost.
//!
//! A kill can leave an incomplete last line, without a line break. A writer must not continue that line, so
//! [`Appender`] either removes it or ends it with a line break. A reader recognises it by [`JsonLine::is_ended`].

use std::fs::{File, OpenOptions};
use std::io::{Result, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::failpoint;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Number of bytes read at a time when searching for the last line break.
const BLOCK: usize = 1 << 16;

/// A file to which lines are appended, with a single write per append.
#[derive(Debug)]
pub struct Appender {
    file: File,
    path: PathBuf,
    /// Length of the file in bytes; `None` if other processes may write to it.
    length: Option<u64>,
    /// Whether each append is flushed to disk before it returns.
    is_durable: bool,
}

impl Appender {
    /// Creates a file for a single writer, replacing an old one.
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        Self::cut(path, open(path)?, 0)
    }

    /// Opens a file for a single writer, and removes an incomplete last line.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, read or truncated.
    pub fn resume(path: &Path) -> Result<Self> {
        let file = open(path)?;
        let whole = whole_lines(&file)?;
        Self::cut(path, file, whole)
    }

    /// Opens a file for a single writer, and removes everything after its first `whole` bytes.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or truncated.
    pub fn resume_at(path: &Path, whole: u64) -> Result<Self> {
        Self::cut(path, open(path)?, whole)
    }

    fn cut(path: &Path, file: File, whole: u64) -> Result<Self> {
        // Nothing to do for a device or a pipe, which cannot be truncated.
        if file.metadata()?.len() > whole {
            file.set_len(whole)?;
        }
        Ok(Self { file, path: path.to_owned(), length: Some(whole), is_durable: false })
    }

    /// Opens a file to which several processes may write at the same time. An incomplete last line is not removed,
    /// because another process may be writing it; instead, a line break is added.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, read or written.
    pub fn share(path: &Path) -> Result<Self> {
        let mut file = open(path)?;
        let length = file.metadata()?.len();
        let mut last = [b'\n'];
        if length > 0 {
            file.read_exact_at(&mut last, length - 1)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
        Ok(Self { file, path: path.to_owned(), length: None, is_durable: false })
    }

    /// Makes every append flush to disk before it returns.
    #[must_use]
    pub const fn durable(mut self) -> Self {
        self.is_durable = true;
        self
    }

    /// Appends a value as one line of JSON.
    ///
    /// # Errors
    /// Same as [`append_all`](Self::append_all).
    pub fn append(&mut self, value: &impl Serialize) -> Result<()> {
        self.append_all([value])
    }

    /// Appends values as lines of JSON in a single write.
    ///
    /// # Errors
    /// Fails if a write or flush fails. A single writer then removes the partly written lines if possible.
    pub fn append_all<T: Serialize>(&mut self, values: impl IntoIterator<Item = T>) -> Result<()> {
        let mut lines = Vec::new();
        for value in values {
            serde_json::to_writer(&mut lines, &value)?;
            lines.push(b'\n');
        }
        let mut written = failpoint::write_all(&mut self.file, &self.path, &lines);
        if self.is_durable {
            written = written.and_then(|()| self.sync());
        }
        match &mut self.length {
            Some(length) if written.is_ok() => *length += lines.len() as u64,
            Some(length) => {
                let _ = self.file.set_len(*length);
            }
            None => {}
        }
        written
    }

    /// Whether the path still refers to this file. If not, the file was removed or replaced.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let place = |about: &std::fs::Metadata| (about.dev(), about.ino());
        let named = std::fs::metadata(&self.path).ok();
        self.file.metadata().ok().zip(named).is_some_and(|(own, named)| place(&own) == place(&named))
    }

    /// Reads the whole file, even if it was removed meanwhile.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn contents(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.file.metadata()?.len() as usize];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Flushes all appended lines to disk.
    ///
    /// # Errors
    /// Fails if the disk reports an error.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data()
    }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// Returns the length in bytes of the file up to and including its last line break.
fn whole_lines(file: &File) -> Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = vec![0; BLOCK];
    while end > 0 {
        let start = end.saturating_sub(BLOCK as u64);
        let read = &mut block[..(end - start) as usize];
        file.read_exact_at(read, start)?;
        if let Some(last) = read.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// A line of a file with JSON lines.
#[derive(Debug)]
pub struct JsonLine<T> {
    /// Line number, from 1.
    pub number: usize,
    /// Whether the line ends with a line break. Only the last line of a file may have none; if that line is also not
    /// valid JSON, it was not written completely.
    pub is_ended: bool,
    /// The parsed value, or the error.
    pub value: serde_json::Result<T>,
}

/// Iterates over the lines of a file with JSON lines, skipping empty lines.
pub fn json_lines<T: DeserializeOwned>(text: &[u8]) -> impl Iterator<Item = JsonLine<T>> {
    let lines = text.split_inclusive(|&byte| byte == b'\n').zip(1..);
    lines.filter(|(line, _)| !line.trim_ascii().is_empty()).map(|(line, number)| {
        // Parse the line without its line break; otherwise an error at the line's end would be reported for line 2.
        let ended = line.strip_suffix(b"\n");
        JsonLine { number, is_ended: ended.is_some(), value: serde_json::from_slice(ended.unwrap_or(line)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(text: &[u8], append: impl FnOnce(&Path)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.jsonl");
        std::fs::write(&path, text).unwrap();
        append(&path);
        std::fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn the_only_writer_removes_a_torn_line_and_a_shared_writer_ends_the_line_instead() {
        for (before, cut, ended) in
            [("", "7\n", "7\n"), ("1\n", "1\n7\n", "1\n7\n"), ("1\n2", "1\n7\n", "1\n2\n7\n"), ("1", "7\n", "1\n7\n")]
        {
            let resumed = |path: &Path| Appender::resume(path).unwrap().append(&7).unwrap();
            assert_eq!(appended(before.as_bytes(), resumed), cut);
            let shared = |path: &Path| Appender::share(path).unwrap().durable().append(&7).unwrap();
            assert_eq!(appended(before.as_bytes(), shared), ended);
            let created = |path: &Path| Appender::create(path).unwrap().append_all([7, 8]).unwrap();
            assert_eq!(appended(before.as_bytes(), created), "7\n8\n");
        }
        let long = "x".repeat(BLOCK + BLOCK / 2);
        for (before, after) in
            [(format!("1\n{long}"), "1\n".to_owned()), (format!("{long}\n{long}"), format!("{long}\n"))]
        {
            assert_eq!(appended(before.as_bytes(), |path| drop(Appender::resume(path).unwrap())), after);
        }
        assert_eq!(appended(b"1\n2\n", |path| drop(Appender::resume_at(path, 2).unwrap())), "1\n");
    }

    #[test]
    fn a_value_that_cannot_be_written_leaves_nothing_behind() {
        struct BrokenValue;
        impl Serialize for BrokenValue {
            fn serialize<S: serde::Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("broken"))
            }
        }
        let text = appended(b"1\n", |path| {
            Appender::resume(path).unwrap().append(&("begun", BrokenValue)).unwrap_err();
        });
        assert_eq!(text, "1\n");
    }

    #[test]
    fn a_reader_sees_every_line_its_number_and_whether_it_is_torn() {
        let read: Vec<_> = json_lines::<u32>(b"1\n\n \nx\n\xff\n4")
            .map(|line| (line.number, line.is_ended, line.value.ok()))
            .collect();
        assert_eq!(read, [(1, true, Some(1)), (4, true, None), (5, true, None), (6, false, Some(4))]);
    }
}
