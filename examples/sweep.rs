//! How does the pass rate fall with n? A sweep over the number of masked functions, from Rust.
//!
//! Runs `gold` (which must pass) and `noop` (which must fail) on a paper, for each n, and prints one table:
//! `cargo run --release --example sweep -- kmeanspp`. A second argument names the suite's folder, which is the current
//! folder by default; the run is stored in its folder `runs`.

use std::path::Path;
use std::process::ExitCode;

use autoexperiment::error::{Result, with_causes};
use autoexperiment::report;
use autoexperiment::run::event::{Observer, RunEvent};
use autoexperiment::run::machine::{Machine, MachineOptions};
use autoexperiment::run::{Configuration, outcomes};
use autoexperiment::session::{Run, RunFolder, SessionOptions};
use tokio_util::sync::CancellationToken;

/// Prints the stages of a run, its warnings, and each finished attempt.
struct Lines;

impl Observer for Lines {
    fn on(&self, event: RunEvent) {
        match event {
            RunEvent::Stage(stage) => eprintln!("{stage}"),
            RunEvent::Warning(text) => eprintln!("warning: {text}"),
            RunEvent::Finished(record) => eprintln!("{} {}: {}", record.agent, record.sample, record.pass),
            _ => {}
        }
    }
}

fn main() -> ExitCode {
    let paper = std::env::args().nth(1).unwrap_or_else(|| "kmeanspp".to_owned());
    let suite = std::env::args().nth(2).unwrap_or_else(|| ".".to_owned());
    match sweep(&paper, Path::new(&suite)) {
        Ok(table) => {
            println!("{table}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn sweep(paper: &str, suite: &Path) -> Result<String> {
    let mut configuration = Configuration::new(suite);
    configuration.papers = vec![paper.to_owned()];
    configuration.agents = vec!["gold".parse()?, "noop".parse()?];
    configuration.draw.n = vec![1, 2, 3];
    configuration.draw.limit = 3;
    let machine = Machine::open(&MachineOptions::local()?).await?;
    let run = Run::open(configuration, RunFolder::NamedByTime(suite.join("runs")), SessionOptions::on(machine))?;
    let finished = run.execute(&Lines, &CancellationToken::new()).await?;
    let options = report::SummaryOptions { planned: finished.planned, ..report::SummaryOptions::default() };
    let summary = report::summarise(&outcomes(&finished.records), &options);
    Ok(format!("{}\nrun: {}", report::console(&summary), finished.folder.display()))
}
