//! Folders as tar streams, the only way to send files to an engine, which may be on another machine.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use futures_util::Stream;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};
use tokio::task::JoinHandle;
use tokio_util::bytes::Bytes;
use tokio_util::io::{ReaderStream, SyncIoBridge};

use crate::files::hex;
use autoexperiment_init::tree::STAMP;

/// Bytes buffered between the thread that reads files and the connection that sends them.
const BUFFER: usize = 1 << 20;

/// Owner and times of packed files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    /// User and group id of the packed files.
    pub(super) owner: u64,
    /// Whether all files get the time [`STAMP`], so that files written later can be recognised. Otherwise files keep
    /// their times, because Python compares the time of a source file with the one stored in its compiled file.
    pub(super) stamped: bool,
}

/// Streams the archive that `fill` writes, on a thread for blocking work.
pub(super) fn stream(
    fill: impl FnOnce(&mut TarArchive) -> io::Result<()> + Send + 'static,
) -> (impl Stream<Item = io::Result<Bytes>> + Send + 'static, JoinHandle<io::Result<()>>) {
    let (from, to) = tokio::io::duplex(BUFFER);
    let writing = tokio::task::spawn_blocking(move || {
        let mut archive = TarArchive { tar: Builder::new(Box::new(SyncIoBridge::new(to))), made: BTreeSet::new() };
        fill(&mut archive)?;
        archive.tar.into_inner()?.flush()
    });
    (ReaderStream::with_capacity(from, BUFFER), writing)
}

/// An archive that is being written.
pub(super) struct TarArchive {
    tar: Builder<Box<dyn Write + Send>>,
    made: BTreeSet<PathBuf>,
}

impl TarArchive {
    /// Adds the tree or file at `from` under the path `to`, and the folders above `to`, which belong to root.
    pub(super) fn tree(&mut self, from: &Path, to: &Path, style: Style) -> io::Result<()> {
        self.tree_without(from, to, style, &|_| false)
    }

