//! `autoexperiment report`: tables over stored runs.

use std::path::PathBuf;

use super::naming::{report_options, run_folder};
use super::report_files::{html, write_figures};
use super::shared::print;
use crate::error::Result;
use crate::report::{self, Options};
use crate::run::{AttemptRecord, Store};
use crate::stats::{Bootstrap, Population};
use crate::view::Reader;

/// Print pass rates by agent and n over stored runs
///
/// Runs that are still going on, or were cut off, are reported as far as they are.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment report 2026-11-21T10-30-00Z\n  autoexperiment report runs/a runs/b --csv\n  autoexperiment report fixed dynamic --html report.html\n  autoexperiment report fixed dynamic --figures figures"
)]
pub struct Arguments {
    /// Runs: folders, or names under --runs. Several are shown side by side.
    #[arg(required = true)]
    run: Vec<String>,
    #[command(flatten)]
    output: OutputOptions,
    /// Write a page for a browser: overview, samples, trajectories. Broken runs are shown as far as they can be read.
    #[arg(long, value_name = "FILE", group = "format")]
    html: Option<PathBuf>,
    /// Write the figures for a paper into a folder: SVG, PDF and PNG, 5.5 inches wide, and their numbers as CSV.
    #[arg(long, value_name = "DIR", group = "format")]
    figures: Option<PathBuf>,
    /// Folder of the suite, for --html [default: the one that each run names].
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
    /// Folder of the runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// What is shown, and how.
#[derive(clap::Args)]
pub struct OutputOptions {
    /// Values of k in pass@k [default: 1 and the number of attempts].
    #[arg(short, value_name = "K", value_delimiter = ',')]
    k: Vec<usize>,
    /// Of what the intervals speak: of these papers (suite), or of papers like these (papers).
    #[arg(long, value_name = "OF", default_value = "suite", value_parser = parse_population)]
    intervals: Population,
    /// Print JSON.
    #[arg(long, group = "format")]
    json: bool,
    /// Print CSV, a row for each agent and n.
    #[arg(long, group = "format")]
    csv: bool,
    /// Print CSV, a row for each attempt.
    #[arg(long, group = "format")]
    attempts: bool,
    /// Print CSV, a row for each value of each verdict.
    #[arg(long, group = "format")]
    values: bool,
}

impl OutputOptions {
    /// Prints these records.
    pub fn show(&self, records: &[AttemptRecord], options: &Options) -> Result<()> {
        let text = if self.attempts {
            report::attempts_csv(records)?
        } else if self.values {
            report::values_csv(records)?
        } else {
            let bootstrap = Bootstrap { population: self.intervals, ..options.bootstrap };
            let summary = report::summarise(records, &Options { bootstrap, ..options.clone() });
            if self.json {
                report::json(&summary)?
            } else if self.csv {
                report::csv(&summary)?
            } else {
                report::console(&summary)
            }
        };
        print(&text)
    }

    /// The values of k that were asked for.
    pub fn k(&self) -> &[usize] {
        &self.k
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.html.is_some() || arguments.figures.is_some() {
        let folders = arguments.run.iter().map(|name| run_folder(name, &arguments.runs)).collect();
        let bootstrap = Bootstrap { population: arguments.output.intervals, ..Bootstrap::default() };
        let ks = arguments.output.k().to_vec();
        let mut reader = Reader::new(folders, arguments.suite.clone(), ks, bootstrap);
        return match (&arguments.html, &arguments.figures) {
            (Some(file), _) => html(&mut reader, file),
            (None, Some(folder)) => write_figures(&mut reader, folder),
            (None, None) => Ok(()),
        };
    }
    let mut records = Vec::new();
    let mut options: Option<Options> = None;
    for name in &arguments.run {
        let (store, run) = match Store::open(&run_folder(name, &arguments.runs)) {
            Ok(opened) => opened,
            // One folder among several that is no run, as `runs/*` may hold, hides none of the others.
            Err(error) if arguments.run.len() > 1 => {
                talk!("left out: {}", report::clean(&error.to_string()));
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut of_run = store.records()?;
        let mut asked = report_options(&run, arguments.output.k());
        if arguments.run.len() > 1 {
            // The same agent in two runs is two rows, not one with twice the attempts.
            for agent in of_run
                .iter_mut()
                .map(|record| &mut record.agent)
                .chain(asked.planned.iter_mut().map(|planned| &mut planned.agent))
            {
                *agent = format!("{}/{agent}", run.run);
            }
        }
        records.append(&mut of_run);
        match &mut options {
            None => options = Some(asked),
            Some(options) => {
                options.planned.append(&mut asked.planned);
                options.ks.append(&mut asked.ks);
                options.ks.sort_unstable();
                options.ks.dedup();
            }
        }
    }
    arguments.output.show(&records, &options.unwrap_or_default())
}

/// `suite` or `papers`.
pub fn parse_population(text: &str) -> Result<Population, String> {
    match text {
        "suite" => Ok(Population::Suite),
        "papers" => Ok(Population::Papers),
        _ => Err(format!("intervals speak of the `suite` or of `papers`, not of `{text}`")),
    }
}
