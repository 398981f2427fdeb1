//! A workspace that the harness cannot see: how its files get into a container and what was changed gets out.
//!
//! The init's side lays files, surveys the tree and collects contents; the harness's side is [`super::upper`]. Both
//! speak in lists of entries, hand-coded like the rest of what they say to each other.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::libc;
use nix::sys::stat::SFlag;

use crate::workspace::{DEEPEST, Folder, is, is_left_out, remove_tree};

/// The time of change of all files in a repo's image: seconds since 1970. A file with another one was written since.
pub(super) const STAMP: u64 = 1_000_000_000;

/// A point in time as file systems keep it: seconds since 1970, and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(pub(super) i64, pub(super) i64);

/// One file to be laid before the attempt begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Laid {
    /// A file, and whether it may be executed.
    File { executable: bool, bytes: Vec<u8> },
    /// Nothing must be there.
    Gone,
}

/// What an entry of the workspace is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sort {
    /// A folder.
    Folder,
    /// A regular file; `fresh` when it was written or changed since the sandbox began.
    File { executable: bool, size: u64, fresh: bool },
    /// A symbolic link and where it points.
    Link(Vec<u8>),
    /// Anything else, or an entry too deep to be kept.
    Other,
}

/// One entry of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Surveyed {
    /// Bytes relative to the workspace, `/` between the parts.
    pub(super) path: Vec<u8>,
    pub(super) sort: Sort,
}

fn garbled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a garbled list")
}

fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    to.extend_from_slice(bytes);
}

fn take_number(from: &mut &[u8]) -> io::Result<u64> {
    let (number, rest) = from.split_first_chunk().ok_or_else(garbled)?;
    *from = rest;
    Ok(u64::from_le_bytes(*number))
}

fn take<'a>(from: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let length = usize::try_from(take_number(from)?).map_err(|_| garbled())?;
    let (bytes, rest) = from.split_at_checked(length).ok_or_else(garbled)?;
    *from = rest;
    Ok(bytes)
}

fn take_byte(from: &mut &[u8]) -> io::Result<u8> {
    let (byte, rest) = from.split_first().ok_or_else(garbled)?;
    *from = rest;
    Ok(*byte)
}

/// A path below the workspace, refused when it could lead anywhere else.
pub(super) fn inside(path: &[u8]) -> io::Result<&Path> {
    let path = Path::new(OsStr::from_bytes(path));
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !path.as_os_str().is_empty() { Ok(path) } else { Err(garbled()) }
}

/// Files to lay, as [`lay`] takes them.
pub(super) fn encode_laid(files: &[(Vec<u8>, Laid)]) -> Vec<u8> {
    let mut to = Vec::new();
    for (path, laid) in files {
        put(&mut to, path);
        match laid {
            Laid::Gone => to.push(0),
            Laid::File { executable, bytes } => {
                to.push(1 + u8::from(*executable));
                put(&mut to, bytes);
            }
        }
    }
    to
}

