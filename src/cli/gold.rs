//! `autoexperiment gold`: records the results of the unmasked repo, or compares them with the recorded ones.

use serde_json::json;

use super::environment::EnvOptions;
use super::progress::ProgressDisplay;
use super::run::{MachineArguments, default_jobs};
use super::shared::{PaperOptions, SuiteOptions, print, print_json, table};
use super::verified::power_line;
use crate::command::{self, Commands};
use crate::env::Env;
use crate::error::{Error, FailureKind, Result};
use crate::masked::gold::{GoldComparison, compare, record};
use crate::masked::ready::ReadyPaper;
use crate::notebook::{Notebook, RECORD};
use crate::run::family::Family as _;
use crate::sample::{COMMAND, MASKED};
use crate::soundness::ProofSetup;
use crate::suite::{LoadedPaper, Protocol};

/// Record gold: run the unmasked repo's experiments and keep their results, times and spread
///
/// Refuses results without a finite number, or that vary between repeats by more than their tolerance, unless the
/// tolerance is `stochastic`: then the experiment runs at least 96 times, and all its results are kept. With `--check`,
/// records nothing, and compares the results on this machine, in this env and sandbox, with the recorded gold.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment gold kmeanspp\n  autoexperiment gold kmeanspp --full --repeats 1\n  \
                        autoexperiment gold --check --sandbox docker kmeanspp ucb\n  \
                        autoexperiment gold --family command kmeanspp"
)]
pub struct Arguments {
    #[command(flatten)]
    papers: PaperOptions,
    /// Kind of task: `masked`; `command`, for which the right program of each instruction is run, also with changed
    /// arguments; or `notebook`, for which the gold cells of each task are run twice.
    #[arg(long, value_name = "NAME", default_value = MASKED)]
    family: String,
    /// Number of runs of each experiment; an experiment whose tolerance is `stochastic` runs at least 96 times.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Compare results with the recorded gold; exit code 4 if a value is out of tolerance.
    #[arg(long, conflicts_with = "repeats")]
    check: bool,
    /// Print JSON.
    #[arg(long, requires = "check")]
    json: bool,
    /// Use the paper's full protocol instead of the shorter, curtailed protocol.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    env: EnvOptions,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    match arguments.family.as_str() {
        MASKED => {}
        COMMAND => return commands(arguments).await,
        name if name == Notebook.name() => return notebooks(arguments).await,
        other => {
            return Err(Error::usage(format!("no gold can be recorded for the family `{}`", other.escape_debug()))
                .hint("the families with recorded gold are `masked`, `command` and `notebook`"));
        }
    }
    let suite = if arguments.check { arguments.suite.open()? } else { arguments.suite.open_own()? };
    let protocol = if arguments.full { Protocol::Full } else { Protocol::Curtailed };
    let machine = arguments.machine.open(&arguments.env.options(), suite.root()).await?;
    let progress = ProgressDisplay::new(false);
    let mut checks = Vec::new();
    for id in suite.select(&arguments.papers.some()?)? {
        let ready = ReadyPaper::prepare(LoadedPaper::load(&suite, &id)?, protocol, &machine, &progress).await?;
        if arguments.check {
            let compared = compare(&ready, protocol, &machine, &progress).await?;
            progress.finish();
            checks.push((id, ready.env, compared));
            continue;
        }
        let gold = record(&ready, protocol, arguments.repeats as usize, &machine, &progress).await?;
        let path = suite.paper_dir(&id).join("gold.json");
        gold.save(&path)?;
        progress.finish();
        let rows = gold.results.get(&protocol).into_iter().flatten().map(|(experiment, result)| {
            let seconds = result.seconds.iter().sum::<f64>() / result.seconds.len().max(1) as f64;
            vec![experiment.clone(), format!("{seconds:.2}"), format!("{:.1e}", result.spread)]
        });
        print(&table(&["experiment", "seconds", "spread"], &[1, 2], rows))?;
        if let Some(line) = gold.results.get(&protocol).and_then(|results| power_line(&ready.loaded.paper, results)) {
            print(&line)?;
        }
        talk!("wrote {}", path.display());
    }
    if arguments.check { print_comparisons(&checks, machine.backend.name(), arguments.json) } else { Ok(()) }
}

