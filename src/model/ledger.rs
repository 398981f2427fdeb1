//! A run's ledger: what every call of a model was to cost at most, written before it is made, and what it did cost,
//! written before its reply is used. So whatever dies, what was paid for is on record.
//!
//! ```text
//! runs/<run>/ledger.jsonl           {"entry":"reserved","call":7,...,"dollars":0.25}
//!                                   {"entry":"settled","call":7,"dollars":0.11,"usage":{...}}
//! runs/<run>/ledger-<shard>.jsonl   the same, of one shard
//! ```
//!
//! One process writes a file. What a run has spent is the sum over all its files: what was settled, and, for calls that
//! a kill cut off or that are under way, what was reserved.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Usage;
use crate::error::{Error, Result};
use crate::files::Appender;

/// Who pays for a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Payer {
    /// The agent's label.
    pub agent: String,
    /// The sample's id.
    pub sample: String,
    /// Number of the attempt; absent for a verifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// When this try of the attempt began, as its record says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<jiff::Timestamp>,
    /// The verifier's name, where it is one that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<String>,
}

/// A line of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// What the run had spent before it had a ledger.
    Carried {
        /// Dollars of attempts.
        #[serde(deserialize_with = "dollars")]
        attempts: f64,
        /// Dollars of verifiers.
        #[serde(deserialize_with = "dollars")]
        verifiers: f64,
    },
    /// A call is about to be made.
    Reserved {
        /// Its number in this file.
        call: u64,
        /// Who pays.
        #[serde(flatten)]
        payer: Payer,
        /// Dollars that it may cost at most.
        #[serde(deserialize_with = "dollars")]
        dollars: f64,
    },
    /// A call has ended.
    Settled {
        /// Its number in this file.
        call: u64,
        /// Dollars that it cost.
        #[serde(deserialize_with = "dollars")]
        dollars: f64,
        /// Tokens that it took.
        usage: Usage,
    },
}

/// Dollars of a line that may not be ours: nothing costs less than nothing.
pub(crate) fn dollars<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    let dollars = f64::deserialize(deserializer)?;
    if dollars >= 0.0 && dollars.is_finite() {
        // -0 is 0.
        Ok(dollars + 0.0)
    } else {
        Err(serde::de::Error::custom(format!("a cost of {dollars} dollars")))
    }
}

/// What somebody has paid.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Paid {
    /// Dollars of calls that have ended.
    pub settled: f64,
    /// Dollars that are reserved for calls that are under way, or were cut off.
    pub open: f64,
    /// Tokens of calls that have ended.
    pub usage: Usage,
}

impl Paid {
    /// Dollars that count as spent.
    #[must_use]
    pub fn dollars(&self) -> f64 {
        self.settled + self.open
    }

    fn add(&mut self, other: &Self) {
        self.settled += other.settled;
        self.open += other.open;
        self.usage += other.usage;
    }
}

/// What all ledgers of a run say.
#[derive(Debug, Default, PartialEq)]
pub struct Books {
    /// What each has paid.
    pub payers: HashMap<Payer, Paid>,
    /// Dollars that attempts had cost before the run had a ledger.
    pub carried_attempts: f64,
    /// Likewise verifiers.
    pub carried_verifiers: f64,
    /// Lines that cannot be read, a sentence each.
    pub notes: Vec<String>,
}

impl Books {
    /// What one ledger says.
    ///
    /// # Errors
    /// Kind `Store` when it cannot be read.
    pub fn of(path: &Path) -> Result<Self> {
        let mut books = Self::default();
        books.read(path).map_err(|error| read_failed(path, error))?;
        Ok(books)
    }

    /// What attempts have cost.
    #[must_use]
    pub fn attempts(&self) -> Paid {
        self.sum(self.carried_attempts, false)
    }

    /// What verifiers have cost.
    #[must_use]
    pub fn verifiers(&self) -> Paid {
        self.sum(self.carried_verifiers, true)
    }

    /// What everything has cost.
    #[must_use]
    pub fn total(&self) -> Paid {
        let mut total = self.attempts();
        total.add(&self.verifiers());
        total
    }

    fn sum(&self, carried: f64, of_verifiers: bool) -> Paid {
        let mut sum = Paid { settled: carried, ..Paid::default() };
        for (payer, paid) in &self.payers {
            if payer.verifier.is_some() == of_verifiers {
                sum.add(paid);
            }
        }
        sum
    }

