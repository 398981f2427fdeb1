//! `autoexperiment new`: starts a paper from a repository.

mod env;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use self::env::DraftEnvPlan;
use super::model::parse_time;
use super::progress::ProgressDisplay;
use super::run::{MachineArguments, default_jobs, parse_jobs};
use super::shared::{SuiteOptions, clean_lines, print, table};
use super::signals::{stop_on_signals, unless_stopped};
use super::verified::console;
use crate::audit::verify::{Measures, verify};
use crate::audit::{Bench, MatrixMethod};
use crate::draft::command::{RequestedExperiment, add_rules, parse, read, validate};
use crate::draft::entered::{entered, sources};
use crate::draft::manifest::{ManifestInput, rule};
use crate::draft::metadata::{self, PackageFacts};
use crate::draft::{
    Draft, MaskingProposal, TrialResult, TrialSetup, propose, refuse_left_out, refuse_missing_runners, refuse_scripts,
    repo, require_id, result, text, try_command,
};
use crate::env::{EnvBuildOptions, EnvKind};
use crate::error::{Error, FailureKind, Result};
use crate::masked::build::built;
use crate::masked::gold::record;
use crate::masked::ready::{ReadyPaper, task_experiments};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;
use crate::score::shape;
use crate::suite::{Experiment, GoldValues, LoadedPaper, Paper, Protocol, Suite, TODO, contradictions};
use crate::workspace::Snapshot;

/// If a curtailed experiment takes more seconds than this, the user is asked to choose smaller curtailed parameters.
const SLOW: f64 = 6.0;

/// Start a paper from a repository: copy it, try its commands, propose functions to mask, record gold, verify
///
/// Runs each command once to see how its result can be read, and once traced to see which functions it enters. Proposes
/// functions of at least five lines that are not tests, do not read the command line and are not in an entry script.
/// Writes `papers/PAPER`, `repos/PAPER` and, unless you pass `--use-env`, `envs/PAPER`: all of them or none. At the end
/// it lists what only a person can do. docs/new-paper.md walks through an example.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  autoexperiment new kmeans --repo ~/src/kmeans --requirements numpy==2.2.6 \\
    --command 'table=python -m kmeans table --n {n=full:10000,curtailed:500}'
  autoexperiment new kmeans --repo ~/src/kmeans --use-env numpy-sklearn --commands commands.toml --text paper.md
  autoexperiment new net --repo ~/src/net --environment net.yml --command 'train=python train.py' \\
    --regex 'train.loss=final loss: ([.0-9]+)'")]
