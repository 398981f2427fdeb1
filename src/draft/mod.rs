//! Creates a paper from a repository, for `autoexperiment new`.
//!
//! The user names a repository, an environment and the commands of its experiments. The [`Draft`] is assembled in a
//! separate folder inside the suite and then moved into place, completely or not at all. The steps: the repo is copied
//! ([`repo`]); each command is run once to find out how to read its result ([`result`]); a traced run shows which
//! functions the commands enter; and functions worth masking are proposed ([`propose()`]). Everything that only a
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

pub use docstring::first_sentence;
pub use propose::{MaskingProposal, propose};
pub use stage::{Draft, require_id};
pub use trial::{TrialResult, TrialSetup, refuse_left_out, refuse_missing_runners, refuse_scripts, try_command};
