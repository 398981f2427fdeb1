//! A task, and what its samples withhold.

use std::sync::Arc;

use super::ids::withheld;
use super::loaded::LoadedTask;
use crate::error::{Error, Result};
use crate::sample::{Sample, Units as _};

/// A task.
pub struct TaskItem {
    /// What is known of it.
    pub loaded: Arc<LoadedTask>,
    /// Whether its right solutions lack the first withheld block, to see what it is good for.
    pub leaves_out: bool,
}

impl TaskItem {
    /// The places of a sample's withheld blocks, which the task can withhold.
    pub fn blocks(&self, sample: &Sample) -> Result<Vec<usize>> {
        let blocks = withheld(sample.id())?.units;
        if self.loaded.order.allows(&blocks) {
            return Ok(blocks);
        }
        Err(Error::usage(format!("task `{}` has no sample `{sample}`", self.loaded.id)).hint(
            "a withheld block must exist, and every block that needs it is withheld as well; `autoexperiment sample` \
             lists the samples",
        ))
    }
}

impl TaskItem {
    /// The gold cells that an attempt runs.
    pub fn solution(&self, withheld: &[usize]) -> Vec<String> {
        let solved = withheld.get(usize::from(self.leaves_out)..).unwrap_or_default();
        self.loaded.cells_of(solved, true)
    }

    /// A block with its category: `deps (dependencies)`.
    pub fn named(&self, place: usize) -> String {
        let block = &self.loaded.manifest.blocks[place];
        format!("{} ({})", block.id, block.category.name())
    }
}
