//! Work on a workspace that the harness cannot see: how files get into a container, and how changed files get out.
//!
//! The init writes files ([`lay`]), lists the tree ([`survey`]) and sends contents ([`collect`]). The harness's side is
//! `sandbox::containers::upper`. The two exchange the lists defined here, in the same format as the other messages.

pub mod collect;
pub mod lay;
pub mod survey;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

use super::wire::{next_item, put_item};

/// The modification time of all files in a repo's image, in seconds since 1970. A file with any other time was written
/// later.
pub const STAMP: u64 = 1_000_000_000;

/// A point in time as file systems store it: seconds since 1970, and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(pub i64, pub i64);

/// Content to write at one path before the attempt starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreparedEntry {
    /// A file, and whether it may be executed.
    File {
        executable: bool,
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// No file: the existing entry is removed.
    Gone,
}

/// The type of a workspace's entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeType {
    /// A folder.
    Folder,
    /// A regular file; `fresh` if it was written or changed since the sandbox started.
    File { executable: bool, size: u64, fresh: bool },
    /// A symbolic link with its target.
    Link(#[serde(with = "serde_bytes")] Vec<u8>),
    /// Any other type, or an entry whose path is too long or too deep to be kept.
    Other,
}

/// One entry of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// Path relative to the workspace, as bytes.
    #[serde(with = "serde_bytes")]
    pub path: Vec<u8>,
    pub sort: NodeType,
}

/// One item of a survey's list.
#[derive(Serialize, Deserialize)]
enum SurveyItem {
    Entry(Surveyed),
    /// A limit ended the survey here.
    Cut,
}

fn garbled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a path that leads out of the workspace")
}

/// Checks that a path stays below the workspace.
pub(super) fn inside(path: &[u8]) -> io::Result<&Path> {
    let path = Path::new(OsStr::from_bytes(path));
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !path.as_os_str().is_empty() { Ok(path) } else { Err(garbled()) }
}

/// Maximum bytes of a survey, not counting its last entry and the mark at its end.
pub const LISTING: usize = 64 << 20;
/// Maximum bytes of one entry of a survey: its path, a link's target, and the rest.
pub const ENTRY: usize = 8 << 10;

/// The result of [`survey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The entries, each folder before its contents.
    pub entries: Vec<Surveyed>,
    /// Whether a limit ended the survey early. Paths that are not listed may then exist.
    pub is_cut: bool,
}

impl Survey {
    /// Adds `found`, a survey of the entries at `paths`, to a survey that was cut. Entries of `found` take precedence.
    #[must_use]
    pub fn completed(self, paths: &BTreeSet<Vec<u8>>, found: Self) -> Self {
        let others = self.entries.into_iter().filter(|entry| !paths.contains(&entry.path));
        Self { entries: found.entries.into_iter().chain(others).collect(), is_cut: found.is_cut }
    }
}

/// Encodes files for [`lay`].
pub fn encode_laid(files: &[(Vec<u8>, PreparedEntry)]) -> io::Result<Vec<u8>> {
    let mut to = Vec::new();
    files.iter().try_for_each(|(path, laid)| put_item(&mut to, &(Bytes::new(path), laid)))?;
    Ok(to)
}

/// Encodes paths for [`survey_known`].
pub fn encode_paths<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> io::Result<Vec<u8>> {
    let mut to = Vec::new();
    paths.into_iter().try_for_each(|path| put_item(&mut to, &Bytes::new(path)))?;
    Ok(to)
}

fn encoded(item: &SurveyItem) -> io::Result<Vec<u8>> {
    let mut to = Vec::new();
    put_item(&mut to, item)?;
    Ok(to)
}

/// Decodes the output of [`survey`] or [`survey_known`].
pub fn decode_survey(mut list: &[u8]) -> io::Result<Survey> {
    let mut entries = Vec::new();
    while let Some(item) = next_item(&mut list)? {
        let SurveyItem::Entry(entry) = item else { return Ok(Survey { entries, is_cut: true }) };
        inside(&entry.path)?;
        entries.push(entry);
    }
    Ok(Survey { entries, is_cut: false })
}

/// Encodes the wanted paths for [`collect`], each with the maximum bytes to send.
pub fn encode_wanted<'a>(wanted: impl IntoIterator<Item = (&'a [u8], u64)>) -> io::Result<Vec<u8>> {
    let mut to = Vec::new();
    wanted.into_iter().try_for_each(|(path, size)| put_item(&mut to, &(Bytes::new(path), size)))?;
    Ok(to)
}

/// Decodes the output of [`collect`]: contents in the order of the wanted paths.
pub fn decode_collected(mut bytes: &[u8]) -> io::Result<Vec<&[u8]>> {
    let mut files = Vec::new();
    while let Some(file) = next_item(&mut bytes)? {
        files.push(file);
    }
    Ok(files)
}
