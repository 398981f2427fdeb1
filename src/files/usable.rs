//! Checks that folders which the program needs can be used, both by the user who started it and by the user of the
//! sandboxes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{AccessFlags, eaccess};

use crate::error::{Error, FailureKind, Result};

/// A folder that the program needs, and how the user can choose another one.
#[derive(Debug, Clone, Copy)]
pub struct NeededFolder {
    /// The folder in words, such as `the cache`.
    pub name: &'static str,
    /// The settings by which the user chooses the folder.
    pub settings: &'static str,
    /// Another folder to suggest if the default, in the user's home, cannot be used.
    pub instead: &'static str,
}

/// The cache folder, whose contents can be recreated.
pub const CACHE: NeededFolder = NeededFolder {
    name: "the cache",
    settings: "`--cache DIR` or `AUTOEXPERIMENT_CACHE`",
    instead: "/var/cache/autoexperiment",
};
/// The scratch folder, for the workspaces of attempts.
pub const SCRATCH: NeededFolder = NeededFolder {
    name: "the scratch folder",
    settings: "`--scratch DIR` or `AUTOEXPERIMENT_SCRATCH`",
    instead: "/var/tmp/autoexperiment",
};

impl NeededFolder {
    /// Returns a hint for the case that the folder cannot be used.
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

    /// Checks that this user can write to the folder, or create it. A read-only folder is accepted if it already has
    /// contents.
    ///
    /// # Errors
    /// Kind `Place`, which names the folder that is the obstacle, and the settings that choose another folder.
    pub fn writable(self, folder: &Path) -> Result<()> {
        let is_filled = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        // If a folder is inaccessible, metadata of folders inside it cannot be read either; this finds the first folder
        // whose metadata can be read.
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

    /// Checks that the user of the sandboxes can reach the contents of the folder.
    ///
    /// # Errors
    /// Same as [`NeededFolder::writable`].
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

/// Returns the folder that this user cannot enter, if any: `folder` or one that contains it.
#[must_use]
pub fn closed(folder: &Path, user: u32) -> Option<std::path::PathBuf> {
    // Resolve links, and skip folders that don't exist yet: they will be created with permissions that allow access.
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
    fn a_cache_folder_that_cannot_be_created_is_rejected_and_a_filled_read_only_one_accepted() {
        let base = tempfile::tempdir().unwrap();
        write(base.path().join("file"), "").unwrap();
        let error = CACHE.writable(&base.path().join("file/cache")).unwrap_err();
        assert!(error.message.contains("file` is not a folder"), "{error}");
        assert!(CACHE.writable(&base.path().join("not/there/yet")).is_ok());
        if nix::unistd::geteuid().is_root() {
            // Permissions don't apply to root, so this test would fail.
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
