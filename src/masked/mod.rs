//! Masked replication: functions of a paper's repo are masked, an agent writes them again, and the paper's experiments
//! are the tests.
//!
//! [`MaskedReplication`] is the family (kind of task); a [`PaperItem`] is one of its papers, a [`ready::ReadyPaper`] a
//! paper with its repo and env on this machine. [`build`] compiles C extensions, [`gold`] records and checks the
//! results of the unmasked repo, [`judge`] compares results with gold, [`guard`] protects the files that experiments
//! start from. Commands about papers (`gold`, `verify`, `curtail`, `mask`, `new`) use this module directly; everything
//! else reaches it through [`crate::run::family`].

pub mod build;
mod family;
pub(crate) mod gold;
pub(crate) mod guard;
mod item;
pub(crate) mod judge;
mod parts;
mod patched;
mod question;
pub mod ready;
mod task;

pub use family::MaskedReplication;
pub(crate) use item::withheld;
pub use item::{PaperItem, ReadyItem};
pub(crate) use task::{described, replication};