    /// Adds one ledger; gives the number of its next call.
    fn read(&mut self, path: &Path) -> io::Result<u64> {
        let mut open: HashMap<u64, (Payer, f64)> = HashMap::new();
        let (mut next, mut broken) = (0, 0_usize);
        let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            // A line without its end is torn: what it was to say has not happened yet.
            let entry = line.strip_suffix(b"\n").map(serde_json::from_slice::<Entry>);
            match entry {
                Some(Ok(Entry::Carried { attempts, verifiers })) => {
                    self.carried_attempts += attempts;
                    self.carried_verifiers += verifiers;
                }
                Some(Ok(Entry::Reserved { call, payer, dollars })) => {
                    next = next.max(call + 1);
                    open.insert(call, (payer, dollars));
                }
                Some(Ok(Entry::Settled { call, dollars, usage })) => {
                    let payer = open.remove(&call).map(|(payer, _)| payer).unwrap_or_default();
                    self.payers.entry(payer).or_default().add(&Paid { settled: dollars, open: 0.0, usage });
                }
                Some(Err(_)) if !line.trim_ascii().is_empty() => broken += 1,
                _ => {}
            }
            line.clear();
        }
        for (payer, dollars) in open.into_values() {
            self.payers.entry(payer).or_default().open += dollars;
        }
        if broken > 0 {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.notes.push(format!("left out of `{name}`: {broken} broken line(s); what they cost is not counted"));
        }
        Ok(next)
    }
}

/// What the ledgers of a run in this folder say; `None` where it has none, as runs of earlier versions.
///
/// # Errors
/// Kind `Store` when one cannot be read.
pub fn books(folder: &Path) -> Result<Option<Books>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| read_failed(folder, error))? {
        let entry = entry.map_err(|error| read_failed(folder, error))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("ledger") && name.ends_with(".jsonl") {
            paths.push(entry.path());
        }
    }
    if paths.is_empty() {
        return Ok(None);
    }
    let mut books = Books::default();
    for path in &paths {
        books.read(path).map_err(|error| read_failed(path, error))?;
    }
    Ok(Some(books))
}

fn read_failed(path: &Path, error: io::Error) -> Error {
    Error::store(format!("failed to read `{}`", path.display())).because(error)
}

/// A ledger that this process writes.
#[derive(Debug)]
pub struct Ledger {
    file: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    appender: Appender,
    /// Number of the next call.
    next: u64,
    /// Why it can no longer be written.
    failed: Option<String>,
}

impl Ledger {
    /// Opens a ledger, a new one or one that goes on. A torn last line is cut off: that call was not made, or its reply
    /// not used.
    ///
    /// # Errors
    /// When the file cannot be opened or read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let appender = Appender::resume(path)?;
        let next = Books::default().read(path)?;
        Ok(Self { file: Mutex::new(Open { appender, next, failed: None }) })
    }

    /// Writes down what the run had spent before it had a ledger.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn carry(&self, attempts: f64, verifiers: f64) -> io::Result<()> {
        self.lock().write(&Entry::Carried { attempts, verifiers }, true)
    }

    /// Why it can no longer be written: nothing more should be paid for.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Appends a line, flushed to disk where money is at stake.
    fn write(&mut self, entry: &Entry, is_durable: bool) -> io::Result<()> {
        if let Some(failed) = &self.failed {
            return Err(io::Error::other(failed.clone()));
        }
        let appender = &mut self.appender;
        let written = if appender.is_in_place() {
            appender.append(entry).and_then(|()| if is_durable { appender.sync() } else { Ok(()) })
        } else {
            Err(io::Error::other("it was removed or replaced while the run was writing it"))
        };
        if let Err(error) = &written {
            self.failed = Some(error.to_string());
        }
        written
    }
}

/// What one payer's calls are written in.
#[derive(Debug, Clone)]
pub struct Tab {
    ledger: Arc<Ledger>,
    payer: Payer,
}

/// A call that may be made.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    call: u64,
    dollars: f64,
}

impl Tab {
    /// Of this payer in this ledger.
    #[must_use]
    pub const fn new(ledger: Arc<Ledger>, payer: Payer) -> Self {
        Self { ledger, payer }
    }

    /// Number of the attempt that pays, if one does.
    #[must_use]
    pub const fn attempt(&self) -> Option<u32> {
        self.payer.attempt
    }

    /// Writes down that a call is about to be made.
    ///
    /// # Errors
    /// When it cannot be written: the call must not be made.
    pub fn reserve(&self, dollars: f64) -> io::Result<Reservation> {
        let mut file = self.ledger.lock();
        let call = file.next;
        file.next += 1;
        file.write(&Entry::Reserved { call, payer: self.payer.clone(), dollars }, dollars > 0.0)?;
        Ok(Reservation { call, dollars })
    }

