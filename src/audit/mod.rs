//! Can a suite be trusted? Measured on the code itself: which experiment needs which function, whether wrong code is
//! told from right code, and what of a masked body stands elsewhere.
//!
//! Everything that runs here is a [`Trial`]: the paper's repo with some of its files replaced, and one experiment run on
//! it in a sandbox of its own. A [`Bench`] runs trials side by side and keeps each result, by content, so that
//! nothing is run twice: not after an interruption, and not when nothing has changed.

mod baseline;
pub mod believed;
mod journal;
pub mod leaks;
pub mod matrix;
mod measures;
pub mod mutation;
pub mod recheck;
pub mod trace;
pub mod trial;
pub mod verify;

pub use matrix::{Effect, Effort, Matrix};
pub use trial::{Bench, Job, Outcome, Trial};
