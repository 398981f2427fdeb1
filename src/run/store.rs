//! The run store: a folder of plain files that survives a kill at any moment.
//!
//! ```text
//! runs/<run>/run.json                 configuration of the run, format version first
//! runs/<run>/attempts.jsonl           one line per finished attempt: append, flush
//! runs/<run>/attempts-<shard>.jsonl   the same, of one process (shard) of a shared run
//! runs/<run>/ledger.jsonl             costs of model calls, as they are made; and ledger-<shard>.jsonl
//! runs/<run>/trajectories/<agent>/<sample>.<attempt>.jsonl
//! runs/<run>/diffs/<agent>/<sample>.<attempt>.patch
//! ```
//!
//! [`super::shared`] describes the other files of a run that several processes work on.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use nix::libc;

use super::run_file::{FORMAT, RunFile, SessionFacts};
use super::{AttemptRecord, duplicates, shared};
use crate::agent::{Event, TimedEvent, Trajectory};
use crate::error::{Error, FailureKind, Result};
use crate::files::{
    Appender, Temporary, bounded, files_of_shards, json_lines, may_be_bounded, write_all, write_durably,
};
use crate::model::ledger::{self, Ledger, RunLedgers};

/// A run's folder.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// The trajectory of an attempt's last try. Agent, sample and attempt are read from the file's path or, if the path
/// shortens names, from the file's first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTrajectory {
    /// The agent's label.
    pub agent: String,
    /// The sample's id.
    pub sample: String,
    /// The attempt's number.
    pub attempt: u32,
    /// The file.
    pub path: PathBuf,
}

/// Whether an untrusted name of an agent, a sample or a paper is safe as part of a path.
#[must_use]
pub fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

/// A store opened for writing by one process.
pub struct Writer {
    attempts: Appender,
    path: PathBuf,
    /// Whether somebody has removed or replaced the records file. Its contents are then saved to another file, once.
    is_displaced: bool,
    // Held while the run is being written; the kernel releases it when the process dies. A shard has its own files and
    // no lock, because not every shared file system supports locks.
    _lock: Option<File>,
}

impl Store {
    /// Checks that a new run could have this folder: it does not exist, and its parent can be written. Called before
    /// any work is done.
    ///
    /// # Errors
    /// Kind `Taken` if the folder exists, `Store` if it cannot be created.
    pub fn is_free(folder: &Path) -> Result<()> {
        if folder.symlink_metadata().is_ok() {
            return Err(exists(folder));
        }
        new_folder_beside(folder).map(drop)
    }

    /// Removes folders in `runs` left by processes that were killed before starting their run.
    pub fn sweep(runs: &Path) {
        crate::files::sweep(runs, STARTING);
    }

    /// Creates a new run's folder with its `run.json`, completely or not at all.
    ///
    /// # Errors
    /// Kind `Taken` if the folder exists, `Store` if it cannot be created.
    pub fn create(folder: &Path, run: &RunFile) -> Result<Self> {
        let made = new_folder_beside(folder)?;
        write_run(made.path(), run)?;
        // Renaming never replaces an existing run, because `rename` replaces a folder only if that folder is empty.
        match std::fs::rename(made.path(), folder) {
            Ok(()) => Ok(Self { folder: folder.to_owned() }),
            Err(_) if folder.symlink_metadata().is_ok() => Err(exists(folder)),
            Err(error) => Err(write_failed(folder, error)),
        }
    }

    /// Replaces `run.json`, completely or not at all.
    ///
    /// # Errors
    /// Kind `Store` if it cannot be written.
    pub fn save_run(&self, run: &RunFile) -> Result<()> {
        write_run(&self.folder, run)
    }

