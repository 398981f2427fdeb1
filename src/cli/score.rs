//! `autoexperiment score`: computes the verdicts of a stored run again.

use std::path::PathBuf;

use super::naming::{intervals, report_options, run_folder};
use super::report::{RateOptions, SummaryFormat};
use super::shared::print;
use crate::error::{Error, Result};
use crate::export::table::{CsvTable, TableRows};
use crate::report;
use crate::run::family::{Families, ScoringBasis, rescored};
use crate::run::{AttemptRecord, Catalogue, Store, counting, measure_names, outcomes};
use crate::score::Rule;

/// Score a stored run again, without running anything
///
/// Uses the reported and verified results from the store, and gold from the suite as it is now. Does not change the
/// store. Lists the attempts whose verdict differs from the stored one.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment score 2026-11-21T10-30-00Z\n  autoexperiment score runs/a --scoring reference --json"
)]
pub struct Arguments {
    /// A run: its folder, or its name under --runs; `latest` is the newest.
    run: String,
    /// Scoring rule: `strict` or `reference` [default: the run's].
    #[arg(long, value_name = "RULE", value_parser = super::run::parse_rule)]
    scoring: Option<Rule>,
    #[command(flatten)]
    rates: RateOptions,
    /// View to print: pass rates by agent and n, the same with samples weighted by their lines of withheld code, or CSV
    /// with one row per attempt or per value.
    #[arg(long, value_enum, default_value_t = View::Overview)]
    view: View,
    #[command(flatten)]
    format: SummaryFormat,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder of the suite, if it has moved.
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
}

/// What to print about the new verdicts. The command `report` prints the same about the stored verdicts.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum View {
    Overview,
    Lines,
    Attempts,
    Values,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.format.is_given() && arguments.view != View::Overview {
        return Err(Error::usage("`--json` and `--csv` need `--view overview`")
            .hint("leave out `--view`; `attempts` and `values` are CSV already"));
    }
    let (store, run) = Store::open(&run_folder(&arguments.run, &arguments.runs)?)?;
    let suite = arguments.suite.as_deref().unwrap_or(&run.configuration.suite);
    let mut basis = ScoringBasis::from(&run.configuration);
    basis.rule = arguments.scoring.unwrap_or(basis.rule);
    let stored = store.records()?;
    let catalogue = Catalogue::load(&Families::standard(), suite, basis, &stored).whole()?;
    let mut records = Vec::new();
    for record in stored {
        let Some((sample, item)) = catalogue.find(&record) else { continue };
        let again = rescored(item, &sample, &record)?;
        if again.pass != record.pass {
            let verdict = |pass| if pass { "passes" } else { "fails" };
            talk!(
                "{} {}.{}: {} now, {} in the store",
                report::clean(&record.agent),
                report::clean(&record.sample),
                record.attempt,
                verdict(again.pass),
                verdict(record.pass)
            );
        }
        records.push(again);
    }
    for item in catalogue.items() {
        if run.digests.papers.get(item.id()) != Some(&item.digest()) {
            talk!("warning: the definition or gold of `{}` has changed since the run", item.id());
        }
    }
    let outcomes = outcomes(&records);
    let mut options = report_options(&outcomes, &run.planned, run.configuration.k, &arguments.rates.k);
    options.intervals = intervals(arguments.rates.intervals, &outcomes);
    options.notes.extend(report::changes_warning(&run.run, &run));
    match arguments.view {
        View::Overview => arguments.format.show(&outcomes, &options),
        View::Lines => print(&report::lines_console(&report::summarise(&outcomes, &options))),
        View::Attempts => rows(TableRows::Attempts, &run.run, records),
        View::Values => rows(TableRows::Values, &run.run, records),
    }
}

/// Prints attempts or values as CSV.
fn rows(rows: TableRows, run: &str, records: Vec<AttemptRecord>) -> Result<()> {
    let table = CsvTable { rows, measures: measure_names(&records) };
    let mut text = table.heading()?;
    let counts = counting(&records);
    for (record, counts) in records.into_iter().zip(counts) {
        table.add(&mut text, run, record, counts)?;
    }
    print(&text)
}
