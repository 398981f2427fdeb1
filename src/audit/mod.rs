//! Measures whether a suite can be trusted, on the code itself: which experiment needs which function, whether
//! experiments notice wrong code, and whether a masked body can be found elsewhere.
//!
//! Everything that runs here is a [`Trial`]: the paper's repo with some of its files replaced, and one experiment run
//! on it in its own sandbox. A [`Bench`] runs trials in parallel and stores each result by its content, so that nothing
//! runs twice after an interruption or when nothing has changed.

mod baseline;
pub(crate) mod believed;
mod journal;
pub(crate) mod leaks;
pub(crate) mod matrix;
mod measures;
pub mod mutation;
pub(crate) mod recheck;
pub(crate) mod trace;
pub(crate) mod trial;
pub(crate) mod verify;

pub(crate) use matrix::MatrixMethod;
pub use trial::Bench;
pub(crate) use trial::{ExperimentOutcome, Trial, TrialJob};