pub struct Arguments {
    /// Id of the new paper: letters, digits, `-`, `_` and `.`.
    paper: String,
    /// Folder of the repository. Version control, caches and environments are not copied. Tests, notebooks and saved
    /// results are copied only if `--keep` says so.
    #[arg(long, value_name = "DIR")]
    repo: PathBuf,
    /// Env of the suite to use.
    #[arg(long = "use-env", alias = "env", value_name = "ENV", conflicts_with_all = ["requirements", "environment", "python"], help_heading = "Environment")]
    env: Option<String>,
    /// Packages for a new env, such as `numpy==2.2.6,scipy==1.15.3`, or a requirements file; `''` for no packages
    /// [default: the repository's environment.yml or requirements.txt].
    #[arg(long, value_name = "LIST", conflicts_with = "environment", help_heading = "Environment")]
    requirements: Option<String>,
    /// Conda environment file for a new env.
    #[arg(long, value_name = "FILE", help_heading = "Environment")]
    environment: Option<PathBuf>,
    /// Python versions that a new env accepts [default: >=3.10,<3.14].
    #[arg(long, value_name = "RANGE", conflicts_with = "environment", help_heading = "Environment")]
    python: Option<String>,
    /// Command that builds the repository's C extensions, run once in a sandbox; `''` to build nothing [default: what
    /// setup.py or pyproject.toml ask for].
    #[arg(long, value_name = "COMMAND", help_heading = "Environment")]
    build: Option<String>,
    /// Text of the paper: Markdown, LaTeX or plain text. Its results are removed as `scrub` does. Without it, an
    /// outline is written.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// An experiment, as `NAME=COMMAND`, which `sh` runs in the repo's root. Write a parameter with its values for both
    /// protocols, as `{n=full:1000,curtailed:50}`, or with one value, as `{seed=0}`.
    #[arg(long = "command", value_name = "NAME=COMMAND", help_heading = "Experiments")]
    commands: Vec<String>,
    /// File with one line `NAME=COMMAND` per experiment, or, if its name ends in `.toml`, with `[[experiment]]` tables
    /// as in a manifest, where `description` and `result` are optional.
    #[arg(long = "commands", value_name = "FILE", help_heading = "Experiments")]
    command_file: Option<PathBuf>,
    /// Regular expression with one group that reads a value from what the experiment prints.
    #[arg(long = "regex", value_name = "NAME.KEY=REGEX", help_heading = "Experiments")]
    expressions: Vec<String>,
    /// JSON file that an experiment writes its result to.
    #[arg(long = "json-file", value_name = "NAME=FILE", help_heading = "Experiments")]
    json_files: Vec<String>,
    /// Time limit of a curtailed experiment, such as `10m`, or in seconds.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time, help_heading = "Experiments")]
    time_limit: f64,
    /// Number of runs of each experiment for gold.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..), help_heading = "Experiments")]
    repeats: u32,
    /// Copy these files even if they look like tests, notebooks or results.
    #[arg(long, value_name = "GLOB")]
    keep: Vec<String>,
    /// Do not copy these files.
    #[arg(long, value_name = "GLOB")]
    leave_out: Vec<String>,
    /// Do not verify the new paper.
    #[arg(long, conflicts_with = "mutants")]
    no_verify: bool,
    /// Number of mutants per function for verification; 0 to skip the mutants.
    #[arg(long, value_name = "N", default_value_t = 12)]
    mutants: usize,
    /// Number of experiments to run at once for verification [default: one per core].
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<usize>,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    machine: MachineArguments,
}

/// Findings about the new paper, for the tables and the list of remaining work that are printed at the end.
struct DraftFindings {
    left_out: BTreeMap<PathBuf, &'static str>,
    tried: Vec<TrialResult>,
    experiments: Vec<Experiment>,
    proposal: MaskingProposal,
    doubts: Vec<String>,
    broken: Vec<Error>,
    scrubbed: Option<text::ScrubbedPaper>,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let stop = stop_on_signals();
    require_id(&arguments.paper)?;
    let suite = arguments.suite.open_own()?;
    let written = Box::pin(arguments.write(&suite));
    let (found, machine) = unless_stopped(written, &stop, "nothing was written: repeat the command").await?;
    print(&found.tables())?;
    let mut todo = found.todo(arguments, &suite)?;
    let verified = if arguments.no_verify {
        Ok(None)
    } else {
        let hint = format!("the paper is written: continue with `autoexperiment verify {}`", arguments.paper);
        unless_stopped(Box::pin(arguments.verify(&suite, &machine, &mut todo)), &stop, &hint).await
    };
    if arguments.no_verify || verified.is_err() {
        todo.push(format!("verify it: `autoexperiment verify {}`", arguments.paper));
    }
    print(&format!("\nTo do by hand, in papers/{0} and repos/{0}:\n", arguments.paper))?;
    for item in &todo {
        print(&format!("[ ] {}\n", clean_lines(item).replace('\n', "\n    ")))?;
    }
    match verified? {
        None => Ok(()),
        Some(kind) => {
            Err(Error::new(kind, format!("paper `{}` was written, but could not be verified", arguments.paper))
                .hint(format!("correct the errors listed above, then run `autoexperiment verify {}`", arguments.paper)))
        }
    }
}

/// Returns the text of an env's files, which name its packages.
fn env_files(draft: &Draft, env: &str) -> String {
    let folder = std::fs::read_dir(draft.suite().env_dir(env)).into_iter().flatten().flatten();
    folder.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect()
}

