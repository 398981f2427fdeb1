//! A run that several processes work on at once, on one machine or on many that share a folder.
//!
//! ```text
//! runs/<run>/run.json                    the plan, written once
//! runs/<run>/attempts-<shard>.jsonl      attempts finished by one process; if the shard is started again, `-<shard>-2`
//! runs/<run>/ledger-<shard>.jsonl        costs of its model calls
//! runs/<run>/shards/<shard>.json         its session
//! runs/<run>/shards/<shard>.beat         its signs of life
//! runs/<run>/claims/<number>.<generation>  the process that makes an attempt, or does something that is done once
//! runs/<run>/purse/<number>              amounts that each process may spend, with `--max-cost`
//! ```
//!
//! The processes do not talk to each other, and each writes only its own files. Decisions between them are made by
//! files that only one process can create ([`claims`], [`purse`]). A counter shows which processes are alive
//! ([`beat`]).

pub mod beat;
pub mod claims;
mod member;
mod number;
pub mod purse;
mod tails;
mod work;

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use member::Member;
pub use number::Shard;
pub use work::SharedQueue;

/// The part of `run.json` for runs shared by several processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sharing {
    /// Digest of the planned attempts, in order: sha256, hex.
    pub plan: String,
    /// Seconds without a sign of life after which a process counts as dead.
    pub claim_timeout: f64,
}

impl Sharing {
    /// Time without a sign of life after which a process counts as dead.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.claim_timeout).unwrap_or(Duration::from_mins(1))
    }
}

/// Folder of the shards' sessions and signs of life.
#[must_use]
pub fn shards(run: &Path) -> PathBuf {
    run.join("shards")
}
