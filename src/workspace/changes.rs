//! The changes of an attempt, found by comparing its tree with the snapshot and the masked files on top of it.
//!
//! With an overlay, the changes are read from the upper layer alone, so the cost depends on the number of changes and
//! not on the size of the repo. The kernel's `Documentation/filesystems/overlayfs.rst` explains whiteouts and opaque
//! folders. A copy is compared file by file. As in git, only files count, so an empty folder is not a change. Names
//! that snapshots leave out (caches, version control) are left out here, too.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use autoexperiment_init::folder::{OpenFolder, is, overlay_attribute};
use autoexperiment_init::left_out::{DEEPEST, LONGEST_PATH, is_left_out};
use nix::libc;
use nix::sys::stat::{FileStat, SFlag};

use super::patch::{Patch, PatchSide};
use super::snapshot::{Node, TreeManifest, file_mode};
use super::{ChangeKind, ChangeLimits, Changes, FileChange};
use crate::error::{Error, Result};

const LINK_MODE: u32 = 0o120_000;
const FILE_MODE: u32 = 0o100_000;

/// A file that was placed over the snapshot before the attempt started.
#[derive(Debug, Clone)]
pub(super) struct Override {
    pub(super) bytes: Vec<u8>,
    pub(super) executable: bool,
}

/// The tree as it was when the attempt started.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) tree: &'a Path,
    pub(super) manifest: &'a TreeManifest,
    pub(super) overrides: &'a BTreeMap<String, Override>,
}

impl Base<'_> {
    /// Returns git's mode and the bytes of a file or link; `None` for folders and missing paths. If a file comes from
    /// the snapshot, only its first `limit` bytes are returned.
    fn content(&self, path: &str, limit: u64) -> io::Result<Option<(u32, Vec<u8>)>> {
        if let Some(laid) = self.overrides.get(path) {
            return Ok(Some((FILE_MODE | file_mode(laid.executable), laid.bytes.clone())));
        }
        match self.manifest.get(path) {
            Some(Node::File { executable }) => {
                let mut bytes = Vec::new();
                File::open(self.tree.join(path))?.take(limit).read_to_end(&mut bytes)?;
                Ok(Some((FILE_MODE | file_mode(*executable), bytes)))
            }
            Some(Node::Link(target)) => Ok(Some((LINK_MODE, target.clone().into_bytes()))),
            Some(Node::Folder) | None => Ok(None),
        }
    }

    /// Whether the regular file at `path` is executable; `None` if there is no such file.
    fn executable(&self, path: &str) -> Option<bool> {
        match (self.overrides.get(path), self.manifest.get(path)) {
            (Some(laid), _) => Some(laid.executable),
            (None, Some(Node::File { executable })) => Some(*executable),
            _ => None,
        }
    }

    fn same_bytes(&self, path: &str, size: u64, file: &mut File) -> io::Result<bool> {
        if let Some(laid) = self.overrides.get(path) {
            return Ok(laid.bytes.len() as u64 == size && same(&mut &laid.bytes[..], file)?);
        }
        // An attempt cannot make a snapshot unreadable, so drop the error number: [`is_attempts_doing`] would otherwise
        // blame the attempt for some errors.
        let mut original = File::open(self.tree.join(path)).map_err(io::Error::other)?;
        Ok(original.metadata()?.len() == size && same(&mut original, file)?)
    }
}

/// Whether two readers return the same bytes.
fn same(left: &mut impl Read, right: &mut impl Read) -> io::Result<bool> {
    const CHUNK: u64 = 1 << 16;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        a.clear();
        b.clear();
        left.by_ref().take(CHUNK).read_to_end(&mut a)?;
        right.by_ref().take(CHUNK).read_to_end(&mut b)?;
        if a != b {
            return Ok(false);
        }
        if a.is_empty() {
            return Ok(true);
        }
    }
}

/// The kind of tree that is compared. It decides what a path means that is missing in the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// The tree is an overlay's upper layer. At a missing path, the base is unchanged and visible.
    Upper,
    /// The tree is complete. A missing path has been removed.
    Whole,
}

