//! Finds files and folders that contain a suite, inside the folders that sandboxes would show: this program, other
//! installations of it, its packages, and unpacked suites.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, symlink_metadata};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use super::searched::Searched;
use crate::env::default_cache;
use crate::files::hex;

/// Name of this program's file.
const NAME: &str = "autoexperiment";

/// The section of the program's file that contains the bundled suite's archives.
const SECTION: &[u8] = b".autoexperiment\0";
/// The folders of a suite that contain gold or original functions.
const SUITE: [&str; 4] = ["papers", "repos", "commands", "tasks"];
/// Minimum size in bytes of an executable with a suite inside. Smaller files are not searched.
const SMALLEST: u64 = 1 << 20;

/// Returns the files and folders below a folder that contain a suite or parts of one. Each folder is searched once per
/// process.
pub(super) fn below(folder: &Path) -> Vec<PathBuf> {
    static FOUND: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.entry(folder.to_owned()).or_insert_with(|| found_below(folder)).clone()
}

/// Whether a file contains a suite.
pub(super) fn holds(file: &Path) -> bool {
    !holders_in(search(file)).is_empty()
}

/// Searches a folder or, if the folder is unchanged, uses the result that an earlier process has stored.
fn found_below(folder: &Path) -> Vec<PathBuf> {
    // Use the cache folder only if it exists. Do not create it here, because other code checks whether the folder can
    // be used before it creates the folder.
    let Some(cache) = default_cache().ok().filter(|cache| cache.is_dir()) else { return holders_in(search(folder)) };
    let file = cache.join("searched").join(hex(&Sha256::digest(folder.as_os_str().as_encoded_bytes())[..16]));
    holders_in(Searched::read(&file, folder).unwrap_or_else(|| {
        let begun = SystemTime::now();
        let searched = search(folder);
        searched.store(&file, begun);
        searched
    }))
}

/// Returns the paths that the search recognised by their names, and those of its candidate files that are copies of
/// this program with a bundled suite.
fn holders_in(searched: Searched) -> Vec<PathBuf> {
    let programs = searched.candidates.into_iter().filter(|file| is_program(file));
    let found: BTreeSet<PathBuf> = searched.found.into_iter().chain(programs).collect();
    found.into_iter().collect()
}

/// Searches a folder by file names, without reading files, because whole system folders are searched. Files that have
/// this program's name, or are in a folder that may contain a renamed copy of it (`bin`), become candidates, which are
/// read later.
fn search(folder: &Path) -> Searched {
    let mut searched = Searched::new(folder);
    for entry in WalkDir::new(folder).into_iter().flatten() {
        let path = entry.path();
        if entry.file_type().is_dir() {
            searched.enter(path);
        }
        if !entry.file_type().is_file() {
            continue;
        }
        if let Some(root) = suite_of(path) {
            let parts = SUITE.map(|part| root.join(part)).into_iter();
            searched.found.extend(parts.filter(|part| part.starts_with(folder) && part.exists()));
        } else if is_distribution(path) {
            searched.found.insert(path.to_owned());
        } else if is_candidate(&entry) {
            searched.candidates.push(path.to_owned());
        }
    }
    searched
}

/// Returns the folder of the unpacked suite to which a file belongs. The file must have the name of a suite's gold or
/// task file, and be in a folder that a suite has for such files.
fn suite_of(path: &Path) -> Option<&Path> {
    let name = path.file_name()?.to_str()?;
    let is_in = |folder: &Path, of: &str| folder.file_name().is_some_and(|name| name == of);
    let above = path.parent()?;
    match name {
        "gold.json" if is_in(above.parent()?, "papers") => above.parent()?.parent(),
        "task.toml" if is_in(above.parent()?, "tasks") => above.parent()?.parent(),
        _ if name.ends_with(".gold.json") && is_in(above, "commands") => above.parent(),
        _ => None,
    }
}

/// Whether a file's name is that of a file by which this program is distributed, such as a wheel or a source archive.
fn is_distribution(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kinds = [".whl", ".tar.gz", ".tgz", ".deb", ".crate", ".zip"];
    (name.starts_with("autoexperiment-") || name.starts_with("autoexperiment_"))
        && kinds.iter().any(|kind| name.ends_with(kind))
}

/// Whether a file has the name of this program, or is in a folder that may contain a renamed copy of it.
fn is_candidate(entry: &walkdir::DirEntry) -> bool {
    let folder = entry.path().parent().and_then(Path::file_name).unwrap_or_default();
    entry.file_name() == NAME || folder.as_encoded_bytes().ends_with(b"bin") || entry.depth() == 0
}

