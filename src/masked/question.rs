//! The description of a sample for verifiers that compare attempts at it, without gold.

use std::fmt::Write as _;

use itertools::Itertools;
use serde_json::{Map, Value};

use super::ready::experiment_key;
use crate::run::family::Question;
use crate::sample::Sample;
use crate::score::{Expected, placed_answer};
use crate::suite::{LoadedPaper, sections};

/// Describes the task of a sample that masks these functions.
pub fn question(loaded: &LoadedPaper, sample: &Sample, functions: &[usize]) -> Question {
    let tests = expected(loaded, functions);
    let functions: Vec<_> = functions.iter().map(|&place| &loaded.paper.units[place]).collect();
    let mut task =
        "in a research repository, the bodies of these functions were removed and written anew.\n".to_owned();
    for function in &functions {
        let _ = write!(task, "\n- `{}`: {}", function.at, function.description.trim());
    }
    let _ = write!(task, "\n\nPaper: {}", loaded.paper.title);
    let named = |heading: &str| functions.iter().any(|function| function.passages.iter().any(|it| it == heading));
    let sections = sections(&loaded.text);
    let passages: Vec<String> = sections
        .iter()
        .filter(|section| named(section.heading))
        .map(|section| format!("### {}\n{}\n", section.heading, section.text.trim()))
        .collect();
    if !passages.is_empty() {
        let _ = write!(task, "\n\nWhat the paper says about them:\n\n{}", passages.concat().trim());
    }
    Question {
        sample: sample.id().to_owned(),
        task,
        before: "the repository without the bodies".to_owned(),
        criterion: "does exactly what the paper and the descriptions say, so that the paper's experiments give the \
                    right numbers. Look at formulas, boundaries, the order of random draws, and what is returned"
            .to_owned(),
        files: functions
            .iter()
            .filter_map(|function| function.at.split("::").next().map(str::to_owned))
            .unique()
            .collect(),
        answers: tests.into_iter().map(|test| (test.key, test.tolerance)).collect(),
    }
}

/// Parses an answer. Returns the results of the sample's experiments, by the experiments' keys.
pub fn answered(loaded: &LoadedPaper, functions: &[usize], answer: Option<&str>) -> Map<String, Value> {
    placed_answer(&expected(loaded, functions), answer)
}

/// The sample's experiments without their gold.
fn expected(loaded: &LoadedPaper, functions: &[usize]) -> Vec<Expected> {
    let tests = loaded.shown_tests(functions).into_iter();
    tests
        .map(|place| {
            let experiment = &loaded.paper.experiments[place];
            let (id, key) = (experiment.id.clone(), experiment_key(place));
            Expected { id, key, gold: Value::Null, tolerance: experiment.bounds(None) }
        })
        .collect()
}
