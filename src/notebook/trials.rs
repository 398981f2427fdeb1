//! Changed solutions, tried to see whether the checks distinguish right from wrong: gold cells with one constant
//! changed, and solutions written by hand.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::changes::PermittedChanges;
use super::constants;
use super::family::NotebookWith;
use super::loaded::{GoldRecord, LoadedTask};
use super::manifest::Category;
use super::task::{Solutions, TaskItem, TrialSolution};
use crate::error::{Error, Result};
use crate::files::{executable_digest, hex};
use crate::kernel::split_cells;
use crate::run::family::{Family, ScoringBasis};
use crate::run::soundness::{Soundness, TrialOutcome};
use crate::score::Rule;
use crate::workspace::repo_digest;

impl TrialSolution {
    /// Creates a solution from the gold cells of a task, with `cells` in place of the blocks `replaced`. Blocks that
    /// only run the experiment are left out, because verification runs the experiment. The solution submits the gold
    /// answer, unless it replaces a block that runs the experiment.
    pub(super) fn from_gold(task: &LoadedTask, name: String, replaced: &[usize], cells: Vec<String>) -> Self {
        let blocks = &task.manifest.blocks;
        let is_goal = |place: &usize| blocks[*place].category == Category::Goal;
        let mut all = Vec::new();
        let mut cells = Some(cells);
        for place in 0..blocks.len() {
            if replaced.contains(&place) {
                all.extend(cells.take().into_iter().flatten());
            } else if !is_goal(&place) {
                all.extend(task.cells[place].clone());
            }
        }
        let runs = replaced.iter().any(is_goal);
        let answer = task.answer.as_ref().filter(|_| !runs).map(ToString::to_string);
        Self { name, cells: all, answer }
    }
}

/// Returns the notebook family, except that its attempts execute the given trial solutions.
pub fn trial_family(trials: Vec<TrialSolution>) -> impl Family + Clone + 'static {
    let trials = Arc::new(trials);
    NotebookWith(move |loaded: LoadedTask, basis: ScoringBasis| {
        let solutions = Solutions::Trials(Arc::clone(&trials));
        Ok(TaskItem { loaded: Arc::new(loaded), rule: basis.rule, solutions })
    })
}

/// Number of times that the gold cells are run to make the record of gold's run.
pub const RECORDED: u32 = 2;

/// Returns the family for recording gold's run. In this family, a task need not have a record yet, and a solution may
/// change any file.
pub fn gold_recording_family() -> impl Family + 'static {
    NotebookWith(|mut loaded: LoadedTask, _| {
        loaded.permitted = PermittedChanges::new(["**"])?;
        loaded.record = Some(GoldRecord::default());
        loaded.answer.get_or_insert_with(|| serde_json::json!({ "unrecorded": true }));
        // The solution contains no cells that only run the experiment, because verification runs the experiment itself.
        let gold = TrialSolution::from_gold(&loaded, "gold".to_owned(), &[], Vec::new());
        let solutions = Solutions::Trials(Arc::new(vec![gold; RECORDED as usize]));
        Ok(TaskItem { loaded: Arc::new(loaded), rule: Rule::Strict, solutions })
    })
}

/// Solutions to try, with the expected verdict of each.
pub struct TrialPlan {
    task: LoadedTask,
    /// Digest of everything that decides an outcome, including this program, except the solution itself.
    digest: String,
    /// The solutions.
    pub trials: Vec<TrialSolution>,
    /// Whether each trial must pass; `None` for a trial with a changed constant, which must fail unless the manifest
    /// lists the change as harmless.
    must_pass: Vec<Option<bool>>,
}

impl TrialPlan {
    /// Plans to try the gold solution once for each constant in its cells, with only this constant changed.
    ///
    /// # Errors
    /// Returns the errors of [`LoadedTask::load`], [`LoadedTask::gold`], [`repo_digest`] and [`executable_digest`].
    pub fn constants(suite: &Path, id: &str) -> Result<Self> {
        let mut plan = Self::empty(suite, id)?;
        plan.trials = constants::changes(&plan.task);
        plan.must_pass = vec![None; plan.trials.len()];
        Ok(plan)
    }

