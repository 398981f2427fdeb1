//! Suites that are ready to run: envs locked and built, gold recorded. Each is prepared once for a machine and a build
//! of the program, below the target folder, and copied by every test that needs it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::{Lab, PROGRAM, copy};

fn shared() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Returns the cache of envs and snapshots that all tests share, except tests that set their own.
pub fn cache() -> PathBuf {
    shared().join("cache")
}

/// Returns the prepared suite of a tree under `tests/trees`.
pub fn suite(tree: &str, env: &str, papers: &[&str]) -> PathBuf {
    let source = Path::new("tests/trees").join(tree);
    let program = fs::metadata(PROGRAM).unwrap();
    // The key contains this build of the program, because gold depends on it. Locked envs have another key, because
    // locking takes much longer and depends on little of the program.
    let build = (program.len(), program.modified().unwrap());
    once(&format!("{tree}-ready"), &(build, digest(&source)), |lab| {
        copy(&source, &lab.path(""));
        copy(&locked(tree, env).join("envs"), &lab.path("envs"));
        lab.ok(&[&["gold", "--repeats", "2"], papers].concat());
    })
}

/// Returns a lab with the runs that `make` makes in the tiny suite. They are made once after each build of the program
/// or the tests; later calls copy them.
pub fn runs(name: &str, make: impl FnOnce(&Lab)) -> Lab {
    let built = |program: &Path| {
        let program = fs::metadata(program).unwrap();
        (program.len(), program.modified().unwrap())
    };
    let key = (built(PROGRAM.as_ref()), built(&std::env::current_exe().unwrap()));
    let made = once(&format!("{name}-runs"), &key, |lab| {
        copy(&Lab::new().path(""), &lab.path(""));
        make(lab);
        lab.write("place", &lab.path("").display().to_string());
    });
    let lab = Lab::bare();
    copy(&made, &lab.path(""));
    // A run stores the path of its suite, so adapt it.
    let (before, now) = (lab.read("place"), lab.path("").display().to_string());
    for run in fs::read_dir(lab.path("runs")).unwrap() {
        let file = format!("runs/{}/run.json", run.unwrap().file_name().to_string_lossy());
        lab.edit(&file, before.trim_end_matches('/'), now.trim_end_matches('/'));
    }
    lab
}

/// Returns the tree with its env locked.
fn locked(tree: &str, env: &str) -> PathBuf {
    let source = Path::new("tests/trees").join(tree);
    let key = (std::env::var_os("PATH"), digest(&source.join("envs")), digest(Path::new("src/env")));
    once(&format!("{tree}-locked"), &key, |lab| {
        copy(&source, &lab.path(""));
        lab.ok(&["env", "lock", env]);
    })
}

/// Returns the folder with this name and key, and first makes it with `make` if it does not exist. Other processes that
/// need the folder wait until it is made.
fn once(name: &str, key: &impl Hash, make: impl FnOnce(&Lab)) -> PathBuf {
    let folder = shared().join("suites");
    fs::create_dir_all(&folder).unwrap();
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let made = folder.join(format!("{name}-{:016x}", hasher.finish()));
    let lock = File::create(folder.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    if !made.exists() {
        remove_others(&folder, &format!("{name}-"));
        let lab = Lab::bare();
        make(&lab);
        // Copy and then rename, so that the folder never exists with only a part of its files.
        let partial = folder.join(format!("{name}-partial"));
        copy(&lab.path(""), &partial);
        fs::rename(partial, &made).unwrap();
    }
    made
}

/// Removes folders that were made with other keys.
fn remove_others(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
}

/// Digests the files below a folder.
fn digest(folder: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            (entry.path(), fs::read(entry.path()).unwrap()).hash(&mut hasher);
        }
    }
    hasher.finish()
}
