//! Plan, scheduler, attempt, store, resume.
//!
//! A run loads the items of its [`family`] and makes them ready, plans its attempts and runs them side by side
//! ([`scheduler`]), each from workspace to verdict ([`attempt`]), and keeps every finished one ([`store`]). Progress is
//! reported as [`event`]s. What kind of task it is, only the family knows.

pub mod attempt;
pub mod brief;
mod catalogue;
pub(crate) mod check;
pub mod configuration;
mod counting;
pub mod event;
pub mod family;
pub mod gpus;
mod interrupted;
pub mod machine;
mod outcome;
pub(crate) mod proof;
pub(crate) mod reading;
mod record;
pub mod results;
mod review;
pub mod run_file;
pub mod scheduler;
pub mod scratch;
pub(crate) mod shared;
pub(crate) mod store;
mod tail;
mod twice;
mod verification;
mod verifier_spec;

pub use catalogue::Catalogue;
pub use configuration::{Configuration, Draw, ModelChoice};
pub use counting::{Tried, Try};
pub(crate) use counting::{counting, scored};
pub(crate) use interrupted::interrupted_attempts;
pub use record::{AttemptRecord, Round};
pub(crate) use record::{measure_names, measured};
pub use run_file::{Digests, Planned, RunFile, SessionFacts};
pub(crate) use store::is_file_name;
pub use store::{Store, StoredTrajectory};
pub(crate) use twice::in_order;
pub use verifier_spec::VerifierSpec;

/// Seconds to the millisecond, as records hold them.
#[must_use]
pub fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}
