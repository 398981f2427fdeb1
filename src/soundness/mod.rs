//! Checks that a family's tasks are sound, by runs of agents that need no model: the gold solution must reach gold,
//! doing nothing and forging results must not pass, and every part of the gold solution must matter. All runs that
//! check one item are called its proof.
//!
//! The runs stay in the cache until they are complete, so that an interrupted proof resumes.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::command::Commands;
use crate::command::changes::search;
use crate::command::soundness::{self as instructions, LEAST};
use crate::error::{Error, FailureKind, Result};
use crate::files::{hex, write_whole};
use crate::notebook::Notebook;
use crate::notebook::soundness::{REPEATS, SoundnessPlan, incomplete_solutions};
use crate::notebook::trials::{RECORDED, TrialPlan, gold_recording_family, trial_family};
use crate::notebook::{GoldRecord, LoadedTask, TrialSolution};
use crate::run::event::Observer;
use crate::run::family::{Families, Family};
use crate::run::machine::{Machine, MachineOptions};
use crate::run::scheduler::RunOutcome;
use crate::run::soundness::{Soundness, TrialOutcome, why};
use crate::run::{AttemptRecord, Configuration, Store};
use crate::sample::{COMMAND, Sample};
use crate::session::{Run, RunFolder, SessionOptions};

/// Number of solutions that are tried in one run.
const TRIED_TOGETHER: usize = 4;

/// Settings of proofs.
pub struct ProofSetup {
    /// The suite's folder.
    pub suite: PathBuf,
    /// Sandbox, cache and other options of this machine.
    pub machine: MachineOptions,
    /// Kind of env to build, as requested.
    pub env: crate::env::EnvKind,
    /// Number of parallel attempts.
    pub jobs: usize,
    /// Whether to run everything again, without the results of earlier proofs, finished or interrupted.
    pub fresh: bool,
}

/// Lists the items (tasks or repos) of a family that [`prove`] is to check: those in `asked`, or all if it is empty.
///
/// # Errors
/// Kind `Usage` for an item or family that doesn't exist, or a family that this module cannot check.
pub fn items(suite: &Path, family: &str, asked: &[String]) -> Result<Vec<String>> {
    match family {
        COMMAND => Commands.items(suite, asked),
        name if name == Notebook.name() => Notebook.items(suite, asked),
        name => Err(Error::usage(format!("items of the family `{}` cannot be verified", name.escape_debug()))
            .hint("the families are `masked`, `notebook` and `command`")),
    }
}

/// Which attempts [`prove`] runs to check an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SoundnessScope {
    /// All attempts except those with solutions written by the user.
    Everything,
    /// Only attempts with a changed constant in the gold solution.
    Constants,
    /// Only attempts with the solutions that the user has put into this folder.
    Solutions(PathBuf),
}

/// Runs the attempts that show whether an item is sound, and evaluates them.
///
/// # Errors
/// Returns the errors of loading and preparing the item and of reading the solutions; kind `Infrastructure` if attempts
/// were lost.
pub async fn prove(
    place: &ProofSetup,
    family: &str,
    item: &str,
    scope: &SoundnessScope,
    observer: &dyn Observer,
) -> Result<Soundness> {
    if family == COMMAND {
        return command(place, item, scope, observer).await;
    }
    let mut proof = if *scope == SoundnessScope::Everything {
        notebook(place, item, observer).await?
    } else {
        Soundness::new(item)
    };
    let plan = match scope {
        SoundnessScope::Solutions(folder) => TrialPlan::solutions(&place.suite, item, folder)?,
        SoundnessScope::Everything | SoundnessScope::Constants => TrialPlan::constants(&place.suite, item)?,
    };
    let outcomes = place.try_all(item, &plan, observer).await?;
    plan.judge(outcomes, &mut proof);
    Ok(proof)
}

/// Runs the gold cells of a notebook task twice. Returns the answer, and a record of the parts of the repo that the
/// cells changed and of the calls that they made.
///
/// # Errors
/// Returns the errors of loading and preparing the task; kind `Baseline` when the runs fail or differ; kind
/// `Infrastructure` if attempts were lost.
pub async fn record(place: &ProofSetup, id: &str, observer: &dyn Observer) -> Result<(Value, GoldRecord)> {
    let task = LoadedTask::load(&place.suite, id)?;
    let plan = SoundnessPlan::unrecorded(task);
    let digest = plan.digest()?;
    let (family, name, agents, samples) = (Notebook.name(), "record", ["gold"].as_slice(), vec![plan.whole()]);
    let trials = SoundnessAttempts { family, item: id.to_owned(), name, digest, agents, samples, k: RECORDED };
    let records = place.run(&trials, || Families::none().with(gold_recording_family()), observer).await?;
    place.forget(&trials)?;
    plan.record(&records)
}

