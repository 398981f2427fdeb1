//! A check: a command with a result. `gold` runs checks to report results, and verification runs them to score an
//! attempt.

use crate::suite::ResultRule;

/// A command, and the rule to read its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The check's id in records.
    pub id: String,
    /// Key of the check's result in an answer, such as "Experiment 3".
    pub key: String,
    /// The shell command, run in the repo's root.
    pub command: String,
    /// Time limit in seconds.
    pub time_limit: f64,
    /// How to read the result.
    pub result: ResultRule,
}
