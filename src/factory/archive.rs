//! Unpacks source archives. Paths and links in an archive cannot lead out of the target folder.

use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};

/// Maximum bytes of all unpacked files.
const MOST_BYTES: u64 = 512 << 20;

/// Maximum number of unpacked files.
const MOST_FILES: usize = 50_000;

/// Counts of the bytes and files unpacked so far.
#[derive(Default)]
struct Unpacked {
    bytes: u64,
    files: usize,
}

/// Unpacks a `.tar.gz` or `.zip` into a new folder and returns the folder of the sources, which is the only folder at
/// the archive's top level, or else the new folder. Links and special files are left out.
///
/// # Errors
/// Kind `Suite` for an archive that is broken, too large, or has paths that lead out of it or cannot exist; `Machine`
/// if it cannot be written.
pub(super) fn unpack(name: &str, bytes: &[u8], into: &Path) -> Result<PathBuf> {
    fs::create_dir_all(into).map_err(|error| Error::io("create", into, error))?;
    let broken = |error: std::io::Error| Error::suite(format!("the archive `{name}` is broken")).because(error);
    let mut so_far = Unpacked::default();
    if Path::new(name).extension().is_some_and(|extension| extension == "zip") {
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| Error::suite(format!("the archive `{name}` is broken")).because(error))?;
        for place in 0..archive.len() {
            let mut file = archive
                .by_index(place)
                .map_err(|error| Error::suite(format!("the archive `{name}` is broken")).because(error))?;
            let path = file
                .enclosed_name()
                .ok_or_else(|| Error::suite(format!("the archive `{name}` has a path that leads out of it")))?;
            if file.is_file() && !file.is_symlink() {
                let executable = file.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
                so_far.write(name, &path, &mut file, executable, into)?;
            }
        }
    } else if [".tar.gz", ".tgz"].iter().any(|ending| name.ends_with(ending)) {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            let path = entry.path().map_err(broken)?.into_owned();
            if entry.header().entry_type().is_file() {
                let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
                so_far.write(name, &path, &mut entry, executable, into)?;
            }
        }
    } else {
        return Err(Error::suite(format!("`{name}` is not a `.tar.gz` or a `.zip`"))
            .hint("give an sdist as `python -m build --sdist` makes it"));
    }
    let mut top = fs::read_dir(into).map_err(|error| Error::io("read", into, error))?.flatten();
    Ok(match (top.next(), top.next()) {
        (Some(only), None) if only.path().is_dir() => only.path(),
        _ => into.to_owned(),
    })
}

impl Unpacked {
    fn write(&mut self, name: &str, path: &Path, from: &mut dyn Read, executable: bool, into: &Path) -> Result<()> {
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(inside) {
            return Err(Error::suite(format!(
                "the archive `{name}` has a path that leads out of it: `{}`",
                path.display()
            )));
        }
        let target = into.join(path);
        let parent = target.parent().unwrap_or(into);
        let mut file = fs::create_dir_all(parent)
            .and_then(|()| fs::File::create(&target))
            .map_err(|error| unwritable(name, path, &target, error))?;
        let left = MOST_BYTES - self.bytes;
        let copied = copy(&mut from.take(left + 1), &mut file).map_err(|failure| match failure {
            CopyFailure::Read(error) => Error::suite(format!("failed to unpack `{name}`")).because(error),
            CopyFailure::Write(error) => Error::io("write", &target, error),
        })?;
        self.bytes += copied;
        self.files += 1;
        if copied > left || self.files > MOST_FILES {
            let limit = format!("{} MB or {MOST_FILES} files", MOST_BYTES >> 20);
            return Err(Error::suite(format!("the archive `{name}` unpacks to more than {limit}")));
        }
        if executable {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&target, fs::Permissions::from_mode(0o755))
                .map_err(|error| Error::io("write", &target, error))?;
        }
        Ok(())
    }
}

/// Why bytes could not be copied.
#[derive(Debug)]
enum CopyFailure {
    /// The source cannot be read, for example because the archive is broken.
    Read(std::io::Error),
    /// The target cannot be written, for example because the disk is full.
    Write(std::io::Error),
}

