//! Exports stored runs in the formats of other projects, so that their tools can open them. There is one module per
//! format.
//!
//! A [`ExportSource`] is a run opened for export; each format reads what it needs from it, attempt by attempt, and
//! writes files. Missing or truncated trajectories and diffs are left out and reported ([`ExportSource::notes`]), never
//! invented. `docs/formats.md` describes the contents of each format.

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
pub(crate) mod training;
pub(crate) mod traj;
mod turns;

pub use names::ContenderFileNames;
pub use source::ExportSource;
pub(crate) use turns::{AgentAction, Turn, turns};
