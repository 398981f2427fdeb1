//! A run that several processes work on at once, on one machine or on many that share a folder.
//!
//! ```text
//! runs/<run>/run.json                    the plan, written once
//! runs/<run>/attempts-<shard>.jsonl      attempts finished by one process; if the shard is started again, `-<shard>-2`
//! runs/<run>/ledger-<shard>.jsonl        costs of this process's model calls
//! runs/<run>/ledger.jsonl                costs of the verifiers' model calls in `autoexperiment pick`
//! runs/<run>/shards/<shard>.json         facts about this process's session
//! runs/<run>/shards/<shard>.beat         a counter that shows that this process is alive
//! runs/<run>/claims/<what>.<generation>  name of the process that makes this attempt or does this other work
//! runs/<run>/purse/<number>              an entry: how many dollars one process may spend (with `--max-cost`)
//! ```
//!
//! The processes do not talk to each other, and each writes only its own files. To decide which process does some work
//! or spends some money, they create files: only one process can create a file of a given name ([`claims`], [`purse`]).
//! Counters show which processes are alive ([`beat`]).

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
pub use work::{SharedQueue, last_chooser};

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

/// Returns the folder with two files of each process that works on the run: the facts about its session, and the
/// counter that shows that the process is alive.
#[must_use]
pub fn shards(run: &Path) -> PathBuf {
    run.join("shards")
}
