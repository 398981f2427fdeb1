//! The search for curtailed settings, which are cheaper values of an experiment's parameters. The search runs every
//! solution with the full parameters, and then with cheaper settings, the cheapest first, until the verdicts with a
//! setting agree with the verdicts with the full parameters (the full verdicts).
//!
//! The gold result of a setting is the result of the unmasked repo with that setting. Settings are ordered by the CPU
//! time of that run. A setting is rejected as soon as its verdicts can no longer reach the required agreement. All runs
//! use a [`Bench`], which caches results by content, so that an interrupted search can be resumed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::agreement::{Agreement, SolutionCase};
use super::pool::{PooledSolution, SolutionPool};
use super::setting::{Setting, settings, written};
use crate::agent::TaskExperiment;
use crate::audit::trial::limited;
use crate::audit::{Bench, ExperimentOutcome, Trial, TrialJob};
use crate::error::Result;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::score::{check_gold, score_experiment};
use crate::suite::{CurtailedEvidence, Protocol};

/// Number of solutions that are run before budget and goal are checked again.
const CHUNK: usize = 8;

/// Minimum number of solutions that must have been run with the full parameters. If there are fewer, no cheaper setting
/// is tried.
const FEWEST: usize = 10;

/// If fewer solutions than this pass with the full parameters, recall is not known well enough. Then the result has a
/// note about it, and nothing is written into the manifest.
const FEWEST_PASSING: usize = 5;

/// The time limit of a solution is this multiple of the unmasked repo's time, plus [`MORE_SECONDS`].
const TIMES_ORIGINAL: f64 = 5.0;
const MORE_SECONDS: f64 = 5.0;

/// Time limit in seconds of each experiment with the unmasked repo.
const ORIGINAL_TIME_LIMIT: f64 = 1800.0;

/// Goal and limits of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchGoal {
    /// Minimum of both precision and recall, 0 to 1. They measure how well the verdicts with a setting predict the full
    /// verdicts. Every solution has the same weight.
    pub goal: f64,
    /// CPU seconds after which no more solutions are run with the full parameters. Cached results take no CPU time.
    pub budget: f64,
    /// The experiments for which settings are searched, as indices in the manifest.
    pub experiments: Vec<usize>,
}

/// Results of the search for all experiments of a paper.
#[derive(Debug, Serialize)]
pub struct CurtailedPaper {
    /// Results for each experiment, in the manifest's order.
    pub experiments: Vec<CurtailedExperiment>,
    /// Agreement over all pairs of a solution and an experiment for which there are verdicts both with the full
    /// parameters and with a cheaper setting.
    pub pairs: Agreement,
    /// Agreement over solutions. A solution counts as passing with the full parameters (or with cheaper settings) if it
    /// does so in all `pairs` that contain it.
    pub attempts: Agreement,
    /// CPU seconds that the search spent; cached results cost nothing.
    pub cpu: f64,
}

/// Results of the search for one experiment.
#[derive(Debug, Default, Serialize)]
pub struct CurtailedExperiment {
    /// The experiment's id.
    pub id: String,
    /// Number of solutions that can affect the experiment: those that change a function that the experiment needs.
    pub pool: usize,
    /// Number of settings that are cheaper than the full parameters and give a result with the unmasked repo.
    pub settings: usize,
    /// Number of cheaper settings that were rejected, because their precision or recall is below [`SearchGoal::goal`].
    pub given_up: usize,
    /// CPU seconds of the unmasked repo with full parameters.
    pub full_seconds: f64,
    /// The cheapest setting whose precision and recall reach [`SearchGoal::goal`]. If no setting reaches the goal, a
    /// cheap setting, to show how far it is from the goal.
    pub chosen: Option<ChosenSetting>,
    /// Why no setting was chosen, why the search is incomplete, or why its result is uncertain.
    pub note: Option<String>,
}

