//! Where a run is kept: a folder that is made when its papers are ready, or the store of a run that goes on.

use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::run::event::{Observer, RunEvent};
use crate::run::run_file::FORMAT;
use crate::run::store::Writer;
use crate::run::{Configuration, Digests, Planned, RunFile, SessionFacts, Store};

/// The folder of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folder {
    /// This one, which must not exist.
    New(PathBuf),
    /// One in this folder, named after the time.
    NamedByTime(PathBuf),
}

/// Where a run is kept.
pub(super) enum Place {
    /// In this folder, which does not exist yet. If `by_time`, in another one where this name is taken by then.
    New { folder: PathBuf, by_time: bool },
    /// In this store, which nobody else writes to.
    Stored { store: Store, writer: Writer, run: Box<RunFile> },
}

/// What `run.json` says of a run when the session's first attempt begins.
pub(super) struct Begun {
    pub(super) configuration: Configuration,
    pub(super) planned: Vec<Planned>,
    pub(super) digests: Digests,
    pub(super) facts: SessionFacts,
}

impl Place {
    /// That of a new run.
    ///
    /// # Errors
    /// Kind `Taken` when the folder exists, `Store` when it could not be made.
    pub(super) fn new(folder: Folder) -> Result<Self> {
        let (folder, by_time) = match folder {
            Folder::New(folder) => (folder, false),
            Folder::NamedByTime(runs) => (runs.join(name_by_time(&runs)), true),
        };
        Store::is_free(&folder)?;
        Ok(Self::New { folder, by_time })
    }

    /// The run's folder.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::New { folder, .. } => folder,
            Self::Stored { store, .. } => store.folder(),
        }
    }

    /// Writes `run.json`. What has changed since a stored run was started is recorded and told, if that is accepted.
    ///
    /// # Errors
    /// Kind `Suite` for changes that are not accepted, `Taken` when the folder exists by now, `Store` when it cannot be
    /// written.
    pub(super) fn begin(self, begun: Begun, accept_changes: bool, observer: &dyn Observer) -> Result<(Store, Writer)> {
        match self {
            Self::New { folder, by_time } => {
                let store = create(folder, by_time, begun)?;
                let writer = store.writer()?;
                Ok((store, writer))
            }
            Self::Stored { store, writer, mut run } => {
                let mut facts = begun.facts;
                facts.differences = run.digests.differences(&begun.digests);
                if let Some(first) = facts.differences.first().filter(|_| !accept_changes) {
                    return Err(Error::suite(first.clone()).hint(
                        "its attempts would no longer be of one kind: undo the change, start a new run, or go on all \
                         the same with `--changed-suite`",
                    ));
                }
                for difference in &facts.differences {
                    observer.on(RunEvent::Warning(difference.clone()));
                }
                run.sessions.push(facts);
                store.save_run(&run)?;
                Ok((store, writer))
            }
        }
    }
}

/// Makes a new run's folder. A name after the time that has been taken meanwhile is changed.
fn create(mut folder: PathBuf, by_time: bool, begun: Begun) -> Result<Store> {
    let runs = folder.parent().unwrap_or(Path::new(".")).to_owned();
    let mut run = RunFile {
        format: FORMAT,
        run: String::new(),
        created: begun.facts.started,
        command_line: std::env::args().collect(),
        configuration: begun.configuration,
        digests: begun.digests,
        planned: begun.planned,
        sessions: vec![begun.facts],
    };
    loop {
        run.run = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match Store::create(&folder, &run) {
            Err(error) if error.kind == Kind::Taken && by_time => folder = runs.join(name_by_time(&runs)),
            created => return created,
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