/// Whether a candidate file is this program. Versions of the program without [`SECTION`] are recognised by the file's
/// name.
fn is_program(file: &Path) -> bool {
    symlink_metadata(file).is_ok_and(|about| about.is_file() && about.len() >= SMALLEST)
        && (file.file_name().is_some_and(|name| name == NAME)
            || File::open(file).is_ok_and(|file| has_section(&file).unwrap_or(false)))
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
    fn places_that_hold_this_program_its_packages_or_an_unpacked_suite_are_found_at_any_depth() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("local/bin");
        std::fs::create_dir_all(&folder).unwrap();
        // The file `renamed` is a minimal ELF file. Its only section contains the names of sections, among them
        // `SECTION`.
        let mut renamed = vec![0; 2 << 20];
        renamed[..5].copy_from_slice(b"\x7fELF\x02");
        (renamed[40], renamed[58], renamed[60]) = (64, 64, 1);
        (renamed[64 + 24], renamed[64 + 32]) = (128, 40);
        renamed[129..129 + SECTION.len()].copy_from_slice(SECTION);
        std::fs::write(folder.join("renamed"), renamed).unwrap();
        std::fs::write(folder.join("autoexperiment"), vec![0; 1 << 20]).unwrap();
        std::fs::write(folder.join("autoexperiment-0.1.0-py3-none-any.whl"), "").unwrap();
        std::fs::write(folder.join("autoexperiment-notes.txt"), "").unwrap();
        let deep = place.path().join("share/uv/tools/autoexperiment/bin");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("autoexperiment"), vec![0; 1 << 20]).unwrap();
        for (path, text) in
            [("papers/p/gold.json", "{}"), ("repos/p/a.py", ""), ("docs/a.md", ""), ("other/gold.json", "")]
        {
            let path = place.path().join("suites/mine").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(folder.join("large"), vec![0; 2 << 20]).unwrap();
        std::fs::write(folder.join("elf"), [b"\x7fELF\x02".as_slice(), &vec![0xff; 2 << 20]].concat()).unwrap();
        let found = holders_in(search(place.path()));
        let suite = place.path().join("suites/mine");
        let mut expected = ["autoexperiment", "autoexperiment-0.1.0-py3-none-any.whl", "renamed"]
            .map(|name| folder.join(name))
            .to_vec();
        expected.extend([deep.join("autoexperiment"), suite.join("papers"), suite.join("repos")]);
        assert_eq!(found, expected);
    }
    #[test]
    fn a_stored_list_of_programs_is_reused_for_unchanged_folders_but_the_programs_are_read_again() {
        let place = tempfile::tempdir().unwrap();
        let (root, file) = (place.path().join("root"), place.path().join("stored"));
        for number in 0..300 {
            std::fs::create_dir_all(root.join(format!("{}/{number}/bin", number % 7))).unwrap();
        }
        let program = root.join("3/3/bin/program");
        std::fs::write(&program, vec![0; 2 << 20]).unwrap();
        let stored = |root: &Path| Searched::read(&file, root);
        search(&root).store(&file, SystemTime::now());
        assert_eq!(stored(&root), None, "the folders have just been made");
        let later = SystemTime::now() + std::time::Duration::from_secs(10);
        search(&root).store(&file, later);
        assert_eq!(stored(&root), Some(search(&root)));
        assert_eq!(stored(place.path()), None);
        assert_eq!(holders_in(stored(&root).unwrap()), Vec::<PathBuf>::new());
        // Overwrite the program by a file that contains `SECTION`. This does not change the times of its folder, so the
        // stored search remains valid.
        let mut bytes = vec![0; 2 << 20];
        bytes[..5].copy_from_slice(b"\x7fELF\x02");
        (bytes[40], bytes[58], bytes[60]) = (64, 64, 1);
        (bytes[64 + 24], bytes[64 + 32]) = (128, 40);
        bytes[129..129 + SECTION.len()].copy_from_slice(SECTION);
        std::fs::write(&program, bytes).unwrap();
        assert_eq!(holders_in(stored(&root).unwrap()), [program]);
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(root.join("5/5/bin/autoexperiment-1.whl"), "").unwrap();
        assert_eq!(stored(&root), None);
        search(&root).store(&file, later);
        std::fs::write(&file, &std::fs::read(&file).unwrap()[..1000]).unwrap();
        assert_eq!(stored(&root), None, "torn");
    }
}
