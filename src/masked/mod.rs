//! Masked replication: functions of a paper's repo are masked, an agent writes them again, and the paper's experiments
//! are the tests.
//!
//! [`Masked`] is the family; a [`PaperItem`] is one of its papers, a [`ready::ReadyPaper`] one with its repo and env on
//! this machine. [`build`] makes its C extensions, [`gold`] records and checks what the unmasked repo gives, [`judge`] compares with it, [`guard`] keeps
//! the files that experiments start from. Verbs about papers (`gold`, `verify`, `curtail`, `mask`, `new`) use this room
//! directly; everything else reaches it through [`crate::run::family`].

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

pub use family::Masked;
pub(crate) use item::withheld;
pub use item::{PaperItem, ReadyItem};
pub(crate) use task::{described, replication};
