//! A run that several processes work on at once, on one machine or on many that share a folder.
//!
//! ```text
//! runs/<run>/run.json                    the plan, made once
//! runs/<run>/attempts-<shard>.jsonl      what one process has finished; of a shard that is started again, `-<shard>-2`
//! runs/<run>/ledger-<shard>.jsonl        what its calls of a model cost
//! runs/<run>/shards/<shard>.json         its session
//! runs/<run>/shards/<shard>.beat         its signs of life
//! runs/<run>/claims/<number>.<generation>  who makes an attempt, or does something that is done once
//! runs/<run>/purse/<number>              what each may spend, where there is a `--max-cost`
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
pub use work::Part;

/// What `run.json` holds if several processes work on the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sharing {
    /// Digest of the planned attempts, in their order: sha256, hex.
    pub plan: String,
    /// Seconds after which a process that shows no sign of life counts as dead.
    pub claim_timeout: f64,
}

impl Sharing {
    /// How long a process may show no sign of life before it counts as dead.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.claim_timeout).unwrap_or(Duration::from_mins(1))
    }
}

/// Where the shards' sessions and signs of life are.
#[must_use]
pub fn shards(run: &Path) -> PathBuf {
    run.join("shards")
}
