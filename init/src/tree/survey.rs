//! Lists the workspace's entries for the harness.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::stat::{FileStat, SFlag};

use super::{FileTime, LISTING, NodeType, STAMP, SurveyItem, Surveyed, encoded, inside};
use crate::folder::{OpenFolder, is};
use crate::left_out::{DEEPEST, LONGEST_PATH, is_left_out};
use crate::wire::next_item;

/// Limits of a survey. Only an attempt that writes far too many files reaches a limit. Files beyond a limit are not
/// part of the attempt's changes.
#[derive(Debug, Clone, Copy)]
pub struct SurveyLimits {
    /// Maximum number of entries written since the sandbox began.
    pub fresh: usize,
    /// Maximum bytes of the list. The names in the folders being walked may take the same amount of memory again.
    pub bytes: usize,
    /// Maximum time. It applies only if there are more fresh entries than [`SLOW`]: with fewer entries, a survey takes
    /// this long only on a slow machine, which is not the attempt's fault.
    pub wall: Duration,
}

impl Default for SurveyLimits {
    /// Returns limits far above the needs of real workspaces and below the limits of a file job.
    fn default() -> Self {
        Self { fresh: 100_000, bytes: LISTING, wall: Duration::from_secs(30) }
    }
}

/// Maximum bytes of a path; paths in real repos are shorter. The survey lists an entry with a longer path, but nothing
/// below it.
const LONGEST: usize = LONGEST_PATH;
/// Number of fresh entries above which the attempt must be writing entries on purpose to slow down a survey.
const SLOW: usize = 10_000;
/// Bytes of memory that a name takes in addition to its own bytes while a folder is walked.
const NAME: usize = 48;

/// Lists all entries below `root` except those that snapshots leave out, each folder before its contents. Stops at a
/// limit, and marks the list as cut.
pub fn survey(root: &Path, since: Option<FileTime>, limits: SurveyLimits, to: &mut impl Write) -> io::Result<()> {
    let mut walk = SurveyWalk { since, limits, begun: Instant::now(), fresh: 0, bytes: 0, held: 0, to };
    if walk.folder(&OpenFolder::open_again(root)?, &mut Vec::new(), 0)?.is_break() {
        to.write_all(&encoded(&SurveyItem::Cut)?)?;
    }
    Ok(())
}

struct SurveyWalk<'a, W> {
    since: Option<FileTime>,
    limits: SurveyLimits,
    begun: Instant,
    fresh: usize,
    bytes: usize,
    held: usize,
    to: &'a mut W,
}

impl<W: Write> SurveyWalk<'_, W> {
    /// Lists a folder. Breaks at a limit.
    fn folder(&mut self, folder: &OpenFolder, path: &mut Vec<u8>, depth: usize) -> io::Result<ControlFlow<()>> {
        let room = self.limits.bytes - self.held;
        let Some(names) = folder.entries_within(|name| name.len() + NAME, room)? else {
            return Ok(ControlFlow::Break(()));
        };
        let held: usize = names.iter().map(|name| name.len() + NAME).sum();
        self.held += held;
        for name in names {
            if is_left_out(&name.to_string_lossy()) {
                continue;
            }
            let stat = folder.stat(&name)?;
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name.as_bytes());
            let (sort, is_fresh) = sort(folder, &name, &stat, self.since, depth >= DEEPEST || path.len() > LONGEST)?;
            self.fresh += usize::from(is_fresh);
            let is_slow = self.fresh > SLOW && self.begun.elapsed() > self.limits.wall;
            if self.fresh > self.limits.fresh || self.bytes > self.limits.bytes || is_slow {
                return Ok(ControlFlow::Break(()));
            }
            let is_folder = sort == NodeType::Folder;
            let entry = encoded(&SurveyItem::Entry(Surveyed { path: path.clone(), sort }))?;
            self.bytes += entry.len();
            self.to.write_all(&entry)?;
            if is_folder && self.folder(&folder.folder(&name)?, path, depth + 1)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            path.truncate(length);
        }
        self.held -= held;
        Ok(ControlFlow::Continue(()))
    }
}

/// Returns an entry's type, and whether it was written or changed since the sandbox started.
fn sort(
    folder: &OpenFolder,
    name: &OsStr,
    stat: &FileStat,
    since: Option<FileTime>,
    is_too_deep: bool,
) -> io::Result<(NodeType, bool)> {
    let changed = since.is_none_or(|since| FileTime(stat.st_ctime, stat.st_ctime_nsec) >= since);
    let sort = if is_too_deep {
        NodeType::Other
    } else if is(stat, SFlag::S_IFDIR) {
        NodeType::Folder
    } else if is(stat, SFlag::S_IFREG) {
        let fresh = changed || stat.st_mtime != STAMP as i64;
        NodeType::File { executable: stat.st_mode & 0o100 != 0, size: stat.st_size as u64, fresh }
    } else if is(stat, SFlag::S_IFLNK) {
        NodeType::Link(folder.link(name)?)
    } else {
        NodeType::Other
    };
    let is_fresh = if let NodeType::File { fresh, .. } = sort { fresh } else { changed };
    Ok((sort, is_fresh))
}

/// Lists the given paths that exist, in the form of [`survey`]. This finds the files that the attempt was given,
/// however many other files it has written.
pub fn survey_known(root: &Path, since: Option<FileTime>, mut paths: &[u8], to: &mut impl Write) -> io::Result<()> {
    let top = OpenFolder::open_again(root)?;
    while let Some(path) = next_item::<&[u8]>(&mut paths)? {
        if let Some(sort) = known(&top, inside(path)?, since)? {
            to.write_all(&encoded(&SurveyItem::Entry(Surveyed { path: path.to_vec(), sort }))?)?;
        }
    }
    Ok(())
}

/// Returns the type of the entry at a path, without following links; `None` if it does not exist.
fn known(top: &OpenFolder, path: &Path, since: Option<FileTime>) -> io::Result<Option<NodeType>> {
    let mut here: Option<OpenFolder> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let folder = here.as_ref().unwrap_or(top);
        let name = part.as_os_str();
        let stat = match folder.stat(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        if parts.peek().is_none() {
            return Ok(Some(sort(folder, name, &stat, since, false)?.0));
        }
        if !is(&stat, SFlag::S_IFDIR) {
            return Ok(None);
        }
        here = Some(folder.folder(name)?);
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
