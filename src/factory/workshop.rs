//! Settings, caches and other resources shared by all packages of one `factory` command.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

use super::JOURNAL;
use super::list::FactorySettings;
use super::source::{Fetcher, SourceRecord};
use crate::draft::require_id;
use crate::error::{Error, Result};
use crate::run::machine::Machine;
use crate::suite::Suite;

/// Resources shared by all packages of one `factory` command.
pub(super) struct Workshop {
    /// The new suite.
    pub(super) suite: Suite,
    /// Settings that decide which tasks are made.
    pub(super) settings: FactorySettings,
    /// This machine.
    pub(super) machine: Arc<Machine>,
    /// Gets sources.
    pub(super) fetcher: Fetcher,
    /// Maximum number of sandboxes that run tests of one package at once, to record gold and to measure functions.
    pub(super) slots: usize,
    /// Permit for locking or building an environment. There is only one permit, because pip and the network are the
    /// bottleneck.
    pub(super) envs: Semaphore,
    /// For packages that are compared with an older version: where the older version's sources come from. The key is
    /// the newer version, as `name==version`.
    pub(super) earlier: OnceLock<BTreeMap<String, SourceRecord>>,
    /// Maps each id that is taken in the suite to the package that took it.
    pub(super) ids: std::sync::Mutex<BTreeMap<String, String>>,
}

impl Workshop {
    /// Creates a folder for the sources of a package. The folder is removed when the returned value is dropped.
    pub(super) fn scratch(&self) -> Result<tempfile::TempDir> {
        tempfile::tempdir_in(self.suite.root().join(JOURNAL))
            .map_err(|error| Error::io("create", self.suite.root(), error))
    }

    /// Removes the unfinished files of a package that a killed process left.
    ///
    /// # Errors
    /// Same as [`remove_package`].
    pub(super) fn remove_unfinished(&self, id: &str) -> Result<()> {
        remove_package(self.suite.root(), id)
    }
}

/// Removes the files of a package from the suite in the folder `root`.
///
/// # Errors
/// Kind `Usage` if the id is invalid, for example a path; `Machine` if a folder cannot be removed.
fn remove_package(root: &Path, id: &str) -> Result<()> {
    require_id(id)?;
    for part in ["papers", "repos", "envs"] {
        let folder = root.join(part).join(id);
        crate::workspace::remove_tree(&folder).map_err(|error| Error::io("remove", &folder, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_the_folders_of_one_package_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("suite");
        let other = folder.path().join("project");
        for path in [root.join("papers/a"), root.join("repos/a"), root.join("papers/b"), other.clone()] {
            fs::create_dir_all(path).unwrap();
        }
        for id in ["", ".", "..", "../../project", other.to_str().unwrap(), "a/../b"] {
            assert!(remove_package(&root, id).unwrap_err().message.contains("is not a valid id"), "{id}");
        }
        assert!(other.is_dir() && root.join("papers/a").is_dir() && root.join("papers/b").is_dir());
        remove_package(&root, "a").unwrap();
        assert!(!root.join("papers/a").exists() && !root.join("repos/a").exists() && root.join("papers/b").is_dir());
    }
}
