//! `autoexperiment run`: makes attempts.

use std::path::{Path, PathBuf};

use super::embedding::EmbeddingOptions;
use super::environment::{ChannelOptions, EnvOptions};
use super::exit::ProgramExit;
use super::model::{ModelOptions, located, parse_time, verifier_spec};
use super::plan;
use super::sample::{CHOICES, DrawOptions};
use super::session::{SessionOutput, show, show_plan};
use super::shards::ShardOptions;
use super::shared::{FreshOptions, PlaceOptions, SuiteOptions, described};
use super::slurm::{self, SlurmOptions};
use crate::agent::{AgentSpec, Limits, Settings, setting_keys};
use crate::cluster::SlurmJob;
use crate::env;
use crate::error::{Error, Result};
use crate::model::{Effort, Sampling, extra};
use crate::run::family::Families;
use crate::run::machine::Machine;
use crate::run::{self, Configuration, VerifierSpec};
use crate::sandbox::{Gpus, SandboxKind, SandboxLimits};
use crate::score::Rule;
use crate::session::{Run, RunFolder, SessionOptions};
use crate::suite::{Protocol, is_bundled};

/// Run agents on samples and print pass rates
///
/// Builds the papers' envs, checks that the unmasked repos reproduce their gold, and makes k attempts at every sample
/// with every agent. Every finished attempt is stored at once under `runs/`. `autoexperiment resume` continues a run
/// that was stopped or killed. Ctrl-C stops cleanly; a second Ctrl-C stops at once.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  Prove the set-up without a model (gold must pass, noop must fail):
    autoexperiment run -p kmeanspp -n 1..3 --limit 5 --agent gold,noop
  See first what a run would be:
    autoexperiment run -n 1..3 -k 5 --agent react --model openai:gpt-5-mini --max-cost 50 --dry-run
  Measure pass@1 and pass@5 of a model, for at most $50:
    autoexperiment run -n 1..3 -k 5 --agent react --model openai:gpt-5-mini --max-cost 50
  Compare six settings of the fixed agent in one report:
    autoexperiment run -n 1,2 --agent fixed:paper=none --agent fixed:paper=oracle --agent fixed:paper=full \\
      --agent fixed:repair=2 --agent fixed:reasoning=512 --agent fixed:code=ast --model openai:gpt-5-mini
  Compare three prompts of a dynamic agent, and two histories:
    autoexperiment run -n 1,2 --agent react --agent react:prompt=mlagentbench --agent react:prompt=planning \\
      --agent react:history=window:5 --agent react:history=summary:5 --model openai:gpt-5-mini
  Compare dynamic and fixed agents, with four sets of tools:
    autoexperiment run -n 1 --agent fixed --agent react --agent react:tools=swe-agent --agent react:tools=super \\
      --agent react:tools=bash --model openai:gpt-5-mini
  Compare pass@1 with pass@5, and with what verifiers pick of the five attempts:
    autoexperiment run -n 1 -k 5 --agent fixed --temperature 0.8 --model openai:gpt-4.1-mini --max-cost 20 \\
      --verifier majority --verifier execution --verifier model --verifier oracle --orders 2
  Use a local server with an OpenAI-compatible interface, for free:
    autoexperiment run --agent react --model qwen --base-url http://127.0.0.1:8080/v1 --price 0,0")]
pub struct Arguments {
    #[command(flatten)]
    draw: DrawOptions,
    /// Only these samples, such as `kmeanspp_0,3`.
    #[arg(long = "sample", value_name = "ID", conflicts_with_all = CHOICES, help_heading = "Samples")]
    samples: Vec<String>,
    /// Number of attempts at each sample.
    #[arg(short, long = "attempts", value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Samples")]
    k: u32,
    /// Use the papers' full protocols instead of the curtailed experiments.
    #[arg(long, help_heading = "Samples")]
    full: bool,

