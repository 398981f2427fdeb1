//! What an agent that knows masked replication is given of a sample.

use crate::agent::{Replication, TaskExperiment, TaskFunction};
use crate::suite::LoadedPaper;

/// A sample that masks these functions. `experiments` are all of the paper's.
#[must_use]
pub fn replication(loaded: &LoadedPaper, experiments: &[TaskExperiment], functions: &[usize]) -> Replication {
    let described = functions.iter().map(|&place| {
        let function = &loaded.paper.functions[place];
        TaskFunction {
            at: function.at.clone(),
            description: function.description.clone(),
            passages: function.passages.clone(),
        }
    });
    Replication {
        paper: loaded.paper.clone(),
        text: loaded.text.clone(),
        experiments: loaded.tests(functions).into_iter().map(|place| experiments[place].clone()).collect(),
        functions: described.collect(),
        originals: loaded.originals(functions),
    }
}
