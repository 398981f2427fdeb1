//! The folder for workspaces while attempts run. Each process has such a folder and removes it at the end. If a process
//! is killed, the next process removes the folder.

use std::fs::{File, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, FailureKind, Result};
use crate::workspace::remove_tree;

/// Write permissions of the group and of others, which the parent of all scratch folders must not have.
const WRITABLE_FOR_OTHERS: u32 = 0o022;

/// This process's scratch folder.
pub struct Scratch {
    folder: PathBuf,
    next: AtomicU64,
    // Locked while this process lives, so that other processes can tell a live folder from a leftover.
    _lock: File,
}

impl Scratch {
    /// Creates a folder under `root` and removes the folders of dead processes.
    ///
    /// # Errors
    /// Kind `Place` if it cannot be created.
    pub fn create(root: &Path) -> Result<Self> {
        let failed = |error| not_made(root, error);
        let root = own_folder(root)?;
        sweep(&root);
        // The lock file is next to the folder and is locked before the folder exists, so another process that removes
        // leftover folders never sees the folder of a live process without a lock.
        let name = format!("{}-{}", std::process::id(), crate::files::now().as_nanosecond());
        let lock_path = root.join(format!("{name}.lock"));
        let lock = loop {
            let lock = File::create(&lock_path).map_err(failed)?;
            lock.lock().map_err(failed)?;
            // Before the file was locked, another process may have taken it for a leftover and removed it.
            let own = lock.metadata().map_err(failed)?.ino();
            if lock_path.metadata().is_ok_and(|there| there.ino() == own) {
                break lock;
            }
        };
        let folder = root.join(name);
        std::fs::create_dir(&folder).map_err(failed)?;
        Ok(Self { folder, next: AtomicU64::new(0), _lock: lock })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path for a new folder, which does not exist yet.
    #[must_use]
    pub fn next(&self) -> PathBuf {
        self.folder.join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If the folder can't be removed now, keep its lock file so that the next process finds and removes it. Try
        // several times, because a workspace may be being removed in the background.
        if (0..3).any(|_| remove_tree(&self.folder).is_ok() || !self.folder.exists()) {
            let _ = std::fs::remove_file(self.folder.with_extension("lock"));
        }
    }
}

fn not_made(folder: &Path, error: std::io::Error) -> Error {
    Error { kind: FailureKind::Place, ..Error::io("create", folder, error) }
}

/// Creates the parent of all scratch folders, or uses an existing folder of this user after removing the write
/// permissions of others. Only this user may change files there, because files from this folder are run as code.
fn own_folder(path: &Path) -> Result<PathBuf> {
    let failed = |error| not_made(path, error);
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above).map_err(failed)?;
    }
    // If this process runs as root on a machine without namespaces, its sandboxes run as another user. So let other
    // users pass through the folder, but not list it.
    let mode = if nix::unistd::geteuid().is_root() { 0o711 } else { 0o700 };
    match std::fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => made.map_err(failed)?,
    }
    let real = path.canonicalize().map_err(failed)?;
    let about = real.metadata().map_err(failed)?;
    let is_own = about.uid() == nix::unistd::geteuid().as_raw();
    let is_link = path.symlink_metadata().map_err(failed)?.is_symlink();
    if !about.is_dir() || !is_own || is_link && in_shared_folder(path) {
        return Err(Error::new(FailureKind::Place, format!("`{}` is not a folder owned by this user", path.display()))
            .hint("remove it, or name another folder with `--scratch`"));
    }
    if about.mode() & WRITABLE_FOR_OTHERS != 0 {
        let mode = about.mode() & 0o777 & !WRITABLE_FOR_OTHERS;
        std::fs::set_permissions(&real, Permissions::from_mode(mode)).map_err(failed)?;
    }
    Ok(real)
}

/// Whether everybody may create entries in the folder that contains `path`.
fn in_shared_folder(path: &Path) -> bool {
    path.parent().and_then(|above| above.metadata().ok()).is_some_and(|about| about.mode() & 0o002 != 0)
}

/// Removes the folders of dead processes. Failures are ignored.
fn sweep(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        if let Ok(lock) = File::open(&path)
            && lock.try_lock().is_ok()
        {
            // Keep the lock file as long as the folder exists: the next process finds leftover folders by their lock
            // files.
            if remove_tree(&path.with_extension("")).is_ok() {
                let _ = std::fs::remove_file(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_is_refused_if_linked_or_foreign_and_is_never_writable_by_other_users() {
        let place = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        let made = place.path().join("made");
        drop(Scratch::create(&made).unwrap());
        assert_eq!(mode(&made) & 0o066, 0);
        std::fs::set_permissions(&made, Permissions::from_mode(0o777)).unwrap();
        drop(Scratch::create(&made).unwrap());
        assert_eq!(mode(&made), 0o755);
        // A link in a shared folder is refused, because another user could have created the link and could change its
        // target.
        let shared = place.path().join("shared");
        std::fs::create_dir(&shared).unwrap();
        std::fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
        std::os::unix::fs::symlink(&made, shared.join("link")).unwrap();
        assert!(Scratch::create(&shared.join("link")).is_err());
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(&made, Some(65_534), Some(65_534)).unwrap();
            let error = Scratch::create(&made).map(drop).unwrap_err();
            assert!(error.message.contains("not a folder owned by this user"), "{error}");
        }
    }
}
