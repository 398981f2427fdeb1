//! Files that cannot be compared with masked bodies but may still reveal them: compiled code, archives, git objects.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::{FindingKind, LARGEST, LeakFinding};
use crate::error::{Error, Result};
use crate::suite::LoadedPaper;

/// First bytes of a gzip file.
const GZIP: &[u8] = b"\x1f\x8b";
/// First bytes of a zip archive with files.
const ZIP: &[u8] = b"PK\x03\x04";
/// First bytes of the record at the end of a zip archive, and the maximum distance in bytes of this record from the
/// archive's end: 22 bytes and a comment.
const ZIP_END: &[u8] = b"PK\x05\x06";
const ZIP_END_REACH: u64 = 22 + 0xffff;
/// Bytes of a header in a tar archive.
const TAR_HEADER: usize = 512;

/// First bytes of the archives and compressed files that this program cannot unpack, each with the name of the format.
const CLOSED: [(&[u8], &str); 5] = [
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!", "rar"),
];

/// Returns the contents of a gzip file, at most [`LARGEST`] bytes; `None` for other files.
pub fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(GZIP) {
        return None;
    }
    let mut inside = Vec::new();
    // Ignore the error of a damaged file: its contents are searched up to the damage.
    let _ = MultiGzDecoder::new(bytes).take(LARGEST).read_to_end(&mut inside);
    Some(inside)
}

/// Reports a suspicious file, judging by its bytes.
pub(super) fn of_file(path: &Path, bytes: &[u8]) -> Option<LeakFinding> {
    let finding = |kind, message: String, hint: &str| {
        Some(LeakFinding { kind, error: Error::suite(message).at(path, None).hint(hint) })
    };
    if is_compiled(path, bytes) {
        return finding(
            FindingKind::Compiled,
            "compiled code, which may hold masked functions".to_owned(),
            "remove it from the repo, since every agent would be given it: let the manifest's `build` make it, or list it \
             under `compiled` if it holds none of them",
        );
    }
    if is_git(bytes) {
        return finding(
            FindingKind::GitObjects,
            "objects of git, which may hold masked functions".to_owned(),
            "remove the bundle or pack from the repo: every agent would be given it",
        );
    }
    let (_, packer) = CLOSED.iter().find(|(magic, _)| bytes.starts_with(magic))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let of_files =
        name.contains(".tar.") || ["7z", "rar", "tbz", "tbz2", "txz", "tzst"].iter().any(|it| name.ends_with(it));
    finding(
        if of_files || is_code(name.trim_end_matches(packer).trim_end_matches('.')) {
            FindingKind::Archive
        } else {
            FindingKind::Unread
        },
        format!("a packed file (`{packer}`) that cannot be searched for leaks"),
        "unpack it, or make sure that it holds data only",
    )
}

/// Reports an archive that contains code, whatever its size. A damaged archive, and an archive that contains further
/// archives, are reported only as [`FindingKind::Unread`], because most of them contain data.
///
/// # Errors
/// Kind `Machine` if the file cannot be read.
pub(super) fn of_archive(path: &Path) -> Result<Option<LeakFinding>> {
    let names = names(path).map_err(|error| Error::io("read", path, error))?;
    let finding = |kind, message: String| {
        let hint = "remove it from the repo, or unpack it so that it can be searched";
        Some(LeakFinding { kind, error: Error::suite(message).at(path, None).hint(hint) })
    };
    let Some(names) = names else {
        return Ok(finding(FindingKind::Unread, "a damaged archive, whose files cannot be listed".to_owned()));
    };
    Ok(if let Some(code) = names.iter().find(|name| is_code(name)) {
        finding(FindingKind::Archive, format!("an archive that contains code, such as `{code}`"))
    } else if let Some(inner) = names.iter().find(|name| is_archive(name)) {
        finding(FindingKind::Unread, format!("an archive that contains the archive `{inner}`"))
    } else {
        None
    })
}

/// Reports compiled code that the manifest lists as harmless, although it belongs to a Python file with maskable
/// functions. Compiled code belongs to a Python file if Python would import the compiled code instead of the file, or
/// if the compiled code contains the file's path, as the products of Cython and mypyc do.
pub(super) fn of_compiled(loaded: &LoadedPaper, path: &Path, relative: &Path, bytes: &[u8]) -> Option<LeakFinding> {
    let name = relative.file_name()?.to_str()?.split('.').next()?;
    let module = relative.with_file_name(format!("{name}.py"));
    let mut sources = (0..loaded.paper.units.len()).map(|unit| loaded.source(unit).path());
    let source = sources.find(|source| {
        let text = source.as_os_str().as_encoded_bytes();
        *source == module || bytes.windows(text.len()).any(|part| part == text)
    })?;
    Some(LeakFinding {
        kind: FindingKind::Compiled,
        error: Error::suite(format!(
            "compiled code of `{}`, which Python would run in place of the masked functions in that file",
            source.display()
        ))
        .at(path, None)
        .hint("leave the file's functions out of the manifest, or leave the file out of what is compiled"),
    })
}

