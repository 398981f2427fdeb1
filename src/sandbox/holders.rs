//! Finds files that contain a suite in folders that sandboxes would show: this program, other installations of it, and
//! its packages.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use walkdir::WalkDir;

/// The section of the program's file that contains the bundled suite's archives.
const SECTION: &[u8] = b".autoexperiment\0";
/// Maximum depth of the search below a shown folder; in `/usr`, `local/bin/autoexperiment` has depth 3.
const DEPTH: usize = 3;
/// Minimum size in bytes of a program that contains a suite.
const SMALLEST: u64 = 1 << 20;

/// Returns the files below a folder that contain a suite. Each folder is searched once per process.
pub(super) fn below(folder: &Path) -> Vec<PathBuf> {
    static FOUND: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.entry(folder.to_owned()).or_insert_with(|| search(folder)).clone()
}

/// Whether a file contains a suite.
pub(super) fn holds(file: &Path) -> bool {
    !search(file).is_empty()
}

fn search(folder: &Path) -> Vec<PathBuf> {
    let entries = WalkDir::new(folder).max_depth(DEPTH).into_iter().flatten();
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.filter(|entry| is_distribution(entry.path()) || is_program(entry)).map(walkdir::DirEntry::into_path).collect()
}

/// Whether the file name is that of a wheel, an archive or a package of this program.
fn is_distribution(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kinds = [".whl", ".tar.gz", ".tgz", ".deb", ".crate", ".zip"];
    (name.starts_with("autoexperiment-") || name.starts_with("autoexperiment_"))
        && kinds.iter().any(|kind| name.ends_with(kind))
}

fn is_program(entry: &walkdir::DirEntry) -> bool {
    let is_large = || entry.metadata().is_ok_and(|about| about.len() >= SMALLEST);
    // Versions without the section are recognised by their name.
    is_large()
        && (entry.file_name() == "autoexperiment"
            || File::open(entry.path()).is_ok_and(|file| has_section(&file).unwrap_or(false)))
}

/// Whether a 64-bit ELF file contains [`SECTION`].
fn has_section(file: &File) -> io::Result<bool> {
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0)?;
    if header[..5] != *b"\x7fELF\x02" {
        return Ok(false);
    }
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (table, size, names) = (number(&header[40..48]), number(&header[58..60]), number(&header[62..64]));
    let mut section = [0; 64];
    file.read_exact_at(&mut section, table.saturating_add(size * names))?;
    let (start, length) = (number(&section[24..32]), number(&section[32..40]));
    let mut text = vec![0; length.min(1 << 20) as usize];
    file.read_exact_at(&mut text, start)?;
    Ok(text.windows(SECTION.len()).any(|window| window == SECTION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_their_section_or_name_and_distributions_by_their_name() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("local/bin");
        std::fs::create_dir_all(&folder).unwrap();
        // An ELF file whose only section holds the names of sections.
        let mut renamed = vec![0; 2 << 20];
        renamed[..5].copy_from_slice(b"\x7fELF\x02");
        (renamed[40], renamed[58], renamed[60]) = (64, 64, 1);
        (renamed[64 + 24], renamed[64 + 32]) = (128, 40);
        renamed[129..129 + SECTION.len()].copy_from_slice(SECTION);
        std::fs::write(folder.join("renamed"), renamed).unwrap();
        std::fs::write(folder.join("autoexperiment"), vec![0; 1 << 20]).unwrap();
        std::fs::write(folder.join("autoexperiment-0.1.0-py3-none-any.whl"), "").unwrap();
        std::fs::write(folder.join("autoexperiment-notes.txt"), "").unwrap();
        std::fs::write(folder.join("large"), vec![0; 2 << 20]).unwrap();
        std::fs::write(folder.join("elf"), [b"\x7fELF\x02".as_slice(), &vec![0xff; 2 << 20]].concat()).unwrap();
        let mut found = search(place.path());
        found.sort();
        let names = ["autoexperiment", "autoexperiment-0.1.0-py3-none-any.whl", "renamed"];
        assert_eq!(found, names.map(|name| folder.join(name)));
    }
}
