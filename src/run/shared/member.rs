//! One of the processes that work on a shared run: its name, its files, and the heartbeat that shows that it is alive.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::beat::{self, Heartbeat};
use super::claims::Claims;
use super::{Shard, shards};
use crate::error::{Error, FailureKind, Result};
use crate::files::{write_durably, write_once};
use crate::model::ledger::{Ledger, RunLedgers};
use crate::run::store::{Writer, write_failed};
use crate::run::{SessionFacts, Store};

/// Maximum number of starts of one shard.
const MOST_STARTS: u32 = 100_000;

/// This process as a member of a shared run.
pub struct Member {
    /// Name of this process: the shard's number. From the second start on, it is followed by the number of the start,
    /// such as `03-2`.
    pub name: String,
    /// The part of the run that this process starts with.
    pub shard: Shard,
    /// Writer of this process's records.
    pub writer: Writer,
    /// Ledger of this process's model calls.
    pub ledger: Arc<Ledger>,
    /// Shows the run's other processes that this process is alive.
    pub beat: Heartbeat,
    /// Start, program version, sandbox and other facts about this process's session.
    facts: SessionFacts,
}

impl Member {
    /// Joins a run, under a name that no process has used before.
    ///
    /// # Errors
    /// Kind `Store` if the run's folder cannot be written; kind `Machine` if other processes of the run use stronger or
    /// weaker sandboxes and `mixed` is not set.
    pub fn join(store: &Store, shard: Shard, timeout: Duration, facts: &SessionFacts, mixed: bool) -> Result<Self> {
        let folder = shards(store.folder());
        for part in [&folder, &store.folder().join("claims"), &store.folder().join("purse")] {
            std::fs::create_dir_all(part).map_err(|error| write_failed(part, error))?;
        }
        same_strength(&folder, facts, mixed)?;
        let name = new_name(&folder, shard)?;
        let beat = beat::file(&folder, &name);
        let buried = Claims::first(&store.folder().join("claims"), &Claims::after(&name));
        let beat = Heartbeat::start(&beat, timeout, buried).map_err(|error| write_failed(&beat, error))?;
        let facts = SessionFacts { shard: Some(name.clone()), node: node(), ..facts.clone() };
        save(&folder, &name, &facts)?;
        let writer = store.shard_writer(&name)?;
        let ledger = Arc::new(store.shard_ledger(&name)?);
        Ok(Self { name, shard, writer, ledger, beat, facts })
    }

    /// Records how this process's work ended, so that no other process cleans up after it.
    ///
    /// # Errors
    /// Kind `Store` if the end cannot be written.
    pub fn end(&mut self, store: &Store, how: &str) -> Result<()> {
        self.facts.ended = Some(how.to_owned());
        save(&shards(store.folder()), &self.name, &self.facts)?;
        self.beat.end_clean();
        Ok(())
    }

    /// Dollars that this process has spent, according to its ledger.
    ///
    /// # Errors
    /// Kind `Store` if the ledger cannot be read.
    pub fn spent(&self, store: &Store) -> Result<f64> {
        Ok(books(store, &self.name)?.total().dollars())
    }
}

/// Writes a session's file.
fn save(folder: &Path, name: &str, facts: &SessionFacts) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(facts)
        .map_err(|error| Error::internal("failed to serialise a session").because(error))?;
    text.push(b'\n');
    let kept = write_durably(&folder.join(format!("{name}.json")), &text);
    kept.map_err(|error| Error { kind: FailureKind::Store, ..error })
}

/// Reads the ledger of a process of a shared run.
pub(super) fn books(store: &Store, name: &str) -> Result<RunLedgers> {
    // A process that died early has no ledger.
    ledger_if_any(&store.shard_ledger_path(name))
}

fn ledger_if_any(path: &Path) -> Result<RunLedgers> {
    if path.exists() { RunLedgers::from_file(path) } else { Ok(RunLedgers::default()) }
}

/// Dollars that `autoexperiment pick` has spent on a shared run, according to the ledger that belongs to no shard.
///
/// # Errors
/// Kind `Store` if the ledger cannot be read.
pub(super) fn spent_by_pick(store: &Store) -> Result<f64> {
    Ok(ledger_if_any(&store.ledger_path())?.total().dollars())
}

/// Finds an unused name by creating its file, which only one process can do.
fn new_name(folder: &Path, shard: Shard) -> Result<String> {
    for start in 1..MOST_STARTS {
        let name = if start == 1 { shard.name() } else { format!("{}-{start}", shard.name()) };
        let path = beat::file(folder, &name);
        if !path.exists()
            && write_once(&path, Heartbeat::first().as_bytes(), false).map_err(|error| write_failed(&path, error))?
        {
            return Ok(name);
        }
    }
    Err(Error::store(format!("shard {shard} was started {} times, which is the maximum", MOST_STARTS - 1)))
}

/// Rejects a machine whose sandboxes differ in kind or strength from those of the run's first machine, unless `mixed`.
fn same_strength(folder: &Path, facts: &SessionFacts, mixed: bool) -> Result<()> {
    let own = std::iter::once(format!("sandbox `{}`", facts.sandbox)).chain(facts.warnings.clone());
    let own = own.collect::<Vec<_>>().join("\n") + "\n";
    let path = folder.join("sandbox.txt");
    let failed = |error| write_failed(&path, error);
    if mixed || write_once(&path, own.as_bytes(), false).map_err(failed)? {
        return Ok(());
    }
    let first = std::fs::read_to_string(&path).map_err(failed)?;
    if first == own {
        return Ok(());
    }
    let differing = |one: &str, other: &str| {
        let lines: Vec<&str> = one.lines().filter(|line| !other.lines().any(|known| known == *line)).collect();
        if lines.is_empty() { "nothing else".to_owned() } else { lines.join("; ") }
    };
    let what = format!(
        "sandboxes differ in strength: here {}, on the machine that began the run {}",
        differing(&own, &first),
        differing(&first, &own)
    );
    Err(Error::machine(what)
        .hint("run all shards on machines of one kind (see `autoexperiment doctor` on each), or mix them with `--mixed-sandboxes`"))
}

/// The machine's name.
fn node() -> Option<String> {
    nix::unistd::gethostname().ok().map(|name| name.to_string_lossy().into_owned())
}
