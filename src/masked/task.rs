//! What an agent is given of a sample.

use crate::agent::{Task, TaskExperiment, TaskFunction};
use crate::sample::Sample;
use crate::suite::LoadedPaper;

/// The task of a sample that masks these functions. `experiments` are all of the paper's.
#[must_use]
pub fn task(
    loaded: &LoadedPaper,
    experiments: &[TaskExperiment],
    sample: &Sample,
    functions: &[usize],
    attempt: u32,
) -> Task {
    let described = functions.iter().map(|&place| {
        let function = &loaded.paper.functions[place];
        TaskFunction {
            at: function.at.clone(),
            description: function.description.clone(),
            passages: function.passages.clone(),
        }
    });
    Task {
        sample: sample.id().to_owned(),
        attempt,
        paper: loaded.paper.clone(),
        text: loaded.text.clone(),
        experiments: loaded.tests(functions).into_iter().map(|place| experiments[place].clone()).collect(),
        functions: described.collect(),
        originals: loaded.originals(functions),
    }
}
