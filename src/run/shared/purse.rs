//! Divides the money of a run among its shards. An entry says how many dollars one shard may spend in total, and
//! replaces the shard's earlier entry. These totals never add up to more than `--max-cost`. An entry is a file that
//! only one process can create, and only after reading all earlier entries. So no two shards use the same money, and if
//! a shard is killed, its last entry still shows how much the shard may have spent.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files::write_once;
use crate::run::scheduler::ROUNDING;

/// Time between two checks for a file that exists but is not visible yet on a shared file system. `LOOKS` is the number
/// of checks.
const UNSEEN: Duration = Duration::from_millis(100);
const LOOKS: u32 = 600;

/// The contents of an entry's file: the dollars that one shard may spend in total, including those that it has already
/// spent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SpendingLimit {
    writer: String,
    dollars: f64,
    /// Whether the shard runs nothing at the moment, so that `dollars` is what it has spent.
    #[serde(default)]
    idle: bool,
}

/// The money that all shards of a run may spend, as seen and used by one process.
#[derive(Debug)]
pub(super) struct Purse {
    folder: PathBuf,
    writer: String,
    /// Dollars for all shards together.
    most: f64,
    /// Number of the next entry.
    next: u64,
    last: HashMap<String, SpendingLimit>,
}

impl Purse {
    /// Opens the purse, whose entries are files in this folder, on behalf of the process `writer`.
    #[must_use]
    pub fn new(folder: &Path, writer: &str, most: f64) -> Self {
        Self { folder: folder.to_owned(), writer: writer.to_owned(), most, next: 0, last: HashMap::new() }
    }

    /// Total that this process may spend.
    #[must_use]
    pub fn allowed(&self) -> f64 {
        self.last.get(&self.writer).map_or(0.0, |entry| entry.dollars)
    }

    /// Dollars that other shards have spent or may still spend, according to the entry files that were read so far.
    #[must_use]
    pub fn others(&self) -> f64 {
        self.last.values().filter(|entry| entry.writer != self.writer).map(|entry| entry.dollars).sum()
    }

    /// Other shards that may have unspent money, according to the entry files that were read so far.
    pub fn busy(&self) -> impl Iterator<Item = &str> {
        self.last.values().filter(|entry| entry.writer != self.writer && !entry.idle).map(|entry| entry.writer.as_str())
    }

    /// Raises the total that this process may spend to `dollars`, if the run's money suffices. Returns whether it
    /// suffices.
    ///
    /// # Errors
    /// If the folder cannot be read or written.
    pub fn raise(&mut self, dollars: f64) -> io::Result<bool> {
        loop {
            self.catch_up()?;
            if self.others() + dollars > self.most + ROUNDING {
                return Ok(false);
            }
            if self.enter(SpendingLimit { writer: self.writer.clone(), dollars, idle: false })? {
                return Ok(true);
            }
        }
    }

    /// Sets the total of a shard to the dollars that it has spent, so that others may use the rest. Called for a shard
    /// that runs nothing at the moment or is dead.
    ///
    /// # Errors
    /// If the folder cannot be read or written.
    pub fn rest(&mut self, writer: &str, dollars: f64) -> io::Result<()> {
        loop {
            self.catch_up()?;
            let is_said = self
                .last
                .get(writer)
                .map_or(dollars <= 0.0, |entry| entry.idle && (entry.dollars - dollars).abs() <= ROUNDING);
            if is_said || self.enter(SpendingLimit { writer: writer.to_owned(), dollars, idle: true })? {
                return Ok(());
            }
        }
    }

    /// Creates the file of the next entry. Returns false if another process has created this file.
    fn enter(&mut self, entry: SpendingLimit) -> io::Result<bool> {
        let is_made = write_once(&self.path(), &serde_json::to_vec(&entry)?, true)?;
        if is_made {
            self.last.insert(entry.writer.clone(), entry);
            self.next += 1;
        } else {
            self.await_next()?;
        }
        Ok(is_made)
    }

    fn path(&self) -> PathBuf {
        self.folder.join(self.next.to_string())
    }

    /// Reads the entry files that other processes have created since the last call.
    fn catch_up(&mut self) -> io::Result<()> {
        loop {
            match std::fs::read(self.path()) {
                Ok(text) => {
                    let entry: SpendingLimit = serde_json::from_slice(&text)?;
                    self.last.insert(entry.writer.clone(), entry);
                    self.next += 1;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until the next entry, created by another process, is visible: a file server's client may lag behind.
    fn await_next(&self) -> io::Result<()> {
        for _ in 0..LOOKS {
            if self.path().exists() {
                return Ok(());
            }
            std::thread::sleep(UNSEEN);
        }
        let path = self.path();
        let what = format!("another process created `{}`, but the file is not visible after a minute", path.display());
        Err(io::Error::other(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_that_raise_their_allowances_at_the_same_time_never_exceed_the_runs_cost_limit() {
        let folder = tempfile::tempdir().unwrap();
        let threads: Vec<_> = (0..8)
            .map(|writer| {
                let folder = folder.path().to_owned();
                std::thread::spawn(move || {
                    let mut purse = Purse::new(&folder, &writer.to_string(), 10.0);
                    while purse.raise(purse.allowed() + 0.25).unwrap() {}
                    purse.allowed()
                })
            })
            .collect();
        let sum: f64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!((sum - 10.0).abs() < 1e-9, "{sum}");
        // Other shards can use the part of an idle shard's total that it has not spent, but not the part that it has
        // spent.
        let mut purse = Purse::new(folder.path(), "new", 10.0);
        assert!(!purse.raise(0.25).unwrap());
        let busy = purse.busy().count();
        let rich = purse.last.values().find(|entry| entry.dollars >= 1.0).unwrap().clone();
        purse.rest(&rich.writer, rich.dollars - 0.5).unwrap();
        assert_eq!(purse.busy().count(), busy - 1);
        assert!(purse.raise(0.5).unwrap() && !purse.raise(0.75).unwrap());
        assert!((purse.others() - 9.5).abs() < 1e-9 && (purse.allowed() - 0.5).abs() < 1e-9);
    }
}