/// Records gold for the items of the family `command`, by running the right program of each instruction.
async fn commands(arguments: &Arguments) -> Result<()> {
    if arguments.check || arguments.full {
        return Err(Error::usage("`--check` and `--full` are for papers").hint(
            "leave both out: an instruction has only one protocol, and every run first checks the right programs",
        ));
    }
    let suite = arguments.suite.own_folder()?;
    let machine = arguments.machine.open(&arguments.env.options(), &suite).await?;
    let progress = ProgressDisplay::new(false);
    for id in Commands.items(&suite, &arguments.papers.some()?)? {
        let ready = command::open(&suite, &id, &machine, &progress).await?;
        let gold = command::record(&ready, arguments.repeats as usize, &machine, &progress).await?;
        progress.finish();
        let path = ready.loaded.gold_path();
        gold.save(&path)?;
        let rows = gold.results.iter().map(|(id, run)| {
            let seconds = run.seconds.iter().sum::<f64>() / run.seconds.len().max(1) as f64;
            let judged = match (run.calls.is_empty(), run.functions.is_empty(), run.started.is_empty()) {
                (false, ..) => "namespace",
                (_, false, _) => "calls",
                (.., false) => "programs",
                _ => "outcome",
            };
            vec![id.clone(), format!("{seconds:.2}"), judged.to_owned(), run.changes.len().to_string()]
        });
        print(&table(&["instruction", "seconds", "arguments by", "arguments"], &[1, 3], rows))?;
        talk!("wrote {}", path.display());
    }
    Ok(())
}

/// Records gold for the items of the family `notebook`, by running the gold cells of each task.
async fn notebooks(arguments: &Arguments) -> Result<()> {
    if arguments.check || arguments.full {
        return Err(Error::usage("`--check` and `--full` are for papers")
            .hint("`verify --family notebook` shows whether gold is reached"));
    }
    let place = ProofSetup {
        suite: arguments.suite.own_folder()?,
        machine: arguments.machine.options(&arguments.env.options())?,
        env: arguments.env.kind,
        jobs: default_jobs(),
        fresh: true,
    };
    for id in Notebook.items(&place.suite, &arguments.papers.some()?)? {
        let progress = ProgressDisplay::new(false);
        let (answer, gold) = crate::soundness::record(&place, &id, &progress).await?;
        progress.finish();
        let folder = place.suite.join("tasks").join(&id);
        let answer = serde_json::to_string_pretty(&answer)
            .map_err(|error| Error::internal("gold cannot be written as JSON").because(error))?;
        crate::files::write_whole(&folder.join("answer.json"), format!("{answer}\n").as_bytes())?;
        crate::files::write_whole(&folder.join(RECORD), gold.to_text().as_bytes())?;
        talk!(
            "{id}: the calls of {} functions will be compared with gold's; solutions may change {}",
            gold.calls.len(),
            gold.changed.join(", ")
        );
    }
    Ok(())
}

/// Prints the comparisons, by paper.
fn print_comparisons(checks: &[(String, Env, Vec<GoldComparison>)], sandbox: &str, json: bool) -> Result<()> {
    if json {
        let papers = checks.iter().map(|(paper, env, compared)| {
            json!({
                "paper": paper,
                "sandbox": sandbox,
                "env": {"backend": env.backend, "digest": env.digest, "python": env.python},
                "experiments": compared,
            })
        });
        print_json(&papers.collect::<Vec<_>>())?;
    } else {
        let rows = checks.iter().flat_map(|(paper, _, compared)| {
            compared.iter().map(|one| {
                vec![
                    paper.clone(),
                    one.experiment.clone(),
                    one.values.to_string(),
                    one.equal.to_string(),
                    one.worst.map_or("-".to_owned(), |worst| format!("{worst:.1e}")),
                    one.tolerance.short(),
                    if one.pass { "yes".to_owned() } else { one.reason.clone().unwrap_or_default() },
                ]
            })
        });
        let header = ["paper", "experiment", "values", "equal", "worst", "tolerance", "within"];
        print(&table(&header, &[2, 3, 4, 5], rows))?;
    }
    let all = || checks.iter().flat_map(|(_, _, compared)| compared);
    let out = all().filter(|one| !one.pass).count();
    if out == 0 {
        return Ok(());
    }
    Err(Error::new(
        FailureKind::Baseline,
        format!("{out} of {} experiments are not within their tolerance", all().count()),
    ))
}