/// The setting chosen by the search, and its results.
#[derive(Debug, Clone, Serialize)]
pub struct ChosenSetting {
    /// The setting: a value for each of the experiment's parameters.
    pub setting: Setting,
    /// The command with the values of this setting.
    pub command: String,
    /// CPU seconds of the unmasked repo with this setting.
    pub seconds: f64,
    /// Whether precision and recall of this setting reach [`SearchGoal::goal`].
    pub reached: bool,
    /// How well the verdicts with this setting agree with the verdicts with the full parameters.
    pub agreement: Agreement,
    /// Solutions that pass only with this setting or only with the full parameters: the solution's group (the functions
    /// that it changes) and its name.
    pub disagreements: Vec<(String, String)>,
    /// For each solution, whether it passes with this setting and with the full parameters, by the solution's index in
    /// [`SolutionPool::attempts`].
    #[serde(skip)]
    verdicts: BTreeMap<usize, SolutionCase>,
}

impl CurtailedExperiment {
    /// Returns the chosen setting and the evidence for it, to be written to the manifest.
    ///
    /// # Errors
    /// An error message that says why there is no evidence: no setting reaches the goal, not all solutions were run, or
    /// too few of them pass.
    pub fn evidence(&self) -> Result<(&Setting, CurtailedEvidence), String> {
        let Some(chosen) = &self.chosen else {
            return Err(self.note.clone().unwrap_or_else(|| "no setting was chosen".to_owned()));
        };
        let agreement = &chosen.agreement;
        let (cases, passing) = (agreement.cases(), agreement.passing());
        if cases < self.pool {
            return Err(format!("only {cases} of {} solutions were run in full", self.pool));
        }
        if passing < FEWEST_PASSING {
            return Err(format!(
                "only {passing} solutions pass with the full protocol; recall is measured with at least {FEWEST_PASSING}"
            ));
        }
        let (Some(precision), Some(recall), true) = (agreement.precision, agreement.recall, chosen.reached) else {
            return Err("no setting reaches the goal".to_owned());
        };
        let round = |value: f64| (value * 1e4).round() / 1e4;
        let evidence = CurtailedEvidence {
            command: chosen.command.clone(),
            attempts: cases,
            passing,
            precision: round(precision.value),
            recall: round(recall.value),
            time: round(chosen.seconds / self.full_seconds),
        };
        Ok((&chosen.setting, evidence))
    }
}

/// Searches for the cheapest settings of a paper's experiments.
///
/// # Errors
/// Returns the errors of running solutions. An experiment that fails with the full parameters is not an error; its
/// result has a note.
pub async fn search(
    bench: &Arc<Bench>,
    pool: &SolutionPool,
    wanted: &SearchGoal,
    observer: &dyn Observer,
) -> Result<CurtailedPaper> {
    let search = CurtailSearch { bench, pool, wanted, observer, spent: bench.cpu() };
    // Search quick experiments first, so that the budget covers as many as possible.
    let mut order = wanted.experiments.clone();
    order.sort_by(|one, other| search.expected(*one).total_cmp(&search.expected(*other)));
    let mut found = BTreeMap::new();
    for place in order {
        found.insert(place, search.experiment(place).await?);
    }
    let experiments: Vec<CurtailedExperiment> = found.into_values().collect();
    let verdicts = || experiments.iter().filter_map(|experiment| Some(&experiment.chosen.as_ref()?.verdicts));
    let pairs: Vec<SolutionCase> = verdicts().flat_map(BTreeMap::values).cloned().collect();
    let mut attempts: BTreeMap<usize, SolutionCase> = BTreeMap::new();
    for (place, case) in verdicts().flatten() {
        let whole = attempts.entry(*place).or_insert_with(|| case.clone());
        whole.full &= case.full;
        whole.curtailed &= case.curtailed;
    }
    let attempts: Vec<SolutionCase> = attempts.into_values().collect();
    Ok(CurtailedPaper {
        pairs: Agreement::from_cases(&pairs),
        attempts: Agreement::from_cases(&attempts),
        experiments,
        cpu: bench.cpu() - search.spent,
    })
}

struct CurtailSearch<'a> {
    bench: &'a Arc<Bench>,
    pool: &'a SolutionPool,
    wanted: &'a SearchGoal,
    observer: &'a dyn Observer,
    /// CPU seconds that earlier runs of `bench` had taken when this search started.
    spent: f64,
}

