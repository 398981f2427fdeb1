//! A run's location: a folder to be created once the run's items (such as papers) are ready, or the store of a run to
//! resume.

use std::path::{Path, PathBuf};

use super::Shards;
use crate::error::{Error, FailureKind, Result};
use crate::run::event::{Observer, RunEvent};
use crate::run::run_file::FORMAT;
use crate::run::shared::Sharing;
use crate::run::store::Writer;
use crate::run::{Configuration, Digests, PlannedAttempts, RunFile, SessionFacts, Store};

/// The folder of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFolder {
    /// The run's folder, which must not exist.
    New(PathBuf),
    /// A subfolder of this folder, named after the current time.
    NamedByTime(PathBuf),
    /// This folder, which another process of the same run may have created or may create at the same time.
    Shared(PathBuf),
}

/// Location of a run.
pub(super) enum RunLocation {
    /// A folder to create. If another process creates it first: with `by_time`, the folder is named after the time, and
    /// another name is chosen; with `may_exist`, this process joins the run in it.
    New { folder: PathBuf, by_time: bool, may_exist: bool },
    /// The store of an existing run. No other process writes to the store while the writer exists. A shared run has no
    /// writer.
    Stored { store: Store, writer: Option<Writer>, run: Box<RunFile> },
}

/// Contents of `run.json` when the session's first attempt begins.
pub(super) struct RunStart {
    pub(super) configuration: Configuration,
    pub(super) planned: Vec<PlannedAttempts>,
    pub(super) digests: Digests,
    pub(super) facts: SessionFacts,
    /// Digest of the planned attempts.
    pub(super) plan: String,
}

/// A run's folder, ready for its attempts.
pub(super) struct OpenedRun {
    pub(super) store: Store,
    pub(super) run: RunFile,
    /// Writer for a single process; `None` if several share the run.
    pub(super) writer: Option<Writer>,
    /// Changes since the run was planned, for example of the suite or the prompts, which the user has accepted.
    pub(super) differences: Vec<String>,
}

impl RunLocation {
    /// Chooses the location of a new run.
    ///
    /// # Errors
    /// Kind `Taken` if the folder exists, `Store` if it could not be created.
    pub(super) fn new(folder: RunFolder) -> Result<Self> {
        let (folder, by_time, may_exist) = match folder {
            RunFolder::New(folder) => (folder, false, false),
            RunFolder::NamedByTime(runs) => (runs.join(name_by_time(&runs)), true, false),
            RunFolder::Shared(folder) => (folder, false, true),
        };
        if !may_exist || !folder.join("run.json").exists() {
            Store::is_free(&folder)?;
        }
        Ok(Self::New { folder, by_time, may_exist })
    }

    /// The run's folder.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::New { folder, .. } => folder,
            Self::Stored { store, .. } => store.folder(),
        }
    }

    /// Fails for a stored run if its suite, envs or anything else that its results depend on has changed. `now`
    /// computes the current digests.
    ///
    /// # Errors
    /// Kind `Suite`, and the errors of `now`.
    pub(super) fn refuse(&self, now: impl FnOnce(&Digests) -> Result<Digests>) -> Result<()> {
        let Self::Stored { run, .. } = self else { return Ok(()) };
        let differences = run.digests.differences(&now(&run.digests)?);
        differences.first().map_or(Ok(()), |first| Err(changed(first)))
    }

    /// Creates or opens the run's folder, and writes `run.json`, except when joining a shared run. If a stored run's
    /// suite, envs or prompts have changed since the run was started, and the changes are accepted, records and reports
    /// these changes.
    ///
    /// # Errors
    /// Kind `Suite` for changes that aren't accepted; `Taken` if the folder has been created meanwhile, or if its run
    /// is not shared; `Store` if the run cannot be read or written; `Usage` if the shared run there has another plan or
    /// other settings.
    pub(super) fn begin(
        self,
        begun: RunStart,
        accept_changes: bool,
        shards: Option<&Shards>,
        observer: &dyn Observer,
    ) -> Result<OpenedRun> {
        match self {
            Self::New { folder, by_time, may_exist } => {
                let sharing = shards.map(|shards| Sharing {
                    plan: begun.plan.clone(),
                    claim_timeout: shards.claim_timeout.as_secs_f64(),
                });
                let (configuration, digests) = (begun.configuration.clone(), begun.digests.clone());
                let plan = begun.plan.clone();
                match create(folder.clone(), by_time, begun, sharing) {
                    Err(error) if error.kind == FailureKind::Taken && may_exist => {
                        let (store, run) = Store::open(&folder)?;
                        same_plan(&run, &plan, &folder)?;
                        same_settings(&run.configuration, &configuration, &folder)?;
                        let differences = unchanged(&run, &digests, accept_changes, observer)?;
                        Ok(OpenedRun { store, run, writer: None, differences })
                    }
                    Err(error) => Err(error),
                    Ok((store, run)) => {
                        let writer = if shards.is_some() { None } else { Some(store.writer()?) };
                        Ok(OpenedRun { store, run, writer, differences: Vec::new() })
                    }
                }
            }
            Self::Stored { store, writer, mut run } => {
                if writer.is_none() {
                    same_plan(&run, &begun.plan, store.folder())?;
                }
                let differences = unchanged(&run, &begun.digests, accept_changes, observer)?;
                if writer.is_some() {
                    run.sessions.push(SessionFacts { differences: differences.clone(), ..begun.facts });
                    store.save_run(&run)?;
                }
                Ok(OpenedRun { store, run: *run, writer, differences })
            }
        }
    }
}