    #[arg(long = "agent", value_name = "AGENT", required = true, help = agent_help(), help_heading = "Agents and models")]
    agents: Vec<String>,
    #[command(flatten)]
    model: ModelOptions,
    /// Sampling temperature [default: the provider's].
    #[arg(long, value_parser = parse_temperature, help_heading = "Agents and models")]
    temperature: Option<f64>,
    /// How much the model reasons, in its provider's words. A model that this program does not know gets the word
    /// unchanged [default: the provider's].
    #[arg(long, value_enum, value_name = "EFFORT", help_heading = "Agents and models")]
    effort: Option<Effort>,
    /// Maximum tokens per reply [default: the provider's].
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Agents and models")]
    max_tokens: Option<u32>,
    /// Additional fields of each request to the model, as a JSON object: `{"top_k": 20}`. They are merged into the
    /// request's body and stored with the run.
    #[arg(long, value_name = "JSON", value_parser = extra::parse, help_heading = "Agents and models")]
    extra_body: Option<extra::Fields>,
    #[command(flatten)]
    embedding: EmbeddingOptions,

    /// Verifier that picks one of the k attempts at each sample, after all are made: `none` (the first attempt),
    /// `majority` (the results that most agree on), `execution` (the same, among those that run), `model` (that of
    /// --model), `model:NAME`, `execution+model`, or `oracle` (knows gold: the ceiling). Can be repeated. `pick` does
    /// the same later.
    #[arg(long = "verifier", value_name = "VERIFIER", help_heading = "Verifiers")]
    verifiers: Vec<String>,
    /// How often a model verifier is asked, each time with the candidates in another order. The most votes win.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=26), help_heading = "Verifiers")]
    orders: u32,

    /// Step limit per attempt.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Budget")]
    steps: u32,
    /// Tool time limit per attempt, such as `30m`, or in seconds. Waiting for the model does not count.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_time, help_heading = "Budget")]
    time: f64,
    /// Cost limit per attempt, in dollars.
    #[arg(long, value_name = "DOLLARS", default_value = "1", value_parser = parse_dollars, help_heading = "Budget")]
    cost: f64,
    /// Token limit per attempt, read and written [default: no limit].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Budget")]
    tokens: Option<u64>,
    /// Cost limit of the whole run in dollars, including verifiers. Starts an attempt only if the full budgets of all
    /// running attempts still fit. Replies are limited to the length that the remaining money buys.
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars, help_heading = "Budget")]
    max_cost: Option<f64>,

    /// How values pass: each must be close to gold (`strict`), or their mean loss must be low, as published (`reference`).
    #[arg(long, value_name = "RULE", default_value = "strict", value_parser = parse_rule, help_heading = "Scoring")]
    scoring: Rule,
    /// Accept what agents report, without re-running their code.
    #[arg(long, help_heading = "Scoring")]
    no_verify: bool,
    /// Skip the check that the unmasked repo reproduces its gold.
    #[arg(long, help_heading = "Scoring")]
    no_baseline: bool,
    /// Run papers and tasks in which `autoexperiment check` finds errors, for instance unfinished ones.
    #[arg(long, help_heading = "Scoring")]
    unchecked: bool,
    #[command(flatten)]
    fresh: FreshOptions,
    /// End with exit code 9 if any attempt fails.
    #[arg(long, help_heading = "Scoring")]
    require_pass: bool,

    /// Print every event on stdout as a line of JSON, and no report at the end.
    #[arg(long, help_heading = "Running")]
    json_events: bool,
    /// Number of attempts at once [default: one per core].
    #[arg(short, long, value_name = "N", value_parser = parse_jobs, help_heading = "Running")]
    jobs: Option<usize>,
    /// Maximum tries per attempt when infrastructure fails.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Running")]
    tries: u32,
    #[command(flatten)]
    shards: ShardOptions,
    /// Create the run's folder with its plan, build the envs, and make no attempt: for `resume --shard`.
    #[arg(long, conflicts_with_all = ["shard", "json_events", "require_pass", "slurm"], help_heading = "Several machines")]
    plan_only: bool,
    #[command(flatten)]
    slurm: SlurmOptions,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Places")]
    runs: PathBuf,
    /// Name of the run [default: the current time].
    #[arg(long, help_heading = "Places")]
    name: Option<String>,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    env: EnvOptions,
}