/// Copies all bytes and returns their number.
fn copy(from: &mut dyn Read, to: &mut dyn Write) -> Result<u64, CopyFailure> {
    let mut buffer = vec![0; 64 << 10];
    let mut copied = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyFailure::Read(error)),
        };
        to.write_all(&buffer[..count]).map_err(CopyFailure::Write)?;
        copied += count as u64;
    }
}

/// Returns the error for a file that cannot be created. It is the archive's fault if the archive has a file and a
/// folder of one name, or an overlong name.
fn unwritable(name: &str, path: &Path, target: &Path, error: std::io::Error) -> Error {
    use std::io::ErrorKind::{AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory};
    if matches!(error.kind(), AlreadyExists | InvalidFilename | InvalidInput | IsADirectory | NotADirectory) {
        let shown: String = path.display().to_string().chars().take(100).collect();
        return Error::suite(format!("the archive `{name}` has a path that cannot exist: `{shown}`")).because(error);
    }
    Error::io("write", target, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FailureKind;

    fn packed(entries: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
        let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (path, kind, text) in entries {
            let mut header = tar::Header::new_old();
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            if kind.is_symlink() {
                header.set_link_name("/etc/passwd").unwrap();
            }
            header.set_cksum();
            archive.append(&header, text.as_bytes()).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn links_are_left_out_and_paths_that_lead_out_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let good = packed(&[("p-1/a.py", tar::EntryType::Regular, "x"), ("p-1/link", tar::EntryType::Symlink, "")]);
        let root = unpack("p-1.tar.gz", &good, &folder.path().join("one")).unwrap();
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
        assert!(root.ends_with("p-1"));
        for path in ["../out.py", "p/../../out.py", "/out.py"] {
            let bad = packed(&[(path, tar::EntryType::Regular, "x")]);
            let error = unpack("p-1.tar.gz", &bad, &folder.path().join("two")).unwrap_err();
            assert!(error.message.contains("leads out"), "{error}");
        }
        assert!(!folder.path().join("out.py").exists());
    }

    #[test]
    fn a_broken_archive_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let whole = packed(&[("p-1/a.py", tar::EntryType::Regular, "some text")]);
        for (name, bytes) in [("p.tar.gz", &whole[..whole.len() / 2]), ("p.zip", b"PK".as_slice()), ("p.rar", b"")] {
            assert!(unpack(name, bytes, &folder.path().join(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_full_disk_is_not_the_fault_of_the_archive_but_broken_data_are() {
        let mut full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert!(matches!(copy(&mut b"some text".as_slice(), &mut full), Err(CopyFailure::Write(_))));
        let whole = packed(&[("p-1/a.py", tar::EntryType::Regular, "some text")]);
        let mut broken = flate2::read::GzDecoder::new(&whole[..whole.len() / 2]);
        assert!(matches!(copy(&mut broken, &mut std::io::sink()), Err(CopyFailure::Read(_))));
        assert_eq!(copy(&mut b"some text".as_slice(), &mut std::io::sink()).unwrap(), 9);
    }

    #[test]
    fn paths_that_cannot_exist_are_the_fault_of_the_archive() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("p/{}", "x".repeat(300));
        for (place, paths) in [["p/a", "p/a/b"], ["p/a/b", "p/a"], ["p/a", long.as_str()]].into_iter().enumerate() {
            let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
            for path in paths {
                let mut header = tar::Header::new_gnu();
                header.set_size(1);
                header.set_mode(0o644);
                archive.append_data(&mut header, path, b"x".as_slice()).unwrap();
            }
            let bytes = archive.into_inner().unwrap().finish().unwrap();
            let error = unpack("p-1.tar.gz", &bytes, &folder.path().join(place.to_string())).unwrap_err();
            assert_eq!(error.kind, FailureKind::Suite, "{error}");
            assert!(error.message.contains("cannot exist"), "{error}");
        }
    }
}