/// Reports a folder that is a bare git repository.
pub(super) fn of_folder(path: &Path) -> Option<LeakFinding> {
    let bare = path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir();
    bare.then(|| LeakFinding {
        kind: FindingKind::GitObjects,
        error: Error::suite("a repository of git, which holds old versions of files")
            .at(path, None)
            .hint("remove it from the repo: every agent would be given it"),
    })
}

/// Whether this is a shared library or compiled Python, by name or by its first bytes.
fn is_compiled(path: &Path, bytes: &[u8]) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let by_name = ending.is_some_and(|it| ["pyc", "pyo", "so", "pyd", "dll", "dylib"].contains(&it.as_str()));
    // Compiled Python begins with a two-byte version number, a carriage return and a line feed. The second byte of the
    // number grows with the versions of Python; it is from 0x0c to 0x0f in versions 3.0 to 3.15.
    let python = bytes.len() > 16 && bytes[2..4] == *b"\r\n" && (0x0c..=0x0f).contains(&bytes[1]);
    by_name || python || bytes.starts_with(b"\x7fELF")
}

fn is_git(bytes: &[u8]) -> bool {
    let pack = bytes.starts_with(b"PACK\0\0\0") && bytes.len() > 12;
    pack || bytes.starts_with(b"# v2 git bundle") || bytes.starts_with(b"# v3 git bundle")
}

fn is_code(name: &str) -> bool {
    let name = name.to_lowercase();
    let endings = [".py", ".pyc", ".pyo", ".pyx", ".pyw", ".ipynb", ".so", ".pyd", ".whl", ".egg"];
    endings.iter().any(|ending| name.ends_with(ending))
}

/// Whether a file is an archive of files, by its name.
fn is_archive(name: &str) -> bool {
    const ENDINGS: [&str; 11] =
        [".zip", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz", ".tbz2", ".txz", ".7z", ".rar"];
    let name = name.to_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns the names of the files in a zip or tar archive, which may be compressed by gzip; empty for other files. The
/// list is read to its end, however large the archive is. Returns `None` for a damaged zip archive. For a damaged tar
/// archive, returns the names up to the damage.
fn names(path: &Path) -> io::Result<Option<Vec<String>>> {
    let mut file = BufReader::new(File::open(path)?);
    let start = beginning(&mut file)?;
    file.rewind()?;
    if start.starts_with(ZIP) {
        return Ok(in_zip(file));
    }
    if !start.starts_with(GZIP) {
        let names = if is_tar(&start) { in_tar(file) } else { in_zip_after_other_bytes(file)? };
        return Ok(Some(names));
    }
    let Ok(start) = beginning(&mut MultiGzDecoder::new(&mut file)) else { return Ok(Some(Vec::new())) };
    file.rewind()?;
    if is_tar(&start) {
        return Ok(Some(in_tar(MultiGzDecoder::new(file))));
    }
    // This gzip file contains a zip archive, which is not opened. Return only the archive's name: the file's name
    // without `.gz`.
    let inside = path.file_stem().filter(|_| start.starts_with(ZIP)).map(|name| name.to_string_lossy().into_owned());
    Ok(Some(inside.into_iter().collect()))
}

/// Returns the names of the files in a zip archive; `None` if it is damaged.
fn in_zip(file: impl Read + Seek) -> Option<Vec<String>> {
    let archive = zip::ZipArchive::new(file).ok()?;
    archive.file_names().map(|name| name.map(std::borrow::Cow::into_owned).ok()).collect()
}

/// Returns the names of the files in a zip archive that follows other bytes, as in an executable archive that begins with
/// `#!/usr/bin/env python3`. Empty if there is no such archive.
fn in_zip_after_other_bytes(mut file: impl Read + Seek) -> io::Result<Vec<String>> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(ZIP_END_REACH)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let has_end = end.windows(ZIP_END.len()).any(|part| part == ZIP_END);
    Ok(if has_end { in_zip(file).unwrap_or_default() } else { Vec::new() })
}

/// Reads the first bytes of a file, as many as a header in a tar archive has.
fn beginning(file: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(TAR_HEADER as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether the bytes are a header in a tar archive of any kind, which contains its own checksum.
fn is_tar(start: &[u8]) -> bool {
    let is_header = |header: &[u8]| {
        let byte = |(at, byte): (usize, &u8)| u32::from(if (148..156).contains(&at) { b' ' } else { *byte });
        let sum: u32 = header.iter().enumerate().map(byte).sum();
        tar::Header::from_byte_slice(header).cksum().is_ok_and(|stored| stored == sum)
    };
    start.len() == TAR_HEADER && is_header(start)
}

fn in_tar(file: impl Read) -> Vec<String> {
    let mut archive = tar::Archive::new(file);
    let Ok(entries) = archive.entries() else { return Vec::new() };
    let entries = entries.map_while(std::result::Result::ok);
    entries.map(|entry| String::from_utf8_lossy(&entry.path_bytes()).into_owned()).collect()
}
