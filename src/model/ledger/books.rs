//! Reads ledgers: how much each payer has spent, and which calls were cut off.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::{LedgerEntry, Payer, Usage};
use crate::error::{Error, Result};
use crate::files::files_of_shards;

/// Money spent and tokens used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PaidTotals {
    /// Dollars of finished calls.
    pub settled: f64,
    /// Dollars reserved for calls that are in progress or were cut off; they count as spent.
    pub open: f64,
    /// Tokens of finished calls.
    pub usage: Usage,
}

impl PaidTotals {
    /// Dollars that count as spent: the cost of finished calls, and what is reserved for other calls.
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

/// The contents of all ledgers of a run.
#[derive(Debug, Default, PartialEq)]
pub struct RunLedgers {
    /// Spending by payer, that is, by attempt or verifier.
    pub payers: HashMap<Payer, PaidTotals>,
    /// Dollars that attempts had spent before the run had a ledger.
    pub carried_attempts: f64,
    /// Dollars that verifiers had spent before the run had a ledger.
    pub carried_verifiers: f64,
    /// Cost of the test calls that check whether models answer.
    pub probes: PaidTotals,
    /// One warning per ledger with unreadable lines.
    pub notes: Vec<String>,
}

impl RunLedgers {
    /// Reads one ledger.
    ///
    /// # Errors
    /// Kind `Store` if it cannot be read.
    pub fn from_file(path: &Path) -> Result<Self> {
        let mut books = Self::default();
        books.read(path).map_err(|error| read_failed(path, error))?;
        Ok(books)
    }

    /// Total cost of attempts.
    #[must_use]
    pub fn attempts(&self) -> PaidTotals {
        self.sum(self.carried_attempts, false)
    }

    /// Total cost of verifiers.
    #[must_use]
    pub fn verifiers(&self) -> PaidTotals {
        self.sum(self.carried_verifiers, true)
    }

    /// Total cost of the run.
    #[must_use]
    pub fn total(&self) -> PaidTotals {
        let mut total = self.attempts();
        total.add(&self.verifiers());
        total.add(&self.probes);
        total
    }

    fn sum(&self, carried: f64, of_verifiers: bool) -> PaidTotals {
        let mut sum = PaidTotals { settled: carried, ..PaidTotals::default() };
        for (payer, paid) in &self.payers {
            if payer.verifier.is_some() == of_verifiers {
                sum.add(paid);
            }
        }
        sum
    }

    /// Adds one ledger file; returns the number of its next call.
    pub(super) fn read(&mut self, path: &Path) -> io::Result<u64> {
        let mut open: HashMap<u64, (Payer, f64)> = HashMap::new();
        let (mut next, mut broken) = (0, 0_usize);
        let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            // Skip a last line without a newline: the process was killed while it wrote the line. A line is written
            // before a call is made, and another one before its reply is used. So the call was not made, or its reply
            // was not used.
            let entry = line.strip_suffix(b"\n").map(serde_json::from_slice::<LedgerEntry>);
            match entry {
                Some(Ok(LedgerEntry::Carried { attempts, verifiers })) => {
                    self.carried_attempts += attempts;
                    self.carried_verifiers += verifiers;
                }
                Some(Ok(LedgerEntry::Probed { dollars, usage })) => {
                    self.probes.add(&PaidTotals { settled: dollars, open: 0.0, usage });
                }
                Some(Ok(LedgerEntry::Reserved { call, payer, dollars })) => {
                    next = next.max(call + 1);
                    open.insert(call, (payer, dollars));
                }
                Some(Ok(LedgerEntry::Settled { call, dollars, usage })) => {
                    let payer = open.remove(&call).map(|(payer, _)| payer).unwrap_or_default();
                    self.payers.entry(payer).or_default().add(&PaidTotals { settled: dollars, open: 0.0, usage });
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

/// Reads all ledgers in a run's folder; `None` if it has no ledger, as in runs of earlier versions.
///
/// # Errors
/// Kind `Store` if a ledger cannot be read.
pub fn books(folder: &Path) -> Result<Option<RunLedgers>> {
    let paths = files_of_shards(folder, "ledger").map_err(|error| read_failed(folder, error))?;
    if paths.is_empty() {
        return Ok(None);
    }
    let mut books = RunLedgers::default();
    for path in &paths {
        books.read(path).map_err(|error| read_failed(path, error))?;
    }
    Ok(Some(books))
}

fn read_failed(path: &Path, error: io::Error) -> Error {
    Error::store(format!("failed to read `{}`", path.display())).because(error)
}