    /// Same as [`Self::tree`], without the paths for which `is_left_out` is true. `is_left_out` gets paths in the
    /// archive, relative to the root.
    pub(super) fn tree_without(
        &mut self,
        from: &Path,
        to: &Path,
        style: Style,
        is_left_out: &dyn Fn(&Path) -> bool,
    ) -> io::Result<()> {
        let place = |entry: &walkdir::DirEntry| {
            let relative = entry.path().strip_prefix(from).unwrap_or(Path::new(""));
            // Joining an empty path would add a trailing slash, which would turn a file into a folder.
            if relative.as_os_str().is_empty() { to.to_path_buf() } else { to.join(relative) }
        };
        for above in to.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            self.folder(above, 0)?;
        }
        let walk = walkdir::WalkDir::new(from).follow_root_links(false).sort_by_file_name();
        for entry in walk.into_iter().filter_entry(|entry| !is_left_out(inner(&place(entry)))) {
            let entry = entry?;
            let path = place(&entry);
            let about = entry.metadata()?;
            let mut header = Header::new_gnu();
            header.set_uid(style.owner);
            header.set_gid(style.owner);
            header.set_mtime(if style.stamped { STAMP } else { about.mtime().max(0) as u64 });
            if about.is_dir() {
                header.set_mode(if style.stamped { 0o755 } else { 0o555 });
                header.set_entry_type(EntryType::Directory);
                header.set_size(0);
                self.made.insert(path.clone());
                self.append(&mut header, &path, io::empty())?;
            } else if about.is_symlink() {
                header.set_mode(0o777);
                header.set_entry_type(EntryType::Symlink);
                header.set_size(0);
                self.tar.append_link(&mut header, inner(&path), fs::read_link(entry.path())?)?;
            } else if about.is_file() {
                let executable = about.mode() & 0o111 != 0;
                header.set_mode(match (style.stamped, executable) {
                    (true, true) => 0o755,
                    (true, false) => 0o644,
                    (false, true) => 0o555,
                    (false, false) => 0o444,
                });
                header.set_entry_type(EntryType::Regular);
                header.set_size(about.len());
                // Fill up with zeros, because a file that shrinks while it is read would break the archive.
                let file = File::open(entry.path())?.chain(io::repeat(0)).take(about.len());
                self.append(&mut header, &path, file)?;
            }
        }
        Ok(())
    }

    /// Adds a folder with mode 755, unless it was added before.
    pub(super) fn folder(&mut self, path: &Path, owner: u64) -> io::Result<()> {
        self.folder_with(path, owner, 0o755)
    }

    /// Adds a folder with this mode, unless it was added before.
    pub(super) fn folder_with(&mut self, path: &Path, owner: u64, mode: u32) -> io::Result<()> {
        // The base image already contains the root and `/tmp`, with their own permissions.
        let is_given = inner(path).as_os_str().is_empty() || inner(path) == Path::new("tmp") && mode == 0o755;
        if is_given || !self.made.insert(path.to_path_buf()) {
            return Ok(());
        }
        let mut header = Header::new_gnu();
        header.set_uid(owner);
        header.set_gid(owner);
        header.set_mode(mode);
        header.set_mtime(STAMP);
        header.set_entry_type(EntryType::Directory);
        header.set_size(0);
        self.append(&mut header, path, io::empty())
    }

    /// Adds a small file with mode 644 that belongs to root.
    pub(super) fn file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.file_with(path, bytes, 0o644)
    }

    /// Adds a small file with this mode that belongs to root.
    pub(super) fn file_with(&mut self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(mode);
        header.set_mtime(STAMP);
        header.set_entry_type(EntryType::Regular);
        header.set_size(bytes.len() as u64);
        self.append(&mut header, path, bytes)
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(0o777);
        header.set_mtime(STAMP);
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        self.tar.append_link(&mut header, inner(path), target)
    }

    /// Adds an entry of another archive.
    pub(super) fn entry(&mut self, entry: &mut tar::Entry<'_, impl Read>, mode: u32) -> io::Result<()> {
        let mut header = entry.header().clone();
        header.set_mode(mode);
        let path = entry.path()?.into_owned();
        match entry.link_name()? {
            Some(target) => self.tar.append_link(&mut header, path, target),
            None => self.tar.append_data(&mut header, path, entry),
        }
    }

    fn append(&mut self, header: &mut Header, path: &Path, bytes: impl Read) -> io::Result<()> {
        self.tar.append_data(header, inner(path), bytes)
    }
}

/// Returns a path in the form in which archives contain it: relative to the root.
fn inner(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Adds a file, or a folder and everything in it, to a digest: the path of each entry, whether it is a file, a folder
/// or a link, whether it is executable, and its contents. `is_left_out` gets host paths.
pub(super) fn digest_tree(hasher: &mut Sha256, from: &Path, is_left_out: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 17];
    let head = |hasher: &mut Sha256, kind: u8, name: &[u8], length: u64| {
        hasher.update([kind]);
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(length.to_le_bytes());
    };
    let walk = walkdir::WalkDir::new(from).follow_root_links(false).sort_by_file_name();
    for entry in walk.into_iter().filter_entry(|entry| !is_left_out(entry.path())) {
        let entry = entry?;
        let name = entry.path().as_os_str().as_bytes();
        let about = entry.metadata()?;
        if about.is_dir() {
            head(hasher, b'd', name, 0);
        } else if about.is_symlink() {
            let target = fs::read_link(entry.path())?;
            head(hasher, b'l', name, target.as_os_str().len() as u64);
            hasher.update(target.as_os_str().as_bytes());
        } else if about.is_file() {
            head(hasher, if about.mode() & 0o111 == 0 { b'f' } else { b'x' }, name, about.len());
            let mut file = File::open(entry.path())?;
            loop {
                let count = file.read(&mut buffer)?;
                if count == 0 {
                    break;
                }
                hasher.update(&buffer[..count]);
            }
        }
    }
    Ok(())
}

/// Returns the first 20 hex digits of a digest: enough to distinguish images, and short enough to read.
pub(super) fn short(hasher: Sha256) -> String {
    let mut text = hex(&hasher.finalize());
    text.truncate(20);
    text
}
