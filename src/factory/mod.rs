//! Makes tasks from any Python package that has tests, without the work of a person or a model: the command
//! `autoexperiment factory`.
//!
//! [`Factory::make`] takes packages and makes a suite; `workshop` has what the packages share. For each package
//! (`package`), it gets the sources (`source`, `index`, `archive`), finds out what the tests need (`requirements`) and
//! how the package is imported without being installed (`layout`), and writes the repo and env (`prepare`). It then
//! (`measure`) runs the tests three times (`survey`), checks what agents get (`shown`), adds tests with more inputs
//! (`inputs`), records gold of ten runs
//! (`record`), finds functions that the tests enter (`functions`), drops functions that fail a check, for example
//! because no test notices small changes of them (`choice`, `gates`), and writes a paper (`paper`, `manifest`,
//! `documentation`, `examples`). Foreign code runs in the sandbox only.
//!
//! Every finished package is an entry of `factory.json` ([`FactoryList`]), which holds all that was measured: the same
//! suite can be made from it without running anything ([`Factory::rebuild`]).

mod about;
mod archive;
mod choice;
mod documentation;
mod examples;
mod functions;
mod gates;
mod imports;
mod index;
mod inputs;
mod layout;
mod list;
mod manifest;
mod markers;
mod measure;
mod package;
mod page;
mod paper;
mod prepare;
mod rebuild;
mod record;
mod refresh;
mod requirement_files;
mod requirements;
mod shown;
mod source;
mod survey;
mod test_paths;
mod vendored;
mod version;
mod workshop;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

use crate::error::{Error, Result};
use crate::run::event::{Observer, RunEvent};
use crate::run::machine::Machine;
use crate::suite::Suite;
use crate::workspace::remove_tree;
pub use list::{FactoryList, FactorySettings, LIST, PackageEntry};
pub use page::page;
use rebuild::require_digests;
pub use source::packages;
use workshop::{Workshop, remove_unfinished};

/// The program that runs a package's tests: the name of its file in each repo, its code, and the name of the file from
/// which it reads the plan of the tests.
const RUNNER: &str = "autoexperiment_package_tests.py";
const RUNNER_CODE: &str = include_str!("package_tests.py");
const PLAN: &str = "autoexperiment_package_tests.json";

/// Folder in each repo for modules of requirements that have no wheel.
const VENDORED: &str = "autoexperiment_vendored";

/// Folder in the suite for sources while packages are being made.
const JOURNAL: &str = ".factory";

/// A suite in the making.
pub struct Factory {
    workshop: Arc<Workshop>,
    journal: PathBuf,
    list: FactoryList,
    _lock: File,
}

