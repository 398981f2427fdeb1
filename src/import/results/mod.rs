//! Stored results of other benchmarks, scored again: SUPER's attempts, ML-Bench's rows and replies, ResearchCodeBench's
//! snippets, CORE-Bench's gold. All but the last are JSON lines as Python writes them, read one line at a time.

mod core_bench;
mod ml_bench;
mod research_code_bench;
mod rows;
mod super_trajectories;

pub use core_bench::{Accepted, Questions, accepted};
pub use ml_bench::{Counts, check_rows};
pub use research_code_bench::rates;
pub use super_trajectories::rescore;

/// The mean of what there is; `None` of nothing.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
