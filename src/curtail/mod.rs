//! Curtailed experiments: the search for the cheapest parameters whose results still separate right solutions from
//! wrong ones.
//!
//! Each solution in a [`SolutionPool`] (mutants, and agents' code from stored runs) is run with the full experiment and
//! with cheaper settings that the manifest allows. [`search`] returns the cheapest setting whose verdicts predict the
//! full verdicts with enough precision and recall ([`agreement`]). [`write`](write::write) puts the setting into the
//! manifest.

pub mod agreement;
mod patch;
mod pool;
mod search;
mod setting;
pub mod write;

pub use pool::SolutionPool;
pub use search::{CurtailedPaper, SearchGoal, search};
pub use setting::written;
