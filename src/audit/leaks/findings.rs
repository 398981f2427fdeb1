//! Files that cannot be compared with masked bodies but may still reveal them: compiled code, archives, git objects.

use std::io::Read;
use std::path::Path;

use super::{FindingKind, LARGEST, LeakFinding};
use crate::error::Error;
use crate::suite::LoadedPaper;

/// Bytes before each entry in the list of files of a zip archive.
const ZIP_ENTRY: &[u8] = b"PK\x01\x02";

/// First bytes of archives that we cannot read, with their names.
const CLOSED: [(&[u8], &str); 5] = [
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!", "rar"),
];

/// Returns the contents of a gzip file, at most [`LARGEST`] bytes; `None` for other files.
pub fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(b"\x1f\x8b") {
        return None;
    }
    let mut inside = Vec::new();
    // Ignore the error of a damaged file: its contents are searched up to the damage.
    let _ = flate2::read::MultiGzDecoder::new(bytes).take(LARGEST).read_to_end(&mut inside);
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
    if let Some(code) = names(bytes).into_iter().find(|name| is_code(name)) {
        return finding(
            FindingKind::Archive,
            format!("an archive that contains code, such as `{code}`"),
            "remove it from the repo, or unpack it so that it can be searched",
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

/// Reports compiled code that the manifest lists as harmless, although it belongs to a Python file with maskable
/// functions. This is so if Python would import the compiled code instead of the file, or if the compiled code contains
/// the file's path, as the products of Cython and mypyc do.
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
    [".py", ".pyc", ".pyo", ".pyx", ".pyw", ".ipynb", ".so", ".pyd"].iter().any(|ending| name.ends_with(ending))
}

/// Returns the names of the files in a zip or tar archive; empty for other files.
fn names(bytes: &[u8]) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut names = Vec::new();
    if bytes.starts_with(b"PK") {
        // APPNOTE.TXT 4.3.12: an entry of the central directory has its name's length at offset 28 and the name at 46.
        let mut at = 0;
        while let Some(next) = bytes[at..].windows(4).position(|part| part == ZIP_ENTRY) {
            at += next;
            let length = bytes.get(at + 28..at + 30).map_or(0, |it| usize::from(it[0]) | usize::from(it[1]) << 8);
            names.extend(bytes.get(at + 46..at + 46 + length).map(text));
            at += ZIP_ENTRY.len();
        }
    } else if bytes.get(257..262) == Some(b"ustar") {
        // POSIX ustar: headers of 512 bytes, with the name in the first 100 and the size in octal at 124, each followed
        // by the content.
        let mut at = 0;
        while let Some(header) = bytes.get(at..at + 512).filter(|header| header[0] != 0) {
            names.push(text(header[..100].split(|&byte| byte == 0).next().unwrap_or_default()));
            let size = String::from_utf8_lossy(&header[124..136]);
            let size = usize::from_str_radix(size.trim_matches(['\0', ' ']), 8).unwrap_or(usize::MAX / 2);
            at = at.saturating_add(512).saturating_add(size.div_ceil(512).saturating_mul(512));
        }
    }
    names
}
