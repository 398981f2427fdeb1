//! Reads stored runs for their report in a browser, and serves it.
//!
//! [`Reader`] gathers what is on disk of runs and of the papers and other items they speak of, as far as it can be read, and says what
//! cannot. `report::html` makes pages of it. [`server`] shows them while a run goes on. Nothing here writes.

mod details;
mod facts;
mod reader;
pub(crate) mod server;

pub(crate) use reader::Gathered;
pub use reader::Reader;