/// Compares the current digests with those of the run. Reports and returns the differences, or fails if there are some
/// and `accept_changes` is false.
fn unchanged(run: &RunFile, now: &Digests, accept_changes: bool, observer: &dyn Observer) -> Result<Vec<String>> {
    let differences = run.digests.differences(now);
    if let Some(first) = differences.first().filter(|_| !accept_changes) {
        return Err(changed(first));
    }
    for difference in &differences {
        observer.on(RunEvent::Warning(difference.clone()));
    }
    Ok(differences)
}

/// Fails if the run is not shared, or its plan differs from the plan that this process has made.
fn same_plan(run: &RunFile, plan: &str, folder: &Path) -> Result<()> {
    match &run.sharing {
        None => Err(Error::new(
            FailureKind::Taken,
            format!("run `{}` was not planned to be shared among several processes or machines", folder.display()),
        )
        .hint("plan a shared run with `run --plan-only` or `run --shard`, under another `--name`")),
        Some(sharing) if sharing.plan == plan => Ok(()),
        Some(_) => {
            Err(Error::usage(format!("run `{}` was planned with other samples, agents or attempts", folder.display()))
                .hint(
                    "give every shard the same options and suite, or just run `autoexperiment resume RUN --shard I/N`",
                ))
        }
    }
}

/// Fails if the settings differ from those with which the run was planned, except the number of parallel attempts.
fn same_settings(planned: &Configuration, own: &Configuration, folder: &Path) -> Result<()> {
    let value = |configuration: &Configuration| {
        let mut value = serde_json::to_value(configuration).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.remove("jobs");
        }
        value
    };
    let (planned, own) = (value(planned), value(own));
    let differs = |name: &&String| planned.get(name.as_str()) != own.get(name.as_str());
    // Settings at their defaults are left out, so a name may be missing on either side.
    let names = [&planned, &own].into_iter().filter_map(serde_json::Value::as_object).flat_map(serde_json::Map::keys);
    match names.into_iter().find(differs) {
        None => Ok(()),
        Some(name) => {
            Err(Error::usage(format!("run `{}` was planned with other settings (`{name}`)", folder.display()))
                .hint("give every shard the same options, or just run `autoexperiment resume RUN --shard I/N`"))
        }
    }
}

fn changed(difference: &str) -> Error {
    Error::suite(difference).hint(
        "its attempts would no longer be comparable: undo the change, start a new run, or continue anyway with \
         `--changed-suite`",
    )
}

/// Creates a new run's folder. If the name was made from the time and has been taken meanwhile, chooses another name.
fn create(mut folder: PathBuf, by_time: bool, begun: RunStart, sharing: Option<Sharing>) -> Result<(Store, RunFile)> {
    let runs = folder.parent().unwrap_or(Path::new(".")).to_owned();
    let mut run = RunFile {
        format: FORMAT,
        run: String::new(),
        created: begun.facts.started,
        command_line: std::env::args().collect(),
        configuration: begun.configuration,
        digests: begun.digests,
        planned: begun.planned,
        // In a shared run, each process stores the facts about its session in its own file.
        sessions: if sharing.is_some() { Vec::new() } else { vec![begun.facts] },
        sharing,
    };
    loop {
        run.run = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match Store::create(&folder, &run) {
            Err(error) if error.kind == FailureKind::Taken && by_time => folder = runs.join(name_by_time(&runs)),
            created => return created.map(|store| (store, run)),
        }
    }
}

/// Returns a name, made from the current time, that is free in this folder.
fn name_by_time(runs: &Path) -> String {
    let now = crate::files::now().strftime("%Y-%m-%dT%H-%M-%SZ").to_string();
    let mut name = now.clone();
    let mut number = 2;
    while runs.join(&name).exists() {
        name = format!("{now}-{number}");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_run_name_is_an_error_and_a_name_made_from_the_time_is_always_free() {
        let runs = tempfile::tempdir().unwrap();
        let chosen = runs.path().join("sweep");
        std::fs::create_dir(&chosen).unwrap();
        let error = RunLocation::new(RunFolder::New(chosen)).map(drop).unwrap_err();
        assert_eq!(error.kind, FailureKind::Taken);
        let free = || RunLocation::new(RunFolder::NamedByTime(runs.path().to_owned())).unwrap().folder().to_owned();
        let first = free();
        std::fs::create_dir(&first).unwrap();
        assert_ne!(free(), first);
    }
}
