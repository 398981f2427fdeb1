//! Scores stored results of other benchmarks again: SUPER's attempts, ML-Bench's gold programs and replies, and
//! ResearchCodeBench's completions. Also derives the accepted answers of CORE-Bench's tasks from their gold. All files
//! except CORE-Bench's are JSON lines as written by Python, and are read line by line.

mod core_bench;
mod ml_bench;
mod research_code_bench;
mod rows;
mod super_trajectories;

pub use core_bench::{Accepted, Questions, accepted};
pub use ml_bench::{PassingRows, check_rows};
pub use research_code_bench::rates;
pub use super_trajectories::rescore;

/// Returns the mean; `None` if there are no values.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
