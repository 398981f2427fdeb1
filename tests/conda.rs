//! Conda envs from the command line, out of a channel that is made here: what works, and what is said when it does not.
#![cfg(feature = "conda")]
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod support {
    mod base {
        include!("support/mod.rs");
    }
    pub mod channel;
    pub mod http;
    pub use base::{Lab, PROGRAM, Ran, copy};
}
