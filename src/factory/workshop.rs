//! Settings, caches and other resources shared by all packages of one `factory` command.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

use super::JOURNAL;
use super::list::FactorySettings;
use super::source::{Fetcher, SourceRecord};
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
    pub(super) fn remove_unfinished(&self, id: &str) -> Result<()> {
        for part in ["papers", "repos", "envs"] {
            let folder = self.suite.root().join(part).join(id);
            crate::workspace::remove_tree(&folder).map_err(|error| Error::io("remove", &folder, error))?;
        }
        Ok(())
    }
}