/// How and where sandboxes run.
#[derive(clap::Args)]
pub(super) struct MachineArguments {
    /// Sandbox: `local`, `docker`, `podman`, or `none` for no protection at all.
    #[arg(long, value_name = "KIND", default_value = "local", help_heading = "Running")]
    pub sandbox: SandboxKind,
    /// GPUs: `all` or a number of GPUs for each container; `each` to give every attempt a GPU of its own, from those in
    /// `CUDA_VISIBLE_DEVICES` or all of this machine, or `each:N` from the first N.
    #[arg(long, value_name = "GPUS", help_heading = "Running")]
    pub gpus: Option<Gpus>,
    /// Memory limit per sandbox, and per process of an agent in Python, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(16..=1 << 30), help_heading = "Running")]
    memory: u64,
    /// CPU limit per sandbox, such as `1.5` [default: no limit].
    #[arg(long, value_name = "CPUS", value_parser = parse_cpus, help_heading = "Running")]
    cpus: Option<f64>,
    #[command(flatten)]
    places: PlaceOptions,
}

impl MachineArguments {
    /// Returns the limits of a sandbox.
    pub fn limits(&self) -> SandboxLimits {
        SandboxLimits { memory: self.memory << 20, cpus: self.cpus, ..SandboxLimits::default() }
    }

    /// Detects what the machine can do and creates a scratch folder. The suite's folder is hidden from all sandboxes.
    pub async fn open(&self, envs: &env::EnvBuildOptions, suite: &Path) -> Result<Machine> {
        let mut machine = Machine::open(&self.options(envs)?).await?;
        machine.hidden.push(suite.to_owned());
        Ok(machine)
    }

    /// Folders of the cache and of scratch data.
    pub const fn places(&self) -> &PlaceOptions {
        &self.places
    }

    /// Converts to the options of [`run::machine`].
    pub fn options(&self, envs: &env::EnvBuildOptions) -> Result<run::machine::MachineOptions> {
        Ok(run::machine::MachineOptions {
            cache: self.places.cache()?,
            scratch: self.places.scratch(),
            sandbox: self.sandbox,
            gpus: self.gpus,
            limits: self.limits(),
            envs: envs.clone(),
        })
    }
}

/// Returns the options of the machine for continuing a stored run: sandbox, GPUs and limits are those of the run,
/// folders and channels those given now.
pub(super) fn stored_machine(
    configuration: &Configuration,
    places: &PlaceOptions,
    channels: &ChannelOptions,
) -> Result<run::machine::MachineOptions> {
    Ok(run::machine::MachineOptions {
        cache: places.cache()?,
        scratch: places.scratch(),
        sandbox: configuration.sandbox,
        gpus: configuration.gpus,
        limits: configuration.sandbox_limits,
        envs: channels.options(configuration.env),
    })
}

/// Builds the help of `--agent`, which lists all setting keys.
fn agent_help() -> String {
    format!(
        "Agent: `react`, `fixed`, `single`, `ml-agent`, `gold`, `noop`, `forger`, `mutant:P`, `random`, `copycat`, `scripted:FILE` or `replies:FILE`; or an external one: \
         `cli:mini-swe-agent`, `cli:gptme` or `cli:FOLDER` (docs/external-agents.md); or a function in Python: \
         `python:FILE.py:NAME` (docs/python.md). Can be repeated, or a list as `gold,noop`. Some take settings, as \
         `fixed:paper=none,repair=2` or `react:prompt=planning,history=window:5`; `autoexperiment agents` explains them: {}",
        setting_keys()
    )
}

