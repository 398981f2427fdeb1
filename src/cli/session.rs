//! What `run` and `resume` share: prepare, check the baseline, make attempts, report.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use itertools::Itertools;
use tokio_util::sync::CancellationToken;

use super::events;
use super::model::open_choice;
use super::naming::{report_options, run_name};
use super::progress::Progress;
use super::shared::print;
use super::verifiers;
use crate::agent;
use crate::error::{Error, Kind, Result};
use crate::model;
use crate::report;
use crate::run::attempt::{LabelledAgent, RunContext};
use crate::run::event::{Observer, RunEvent};
use crate::run::family::{Families, Family, Item, Ready, samples};
use crate::run::machine::Machine;
use crate::run::run_file::FORMAT;
use crate::run::scheduler::{Outcome, Terms, execute, plan, unfinished};
use crate::run::{
    AttemptRecord, Catalogue, Configuration, Digests, Planned, RunFile, SessionFacts, Store, interrupted_attempts,
};
use crate::sample::Sample;
use crate::verifier::stored::{self, Purse};
use crate::verifier::{self, Verifier};

/// A run's session in this process.
pub struct Session {
    /// The run's folder.
    pub folder: PathBuf,
    /// Where things run.
    pub machine: Machine,
    /// Whether the baseline is checked.
    pub baseline: bool,
    /// Whether the user chose the run's name.
    pub named: bool,
    /// Whether a failed attempt makes the command fail.
    pub require_pass: bool,
    /// Whether events are printed on stdout as JSON lines, in place of the report.
    pub json_events: bool,
    /// Whether a stored run goes on though its suite, envs or prompts have changed.
    pub changed_suite: bool,
}

impl Session {
    /// Starts a new run.
    pub async fn start(self, configuration: Configuration) -> Result<()> {
        self.go(configuration, None).await
    }

    /// Goes on with a stored one.
    pub async fn resume(self, store: Store, run: RunFile, suite: PathBuf) -> Result<()> {
        let configuration = Configuration { suite, ..run.configuration.clone() };
        self.go(configuration, Some((store, run))).await
    }

    async fn go(self, configuration: Configuration, stored: Option<(Store, RunFile)>) -> Result<()> {
        // Whatever can be wrong with names, agents, models, samples and gold is found before any work is done.
        let writer = match &stored {
            Some((store, _)) => Some(store.writer()?),
            None => Store::is_free(&self.folder).map(|()| None)?,
        };
        let contenders = open_agents(&configuration, &self.machine.cache)?;
        let model = open_model(&contenders, &configuration)?;
        if let Some(contender) =
            contenders.iter().find(|it| it.agent.needs_listener() && !self.machine.backend.listens())
        {
            let (label, sandbox) = (&contender.label, self.machine.backend.name());
            return Err(Error::machine(format!(
                "agent `{label}` must reach its model, and in a `{sandbox}` sandbox commands can make no connections"
            ))
            .hint("use `--sandbox docker` or `--sandbox podman`, or a machine that allows user namespaces"));
        }
        let verifiers = verifiers::open(
            &configuration.verifiers,
            configuration.orders,
            configuration.model.as_ref(),
            model.as_ref(),
        )?;
        let families = Families::standard();
        let family = families.get(&configuration.family)?;
        let mut items = Vec::new();
        for id in &configuration.papers {
            let item = family.load(&configuration.suite, id, (&configuration).into())?;
            item.scorable()?;
            items.push(item);
        }
        let samples = samples(family.as_ref(), &items, &configuration.draw, configuration.seed)?;
        let progress = Progress::with_json(self.json_events);
        let warnings = self.machine.backend.warnings();
        for warning in warnings.iter().cloned().chain(unheeded(&contenders, &configuration)) {
            progress.on(RunEvent::Warning(warning));
        }
        let cancel = stop_on_signals();
        let items = tokio::select! {
            prepared = self.prepare(items, &contenders, &progress) => prepared?,
            () = cancel.cancelled() => return Err(Error::new(Kind::Interrupted, "stopped before the first attempt")),
        };
        let digests = digests(family.as_ref(), &items, &contenders, self.machine.backend.base().await?);
        let mut facts = SessionFacts {
            started: jiff::Timestamp::now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sandbox: self.machine.backend.name().to_owned(),
            envs: items.iter().map(|ready| (ready.item().id().to_owned(), ready.env().backend.to_owned())).collect(),
            baseline: self.baseline,
            warnings,
            differences: Vec::new(),
        };
        let (store, run) = if let Some((store, mut run)) = stored {
            facts.differences = run.digests.differences(&digests);
            self.accept(&facts.differences, &progress)?;
            run.sessions.push(facts);
            store.save_run(&run)?;
            (store, run)
        } else {
            let run = RunFile {
                format: FORMAT,
                run: self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                created: facts.started,
                command_line: std::env::args().collect(),
                planned: planned(&samples, &contenders, model.as_deref(), configuration.k),
                configuration: configuration.clone(),
                digests,
                sessions: vec![facts],
            };
            create(&self, run)?
        };
        let mut writer = match writer {
            Some(writer) => writer,
            None => store.writer()?,
        };
        let mut records = store.records()?;
        let interrupted = interrupted_attempts(&store, &records, family.as_ref())?;
        writer.append(&interrupted)?;
        records.extend(interrupted);
        let json_events = self.json_events;
        let context = Arc::new(RunContext {
            machine: self.machine,
            items,
            agents: contenders,
            model,
            store: store.clone(),
            configuration,
        });
        for contender in &context.agents {
            store.make_folders(&contender.label)?;
        }
        let all = plan(&samples, context.agents.len(), context.configuration.k);
        let total = all.len();
        let jobs = unfinished(context.as_ref(), all, &records);
        progress.on(RunEvent::Planned { total, finished: total - jobs.len() });
        let spent = records.iter().map(|record| record.cost).sum::<f64>() + stored::spent(&store)?.dollars;
        let configuration = context.configuration.clone();
        let outcome = {
            let terms =
                Terms { jobs: configuration.jobs, tries: configuration.tries, max_cost: configuration.max_cost, spent };
            // Waits for the disk.
            let keep =
                |records: &[&AttemptRecord]| tokio::task::block_in_place(|| writer.append(records.iter().copied()));
            execute(context, jobs, terms, keep, &progress, &cancel).await
        };
        let chosen = match &outcome {
            Ok(Outcome::Interrupted) | Err(_) => Ok(()),
            Ok(_) => choose(&store, &families, &configuration, &verifiers, &progress, &cancel).await,
        };
        progress.finish();
        let folder = store.folder().display().to_string();
        let outcome = outcome.map_err(|error| match error.hint {
            Some(_) => error,
            None => error.hint(format!("what was finished is kept: `autoexperiment resume {folder}`")),
        })?;
        let (outcome, chosen) = match chosen {
            Err(error) if error.kind == Kind::Interrupted => (Outcome::Interrupted, Ok(())),
            Err(error) if error.kind == Kind::CostLimit && outcome == Outcome::Complete => (Outcome::CostLimit, Ok(())),
            Err(error) if error.kind == Kind::CostLimit => (outcome, Ok(())),
            chosen => (outcome, chosen),
        };
        let records = store.records()?;
        if json_events {
            events::print_end(&folder, if chosen.is_err() { "unverified" } else { outcome_name(&outcome) });
        } else {
            let options = report::Options { choices: stored::choices(&store)?.records, ..report_options(&run, &[]) };
            print(&report::console(&report::summarise(&records, &options)))?;
            print(&format!("\nrun: {folder}\n"))?;
        }
        chosen.map_err(|error| error.hint(format!("what was finished is kept: `autoexperiment resume {folder}`")))?;
        let failed = records.iter().any(|record| !record.is_infrastructure() && !record.pass);
        finish(outcome, &folder, self.require_pass && failed)
    }

