//! Computes verdicts from a paper's gold, without running anything: at the end of an attempt, and again for stored
//! runs.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::gold::gold_of;
use super::ready::experiment_key;
use crate::error::Result;
use crate::score::{Expected, ExperimentRuns, Rule, Verdict, score_answer, score_results};
use crate::suite::{LoadedPaper, Protocol};

/// Scoring of attempts at a paper.
#[derive(Clone, Copy)]
pub struct PaperJudge<'a> {
    /// The paper.
    pub loaded: &'a LoadedPaper,
    /// The protocol (curtailed or full) of the gold results to compare with.
    pub protocol: Protocol,
    /// How values are compared.
    pub rule: Rule,
}

impl PaperJudge<'_> {
    /// The tests of a sample that masks these functions, with their gold.
    ///
    /// # Errors
    /// Kind `Baseline` if gold is missing, `Usage` for functions that the paper does not have.
    pub fn expected(&self, functions: &[usize]) -> Result<Vec<Expected>> {
        self.of_tests(functions, self.loaded.tests(functions))
    }

    /// Returns the experiments with the indices `tests` in the manifest, each with its gold.
    fn of_tests(&self, functions: &[usize], tests: Vec<usize>) -> Result<Vec<Expected>> {
        self.loaded.require(functions)?;
        let gold = gold_of(self.loaded, self.protocol)?;
        Ok(tests
            .into_iter()
            .filter_map(|place| {
                let experiment = &self.loaded.paper.experiments[place];
                gold.get(&experiment.id).map(|gold| Expected {
                    id: experiment.id.clone(),
                    key: experiment_key(place),
                    gold: gold.result.clone(),
                    tolerance: experiment.bounds(Some(gold)),
                })
            })
            .collect())
    }

    /// Scores an agent's answer. If all tests of the sample are hidden, the answer passes without a comparison.
    /// `results` are the results of verification, as for [`PaperJudge::verified`], or empty before verification.
    /// Answers to stochastic experiments are compared with `results` or, if they are empty, with gold.
    ///
    /// # Errors
    /// Same as [`PaperJudge::expected`].
    pub fn reported(&self, functions: &[usize], answer: Option<&str>, results: &Map<String, Value>) -> Result<Verdict> {
        let shown = self.of_tests(functions, self.loaded.shown_tests(functions))?;
        if shown.is_empty() && !self.loaded.tests(functions).is_empty() {
            return Ok(Verdict { pass: true, unchecked: true, ..Verdict::default() });
        }
        Ok(score_answer(self.rule, &shown, answer, &runs(results).0))
    }

    /// Scores the results of verification. For each experiment, by its id, `results` has `{"result": ...}` or
    /// `{"error": "..."}`. The entry of an experiment that ran several times also has `runs`, the list of all results.
    ///
    /// # Errors
    /// Same as [`PaperJudge::expected`].
    pub fn verified(&self, functions: &[usize], results: &Map<String, Value>) -> Result<Verdict> {
        let (runs, failures) = runs(results);
        Ok(score_results(self.rule, &self.expected(functions)?, &runs, &failures))
    }
}

/// The results of each experiment's runs, and the reasons of failed experiments.
fn runs(results: &Map<String, Value>) -> (ExperimentRuns, BTreeMap<String, String>) {
    let (mut runs, mut failures) = (ExperimentRuns::new(), BTreeMap::new());
    for (id, outcome) in results {
        if let Some(all) = outcome.get("runs").and_then(Value::as_array) {
            runs.insert(id.clone(), all.clone());
        } else if let Some(value) = outcome.get("result") {
            runs.insert(id.clone(), vec![value.clone()]);
        } else if let Some(reason) = outcome.get("error").and_then(Value::as_str) {
            failures.insert(id.clone(), reason.to_owned());
        }
    }
    (runs, failures)
}
