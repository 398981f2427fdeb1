//! A whole run from settings to results: the library behind `autoexperiment run` and `resume`.
//!
//! [`Run::open`] detects as many errors as possible before any work is done. [`Run::execute`] prepares the items,
//! checks the baseline, makes the attempts, lets the verifiers choose among them, and returns a [`Finished`]. Progress
//! goes to an [`Observer`].

mod agents;
mod finished;
mod hosted;
mod location;
mod plan;
mod prepare;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use finished::Finished;
pub(crate) use hosted::HostedRun;
pub use location::RunFolder;
pub use plan::RunPlan;

use crate::error::{Error, FailureKind, Result};
use crate::model::ledger::{Ledger, RunLedgers};
use crate::model::{self, Model, ProbeCost};
use crate::run::attempt::{AttemptJob, LabelledAgent, RunContext};
use crate::run::event::{Observer, RunEvent};
use crate::run::family::{Families, Family, HiddenShare, Item, Ready, beyond, samples};
use crate::run::machine::Machine;
use crate::run::scheduler::{AttemptQueue as _, RunOutcome, SchedulingLimits, execute, execute_part, plan, unfinished};
use crate::run::shared::{Member, Shard, SharedQueue, Sharing};
use crate::run::store::Writer;
use crate::run::{
    AttemptRecord, Catalogue, Configuration, PlannedAttempts, RunFile, SessionFacts, Store, interrupted_attempts,
};
use crate::sample::Sample;
use crate::verifier::stored::{self, CostCap};
use crate::verifier::{Verifier, choosing};
use location::{RunLocation, RunStart};

/// Input of a session besides the run's settings.
pub struct SessionOptions {
    /// The available families of tasks.
    pub families: Families,
    /// Sandboxes, caches and other resources of this machine.
    pub machine: Machine,
    /// Whether to check first that the unmasked repos reproduce their gold.
    pub baseline: bool,
    /// Whether a stored run may continue although its suite, envs or prompts have changed.
    pub accept_changes: bool,
    /// Whether to run items in which `autoexperiment check` finds errors.
    pub unchecked: bool,
    /// Settings for sharing the run with other processes; `None` if this is the only one.
    pub shards: Option<Shards>,
}

/// Settings for sharing a run between processes.
#[derive(Debug, Clone, Copy)]
pub struct Shards {
    /// This process's shard.
    pub shard: Shard,
    /// Time without a heartbeat after which a process counts as dead. Fixed when the run is planned.
    pub claim_timeout: Duration,
    /// Whether this process's sandboxes may give weaker or stronger protection than those with which the run began.
    pub mixed_sandboxes: bool,
}

impl SessionOptions {
    /// Default options for this machine: all kinds of tasks that this program knows are available, the baseline is
    /// checked, and a changed suite is refused.
    #[must_use]
    pub fn on(machine: Machine) -> Self {
        let families = Families::standard();
        Self { families, machine, baseline: true, accept_changes: false, unchecked: false, shards: None }
    }
}

/// Maximum number of attempts in a run, because the plan is held in memory.
const MOST_ATTEMPTS: usize = 10_000_000;

/// A new or resumed run before any work is done.
pub struct Run {
    configuration: Configuration,
    options: SessionOptions,
    place: RunLocation,
    agents: Vec<LabelledAgent>,
    model: Option<Arc<dyn Model>>,
    verifiers: Vec<Arc<dyn Verifier>>,
    family: Arc<dyn Family>,
    items: Vec<Arc<dyn Item>>,
    samples: Vec<Sample>,
}

impl Run {
    /// Opens a new run. Its folder is created once its items are ready.
    ///
    /// # Errors
    /// Kind `Taken` if the folder exists; otherwise any error in names, agents, models, samples or gold.
    pub fn open(configuration: Configuration, folder: RunFolder, options: SessionOptions) -> Result<Self> {
        Self::over(configuration, RunLocation::new(folder)?, options)
    }