/// Writes and removes files below `root` as the list says, in its order.
pub(super) fn lay(root: &Path, mut list: &[u8]) -> io::Result<()> {
    while !list.is_empty() {
        let path = inside(take(&mut list)?)?;
        let kind = take_byte(&mut list)?;
        let bytes = if kind == 0 { None } else { Some(take(&mut list)?) };
        make_room(root, path)?;
        let target = root.join(path);
        remove_tree(&target)?;
        if let Some(bytes) = bytes {
            let mode = if kind == 2 { 0o755 } else { 0o644 };
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&target)?.write_all(bytes)?;
            fs::set_permissions(&target, Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// Makes the folders above `path`, in place of files and links.
fn make_room(root: &Path, path: &Path) -> io::Result<()> {
    let mut here = root.to_path_buf();
    for part in path.parent().into_iter().flat_map(Path::components) {
        here.push(part);
        match fs::symlink_metadata(&here) {
            Ok(found) if found.is_dir() => continue,
            Ok(_) => fs::remove_file(&here)?,
            Err(_) => {}
        }
        fs::create_dir(&here)?;
    }
    Ok(())
}

/// Lists everything below `root` but what snapshots leave out, folders before what is in them.
pub(super) fn survey(root: &Path, since: Option<Moment>, to: &mut impl Write) -> io::Result<()> {
    let folder = Folder::open(root)?;
    survey_folder(&folder, &mut Vec::new(), since, 0, to)
}

fn survey_folder(
    folder: &Folder,
    path: &mut Vec<u8>,
    since: Option<Moment>,
    depth: usize,
    to: &mut impl Write,
) -> io::Result<()> {
    for name in folder.entries()? {
        if is_left_out(&name.to_string_lossy()) {
            continue;
        }
        let stat = folder.stat(&name)?;
        let length = path.len();
        if length > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        let sort = if depth >= DEEPEST {
            Sort::Other
        } else if is(&stat, SFlag::S_IFDIR) {
            Sort::Folder
        } else if is(&stat, SFlag::S_IFREG) {
            let changed = since.is_none_or(|since| Moment(stat.st_ctime, stat.st_ctime_nsec) >= since);
            let fresh = changed || stat.st_mtime != STAMP as i64;
            Sort::File { executable: stat.st_mode & 0o100 != 0, size: stat.st_size as u64, fresh }
        } else if is(&stat, SFlag::S_IFLNK) {
            Sort::Link(folder.link(&name)?)
        } else {
            Sort::Other
        };
        let is_folder = sort == Sort::Folder;
        to.write_all(&encode_entry(&Surveyed { path: path.clone(), sort }))?;
        if is_folder {
            survey_folder(&folder.folder(&name)?, path, since, depth + 1, to)?;
        }
        path.truncate(length);
    }
    Ok(())
}

fn encode_entry(entry: &Surveyed) -> Vec<u8> {
    let mut to = Vec::with_capacity(entry.path.len() + 32);
    put(&mut to, &entry.path);
    match &entry.sort {
        Sort::Folder => to.push(b'd'),
        Sort::File { executable, size, fresh } => {
            to.extend_from_slice(&[b'f', u8::from(*executable), u8::from(*fresh)]);
            to.extend_from_slice(&size.to_le_bytes());
        }
        Sort::Link(target) => {
            to.push(b'l');
            put(&mut to, target);
        }
        Sort::Other => to.push(b'o'),
    }
    to
}

/// What [`survey`] wrote.
pub(super) fn decode_survey(mut list: &[u8]) -> io::Result<Vec<Surveyed>> {
    let mut entries = Vec::new();
    while !list.is_empty() {
        let path = take(&mut list)?.to_vec();
        inside(&path)?;
        let sort = match take_byte(&mut list)? {
            b'd' => Sort::Folder,
            b'f' => {
                let (executable, fresh) = (take_byte(&mut list)? != 0, take_byte(&mut list)? != 0);
                Sort::File { executable, fresh, size: take_number(&mut list)? }
            }
            b'l' => Sort::Link(take(&mut list)?.to_vec()),
            b'o' => Sort::Other,
            _ => return Err(garbled()),
        };
        entries.push(Surveyed { path, sort });
    }
    Ok(entries)
}

/// The paths whose contents are wanted and the most bytes of each, as [`collect`] takes them.
pub(super) fn encode_wanted<'a>(wanted: impl IntoIterator<Item = (&'a [u8], u64)>) -> Vec<u8> {
    let mut to = Vec::new();
    for (path, size) in wanted {
        put(&mut to, path);
        to.extend_from_slice(&size.to_le_bytes());
    }
    to
}

/// Writes the wanted files' bytes, one after the other, each with its length first.
pub(super) fn collect(root: &Path, mut wanted: &[u8], to: &mut impl Write) -> io::Result<()> {
    while !wanted.is_empty() {
        let path = inside(take(&mut wanted)?)?;
        let most = take_number(&mut wanted)?;
        let mut bytes = Vec::new();
        readable(&root.join(path))?.take(most).read_to_end(&mut bytes)?;
        to.write_all(&(bytes.len() as u64).to_le_bytes())?;
        to.write_all(&bytes)?;
    }
    Ok(())
}

/// Opens a regular file, made readable first where its owner has closed it.
fn readable(path: &PathBuf) -> io::Result<File> {
    let open = || {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
        OpenOptions::new().read(true).custom_flags(flags).open(path)
    };
    match open() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            open()
        }
        other => other,
    }
}

