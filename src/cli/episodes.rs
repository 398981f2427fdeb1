//! Options shared by `serve` and `mcp`: the samples that episodes are made of, their limits and their rewards.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::environment::EnvOptions;
use super::exit::ProgramExit;
use super::model::parse_time;
use super::naming::{report_options, run_folder};
use super::progress::ProgressDisplay;
use super::run::{MachineArguments, is_plain, parse_jobs, parse_rule, stored_machine};
use super::sample::DrawOptions;
use super::shared::{FreshOptions, SuiteOptions, described, print};
use crate::agent::Limits;
use crate::agent::tools::ToolChoice;
use crate::episode::EpisodeHost;
use crate::episode::HostOptions;
use crate::episode::curriculum::KnownDifficulty;
use crate::error::{Error, Result};
use crate::report;
use crate::run::family::Families;
use crate::run::machine::Machine;
use crate::run::{Configuration, CurriculumSettings, Reward, Serving, Store, outcomes};
use crate::score::Rule;
use crate::session::{Run, RunFolder, SessionOptions};
use crate::suite::{Protocol, is_bundled};

/// Default number of parallel episodes for each core. It is more than one, because episodes mostly wait for the
/// learner.
const JOBS_PER_CORE: usize = 8;

/// Options that are stored with a run. They conflict with `--resume`, which uses the stored values.
const STORED: [&str; 22] = [
    "family", "named", "papers", "n", "fraction", "units", "after", "limit", "seed", "full", "held_out", "reward",
    "tools", "steps", "time", "scoring", "name", "sandbox", "gpus", "memory", "cpus", "kind",
];

/// Which episodes are handed out, and how.
#[derive(clap::Args)]
pub(super) struct EpisodeOptions {
    #[command(flatten)]
    draw: DrawOptions,
    /// Use the papers' full protocols instead of the curtailed experiments.
    #[arg(long, help_heading = "Samples")]
    full: bool,
    /// Share of each paper's functions that only the split `test` masks.
    #[arg(long, value_name = "SHARE", default_value = "0.25", value_parser = parse_share, help_heading = "Samples")]
    held_out: f64,

    /// Reward of an episode: 1 if the attempt passes (`pass`), or the share of its checks that pass (`share`).
    #[arg(long, value_enum, default_value = "pass", help_heading = "Episodes")]
    reward: Reward,
    /// Set of tools that clients call.
    #[arg(long, value_enum, default_value = "autoexperiment", help_heading = "Episodes")]
    tools: ToolChoice,
    /// Step limit per episode.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Episodes")]
    steps: u32,
    /// Tool time limit per episode, such as `30m`, or in seconds. Waiting for the client does not count.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_time, help_heading = "Episodes")]
    time: f64,
    /// End an episode whose client makes no call for this time.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_time, help_heading = "Episodes")]
    idle: f64,
    /// Number of episodes at once [default: eight per core].
    #[arg(short, long, value_name = "N", value_parser = parse_jobs, help_heading = "Episodes")]
    jobs: Option<usize>,

    /// How values pass: each must be close to gold (`strict`), or their mean loss must be low, as published (`reference`).
    #[arg(long, value_name = "RULE", default_value = "strict", value_parser = parse_rule, help_heading = "Scoring")]
    scoring: Rule,
    /// Skip the check that the unmasked repo reproduces its gold.
    #[arg(long, help_heading = "Scoring")]
    no_baseline: bool,
    #[command(flatten)]
    fresh: FreshOptions,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Places")]
    runs: PathBuf,
    /// Name of the run [default: the current time].
    #[arg(long, help_heading = "Places")]
    name: Option<String>,
    /// Continue this run of episodes with the settings that it was started with: its folder, or its name under --runs;
    /// `latest` is the newest.
    #[arg(long, value_name = "RUN", conflicts_with_all = STORED, help_heading = "Places")]
    resume: Option<String>,
    /// Continue even if the suite, an env or the prompts have changed since the run was started.
    #[arg(long, requires = "resume", help_heading = "Places")]
    changed_suite: bool,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    env: EnvOptions,
}

impl EpisodeOptions {
    /// Maximum time between two calls of a client.
    pub(super) fn idle(&self) -> Duration {
        Duration::try_from_secs_f64(self.idle).unwrap_or(Duration::MAX)
    }

    /// Folder of runs.
    pub(super) fn runs(&self) -> &Path {
        &self.runs
    }

    /// Whether a stored run is continued.
    pub(super) const fn is_resumed(&self) -> bool {
        self.resume.is_some()
    }

    /// Prepares a run of episodes, or opens a stored one again. Returns `None` if `stop` is cancelled before the run is
    /// ready.
    pub(super) async fn open(
        &self,
        curriculum: Option<CurriculumSettings>,
        known: KnownDifficulty,
        stop: &CancellationToken,
    ) -> Result<Option<Arc<EpisodeHost>>> {
        let run = match &self.resume {
            Some(named) => self.stored_run(named).await?,
            None => self.new_run(curriculum).await?,
        };
        let progress = Arc::new(ProgressDisplay::new(true));
        EpisodeHost::open(run, HostOptions { idle: self.idle(), known }, progress, stop.clone()).await
    }

