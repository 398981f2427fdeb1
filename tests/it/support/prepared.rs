//! Suites that are ready to run: envs locked and built, gold recorded. Each is prepared once for a machine and a build of
//! the program, below the target folder, and copied by every test that needs it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::{Lab, PROGRAM, copy};

fn shared() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The cache of envs and snapshots that all tests share, unless one sets another.
pub fn cache() -> PathBuf {
    shared().join("cache")
}

/// The prepared suite of a tree under `tests/trees`. Processes that ask at the same time wait for the one that prepares.
pub fn suite(tree: &str, env: &str, papers: &[&str]) -> PathBuf {
    let folder = shared().join("suites");
    fs::create_dir_all(&folder).unwrap();
    let source = Path::new("tests/trees").join(tree);
    let ready = folder.join(format!("{tree}-{:016x}", digest(&source)));
    let lock = File::create(folder.join(format!("{tree}.lock"))).unwrap();
    lock.lock().unwrap();
    if !ready.exists() {
        remove_others(&folder, &format!("{tree}-"));
        let lab = Lab::bare();
        copy(&source, &lab.path(""));
        lab.ok(&["env", "lock", env]);
        lab.ok(&[&["gold", "--repeats", "2"], papers].concat());
        // A folder that has its name is whole.
        let partial = folder.join(format!("{tree}-partial"));
        copy(&lab.path(""), &partial);
        fs::rename(partial, &ready).unwrap();
    }
    ready
}

/// Suites that an older program or an older tree prepared.
fn remove_others(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
}

/// Of the tree's files and of this build of the program, whose gold may differ from another's.
fn digest(tree: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let program = fs::metadata(PROGRAM).unwrap();
    (program.len(), program.modified().unwrap()).hash(&mut hasher);
    for entry in walkdir::WalkDir::new(tree).sort_by_file_name() {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            (entry.path(), fs::read(entry.path()).unwrap()).hash(&mut hasher);
        }
    }
    hasher.finish()
}
