//! Plan, scheduler, attempt, store, resume.
//!
//! A run makes papers ready ([`ready`]), checks that they reproduce their gold ([`gold`]), plans its attempts and runs
//! them side by side ([`scheduler`]), each from masked tree to verdict ([`attempt`]), and keeps every finished one
//! ([`store`]). What goes on is told as [`event`]s.

pub mod attempt;
pub mod configuration;
mod counting;
pub mod event;
pub mod experiments;
pub mod family;
pub mod gold;
pub mod guard;
mod interrupted;
pub mod judge;
pub mod reading;
pub mod ready;
mod record;
pub mod run_file;
pub mod scheduler;
pub mod scratch;
pub mod store;
mod verification;

pub use configuration::{Configuration, Draw, ModelChoice};
pub use counting::{counting, scored};
pub use interrupted::interrupted_attempts;
pub use record::AttemptRecord;
pub use run_file::{Digests, Planned, RunFile, SessionFacts};
pub use store::{Store, StoredTrajectory, is_file_name};
