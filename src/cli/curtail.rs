//! `autoexperiment curtail`: finds the cheapest experiments that still distinguish right solutions from wrong ones.

use std::path::PathBuf;
use std::sync::Arc;

use super::environment::EnvOptions;
use super::model::parse_time;
use super::naming::run_folder;
use super::progress::ProgressDisplay;
use super::run::{MachineArguments, default_jobs, parse_jobs};
use super::shared::{PaperOptions, SuiteOptions, print, print_json, table};
use crate::audit::Bench;
use crate::curtail::agreement::{Agreement, Proportion};
use crate::curtail::write::write;
use crate::curtail::{CurtailedPaper, SearchGoal, SolutionPool, search, written};
use crate::error::{Error, Result};
use crate::masked::ready::ReadyPaper;
use crate::suite::{LoadedPaper, Paper, Protocol};

/// Find the cheapest parameters that still tell passing solutions from failing ones
///
/// Runs solutions (mutants of the functions, the diffs of stored runs) under the full experiments and under shorter
/// ones, starting with the cheapest: those that the manifest allows (`parameters.allowed`), or otherwise its current
/// curtailed parameters.
///
/// Precision: of the solutions that pass the curtailed experiment, the share that also passes the full one. Recall: of
/// the solutions that pass the full experiment, the share that also passes the curtailed one. In the weighted figures
/// every function counts the same.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  Measure how well the curtailed experiments do:
    autoexperiment curtail kmeanspp --budget 30m
  Search, also with the solutions of a stored run, and write the result to the manifest:
    autoexperiment curtail kmeanspp --from 2026-11-21T10-30-00Z --write")]
pub struct Arguments {
    #[command(flatten)]
    paper: PaperOptions,
    /// Only these experiments.
    #[arg(long = "experiment", value_name = "ID")]
    experiments: Vec<String>,
    /// Also use the solutions of a stored run: its name under --runs, or its folder.
    #[arg(long, value_name = "RUN")]
    from: Vec<String>,
    /// Number of mutants per function.
    #[arg(long, value_name = "N", default_value_t = 8)]
    mutants: usize,
    /// Seed that selects the mutants.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Lowest acceptable precision and recall.
    #[arg(long, value_name = "SHARE", default_value_t = 0.98, value_parser = parse_share)]
    goal: f64,
    /// CPU time after which no more solutions run in full, such as `10m`, or in seconds. Results from earlier runs cost
    /// nothing, and the shorter experiments of solutions that ran in full always run.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    budget: f64,
    /// Write the settings that reach the goal, with their evidence, to the manifest. All solutions must have been run,
    /// and at least five of them must pass.
    #[arg(long)]
    write: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Number of experiments to run at once [default: one per core].
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<usize>,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Places")]
    runs: PathBuf,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    env: EnvOptions,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let suite = if arguments.write { arguments.suite.open_own()? } else { arguments.suite.open()? };
    let paper = arguments.paper.one()?;
    suite.select(std::slice::from_ref(&paper))?;
    let loaded = LoadedPaper::load(&suite, &paper)?;
    let experiments = chosen(&loaded.paper, &arguments.experiments)?;
    let runs = arguments.from.iter().map(|run| run_folder(run, &arguments.runs)).collect::<Result<Vec<_>>>()?;
    if loaded.dependencies.is_none() {
        talk!(
            "warning: it is not measured which experiment needs which function: run `autoexperiment verify {}`",
            paper
        );
    }
    let machine = Arc::new(arguments.machine.open(&arguments.env.options(), suite.root()).await?);
    let progress = ProgressDisplay::new(false);
    let ready = ReadyPaper::prepare(loaded, Protocol::Full, &machine, &progress).await?;
    let jobs = arguments.jobs.unwrap_or_else(default_jobs);
    let bench = Arc::new(Bench::new(ready, machine, jobs, false)?);
    let mut pool = SolutionPool::new(&bench, arguments.mutants, arguments.seed)?;
    for folder in &runs {
        pool.add_run(&bench, folder)?;
    }
    for note in &pool.notes {
        talk!("note: {}", crate::report::clean(note));
    }
    let wanted = SearchGoal { goal: arguments.goal, budget: arguments.budget, experiments };
    let found = search(&bench, &pool, &wanted, &progress).await?;
    progress.finish();
    if arguments.json {
        print_json(&found)?;
    } else {
        show(&found)?;
    }
    if arguments.write {
        let manifest = suite.paper_dir(&paper).join("paper.toml");
        let mut new = Vec::new();
        for experiment in &found.experiments {
            match experiment.evidence() {
                Ok((setting, evidence)) => new.push((experiment.id.as_str(), setting, evidence)),
                Err(why) => talk!("not written: experiment `{}`: {why}", experiment.id),
            }
        }
        if new.is_empty() {
            talk!("wrote nothing");
            return Ok(());
        }
        write(&manifest, &new)?;
        talk!("wrote {} of {} experiments to {}", new.len(), found.experiments.len(), manifest.display());
        talk!("gold was recorded with the old settings: record it again with `autoexperiment gold {}`", paper);
    }
    Ok(())
}