    /// Opens an existing run.
    ///
    /// # Errors
    /// Kind `Store` if the folder is not a run, if its `run.json` is broken or has a format version that this program
    /// does not know, or if the names of its shards cannot be read.
    pub fn open(folder: &Path) -> Result<(Self, RunFile)> {
        let path = folder.join("run.json");
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Error::store(format!("`{}` is not a run", folder.display()))
                .because(error)
                .hint("name a run's folder, or a run under `--runs DIR`; `ls runs` lists them")
        })?;
        let broken = |error: serde_json::Error| {
            Error::store(format!("broken run file: {error}")).at(&path, Some(error.line())).hint(
                "`autoexperiment report` and `view` show what can still be read; remove the folder if it is of no use",
            )
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(broken)?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        if format != Some(u64::from(FORMAT)) {
            let found = format.map_or("of an unknown format".to_owned(), |format| format!("of format {format}"));
            return Err(Error::store(format!("the run is {found}, this version reads format {FORMAT}"))
                .at(&path, None)
                .hint("use the version of autoexperiment that wrote it, or a newer one"));
        }
        let mut run: RunFile = serde_json::from_value(value).map_err(broken)?;
        let store = Self { folder: folder.to_owned() };
        if run.sharing.is_some() {
            run.sessions.extend(store.shard_sessions()?);
            run.sessions.sort_by_key(|session| session.started);
        }
        Ok((store, run))
    }

    /// Refers to a folder that is assumed to hold a run, without checking.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Whether `run.json` has another format version than this program reads.
    #[must_use]
    pub fn is_of_other_format(&self) -> bool {
        let text = std::fs::read(self.folder.join("run.json")).unwrap_or_default();
        let format = serde_json::from_slice::<serde_json::Value>(&text).ok().and_then(|run| run.get("format").cloned());
        format.is_some_and(|format| format.as_u64() != Some(u64::from(FORMAT)))
    }

    /// Names of all processes that have worked on a shared run, sorted.
    ///
    /// # Errors
    /// Kind `Store` if the folder cannot be read.
    pub fn shard_names(&self) -> Result<Vec<String>> {
        let folder = shared::shards(&self.folder);
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| read_failed(&folder, error))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".beat")?.to_owned())).collect();
        names.sort();
        Ok(names)
    }

    /// Sessions of all processes that have worked on a shared run; unreadable ones are left out.
    fn shard_sessions(&self) -> Result<Vec<SessionFacts>> {
        let folder = shared::shards(&self.folder);
        let read = |name: String| std::fs::read(folder.join(format!("{name}.json"))).ok();
        let texts = self.shard_names()?.into_iter().filter_map(read);
        Ok(texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect())
    }

    /// Whether a process is writing to the run: a process on this machine or, if the run is shared, on any machine.
    #[must_use]
    pub fn is_being_written(&self) -> bool {
        if shared::beat::any_recent(&shared::shards(&self.folder)) {
            return true;
        }
        // Tries to get a shared lock and releases it at once. A writer that starts at this very moment is refused and
        // can be started again.
        File::open(self.folder.join("lock"))
            .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)))
    }

    /// The run's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of an attempt's trajectory.
    #[must_use]
    pub fn trajectory(&self, agent: &str, sample: &str, attempt: u32) -> PathBuf {
        self.folder.join("trajectories").join(&*bounded(agent)).join(format!("{}.{attempt}.jsonl", bounded(sample)))
    }

    /// Creates the trajectory of an attempt. The trajectory of an earlier try, which was lost to infrastructure, is
    /// kept next to it as `<sample>.<attempt>.lost-<number>.jsonl`.
    ///
    /// # Errors
    /// Kind `Store` if it cannot be written.
    pub fn new_trajectory(&self, agent: &str, sample: &str, attempt: u32) -> Result<Trajectory> {
        let path = self.trajectory(agent, sample, attempt);
        if path.exists() {
            let free = (1..=u32::MAX).map(|number| lost_try(&path, number)).find(|earlier| !earlier.exists());
            let earlier = free.ok_or_else(|| {
                Error::internal("an attempt was tried so often that no file name is left for a trajectory")
            })?;
            std::fs::rename(&path, earlier).map_err(|error| write_failed(&path, error))?;
        }
        Trajectory::create(&path)
    }

    /// The trajectories of the last try of each attempt, sorted by agent. Leaves out the trajectories of earlier tries,
    /// which were lost, and files with other names.
    ///
    /// # Errors
    /// Kind `Store` if a folder cannot be read.
    pub fn trajectories(&self) -> Result<Vec<StoredTrajectory>> {
        let mut found = Vec::new();
        self.each_trajectory(|one| found.push(one))?;
        Ok(found)
    }

    /// Same as [`Self::trajectories`], but passes the trajectories to `each`, one after another.
    ///
    /// # Errors
    /// Kind `Store` if a folder cannot be read.
    pub fn each_trajectory(&self, mut each: impl FnMut(StoredTrajectory)) -> Result<()> {
        let folder = self.folder.join("trajectories");
        if !folder.exists() {
            return Ok(());
        }
        for entry in walkdir::WalkDir::new(&folder).min_depth(2).sort_by_file_name() {
            let entry =
                entry.map_err(|error| Error::store(format!("failed to read `{}`", folder.display())).because(error))?;
            let path = entry.into_path();
            let agent = path.parent().and_then(|parent| parent.strip_prefix(&folder).ok()).unwrap_or(Path::new(""));
            let agent = agent.to_string_lossy().into_owned();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // This skips files of lost tries: they end with `.lost-1.jsonl`, and `lost-1` is not a number.
            let attempt = name.strip_suffix(".jsonl").and_then(|stem| stem.rsplit_once('.'));
            let attempt = attempt.and_then(|(sample, number)| Some((sample.to_owned(), number.parse().ok()?)));
            if let Some((sample, attempt)) = attempt {
                let is_cut = may_be_bounded(&agent) || may_be_bounded(&sample);
                let (agent, sample) = is_cut.then(|| names_in(&path)).flatten().unwrap_or((agent, sample));
                each(StoredTrajectory { agent, sample, attempt, path });
            }
        }
        Ok(())
    }

    /// Path of an attempt's diff.
    #[must_use]
    pub fn diff(&self, agent: &str, sample: &str, attempt: u32) -> PathBuf {
        self.folder.join("diffs").join(&*bounded(agent)).join(format!("{}.{attempt}.patch", bounded(sample)))
    }

    /// Stores an attempt's diff, flushed to disk.
    ///
    /// # Errors
    /// Kind `Store` if it cannot be written.
    pub fn save_diff(&self, agent: &str, sample: &str, attempt: u32, patch: &[u8]) -> Result<()> {
        let path = self.diff(agent, sample, attempt);
        let written = File::create(&path).and_then(|mut file| {
            write_all(&mut file, &path, patch)?;
            file.sync_data()
        });
        written.map_err(|error| write_failed(&path, error))
    }

    /// Creates the folders for an agent's trajectories and diffs.
    ///
    /// # Errors
    /// Kind `Store` if they cannot be created.
    pub fn make_folders(&self, agent: &str) -> Result<()> {
        for folder in ["trajectories", "diffs"] {
            let folder = self.folder.join(folder).join(&*bounded(agent));
            std::fs::create_dir_all(&folder).map_err(|error| write_failed(&folder, error))?;
        }
        Ok(())
    }

    /// Paths of the files that hold records, sorted by name: a single file or, in a shared run, one for each process.
    ///
    /// # Errors
    /// Kind `Store` if the folder cannot be read.
    pub fn record_files(&self) -> Result<Vec<PathBuf>> {
        files_of_shards(&self.folder, "attempts").map_err(|error| read_failed(&self.folder, error))
    }

    /// All records, in the order in which they were written or, if they come from several files, sorted by the start of
    /// the attempts. An incomplete last line is dropped. If two processes made the same attempt, only one of its
    /// records has a verdict.
    ///
    /// # Errors
    /// Kind `Store` if a file cannot be read or, with file and line, if a complete line is invalid.
    pub fn records(&self) -> Result<Vec<AttemptRecord>> {
        let mut records = Vec::new();
        let files = self.record_files()?;
        for path in &files {
            let text = std::fs::read(path).map_err(|error| read_failed(path, error))?;
            for line in json_lines(&text).filter(|line| line.is_ended) {
                records.push(line.value.map_err(|error| {
                    Error::store(format!("broken line: {error}"))
                        .at(path, Some(line.number))
                        .hint("remove the line to have that attempt run again; the others are kept")
                })?);
            }
        }
        if files.len() > 1 {
            duplicates::resolve_duplicates(&mut records, &mut [(); 0]);
        }
        Ok(records)
    }

    /// Reads the run's ledgers; `None` if it has none, like runs of earlier versions.
    ///
    /// # Errors
    /// Kind `Store` if a ledger cannot be read.
    pub fn books(&self) -> Result<Option<RunLedgers>> {
        ledger::books(&self.folder)
    }

    /// Opens the ledger for writing. Only the process that holds the [lock](Self::lock) may do so.
    ///
    /// # Errors
    /// Kind `Store` if it cannot be written.
    pub fn ledger(&self) -> Result<Ledger> {
        let path = self.ledger_path();
        Ledger::open(&path).map_err(|error| write_failed(&path, error))
    }

    /// Path of the ledger that belongs to no shard.
    #[must_use]
    pub fn ledger_path(&self) -> PathBuf {
        self.folder.join("ledger.jsonl")
    }

    /// Path of a shard's ledger.
    #[must_use]
    pub fn shard_ledger_path(&self, shard: &str) -> PathBuf {
        self.folder.join(format!("ledger-{shard}.jsonl"))
    }

    /// Opens a shard's ledger for writing. Only the process named `shard` may do so.
    ///
    /// # Errors
    /// Kind `Store` if it cannot be written.
    pub fn shard_ledger(&self, shard: &str) -> Result<Ledger> {
        let path = self.shard_ledger_path(shard);
        Ledger::open(&path).map_err(|error| write_failed(&path, error))
    }

    /// Opens a shard's records for appending. Only the process named `shard` may do so.
    ///
    /// # Errors
    /// Kind `Store` if they cannot be written.
    pub fn shard_writer(&self, shard: &str) -> Result<Writer> {
        let path = self.folder.join(format!("attempts-{shard}.jsonl"));
        let attempts = Appender::resume(&path).map_err(|error| write_failed(&path, error))?.durable();
        Ok(Writer { attempts, path, is_displaced: false, _lock: None })
    }

    /// The error for a ledger that could not be written.
    #[must_use]
    pub fn ledger_failed(&self, why: &str) -> Error {
        write_failed(&self.ledger_path(), std::io::Error::other(why.to_owned()))
            .hint("free some space, then continue with `autoexperiment resume RUN`: what was finished is kept")
    }

    /// The trajectories of all tries of an attempt, in order. The earlier tries were lost to infrastructure.
    #[must_use]
    pub fn tries(&self, agent: &str, sample: &str, attempt: u32) -> Vec<PathBuf> {
        let path = self.trajectory(agent, sample, attempt);
        let lost = (1..=u32::MAX).map(|number| lost_try(&path, number)).take_while(|path| path.exists());
        lost.chain(path.exists().then(|| path.clone())).collect()
    }

    /// Locks the store against other writers until the file is dropped. Changes nothing else.
    ///
    /// # Errors
    /// Kind `Store` if another process writes to the store, or it cannot be locked.
    pub fn lock(&self) -> Result<File> {
        if shared::beat::any_recent(&shared::shards(&self.folder)) {
            return Err(Error::store(format!("shards are working on run `{}`", self.folder.display()))
                .hint("wait for them to end, or stop them; a killed shard counts as running for a minute"));
        }
        self.lock_beside_shards()?.ok_or_else(|| {
            Error::store(format!("the file system of `{}` has no locks", self.folder.display()))
                .hint("keep runs on a file system with locks: `--runs DIR`")
        })
    }

    /// Same as [`Store::lock`], but also locks a run on which shards are working. Returns `None` if the file system has
    /// no locks, as on some clusters. Shards need no lock, because their claims decide which process does what.
    ///
    /// # Errors
    /// Kind `Store` if another process holds the lock, or the file cannot be locked for another reason.
    pub fn lock_beside_shards(&self) -> Result<Option<File>> {
        let lock_path = self.folder.join("lock");
        let lock = File::create(&lock_path).map_err(|error| write_failed(&lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(std::fs::TryLockError::Error(error)) if has_no_locks(&error) => Ok(None),
            Err(std::fs::TryLockError::WouldBlock) => {
                Err(Error::store(format!("run `{}` is being written by another process", self.folder.display()))
                    .hint("wait for it to end, or stop it"))
            }
            Err(std::fs::TryLockError::Error(error)) => {
                Err(Error::store(format!("failed to lock `{}`", lock_path.display())).because(error))
            }
        }
    }

    /// Opens the store for appending, exclusively. Drops an incomplete last line first.
    ///
    /// # Errors
    /// Kind `Store` if another process writes to the store, or it cannot be written.
    pub fn writer(&self) -> Result<Writer> {
        let lock = self.lock()?;
        let path = self.folder.join("attempts.jsonl");
        let attempts = Appender::resume(&path).map_err(|error| write_failed(&path, error))?.durable();
        Ok(Writer { attempts, path, is_displaced: false, _lock: Some(lock) })
    }
}

