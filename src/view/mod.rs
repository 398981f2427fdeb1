//! Reads stored runs for the report in a browser, and serves it.
//!
//! [`RunReader`] collects what can be read of runs and of their papers and other items, and notes what can't.
//! `report::html` makes pages of it, and [`server`] shows them while a run continues. Nothing here writes files.

mod details;
mod facts;
mod reader;
pub(crate) mod server;

pub(crate) use reader::GatheredRuns;
pub use reader::RunReader;