    async fn stored_run(&self, named: &str) -> Result<Run> {
        let (store, mut run) = Store::open(&run_folder(named, &self.runs)?)?;
        if run.configuration.serving.is_none() {
            return Err(Error::usage(format!("run `{}` has no episodes", run.run))
                .hint(format!("continue it with `autoexperiment resume {}`", run.run)));
        }
        let configuration = &mut run.configuration;
        configuration.jobs = self.jobs.unwrap_or(configuration.jobs);
        let suite = if self.suite.is_named() { self.suite.folder()? } else { configuration.suite.clone() };
        let machine = stored_machine(configuration, self.machine.places(), &self.env.channels)?;
        Run::resume(store, run, suite, self.session_options(Machine::open(&machine).await?))
    }

    async fn new_run(&self, curriculum: Option<CurriculumSettings>) -> Result<Run> {
        let suite = self.suite.folder()?;
        if is_bundled(&suite) {
            talk!("no suite here: using the one {}", described(&suite));
        }
        let families = Families::standard();
        let family = families.get(&self.draw.family)?;
        let papers = SuiteOptions::items(family.as_ref(), &suite, &self.draw.papers.all())?;
        let serving = Serving { reward: self.reward, tools: self.tools, held_out: self.held_out, curriculum };
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let configuration = Configuration {
            family: family.name().to_owned(),
            papers,
            draw: self.draw.draw()?,
            limits: Limits { steps: self.steps, seconds: self.time, ..Limits::default() },
            env: self.env.kind,
            sandbox: self.machine.sandbox,
            gpus: self.machine.gpus,
            sandbox_limits: self.machine.limits(),
            protocol: if self.full { Protocol::Full } else { Protocol::Curtailed },
            scoring: self.scoring,
            jobs: self.jobs.unwrap_or(JOBS_PER_CORE * cores),
            seed: self.draw.seed,
            serving: Some(serving),
            ..Configuration::new(&suite)
        };
        let folder = match &self.name {
            Some(name) if is_plain(name) => RunFolder::New(self.runs.join(name)),
            Some(name) => {
                return Err(Error::usage(format!("`{name}` is not a valid name for a run"))
                    .hint("use letters, digits, `-`, `_` and `.`; the folder is chosen with `--runs DIR`"));
            }
            None => RunFolder::NamedByTime(self.runs.clone()),
        };
        let machine = self.machine.open(&self.env.options(), &configuration.suite).await?;
        Run::open(configuration, folder, self.session_options(machine))
    }

    fn session_options(&self, mut machine: Machine) -> SessionOptions {
        self.fresh.apply(&mut machine);
        let (baseline, accept_changes) = (!self.no_baseline, self.changed_suite);
        SessionOptions { baseline, accept_changes, ..SessionOptions::on(machine) }
    }
}

/// Waits until all episodes have ended, and prints the report on stderr, because stdout may carry a protocol's
/// messages.
pub(super) async fn close(host: &EpisodeHost) -> Result<ProgramExit> {
    host.finish().await?;
    let records = outcomes(&host.store().records()?);
    let summary = report::summarise(&records, &report_options(&records, &[], 1, &[]));
    if !records.is_empty() {
        talk!("{}", report::brief_console(&summary).trim_end());
    }
    talk!("run: {}", host.store().folder().display());
    Ok(ProgramExit::Done)
}

/// Checks that the token that clients must send is long enough to be a secret.
pub(super) fn check_token(token: Option<&str>) -> Result<()> {
    if token.is_some_and(|token| token.len() < 16) {
        return Err(Error::usage("the token is too short to be a secret").hint("give one of at least 16 characters"));
    }
    Ok(())
}

/// Prints a line on stdout, for programs that wait for the address.
pub(super) fn announce(line: &str) -> Result<()> {
    print(&format!("{line}\n"))
}

/// Parses a share of functions: from 0 to less than 1.
fn parse_share(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|share| (0.0..1.0).contains(share));
    parsed.ok_or_else(|| format!("`{text}` is not a share: give a number from 0 to less than 1"))
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    #[test]
    fn every_option_is_either_stored_with_a_run_or_can_be_given_anew_when_it_is_continued() {
        const ANEW: [&str; 12] = [
            "idle",
            "jobs",
            "no_baseline",
            "fresh",
            "runs",
            "resume",
            "changed_suite",
            "suite",
            "cache",
            "scratch",
            "channel_alias",
            "offline",
        ];
        let command = EpisodeOptions::augment_args(clap::Command::new("serve"));
        let mut options: Vec<&str> = command.get_arguments().map(|option| option.get_id().as_str()).collect();
        let mut known = [STORED.as_slice(), &ANEW].concat();
        options.sort_unstable();
        known.sort_unstable();
        assert_eq!(options, known);
    }
}
