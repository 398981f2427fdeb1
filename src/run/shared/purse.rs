//! The money that all shards of a run may spend together. Each may spend in all what the last entry in its name allows it,
//! and the sum of these is never above `--max-cost`. An entry is a file that only one process can make, and is made only by
//! who has read all entries before it: so no two shards ever give out the same money, and what one may have spent when it
//! is killed stays written down.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files::write_once;

/// What sums of dollars may be off by.
const ROUNDING: f64 = 1e-9;

/// How long a file that exists may not be seen yet, and how often that is looked for.
const UNSEEN: Duration = Duration::from_millis(100);
const LOOKS: u32 = 600;

/// What one may spend in all from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    writer: String,
    dollars: f64,
    /// Whether it has spent all of that, and runs nothing.
    #[serde(default)]
    idle: bool,
}

/// The money of a run, as one process gives it out and sees it.
#[derive(Debug)]
pub struct Purse {
    folder: PathBuf,
    writer: String,
    /// Dollars for all together.
    most: f64,
    /// Number of the next entry.
    next: u64,
    last: HashMap<String, Entry>,
}

impl Purse {
    /// In this folder, in the name of `writer`.
    #[must_use]
    pub fn new(folder: &Path, writer: &str, most: f64) -> Self {
        Self { folder: folder.to_owned(), writer: writer.to_owned(), most, next: 0, last: HashMap::new() }
    }

    /// What this process may spend in all.
    #[must_use]
    pub fn allowed(&self) -> f64 {
        self.last.get(&self.writer).map_or(0.0, |entry| entry.dollars)
    }

    /// Dollars that others may spend or have spent, as was last seen.
    #[must_use]
    pub fn others(&self) -> f64 {
        self.last.values().filter(|entry| entry.writer != self.writer).map(|entry| entry.dollars).sum()
    }

    /// Others that may spend less than they are allowed to, as was last seen.
    pub fn busy(&self) -> impl Iterator<Item = &str> {
        self.last.values().filter(|entry| entry.writer != self.writer && !entry.idle).map(|entry| entry.writer.as_str())
    }

    /// Lets this process spend so much in all, if that fits.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub fn raise(&mut self, dollars: f64) -> io::Result<bool> {
        loop {
            self.catch_up()?;
            if self.others() + dollars > self.most + ROUNDING {
                return Ok(false);
            }
            if self.enter(Entry { writer: self.writer.clone(), dollars, idle: false })? {
                return Ok(true);
            }
        }
    }

    /// Writes down what somebody has spent who runs nothing, so that the rest is free again.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub fn rest(&mut self, writer: &str, dollars: f64) -> io::Result<()> {
        loop {
            self.catch_up()?;
            let is_said = self
                .last
                .get(writer)
                .map_or(dollars <= 0.0, |entry| entry.idle && (entry.dollars - dollars).abs() <= ROUNDING);
            if is_said || self.enter(Entry { writer: writer.to_owned(), dollars, idle: true })? {
                return Ok(());
            }
        }
    }

    /// Makes the next entry, unless somebody else has.
    fn enter(&mut self, entry: Entry) -> io::Result<bool> {
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

    /// Reads what others have entered.
    fn catch_up(&mut self) -> io::Result<()> {
        loop {
            match std::fs::read(self.path()) {
                Ok(text) => {
                    let entry: Entry = serde_json::from_slice(&text)?;
                    self.last.insert(entry.writer.clone(), entry);
                    self.next += 1;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until the next entry can be seen, which somebody has made: a file server's client may not know it yet.
    fn await_next(&self) -> io::Result<()> {
        for _ in 0..LOOKS {
            if self.path().exists() {
                return Ok(());
            }
            std::thread::sleep(UNSEEN);
        }
        Err(io::Error::other("an entry that exists cannot be seen"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_that_raise_at_once_are_never_allowed_more_than_there_is() {
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
        // What one has not spent is free again; what it has spent never is.
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
