//! Measures whether the experiments notice wrong code, by running mutants of each function against the experiments that
//! need it.
//!
//! A mutant is killed by the first experiment that fails, takes too long, or gives a value outside its tolerance; the
//! quickest experiments are tried first. A mutant that passes all experiments survives: either the experiments do not
//! see its change, or the change does not matter. The manifest lists the mutants of the second kind, with reasons
//! (`equivalent` of a function). A function's score is the share of the other mutants that were killed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;

use super::measures::MUTANT_SEED;
use super::trial::{Bench, ExperimentOutcome, Trial, limited};
use crate::agent::TaskExperiment;
use crate::code::{Mutant, MutantKind, choose};
use crate::error::{Error, FailureKind, Result};
use crate::masked::gold::gold_of;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::sandbox::Exit;
use crate::suite::{FunctionEvidence, LoadedPaper, PaperEvidence, Protocol};
use crate::workspace::unified_diff;

/// Minimum time limit of a mutant, in seconds.
const LEAST_TIME_LIMIT: f64 = 5.0;

/// Time limit of an experiment with a mutant, as a multiple of its longest time when gold was recorded.
const TIMES_GOLD: f64 = 10.0;

/// Selection of the mutants to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MutantDraw {
    /// Number of mutants per function, not counting those marked as equivalent. A function may have fewer.
    pub mutants: usize,
    /// Seed that selects the mutants.
    pub seed: u64,
}

/// Results of one function's mutants.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mutation {
    /// The function's selector.
    pub at: String,
    /// Number of possible mutants.
    pub possible: usize,
    /// Number of mutants that were run.
    pub made: usize,
    /// Number of mutants killed by an error.
    pub errors: usize,
    /// Number of mutants killed by taking too long.
    pub timeouts: usize,
    /// Number of mutants killed by a value outside its tolerance.
    pub values: usize,
    /// Number of surviving mutants that the manifest marks as equivalent.
    pub equivalent: usize,
    /// The surviving mutants that the manifest does not mark as equivalent.
    pub survivors: Vec<Survivor>,
    /// Ids of mutants that the manifest marks as equivalent although an experiment has killed them.
    pub wrongly_marked: Vec<String>,
}

/// A mutant that no experiment distinguishes from the original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Survivor {
    /// The mutant's id, for the manifest.
    pub id: String,
    /// Line (from 1) in the file.
    pub line: usize,
    /// Unified diff against the original.
    pub diff: String,
}

impl Mutation {
    /// Returns the number of killed mutants.
    #[must_use]
    pub const fn killed(&self) -> usize {
        self.errors + self.timeouts + self.values
    }

    /// Copies these results into `evidence`, which is stored in `evidence.json`.
    pub(super) fn write_to(&self, evidence: &mut FunctionEvidence) {
        evidence.mutants = self.made;
        evidence.killed = self.killed();
        evidence.equivalent = self.equivalent;
        evidence.survivors = self.survivors.iter().map(|survivor| survivor.id.clone()).collect();
    }
}

/// Returns the killed share of these functions' mutants, without equivalent ones.
#[must_use]
pub fn score(functions: &[Mutation]) -> Option<f64> {
    let real: usize = functions.iter().map(|function| function.made - function.equivalent).sum();
    let killed: usize = functions.iter().map(Mutation::killed).sum();
    (real > 0).then(|| killed as f64 / real as f64)
}

/// Results of the mutants of one kind, over all functions of a paper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MutantCounts {
    /// Number of mutants that were run.
    pub made: usize,
    /// Number of killed mutants.
    pub killed: usize,
    /// Number of mutants that the manifest marks as equivalent.
    pub equivalent: usize,
}

/// Counts a paper's mutants by kind, from its evidence.
///
/// # Errors
/// Kind `Internal` if a file no longer parses.
pub fn by_kind(loaded: &LoadedPaper, evidence: &PaperEvidence) -> Result<BTreeMap<MutantKind, MutantCounts>> {
    let mut kinds: BTreeMap<MutantKind, MutantCounts> = BTreeMap::new();
    for (place, function) in loaded.paper.units.iter().enumerate() {
        let Some(known) = evidence.functions.get(&function.at) else { continue };
        for mutant in drawn(loaded, evidence, place, known.mutants)? {
            let tally = kinds.entry(mutant.kind).or_default();
            tally.made += 1;
            if is_marked(loaded, place, &mutant) {
                tally.equivalent += 1;
            } else if !known.survivors.contains(&mutant.id) {
                tally.killed += 1;
            }
        }
    }
    Ok(kinds)
}

/// Returns the mutants of a function that were run when the stored evidence was measured. Leaves out kinds of mutants
/// that were added to this program later.
pub(super) fn drawn(
    loaded: &LoadedPaper,
    evidence: &PaperEvidence,
    function: usize,
    count: usize,
) -> Result<Vec<Mutant>> {
    let mut mutants = loaded.mutants(function)?;
    mutants.retain(|mutant| (mutant.kind as usize) < evidence.known_kinds());
    Ok(choose(&mutants, count, MUTANT_SEED).into_iter().cloned().collect())
}