impl Arguments {
    /// Describes the run as a Slurm job. Options that are not stored with the run are passed to the job's tasks as
    /// arguments.
    fn job(&self, jobs: usize) -> Result<SlurmJob> {
        let mut arguments = vec![format!("--jobs={jobs}")];
        arguments.extend(self.machine.places.arguments()?);
        arguments.extend(self.no_baseline.then(|| "--no-baseline".to_owned()));
        arguments.extend(self.unchecked.then(|| "--unchecked".to_owned()));
        arguments.extend(self.fresh.argument());
        arguments.extend(self.shards.is_mixed().then(|| "--mixed-sandboxes".to_owned()));
        arguments.extend(self.env.channels.arguments());
        self.slurm.job(jobs, arguments)
    }

    /// Returns the settings that apply to all agents, and checks that there is an embedding model if one of them needs
    /// it.
    fn settings(&self, agents: &[AgentSpec]) -> Result<Settings> {
        let settings = self.embedding.settings(&self.machine.places)?;
        if settings.embedding.is_none() && agents.iter().any(|agent| agent.embeds(&settings)) {
            return Err(Settings::without_embedding(&self.machine.places.cache()?));
        }
        Ok(settings)
    }
}

pub async fn run(arguments: &Arguments) -> Result<ProgramExit> {
    let suite = arguments.suite.folder()?;
    if is_bundled(&suite) {
        talk!("no suite here: using the one {}", described(&suite));
    }
    let families = Families::standard();
    let family = families.get(&arguments.draw.family)?;
    let mut draw = arguments.draw.draw()?;
    draw.samples.clone_from(&arguments.samples);
    let papers = if arguments.samples.is_empty() {
        SuiteOptions::items(family.as_ref(), &suite, &arguments.draw.papers.all())?
    } else {
        let mut items = Vec::new();
        for id in &arguments.samples {
            items.push(family.sample(id)?.item().to_owned());
        }
        SuiteOptions::items(family.as_ref(), &suite, &items)?
    };
    if arguments.max_cost.is_some_and(|most| arguments.model.is_given() && most < arguments.cost) {
        return Err(Error::usage("`--max-cost` is less than `--cost`, the limit of a single attempt")
            .hint("raise `--max-cost`, or lower `--cost`"));
    }
    arguments.model.refuse_server_alone()?;
    let verifiers = arguments.verifiers.iter().map(|text| verifier_spec(text)).collect::<Result<Vec<_>>>()?;
    if let Some(verifier) = verifiers.iter().find(|spec| **spec != VerifierSpec::First && arguments.k == 1) {
        return Err(Error::usage(format!(
            "verifier `{verifier}` has no choice: there is only one attempt at each sample"
        ))
        .hint("make several attempts at each sample with `-k 5`"));
    }
    let mut agents: Vec<AgentSpec> = Vec::new();
    for spec in arguments.agents.iter().flat_map(|text| AgentSpec::split(text)) {
        let agent: AgentSpec = spec.parse()?;
        agent.check_settings()?;
        agents.push(located(agent, &suite)?);
    }
    let configuration = Configuration {
        family: family.name().to_owned(),
        suite,
        papers,
        draw,
        k: arguments.k,
        settings: arguments.settings(&agents)?,
        agents,
        model: arguments.model.choice()?,
        sampling: Sampling {
            temperature: arguments.temperature,
            seed: None,
            max_tokens: arguments.max_tokens,
            effort: arguments.effort,
            extra_body: arguments.extra_body.clone().unwrap_or_default(),
            ..Sampling::default()
        },
        limits: Limits {
            steps: arguments.steps,
            seconds: arguments.time,
            cost: arguments.cost,
            tokens: arguments.tokens,
        },
        env: arguments.env.kind,
        sandbox: arguments.machine.sandbox,
        gpus: arguments.machine.gpus,
        sandbox_limits: arguments.machine.limits(),
        protocol: if arguments.full { Protocol::Full } else { Protocol::Curtailed },
        scoring: arguments.scoring,
        verify: !arguments.no_verify,
        jobs: arguments.jobs.unwrap_or_else(default_jobs),
        tries: arguments.tries,
        max_cost: arguments.max_cost,
        verifiers,
        orders: arguments.orders,
        seed: arguments.draw.seed,
        serving: None,
    };
    let shards = arguments.shards.given(arguments.name.is_some())?;
    let folder = match &arguments.name {
        Some(name) if is_plain(name) && shards.is_some() => RunFolder::Shared(arguments.runs.join(name)),
        Some(name) if is_plain(name) => RunFolder::New(arguments.runs.join(name)),
        Some(name) => {
            return Err(Error::usage(format!("`{name}` is not a valid name for a run"))
                .hint("use letters, digits, `-`, `_` and `.`; the folder is chosen with `--runs DIR`"));
        }
        None if shards.is_some() => {
            return Err(Error::usage("a shard needs the name of the run that it works on")
                .hint("give all shards the same `--name`, or plan the run with `run --plan-only` and give `resume RUN --shard I/N`"));
        }
        None => RunFolder::NamedByTime(arguments.runs.clone()),
    };
    let job = if arguments.slurm.is_given() { Some(arguments.job(configuration.jobs)?) } else { None };
    if let Some(job) = job.as_ref().filter(|_| arguments.slurm.is_dry()) {
        let named = arguments.runs.join(arguments.name.as_deref().unwrap_or("RUN"));
        return slurm::show_script(&named, job);
    }
    let mut machine = arguments.machine.open(&arguments.env.options(), &configuration.suite).await?;
    arguments.fresh.apply(&mut machine);
    let shards = if arguments.plan_only || job.is_some() { Some(arguments.shards.only()) } else { shards };
    let (baseline, unchecked) = (!arguments.no_baseline, arguments.unchecked);
    let options = SessionOptions { baseline, unchecked, shards, ..SessionOptions::on(machine) };
    if arguments.plan_only {
        return show_plan(Run::open(configuration, folder, options)?).await;
    }
    if let Some(job) = job {
        return slurm::submit_new(Run::open(configuration, folder, options)?, job).await;
    }
    let shown =
        SessionOutput { k: arguments.k, json_events: arguments.json_events, require_pass: arguments.require_pass };
    let run = Run::open(configuration, folder, options)?;
    if arguments.slurm.is_dry() {
        return plan::show(&run, &arguments.runs).map(|()| ProgramExit::Done);
    }
    Box::pin(show(run, &shown)).await
}