    /// Opens a stored run to continue it: all attempts without a verdict will be made, with the settings of `run` and
    /// the suite in the folder `suite`. A run shared by several processes is joined.
    ///
    /// # Errors
    /// Kind `Store` if another process that doesn't share the run is writing to it; `Suite` if the suite or prompts
    /// have changed since the run began, unless `options.accept_changes`; otherwise as [`Run::open`].
    pub fn resume(store: Store, run: RunFile, suite: PathBuf, options: SessionOptions) -> Result<Self> {
        let writer = if run.sharing.is_some() { None } else { Some(store.writer()?) };
        store.folder().parent().into_iter().for_each(Store::sweep);
        let configuration = Configuration { suite, ..run.configuration.clone() };
        let accept = options.accept_changes;
        let run = Self::over(configuration, RunLocation::Stored { store, writer, run: Box::new(run) }, options)?;
        if !accept {
            // Refuse a suite that has changed since the run began. This early check compares only what needs no
            // building. Envs and agents are compared later, once they are ready.
            run.place.refuse(|then| prepare::readable(then, run.family.as_ref(), &run.items))?;
        }
        Ok(run)
    }

    /// Warning about requested values of n (such as numbers of masked functions) for which no samples were drawn, if
    /// there are any.
    fn beyond(&self) -> Option<String> {
        beyond(self.family.as_ref(), &self.configuration.draw, &self.samples)
    }

    /// Opens and loads everything that the settings name.
    fn over(configuration: Configuration, place: RunLocation, mut options: SessionOptions) -> Result<Self> {
        // Sandboxes must hide all runs in the parent folder of this run.
        let runs = place.folder().parent().map(|runs| if runs.as_os_str().is_empty() { Path::new(".") } else { runs });
        options.machine.hidden.extend(runs.map(Path::to_owned));
        options.machine.hidden.extend([configuration.suite.clone(), place.folder().to_owned()]);
        let agents = agents::open_agents(&configuration, &options.machine.cache)?;
        let model = agents::open_model(&agents, &configuration)?;
        agents::require_listener(&agents, options.machine.backend.as_ref())?;
        let verifiers = choosing::open_all(
            &configuration.verifiers,
            configuration.orders,
            configuration.model.as_ref(),
            model.as_ref(),
        )?;
        let family = options.families.get(&configuration.family)?.clone();
        agents::require_family(&agents, family.as_ref())?;
        let mut items = Vec::new();
        for id in &configuration.papers {
            let item = family.load(&configuration.suite, id, (&configuration).into())?;
            item.scorable()?;
            items.push(item);
        }
        let samples = samples(family.as_ref(), &items, &configuration.draw, configuration.seed)?;
        let attempts = samples.len().saturating_mul(agents.len()).saturating_mul(configuration.k as usize);
        if attempts > MOST_ATTEMPTS {
            return Err(Error::usage(format!(
                "that would be {attempts} attempts, but a run can have at most {MOST_ATTEMPTS}"
            ))
            .hint("make fewer attempts at each sample (`-k`), or take fewer samples (`--limit`, `-n`)"));
        }
        Ok(Self { configuration, options, place, agents, model, verifiers, family, items, samples })
    }

    /// Creates the run's folder with its plan, for other processes to work on, without making attempts. Returns the
    /// folder and the number of attempts, or `None` if `cancel` is cancelled first.
    ///
    /// # Errors
    /// Same as [`execute`](Self::execute).
    pub async fn plan(self, observer: &dyn Observer, cancel: &CancellationToken) -> Result<Option<(PathBuf, usize)>> {
        let prepared = self.prepare(observer, cancel).await?;
        Ok(prepared
            .ok()
            .map(|it| (it.opened.store.folder().to_owned(), it.planned.iter().map(|one| one.attempts).sum())))
    }

    /// Executes the run. `cancel` stops it: attempts in progress are ended, and finished ones are kept.
    ///
    /// # Errors
    /// Anything that prevents the run from continuing: an item that can't be prepared, a baseline that isn't
    /// reproduced, a changed suite, a model that refuses every call, a store that can't be written. All other ways in
    /// which a session can end, such as lost attempts or a spent budget, are a [`RunOutcome`].
    pub async fn execute(self, observer: &dyn Observer, cancel: &CancellationToken) -> Result<Finished> {
        // Boxed so that callers don't embed the large future in theirs.
        Box::pin(self.carry_out(observer, cancel)).await
    }

