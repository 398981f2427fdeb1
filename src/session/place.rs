//! Where a run is kept: a folder that is made when its papers are ready, or the store of a run that goes on.

use std::path::{Path, PathBuf};

use super::Shards;
use crate::error::{Error, Kind, Result};
use crate::run::event::{Observer, RunEvent};
use crate::run::run_file::FORMAT;
use crate::run::shared::Sharing;
use crate::run::store::Writer;
use crate::run::{Configuration, Digests, Planned, RunFile, SessionFacts, Store};

/// The folder of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folder {
    /// This one, which must not exist.
    New(PathBuf),
    /// One in this folder, named after the time.
    NamedByTime(PathBuf),
    /// This one, which another process of the same run may have made, or makes at the same time.
    Shared(PathBuf),
}

/// Where a run is kept.
pub(super) enum Place {
    /// In this folder, which does not exist yet. If `by_time`, in another one where this name is taken by then.
    New { folder: PathBuf, by_time: bool, may_exist: bool },
    /// In this store. Nobody else writes to it while its writer is held, which a run that several work on has not.
    Stored { store: Store, writer: Option<Writer>, run: Box<RunFile> },
}

/// What `run.json` says of a run when the session's first attempt begins.
pub(super) struct Begun {
    pub(super) configuration: Configuration,
    pub(super) planned: Vec<Planned>,
    pub(super) digests: Digests,
    pub(super) facts: SessionFacts,
    /// Digest of the planned attempts.
    pub(super) plan: String,
}

/// A run's folder, ready for its attempts.
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) run: RunFile,
    /// How it is written by one process alone; `None` where several work on it.
    pub(super) writer: Option<Writer>,
    /// What has changed since the run was planned, and was accepted.
    pub(super) differences: Vec<String>,
}

impl Place {
    /// That of a new run.
    ///
    /// # Errors
    /// Kind `Taken` when the folder exists, `Store` when it could not be made.
    pub(super) fn new(folder: Folder) -> Result<Self> {
        let (folder, by_time, may_exist) = match folder {
            Folder::New(folder) => (folder, false, false),
            Folder::NamedByTime(runs) => (runs.join(name_by_time(&runs)), true, false),
            Folder::Shared(folder) => (folder, false, true),
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

    /// Refuses a stored run whose digests differ from these.
    ///
    /// # Errors
    /// Kind `Suite`.
    pub(super) fn refuse(&self, now: impl FnOnce(&Digests) -> Result<Digests>) -> Result<()> {
        let Self::Stored { run, .. } = self else { return Ok(()) };
        let differences = run.digests.differences(&now(&run.digests)?);
        differences.first().map_or(Ok(()), |first| Err(changed(first)))
    }

    /// Writes `run.json`. What has changed since a stored run was started is recorded and told, if that is accepted.
    ///
    /// # Errors
    /// Kind `Suite` for changes that are not accepted, `Taken` when the folder exists by now, `Store` when it cannot be
    /// written, `Usage` when the run that another process has made is another.
    pub(super) fn begin(
        self,
        begun: Begun,
        accept_changes: bool,
        shards: Option<&Shards>,
        observer: &dyn Observer,
    ) -> Result<Opened> {
        match self {
            Self::New { folder, by_time, may_exist } => {
                let sharing = shards.map(|shards| Sharing {
                    plan: begun.plan.clone(),
                    claim_timeout: shards.claim_timeout.as_secs_f64(),
                });
                let (configuration, digests) = (begun.configuration.clone(), begun.digests.clone());
                let plan = begun.plan.clone();
                match create(folder.clone(), by_time, begun, sharing) {
                    Err(error) if error.kind == Kind::Taken && may_exist => {
                        let (store, run) = Store::open(&folder)?;
                        same_plan(&run, &plan, &folder)?;
                        same_settings(&run.configuration, &configuration, &folder)?;
                        let differences = unchanged(&run, &digests, accept_changes, observer)?;
                        Ok(Opened { store, run, writer: None, differences })
                    }
                    Err(error) => Err(error),
                    Ok((store, run)) => {
                        let writer = if shards.is_some() { None } else { Some(store.writer()?) };
                        Ok(Opened { store, run, writer, differences: Vec::new() })
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
                Ok(Opened { store, run: *run, writer, differences })
            }
        }
    }
}

/// What has changed since a run was started, if that is accepted.
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

/// Refuses to work on a run with another plan than this process has made.
fn same_plan(run: &RunFile, plan: &str, folder: &Path) -> Result<()> {
    match &run.sharing {
        None => Err(Error::new(Kind::Taken, format!("run `{}` is one that a single process makes", folder.display()))
            .hint("plan a run for several with `run --plan-only` or `run --shard`, under another `--name`")),
        Some(sharing) if sharing.plan == plan => Ok(()),
        Some(_) => Err(Error::usage(format!(
            "run `{}` was planned with other samples, agents or attempts",
            folder.display()
        ))
        .hint("give every shard the same options and the same suite, or only `autoexperiment resume RUN --shard I/N`")),
    }
}

/// Refuses settings other than those that a run was planned with. How many attempts are made at once is each process's own.
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
    match own.as_object().into_iter().flat_map(serde_json::Map::keys).find(differs) {
        None => Ok(()),
        Some(name) => {
            Err(Error::usage(format!("run `{}` was planned with other settings (`{name}`)", folder.display()))
                .hint("give every shard the same options, or only `autoexperiment resume RUN --shard I/N`"))
        }
    }
}

fn changed(difference: &str) -> Error {
    Error::suite(difference).hint(
        "its attempts would no longer be of one kind: undo the change, start a new run, or go on all the same with \
         `--changed-suite`",
    )
}

/// Makes a new run's folder. A name after the time that has been taken meanwhile is changed.
fn create(mut folder: PathBuf, by_time: bool, begun: Begun, sharing: Option<Sharing>) -> Result<(Store, RunFile)> {
    let runs = folder.parent().unwrap_or(Path::new(".")).to_owned();
    let mut run = RunFile {
        format: FORMAT,
        run: String::new(),
        created: begun.facts.started,
        command_line: std::env::args().collect(),
        configuration: begun.configuration,
        digests: begun.digests,
        planned: begun.planned,
        // Each of several processes keeps its own session.
        sessions: if sharing.is_some() { Vec::new() } else { vec![begun.facts] },
        sharing,
    };
    loop {
        run.run = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match Store::create(&folder, &run) {
            Err(error) if error.kind == Kind::Taken && by_time => folder = runs.join(name_by_time(&runs)),
            created => return created.map(|store| (store, run)),
        }
    }
}

/// A name for a run that none in this folder has: the time.
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
    fn a_taken_name_is_an_error_where_the_user_chose_it_and_changed_where_it_is_the_time() {
        let runs = tempfile::tempdir().unwrap();
        let chosen = runs.path().join("sweep");
        std::fs::create_dir(&chosen).unwrap();
        let error = Place::new(Folder::New(chosen)).map(drop).unwrap_err();
        assert_eq!(error.kind, Kind::Taken);
        let free = || Place::new(Folder::NamedByTime(runs.path().to_owned())).unwrap().folder().to_owned();
        let first = free();
        std::fs::create_dir(&first).unwrap();
        assert_ne!(free(), first);
    }
}