    /// Plans the solutions in `folder/<task>`: `wrong-*.py` and `right-*.py`. The first line of each names the blocks
    /// whose cells it replaces, such as `# replaces: rows path`.
    ///
    /// # Errors
    /// Returns the errors of [`TrialPlan::constants`]; kind `Machine` if the folder or a file cannot be read, `Usage`
    /// for a Python file that is not such a solution.
    pub fn solutions(suite: &Path, id: &str, folder: &Path) -> Result<Self> {
        let mut plan = Self::empty(suite, id)?;
        let folder = folder.join(id);
        let entries = std::fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))?;
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        for file in names.iter().filter_map(|name| name.strip_suffix(".py")) {
            let path = folder.join(format!("{file}.py"));
            let text = std::fs::read_to_string(&path).map_err(|error| Error::io("read", &path, error))?;
            let fault = |what: String| Error::usage(what).at(&path, Some(1));
            let must_pass = match file.split('-').next() {
                Some("right") => true,
                Some("wrong") => false,
                _ => return Err(fault("the name of a solution begins with `right-` or `wrong-`".to_owned())),
            };
            let (head, cells) = text.split_once('\n').unwrap_or((&text, ""));
            let named = head.strip_prefix("# replaces:");
            let named = named.ok_or_else(|| fault("the first line is not `# replaces: BLOCK ...`".to_owned()))?;
            let mut replaced = Vec::new();
            for block in named.split_whitespace() {
                let place = plan.task.manifest.blocks.iter().position(|it| it.id == block);
                replaced.push(place.ok_or_else(|| fault(format!("the task has no block `{block}`")))?);
            }
            plan.trials.push(TrialSolution::from_gold(&plan.task, file.to_owned(), &replaced, split_cells(cells)));
            plan.must_pass.push(Some(must_pass));
        }
        Ok(plan)
    }

    fn empty(suite: &Path, id: &str) -> Result<Self> {
        let task = LoadedTask::load(suite, id)?;
        let gold = task.gold()?;
        let (repo, env) = (repo_digest(&task.repo_dir)?, repo_digest(&task.env_dir)?);
        let wheels = task.wheels.as_ref().and_then(|list| std::fs::read_to_string(list).ok());
        let LoadedTask { manifest, probes, permitted, record, .. } = &task;
        let parts = (&manifest.answer, &manifest.landmarks, &manifest.env, probes, permitted, record, gold, wheels);
        let executable = executable_digest()?;
        let digest = hex(&Sha256::digest(format!("{repo}\n{env}\n{executable}\n{parts:?}")));
        Ok(Self { task, digest, trials: Vec::new(), must_pass: Vec::new() })
    }

    /// Returns the sample that withholds all blocks.
    #[must_use]
    pub fn sample(&self) -> String {
        let units = (0..self.task.manifest.blocks.len()).collect();
        super::ids::sample(&crate::sample::Withheld { item: self.task.id.clone(), units }).id().to_owned()
    }

    /// Returns the key under which a solution's outcome is cached. `conditions` describes the sandbox and the env in which
    /// it runs.
    #[must_use]
    pub fn key(&self, trial: &TrialSolution, conditions: &str) -> String {
        hex(&Sha256::digest(format!("{}\n{conditions}\n{:?}\n{:?}", self.digest, trial.cells, trial.answer)))
    }

    /// Adds the outcomes, in the order of [`Self::trials`], to `proof`, with a fault for each unexpected verdict.
    pub fn judge(&self, outcomes: Vec<TrialOutcome>, proof: &mut Soundness) {
        let listed = &self.task.manifest.harmless;
        for (mut outcome, must_pass) in outcomes.into_iter().zip(&self.must_pass) {
            let harmless = listed.iter().find(|harmless| harmless.change == outcome.name);
            let name = &outcome.name;
            match (outcome.pass, must_pass, harmless) {
                (true, Some(false), _) => proof.fault(format!("the wrong solution `{name}` passes")),
                (false, Some(true), _) => proof.fault(format!("the right solution `{name}` fails: {}", outcome.why)),
                (true, None, None) => proof.fault(format!(
                    "no check notices the change \"{name}\": add a check, or list the change under `[[harmless]]` with \
                     the reason"
                )),
                (true, None, Some(harmless)) => outcome.why = format!("harmless: {}", harmless.because),
                (false, None, Some(_)) => {
                    proof.fault(format!(
                        "the change \"{name}\" is listed as harmless, but a check notices it: {}",
                        outcome.why
                    ));
                }
                _ => {}
            }
            proof.seconds += outcome.seconds;
            proof.trials.push(outcome);
        }
        if self.must_pass.contains(&None) {
            for harmless in listed.iter().filter(|it| self.trials.iter().all(|trial| trial.name != it.change)) {
                proof.fault(format!(
                    "the manifest lists the change \"{}\" as harmless, but no such change is tried",
                    harmless.change
                ));
            }
        }
    }
}