    async fn carry_out(self, observer: &dyn Observer, cancel: &CancellationToken) -> Result<Finished> {
        // Check that the machine has enough GPUs before creating anything.
        self.options.machine.graphics.at_once(1)?;
        let prepared = match self.prepare(observer, cancel).await? {
            Ok(prepared) => prepared,
            Err(stopped) => return Ok(*stopped),
        };
        let PreparedRun {
            configuration,
            options,
            agents,
            model,
            verifiers,
            family,
            items,
            samples,
            planned,
            facts,
            probed,
            opened,
        } = prepared;
        let location::OpenedRun { store, run, writer, differences } = opened;
        let attempts: usize = planned.iter().map(|one| one.attempts).sum();
        for warning in options.machine.shortages(configuration.jobs.min(attempts)) {
            observer.on(RunEvent::Warning(warning));
        }
        let resume = format!("what was finished is kept: `autoexperiment resume {}`", store.folder().display());
        let explained = |error: Error| match error.hint {
            Some(_) => error,
            None => error.hint(&resume),
        };
        let backend = options.machine.backend.clone();
        let context = |ledger: &Arc<Ledger>| RunContext {
            ledger: ledger.clone(),
            machine: options.machine,
            items,
            agents,
            model,
            store: store.clone(),
            configuration: configuration.clone(),
            verifications: None,
        };
        let mut own_part = None;
        let (outcome, chooser) = match (writer, &run.sharing) {
            (Some(mut writer), _) => {
                let opened = open_ledger(&store, family.as_ref(), &mut writer, &probed)?;
                let ledger = opened.ledger.clone();
                let made = make_attempts(context(&ledger), &samples, opened, writer, observer, cancel).await;
                (made.map_err(explained)?, Some(ledger))
            }
            (None, Some(sharing)) => {
                let shards = options.shards.ok_or_else(|| Error::internal("a shared run without a shard"))?;
                let facts = SessionFacts { differences, ..facts };
                let member = Member::join(&store, shards.shard, sharing.timeout(), &facts, shards.mixed_sandboxes)?;
                let ledger = member.ledger.clone();
                ledger.probed(&probed).map_err(|error| store.ledger_failed(&error.to_string()))?;
                let family = family.as_ref();
                let part = ShardStart { member, sharing, family, spent: probed.cost };
                let made = make_part(context(&ledger), &samples, part, observer, cancel).await;
                let (outcome, mut part) = made.map_err(explained)?;
                let goes_on = matches!(outcome, RunOutcome::Interrupted | RunOutcome::Left(_)) || part.left() > 0;
                let is_over = !verifiers.is_empty() && !goes_on;
                let may_choose = is_over
                    && tokio::select! {
                        may = part.may_choose() => may?,
                        () = cancel.cancelled() => false,
                    };
                let chooser = may_choose.then_some(ledger);
                own_part = Some(part);
                (outcome, chooser)
            }
            (None, None) => {
                return Err(Error::internal("this process has neither the whole run nor a share of it to make"));
            }
        };
        for left in backend.removals().await {
            observer.on(RunEvent::Warning(left));
        }
        let chosen = match (&outcome, chooser) {
            (RunOutcome::Interrupted, _) | (_, None) => Ok(()),
            (_, Some(ledger)) => {
                // `autoexperiment pick` holds the same lock while its verifiers choose.
                let lock = || if own_part.is_none() { store.lock().map(Some) } else { store.lock_beside_shards() };
                match (!verifiers.is_empty()).then(lock).transpose() {
                    Ok(_lock) => {
                        choose(&store, &ledger, &options.families, &configuration, &verifiers, observer, cancel).await
                    }
                    Err(error) => Err(error),
                }
            }
        };
        // Record the end of this process only after its verifiers have chosen among the attempts. Afterwards, another
        // process may run the verifiers.
        if let Some(part) = own_part {
            part.close(outcome.name())?;
        }
        let (outcome, unverified) = after_choosing(outcome, chosen);
        Ok(Finished {
            outcome,
            folder: store.folder().to_owned(),
            planned,
            records: store.records()?,
            choices: stored::choices(&store)?.records,
            unverified: unverified.map(|error| error.hint(resume)),
        })
    }