impl Factory {
    /// Opens or creates the suite's folder. At most `jobs` packages are made at once.
    ///
    /// # Errors
    /// Kind `Usage` if the folder holds a suite that this command did not make, or made with other settings; `Machine`
    /// if the suite cannot be written or another process is making it.
    pub fn open(folder: &Path, settings: FactorySettings, machine: Arc<Machine>, jobs: usize) -> Result<Self> {
        let journal = folder.join(JOURNAL);
        let known = folder.join(LIST);
        if folder.join("papers").exists() && !known.exists() && !journal.exists() {
            return Err(Error::usage(format!("`{}` holds a suite that `factory` did not make", folder.display()))
                .hint("give the name of a new folder"));
        }
        for part in ["papers", "repos", "envs", JOURNAL] {
            let path = folder.join(part);
            fs::create_dir_all(&path).map_err(|error| Error::io("create", &path, error))?;
        }
        let lock_path = journal.join("lock");
        let lock = File::create(&lock_path).map_err(|error| Error::io("create", &lock_path, error))?;
        if lock.try_lock().is_err() {
            return Err(Error::machine("another process makes this suite").hint("wait until it has ended"));
        }
        // Remove the folders that a killed process has left in `journal`.
        for entry in fs::read_dir(&journal).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
            remove_tree(&entry.path()).map_err(|error| Error::io("remove", &entry.path(), error))?;
        }
        let list = if known.exists() { FactoryList::read(&known)? } else { FactoryList::new(settings.clone()) };
        if list.settings != settings && !list.packages.is_empty() {
            return Err(Error::usage(format!("the suite in `{}` was made with other settings", folder.display()))
                .hint("repeat the command with the settings in its `factory.json`, or name another folder"));
        }
        let list = if list.packages.is_empty() { FactoryList::new(settings.clone()) } else { list };
        remove_unfinished(folder, |id| list.packages.iter().any(|entry| entry.id == id && entry.measured.is_some()))?;
        let suite = Suite::open(folder)?;
        let ids = list.packages.iter().filter(|entry| !entry.id.is_empty());
        let ids: BTreeMap<String, String> = ids.map(|entry| (entry.id.clone(), entry.package.clone())).collect();
        let jobs = jobs.max(1);
        let workshop = Workshop {
            suite,
            settings,
            machine,
            fetcher: source::Fetcher::default(),
            jobs,
            slots: Arc::new(Semaphore::new(jobs)),
            envs: Semaphore::new(1),
            earlier: OnceLock::new(),
            ids: ids.into(),
        };
        Ok(Self { workshop: Arc::new(workshop), journal, list, _lock: lock })
    }

    /// Makes the tasks of these packages. Those that are in the list already are not made again. After each package,
    /// the list is written and the package's entry is passed to `on_done`.
    ///
    /// # Errors
    /// Kind `Machine` if the list cannot be written; `Usage` if another version of this program made other packages of
    /// the suite. A package that gives no tasks is not an error; the reason is in its entry.
    pub async fn make(
        mut self,
        asked: &[String],
        observer: Arc<dyn Observer>,
        mut on_done: impl FnMut(&PackageEntry),
    ) -> Result<FactoryList> {
        let is_new = |package: &String| !self.list.packages.iter().any(|entry| entry.package == *package);
        if asked.iter().any(is_new) {
            self.list.require_this_program()?;
        }
        let mut entries: BTreeMap<String, PackageEntry> =
            std::mem::take(&mut self.list.packages).into_iter().map(|entry| (entry.package.clone(), entry)).collect();
        let todo: Vec<String> = asked.iter().filter(|package| !entries.contains_key(*package)).cloned().collect();
        let earlier: Vec<String> = entries.keys().filter(|package| !asked.contains(*package)).cloned().collect();
        let order: Vec<String> = earlier.into_iter().chain(asked.iter().cloned()).collect();
        for package in asked {
            if let Some(entry) = entries.get(package) {
                on_done(entry);
            }
        }
        let mut todo = todo.into_iter();
        let mut running = tokio::task::JoinSet::new();
        let mut start = |running: &mut tokio::task::JoinSet<_>| {
            let Some(package) = todo.next() else { return };
            let (workshop, observer) = (Arc::clone(&self.workshop), Arc::clone(&observer));
            running.spawn(async move { workshop.make(&package, &*observer).await });
        };
        (0..self.workshop.jobs).for_each(|_| start(&mut running));
        let path = self.workshop.suite.root().join(LIST);
        let mut unfinished = Vec::new();
        while let Some(ended) = running.join_next().await {
            let (entry, is_final) = ended.map_err(|error| Error::internal("a package was aborted").because(error))?;
            start(&mut running);
            on_done(&entry);
            let (package, id) = (entry.package.clone(), entry.id.clone());
            if !is_final {
                unfinished.push(package.clone());
            }
            entries.insert(package, entry);
            let is_kept = |package: &&String| !unfinished.contains(*package);
            let done = order.iter().filter(is_kept).filter_map(|package| entries.get(package).cloned());
            self.list.packages = done.collect();
            self.list.save(&path)?;
            self.workshop.finish_entry(&id);
        }
        self.list.packages = order.iter().filter_map(|package| entries.get(package).cloned()).collect();
        let whole = self.list.clone();
        // Remove the entries of packages that failed because of this machine or the index, so that the next command
        // tries them again.
        self.list.packages.retain(|entry| !unfinished.contains(&entry.package));
        self.list.save(&path)?;
        let html = self.workshop.suite.root().join("factory.html");
        fs::write(&html, page(&whole)?).map_err(|error| Error::io("write", &html, error))?;
        let _ = fs::remove_dir_all(&self.journal);
        Ok(whole)
    }

    /// Asks the index for newer versions of a list's packages. [`Factory::make`] then compares each newer version with
    /// the version in the list. Returns the newer ones as `name==version`, and one line for each package that has no
    /// newer version.
    pub async fn newer(&self, known: &FactoryList) -> (Vec<String>, Vec<String>) {
        let (mut asked, mut without) = (Vec::new(), Vec::new());
        let mut earlier = BTreeMap::new();
        for entry in known.packages.iter().filter(|entry| entry.measured.is_some()) {
            let Some(source) = &entry.source else { continue };
            let Some((name, version)) = source.in_index(&entry.package, &entry.version) else {
                without.push(format!("{}: its sources are not from an index", entry.package));
                continue;
            };
            match self.workshop.fetcher.newer(&name, &version).await {
                Ok(Some(newer)) => {
                    let package = format!("{name}=={newer}");
                    earlier.insert(package.clone(), source.clone());
                    asked.push(package);
                }
                Ok(None) => without.push(format!("{name}: {version} is the newest version")),
                Err(error) => without.push(format!("{name}: {}", error.message)),
            }
        }
        // `set` fails only if `newer` was called before. Ignore this error, because `newer` is called once per factory.
        let _ = self.workshop.earlier.set(earlier);
        (asked, without)
    }

    /// Makes the suite of a list again: fetches the sources that the list names, and checks that every file has the
    /// digest that the list gives for it. Runs no code of the packages. If the suite already has some of the list's
    /// packages, checks these and makes only the others. After each package, its entry is added to the suite's own
    /// list.
    ///
    /// # Errors
    /// Kind `Usage` if the suite has packages that the list does not have, and one error per package whose sources
    /// cannot be fetched or whose files differ. The suite gets neither files nor an entry of such a package.
    pub async fn rebuild(mut self, mut list: FactoryList, observer: &dyn Observer) -> Result<FactoryList> {
        let finished = std::mem::take(&mut self.list.packages);
        if let Some(other) = finished.iter().find(|entry| !list.packages.contains(entry)) {
            return Err(Error::usage(format!("the suite has a package `{}` that is not in the list", other.package))
                .hint("give the name of a new folder"));
        }
        let root = self.workshop.suite.root().to_owned();
        let mut errors = Vec::new();
        let listed = std::mem::take(&mut list.packages);
        self.list = list;
        for entry in listed {
            let is_finished = finished.contains(&entry);
            let made = if entry.measured.is_none() {
                Ok(())
            } else if is_finished {
                require_digests(&root, &entry)
            } else {
                observer.on(RunEvent::Stage(crate::run::event::Stage::new("making", &entry.package)));
                self.workshop.rebuild(&entry).await
            };
            let is_made = made.is_ok() || is_finished;
            errors.extend(made.err().map(|error| {
                let message = format!("package `{}`: {}", entry.package, error.message);
                Error { message, ..error }
            }));
            if is_made {
                let id = entry.id.clone();
                self.list.packages.push(entry);
                self.list.save(&root.join(LIST))?;
                self.workshop.finish_entry(&id);
            }
        }
        self.list.save(&root.join(LIST))?;
        let html = root.join("factory.html");
        fs::write(&html, page(&self.list)?).map_err(|error| Error::io("write", &html, error))?;
        let _ = fs::remove_dir_all(&self.journal);
        Error::all(errors).map_or(Ok(self.list), Err)
    }
}