/// Compares the tree at `root` with `base`, the tree as it was when the attempt started.
pub(super) fn collect(root: &Path, view: View, base: Base<'_>, limits: &ChangeLimits) -> Result<Changes> {
    let mut walk = ChangeWalk {
        base,
        view,
        limits,
        found: BTreeMap::new(),
        seen: BTreeSet::new(),
        gone: BTreeSet::new(),
        given: 0,
        total: 0,
        names: 0,
        unlisted: 0,
    };
    if view == View::Whole {
        walk.gone.extend(base.manifest.iter().filter(|(_, node)| **node != Node::Folder).map(|(path, _)| path.clone()));
    }
    let top = OpenFolder::open_again(root).map_err(|error| Error::io("open", root, error))?;
    walk.folder(&top, "", view == View::Upper, 0)
        .map_err(|(path, error)| Error::io("read", &root.join(path), error))?;
    walk.finish()
}

struct ChangeWalk<'a> {
    base: Base<'a>,
    view: View,
    limits: &'a ChangeLimits,
    found: BTreeMap<String, FileChange>,
    /// Files and links of the base whose path also exists in the tree, changed or not.
    seen: BTreeSet<String>,
    /// Files and links of the base that have been removed or hidden.
    gone: BTreeSet<String>,
    /// Total bytes of the changed files of the base. New files do not count, so that they cannot make the changes of
    /// files of the base exceed the limit.
    given: u64,
    /// Total bytes of the new files.
    total: u64,
    /// Total length in bytes of the paths of listed new files.
    names: usize,
    unlisted: u64,
}

type Walked = Result<(), (PathBuf, io::Error)>;