    /// Prepares everything and creates the run's folder; returns the result of a stopped session if `cancel` is
    /// cancelled first.
    async fn prepare(
        self,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<Result<PreparedRun, Box<Finished>>> {
        if let Some(note) = self.beyond() {
            observer.on(RunEvent::Warning(note));
        }
        let Self { configuration, options, place, agents, model, verifiers, family, items, samples } = self;
        if !configuration.verify {
            warn_of_hidden(&items, &samples, observer)?;
        }
        let planned = agents::planned(&samples, &agents, model.as_deref(), configuration.k);
        for warning in options.machine.backend.warnings() {
            observer.on(RunEvent::Warning(warning));
        }
        let own = model.as_deref().filter(|_| agents.iter().any(|agent| agent.agent.needs_model()));
        let mut probed = match own {
            Some(model) => model::reach(model).await?,
            None => ProbeCost::default(),
        };
        probed += choosing::reach(&verifiers, own).await?;
        // Report now what the checks of the models cost, because the run may stop before its first attempt.
        if let Some(told) = probed.describe() {
            observer.on(RunEvent::Warning(told));
        }
        let items = tokio::select! {
            // Check for cancellation first, because preparing may complete at once if everything is in the cache.
            biased;
            () = cancel.cancelled() => return Ok(Err(Box::new(Finished::not_started(place.folder(), planned)))),
            prepared = prepare::prepare(items, &agents, &options, observer) => prepared?,
        };
        let facts = prepare::facts(&items, &agents, &options);
        let begun = RunStart {
            configuration: configuration.clone(),
            planned: planned.clone(),
            digests: prepare::digests(family.as_ref(), &items, &agents, options.machine.backend.base().await?),
            facts: facts.clone(),
            plan: prepare::plan_digest(&samples, &agents, configuration.k),
        };
        let opened = place.begin(begun, options.accept_changes, options.shards.as_ref(), observer)?;
        Ok(Ok(PreparedRun {
            configuration,
            options,
            agents,
            model,
            verifiers,
            family,
            items,
            samples,
            planned,
            facts,
            probed,
            opened,
        }))
    }
}

/// A run that is ready to start its attempts.
struct PreparedRun {
    configuration: Configuration,
    options: SessionOptions,
    agents: Vec<LabelledAgent>,
    model: Option<Arc<dyn Model>>,
    verifiers: Vec<Arc<dyn Verifier>>,
    family: Arc<dyn Family>,
    items: Vec<Box<dyn Ready>>,
    samples: Vec<Sample>,
    planned: Vec<PlannedAttempts>,
    facts: SessionFacts,
    /// Cost of checking that the models answer.
    probed: ProbeCost,
    opened: location::OpenedRun,
}

/// A run's records and its ledger. Costs that were only in one of them have been added to the other.
struct OpenedLedger {
    records: Vec<AttemptRecord>,
    ledger: Arc<Ledger>,
    /// Dollars spent before the attempts, which count towards the cost limit: by earlier sessions, and to check that
    /// the models answer.
    spent: f64,
}

/// Opens the ledger. Records what killed processes had spent; for a run of an earlier version without a ledger, starts
/// a ledger from the run's records.
fn open_ledger(store: &Store, family: &dyn Family, writer: &mut Writer, probed: &ProbeCost) -> Result<OpenedLedger> {
    let mut records = store.records()?;
    let books = store.books()?;
    if let Some(note) = books.as_ref().and_then(|books| books.notes.first()) {
        return Err(Error::store(note.clone())
            .hint("repair these lines, or remove them; `--max-cost` does not count what removed lines cost"));
    }
    let books = books.filter(|books| *books != RunLedgers::default());
    let interrupted = interrupted_attempts(store, books.as_ref(), &records, family)?;
    writer.append(&interrupted)?;
    records.extend(interrupted);
    let ledger = store.ledger()?;
    let spent = if let Some(books) = books {
        books.total().dollars()
    } else {
        let attempts = records.iter().map(|record| record.cost).sum::<f64>();
        let verifiers = stored::spent(store)?.dollars;
        if attempts + verifiers > 0.0 {
            let carried = ledger.carry(attempts, verifiers);
            carried.map_err(|error| store.ledger_failed(&error.to_string()))?;
        }
        attempts + verifiers
    };
    ledger.probed(probed).map_err(|error| store.ledger_failed(&error.to_string()))?;
    Ok(OpenedLedger { records, ledger: Arc::new(ledger), spent: spent + probed.cost })
}

/// Makes all attempts that have no verdict yet.
async fn make_attempts(
    context: RunContext,
    samples: &[Sample],
    opened: OpenedLedger,
    mut writer: Writer,
    observer: &dyn Observer,
    cancel: &CancellationToken,
) -> Result<RunOutcome> {
    let (store, configuration) = (&context.store, &context.configuration);
    let OpenedLedger { records, spent, .. } = opened;
    for agent in &context.agents {
        store.make_folders(&agent.label)?;
    }
    let all = plan(samples, context.agents.len(), configuration.k);
    let total = all.len();
    let left = unfinished(&context, all, &records);
    observer.on(RunEvent::Planned { total, finished: total - left.len() });
    let jobs = context.machine.graphics.at_once(configuration.jobs)?;
    let terms = SchedulingLimits { jobs, tries: configuration.tries, max_cost: configuration.max_cost, spent };
    // Storing records waits for the disk, so it must not block the async runtime.
    let keep = |records: &[&AttemptRecord]| tokio::task::block_in_place(|| writer.append(records.iter().copied()));
    let outcome = execute(Arc::new(context), left, terms, keep, observer, cancel).await?;
    // Fail if the records file disappeared after its last record was written. Without this check, only the next reader
    // would notice.
    writer.check()?;
    Ok(outcome)
}

/// A process that begins to work on a shared run.
struct ShardStart<'a> {
    member: Member,
    sharing: &'a Sharing,
    family: &'a dyn Family,
    /// Dollars that this process has spent to check that the models answer.
    spent: f64,
}

