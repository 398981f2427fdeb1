//! The agents, one file or folder each. A folder also holds the code that only its agent uses; `one_reply` is the
//! folder of two agents.

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
