//! Checks that a task is sound: The gold cells pass in full three times. An attempt that does nothing gets 0 in all of
//! our measures, and so does an attempt that forges results. No landmark (evidence that a block's work is done) is
//! reached before the block is run. If any one block is missing from the gold cells, a check fails.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::changes::CHANGES;
use super::family::NotebookWith;
use super::ids::sample;
use super::judge::{ENTRY, landmark_id};
use super::loaded::{GoldRecord, LoadedTask};
use super::task::{Solutions, TaskItem, TrialSolution};
use super::trace::{TRACE, stable, without_new};
use crate::error::{Error, FailureKind, Result};
use crate::run::AttemptRecord;
use crate::run::family::{Family, ScoringBasis};
use crate::run::soundness::{Soundness, UnitProof, why};
use crate::sample::Withheld;
use crate::workspace::repo_digest;

/// Number of attempts by `gold`, each of which must pass in full.
pub const REPEATS: u32 = 3;

/// Returns the notebook family in which the agent `gold` runs an incomplete solution: the gold cells of all withheld
/// blocks except the first.
pub fn incomplete_solutions() -> impl Family + 'static {
    NotebookWith(|loaded: LoadedTask, basis: ScoringBasis| {
        Ok(TaskItem { loaded: Arc::new(loaded), rule: basis.rule, solutions: Solutions::LeftOut })
    })
}

/// The attempts that show whether a task is sound, and how they are judged.
pub struct SoundnessPlan {
    task: LoadedTask,
}

impl SoundnessPlan {
    /// Plans the attempts for a task of this suite.
    ///
    /// # Errors
    /// Returns the errors of [`LoadedTask::load`] and [`LoadedTask::gold`].
    pub fn plan(suite: &Path, id: &str) -> Result<Self> {
        let task = LoadedTask::load(suite, id)?;
        task.gold()?;
        Ok(Self { task })
    }

    /// Creates a plan for a task whose gold is being recorded.
    #[must_use]
    pub const fn unrecorded(task: LoadedTask) -> Self {
        Self { task }
    }

    /// Returns the answer and the record of the gold cells. `runs` are attempts in the family that
    /// [`gold_recording_family`](super::trials::gold_recording_family) returns.
    ///
    /// # Errors
    /// Kind `Baseline` if a run lacks an answer, changes or calls, or if the answers of runs differ.
    pub fn record(&self, runs: &[AttemptRecord]) -> Result<(Value, GoldRecord)> {
        let fault = |what: String| Error::new(FailureKind::Baseline, format!("`{}`: {what}", self.task.id));
        let mut found: Option<(Value, GoldRecord)> = None;
        let cells = TrialSolution::from_gold(&self.task, String::new(), &[], Vec::new()).cells;
        let mut failed = BTreeSet::new();
        for run in runs {
            let at = |id: &str| {
                let of = run
                    .results
                    .get(id)
                    .ok_or_else(|| fault(format!("gold's run has no check `{id}`: {}", why(run))))?;
                let error = of.get("error").and_then(Value::as_str).unwrap_or("no result");
                of.get("result")
                    .cloned()
                    .ok_or_else(|| fault(format!("check `{id}` of gold's run gave no result: {error}")))
            };
            let (answer, changes, calls) = (at(ENTRY)?, at(CHANGES)?, at(TRACE)?);
            let parse = |error| fault("gold's record cannot be read".to_owned()).because(error);
            let changed = serde_json::from_value(changes["parts"].clone()).map_err(parse)?;
            let calls = without_new(serde_json::from_value(calls).map_err(parse)?, &self.task.repo_dir);
            failed.extend(failed_cells(run).filter_map(|number| cells.get(number).cloned()));
            found = Some(match found {
                None => (answer, GoldRecord { changed, calls, failed: Vec::new() }),
                Some((first, _)) if first != answer => {
                    return Err(fault(format!("gold's cells give {first} in one run and {answer} in another"))
                        .hint("a task's run must be deterministic: set its seeds"));
                }
                Some((_, record)) => {
                    (answer, GoldRecord { changed, calls: stable(&record.calls, &calls), failed: Vec::new() })
                }
            });
        }
        let (answer, record) = found.ok_or_else(|| fault("gold was not run".to_owned()))?;
        Ok((answer, GoldRecord { failed: failed.into_iter().collect(), ..record }))
    }

    /// Returns the digest of everything that the attempts depend on, except the env.
    ///
    /// # Errors
    /// Returns the errors of [`repo_digest`].
    pub fn digest(&self) -> Result<String> {
        Ok(format!("{}{}", self.task.digest, repo_digest(&self.task.repo_dir)?))
    }

    /// Returns the sample that withholds all blocks.
    #[must_use]
    pub fn whole(&self) -> String {
        self.id((0..self.task.manifest.blocks.len()).collect())
    }

    /// Returns for each block the smallest sample that withholds the block and, with it, all blocks that need it.
    #[must_use]
    pub fn without_each(&self) -> Vec<String> {
        (0..self.task.manifest.blocks.len()).map(|block| self.id(self.upwards(block))).collect()
    }

    fn id(&self, units: Vec<usize>) -> String {
        sample(&Withheld { item: self.task.id.clone(), units }).id().to_owned()
    }

    /// Returns a block and all blocks that need it, in order. A block comes after the blocks that it needs.
    fn upwards(&self, block: usize) -> Vec<usize> {
        let blocks = &self.task.manifest.blocks;
        let mut above = vec![block];
        for (place, later) in blocks.iter().enumerate().skip(block + 1) {
            if above.iter().any(|&needed| later.needs.contains(&blocks[needed].id)) {
                above.push(place);
            }
        }
        above
    }

