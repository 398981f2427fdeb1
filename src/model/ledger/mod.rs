//! A run's ledger. The maximum cost of each model call is written before the call is made, and its actual cost before
//! its reply is used, so all spending is on record even after a crash.
//!
//! ```text
//! runs/<run>/ledger.jsonl           {"entry":"reserved","call":7,...,"dollars":0.25}
//!                                   {"entry":"settled","call":7,"dollars":0.11,"usage":{...}}
//! runs/<run>/ledger-<shard>.jsonl   the same, of one shard
//! ```
//!
//! Each file is written by one process. A run's spending is the sum over all its files: settled costs, plus the
//! reservations of calls that are in progress or were cut off when the process was killed.

mod books;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use books::{PaidTotals, RunLedgers, books};

use super::{ProbeCost, Usage};
use crate::files::Appender;

/// The attempt or verifier that pays for a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Payer {
    /// The agent's label.
    pub agent: String,
    /// The sample's id.
    pub sample: String,
    /// Number of the attempt; absent for a verifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Start of the attempt, as in the attempt's record; absent for a verifier. An attempt that is made again gets a
    /// new record with another start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<jiff::Timestamp>,
    /// The verifier's name; absent for an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<String>,
}

/// A line of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Entry")]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum LedgerEntry {
    /// Money that the run had spent before this ledger was begun. Written only if an earlier version of this program,
    /// which kept no ledger, began the run.
    Carried {
        /// Dollars spent by attempts.
        #[serde(deserialize_with = "dollars")]
        attempts: f64,
        /// Dollars spent by verifiers.
        #[serde(deserialize_with = "dollars")]
        verifiers: f64,
    },
    /// A model call is about to be made.
    Reserved {
        /// Number of the call, unique within this ledger file.
        call: u64,
        /// The attempt or verifier that pays for the call.
        #[serde(flatten)]
        payer: Payer,
        /// Maximum cost in dollars.
        #[serde(deserialize_with = "dollars")]
        dollars: f64,
    },
    /// A test call was made, to check whether a model answers.
    Probed {
        /// Cost in dollars.
        #[serde(deserialize_with = "dollars")]
        dollars: f64,
        /// Tokens used.
        usage: Usage,
    },
    /// A model call has ended.
    Settled {
        /// Number of the call, as in the call's `reserved` line in the same file.
        call: u64,
        /// Cost in dollars.
        #[serde(deserialize_with = "dollars")]
        dollars: f64,
        /// Tokens used.
        usage: Usage,
    },
}

/// Deserializes dollars. Negative costs are an error, because the file may have been tampered with.
pub(crate) fn dollars<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    let dollars = f64::deserialize(deserializer)?;
    if dollars >= 0.0 && dollars.is_finite() {
        // Adding 0 turns -0, which would be printed as `-0`, into 0.
        Ok(dollars + 0.0)
    } else {
        Err(serde::de::Error::custom(format!("a cost of {dollars} dollars is impossible")))
    }
}

/// A ledger file to which this process writes.
#[derive(Debug)]
pub struct Ledger {
    file: Mutex<OpenLedger>,
}

#[derive(Debug)]
struct OpenLedger {
    appender: Appender,
    /// The number of the next call.
    next: u64,
    /// The error after which this ledger cannot be written any more.
    failed: Option<String>,
}

impl Ledger {
    /// Opens a new or existing ledger. An incomplete last line is removed: it announces a call that was not made, or
    /// states the cost of a reply that was not used, because the process was killed first.
    ///
    /// # Errors
    /// If the file cannot be opened or read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let appender = Appender::resume(path)?;
        let next = RunLedgers::default().read(path)?;
        Ok(Self { file: Mutex::new(OpenLedger { appender, next, failed: None }) })
    }

    /// Records the money that a run of an earlier version of this program, which wrote no ledger, had already spent.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn carry(&self, attempts: f64, verifiers: f64) -> io::Result<()> {
        self.lock().write(&LedgerEntry::Carried { attempts, verifiers }, true)
    }

    /// Records the cost of a test call to a model, unless it cost nothing.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn probed(&self, &ProbeCost { usage, cost }: &ProbeCost) -> io::Result<()> {
        if cost <= 0.0 {
            return Ok(());
        }
        self.lock().write(&LedgerEntry::Probed { dollars: cost, usage }, true)
    }

    /// Returns the error after which this ledger cannot be written any more, if there was one. After it, no calls that
    /// cost money should be made, because their cost cannot be recorded.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenLedger> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenLedger {
    /// Appends a line, and flushes it to disk if `is_durable`, which is set for lines about money.
    fn write(&mut self, entry: &LedgerEntry, is_durable: bool) -> io::Result<()> {
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

/// A ledger, and the attempt or verifier that pays for the calls written to it.
#[derive(Debug, Clone)]
pub struct PayerLedger {
    ledger: Arc<Ledger>,
    payer: Payer,
}

/// A call whose cost is reserved in the ledger.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    call: u64,
    dollars: f64,
}

impl PayerLedger {
    /// Combines a ledger with the attempt or verifier that pays for the calls.
    #[must_use]
    pub const fn new(ledger: Arc<Ledger>, payer: Payer) -> Self {
        Self { ledger, payer }
    }

    /// Number of the attempt that pays; `None` for a verifier.
    #[must_use]
    pub const fn attempt(&self) -> Option<u32> {
        self.payer.attempt
    }

    /// Records the maximum cost of a call that is about to be made.
    ///
    /// # Errors
    /// If the ledger cannot be written: the call must not be made.
    pub fn reserve(&self, dollars: f64) -> io::Result<Reservation> {
        let mut file = self.ledger.lock();
        let call = file.next;
        file.next += 1;
        file.write(&LedgerEntry::Reserved { call, payer: self.payer.clone(), dollars }, dollars > 0.0)?;
        Ok(Reservation { call, dollars })
    }

    /// Records the cost of a finished call.
    ///
    /// # Errors
    /// If the ledger cannot be written; the reservation then counts as spent.
    pub fn record_cost(&self, reserved: &Reservation, dollars: f64, usage: Usage) -> io::Result<()> {
        let is_durable = dollars > 0.0 || reserved.dollars > 0.0;
        self.ledger.lock().write(&LedgerEntry::Settled { call: reserved.call, dollars, usage }, is_durable)
    }
}
