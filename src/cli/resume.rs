//! `autoexperiment resume`: continues a run.

use std::path::{Path, PathBuf};

use super::environment::ChannelOptions;
use super::exit::ProgramExit;
use super::naming::run_folder;
use super::run::stored_machine;
use super::session::{SessionOutput, show};
use super::shards::ShardOptions;
use super::slurm::{self, SlurmOptions};
use crate::cluster::JobArray;
use crate::error::{Error, Result};
use crate::run::machine::Machine;
use crate::run::{RunFile, Store};
use crate::session::{Run, SessionOptions};

/// Continue a run that was stopped or killed, or that lost attempts to infrastructure
///
/// Keeps finished attempts and makes all others, with the settings that the run was started with. A run planned for
/// several processes is continued together with the processes that already work on it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment resume 2026-11-21T10-30-00Z\n  autoexperiment resume runs/sweep --max-cost 80"
)]
pub struct Arguments {
    /// A run: its folder, or its name under --runs; `latest` is the newest.
    run: String,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder of the suite, if it has moved.
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
    /// Number of attempts at once [default: as before].
    #[arg(short, long, value_name = "N", value_parser = super::run::parse_jobs)]
    jobs: Option<usize>,
    /// Cost limit of the whole run in dollars, including earlier sessions [default: as before].
    #[arg(long, value_name = "DOLLARS", value_parser = super::run::parse_dollars)]
    max_cost: Option<f64>,
    /// Skip the check that the unmasked repo reproduces its gold.
    #[arg(long)]
    no_baseline: bool,
    /// Run papers and tasks in which `autoexperiment check` finds errors, for instance unfinished ones.
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    fresh: super::shared::FreshOptions,
    /// Continue even if the suite, an env or the prompts have changed since the run was started.
    #[arg(long)]
    changed_suite: bool,
    /// Print every event on stdout as a line of JSON, and no report at the end.
    #[arg(long)]
    json_events: bool,
    /// End with exit code 9 if any attempt fails.
    #[arg(long)]
    require_pass: bool,
    #[command(flatten)]
    shards: ShardOptions,
    #[command(flatten)]
    slurm: SlurmOptions,
    #[command(flatten)]
    channels: ChannelOptions,
    #[command(flatten)]
    places: super::shared::PlaceOptions,
}

fn not_shared(run: &RunFile) -> Error {
    Error::usage(format!("run `{}` was not planned to be shared among several processes or machines", run.run))
}

impl Arguments {
    /// Returns the given options that are not stored with the run, for the tasks of its job.
    fn task_arguments(&self, jobs: Option<usize>) -> Result<Vec<String>> {
        let mut arguments = self.places.arguments()?;
        arguments.extend(jobs.map(|jobs| format!("--jobs={jobs}")));
        if let Some(suite) = &self.suite {
            let suite = std::path::absolute(suite).map_err(|error| Error::io("resolve", suite, error))?;
            arguments.push(format!("--suite={}", suite.display()));
        }
        arguments.extend(self.max_cost.map(|dollars| format!("--max-cost={dollars}")));
        arguments.extend(self.no_baseline.then(|| "--no-baseline".to_owned()));
        arguments.extend(self.unchecked.then(|| "--unchecked".to_owned()));
        arguments.extend(self.changed_suite.then(|| "--changed-suite".to_owned()));
        arguments.extend(self.shards.is_mixed().then(|| "--mixed-sandboxes".to_owned()));
        arguments.extend(self.fresh.argument());
        arguments.extend(self.channels.arguments());
        Ok(arguments)
    }

    /// Continues a run as a Slurm job: with the run's existing job, or with a new job if the run was only planned.
    async fn resubmit(&self, folder: &Path) -> Result<ProgramExit> {
        let (_, run) = Store::open(folder)?;
        if run.sharing.is_none() {
            return Err(not_shared(&run).hint("start a new run with `run --slurm`"));
        }
        if self.json_events || self.require_pass {
            return Err(Error::usage(
                "`--json-events` and `--require-pass` cannot be used with `--slurm`, because the Slurm job makes the attempts",
            )
            .hint("leave them out; `autoexperiment report RUN` shows the results"));
        }
        let job = if let Some(array) = JobArray::read(folder)? {
            self.slurm.changed(array.job, self.jobs, self.task_arguments(self.jobs)?)?
        } else {
            let jobs = self.jobs.unwrap_or(run.configuration.jobs);
            self.slurm.job(jobs, self.task_arguments(Some(jobs))?)?
        };
        if self.slurm.is_dry() { slurm::show_script(folder, &job) } else { slurm::submit(folder, job).await }
    }
}

pub async fn run(arguments: &Arguments) -> Result<ProgramExit> {
    let folder = run_folder(&arguments.run, &arguments.runs)?;
    if arguments.slurm.is_given() {
        return arguments.resubmit(&folder).await;
    }
    if arguments.slurm.is_dry() {
        return Err(Error::usage("`resume --dry-run` is for a Slurm job")
            .hint("add `--slurm`; `autoexperiment status RUN` shows what is left to do"));
    }
    let (store, mut run) = Store::open(&folder)?;
    if run.configuration.serving.is_some() {
        return Err(Error::usage(format!("the attempts of run `{}` were started by clients of `serve`", run.run))
            .hint(format!("continue it with `autoexperiment serve --resume {}`", run.run)));
    }
    let configuration = &mut run.configuration;
    if let Some(jobs) = arguments.jobs {
        configuration.jobs = jobs;
    }
    if arguments.max_cost.is_some() {
        configuration.max_cost = arguments.max_cost;
    }
    let suite = arguments.suite.clone().unwrap_or_else(|| configuration.suite.clone());
    let machine = stored_machine(configuration, &arguments.places, &arguments.channels)?;
    let mut machine = Machine::open(&machine).await?;
    arguments.fresh.apply(&mut machine);
    let shards = match (&run.sharing, arguments.shards.given(true)?) {
        (Some(_), given) => Some(given.unwrap_or_else(|| arguments.shards.only())),
        (None, None) => None,
        (None, Some(_)) => {
            return Err(not_shared(&run)
                .hint("leave out `--shard`, or plan a shared run with `run --plan-only` or `run --shard`"));
        }
    };
    let shown =
        SessionOutput { k: configuration.k, json_events: arguments.json_events, require_pass: arguments.require_pass };
    let (baseline, accept_changes) = (!arguments.no_baseline, arguments.changed_suite);
    let unchecked = arguments.unchecked;
    let options = SessionOptions { baseline, accept_changes, unchecked, shards, ..SessionOptions::on(machine) };
    Box::pin(show(Run::resume(store, run, suite, options)?, &shown)).await
}