/// Makes this process's share of a run's attempts.
async fn make_part<'a>(
    context: RunContext,
    samples: &[Sample],
    ShardStart { member, sharing, family, spent }: ShardStart<'a>,
    observer: &dyn Observer,
    cancel: &CancellationToken,
) -> Result<(RunOutcome, SharedQueue<'a>)> {
    let (store, configuration) = (context.store.clone(), context.configuration.clone());
    for agent in &context.agents {
        store.make_folders(&agent.label)?;
    }
    let lapsed = member.beat.lapsed().clone();
    let jobs = context.machine.graphics.at_once(configuration.jobs)?;
    let terms = SchedulingLimits { jobs, tries: configuration.tries, max_cost: None, spent };
    let all = plan(samples, context.agents.len(), configuration.k);
    let label = |job: &AttemptJob| context.agents[job.agent].label.clone();
    let mut part = SharedQueue::new(&store, sharing, member, family, all, label, &configuration)?;
    let (total, finished) = part.counts();
    observer.on(RunEvent::Planned { total, finished });
    // Stop if this process stalled for so long that others have taken over its attempts.
    let (stop, ended) = (cancel.clone(), CancellationToken::new());
    let until = ended.clone();
    tokio::spawn(async move {
        tokio::select! { () = lapsed.cancelled() => stop.cancel(), () = until.cancelled() => {} }
    });
    let outcome = execute_part(Arc::new(context), &mut part, terms, observer, cancel).await;
    ended.cancel();
    let outcome = match part.taken_over() {
        Some(error) if matches!(outcome, Ok(RunOutcome::Interrupted)) => Err(error),
        _ => outcome,
    };
    match outcome {
        Ok(outcome) => Ok((outcome, part)),
        Err(error) => {
            // If the store has failed, this process cannot record its end, so other processes have to clean up after
            // it.
            if error.kind != FailureKind::Store {
                let _ = part.close("failed");
            }
            Err(error)
        }
    }
}

