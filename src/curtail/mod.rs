//! Curtailed experiments: the cheapest parameters that still tell passing from failing solutions apart.
//!
//! Each of a [`Pool`] of solutions (the unchanged code, mutants, what agents wrote in stored runs) is run under the full
//! experiment and, setting by setting of those that the manifest allows, under a shorter one. [`search`] gives the
//! cheapest setting whose verdicts foretell the full ones well enough, with precision and recall ([`agreement`]);
//! [`write`](write::write) puts it into the manifest.

pub mod agreement;
mod patch;
mod pool;
mod search;
mod setting;
pub mod write;

pub use pool::Pool;
pub use search::{Curtailed, Wanted, search};
pub use setting::written;
