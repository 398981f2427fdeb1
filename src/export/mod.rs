//! Stored runs in the formats of other projects, so that their tools can open them: one file a format.
//!
//! A [`Source`] is a run opened for export; each format reads from it what it needs, attempt by attempt, and writes
//! files. A trajectory or diff that is missing or cut off is left out of what is written and told of
//! ([`Source::notes`]), never made up. What each format holds is written down in `docs/formats.md`.

pub(crate) mod atif;
pub(crate) mod column;
pub(crate) mod harbor;
pub mod inspect;
pub(crate) mod jsonl;
mod names;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod predictions;
pub mod schemas;
mod source;
pub mod table;
pub(crate) mod traj;
mod turns;

pub use names::Names;
pub use source::Source;
pub(crate) use turns::{Act, Turn, turns};