/// Lets the run's verifiers choose one attempt at each sample of which all attempts are recorded. A choice among fewer
/// attempts would have to be repeated later.
async fn choose(
    store: &Store,
    ledger: &Arc<Ledger>,
    families: &Families,
    configuration: &Configuration,
    verifiers: &[Arc<dyn Verifier>],
    observer: &dyn Observer,
    cancel: &CancellationToken,
) -> Result<()> {
    if verifiers.is_empty() {
        return Ok(());
    }
    let records = store.records()?;
    let mut groups = stored::groups(&records);
    groups.retain(|group| group.records.len() == configuration.k as usize);
    let spent = store.books()?.unwrap_or_default().total().dollars();
    let cost_cap = CostCap::new(spent, configuration.max_cost, Some(ledger.clone()), cancel.clone());
    let catalogue = Catalogue::load(families, &configuration.suite, configuration.into(), &records).whole()?;
    choosing::choose_all(store, &groups, &catalogue, verifiers, &cost_cap, observer).await
}

/// For a run without verification: warns if some experiments of a sample are hidden, because only verification can
/// decide hidden experiments.
///
/// # Errors
/// Kind `Usage` if all experiments of a sample are hidden.
fn warn_of_hidden(items: &[Arc<dyn Item>], samples: &[Sample], observer: &dyn Observer) -> Result<()> {
    let mut parts = 0;
    for sample in samples {
        let item = items.iter().find(|item| item.id() == sample.item());
        match item.map_or(HiddenShare::Nothing, |item| item.hidden(sample)) {
            HiddenShare::Nothing => {}
            HiddenShare::Part => parts += 1,
            HiddenShare::All => {
                return Err(Error::usage(format!(
                    "sample `{}` has hidden experiments only, which only verification can decide, and the run has no \
                     verification",
                    sample.id()
                ))
                .hint("leave out `--no-verify`"));
            }
        }
    }
    if parts > 0 {
        observer.on(RunEvent::Warning(format!(
            "{parts} of {} samples have hidden experiments, which a run without verification does not run: more may pass \
             than with it",
            samples.len()
        )));
    }
    Ok(())
}

/// Combines the outcome of the attempts with that of the verifiers; returns a verifier's error separately.
fn after_choosing(outcome: RunOutcome, chosen: Result<()>) -> (RunOutcome, Option<Error>) {
    match chosen {
        Ok(()) => (outcome, None),
        Err(error) if error.kind == FailureKind::Interrupted => (RunOutcome::Interrupted, None),
        Err(error) if error.kind == FailureKind::CostLimit && outcome == RunOutcome::Complete => {
            (RunOutcome::CostLimit, None)
        }
        Err(error) if error.kind == FailureKind::CostLimit => (outcome, None),
        Err(error) => (outcome, Some(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_verifiers_are_stopped_has_that_outcome_and_failed_verifiers_give_a_separate_error() {
        let error = |kind| Err(Error::new(kind, "x"));
        let lost = || RunOutcome::Lost(vec!["why".to_owned()]);
        assert_eq!(after_choosing(RunOutcome::Complete, error(FailureKind::Interrupted)).0, RunOutcome::Interrupted);
        assert_eq!(after_choosing(RunOutcome::Complete, error(FailureKind::CostLimit)).0, RunOutcome::CostLimit);
        // If attempts were lost, the outcome says so, even if the cost limit has also stopped the verifiers.
        assert_eq!(after_choosing(lost(), error(FailureKind::CostLimit)).0, lost());
        let (outcome, unverified) = after_choosing(RunOutcome::Complete, error(FailureKind::Model));
        assert_eq!((outcome, unverified.unwrap().kind), (RunOutcome::Complete, FailureKind::Model));
    }
}
