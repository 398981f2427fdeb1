//! Starts a paper from a repository, for `autoexperiment new`.
//!
//! The user names a repository, an environment and the commands of its experiments. The [`Draft`] is put together in a
//! folder of its own inside the suite and takes its place there as a whole, or not at all: the repo is copied
//! ([`repo`]), each command is run once to see how its result can be read ([`result`]), a traced run tells which
//! functions the commands enter, and of those the ones that are worth masking are proposed ([`propose()`]). What only a
//! person can write is marked `TODO` in the files.

pub mod command;
mod docstring;
pub mod entered;
pub mod environment;
pub mod extension;
pub mod manifest;
pub mod metadata;
pub mod propose;
pub mod repo;
pub mod result;
mod stage;
pub mod text;
pub mod trial;

pub use propose::{Proposal, propose};
pub use stage::{Draft, require_id};
pub use trial::{Place, Tried, refuse_scripts, try_command};
