//! `autoexperiment verify-runs`: verifiers over a stored run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::model::{ModelOptions, open_choice};
use super::naming::run_folder;
use super::progress::Progress;
use super::report::parse_population;
use super::shared::{print, print_json};
use crate::error::Result;
use crate::report::{verifier_rows, verifiers_console};
use crate::run::Store;
use crate::run::event::{Observer, RunEvent};
use crate::stats::{Bootstrap, Population};
use crate::suite::{LoadedPaper, Suite};
use crate::verifier;
use crate::verifier::stored::verify_run;

/// Let verifiers pick one of the k attempts at each sample of a stored run
///
/// No agent runs again. Prints what the chosen attempts are worth between pass@1 and pass@k. Every choice is kept in the
/// run's `choices.jsonl` as it is made, with its reason and its cost, and is not made again.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  autoexperiment verify-runs sweep --verifier majority --verifier execution --verifier oracle
  autoexperiment verify-runs sweep --verifier execution+model --model openai:gpt-5-mini --orders 2")]
pub struct Arguments {
    /// The run's folder, or its name under --runs.
    run: String,
    /// Verifiers: `none`, `majority`, `execution`, `model`, `execution+model`, `oracle`. Several may be given.
    #[arg(long = "verifier", value_name = "VERIFIER", required = true)]
    verifiers: Vec<String>,
    /// How often a model verifier is asked, each time with the candidates in another order; the most votes win.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=26))]
    orders: u32,
    #[command(flatten)]
    model: ModelOptions,
    /// Of what the intervals speak: of these papers (suite), or of papers like these (papers).
    #[arg(long, value_name = "OF", default_value = "suite", value_parser = parse_population)]
    intervals: Population,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Folder of the runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// The suite's folder, where it has moved.
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let (store, run) = Store::open(&run_folder(&arguments.run, &arguments.runs))?;
    let model = arguments.model.choice()?.map(|choice| open_choice(&choice)).transpose()?;
    let mut verifiers = Vec::new();
    for name in &arguments.verifiers {
        verifiers.push(verifier::open(name, model.clone(), arguments.orders)?);
    }
    let suite = Suite::open(arguments.suite.as_deref().unwrap_or(&run.configuration.suite))?;
    let records = store.records()?;
    let mut papers = BTreeMap::new();
    for record in &records {
        if !papers.contains_key(&record.paper) {
            papers.insert(record.paper.clone(), LoadedPaper::load(&suite, &record.paper)?);
        }
    }
    let progress = Progress::new(false);
    let mut made = Vec::new();
    for verifier in &verifiers {
        let name = verifier.name();
        let told = |done: usize, total: usize| {
            progress.on(RunEvent::Stage(format!("verifier `{name}`: {done} of {total} samples")));
        };
        made.extend(verify_run(&store, &records, &papers, verifier.as_ref(), &told).await?);
    }
    progress.finish();
    let how = Bootstrap { population: arguments.intervals, ..Bootstrap::default() };
    let rows = verifier_rows(&records, &made, how);
    if arguments.json { print_json(&rows) } else { print(&verifiers_console(&rows, how)) }
}