impl Arguments {
    /// Writes the paper: all of its files or, after an error, none of them.
    async fn write(&self, suite: &Suite) -> Result<(DraftFindings, Arc<Machine>)> {
        let wanted = self.experiments()?;
        let source = self.text.as_deref().map(text::TextSource::read).transpose()?;
        self.refuse_suite_inside(suite)?;
        let mut draft = Draft::begin(suite, &self.paper)?;
        let choice = repo::CopyRules::new(&self.keep, &self.leave_out)?;
        let left_out = repo::copy(&self.repo, &draft.suite().repo_dir(draft.id()), &choice)?;
        refuse_scripts(&wanted, &draft.suite().repo_dir(draft.id()))?;
        refuse_left_out(&wanted, &draft.suite().repo_dir(draft.id()), &left_out)?;
        let plan = self.plan_env(&mut draft).await?;
        refuse_missing_runners(&wanted, &env_files(&draft, &plan.env))?;
        // A new env is locked for a venv on this machine only; for conda it is locked later. Solving for other machines
        // takes minutes, and is not needed to try the paper.
        let envs = EnvBuildOptions { kind: EnvKind::Venv, here: true, ..EnvBuildOptions::default() };
        let machine = Arc::new(self.machine.open(&envs, suite.root()).await?);
        let progress = ProgressDisplay::new(false);
        let made = self.make(&draft, &plan, &wanted, source.as_ref(), left_out, &machine, &progress).await;
        progress.finish();
        let found = made.map_err(|error| {
            let error = draft.outside(error);
            talk!("nothing was written: correct what is wrong and repeat the command");
            error
        })?;
        draft.move_into_suite()?;
        Ok((found, machine))
    }

    fn experiments(&self) -> Result<Vec<RequestedExperiment>> {
        let mut wanted = self.command_file.as_deref().map(read).transpose()?.unwrap_or_default();
        for text in &self.commands {
            wanted.push(parse(text)?);
        }
        validate(&wanted)?;
        add_rules(&mut wanted, &self.expressions, &self.json_files)?;
        Ok(wanted)
    }

    /// Refuses a suite inside the repository: the repository is copied into the suite, so the suite would be copied
    /// into itself.
    fn refuse_suite_inside(&self, suite: &Suite) -> Result<()> {
        let inside = |repo: PathBuf| suite.root().canonicalize().is_ok_and(|root| root.starts_with(repo));
        if self.repo.canonicalize().is_ok_and(inside) {
            return Err(Error::usage(format!("the suite lies inside the repository `{}`", self.repo.display()))
                .hint("make the suite's folder elsewhere, or name it with `--suite DIR`"));
        }
        Ok(())
    }

