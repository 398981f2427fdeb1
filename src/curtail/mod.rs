//! Curtailed experiments: the cheapest parameters that still separate passing from failing solutions.
//!
//! Each solution of a [`SolutionPool`] (the unchanged code, mutants, and agents' code from stored runs) runs under the full
//! experiment and under shorter ones with settings that the manifest allows. [`search`] returns the cheapest setting
//! whose verdicts predict the full ones with enough precision and recall ([`agreement`]); [`write`](write::write) puts
//! it into the manifest.

pub mod agreement;
mod patch;
mod pool;
mod search;
mod setting;
pub mod write;

pub use pool::SolutionPool;
pub use search::{CurtailedPaper, SearchGoal, search};
pub use setting::written;
