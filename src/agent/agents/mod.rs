//! The agents, one file or folder each. Code that only one agent uses is in its folder, and what only the two agents
//! with a single reply share is in theirs.

pub(super) mod copycat;
pub(super) mod external;
pub(super) mod fixed;
pub(super) mod forger;
pub(super) mod function;
pub(super) mod gold;
pub(super) mod mutant;
pub(super) mod noop;
pub(super) mod one_reply;
pub(super) mod random;
pub(super) mod react;
pub mod replies;
pub(super) mod scripted;
