//! Can a suite be trusted? Measured on the code itself: which experiment needs which function, whether wrong code is
//! told from right code, and what of a masked body stands elsewhere.
//!
//! Everything that runs here is a [`Trial`]: the paper's repo with some of its files replaced, and one experiment run on
//! it in a sandbox of its own. A [`Bench`] runs trials side by side and keeps each result, by content, so that
//! nothing is run twice: not after an interruption, and not when nothing has changed.

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

pub(crate) use matrix::Effort;
pub use trial::Bench;
pub(crate) use trial::{Job, Outcome, Trial};