impl ChangeWalk<'_> {
    /// Reads a folder. `shows` says whether the overlay merges this folder with the base's folder at the same path. If
    /// so, entries that only the base's folder has are visible, too.
    fn folder(&mut self, folder: &OpenFolder, above: &str, shows: bool, depth: usize) -> Walked {
        for name in folder.entries().map_err(|error| (above.into(), error))? {
            let lossy = name.to_string_lossy();
            if is_left_out(&lossy) {
                continue;
            }
            let path = if above.is_empty() { lossy.to_string() } else { format!("{above}/{lossy}") };
            if name.to_str().is_none() || depth >= DEEPEST || path.len() > LONGEST_PATH {
                self.skip(path);
                continue;
            }
            match self.entry(folder, &name, &path, shows, depth) {
                Ok(()) => {}
                Err(Ok(deeper)) => return Err(deeper),
                // The attempt may have made files unreadable, which is not a failure of the machine.
                Err(Err(error)) if is_attempts_doing(&error) => self.skip(path),
                Err(Err(error)) => return Err((PathBuf::from(&path), error)),
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        folder: &OpenFolder,
        name: &OsStr,
        path: &str,
        shows: bool,
        depth: usize,
    ) -> Result<(), Result<(PathBuf, io::Error), io::Error>> {
        let stat = folder.stat(name).map_err(Err)?;
        if is(&stat, SFlag::S_IFDIR) {
            let below = folder.folder(name).map_err(Err)?;
            // In an upper layer, the kernel sets attributes of the overlay. In a copy, only the attempt can have set
            // such attributes.
            let has = |attribute| self.view == View::Upper && below.overlay_attribute(attribute);
            if has("redirect") {
                // Sandboxes mount overlays with `redirect_dir=off`, so the kernel does not set the attribute
                // `redirect`: the attempt must have set it.
                self.skip(path.to_owned());
                return Ok(());
            }
            let merged = shows && self.base.manifest.get(path) == Some(&Node::Folder) && !has("opaque");
            if shows && !merged {
                self.hide(path);
            }
            return self.folder(&below, path, merged, depth + 1).map_err(Ok);
        }
        if shows {
            self.hide(path);
        }
        if self.view == View::Upper && is_whiteout(folder, name, &stat) {
            return Ok(());
        }
        if is(&stat, SFlag::S_IFREG) {
            return self.regular(folder, name, path, &stat).map_err(Err);
        }
        let link = if is(&stat, SFlag::S_IFLNK) { Some(folder.link(name).map_err(Err)?) } else { None };
        match (link, self.base.manifest.get(path)) {
            (Some(now), Some(Node::Link(before))) if now == before.as_bytes() => {
                self.seen.insert(path.to_owned());
            }
            _ => self.skip(path.to_owned()),
        }
        Ok(())
    }

    /// Records that the base's file or folder at `path` is hidden, by a whiteout or by an entry of another type.
    fn hide(&mut self, path: &str) {
        match self.base.manifest.get(path) {
            None => {}
            Some(Node::Folder) => {
                let below = format!("{path}/");
                let hidden = self
                    .base
                    .manifest
                    .range(below.clone()..)
                    .take_while(|(path, _)| path.starts_with(&below))
                    .filter(|(_, node)| **node != Node::Folder);
                self.gone.extend(hidden.map(|(path, _)| path.clone()));
            }
            Some(_) => {
                self.gone.insert(path.to_owned());
            }
        }
    }

    fn regular(&mut self, folder: &OpenFolder, name: &OsStr, path: &str, stat: &FileStat) -> io::Result<()> {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let executable = stat.st_mode & 0o100 != 0;
        let mut file = match folder.file(name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.skip(path.to_owned());
                return Ok(());
            }
            other => other?,
        };
        let before = self.base.executable(path);
        if before == Some(executable) && self.base.same_bytes(path, size, &mut file)? {
            self.seen.insert(path.to_owned());
            return Ok(());
        }
        let total = if before.is_some() { &mut self.given } else { &mut self.total };
        if size > self.limits.file || total.saturating_add(size) > self.limits.total {
            self.skip(path.to_owned());
            return Ok(());
        }
        *total += size;
        let mut bytes = Vec::new();
        io::Seek::rewind(&mut file)?;
        file.take(size).read_to_end(&mut bytes)?;
        let kind = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.add(FileChange { path: path.to_owned(), kind, bytes, executable });
        Ok(())
    }

    fn skip(&mut self, path: String) {
        self.add(FileChange { path, kind: ChangeKind::Skipped, bytes: Vec::new(), executable: false });
    }

    /// Adds a change to the list, or only counts it if there are too many. Changes to files of the base are always
    /// listed.
    fn add(&mut self, change: FileChange) {
        let known = self.base.overrides.contains_key(&change.path) || self.base.manifest.contains_key(&change.path);
        if known {
            self.seen.insert(change.path.clone());
        } else {
            let names = self.names + change.path.len();
            if self.found.len() >= self.limits.files || names > self.limits.names {
                self.unlisted += 1;
                return;
            }
            self.names = names;
        }
        self.found.insert(change.path.clone(), change);
    }

    fn finish(mut self) -> Result<Changes> {
        let base = self.base;
        let gone = self.gone.iter().chain(base.overrides.keys());
        for path in gone.filter(|path| !self.seen.contains(*path)) {
            let change =
                FileChange { path: path.clone(), kind: ChangeKind::Removed, bytes: Vec::new(), executable: false };
            self.found.insert(path.clone(), change);
        }
        let mut patch = Patch::new();
        for change in self.found.values().filter(|change| change.kind != ChangeKind::Skipped) {
            // Read one byte more than a new file may have. Suppose that an attempt cuts a long file to exactly the size
            // limit: if only that many bytes of the old file were read, the two files would seem equal, and the patch
            // would lack the change.
            let old = base
                .content(&change.path, self.limits.file.saturating_add(1))
                .map_err(|error| Error::io("read", &base.tree.join(&change.path), error))?;
            let old = old.as_ref().map(|(mode, bytes)| PatchSide { mode: *mode, bytes });
            let new = (change.kind != ChangeKind::Removed)
                .then(|| PatchSide { mode: FILE_MODE | file_mode(change.executable), bytes: &change.bytes });
            patch.add(&change.path, old, new);
        }
        Ok(Changes { files: self.found.into_values().collect(), patch: patch.finish(), unlisted: self.unlisted })
    }
}

/// Whether an error is caused by the tree, which the attempt controls, and not by the machine.
fn is_attempts_doing(error: &io::Error) -> bool {
    const OF_A_TREE: [i32; 7] =
        [libc::EACCES, libc::ELOOP, libc::ENAMETOOLONG, libc::ENOENT, libc::ENOTDIR, libc::EOPNOTSUPP, libc::EPERM];
    error.kind() == io::ErrorKind::InvalidInput
        || error.raw_os_error().is_some_and(|number| OF_A_TREE.contains(&number))
}

/// Whether an entry of an upper layer is a whiteout, which hides the base's entry: a character device 0/0, or an empty
/// file with the `whiteout` attribute.
fn is_whiteout(folder: &OpenFolder, name: &OsStr, stat: &FileStat) -> bool {
    if is(stat, SFlag::S_IFCHR) {
        return stat.st_rdev == 0;
    }
    is(stat, SFlag::S_IFREG)
        && stat.st_size == 0
        && folder.file(name).is_ok_and(|file| overlay_attribute(&file, "whiteout"))
}
