//! AutoExperiment measures whether AI agents can re-implement and run the experiments of research papers.
//!
//! Data flows from left to right, and a module imports only from modules to its left:
//!
//! ```text
//! error → files → code → sample → stats → tolerance → suite → score → scrub → workspace → env → sandbox → kernel → model → agent → run → masked → command → notebook → families → audit → curtail → draft → import → factory → verifier → session → episode → openenv → soundness → cluster → report → export → view → mcp → cli
//! ```
//!
//! The following example is equivalent to `autoexperiment run -p kmeanspp -n 1..3 --agent gold --agent noop`. (It is
//! compiled but not run as a test, because it builds the paper's Python env, which needs a network and takes minutes.)
//!
//! ```no_run
//! use std::path::Path;
//!
//! use autoexperiment::run::Configuration;
//! use autoexperiment::run::machine::{Machine, MachineOptions};
//! use autoexperiment::session::{Run, RunFolder, SessionOptions};
//! use autoexperiment::{error, report, run};
//! use tokio_util::sync::CancellationToken;
//!
//! struct Quiet;
//!
//! impl run::event::Observer for Quiet {
//!     fn on(&self, _event: run::event::RunEvent) {}
//! }
//!
//! #[tokio::main]
//! async fn sweep() -> error::Result<()> {
//!     let mut configuration = Configuration::new(Path::new("."));
//!     configuration.papers = vec!["kmeanspp".to_owned()];
//!     configuration.agents = vec!["gold".parse()?, "noop".parse()?];
//!     configuration.draw.n = vec![1, 2, 3];
//!     let machine = Machine::open(&MachineOptions::local()?).await?;
//!     let run = Run::open(configuration, RunFolder::New("runs/sweep".into()), SessionOptions::on(machine))?;
//!     let finished = run.execute(&Quiet, &CancellationToken::new()).await?;
//!     let options = report::SummaryOptions { planned: finished.planned, ..report::SummaryOptions::default() };
//!     println!("{}", report::console(&report::summarise(&run::outcomes(&finished.records), &options)));
//!     Ok(())
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     match sweep() {
//!         Ok(()) => std::process::ExitCode::SUCCESS,
//!         Err(error) => {
//!             eprintln!("error: {}", error::with_causes(&error));
//!             std::process::ExitCode::FAILURE
//!         }
//!     }
//! }
//! ```
//!
//! The terms used throughout (paper, repo, env, function, experiment, sample, attempt, trajectory, answer, verdict,
//! end) are defined in `DESIGN.md`.

#![deny(unsafe_code)]

pub mod agent;
pub mod audit;
pub mod cli;
mod cluster;
pub mod code;
mod command;
mod curtail;
mod draft;
pub mod env;
mod episode;
pub mod error;
pub mod export;
mod factory;
mod families;
mod files;
mod import;
mod kernel;
pub mod masked;
mod mcp;
pub mod model;
mod notebook;
mod openenv;
pub mod report;
pub mod run;
pub mod sample;
#[allow(unsafe_code, reason = "what no library wraps")]
pub mod sandbox;
pub mod score;
pub mod scrub;
pub mod session;
mod soundness;
pub mod stats;
pub mod suite;
mod tolerance;
mod verifier;
pub mod view;
pub mod workspace;