    /// Refuses to go on with a run whose suite, envs or prompts have changed, since its attempts would not be of one
    /// kind, unless that is wanted.
    fn accept(&self, differences: &[String], progress: &Progress) -> Result<()> {
        if let Some(first) = differences.first().filter(|_| !self.changed_suite) {
            return Err(Error::suite(first.clone()).hint(
                "its attempts would no longer be of one kind: undo the change, start a new run, or go on all the \
                 same with `--changed-suite`",
            ));
        }
        for difference in differences {
            progress.on(RunEvent::Warning(difference.clone()));
        }
        Ok(())
    }

    async fn prepare(
        &self,
        items: Vec<Arc<dyn Item>>,
        contenders: &[LabelledAgent],
        progress: &Progress,
    ) -> Result<Vec<Box<dyn Ready>>> {
        for contender in contenders {
            contender.agent.prepare(&self.machine.cache, &|told| progress.on(RunEvent::Env(told))).await?;
        }
        let mut ready = Vec::with_capacity(items.len());
        for item in items {
            ready.push(item.prepare(&self.machine, self.baseline, progress).await?);
        }
        Ok(ready)
    }
}

/// Lets the run's verifiers choose, where all attempts at a sample are made: a choice among fewer would be made again.
async fn choose(
    store: &Store,
    families: &Families,
    configuration: &Configuration,
    verifiers: &[Arc<dyn Verifier>],
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<()> {
    if verifiers.is_empty() {
        return Ok(());
    }
    let _lock = store.lock()?;
    let records = store.records()?;
    let mut groups = stored::groups(&records);
    groups.retain(|group| group.records.len() == configuration.k as usize);
    let attempts: f64 = records.iter().map(|record| record.cost).sum();
    let purse = Purse::new(attempts + stored::spent(store)?.dollars, configuration.max_cost, cancel.clone());
    let catalogue = Catalogue::of(families, &configuration.suite, configuration.into(), &records).whole()?;
    verifiers::choose(store, &groups, &catalogue, verifiers, &purse, progress).await
}

/// Makes a new run's folder. A name that was not chosen by the user and has been taken meanwhile is changed.
fn create(session: &Session, mut run: RunFile) -> Result<(Store, RunFile)> {
    let runs = session.folder.parent().unwrap_or(Path::new("."));
    let mut folder = session.folder.clone();
    loop {
        match Store::create(&folder, &run) {
            Err(error) if error.kind == Kind::Usage && !session.named => {
                run.run = run_name(runs);
                folder = runs.join(&run.run);
            }
            created => return created.map(|store| (store, run)),
        }
    }
}

/// An outcome's name, for machines.
const fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "complete",
        Outcome::Lost(_) => "lost",
        Outcome::Interrupted => "interrupted",
        Outcome::CostLimit => "cost_limit",
    }
}

