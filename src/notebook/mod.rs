//! Notebook tasks, after SUPER ("Evaluating Agents on Setting Up and Executing Tasks from Research Repositories", Bogin
//! et al., 2024): a query about a repo, to be answered by running the cells of a notebook.
//!
//! A task (`tasks/<cluster>.<item>/`) has gold cells in blocks. A sample withholds n blocks; the cells of the other
//! blocks, the prefix, are executed before the agent begins. The reported verdict has the published measures. The
//! verified verdict has the harness's own measures, which are taken in a fresh sandbox with the files and packages that
//! the agent leaves.

mod changes;
mod check;
mod constants;
mod family;
mod forgery;
mod ids;
mod instructions;
mod item;
mod judge;
mod layer;
mod loaded;
mod manifest;
mod measures;
mod ready;
pub mod soundness;
mod task;
mod trace;
pub mod trials;

pub use family::Notebook;
pub use loaded::{GoldRecord, LoadedTask, RECORD};
pub use task::TrialSolution;
