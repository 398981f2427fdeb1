//! Tasks in which an agent turns an instruction into a command, as in ML-Bench ("Evaluating Large Language Models and
//! Agents for Machine Learning Tasks on Repository-Level Code"). The agent gets an instruction in words and a repo with
//! documentation, and answers with a Bash script or a Python program.
//!
//! [`Commands`] is the family. A [`manifest::CommandSet`] holds a repo's instructions. [`context`] selects the
//! documentation for an attempt: the less it helps, the more difficult the sample is. [`program`] extracts the program
//! from an answer, [`observe`] runs it and records its calls and arguments ([`calls`], [`argv`]), and [`judge`] gives
//! the verdicts: our strict ones and, in addition, those published with ML-Bench. A second run with a changed argument
//! ([`changed_run`]) shows that the program computes its result. [`gold`] stores the results of the right programs, and
//! [`changes`] shows that a changed right program fails.

mod argv;
mod calls;
mod changed_run;
pub mod changes;
pub mod check;
mod constants;
mod context;
mod errors;
mod family;
pub mod gold;
mod item;
mod judge;
pub mod loaded;
pub mod manifest;
mod measures;
mod observe;
mod program;
pub mod ready;
mod record;
mod sample_id;
mod shelf;
pub mod soundness;
mod task;

pub use family::Commands;
pub use record::{open, record};