    /// Does all steps that run commands: builds the env, tries the commands, records gold and traces the experiments.
    /// Then proposes functions to mask.
    #[allow(clippy::too_many_arguments, reason = "the steps of one command")]
    async fn make(
        &self,
        draft: &Draft,
        plan: &DraftEnvPlan,
        wanted: &[RequestedExperiment],
        source: Option<&text::TextSource>,
        left_out: BTreeMap<PathBuf, &'static str>,
        machine: &Arc<Machine>,
        progress: &ProgressDisplay,
    ) -> Result<DraftFindings> {
        let id = draft.id();
        let repo_dir = draft.suite().repo_dir(id);
        let env = self.build_env(draft, plan, machine, progress).await?;
        let base = machine.backend.base().await?;
        let compiled = plan.compiled(&repo_dir, &env);
        progress.on(RunEvent::Stage(Stage::new("copying repo", id)));
        let stub = Paper {
            id: id.to_owned(),
            repo: id.to_owned(),
            env: plan.env.clone(),
            build: compiled.build.clone(),
            abi: compiled.abi.clone(),
            ..Paper::default()
        };
        let snapshot = async || {
            let plain = Snapshot::take(&repo_dir, &machine.cache, machine.backend.owner())?;
            built(&stub, plain, &env, base.as_deref(), machine, progress).await
        };
        let first = snapshot().await?;
        let place = TrialSetup {
            paper: id,
            snapshot: &first,
            env: &env,
            left_out: &left_out,
            machine,
            limit: Duration::from_secs_f64(self.time_limit),
        };
        let tried = self.try_all(wanted, &place, progress).await?;
        let overwrote: BTreeSet<&String> = tried.iter().filter_map(|tried| tried.overwrote.as_ref()).collect();
        for file in overwrote {
            // The repository already contained this result file, which several experiments may write. Remove it,
            // because every agent would get it with the repo.
            let file = repo_dir.join(file);
            std::fs::remove_file(&file).map_err(|error| Error::io("remove", &file, error))?;
        }
        let experiments: Vec<Experiment> = wanted
            .iter()
            .zip(&tried)
            .map(|(wanted, tried)| {
                let described = wanted
                    .description
                    .clone()
                    .unwrap_or_else(|| format!("{TODO}: what is measured. Answer: {}", shape(&tried.value)));
                wanted.experiment(tried.rule.clone(), described)
            })
            .collect();
        let facts = metadata::facts(&self.repo);
        let sheet = ManifestInput {
            facts: &facts,
            repo: id,
            env: &plan.env,
            compiled: &compiled,
            experiments: &experiments,
            proposal: &MaskingProposal::default(),
        };
        draft.write("paper.toml", &sheet.manifest())?;
        draft.write("paper.md", "")?;
        let loaded = Arc::new(LoadedPaper::load(draft.suite(), id)?);
        let tasks = task_experiments(&loaded, Protocol::Curtailed)?;
        let snapshot = snapshot().await?;
        let shown = snapshot.clone();
        let mut ready = ReadyPaper { loaded, snapshot, shown, env, base, experiments: tasks };
        let gold = record(&ready, Protocol::Curtailed, self.repeats as usize, machine, progress).await.map_err(
            |mut error| {
                if error.kind == FailureKind::Baseline {
                    error.message = format!("paper `{id}`, {}", error.message);
                }
                error
            },
        )?;
        gold.save(&draft.suite().paper_dir(id).join("gold.json"))?;
        let scrubbed = source.map(|source| source.scrubbed(&gold));
        // Remove gold values from the title, because agents see it, whether it comes from the paper's text or from the
        // repository.
        let title = scrubbed.as_ref().and_then(text::ScrubbedPaper::title).or_else(|| facts.title.clone());
        let title = title.map(|title| GoldValues::of(Some(&gold)).hide(&title));
        let titled = PackageFacts { title, ..facts.clone() };
        Arc::make_mut(&mut ready.loaded).gold = Some(gold);
        for (task, tried) in ready.experiments.iter_mut().zip(&tried) {
            task.time_limit = task.time_limit.max(10.0 * tried.seconds);
        }
        let sources = sources(&repo_dir);
        let bench = Bench::new(ready, Arc::clone(machine), 1, false)?;
        let (entered, doubts) = entered(&bench, &sources, progress).await?;
        let commands: Vec<String> = wanted.iter().map(|wanted| wanted.command.clone()).collect();
        let proposal = propose(&sources.modules, &sources.others, &commands, &entered);
        if proposal.functions.is_empty() {
            let reasons: Vec<String> =
                proposal.refused.iter().map(|(selector, reason)| format!("{selector}: {reason}")).collect();
            return Err(Error::new(
                FailureKind::Baseline,
                format!(
                    "paper `{id}`: none of the functions that its experiments run can become a task\n{}",
                    reasons.join("\n")
                ),
            )
            .hint("give commands that use more of the repo"));
        }
        let sheet = ManifestInput { facts: &titled, proposal: &proposal, ..sheet };
        draft.write("paper.toml", &sheet.manifest())?;
        match &scrubbed {
            Some(scrubbed) => draft.write("paper.md", &scrubbed.text)?,
            None => draft.write("paper.md", &text::outline(None, &proposal, &experiments))?,
        }
        // Check that everything that was written can be loaded.
        LoadedPaper::load(draft.suite(), id)?;
        Ok(DraftFindings { left_out, tried, experiments, proposal, doubts, broken: sources.broken, scrubbed })
    }