/// Whether a run's name is a plain file name.
pub(super) fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.')) && name.starts_with(char::is_alphanumeric)
}

pub(super) fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Parses a number of parallel attempts, limited because each has processes, files and memory of its own.
pub(super) fn parse_jobs(text: &str) -> Result<usize, String> {
    let parsed = text.parse::<usize>().ok().filter(|jobs| (1..=4096).contains(jobs));
    parsed.ok_or_else(|| format!("`{text}` is not a number of attempts at once: give one from 1 to 4096"))
}

/// Parses a number of dollars: finite, 0 or more.
pub(super) fn parse_dollars(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|dollars| dollars.is_finite() && *dollars >= 0.0);
    parsed.ok_or_else(|| format!("`{text}` is not a number of dollars"))
}

/// Parses a number of CPUs, within what the kernel can limit and a machine can have.
fn parse_cpus(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|cpus| (0.01..=100_000.0).contains(cpus));
    parsed.ok_or_else(|| format!("`{text}` is not a number of CPUs: give a number of at least 0.01"))
}

/// Parses a temperature: finite, 0 or more.
fn parse_temperature(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|temperature| temperature.is_finite() && *temperature >= 0.0);
    parsed.ok_or_else(|| format!("`{text}` is not a temperature: give 0 or a positive number"))
}

pub(super) fn parse_rule(text: &str) -> Result<Rule, String> {
    match text {
        "strict" => Ok(Rule::Strict),
        "reference" => Ok(Rule::Reference),
        _ => Err(format!("`{text}` is not a rule of scoring: give `strict` or `reference`")),
    }
}
