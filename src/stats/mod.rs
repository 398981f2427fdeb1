//! pass@k, intervals, comparisons of agents, the decline of pass rates with the number of masked functions, and the
//! number of samples that a comparison needs: pure functions over counts, used by the report.

mod beta;
#[cfg(test)]
mod coverage;
mod exchange;
mod gap;
mod logistic;
mod normal;
mod paired;
mod pass;
mod power;
mod rate;
mod repeats;
mod sampled;
mod student;
#[cfg(test)]
mod tests;
mod uniform;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use exchange::{
    DrawPool, MOST_OUTLIERS, OUTLYING, ROUNDING, USUAL, adjusted_p, is_rounding, outlying_values,
};
pub(crate) use gap::gap_closed;
pub(crate) use logistic::{Logistic, TryCounts, chance, fit_correlated};
pub(crate) use paired::{Discordant, FEWEST_PAIRS, difference_interval, holm, mcnemar, sign_flip};
pub use pass::{pass_all_k, pass_at_k, wilson};
pub use power::Design;
pub(crate) use power::{ComparisonGoal, Spread};
pub use rate::weighted_rate_interval;
pub(crate) use rate::{FEWEST_PAPERS, FEWEST_SAMPLES, rate_interval};
pub(crate) use repeats::{prediction_interval, standard_error};
pub use sampled::{Intervals, Population, SampleValue};
pub(crate) use uniform::Uniform;

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}