/// How the command ends.
fn finish(outcome: Outcome, run: &str, failed: bool) -> Result<()> {
    match outcome {
        Outcome::Complete if failed => Err(Error::new(Kind::Failed, "at least one attempt failed")),
        Outcome::Complete => Ok(()),
        Outcome::Lost(lost) => {
            let why = lost.first().cloned().unwrap_or_default();
            let what = format!("{} attempt(s) were lost to infrastructure, the first because: {why}", lost.len());
            Err(Error::new(Kind::Infrastructure, what)
                .hint(format!("try them again with `autoexperiment resume {run}`")))
        }
        Outcome::Interrupted => Err(Error::new(Kind::Interrupted, "stopped; what was finished is kept")
            .hint(format!("go on with `autoexperiment resume {run}`"))),
        Outcome::CostLimit => Err(Error::new(Kind::CostLimit, "stopped before `--max-cost` could be exceeded")
            .hint(format!("go on with `autoexperiment resume {run} --max-cost DOLLARS`"))),
    }
}

/// What there is to say of settings that programs of their own cannot be given: they have their own prompts and tools.
fn unheeded(contenders: &[LabelledAgent], configuration: &Configuration) -> Vec<String> {
    let options = configuration.settings.options();
    let programs = contenders.iter().filter(|contender| contender.agent.needs_listener() && !options.is_empty());
    let warning = |program: &LabelledAgent| {
        format!("agent `{}` is a program of its own and does not heed `{}`", program.label, options.join("`, `"))
    };
    programs.map(warning).collect()
}

fn open_agents(configuration: &Configuration, cache: &Path) -> Result<Vec<LabelledAgent>> {
    let agents = agent::spec::labelled(&configuration.agents, &configuration.settings);
    agents
        .into_iter()
        .map(|(label, spec)| Ok(LabelledAgent { label, agent: spec.open(&configuration.settings, Some(cache))? }))
        .collect()
}

fn open_model(contenders: &[LabelledAgent], configuration: &Configuration) -> Result<Option<Arc<dyn model::Model>>> {
    let needed = contenders.iter().find(|contender| contender.agent.needs_model());
    match (needed, &configuration.model) {
        (None, None) => Ok(None),
        (None, Some(choice)) if configuration.verifiers.iter().any(|name| verifier::asks_own_model(name)) => {
            open_choice(choice).map(Some)
        }
        (None, Some(choice)) => Err(Error::usage(format!("no agent here uses the model `{}`", choice.spec))
            .hint("leave `--model` away, or add `--agent react`")),
        (Some(contender), None) => Err(Error::usage(format!("agent `{}` needs a model", contender.label))
            .hint("name one with `--model`, as `--model openai:gpt-5-mini`; see `autoexperiment run --help`")),
        (Some(_), Some(choice)) => open_choice(choice).map(Some),
    }
}

/// How many attempts there are to be, by agent and n.
fn planned(samples: &[Sample], contenders: &[LabelledAgent], model: Option<&dyn model::Model>, k: u32) -> Vec<Planned> {
    let counts = samples.iter().map(Sample::n).counts();
    let mut planned = Vec::new();
    for contender in contenders {
        let model = model.filter(|_| contender.agent.needs_model()).map(|model| model.name().to_owned());
        for (&n, &samples) in counts.iter().sorted() {
            let (agent, model) = (contender.label.clone(), model.clone());
            planned.push(Planned { agent, model, n, attempts: samples * k as usize });
        }
    }
    planned
}

fn digests(
    family: &dyn Family,
    items: &[Box<dyn Ready>],
    contenders: &[LabelledAgent],
    base: Option<String>,
) -> Digests {
    let mut digests = Digests { prompts: family.prompts(), base, ..Digests::default() };
    for contender in contenders {
        digests.agents.extend(contender.agent.digest().map(|digest| (contender.label.clone(), digest)));
    }
    for ready in items {
        let id = ready.item().id().to_owned();
        digests.papers.insert(id.clone(), ready.item().digest());
        digests.repos.insert(id.clone(), ready.repo().to_owned());
        digests.envs.insert(id, ready.env().digest.clone());
    }
    digests
}

/// Set by the first Ctrl-C or termination signal; the second ends the process at once. Sandboxes die with it.
pub fn stop_on_signals() -> CancellationToken {
    use tokio::signal::unix::{SignalKind, signal};
    let cancel = CancellationToken::new();
    let told = cancel.clone();
    tokio::spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        for again in [false, true] {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            if again {
                std::process::exit(i32::from(Kind::Interrupted.exit_code()));
            }
            talk!("\nstopping; once more to stop at once");
            told.cancel();
        }
    });
    cancel
}