    /// Verifies the paper at its final place. Faults are added to `todo`, and the paper stays in the suite. Returns the
    /// kind of the error that prevented verification.
    async fn verify(
        &self,
        suite: &Suite,
        machine: &Arc<Machine>,
        todo: &mut Vec<String>,
    ) -> Result<Option<FailureKind>> {
        let id = &self.paper;
        let progress = ProgressDisplay::new(false);
        let loaded = LoadedPaper::load(suite, id)?;
        let ready = ReadyPaper::prepare(loaded, Protocol::Curtailed, machine, &progress).await?;
        let jobs = self.jobs.unwrap_or_else(default_jobs);
        let bench = Bench::new(ready, Arc::clone(machine), jobs, false)?;
        let measures = Measures { effort: MatrixMethod::Traced, mutants: (self.mutants > 0).then_some(self.mutants) };
        let verified = verify(bench, measures, &progress).await;
        progress.finish();
        let verified = match verified {
            Ok(verified) => verified,
            Err(errors) => {
                errors.iter().for_each(super::render);
                todo.push(format!("correct what could not be verified, then `autoexperiment verify {id}`"));
                return Ok(errors.first().map(|error| error.kind));
            }
        };
        let loaded = LoadedPaper::load(suite, id)?;
        print(&format!("\n{}", console(&loaded, &verified, false)))?;
        for place in verified.matrix.inessential() {
            let at = &loaded.paper.units[place].at;
            todo.push(format!("paper.toml: leave out {at}: no experiment changes without it"));
        }
        let survivors: usize = verified.mutations.iter().map(|mutation| mutation.survivors.len()).sum();
        if survivors > 0 {
            todo.push(format!(
                "{survivors} mutants that no experiment notices (`autoexperiment verify {id} --survivors`): let an \
                 experiment give what they change, or mark them as equivalent"
            ));
        }
        for leak in verified.leaks.errors() {
            let leak = leak.to_string();
            // Skip a leak that `todo` already contains as a finding of `check`, which also searches texts for gold
            // values.
            if !todo.iter().any(|item| item.ends_with(&leak)) {
                todo.push(format!("gives something away: {leak}"));
            }
        }
        Ok(None)
    }

    /// Tries every command, even after failures, and reports all that are unusable.
    async fn try_all(
        &self,
        wanted: &[RequestedExperiment],
        place: &TrialSetup<'_>,
        progress: &ProgressDisplay,
    ) -> Result<Vec<TrialResult>> {
        let mut tried = Vec::new();
        let mut faults = Vec::new();
        for (number, one) in wanted.iter().enumerate() {
            let stage = Stage::new("trying", &one.id);
            progress.on(RunEvent::Stage(stage.counted(number, wanted.len(), "experiments")));
            match try_command(one, place).await {
                Ok(this) => tried.push(this),
                Err(error) if error.kind == FailureKind::Baseline => faults.push(error),
                Err(error) => return Err(error),
            }
        }
        if faults.len() < 2 {
            return faults.pop().map_or(Ok(tried), Err);
        }
        progress.finish();
        for fault in &faults {
            super::render(fault);
        }
        Err(Error::new(
            FailureKind::Baseline,
            format!("paper `{}`: {} of {} experiments cannot be used", place.paper, faults.len(), wanted.len()),
        )
        .hint("correct them as said above, or leave them out"))
    }
}

