//! `autoexperiment score`: computes the verdicts of a stored run again.

use std::path::PathBuf;

use super::naming::{report_options, run_folder};
use super::report::OutputOptions;
use crate::error::Result;
use crate::run::family::{Families, ScoringBasis, rescored};
use crate::run::{Catalogue, Store};
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
    output: OutputOptions,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder of the suite, if it has moved.
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
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
                crate::report::clean(&record.agent),
                crate::report::clean(&record.sample),
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
    arguments.output.show(&records, &report_options(&records, &run.planned, run.configuration.k, arguments.output.k()))
}