/// Returns the indices of the named experiments, or of all.
fn chosen(paper: &Paper, asked: &[String]) -> Result<Vec<usize>> {
    let named = |id: &String| {
        paper.experiments.iter().position(|experiment| experiment.id == *id).ok_or_else(|| {
            let known: Vec<&str> = paper.experiments.iter().map(|experiment| experiment.id.as_str()).collect();
            Error::usage(format!("paper `{}` has no experiment `{id}`", paper.id))
                .hint(format!("it has {}", known.join(", ")))
        })
    };
    if asked.is_empty() { Ok((0..paper.experiments.len()).collect()) } else { asked.iter().map(named).collect() }
}

fn show(found: &CurtailedPaper) -> Result<()> {
    let header =
        ["experiment", "solutions", "passing", "precision", "recall", "weighted", "", "seconds", "full", "time"];
    let rate = |rate: Option<Proportion>| {
        rate.map_or("-".to_owned(), |Proportion { value, interval }| {
            format!("{value:.3} [{:.2}, {:.2}]", interval.low, interval.high)
        })
    };
    let figures = |agreement: &Agreement| {
        let Agreement { precision, recall, weighted_precision, weighted_recall, .. } = *agreement;
        let rates = [precision, recall, weighted_precision, weighted_recall].map(rate);
        [agreement.cases().to_string(), agreement.passing().to_string()].into_iter().chain(rates).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    let (mut seconds, mut full) = (0.0, 0.0);
    for experiment in &found.experiments {
        let mut row = vec![experiment.id.clone()];
        if let Some(chosen) = &experiment.chosen {
            seconds += chosen.seconds;
            full += experiment.full_seconds;
            row.extend(figures(&chosen.agreement));
            row.extend(times(chosen.seconds, experiment.full_seconds));
        }
        rows.push(row);
    }
    for (name, agreement) in [("all, by experiment", &found.pairs), ("all, by solution", &found.attempts)] {
        let mut row = vec![name.to_owned()];
        row.extend(figures(agreement));
        row.extend(times(seconds, full));
        rows.push(row);
    }
    print(&table(&header, &[1, 2, 7, 8, 9], rows))?;
    for experiment in &found.experiments {
        if let Some(chosen) = &experiment.chosen {
            let given_up = experiment.given_up;
            let what = if chosen.reached { "reaches the goal" } else { "does not reach the goal" };
            print(&format!(
                "{}: the setting {} {what}; {given_up} of the settings tried cannot reach it\n",
                experiment.id,
                written(&chosen.setting)
            ))?;
            for (group, name) in &chosen.disagreements {
                print(&format!(
                    "  another verdict than with full parameters: solution `{}` of `{}`\n",
                    crate::report::clean(name),
                    crate::report::clean(group)
                ))?;
            }
        }
        if let Some(note) = &experiment.note {
            talk!("note: experiment `{}`: {note}", experiment.id);
        }
    }
    talk!("{:.0} s of CPU", found.cpu);
    Ok(())
}

/// Formats CPU seconds: curtailed, full, and their ratio in percent.
fn times(seconds: f64, full: f64) -> [String; 3] {
    let part = if full > 0.0 { format!("{:.1}%", 100.0 * seconds / full) } else { "-".to_owned() };
    [format!("{seconds:.2}"), format!("{full:.2}"), part]
}

fn parse_share(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    parsed.ok_or_else(|| format!("`{text}` is not a share: give a number from 0 to 1"))
}