impl DraftFindings {
    fn tables(&self) -> String {
        let mut text = table(
            &["experiment", "seconds", "values", "result"],
            &[1, 2],
            self.experiments.iter().zip(&self.tried).map(|(experiment, tried)| {
                vec![
                    experiment.id.clone(),
                    format!("{:.2}", tried.seconds),
                    result::values(&tried.value).to_string(),
                    rule(&experiment.result),
                ]
            }),
        );
        text.push('\n');
        text.push_str(&table(
            &["function", "lines", "calls", "experiments"],
            &[1, 2, 3],
            self.proposal.functions.iter().map(|function| {
                vec![
                    function.selector.to_string(),
                    function.lines.to_string(),
                    function.calls.to_string(),
                    function.experiments.len().to_string(),
                ]
            }),
        ));
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, reason) in &self.proposal.refused {
            *counts.entry(reason.to_string()).or_default() += 1;
        }
        if !counts.is_empty() {
            let counts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            let _ = writeln!(text, "\nentered, but not proposed: {}", counts.join(", "));
        }
        if !self.left_out.is_empty() {
            let paths: Vec<String> =
                self.left_out.iter().map(|(path, why)| format!("{} ({why})", path.display())).collect();
            let _ = writeln!(text, "left out of the repo: {}", paths.join(", "));
        }
        text
    }

    /// Lists what only a person can do, one sentence each.
    fn todo(&self, arguments: &Arguments, suite: &Suite) -> Result<Vec<String>> {
        let id = &arguments.paper;
        let facts = metadata::facts(&arguments.repo);
        let mut todo = vec![if facts == PackageFacts::default() {
            "paper.toml: title, authors, year and url".to_owned()
        } else {
            "paper.toml: title, authors, year and url: what is there is the package's, not the paper's".to_owned()
        }];
        todo.push(match (&arguments.text, &self.scrubbed) {
            (Some(path), Some(scrubbed)) => format!(
                "paper.md: {} of {} numbers were removed as results: see them with `autoexperiment scrub {} --gold \
                 papers/{id}/gold.json`, and read the text once more",
                scrubbed.removed,
                scrubbed.numbers,
                path.display()
            ),
            _ => "paper.md: write it; its headings are an outline".to_owned(),
        });
        let undescribed: Vec<&str> = self
            .proposal
            .functions
            .iter()
            .filter(|function| function.description.is_none())
            .map(|function| function.selector.name.as_str())
            .collect();
        if !undescribed.is_empty() {
            todo.push(format!("paper.toml: describe {}, which the code does not describe", undescribed.join(", ")));
        }
        let unexplained: Vec<&str> = self
            .experiments
            .iter()
            .filter(|experiment| experiment.description.starts_with(TODO))
            .map(|experiment| experiment.id.as_str())
            .collect();
        if !unexplained.is_empty() {
            todo.push(format!("paper.toml: say what is measured in {}", unexplained.join(", ")));
        }
        if arguments.env.is_none() {
            todo.push(format!(
                "the env is locked for this machine only: `autoexperiment env lock --env venv {id}` solves it for others"
            ));
        }
        todo.push(format!(
            "paper.toml: name the passages for the {} functions; delete the functions that the paper does not describe",
            self.proposal.functions.len()
        ));
        let slow: Vec<String> = self
            .experiments
            .iter()
            .zip(&self.tried)
            .filter(|(_, tried)| tried.seconds > SLOW)
            .map(|(experiment, tried)| format!("{} ({:.0} s)", experiment.id, tried.seconds))
            .collect();
        if !slow.is_empty() {
            todo.push(format!("paper.toml: choose smaller curtailed parameters for {}", slow.join(", ")));
        }
        if self.experiments.iter().any(|it| it.parameters.full != it.parameters.curtailed) {
            todo.push(format!("record gold of the full protocol: `autoexperiment gold {id} --full`"));
        }
        if !self.proposal.open_scripts.is_empty() {
            let scripts: Vec<String> =
                self.proposal.open_scripts.iter().map(|path| path.display().to_string()).collect();
            todo.push(format!(
                "scripts that are not protected, because otherwise no function could be masked: {}; move the code that \
                 reads the command line to a file of its own, and protect that file",
                scripts.join(", ")
            ));
        }
        todo.extend(self.doubts.iter().cloned());
        todo.extend(self.broken.iter().map(|error| format!("functions of a broken file are not proposed: {error}")));
        let licences = ["licen", "copying"];
        let licensed = std::fs::read_dir(suite.repo_dir(id)).into_iter().flatten().flatten().any(|entry| {
            let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
            licences.iter().any(|start| name.starts_with(start))
        });
        if !licensed {
            todo.push("the repo contains no licence: find out whether it may be passed on to others".to_owned());
        }
        for problem in
            contradictions(&LoadedPaper::load(suite, id)?, Protocol::Curtailed).iter().filter(|problem| problem.fatal)
        {
            todo.push(format!("fix the problem that `check` reports: {}", problem.error));
        }
        Ok(todo)
    }
}
