//! `autoexperiment export`: stored runs in the formats of other projects.

use std::path::PathBuf;

use super::naming::run_folder;
use super::shared::print;
use crate::error::Result;
use crate::export::table::{self, TableFormat};
use crate::export::{Source, atif, harbor, inspect, predictions, traj};
use crate::report::clean;
use crate::suite::Suite;

/// Write a stored run in another project's format
///
/// Prints the paths of the files that were written. What is missing from the run, such as a trajectory that was cut off,
/// is left out and said.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment export 2026-11-21T10-30-00Z --format inspect -o logs\n  autoexperiment export runs/a --format parquet -o tables\n  autoexperiment export runs/a --format csv -o attempts.csv"
)]
pub struct Arguments {
    /// A run: a folder, or a name under --runs.
    run: String,
    /// The format.
    #[arg(long, value_enum)]
    format: Format,
    /// Folder to write into. A path with the format's own ending (`.eval`, `.csv`, `.parquet`, `.jsonl`) is a file.
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// Folder of the runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// For Harbor: the folder of the suite [default: that of the run].
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
}

/// A format to export to.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// Logs of Inspect AI, `.eval`: one for each agent and model, attempts as epochs.
    Inspect,
    /// Tasks of Harbor, one for each sample of the run, and the run's trajectories in ATIF.
    Harbor,
    /// Trajectories in ATIF 1.8, Harbor's format: one for each attempt.
    Atif,
    /// Trajectories as SWE-agent's `.traj`: one for each attempt.
    Traj,
    /// Tables of attempts and of values as CSV.
    Csv,
    /// The same as Parquet.
    Parquet,
    /// The same as JSON lines.
    Jsonl,
    /// Patches as SWE-bench's predictions: one file for each agent and number of attempt.
    Predictions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let source = Source::open(&run_folder(&arguments.run, &arguments.runs))?;
    let written = write(&source, arguments);
    // What is missing may be why nothing could be written.
    for note in source.notes() {
        talk!("{}", clean(&note));
    }
    let lines: String = written?.iter().map(|path| clean(&path.display().to_string()) + "\n").collect();
    print(&lines)
}

fn write(source: &Source, arguments: &Arguments) -> Result<Vec<PathBuf>> {
    let path = &arguments.output;
    match arguments.format {
        Format::Inspect => inspect::export(source, path),
        Format::Harbor => {
            let suite = arguments.suite.as_ref().unwrap_or(&source.run.configuration.suite);
            harbor::export(source, &Suite::open(suite)?, path)
        }
        Format::Atif => atif::export(source, path),
        Format::Traj => traj::export(source, path),
        Format::Csv => table::export(source, TableFormat::Csv, path),
        Format::Parquet => table::export(source, TableFormat::Parquet, path),
        Format::Jsonl => table::export(source, TableFormat::Jsonl, path),
        Format::Predictions => predictions::export(source, path),
    }
}
