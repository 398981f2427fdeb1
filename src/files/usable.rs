//! Checks that a required folder can be used by the user who started the program and by the sandboxes' user.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{AccessFlags, eaccess};

use crate::error::{Error, FailureKind, Result};

/// A folder that the program needs, and how to choose another one.
#[derive(Debug, Clone, Copy)]
pub struct NeededFolder {
    /// Description, such as `the cache`.
    pub name: &'static str,
    /// The settings that select it.
    pub settings: &'static str,
    /// An alternative that works if the user's home doesn't.
    pub instead: &'static str,
}

/// The cache folder, whose contents can be recreated.
pub const CACHE: NeededFolder = NeededFolder {
    name: "the cache",
    settings: "`--cache DIR` or `AUTOEXPERIMENT_CACHE`",
    instead: "/var/cache/autoexperiment",
};
/// The folder for attempts' workspaces.
pub const SCRATCH: NeededFolder = NeededFolder {
    name: "the scratch folder",
    settings: "`--scratch DIR` or `AUTOEXPERIMENT_SCRATCH`",
    instead: "/var/tmp/autoexperiment",
};

impl NeededFolder {
    /// Hint for a folder that cannot be used.
    #[must_use]
    pub fn hint(self) -> String {
        format!(
            "choose a folder that is writable and that every user can traverse, with {}, such as `{}`",
            self.settings, self.instead
        )
    }

    fn refused(self, folder: &Path, why: &str) -> Error {
        Error::new(FailureKind::Place, format!("{} `{}` cannot be used: {why}", self.name, folder.display()))
            .hint(self.hint())
    }

    /// Checks that this user can write to the folder, or create it. A folder that already has contents is accepted even
    /// if it is read-only.
    ///
    /// # Errors
    /// Kind `Place`, which names the folder that prevents it and the settings that choose another one.
    pub fn writable(self, folder: &Path) -> Result<()> {
        let is_filled = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        // Metadata below an inaccessible folder can't be read, so this finds the inaccessible one first.
        let Some((above, about)) = folder.ancestors().find_map(|above| Some((above, above.metadata().ok()?))) else {
            return Err(self.refused(folder, "none of its parent folders exists"));
        };
        if !about.is_dir() {
            return Err(self.refused(folder, &format!("`{}` is not a folder", above.display())));
        }
        match eaccess(above, AccessFlags::W_OK | AccessFlags::X_OK) {
            Err(error) if !is_filled => {
                let why = format!("this user cannot write in `{}`: {}", above.display(), error.desc());
                Err(self.refused(folder, &why))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the sandboxes' user can reach the folder's contents.
    ///
    /// # Errors
    /// As [`NeededFolder::writable`].
    pub fn passable(self, folder: &Path, user: u32) -> Result<()> {
        match closed(folder, user) {
            None => Ok(()),
            Some(closed) => {
                let why = "is closed to the user as whom sandboxes run here, which is not the user who started them";
                Err(self.refused(folder, &format!("`{}` {why}", closed.display())))
            }
        }
    }
}

/// Returns the folder, this one or one above it, that this user cannot traverse.
#[must_use]
pub fn closed(folder: &Path, user: u32) -> Option<std::path::PathBuf> {
    // Links lead elsewhere; folders that don't exist yet will be created with open permissions.
    let there = folder.ancestors().find_map(|above| above.canonicalize().ok())?;
    let is_closed = |folder: &&Path| {
        folder.metadata().is_ok_and(|about| {
            let bit = if about.uid() == user { 0o100 } else { 0o001 };
            about.is_dir() && about.mode() & bit == 0
        })
    };
    there.ancestors().find(is_closed).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir_all, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const NOBODY: u32 = 1_978_000_001;

    fn mode(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn an_inaccessible_parent_folder_is_named() {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().join("home");
        create_dir_all(home.join("there")).unwrap();
        mode(base.path(), 0o755);
        mode(&home, 0o700);
        symlink(&home, base.path().join("link")).unwrap();
        for place in ["home/there", "home/.cache/new", "link/new", "home"] {
            let error = CACHE.passable(&base.path().join(place), NOBODY).unwrap_err();
            assert_eq!(error.kind, FailureKind::Place);
            assert!(error.message.contains("home` is closed to the user"), "{error}");
            assert!(error.hint.unwrap().contains("`AUTOEXPERIMENT_CACHE`"));
        }
        mode(&home, 0o711);
        assert!(SCRATCH.passable(&home.join("there"), NOBODY).is_ok());
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_rejected_and_a_filled_one_may_be_read_only() {
        let base = tempfile::tempdir().unwrap();
        write(base.path().join("file"), "").unwrap();
        let error = CACHE.writable(&base.path().join("file/cache")).unwrap_err();
        assert!(error.message.contains("file` is not a folder"), "{error}");
        assert!(CACHE.writable(&base.path().join("not/there/yet")).is_ok());
        if nix::unistd::geteuid().is_root() {
            // Permissions don't apply to root.
            return;
        }
        let closed = base.path().join("closed");
        create_dir_all(closed.join("filled/envs")).unwrap();
        for (folder, permissions) in [("closed/filled", 0o555), ("closed", 0o555)] {
            mode(&base.path().join(folder), permissions);
        }
        let error = CACHE.writable(&closed.join("new")).unwrap_err();
        assert!(error.message.contains("this user cannot write in"), "{error}");
        assert!(CACHE.writable(&closed.join("filled")).is_ok());
        mode(&closed, 0o755);
        mode(&closed.join("filled"), 0o755);
    }
}
