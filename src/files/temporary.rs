//! Temporary folders that are recognised as abandoned if their process was killed.

use std::fs::{File, OpenOptions};
use std::io::Result;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Minimum age of a folder to be removed. A younger folder may not be locked by its process yet.
const YOUNG: Duration = Duration::from_secs(10);

/// A temporary folder. It is locked while its process lives, and removed when the value is dropped.
#[derive(Debug)]
pub struct Temporary {
    folder: tempfile::TempDir,
    // The kernel releases this lock when the process dies.
    _lock: File,
}

impl Temporary {
    /// Creates a folder in `parent`, with permissions `mode` and a name that begins with `prefix`.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn create(parent: &Path, prefix: &str, mode: u32) -> Result<Self> {
        let permissions = std::fs::Permissions::from_mode(mode);
        let folder = tempfile::Builder::new().prefix(prefix).permissions(permissions).tempdir_in(parent)?;
        let lock = File::open(folder.path())?;
        // Ignore a failure. On a file system without locks, `sweep` cannot lock abandoned folders either, and does not
        // remove them.
        let _ = lock.try_lock();
        Ok(Self { folder, _lock: lock })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders in `parent` whose names begin with `prefix` and whose processes were killed: this user's folders
/// or, for root, those of all users. Errors are ignored.
pub fn sweep(parent: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
        let path = entry.path();
        let Ok(about) = path.symlink_metadata() else { continue };
        let age = about.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
        let user = nix::unistd::geteuid();
        let is_ours = about.is_dir() && (about.uid() == user.as_raw() || user.is_root());
        if is_ours && age >= YOUNG && open_folder(&path).is_ok_and(|folder| folder.try_lock().is_ok()) {
            if !user.is_root() {
                open_up(&path);
            }
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Opens a folder; refuses a link or another file in its place.
fn open_folder(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).custom_flags(nix::libc::O_DIRECTORY | nix::libc::O_NOFOLLOW).open(path)
}

/// Makes all folders in a folder removable. For example, an overlay's work folder has no permissions.
fn open_up(folder: &Path) {
    for entry in walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_dir()) {
        let _ = std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o700));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_dead_processes_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let age = |path: &Path| {
            let old = std::time::SystemTime::now() - 2 * YOUNG;
            File::open(path).unwrap().set_modified(old).unwrap();
        };
        let alive = Temporary::create(place.path(), "probe-", 0o700).unwrap();
        age(alive.path());
        for name in ["probe-dead", "probe-young", "other"] {
            std::fs::create_dir_all(place.path().join(name).join("closed/in")).unwrap();
        }
        std::fs::set_permissions(place.path().join("probe-dead/closed"), std::fs::Permissions::from_mode(0o000))
            .unwrap();
        age(&place.path().join("probe-dead"));
        age(&place.path().join("other"));
        sweep(place.path(), "probe-");
        let mut left: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|it| it.unwrap().path()).collect();
        left.sort();
        let mut expected = vec![place.path().join("other"), place.path().join("probe-young"), alive.path().to_owned()];
        expected.sort();
        assert_eq!(left, expected);
    }
}
