//! Reading, writing and listing inside a sandbox. Runs in a forked child of the init with an agent's own rights, so
//! that nothing an agent laid in the way (a link, a fifo, a device) can reach further than the agent itself, or hang
//! or kill more than the child. Data goes by standard input and output, the reason of a refusal by standard error.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc;

use crate::sandbox::{Entry, EntryKind};

/// Reads a regular file of at most `limit` bytes.
pub(in crate::sandbox) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Without O_NONBLOCK the opening of a fifo would wait for a writer.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    if about.len() <= limit {
        // Files of /proc are longer than they say.
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if about.len().max(bytes.len() as u64) > limit {
        return Err(io::Error::other(format!("it is longer than {limit} bytes")));
    }
    Ok(bytes)
}

/// Creates or replaces a regular file, with its folders.
pub(in crate::sandbox) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = File::options().write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    file.set_len(0)?;
    file.write_all(bytes)
}

/// A folder's entries, sorted by name.
pub(in crate::sandbox) fn list(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // An entry may vanish between the two calls.
        let Ok(about) = entry.metadata() else { continue };
        let kind = match about.file_type() {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Folder,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let size = if kind == EntryKind::File { about.len() } else { 0 };
        entries.push(Entry { name: entry.file_name(), kind, size });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Entries as bytes: kind, size and name, ended by a zero, which no name holds.
pub(in crate::sandbox) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.push(match entry.kind {
            EntryKind::File => b'f',
            EntryKind::Folder => b'd',
            EntryKind::Link => b'l',
            EntryKind::Other => b'o',
        });
        bytes.extend_from_slice(&entry.size.to_le_bytes());
        bytes.extend_from_slice(entry.name.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// The inverse of [`encode`]; `None` for garbage.
pub(in crate::sandbox) fn decode(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let kind = match kind {
            b'f' => EntryKind::File,
            b'd' => EntryKind::Folder,
            b'l' => EntryKind::Link,
            b'o' => EntryKind::Other,
            _ => return None,
        };
        let (size, rest) = rest.split_first_chunk()?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        entries.push(Entry { name: OsString::from_vec(rest[..end].to_vec()), kind, size: u64::from_le_bytes(*size) });
        bytes = &rest[end + 1..];
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_with_odd_names_arrives_as_it_was_sent() {
        let entry = |name: &[u8], kind, size| Entry { name: OsString::from_vec(name.to_vec()), kind, size };
        let entries = [
            entry(b"line\nbreak", EntryKind::File, 1 << 40),
            entry(b"\xff\xfe", EntryKind::Other, 0),
            entry(b"folder", EntryKind::Folder, 0),
            entry(b"link", EntryKind::Link, 0),
        ];
        let bytes = encode(&entries);
        assert_eq!(decode(&bytes).unwrap(), entries);
        assert!(decode(&bytes[..bytes.len() - 1]).is_none());
    }
}