/// The outcome of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MutantOutcome {
    Survived,
    Error,
    Timeout,
    Value,
}

/// Runs mutants of these functions (indices in the manifest) in parallel, with the shorter (curtailed) form of each
/// experiment.
///
/// # Errors
/// Kind `Suite` if the manifest marks a mutant that a function does not have; `Baseline` if an experiment of the
/// unchanged repo does not give its gold within a mutant's time limit. Also returns the errors of [`Bench::run`].
pub async fn measure(
    bench: &Arc<Bench>,
    functions: &[usize],
    draw: MutantDraw,
    observer: &dyn Observer,
) -> Result<Vec<Mutation>> {
    let tests = Arc::new(Tests::new(bench)?);
    let mut mutations = Vec::with_capacity(functions.len());
    let mut wanted = Vec::new();
    for (row, &function) in functions.iter().enumerate() {
        let (possible, chosen) = pick(bench.loaded(), function, draw)?;
        let at = bench.loaded().paper.units[function].at.clone();
        mutations.push(Mutation { at, possible, made: chosen.len(), ..Mutation::default() });
        wanted.extend(chosen.into_iter().map(|mutant| (row, function, mutant)));
    }
    let total = wanted.len();
    let paper = &bench.loaded().paper.id;
    let stage = Stage::new("running mutants of", paper);
    let stage = |done: usize| observer.on(RunEvent::Stage(stage.counted(done, total, "mutants")));
    tests.check_original(bench).await?;

    let mut running = JoinSet::new();
    for (place, (_, function, mutant)) in wanted.iter().enumerate() {
        let (bench, tests, function, mutant) = (Arc::clone(bench), Arc::clone(&tests), *function, mutant.clone());
        running.spawn(async move { (place, tests.fate(&bench, function, &mutant).await) });
    }
    let mut fates = vec![MutantOutcome::Survived; total];
    let mut done = 0;
    stage(done);
    while let Some(ended) = running.join_next().await {
        let (place, fate) = ended.map_err(|error| Error::internal("the run of a mutant was aborted").because(error))?;
        fates[place] = fate?;
        done += 1;
        stage(done);
    }
    for ((row, function, mutant), fate) in wanted.iter().zip(fates) {
        mutations[*row].count(bench.loaded(), *function, mutant, fate);
    }
    Ok(mutations)
}

/// Runs these mutants, each with the index of its function in the manifest, and returns for each whether it was killed.
///
/// # Errors
/// Returns the errors of [`measure`], except those about the unchanged repo.
pub async fn again(bench: &Arc<Bench>, mutants: &[(usize, Mutant)]) -> Result<Vec<bool>> {
    let tests = Arc::new(Tests::new(bench)?);
    let mut running = JoinSet::new();
    for (place, (function, mutant)) in mutants.iter().cloned().enumerate() {
        let (bench, tests) = (Arc::clone(bench), Arc::clone(&tests));
        running.spawn(async move { (place, tests.fate(&bench, function, &mutant).await) });
    }
    let mut killed = vec![false; mutants.len()];
    while let Some(ended) = running.join_next().await {
        let (place, fate) = ended.map_err(|error| Error::internal("the run of a mutant was aborted").because(error))?;
        killed[place] = fate? != MutantOutcome::Survived;
    }
    Ok(killed)
}

impl Mutation {
    fn count(&mut self, loaded: &LoadedPaper, function: usize, mutant: &Mutant, fate: MutantOutcome) {
        let marked = is_marked(loaded, function, mutant);
        match fate {
            MutantOutcome::Error => self.errors += 1,
            MutantOutcome::Timeout => self.timeouts += 1,
            MutantOutcome::Value => self.values += 1,
            MutantOutcome::Survived if marked => self.equivalent += 1,
            MutantOutcome::Survived => {
                let module = loaded.source(function);
                let path = module.path().to_string_lossy();
                let diff = unified_diff(&path, module.source(), &module.mutant_text(mutant));
                let diff = String::from_utf8_lossy(&diff).into_owned();
                self.survivors.push(Survivor { id: mutant.id.clone(), line: mutant.line, diff });
            }
        }
        if marked && fate != MutantOutcome::Survived {
            self.wrongly_marked.push(mutant.id.clone());
        }
    }
}

/// Returns the number of possible mutants of a function, and the mutants to run. Takes mutants in the order of
/// [`choose`] until `draw.mutants` of them are not marked as equivalent.
pub(super) fn pick(loaded: &LoadedPaper, function: usize, draw: MutantDraw) -> Result<(usize, Vec<Mutant>)> {
    let all = loaded.mutants(function)?;
    require_known(loaded, function, &all)?;
    let mut chosen = Vec::new();
    let mut real = 0;
    for mutant in choose(&all, all.len(), draw.seed) {
        if real == draw.mutants {
            break;
        }
        real += usize::from(!is_marked(loaded, function, mutant));
        chosen.push(mutant.clone());
    }
    Ok((all.len(), chosen))
}