/// Whether this error of locking a file says that its file system has no locks.
fn has_no_locks(error: &std::io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| [libc::ENOSYS, libc::EOPNOTSUPP, libc::ENOLCK].contains(&code))
}

impl Writer {
    /// Appends records and flushes them to disk together. The files that they refer to must already be on disk.
    ///
    /// # Errors
    /// Kind `Store` if a write fails, and the errors of [`Self::check`]. After a failed write, the last line may be
    /// incomplete; the next reader drops it.
    pub fn append<'a>(&mut self, records: impl IntoIterator<Item = &'a AttemptRecord>) -> Result<()> {
        self.attempts.append_all(records).map_err(|error| write_failed(&self.path, error))?;
        self.check()
    }

    /// Checks that the records file is still in place. If somebody has removed or replaced it, its contents are written
    /// next to it.
    ///
    /// # Errors
    /// Kind `Store`, naming the file with the rescued contents.
    pub fn check(&mut self) -> Result<()> {
        if self.is_displaced || self.attempts.is_in_place() {
            return Ok(());
        }
        self.is_displaced = true;
        let mut names = (1..=u32::MAX).map(|number| self.path.with_file_name(format!("rescued-{number}.jsonl")));
        let rescued = names.find(|path| !path.exists()).unwrap_or_else(|| self.path.clone());
        let kept = self.attempts.contents().map_err(|error| write_failed(&rescued, error))?;
        write_durably(&rescued, &kept).map_err(|error| Error { kind: FailureKind::Store, ..error })?;
        let what = format!("`{}` was removed or replaced while the run was writing it", self.path.display());
        Err(Error::store(what).hint(format!(
            "its records were saved to `{}`: move that file to `{}`, then continue with `autoexperiment resume RUN`",
            rescued.display(),
            self.path.display()
        )))
    }
}

