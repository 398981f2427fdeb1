//! `autoexperiment verify-runs`: verifiers over a stored run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::model::{ModelOptions, open_choice};
use super::naming::run_folder;
use super::progress::Progress;
use super::report::parse_population;
use super::shared::{print, print_json};
use crate::error::{Error, Result};
use crate::report::{clean, verifier_rows, verifiers_console};
use crate::run::event::{Observer, RunEvent};
use crate::run::reading::{Detail, Reading, read};
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
    let folder = run_folder(&arguments.run, &arguments.runs);
    let Reading { store, run, mut records, notes } = read(&folder, Detail::Whole)?;
    for note in &notes {
        talk!("{}", clean(note));
    }
    let model = arguments.model.choice()?.map(|choice| open_choice(&choice)).transpose()?;
    let mut verifiers = Vec::new();
    for name in &arguments.verifiers {
        verifiers.push(verifier::open(name, model.clone(), arguments.orders)?);
    }
    let suite = arguments.suite.as_deref().or_else(|| run.as_ref().map(|run| run.configuration.suite.as_path()));
    let suite = Suite::open(suite.ok_or_else(|| {
        Error::usage("the run does not say where its suite is").hint("name the suite's folder with `--suite DIR`")
    })?)?;
    let mut papers = BTreeMap::new();
    let mut gone = BTreeMap::new();
    for id in records.iter().map(|record| &record.paper) {
        if !papers.contains_key(id) && !gone.contains_key(id) {
            match LoadedPaper::load(&suite, id) {
                Ok(loaded) => drop(papers.insert(id.clone(), loaded)),
                Err(error) => drop(gone.insert(id.clone(), error)),
            }
        }
    }
    for (id, error) in &gone {
        talk!("paper `{}` cannot be read, its samples are left out: {}", clean(id), clean(&error.to_string()));
    }
    records.retain(|record| papers.contains_key(&record.paper));
    if let (true, Some((_, error))) = (papers.is_empty(), gone.pop_first()) {
        return Err(error);
    }
    for (id, loaded) in &papers {
        if run.as_ref().is_some_and(|run| run.digests.papers.get(id) != Some(&loaded.digest)) {
            talk!("warning: the manifest, text or gold of paper `{id}` has changed since the run");
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
