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

mod books;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use books::{Books, Paid, books};

use super::{Probed, Usage};
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
    /// A model was asked whether it answers, before the run had a ledger.
    Probed {
        /// Dollars that it cost.
        #[serde(deserialize_with = "dollars")]
        dollars: f64,
        /// Tokens that it took.
        usage: Usage,
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

    /// Writes down what it cost to ask whether models answer, if it cost anything.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn probed(&self, &Probed { usage, cost }: &Probed) -> io::Result<()> {
        if cost <= 0.0 {
            return Ok(());
        }
        self.lock().write(&Entry::Probed { dollars: cost, usage }, true)
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
