//! A command whose result is read: what `gold` reports from, and what verification runs.

use crate::suite::ResultRule;

/// A command, and how its result is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Its name in records.
    pub id: String,
    /// Under which an answer reports its result: "Experiment 3".
    pub key: String,
    /// The shell command, run in the repo's root.
    pub command: String,
    /// Seconds that it may take.
    pub time_limit: f64,
    /// How its result is read.
    pub result: ResultRule,
}
