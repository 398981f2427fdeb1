//! `autoexperiment parity`: checks whether two runs of the same samples agree, as Harbor requires of adapters.

use std::path::PathBuf;

use super::naming::distinct_folders;
use super::shared::{print, print_json};
use crate::error::{Error, Result};
use crate::report::{
    Aspect, ParityDescription, accepted_changes, clean, differing_conditions, parity, parity_console, parity_experiment,
};
use crate::run::Outcome;
use crate::run::reading::read_outcomes;

/// Check that two runs of the same samples agree, in the form that Harbor requires of adapters
///
/// Takes each attempt number as one run over the samples that both sides have, and prints means with their standard
/// errors, ranges, and whether the ranges overlap, which is Harbor's rule for parity. `--json` prints the file
/// `parity_experiment.json`, in which links to repositories and pull requests are left for you to fill in. Make three
/// or more attempts at each sample (`run -k 3`).
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment parity original harbor\n  autoexperiment parity original harbor --json --adapter autoexperiment > parity_experiment.json"
)]
pub struct Arguments {
    /// The original side: a run's folder, or its name under --runs.
    original: String,
    /// The other side, run with Harbor or anything else.
    harbor: String,
    /// Agent to compare, if a run has several.
    #[arg(long)]
    agent: Option<String>,
    /// Measure to compare, such as `verified_accuracy`, instead of pass rates.
    #[arg(long, value_name = "NAME")]
    measure: Option<String>,
    /// Name of the adapter.
    #[arg(long, value_name = "NAME", default_value = "autoexperiment")]
    adapter: String,
    /// Name of the benchmark.
    #[arg(long, value_name = "NAME", default_value = "AutoExperiment")]
    benchmark: String,
    /// Number of tasks that the adapter converts [default: those compared].
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Notes for the file.
    #[arg(long, value_name = "TEXT", default_value = "")]
    notes: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let names = [arguments.original.clone(), arguments.harbor.clone()];
    let folders = distinct_folders(&names, &arguments.runs)?;
    let (mut sides, mut runs) = (Vec::new(), Vec::new());
    for (name, folder) in names.iter().zip(&folders) {
        let reading = read_outcomes(folder)?;
        for note in &reading.notes {
            talk!("{}: {}", clean(name), clean(note));
        }
        sides.push(of_one_agent(name, reading.records, arguments.agent.as_deref())?);
        runs.push(reading.run);
    }
    for (name, run) in names.iter().zip(&runs) {
        for change in run.iter().flat_map(accepted_changes) {
            talk!("warning: attempts of `{}` are not comparable with each other: {}", clean(name), clean(change));
        }
    }
    // A side that ran elsewhere may have no run file, so its conditions are unknown.
    if let [Some(first), Some(second)] = runs.as_slice() {
        for what in differing_conditions(first, second) {
            talk!("warning: the two sides differ in {}", clean(&what));
        }
    }
    let [first, second] = sides.as_slice() else { return Err(Error::internal("a parity comparison needs two runs")) };
    let aspect = arguments.measure.clone().map_or(Aspect::Pass, Aspect::Measure);
    let found = parity([first, second], &aspect).map_err(|wrong| {
        Error::usage(wrong).hint("both runs need attempts at the same samples, `-k` attempts at each")
    })?;
    if !arguments.json {
        return print(&parity_console(&found, &aspect));
    }
    let about = ParityDescription {
        adapter: arguments.adapter.clone(),
        benchmark: arguments.benchmark.clone(),
        size: arguments.size,
        notes: arguments.notes.clone(),
    };
    print_json(&[parity_experiment(&found, &aspect, &about, &second[0])])
}

/// Returns the records of the named agent, or of the run's only agent.
fn of_one_agent(run: &str, records: Vec<Outcome>, agent: Option<&str>) -> Result<Vec<Outcome>> {
    let kept: Vec<_> = records.into_iter().filter(|record| agent.is_none_or(|agent| &*record.agent == agent)).collect();
    let Some(first) = kept.first() else {
        return Err(Error::usage(format!("run `{run}` has no attempt to compare")));
    };
    match kept.iter().find(|record| record.agent != first.agent || record.model != first.model) {
        None => Ok(kept),
        Some(other) => Err(Error::usage(format!(
            "run `{run}` has several agents or models, such as `{}` and `{}`",
            first.agent, other.agent
        ))
        .hint("name one of the agents with `--agent`")),
    }
}