    /// Writes down what a call has cost.
    ///
    /// # Errors
    /// When it cannot be written; what was reserved then counts as spent.
    pub fn settle(&self, reserved: &Reservation, dollars: f64, usage: Usage) -> io::Result<()> {
        let is_durable = dollars > 0.0 || reserved.dollars > 0.0;
        self.ledger.lock().write(&Entry::Settled { call: reserved.call, dollars, usage }, is_durable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payer(attempt: u32) -> Payer {
        Payer { agent: "react".into(), sample: "x_0".into(), attempt: Some(attempt), ..Payer::default() }
    }

    #[test]
    fn what_was_cut_off_counts_as_reserved_and_all_files_of_a_run_are_summed_up() {
        let folder = tempfile::tempdir().unwrap();
        assert!(books(folder.path()).unwrap().is_none());
        let usage = Usage { output: 7, ..Usage::default() };
        for (name, carried) in [("ledger.jsonl", 1.0), ("ledger-2.jsonl", 0.0)] {
            let ledger = Arc::new(Ledger::open(&folder.path().join(name)).unwrap());
            ledger.carry(carried, 0.5).unwrap();
            let tab = Tab::new(ledger.clone(), payer(0));
            let first = tab.reserve(0.25).unwrap();
            let _cut_off = Tab::new(ledger, payer(1)).reserve(0.125).unwrap();
            tab.settle(&first, 0.0625, usage).unwrap();
        }
        // One that goes on does not give a number twice, and drops a torn line.
        let path = folder.path().join("ledger.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"entry\":\"settled\",\"call\":1,\"dollars\":0.1");
        std::fs::write(&path, text).unwrap();
        let verifier = Payer { verifier: Some("model".into()), attempt: None, ..payer(0) };
        let tab = Tab::new(Arc::new(Ledger::open(&path).unwrap()), verifier);
        let third = tab.reserve(1.0).unwrap();
        assert_eq!(third.call, 2);
        tab.settle(&third, 0.5, Usage::default()).unwrap();
        let books = books(folder.path()).unwrap().unwrap();
        assert_eq!(books.payers[&payer(0)], Paid { settled: 0.125, open: 0.0, usage: Usage { output: 14, ..usage } });
        assert_eq!(books.payers[&payer(1)], Paid { open: 0.25, ..Paid::default() });
        assert_eq!((books.attempts().settled, books.attempts().open), (1.125, 0.25));
        assert_eq!((books.verifiers().dollars(), books.total().dollars()), (1.5, 2.875));
        assert_eq!(books.notes, Vec::<String>::new());
    }

    #[test]
    fn no_line_lowers_what_was_spent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let ledger = Arc::new(Ledger::open(&path).unwrap());
        let _cut_off = Tab::new(ledger, payer(0)).reserve(0.25).unwrap();
        let before = std::fs::read_to_string(&path).unwrap();
        for line in [
            r#"{"entry":"settled","call":0,"dollars":-5.0,"usage":{"input":0,"output":0}}"#,
            r#"{"entry":"reserved","call":7,"agent":"react","sample":"x_0","attempt":0,"dollars":-5.0}"#,
            r#"{"entry":"carried","attempts":-5.0,"verifiers":0.0}"#,
            r#"{"entry":"carried","attempts":0.0,"verifiers":-1e300}"#,
        ] {
            std::fs::write(&path, format!("{before}{line}\n")).unwrap();
            let books = books(folder.path()).unwrap().unwrap();
            assert!((books.total().dollars() - 0.25).abs() < 1e-9, "{line}: {books:?}");
            assert_eq!(books.notes.len(), 1, "{line}");
        }
    }

    #[test]
    fn a_broken_line_is_told_and_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        std::fs::write(&path, "garbage\n\n{\"entry\":\"carried\",\"attempts\":2.0,\"verifiers\":0.0}\n").unwrap();
        let books = books(folder.path()).unwrap().unwrap();
        assert_eq!((books.total().dollars(), books.notes.len()), (2.0, 1));
    }

    #[test]
    fn a_ledger_that_cannot_be_written_lets_nothing_more_be_paid_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let ledger = Arc::new(Ledger::open(&path).unwrap());
        let tab = Tab::new(ledger.clone(), payer(0));
        // Somebody removes it under the run.
        std::fs::remove_file(&path).unwrap();
        tab.reserve(1.0).unwrap_err();
        assert!(ledger.failed().is_some());
        tab.reserve(0.0).unwrap_err();
    }
}