async fn notebook(place: &ProofSetup, id: &str, observer: &dyn Observer) -> Result<Soundness> {
    let plan = SoundnessPlan::plan(&place.suite, id)?;
    let digest = plan.digest()?;
    let trials = |name: &'static str, agents: &'static [&'static str], samples: Vec<String>, k| SoundnessAttempts {
        family: Notebook.name(),
        item: id.to_owned(),
        name,
        digest: digest.clone(),
        agents,
        samples,
        k,
    };
    let whole = || vec![plan.whole()];
    let gold = trials("gold", &["gold"], whole(), REPEATS);
    let forger = trials("forger", &["forger"], whole(), 1);
    let parts = trials("parts", &["noop", "gold"], plan.without_each(), 1);
    let families = || Families::none().with(Notebook);
    let mut of_whole = place.run(&gold, families, observer).await?;
    of_whole.extend(place.run(&forger, families, observer).await?);
    let of_parts = place.run(&parts, || Families::none().with(incomplete_solutions()), observer).await?;
    [gold, forger, parts].iter().try_for_each(|trials| place.forget(trials))?;
    Ok(plan.judge(&of_whole, &of_parts))
}

async fn command(place: &ProofSetup, id: &str, scope: &SoundnessScope, observer: &dyn Observer) -> Result<Soundness> {
    let item = Commands.load(&place.suite, id, crate::run::family::ScoringBasis::default())?;
    item.scorable()?;
    let mut proof = Soundness::new(id);
    if *scope == SoundnessScope::Everything {
        let draw =
            crate::run::SampleDraw { n: vec![LEAST], limit: usize::MAX, ..Configuration::new(&place.suite).draw };
        let samples = item.draw(&draw, 0)?.iter().map(|sample: &Sample| sample.id().to_owned()).collect();
        let (family, name, agents) = (COMMAND, "all", ["gold", "noop", "forger"].as_slice());
        let trials =
            SoundnessAttempts { family, item: id.to_owned(), name, digest: item.digest(), agents, samples, k: 1 };
        let records = place.run(&trials, || Families::none().with(Commands), observer).await?;
        place.forget(&trials)?;
        proof = instructions::judge(id, &records);
    }
    let machine = Machine::open(&place.machine).await?;
    let ready = crate::command::open(&place.suite, id, &machine, observer).await?;
    let tried = search(&ready, &machine, place.jobs, place.fresh, observer).await?;
    proof.changes = Some(tried.counts);
    tried.faults.into_iter().for_each(|fault| proof.fault(fault));
    Ok(proof)
}

/// The attempts of one run.
struct SoundnessAttempts {
    family: &'static str,
    item: String,
    /// The run's purpose, such as `record`, which is part of the name of its folder.
    name: &'static str,
    /// Digest of everything that the attempts depend on.
    digest: String,
    agents: &'static [&'static str],
    samples: Vec<String>,
    k: u32,
}

impl ProofSetup {
    /// Folder of a run while it is incomplete.
    fn folder(&self, trials: &SoundnessAttempts) -> PathBuf {
        use sha2::{Digest, Sha256};
        let SoundnessAttempts { family, item, name, digest, .. } = trials;
        let suite = self.suite.display();
        let text = format!("{}\n{suite}\n{digest}\n{}", env!("CARGO_PKG_VERSION"), self.conditions());
        let key = hex(&Sha256::digest(text));
        self.machine.cache.join("proofs").join(format!("{family}-{item}-{name}-{}", &key[..16]))
    }

    /// Describes the settings of this machine on which outcomes may depend.
    fn conditions(&self) -> String {
        let MachineOptions { sandbox, gpus, limits, .. } = &self.machine;
        format!("{sandbox:?}\n{gpus:?}\n{limits:?}\n{:?}", self.env)
    }

    fn configuration(&self, trials: &SoundnessAttempts) -> Result<Configuration> {
        let mut configuration = Configuration::new(&self.suite);
        trials.family.clone_into(&mut configuration.family);
        configuration.papers = vec![trials.item.clone()];
        configuration.draw.samples.clone_from(&trials.samples);
        configuration.agents = trials.agents.iter().map(|agent| agent.parse()).collect::<Result<_>>()?;
        configuration.k = trials.k;
        configuration.jobs = self.jobs;
        configuration.sandbox = self.machine.sandbox;
        configuration.sandbox_limits = self.machine.limits;
        configuration.gpus = self.machine.gpus;
        configuration.env = self.env;
        Ok(configuration)
    }

