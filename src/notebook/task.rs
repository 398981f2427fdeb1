//! A notebook task, and the blocks of gold cells that a sample withholds, so that the agent must do their work.

use std::sync::Arc;

use super::ids::withheld;
use super::loaded::LoadedTask;
use crate::error::{Error, Result};
use crate::sample::{Sample, Units as _};
use crate::score::Rule;

/// A notebook task, with the rule and the solutions that a run uses for it.
pub struct TaskItem {
    /// The task's files.
    pub loaded: Arc<LoadedTask>,
    /// Whether the harness's own measures or the published ones decide whether an attempt passes.
    pub rule: Rule,
    /// The solutions used by agents without a model.
    pub solutions: Solutions,
}

/// The solutions used by agents without a model.
pub enum Solutions {
    /// The gold cells of the withheld blocks.
    Gold,
    /// The gold cells of all withheld blocks except the first, to check that an attempt fails without that block.
    LeftOut,
    /// A solution for each attempt, by the attempt's number. Only whether a solution passes matters, so verification
    /// does not run the repo's main program (the entry script) if another check has already failed.
    Trials(Arc<Vec<TrialSolution>>),
}

/// A solution to try.
#[derive(Debug, Clone)]
pub struct TrialSolution {
    /// Name of the solution.
    pub name: String,
    /// Cells that the attempt runs. The attempt's sample withholds all blocks of the task.
    pub cells: Vec<String>,
    /// The answer to submit; `None` to submit the JSON that the cells print.
    pub answer: Option<String>,
}

impl TaskItem {
    /// Returns the indices of a sample's withheld blocks, if the task can withhold them.
    pub fn blocks(&self, sample: &Sample) -> Result<Vec<usize>> {
        let blocks = withheld(sample.id())?.units;
        if self.loaded.order.allows(&blocks) {
            return Ok(blocks);
        }
        Err(Error::usage(format!("task `{}` has no sample `{sample}`", self.loaded.id)).hint(
            "a withheld block must exist, and every block that needs it must be withheld as well; `autoexperiment \
             sample` lists the samples",
        ))
    }
}

impl TaskItem {
    /// Returns the cells that an agent without a model runs, and the answer that it submits; `None` to submit what the
    /// cells print.
    pub fn solution(&self, withheld: &[usize], attempt: u32) -> (Vec<String>, Option<String>) {
        let skipped = match &self.solutions {
            Solutions::Gold => 0,
            Solutions::LeftOut => 1,
            Solutions::Trials(trials) => {
                let trial = usize::try_from(attempt).ok().and_then(|attempt| trials.get(attempt));
                return trial.map(|trial| (trial.cells.clone(), trial.answer.clone())).unwrap_or_default();
            }
        };
        let cells = self.loaded.cells_of(withheld.get(skipped..).unwrap_or_default(), true);
        // If no block is withheld, there are no cells to run that would print the answer, so submit the gold answer.
        let known = self.loaded.answer.as_ref().filter(|_| withheld.is_empty());
        (cells, known.map(ToString::to_string))
    }

    /// Whether the solutions are [`Solutions::Trials`], of which only pass or fail is needed.
    pub(super) const fn is_trial(&self) -> bool {
        matches!(self.solutions, Solutions::Trials(_))
    }

    /// Returns a block's id and category: `deps (dependencies)`.
    pub fn named(&self, place: usize) -> String {
        let block = &self.loaded.manifest.blocks[place];
        format!("{} ({})", block.id, block.category.name())
    }
}
