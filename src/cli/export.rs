//! `autoexperiment export`: writes stored runs in the formats of other projects.

use std::path::PathBuf;

use super::naming::run_folder;
use super::shared::print;
use crate::error::Result;
use crate::export::table::{self, TableFormat};
use crate::export::{ExportSource, atif, harbor, inspect, predictions, training, traj};
use crate::report::clean;
use crate::run::family::Families;
use crate::suite::Suite;

/// Export a stored run to another project's format
///
/// Prints the paths of the files it wrote. Anything missing from the run, such as a trajectory that was cut off, is
/// left out and reported.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment export 2026-11-21T10-30-00Z --format inspect -o logs\n  autoexperiment export runs/a --format parquet -o tables\n  autoexperiment export runs/a --format csv -o attempts.csv"
)]
pub struct Arguments {
    /// A run: its folder, or its name under --runs; `latest` is the newest.
    run: String,
    /// Format to write.
    #[arg(long, value_enum)]
    format: ExportFormat,
    /// Folder to write to. A path with the format's own extension (`.eval`, `.csv`, `.parquet`, `.jsonl`) is a file.
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder of the suite, for Harbor [default: the run's].
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
}

/// Format to export to.
#[derive(Clone, Copy, clap::ValueEnum)]
enum ExportFormat {
    /// Inspect AI logs (`.eval`): one per agent and model, with attempts as epochs.
    Inspect,
    /// Harbor tasks: one per sample of the run, with the run's trajectories in ATIF.
    Harbor,
    /// Trajectories in ATIF 1.8, Harbor's format: one per attempt.
    Atif,
    /// Trajectories in SWE-agent's `.traj` format: one per attempt.
    Traj,
    /// Tables of attempts and values as CSV.
    Csv,
    /// Tables of attempts and values as Parquet.
    Parquet,
    /// Tables of attempts and values as JSON lines.
    Jsonl,
    /// Replies for training, one row each with token ids, log-probabilities and reward, as Parquet or JSON lines.
    Turns,
    /// Patches as SWE-bench predictions: one file per agent and attempt number.
    Predictions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let source = ExportSource::open(&run_folder(&arguments.run, &arguments.runs)?, &Families::standard())?;
    let written = write(&source, arguments);
    // Print the notes even if nothing could be written: what is missing from the run may be the reason.
    for note in source.notes() {
        talk!("{}", clean(&note));
    }
    let lines: String = written?.iter().map(|path| clean(&path.display().to_string()) + "\n").collect();
    print(&lines)
}

fn write(source: &ExportSource, arguments: &Arguments) -> Result<Vec<PathBuf>> {
    let path = &arguments.output;
    match arguments.format {
        ExportFormat::Inspect => inspect::export(source, path),
        ExportFormat::Harbor => {
            let suite = arguments.suite.as_ref().unwrap_or(&source.run.configuration.suite);
            harbor::export(source, &Suite::open(suite)?, path)
        }
        ExportFormat::Atif => atif::export(source, path),
        ExportFormat::Traj => traj::export(source, path),
        ExportFormat::Csv => table::export(source, TableFormat::Csv, path),
        ExportFormat::Parquet => table::export(source, TableFormat::Parquet, path),
        ExportFormat::Jsonl => table::export(source, TableFormat::Jsonl, path),
        ExportFormat::Turns => {
            let (written, notes) = training::export(source, path)?;
            for note in notes {
                talk!("{}", clean(&note));
            }
            Ok(written)
        }
        ExportFormat::Predictions => predictions::export(source, path),
    }
}