    /// Starts a run, or resumes it if it was interrupted, and returns its records.
    async fn run(
        &self,
        trials: &SoundnessAttempts,
        families: impl Fn() -> Families,
        observer: &dyn Observer,
    ) -> Result<Vec<AttemptRecord>> {
        let folder = self.folder(trials);
        if self.fresh {
            forget(&folder)?;
        }
        if let Ok((store, mut file)) = Store::open(&folder) {
            file.configuration.jobs = self.jobs;
            let run = Run::resume(store, file, self.suite.clone(), self.options(families()).await?);
            let done = match run {
                Ok(run) => Box::pin(finish(run, observer)).await,
                Err(error) => Err(error),
            };
            match done {
                // The item has changed since the run was interrupted, so start a new run.
                Err(error) if error.kind == FailureKind::Suite => {}
                done => return done,
            }
        }
        forget(&folder)?;
        let run = Run::open(self.configuration(trials)?, RunFolder::New(folder), self.options(families()).await?)?;
        Box::pin(finish(run, observer)).await
    }

    async fn options(&self, families: Families) -> Result<SessionOptions> {
        let machine = Machine::open(&self.machine).await?;
        // Skip the checks by which a run refuses an item, because the soundness of such an item can be checked, too.
        Ok(SessionOptions { families, baseline: false, unchecked: true, ..SessionOptions::on(machine) })
    }

    /// Runs the plan's solutions, a few in each run, and returns their outcomes. Each outcome is cached, so that an
    /// interrupted proof resumes where it stopped.
    async fn try_all(&self, id: &str, plan: &TrialPlan, observer: &dyn Observer) -> Result<Vec<TrialOutcome>> {
        let folder = self.machine.cache.join("trials");
        std::fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
        let conditions = self.conditions();
        let key = |trial: &TrialSolution| plan.key(trial, &conditions);
        let path = |trial: &TrialSolution| folder.join(format!("{}.json", key(trial)));
        let read = |trial: &TrialSolution| -> Option<TrialOutcome> {
            let outcome = serde_json::from_slice(&std::fs::read(path(trial)).ok()?).ok()?;
            Some(TrialOutcome { name: trial.name.clone(), ..outcome })
        };
        let missing: Vec<&TrialSolution> =
            plan.trials.iter().filter(|trial| self.fresh || read(trial).is_none()).collect();
        for part in missing.chunks(TRIED_TOGETHER) {
            let tried = part.iter().map(|trial| (*trial).clone()).collect();
            let trials = SoundnessAttempts {
                family: Notebook.name(),
                item: id.to_owned(),
                name: "trials",
                digest: part.iter().map(|trial| key(trial)).collect(),
                agents: &["gold"],
                samples: vec![plan.sample()],
                k: u32::try_from(part.len()).unwrap_or(u32::MAX),
            };
            let families = trial_family(tried);
            let records = self.run(&trials, || Families::none().with(families.clone()), observer).await?;
            for record in records {
                let trial = usize::try_from(record.attempt).ok().and_then(|attempt| part.get(attempt));
                let Some(trial) = trial else { continue };
                let why = if record.pass { String::new() } else { failures(&record) };
                let seconds = record.wall_seconds + record.verify_seconds;
                let outcome = TrialOutcome { name: trial.name.clone(), pass: record.pass, why, seconds };
                let text = serde_json::to_vec(&outcome)
                    .map_err(|error| Error::internal("an outcome is not JSON").because(error))?;
                write_whole(&path(trial), &text)?;
            }
            self.forget(&trials)?;
        }
        let known = plan.trials.iter().map(|trial| {
            read(trial).ok_or_else(|| Error::internal(format!("the outcome of `{}` is missing", trial.name)))
        });
        known.collect()
    }

    /// Removes a completed run.
    fn forget(&self, trials: &SoundnessAttempts) -> Result<()> {
        forget(&self.folder(trials))
    }
}

/// All checks that an attempt fails, with the reasons.
fn failures(record: &AttemptRecord) -> String {
    let checks = record.verified.iter().flat_map(|verdict| &verdict.experiments).filter(|check| !check.pass);
    let reasons: Vec<String> = checks
        .filter_map(|check| check.reason.as_ref().map(|reason| format!("{}: {reason}", check.experiment)))
        .collect();
    if reasons.is_empty() { why(record) } else { reasons.join("; ") }
}

/// Removes a run's folder if it exists.
fn forget(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", folder, error)),
        _ => Ok(()),
    }
}

async fn finish(run: Run, observer: &dyn Observer) -> Result<Vec<AttemptRecord>> {
    let finished = run.execute(observer, &CancellationToken::new()).await?;
    match finished.outcome {
        RunOutcome::Complete => Ok(finished.records),
        RunOutcome::Lost(lost) => {
            let why = lost.first().map_or("", String::as_str);
            let what = format!("{} attempt(s) were lost to infrastructure, the first because: {why}", lost.len());
            Err(Error::new(FailureKind::Infrastructure, what).hint("repeat the command to try them again"))
        }
        _ => Err(Error::new(FailureKind::Interrupted, "stopped")),
    }
}
