//! Reads, writes and lists files that an agent may have prepared: links, fifos and devices.
//!
//! In a sandbox, this code runs in a child of the init with the agent's own rights. So it reaches no further than the
//! agent, and a file that makes this code hang or crash only affects that child. But as a fork of the init it could
//! reveal the init's memory layout through `/proc/self`, so this code opens no files in `/proc`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstatfs, openat2, statat};

use super::{EntryKind, FolderEntry};

/// Opens a file or folder, but not through a magic link of the kernel and not in `/proc`.
fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    // Without NONBLOCK, opening a fifo would wait for its other end.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
    let is_in_proc = || io::Error::other("it is in /proc: use a command to read it");
    let file = match openat2(CWD, path, flags, mode, ResolveFlags::NO_MAGICLINKS) {
        // The path contains a magic link such as /proc/self/fd/1, or a loop of links.
        Err(rustix::io::Errno::LOOP) if path.starts_with("/proc") || path.starts_with("/dev") => {
            return Err(is_in_proc());
        }
        file => File::from(file?),
    };
    if fstatfs(&file)?.f_type == PROC_SUPER_MAGIC {
        return Err(is_in_proc());
    }
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path, OFlags::RDONLY)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    if about.len() <= limit {
        // Limit the bytes again, because files of `/sys` may be longer than their metadata says.
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if about.len().max(bytes.len() as u64) > limit {
        return Err(io::Error::other(format!("it is longer than {limit} bytes")));
    }
    Ok(bytes)
}

/// Creates or replaces a regular file, and creates its folders.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = open(path, OFlags::WRONLY | OFlags::CREATE)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    file.set_len(0)?;
    file.write_all(bytes)
}

/// Lists a folder's entries, sorted by name.
pub fn list(path: &Path) -> io::Result<Vec<FolderEntry>> {
    let folder = open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        // An entry may vanish between the two calls.
        let Ok(about) = statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let kind = match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let size = if kind == EntryKind::File { about.st_size as u64 } else { 0 };
        entries.push(FolderEntry { name: name.to_owned(), kind, size });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_reads_writes_or_lists_proc() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink("/proc/self/maps", &link).unwrap();
        for path in ["/proc/self/maps", "/proc/self/exe", "/proc/version", "/dev/fd/0", link.to_str().unwrap()] {
            let error = read(Path::new(path), 1 << 30).unwrap_err();
            assert!(error.to_string().contains("/proc") || error.raw_os_error() == Some(40), "{path}: {error}");
        }
        assert!(write(Path::new("/proc/self/oom_score_adj"), b"1000").is_err());
        for path in ["/proc", "/proc/self/fd", "/proc/self/cwd/"] {
            assert!(list(Path::new(path)).is_err(), "{path}");
        }
        assert_eq!(list(place.path()).unwrap().len(), 1);
    }
}
