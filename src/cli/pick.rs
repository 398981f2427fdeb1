//! `autoexperiment pick`: applies verifiers to a stored run.

use std::path::PathBuf;
use std::sync::Arc;

use super::model::{ModelOptions, verifier_spec};
use super::naming::{intervals, run_folder};
use super::progress::ProgressDisplay;
use super::report::parse_population;
use super::run::parse_dollars;
use super::shared::{print, print_json};
use super::signals::stop_on_signals;
use crate::error::{Error, FailureKind, Result};
use crate::report::{clean, verifier_rows, verifiers_console};
use crate::run::family::{Families, ScoringBasis};
use crate::run::reading::{ReadableRun, read};
use crate::run::{AttemptRecord, Catalogue, outcomes};
use crate::stats::Population;
use crate::verifier::choosing::{choose_all, open_all, reach};
use crate::verifier::stored::{CostCap, choices, groups, spent};

/// Let verifiers pick one of the k attempts at each sample of a stored run
///
/// No agent runs again. Prints the pass rate of the chosen attempts, which is between pass@1 and pass@k. Stores every
/// choice in the run's `choices.jsonl`, with its reason and its cost, and every reply of a model in `votes.jsonl`. If
/// the command is stopped, repeat it: it continues where it stopped and asks nothing twice. `report` shows the choices
/// next to the run's rates.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  autoexperiment pick sweep --verifier majority --verifier execution --verifier oracle
  autoexperiment pick sweep --verifier execution+model --model openai:gpt-5-mini --orders 4 --max-cost 5
  autoexperiment pick sweep --verifier model:openai:gpt-5-mini --verifier model:anthropic:claude-sonnet-4-5
  autoexperiment pick sweep --verifier model:qwen --base-url http://127.0.0.1:8080/v1 --price 0,0")]
pub struct Arguments {
    /// A run: its folder, or its name under --runs; `latest` is the newest.
    run: String,
    /// Verifier: `none` (the first attempt), `majority` (the results that most agree on), `execution` (the same, among
    /// those that run), `model` (that of --model), `model:NAME`, `execution+model`, or `oracle` (knows gold: the
    /// ceiling). Can be repeated.
    #[arg(long = "verifier", value_name = "VERIFIER", required = true)]
    verifiers: Vec<String>,
    /// How often a model verifier is asked, each time with the candidates in another order. The most votes win.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=26))]
    orders: u32,
    /// Cost limit in dollars for the models of all verifiers of this run, including their cost so far. Replies are
    /// limited to the length that the remaining money buys.
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    max_cost: Option<f64>,
    #[command(flatten)]
    model: ModelOptions,
    /// Scope of the intervals: these papers (`suite`), or papers like them (`papers`).
    #[arg(long, value_name = "SCOPE", default_value = "suite", value_parser = parse_population)]
    intervals: Population,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder of the suite, if it has moved.
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let folder = run_folder(&arguments.run, &arguments.runs)?;
    let ReadableRun { store, run, mut records, notes, .. } = read::<AttemptRecord>(&folder)?;
    for note in &notes {
        talk!("{}", clean(note));
    }
    // Lock the run, because two processes that choose at the same time would pay twice.
    let _lock = store.lock()?;
    let choice = arguments.model.server()?;
    let specs = arguments.verifiers.iter().map(|text| verifier_spec(text)).collect::<Result<Vec<_>>>()?;
    let verifiers = open_all(&specs, arguments.orders, choice.as_ref(), None)?;
    let probed = reach(&verifiers, None).await?;
    if let Some(told) = probed.describe() {
        talk!("{told}");
    }
    let suite = arguments.suite.as_deref().or_else(|| run.as_ref().map(|run| run.configuration.suite.as_path()));
    let suite = suite.ok_or_else(|| {
        Error::usage("the run does not say where its suite is").hint("name the suite's folder with `--suite DIR`")
    })?;
    let basis = run.as_ref().map(|run| ScoringBasis::from(&run.configuration)).unwrap_or_default();
    let catalogue = Catalogue::load(&Families::standard(), suite, basis, &records);
    for (id, error) in catalogue.unloadable() {
        talk!("`{}` cannot be read, so its samples are left out: {}", clean(id), clean(&error.to_string()));
    }
    records.retain(|record| catalogue.find(record).is_some());
    if records.is_empty() && !catalogue.unloadable().is_empty() {
        return catalogue.whole().map(drop);
    }
    for item in catalogue.items() {
        if run.as_ref().is_some_and(|run| run.digests.papers.get(item.id()) != Some(&item.digest())) {
            talk!("warning: the definition or gold of `{}` has changed since the run", item.id());
        }
    }
    let progress = ProgressDisplay::new(false);
    let spent = spent(&store)?;
    for note in &spent.notes {
        talk!("{}", clean(note));
    }
    // A run that an earlier version of this program made has no ledger until the run is resumed.
    let books = store.books()?;
    let ledger = books.as_ref().map(|_| store.ledger()).transpose()?.map(Arc::new);
    if let Some(ledger) = &ledger {
        ledger.probed(&probed).map_err(|error| store.ledger_failed(&error.to_string()))?;
    }
    let spent = books.map_or(spent.dollars, |books| books.verifiers().dollars());
    let cost_cap = CostCap::new(spent, arguments.max_cost, ledger, stop_on_signals());
    let ended = choose_all(&store, &groups(&records), &catalogue, &verifiers, &cost_cap, &progress).await;
    progress.finish();
    // Show what was chosen, even if an error ended the choosing.
    let names: Vec<String> = verifiers.iter().map(|verifier| verifier.name()).collect();
    let made: Vec<_> = choices(&store)?.records.into_iter().filter(|choice| names.contains(&choice.verifier)).collect();
    let outcomes = outcomes(&records);
    let how = intervals(arguments.intervals, &outcomes);
    let rows = verifier_rows(&outcomes, &made, how);
    if arguments.json {
        print_json(&rows)?;
    } else if !rows.is_empty() {
        print(&verifiers_console(&rows, how))?;
    }
    ended.map_err(|error| match error.kind {
        FailureKind::CostLimit => {
            error.hint("the judgements are stored: repeat the command with a higher `--max-cost` to continue")
        }
        _ if error.hint.is_none() => error.hint("the judgements are stored: repeat the command to continue"),
        _ => error,
    })
}