/// The agent and the sample that the first line of the trajectory names.
fn names_in(trajectory: &Path) -> Option<(String, String)> {
    let mut line = String::new();
    BufReader::new(File::open(trajectory).ok()?).read_line(&mut line).ok()?;
    match serde_json::from_str::<TimedEvent>(&line).ok()?.event {
        Event::Started { agent, sample, .. } => Some((agent, sample)),
        _ => None,
    }
}

/// Path for the trajectory of a lost try.
fn lost_try(trajectory: &Path, number: u32) -> PathBuf {
    trajectory.with_extension(format!("lost-{number}.jsonl"))
}

fn write_run(folder: &Path, run: &RunFile) -> Result<()> {
    let mut text =
        serde_json::to_vec_pretty(run).map_err(|error| Error::internal("failed to serialise run").because(error))?;
    text.push(b'\n');
    write_durably(&folder.join("run.json"), &text).map_err(|error| Error { kind: FailureKind::Store, ..error })
}

/// Prefix of a run's folder while it is being created.
const STARTING: &str = ".starting-";

/// Creates a folder next to `folder`, with ordinary permissions; removed on drop unless it was moved.
fn new_folder_beside(folder: &Path) -> Result<Temporary> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = std::fs::create_dir_all(parent).and_then(|()| Temporary::create(parent, STARTING, 0o755));
    made.map_err(|error| write_failed(folder, error))
}

fn exists(folder: &Path) -> Error {
    let hint = if folder.join("run.json").exists() {
        format!("continue it with `autoexperiment resume {}`, or choose another `--name`", folder.display())
    } else {
        "choose another `--name`".to_owned()
    };
    Error::new(FailureKind::Taken, format!("`{}` exists", folder.display())).hint(hint)
}

pub(super) fn write_failed(path: &Path, error: std::io::Error) -> Error {
    let full = error.kind() == std::io::ErrorKind::StorageFull;
    Error::store(format!("failed to write `{}`", path.display())).because(error).hint(if full {
        "free some space, then continue with `autoexperiment resume RUN`: what was finished is kept"
    } else {
        "choose a folder that can be written with `--runs DIR`"
    })
}

fn read_failed(path: &Path, error: std::io::Error) -> Error {
    Error::store(format!("failed to read `{}`", path.display())).because(error)
}
