//! AutoExperiment measures whether AI agents can re-implement and run the experiments of research papers.
//!
//! Data flows from left to right, and a module imports only from modules to its left:
//!
//! ```text
//! error → files → code → sample → suite → score → stats → scrub → workspace → env → sandbox → model → agent → run → masked → families → audit → curtail → draft → import → verifier → report → export → view → cli
//! ```
//!
//! The words used throughout (paper, repo, env, function, experiment, sample, attempt, trajectory, answer,
//! verdict, end) are defined in `DESIGN.md`.

pub mod agent;
pub mod audit;
pub mod cli;
pub mod code;
pub mod curtail;
pub mod draft;
pub mod env;
pub mod error;
pub mod export;
mod families;
pub mod files;
pub mod import;
pub mod masked;
pub mod model;
pub mod report;
pub mod run;
pub mod sample;
pub mod sandbox;
pub mod score;
pub mod scrub;
pub mod stats;
pub mod suite;
pub mod verifier;
pub mod view;
pub mod workspace;
