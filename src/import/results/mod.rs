//! Rescores stored results of other benchmarks: SUPER's attempts, ML-Bench's rows and replies, ResearchCodeBench's
//! snippets, CORE-Bench's gold. All but the last are JSON lines as written by Python, read one line at a time.

mod core_bench;
mod ml_bench;
mod research_code_bench;
mod rows;
mod super_trajectories;

pub use core_bench::{Accepted, Questions, accepted};
pub use ml_bench::{PassingRows, check_rows};
pub use research_code_bench::rates;
pub use super_trajectories::rescore;

/// Computes the mean; `None` without values.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
