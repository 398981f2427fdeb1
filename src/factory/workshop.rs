//! Settings, caches and other resources shared by all packages of one `factory` command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

use super::JOURNAL;
use super::list::FactorySettings;
use super::source::{Fetcher, SourceRecord};
use crate::audit::Bench;
use crate::draft::{Draft, require_id};
use crate::error::{Error, Result};
use crate::masked::ready::ReadyPaper;
use crate::run::machine::Machine;
use crate::suite::Suite;
use crate::workspace::remove_tree;

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
    /// Maximum number of packages that are made at once, and of sandboxes that record gold or measure functions at
    /// once.
    pub(super) jobs: usize,
    /// Permits for the sandboxes that record gold or measure functions. A package gets the permits that no other
    /// package needs.
    pub(super) slots: Arc<Semaphore>,
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
    /// Creates a bench that runs tests of a package. It has no cache, because new packages have new drawings and so no
    /// earlier results.
    ///
    /// # Errors
    /// Same as [`Bench::new`].
    pub(super) fn bench(&self, ready: ReadyPaper) -> Result<Arc<Bench>> {
        let bench = Bench::new(ready, Arc::clone(&self.machine), self.jobs, false)?;
        Ok(Arc::new(bench.without_memory().sharing(Arc::clone(&self.slots))))
    }

    /// Creates a folder for the sources of a package. The folder is removed when the returned value is dropped.
    pub(super) fn scratch(&self) -> Result<tempfile::TempDir> {
        tempfile::tempdir_in(self.suite.root().join(JOURNAL))
            .map_err(|error| Error::io("create", self.suite.root(), error))
    }

    /// Moves the files of a package into the suite. If this process is killed before [`Workshop::finish_entry`], the
    /// next one removes them.
    ///
    /// # Errors
    /// Kind `Machine` if the files cannot be moved. The suite then has none of them.
    pub(super) fn move_into_suite(&self, draft: Draft) -> Result<()> {
        let mark = mark(self.suite.root(), draft.id());
        fs::write(&mark, "").map_err(|error| Error::io("create", &mark, error))?;
        draft.move_into_suite().inspect_err(|_| {
            let _ = fs::remove_file(&mark);
        })
    }

    /// Says that the entry of a package was saved, so that its files are not unfinished any more.
    pub(super) fn finish_entry(&self, id: &str) {
        // Ignore a failure: packages without tasks have no mark, and files of a package with an entry are not removed.
        let _ = fs::remove_file(mark(self.suite.root(), id));
    }
}

/// Folders of a suite that have a folder for each package.
const PARTS: [&str; 3] = ["papers", "repos", "envs"];

/// Beginning of the names of marks: empty files that exist while a package's files are in the suite, but its entry may
/// not be in the list. The rest of a mark's name is the package's id.
const MARK: &str = "unfinished-";

fn mark(root: &Path, id: &str) -> PathBuf {
    root.join(JOURNAL).join(format!("{MARK}{id}"))
}

/// Whether the suite in the folder `root` has a paper, repo or env with this id. If no package has this id, the user
/// has made it.
pub(super) fn has_files(root: &Path, id: &str) -> bool {
    PARTS.iter().any(|part| root.join(part).join(id).symlink_metadata().is_ok())
}

/// Removes files of unfinished packages that a killed process has left in the suite in the folder `root`. A package is
/// unfinished if it has a mark (see [`MARK`]) and no entry in the list (`is_listed`). Files of packages without a mark
/// are kept, because the user may have made them.
///
/// # Errors
/// Kind `Usage` if the id in a mark is invalid; `Machine` if a folder cannot be removed.
pub(super) fn remove_unfinished(root: &Path, is_listed: impl Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(root.join(JOURNAL)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_prefix(MARK)) else { continue };
        require_id(id)?;
        if !is_listed(id) {
            for part in PARTS {
                let folder = root.join(part).join(id);
                remove_tree(&folder).map_err(|error| Error::io("remove", &folder, error))?;
            }
        }
        fs::remove_file(entry.path()).map_err(|error| Error::io("remove", &entry.path(), error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_files_of_packages_without_an_entry_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let paths = ["papers/a", "repos/a", "envs/a", "papers/b", "papers/c", JOURNAL].map(|path| root.join(path));
        for path in &paths {
            fs::create_dir_all(path).unwrap();
        }
        let is_listed = |id: &str| id == "c";
        remove_unfinished(root, is_listed).unwrap();
        assert!(paths.iter().all(|path| path.is_dir()));
        for id in ["a", "c", "unknown"] {
            fs::write(mark(root, id), "").unwrap();
        }
        remove_unfinished(root, is_listed).unwrap();
        assert!(!has_files(root, "a") && has_files(root, "b") && has_files(root, "c"));
        assert_eq!(fs::read_dir(root.join(JOURNAL)).unwrap().count(), 0);
        for id in ["", ".", ".."] {
            fs::write(mark(root, id), "").unwrap();
            assert!(remove_unfinished(root, is_listed).unwrap_err().message.contains("is not a valid id"), "{id}");
            fs::remove_file(mark(root, id)).unwrap();
        }
    }
}
