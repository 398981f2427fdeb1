//! Plans, makes, stores and resumes the attempts of a run.
//!
//! A run loads the items of its [`family`] and prepares them, plans its attempts, runs them in parallel
//! ([`scheduler`]), each from workspace to verdict ([`attempt`]), and stores every finished one ([`store`]). Progress
//! is reported as [`event`]s. Everything that depends on the kind of task is in the family.

pub mod attempt;
mod catalogue;
pub(crate) mod check;
pub mod configuration;
mod counting;
mod duplicates;
pub mod event;
pub mod family;
pub mod gpus;
mod interrupted;
pub mod machine;
mod nvidia;
mod outcome;
mod outcome_cache;
pub(crate) mod reading;
mod record;
pub mod record_index;
pub mod results;
mod review;
pub mod run_file;
pub mod scheduler;
pub mod scratch;
pub mod serving;
pub(crate) mod shared;
pub(crate) mod soundness;
pub(crate) mod store;
mod tail;
mod verification;
mod verifier_spec;

pub use catalogue::Catalogue;
pub use configuration::{Configuration, ModelChoice, SampleDraw};
pub use counting::{Try, TryRecord};
pub(crate) use counting::{counting, scored};
pub(crate) use duplicates::in_order;
pub(crate) use interrupted::interrupted_attempts;
pub use outcome::{Outcome, VerdictSummary, outcomes};
pub use record::{AttemptRecord, Round};
pub(crate) use record::{measure_names, measured};
pub use run_file::{Digests, PlannedAttempts, RunFile, SessionFacts};
pub use serving::{ClientName, CurriculumSettings, Reward, Serving};
pub(crate) use store::is_file_name;
pub use store::{Store, StoredTrajectory};
pub use verifier_spec::VerifierSpec;

/// Rounds seconds to milliseconds, as stored in records.
#[must_use]
pub fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}
