//! `autoexperiment compare`: compares runs and tests whether they differ by more than chance.

use std::path::PathBuf;

use super::naming::{distinct_folders, intervals};
use super::report::parse_population;
use super::shared::{print, print_json};
use crate::error::{Error, Result};
use crate::report::{
    Label, Labels, Merged, accepted_changes, clean, compare, compare_console, contenders, differing_conditions,
};
use crate::run::RunFile;
use crate::stats::Population;

/// Compare agents, models or settings on the same samples
///
/// Pairs the samples that both contenders have, and prints the difference of their pass rates with its interval, and
/// the p-value of a permutation test, adjusted by Holm's method for several comparisons. A run with several agents
/// counts as several contenders. Runs with different suites, gold, experiments, scoring or budgets are refused unless
/// you pass `--force`. So is a run that was continued with `resume --changed-suite`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment compare fixed dynamic\n  autoexperiment compare runs/a runs/b runs/c --every-pair --by-n"
)]
pub struct Arguments {
    /// Runs: folders, or names under --runs. The first contender is compared with each of the others.
    #[arg(required = true)]
    run: Vec<String>,
    /// Compare every pair of contenders.
    #[arg(long)]
    every_pair: bool,
    /// Add a row for each n.
    #[arg(long)]
    by_n: bool,
    /// Compare even if suites, gold or budgets differ.
    #[arg(long)]
    force: bool,
    /// Show a run, an agent or a model under another name, such as `react=ReAct` or `by-n/react=ReAct`. Can be
    /// repeated.
    #[arg(long, value_name = "OLD=NEW")]
    label: Vec<Label>,
    /// Scope of the intervals: these papers (`suite`), or papers like them (`papers`).
    #[arg(long, value_name = "SCOPE", default_value = "suite", value_parser = parse_population)]
    intervals: Population,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let mut all = Vec::new();
    let mut runs: Vec<(&str, &RunFile)> = Vec::new();
    let folders = distinct_folders(&arguments.run, &arguments.runs)?;
    // Refuse unreadable runs: half a comparison would look like a complete one.
    let merged = Merged::read_all(&folders, &Labels::new(&arguments.label))?;
    let mut differences = Vec::new();
    for reading in &merged.runs {
        for note in &reading.notes {
            talk!("{}", clean(&reading.note(note)));
        }
        all.extend(contenders(&reading.records));
        let name = &reading.name;
        let Some(run) = &reading.run else {
            if merged.runs.len() > 1 {
                differences
                    .push(format!("`{name}` has no run file, so it is not known how its attempts were measured"));
            }
            continue;
        };
        for change in accepted_changes(run) {
            differences.push(format!("attempts of `{name}` are not comparable with each other: {change}"));
        }
        // Without `--every-pair`, each contender (agent and model) is compared only with the first one of the first
        // run. So only differences to the first run matter.
        let others = if arguments.every_pair { runs.as_slice() } else { runs.get(..1).unwrap_or_default() };
        for (other_name, other) in others {
            let differing = differing_conditions(other, run).into_iter();
            differences.extend(differing.map(|what| format!("`{other_name}` and `{name}` differ in {what}")));
        }
        runs.push((name, run));
    }
    for difference in &differences {
        talk!("{}", clean(difference));
    }
    if !differences.is_empty() && !arguments.force {
        return Err(Error::usage("the runs scored their attempts under different conditions, listed above")
            .hint("`--force` compares them anyway"));
    }
    if all.len() < 2 {
        return Err(Error::usage(format!("nothing to compare: there are attempts of {} agent(s) only", all.len()))
            .hint("name two runs, or one with several agents or models"));
    }
    let how = intervals(arguments.intervals, merged.runs.iter().flat_map(|reading| &reading.records));
    let rows = compare(&all, arguments.every_pair, arguments.by_n, how);
    for contender in &all {
        if let Some(note) = contender.all_lost_note() {
            talk!("{note}");
        } else if !rows.is_empty()
            && !rows.iter().any(|row| row.first == contender.name || row.second == contender.name)
        {
            talk!(
                "`{}` is in no row: it has no sample in common with those it would be compared with",
                clean(&contender.name)
            );
        }
    }
    if rows.is_empty() {
        return Err(Error::usage(
            "the agents to compare have no sample in common, not counting attempts that were lost",
        )
        .hint("use the same `--seed`, `-n` and `--limit` for runs that are to be compared"));
    }
    if arguments.json { print_json(&rows) } else { print(&compare_console(&rows, how)) }
}
