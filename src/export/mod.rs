//! Stored runs in the formats of other projects, so that their tools can open them: one file a format.
//!
//! A [`Source`] is a run opened for export; each format reads from it what it needs, attempt by attempt, and writes
//! files. A trajectory or diff that is missing or cut off is left out of what is written and told of
//! ([`Source::notes`]), never made up. What each format holds is written down in `docs/formats.md`.

pub mod atif;
pub mod column;
pub mod harbor;
pub mod inspect;
pub mod jsonl;
mod names;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod predictions;
pub mod schemas;
mod source;
pub mod table;
pub mod traj;
mod turns;

pub use names::Names;
pub use source::Source;
pub use turns::{Act, Call, Spoken, Turn, turns};