/// What [`collect`] wrote, in the order of what was wanted.
pub(super) fn decode_collected(mut bytes: &[u8]) -> io::Result<Vec<&[u8]>> {
    let mut files = Vec::new();
    while !bytes.is_empty() {
        files.push(take(&mut bytes)?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_laid_over_a_tree_in_place_of_what_is_there() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        fs::write(root.path().join("folder/old"), "old").unwrap();
        fs::write(root.path().join("plain"), "plain").unwrap();
        let file = |text: &str, executable| Laid::File { executable, bytes: text.into() };
        let list = [
            (b"folder".to_vec(), file("now a file", true)),
            (b"plain/deep/new".to_vec(), file("new", false)),
            (b"gone".to_vec(), Laid::Gone),
        ];
        lay(root.path(), &encode_laid(&list)).unwrap();
        assert_eq!(fs::read(root.path().join("folder")).unwrap(), b"now a file");
        assert_eq!(fs::metadata(root.path().join("folder")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read(root.path().join("plain/deep/new")).unwrap(), b"new");
    }

    #[test]
    fn no_path_in_a_list_leads_out() {
        let root = tempfile::tempdir().unwrap();
        for path in ["../out", "/etc/passwd", "a/../../out", ""] {
            let list = encode_laid(&[(path.as_bytes().to_vec(), Laid::Gone)]);
            assert!(lay(root.path(), &list).is_err(), "{path}");
            let entry = Surveyed { path: path.as_bytes().to_vec(), sort: Sort::Other };
            assert!(decode_survey(&encode_entry(&entry)).is_err(), "{path}");
        }
    }

    #[test]
    fn a_survey_tells_kinds_and_which_files_are_fresh_whatever_their_permissions() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("closed")).unwrap();
        fs::write(at("closed/inner"), "four").unwrap();
        fs::write(at("old"), "old").unwrap();
        fs::create_dir(at("__pycache__")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        let stamp = std::time::UNIX_EPOCH + std::time::Duration::from_secs(STAMP);
        File::options().write(true).open(at("old")).unwrap().set_modified(stamp).unwrap();
        fs::set_permissions(at("closed"), Permissions::from_mode(0o0)).unwrap();
        // A sandbox that begins in the future has seen none of these changes.
        let mut list = Vec::new();
        survey(root.path(), Some(Moment(i64::MAX, 0)), &mut list).unwrap();
        let file = |path: &str, size, fresh| Surveyed {
            path: path.as_bytes().to_vec(),
            sort: Sort::File { executable: false, size, fresh },
        };
        let entry = |path: &str, sort| Surveyed { path: path.as_bytes().to_vec(), sort };
        let expected = [
            entry("closed", Sort::Folder),
            file("closed/inner", 4, true),
            entry("link", Sort::Link(b"nowhere".to_vec())),
            file("old", 3, false),
        ];
        assert_eq!(decode_survey(&list).unwrap(), expected);
        let mut list = Vec::new();
        survey(root.path(), Some(Moment(0, 0)), &mut list).unwrap();
        assert!(decode_survey(&list).unwrap().contains(&file("old", 3, true)));
    }

    #[test]
    fn collected_files_arrive_in_order_and_no_longer_than_was_asked() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "abcdef").unwrap();
        fs::write(root.path().join("b"), "").unwrap();
        let mut out = Vec::new();
        let wanted = encode_wanted([(&b"b"[..], 10), (&b"a"[..], 3)]);
        collect(root.path(), &wanted, &mut out).unwrap();
        assert_eq!(decode_collected(&out).unwrap(), [&b""[..], b"abc"]);
    }
}
