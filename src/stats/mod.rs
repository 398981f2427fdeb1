//! pass@k, intervals, comparisons, declines, power: pure functions over counts, used by the report.

mod bootstrap;
#[cfg(test)]
mod coverage;
mod logistic;
mod normal;
mod paired;
mod pass;
mod power;
mod student;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use bootstrap::{Bootstrap, Population, bootstrap, gap_closed};
pub use logistic::{Logistic, Tried, chance, fit};
pub use paired::{Discordant, holm, mcnemar, paired_bootstrap};
pub use pass::{pass_all_k, pass_at_k, wilson};
pub use power::{Aim, Spread};

/// An interval, both bounds included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}