    /// Judges the attempts. `whole` contains the attempts by the agents `gold` and `forger` at the sample that
    /// withholds all blocks. `parts` contains the attempts at the samples of [`Self::without_each`]: those by `noop`,
    /// which does nothing, and those by `gold`, which lack the gold cells of the sample's first block.
    #[must_use]
    pub fn judge(&self, whole: &[AttemptRecord], parts: &[AttemptRecord]) -> Soundness {
        let mut proof = Soundness::new(&self.task.id);
        for record in whole {
            if record.agent == "gold" { self.gold(record, &mut proof) } else { Self::forged(record, &mut proof) }
        }
        for (block, id) in self.without_each().iter().enumerate() {
            for record in parts.iter().filter(|record| record.sample == *id) {
                if record.agent == "gold" {
                    self.left_out(block, record, &mut proof);
                } else {
                    self.nothing(block, record, &mut proof);
                }
            }
        }
        proof
    }

    fn gold(&self, record: &AttemptRecord, proof: &mut Soundness) {
        proof.count(record, |proof| &mut proof.gold);
        let attempt = record.attempt + 1;
        if !record.pass {
            proof.unreached(format!("gold fails in attempt {attempt}: {}", why(record)));
            return;
        }
        for (name, value) in measures(record, true).filter(|(_, value)| *value < 1.0) {
            let because = record.verified.iter().flat_map(|verdict| &verdict.warnings).next();
            let because = because.map(|warning| format!(": {warning}")).unwrap_or_default();
            proof.unreached(format!("gold has {value:.3} in `verified_{name}`, not 1, in attempt {attempt}{because}"));
        }
        for landmark in &self.task.manifest.landmarks {
            if !was_hit(record, &landmark.id, "agent") {
                let id = &landmark.id;
                proof.fault(format!("no output of gold in attempt {attempt} matches the pattern of landmark `{id}`"));
            }
        }
    }

    fn forged(record: &AttemptRecord, proof: &mut Soundness) {
        proof.count(record, |proof| &mut proof.forger);
        for (name, value) in measures(record, true).filter(|(_, value)| *value > 0.0) {
            proof.fault(format!("`forger` has {value:.3} in `verified_{name}`, not 0"));
        }
        for (name, value) in measures(record, false) {
            if matches!(name, "landmarks" | "script" | "submitted") && value < 1.0 {
                proof.fault(format!("`forger` has {value:.3} in `reported_{name}`, not 1: its forgery does not work"));
            }
        }
    }

    fn nothing(&self, block: usize, record: &AttemptRecord, proof: &mut Soundness) {
        proof.count(record, |proof| &mut proof.noop);
        let without = &self.task.manifest.blocks[block].id;
        for (name, value) in measures(record, true).filter(|(_, value)| *value > 0.0) {
            proof.fault(format!(
                "with block `{without}` withheld, an attempt that does nothing has {value:.3} in `verified_{name}`, not 0"
            ));
        }
        for landmark in self.task.manifest.landmarks_of(&self.upwards(block)) {
            if was_hit(record, &landmark.id, "prefix") {
                let id = &landmark.id;
                proof.fault(format!(
                    "the cells before block `{without}` reach landmark `{id}`, though the landmark's block is withheld"
                ));
            }
        }
    }

    fn left_out(&self, block: usize, record: &AttemptRecord, proof: &mut Soundness) {
        proof.seconds += record.wall_seconds;
        let unit = self.task.manifest.blocks[block].id.clone();
        let mut loses = Vec::new();
        for check in record.verified.iter().flat_map(|verdict| &verdict.experiments).filter(|check| !check.pass) {
            loses.push(check.experiment.clone());
        }
        if loses.is_empty() {
            proof.fault(format!("block `{unit}` does not matter: without it gold is right in everything"));
        }
        let own = [block];
        let own = self.task.manifest.landmarks_of(&own).map(|landmark| landmark_id(&landmark.id));
        for id in own.filter(|id| !loses.contains(id)) {
            proof.fault(format!("check `{id}` passes although its block `{unit}` was left out"));
        }
        proof.units.push(UnitProof { unit, loses });
    }
}

/// Returns the numbers, from 0, of the agent's cells in which a shell command failed.
fn failed_cells(record: &AttemptRecord) -> impl Iterator<Item = usize> {
    let numbers = record.observed.get("failed").and_then(Value::as_array).into_iter().flatten();
    numbers.filter_map(|number| usize::try_from(number.as_u64()?).ok())
}

/// Returns the names and values of a record's measures: our own if `ours`, otherwise those published with SUPER.
fn measures(record: &AttemptRecord, ours: bool) -> impl Iterator<Item = (&str, f64)> {
    let verdict = if ours { &record.verified } else { &record.reported };
    verdict.iter().flat_map(|verdict| verdict.measures.iter().map(|(name, &value)| (name.as_str(), value)))
}

/// Whether the pattern of a landmark was found in the output of cells: if `by` is `agent`, in that of the agent's
/// cells; if `by` is `prefix`, in that of the cells that ran before the agent began.
fn was_hit(record: &AttemptRecord, landmark: &str, by: &str) -> bool {
    let seen = record.observed.get("landmarks").and_then(|all| all.get(landmark)).and_then(|one| one.get(by));
    seen.and_then(serde_json::Value::as_bool).unwrap_or(false)
}