/// A setting with which the unmasked repo gives a result.
struct SettingCandidate {
    setting: Setting,
    task: TaskExperiment,
    gold: Value,
    seconds: f64,
}

impl CurtailSearch<'_> {
    /// Returns the seconds that an experiment takes with the full parameters, as stored with gold; [`f64::MAX`] if they
    /// are unknown.
    fn expected(&self, experiment: usize) -> f64 {
        let loaded = self.bench.loaded();
        let gold = loaded.gold.as_ref().and_then(|gold| gold.results.get(&Protocol::Full));
        let seconds = gold.and_then(|results| Some(&results.get(&loaded.paper.experiments[experiment].id)?.seconds));
        seconds.and_then(|seconds| seconds.iter().copied().reduce(f64::max)).unwrap_or(f64::MAX)
    }

    fn is_spent(&self) -> bool {
        self.bench.cpu() - self.spent >= self.wanted.budget
    }

    async fn experiment(&self, place: usize) -> Result<CurtailedExperiment> {
        let experiment = &self.bench.loaded().paper.experiments[place];
        let places: Vec<usize> = self.pool.affecting(self.bench, place);
        let mut found =
            CurtailedExperiment { id: experiment.id.clone(), pool: places.len(), ..CurtailedExperiment::default() };
        if self.is_spent() {
            found.note = Some("not begun: the budget is spent; repeat the command to continue".to_owned());
            return Ok(found);
        }
        if experiment.tolerance.is_stochastic() {
            found.note = Some("not searched: its tolerance is an interval, and a setting has no repeats".to_owned());
            return Ok(found);
        }
        let full = match self.candidate(place, &experiment.parameters.full).await? {
            Ok(full) => full,
            Err(why) => {
                found.note = Some(format!("the full experiment has no gold: {why}"));
                return Ok(found);
            }
        };
        found.full_seconds = full.seconds;
        let mut known = self.in_full(place, &full, &places).await?;
        // Compare the few passing solutions first, because they rule out unsuitable settings soonest.
        known.sort_by_key(|(_, passes)| !passes);
        let stopped = if known.len() < places.len() {
            let judged = format!("{} of {} solutions were run in full", known.len(), places.len());
            Some(format!("{judged}: the budget is spent; repeat the command to continue"))
        } else {
            (known.len() < FEWEST)
                .then(|| format!("{} stored solutions are too few, at least {FEWEST} are needed", known.len()))
        };
        let passing = known.iter().filter(|(_, passes)| *passes).count();
        let few = || {
            format!(
                "only {passing} solutions pass with the full protocol, too few to measure recall; try more solutions \
                 with `--mutants`"
            )
        };
        found.note = stopped.or_else(|| (passing < FEWEST_PASSING).then(few));
        if known.len() < FEWEST {
            return Ok(found);
        }
        let candidates = self.candidates(place, &full).await?;
        found.settings = candidates.len();
        let only = candidates.len() == 1;
        for candidate in &candidates {
            let chosen = self.judge(place, candidate, &known, !only).await?;
            match chosen {
                Some(chosen) => {
                    found.chosen = Some(chosen);
                    return Ok(found);
                }
                None => found.given_up += 1,
            }
        }
        // No setting reaches the goal. To show how much is missing, report the most expensive setting that saves at
        // least nine tenths of the time or, if none saves that much, the cheapest setting.
        let cheap = candidates.iter().rev().find(|candidate| candidate.seconds <= full.seconds / 10.0);
        match cheap.or(candidates.first()) {
            Some(candidate) => found.chosen = self.judge(place, candidate, &known, false).await?,
            None => found.note = Some("no allowed setting is cheaper than the full one".to_owned()),
        }
        Ok(found)
    }

    /// Runs the unmasked repo with a setting. The result becomes the setting's gold. The inner error says why there is
    /// no result.
    async fn candidate(&self, place: usize, setting: &Setting) -> Result<Result<SettingCandidate, String>> {
        let experiment = &self.bench.loaded().paper.experiments[place];
        let command = match experiment.command_with(setting) {
            Ok(command) => command,
            Err(why) => return Ok(Err(why)),
        };
        let task = TaskExperiment {
            command,
            time_limit: ORIGINAL_TIME_LIMIT,
            ..self.bench.ready().experiments[place].clone()
        };
        let outcome = self.bench.run(&Trial { files: &[], experiment: &task }).await?;
        let gold = match outcome.result {
            Ok(gold) => gold,
            Err(why) => return Ok(Err(why)),
        };
        if let Err(why) = check_gold(&gold) {
            return Ok(Err(why));
        }
        let limit = Duration::from_secs_f64(TIMES_ORIGINAL * outcome.wall + MORE_SECONDS);
        Ok(Ok(SettingCandidate { setting: setting.clone(), task: limited(&task, limit), gold, seconds: outcome.cpu }))
    }

    /// Returns the settings that are cheaper than the full parameters, the cheapest first.
    async fn candidates(&self, place: usize, full: &SettingCandidate) -> Result<Vec<SettingCandidate>> {
        let experiment = &self.bench.loaded().paper.experiments[place];
        let all = settings(experiment);
        let mut candidates = Vec::new();
        for (done, setting) in all.iter().enumerate() {
            let stage = Stage::new("timing settings of experiment", &experiment.id);
            self.stage(&stage, done, all.len(), "settings");
            if let Ok(candidate) = self.candidate(place, setting).await?
                && candidate.seconds < full.seconds
            {
                candidates.push(candidate);
            }
        }
        candidates.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        Ok(candidates)
    }

    /// Runs the solutions `places` with the full parameters until the budget is used up. Returns the index of each
    /// solution that was run, and whether it passes.
    async fn in_full(&self, place: usize, full: &SettingCandidate, places: &[usize]) -> Result<Vec<(usize, bool)>> {
        let mut known = Vec::with_capacity(places.len());
        for chunk in places.chunks(CHUNK) {
            if self.is_spent() {
                break;
            }
            let stage = Stage::new("running solutions in full for experiment", &full.task.id);
            self.stage(&stage, known.len(), places.len(), "solutions");
            let verdicts = self.verdicts(place, full, chunk).await?;
            known.extend(chunk.iter().copied().zip(verdicts));
        }
        Ok(known)
    }

    /// Compares the verdicts with a cheaper setting to those with the full parameters, which are in `known`. If
    /// `gives_up` is set, returns `None` as soon as the setting can no longer reach the goal.
    async fn judge(
        &self,
        place: usize,
        candidate: &SettingCandidate,
        known: &[(usize, bool)],
        gives_up: bool,
    ) -> Result<Option<ChosenSetting>> {
        let passing = known.iter().filter(|(_, full)| *full).count() as f64;
        let mut verdicts = BTreeMap::new();
        let (mut false_pass, mut false_fail) = (0.0, 0.0);
        for chunk in known.chunks(CHUNK) {
            let setting = written(&candidate.setting);
            let stage = Stage::new(format!("running solutions with {setting} for experiment"), &candidate.task.id);
            self.stage(&stage, verdicts.len(), known.len(), "solutions");
            let places: Vec<usize> = chunk.iter().map(|(place, _)| *place).collect();
            for (&(attempt, full), curtailed) in chunk.iter().zip(self.verdicts(place, candidate, &places).await?) {
                false_pass += f64::from(u8::from(curtailed && !full));
                false_fail += f64::from(u8::from(full && !curtailed));
                let group = self.pool.attempts[attempt].group.clone();
                verdicts.insert(attempt, SolutionCase { group, full, curtailed });
            }
            // In the best case, the setting's verdicts on all remaining solutions equal the full verdicts. Check
            // whether the goal can be reached in that case.
            let right = passing - false_fail;
            let hopeless = right < self.wanted.goal * (right + false_pass) || right < self.wanted.goal * passing;
            if gives_up && hopeless {
                return Ok(None);
            }
        }
        let cases: Vec<SolutionCase> = verdicts.values().cloned().collect();
        let agreement = Agreement::from_cases(&cases);
        let reached = agreement.meets(self.wanted.goal);
        if gives_up && !reached {
            return Ok(None);
        }
        let odd = verdicts.iter().filter(|(_, case)| case.full != case.curtailed);
        let disagreements =
            odd.map(|(place, case)| (case.group.clone(), self.pool.attempts[*place].name.clone())).collect();
        Ok(Some(ChosenSetting {
            setting: candidate.setting.clone(),
            command: candidate.task.command.clone(),
            seconds: candidate.seconds,
            reached,
            agreement,
            disagreements,
            verdicts,
        }))
    }

    /// Returns for each solution in `attempts` whether it reproduces the setting's gold, the result of the unmasked
    /// repo.
    async fn verdicts(&self, place: usize, candidate: &SettingCandidate, attempts: &[usize]) -> Result<Vec<bool>> {
        let job = |&attempt: &usize| {
            let PooledSolution { files, .. } = &self.pool.attempts[attempt];
            TrialJob { files: files.clone(), experiment: candidate.task.clone() }
        };
        let outcomes = self.bench.run_all(attempts.iter().map(job).collect(), |_| {}).await?;
        let experiment = &self.bench.loaded().paper.experiments[place];
        let tolerance = experiment.bounds(None);
        let agrees = |outcome: &ExperimentOutcome| {
            let result = outcome.result.as_ref().ok();
            result.is_some() && score_experiment(&experiment.id, &candidate.gold, result, &tolerance).pass
        };
        Ok(outcomes.iter().map(agrees).collect())
    }

    fn stage(&self, stage: &Stage, done: usize, total: usize, unit: &str) {
        let cpu = self.bench.cpu() - self.spent;
        self.observer.on(RunEvent::Stage(stage.counted(done, total, format!("{unit} ({cpu:.0} s of CPU)"))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of a search in which all solutions of the pool were run, with this many that pass and that
    /// fail. The verdicts of the chosen setting agree with all full verdicts.
    fn agreeing(passing: usize, failing: usize) -> CurtailedExperiment {
        let case = |full: bool| SolutionCase { group: "f".to_owned(), full, curtailed: full };
        let cases = [vec![case(true); passing], vec![case(false); failing]].concat();
        let agreement = Agreement::from_cases(&cases);
        let chosen = ChosenSetting {
            setting: Setting::new(),
            command: "run".to_owned(),
            seconds: 1.0,
            reached: agreement.meets(0.98),
            agreement,
            disagreements: Vec::new(),
            verdicts: BTreeMap::new(),
        };
        let pool = passing + failing;
        CurtailedExperiment { pool, full_seconds: 4.0, chosen: Some(chosen), ..CurtailedExperiment::default() }
    }

    #[test]
    fn a_setting_is_evidence_only_if_all_solutions_were_run_and_enough_of_them_pass() {
        let found = agreeing(FEWEST_PASSING, 9);
        let (_, evidence) = found.evidence().unwrap();
        assert_eq!((evidence.attempts, evidence.passing), (FEWEST_PASSING + 9, FEWEST_PASSING));
        assert!((evidence.recall - 1.0).abs() < 1e-9 && (evidence.time - 0.25).abs() < 1e-9, "{evidence:?}");
        let why = |found: &CurtailedExperiment| found.evidence().unwrap_err();
        let few = why(&agreeing(FEWEST_PASSING - 1, 9));
        assert!(few.starts_with("only 4 solutions pass"), "{few}");
        assert!(why(&agreeing(0, 9)).starts_with("only 0 solutions pass"));
        let stopped = CurtailedExperiment { pool: 99, ..found };
        assert_eq!(why(&stopped), "only 14 of 99 solutions were run in full");
        let mut missed = agreeing(FEWEST_PASSING, 9);
        missed.chosen.as_mut().unwrap().reached = false;
        assert_eq!(why(&missed), "no setting reaches the goal");
        let note = Some("not begun".to_owned());
        assert_eq!(why(&CurtailedExperiment { note, ..CurtailedExperiment::default() }), "not begun");
    }
}
