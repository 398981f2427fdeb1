//! A local conda channel, made once from this machine's own CPython.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the folder that contains the channels `conda-forge` and `other`.
pub fn channels() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/conda_channel.py");
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conda-channels");
        let ran = Command::new("python3").arg(script).arg(cache).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let alias = String::from_utf8(ran.stdout).unwrap();
        PathBuf::from(alias.trim().strip_prefix("file://").unwrap())
    })
}

/// Copies the channels so that they can be changed: packages are links, indexes are copies.
pub fn copy_of(channels: &Path, to: &Path) {
    for entry in fs::read_dir(channels).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy_of(&entry.path(), &target);
        } else if entry.file_name() == "repodata.json" {
            fs::copy(entry.path(), target).unwrap();
        } else {
            std::os::unix::fs::symlink(entry.path(), target).unwrap();
        }
    }
}