fn is_marked(loaded: &LoadedPaper, function: usize, mutant: &Mutant) -> bool {
    loaded.paper.units[function].equivalent.iter().any(|mark| mark.mutant == mutant.id)
}

/// Fails if the manifest marks a mutant as equivalent that the function does not have, for instance because its code
/// has changed.
fn require_known(loaded: &LoadedPaper, function: usize, all: &[Mutant]) -> Result<()> {
    let function = &loaded.paper.units[function];
    let Some(unknown) = function.equivalent.iter().find(|mark| all.iter().all(|mutant| mutant.id != mark.mutant))
    else {
        return Ok(());
    };
    let ids: Vec<&str> = all.iter().map(|mutant| mutant.id.as_str()).collect();
    let near: Vec<String> = similar::get_close_matches(unknown.mutant.as_str(), &ids, 3, 0.6)
        .into_iter()
        .map(|id| format!("`{id}`"))
        .collect();
    let hint = if near.is_empty() {
        "its code has changed: remove the mark".to_owned()
    } else {
        format!("its code may have changed; similar ones are {}", near.join(", "))
    };
    Err(Error::suite(format!("{} `{}` has no mutant `{}`", function.kind(), function.at, unknown.mutant))
        .at(loaded.dir.join("paper.toml"), None)
        .hint(hint))
}

/// The experiments to run mutants against.
struct Tests {
    /// Experiments in the manifest's order, with the time limit of mutants.
    experiments: Vec<TaskExperiment>,
    gold: BTreeMap<String, crate::suite::GoldResult>,
}

impl Tests {
    fn new(bench: &Bench) -> Result<Self> {
        let gold = gold_of(bench.loaded(), Protocol::Curtailed)?.clone();
        let within = |task: &TaskExperiment| {
            let slowest = seconds(&gold, &task.id).fold(0.0, f64::max);
            limited(task, Duration::from_secs_f64((TIMES_GOLD * slowest).max(LEAST_TIME_LIMIT)))
        };
        Ok(Self { experiments: bench.ready().experiments.iter().map(within).collect(), gold })
    }

    /// Returns the experiments that need a function, as indices in the manifest, the quickest first.
    fn for_function(&self, bench: &Bench, function: usize) -> Vec<usize> {
        let mut tests = bench.loaded().tests(&[function]);
        let quickest = |place: &usize| seconds(&self.gold, &self.experiments[*place].id).fold(f64::MAX, f64::min);
        tests.sort_by(|one, other| quickest(one).total_cmp(&quickest(other)));
        tests
    }

    /// Checks that the unchanged repo passes. Otherwise a broken experiment would kill every mutant.
    async fn check_original(&self, bench: &Bench) -> Result<()> {
        for place in 0..self.experiments.len() {
            let outcome = bench.run(&Trial { files: &[], experiment: &self.experiments[place] }).await?;
            if !self.agrees(bench, place, &outcome) {
                let id = &self.experiments[place].id;
                let why = outcome.result.err().unwrap_or_else(|| "its result is not its gold".to_owned());
                let message = format!("the unchanged repo fails experiment `{id}`: {why}");
                return Err(Error::new(FailureKind::Baseline, message).hint(format!(
                    "mutants could not be distinguished from it; record gold again with `autoexperiment gold {}`",
                    bench.loaded().paper.id
                )));
            }
        }
        Ok(())
    }

    async fn fate(&self, bench: &Bench, function: usize, mutant: &Mutant) -> Result<MutantOutcome> {
        let module = bench.loaded().source(function);
        let files: [(PathBuf, Vec<u8>); 1] = [(module.path().to_owned(), module.mutant_text(mutant))];
        for place in self.for_function(bench, function) {
            let outcome = bench.run(&Trial { files: &files, experiment: &self.experiments[place] }).await?;
            if self.agrees(bench, place, &outcome) {
                continue;
            }
            return Ok(match (&outcome.exit, &outcome.result) {
                (Exit::TimedOut, _) => MutantOutcome::Timeout,
                (_, Err(_)) => MutantOutcome::Error,
                (_, Ok(_)) => MutantOutcome::Value,
            });
        }
        Ok(MutantOutcome::Survived)
    }

    fn agrees(&self, bench: &Bench, place: usize, outcome: &ExperimentOutcome) -> bool {
        let experiment = &bench.loaded().paper.experiments[place];
        self.gold.get(&experiment.id).is_some_and(|gold| outcome.agrees(experiment, gold))
    }
}

/// Returns the seconds that an experiment took when gold was recorded.
fn seconds<'gold>(
    gold: &'gold BTreeMap<String, crate::suite::GoldResult>,
    experiment: &str,
) -> impl Iterator<Item = f64> + use<'gold> {
    gold.get(experiment).map(|gold| gold.seconds.iter().copied()).into_iter().flatten()
}
