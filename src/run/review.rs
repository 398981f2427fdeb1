//! Reviews an attempt's work between two rounds. The work is verified in fresh sandboxes, as at the end, and the agent
//! gets as much feedback as the configured level allows. Feedback never contains gold values, only whether a value is
//! above or below gold.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::attempt::{AttemptInProgress, RunContext};
use super::family::{AttemptOutput, Collected, ScoringInput};
use super::record::Round;
use crate::agent::prompts::dynamic::{TestFeedback, feedback};
use crate::agent::review::{ReviewRequest, Reviewer, lost};
use crate::agent::{AttemptEnd, Trajectory};
use crate::error::Result;
use crate::sandbox::Sandbox;
use crate::score::{ExperimentVerdict, ValueVerdict, Verdict};
use crate::workspace::{ChangeLimits, Workspace};

/// Verifies an attempt's work before its end, and gives its agent feedback on the tests.
pub(super) struct Review<'a> {
    run: &'a RunContext,
    under: AttemptInProgress<'a>,
    workspace: &'a Workspace,
    cancel: CancellationToken,
    rounds: Mutex<Vec<Round>>,
}

impl RunContext {
    /// Creates the reviewer of an attempt.
    pub(super) fn reviewer<'a>(
        &'a self,
        under: AttemptInProgress<'a>,
        workspace: &'a Workspace,
        cancel: &CancellationToken,
    ) -> Review<'a> {
        Review { run: self, under, workspace, cancel: cancel.clone(), rounds: Mutex::default() }
    }
}

impl Review<'_> {
    /// The verdicts after each round.
    pub fn rounds(self) -> Vec<Round> {
        self.rounds.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[async_trait]
impl Reviewer for Review<'_> {
    async fn review(
        &self,
        asked: ReviewRequest,
        answer: Option<&str>,
        sandbox: &mut dyn Sandbox,
        trajectory: &mut Trajectory,
    ) -> Result<Option<String>, AttemptEnd> {
        let is_aside = sandbox.look(&self.workspace.aside()).await?;
        self.judged(asked, answer, is_aside, trajectory).await.map_err(|error| lost(&error))
    }
}

impl Review<'_> {
    /// Verifies and scores the agent's files. Returns the feedback for the agent. If the feedback level is above 0 and
    /// all checks that the agent may see pass, returns `None` instead, which ends the attempt. `is_aside` says whether
    /// to read the files from a copy of the workspace instead of the workspace itself.
    async fn judged(
        &self,
        asked: ReviewRequest,
        answer: Option<&str>,
        is_aside: bool,
        trajectory: &mut Trajectory,
    ) -> Result<Option<String>> {
        let limits = ChangeLimits::default();
        let changes = tokio::task::block_in_place(|| {
            if is_aside { self.workspace.changes_aside(&limits) } else { self.workspace.changes(&limits) }
        })?;
        let observed = Map::new();
        let mut results = Map::new();
        let AttemptInProgress { ready, job, .. } = self.under;
        let item = ready.item();
        let mut verified = None;
        let mut stderr = BTreeMap::new();
        if self.run.configuration.verify {
            let work = Collected::default();
            let evidence = AttemptOutput { answer, changes: &changes, work: &work };
            let verification = self.run.verify(self.under, &evidence, trajectory, &self.cancel).await?;
            stderr = verification.stderr;
            results = verification.results;
            let findings = ScoringInput { answer, observed: &observed, results: &results };
            verified = Some(item.verified(&job.sample, &findings)?);
        }
        let reported = item.reported(&job.sample, &ScoringInput { answer, observed: &observed, results: &results })?;
        let pass = reported.pass && verified.as_ref().is_none_or(|verdict| verdict.pass);
        let round = Round {
            pass,
            reported: reported.pass,
            verified: verified.as_ref().map(|verdict| verdict.pass),
            steps: asked.steps,
            cost: asked.cost,
        };
        self.rounds.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(round);
        // Feedback must not reveal whether hidden checks pass, so only the visible checks decide whether the attempt
        // ends after this round.
        let mut shown = pass;
        if let Some(verdict) = &mut verified {
            let all = verdict.experiments.len();
            verdict.experiments.retain(|one| ready.hidden_snapshot(&one.experiment).is_none());
            if verdict.experiments.len() < all {
                shown = reported.pass && verdict.experiments.iter().all(|one| one.pass);
            }
        }
        // Feedback at level 0 must not tell the agent whether its work passes, so the attempt continues even if the
        // work passes. In a later round, the agent may break this work.
        if shown && asked.level > 0 {
            return Ok(None);
        }
        let told = tests(asked.level, &reported, verified.as_ref().map(|verdict| (verdict, &results)), &stderr);
        Ok(Some(feedback(asked.level, &told)))
    }
}

/// The feedback on each test.
fn tests(
    level: u32,
    reported: &Verdict,
    verified: Option<(&Verdict, &Map<String, Value>)>,
    stderr: &BTreeMap<String, String>,
) -> Vec<TestFeedback> {
    let of = |verdict: &Verdict, id: &str| verdict.experiments.iter().find(|one| one.experiment == id).cloned();
    let names = verified.map_or(&reported.experiments, |(verdict, _)| &verdict.experiments);
    names
        .iter()
        .map(|one| {
            let id = &one.experiment;
            let report = of(reported, id);
            let code = verified.map(|_| one.pass);
            let verdict = match (code, report.as_ref().map(|report| report.pass)) {
                (Some(true), Some(true) | None) | (None, Some(true)) => "right",
                (Some(true), Some(false)) => "the code is right, the reported result is not what it should be",
                (Some(false), Some(true)) => "the reported result is right, but the code does not give it",
                (Some(false), _) => "the code does not give the right result",
                (None, _) => "the reported result is wrong",
            };
            let mut told = TestFeedback { key: id.clone(), verdict: verdict.to_owned(), ..TestFeedback::default() };
            if level >= 3 {
                let failure = verified.and_then(|(_, results)| results.get(id)?.get("error")?.as_str());
                let is_wrong = |one: &&ExperimentVerdict| !one.pass;
                if let Some(why) = failure {
                    told.faults.push(format!("it gave no result: {why}"));
                    told.stderr = stderr.get(id).cloned().unwrap_or_default();
                } else if let Some(wrong) = Some(one).filter(is_wrong).or(report.as_ref().filter(is_wrong)) {
                    told.faults = wrong.values.iter().filter(|value| !value.pass).map(|it| fault(level, it)).collect();
                    if told.faults.is_empty() {
                        told.faults.push("its shape is not the one that the description asks for".to_owned());
                    }
                }
            }
            told
        })
        .collect()
}

/// Describes a wrong value: its path and, at the highest level, whether it is above or below gold.
fn fault(level: u32, value: &ValueVerdict) -> String {
    let place = if value.path.is_empty() { "the value".to_owned() } else { format!("`{}`", value.path) };
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    let what = match (&value.got, value.gold.as_f64()) {
        (None, _) => "is missing",
        (Some(_), None) => "is wrong",
        (Some(got), Some(gold)) => match number(got).filter(|number| number.is_finite()) {
            None => "is not a finite number",
            Some(number) if level >= 4 && number > gold => "is too high",
            Some(_) if level >= 4 => "is too low",
            Some(_) => "is wrong",
        },
    };
    format!("{place} {what}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::score::{Expected, Rule, Tolerance, score_answer, score_results};

    fn write_feedback(level: u32, results: &Value, errors: &[(&str, &str)]) -> String {
        let expected = |id: &str, gold: Value| Expected {
            id: id.to_owned(),
            key: id.to_owned(),
            gold,
            tolerance: Tolerance::default(),
        };
        let experiments =
            [expected("means", json!({"a": 41.375, "b": [7.125, 8.625]})), expected("table", json!({"x": 3.0625}))];
        let failures = errors.iter().map(|(id, why)| ((*id).to_owned(), (*why).to_owned())).collect();
        let results = results.as_object().unwrap();
        let mut kept: Map<String, Value> =
            results.iter().map(|(id, value)| (id.clone(), json!({ "result": value }))).collect();
        kept.extend(errors.iter().map(|(id, why)| ((*id).to_owned(), json!({ "error": why }))));
        let runs = results.iter().map(|(id, value)| (id.clone(), vec![value.clone()])).collect();
        let verified = score_results(Rule::Strict, &experiments, &runs, &failures);
        let reported = score_answer(Rule::Strict, &experiments, Some(&json!(results).to_string()), &runs);
        let stderr = errors.iter().map(|(id, _)| ((*id).to_owned(), "Traceback: here".to_owned())).collect();
        feedback(level, &tests(level, &reported, Some((&verified, &kept)), &stderr))
    }

    #[test]
    fn feedback_reveals_only_what_its_level_permits_and_never_a_gold_value() {
        let wrong = json!({"means": {"a": 50.0, "b": [7.125, 1.0]}});
        let errors = [("table", "exit code 1")];
        let all: Vec<String> = (0..=4).map(|level| write_feedback(level, &wrong, &errors)).collect();
        for text in &all {
            for gold in ["41.375", "8.625", "3.0625"] {
                assert!(!text.contains(gold), "{text}");
            }
        }
        assert!(all[0].contains("Nothing is told") && !all[0].contains("pass"), "{}", all[0]);
        assert!(all[1].contains("does not pass") && !all[1].contains("means"), "{}", all[1]);
        assert!(all[2].contains("- means: the code does not give") && !all[2].contains("`a`"), "{}", all[2]);
        for part in ["`a` is wrong", "`b[1]` is wrong", "it gave no result: exit code 1", "Traceback: here"] {
            assert!(all[3].contains(part), "{part}: {}", all[3]);
        }
        for part in ["`a` is too high", "`b[1]` is too low", "Traceback: here"] {
            assert!(all[4].contains(part), "{part}: {}", all[4]);
        }
        assert!(!all[4].contains("b[0]"), "what is right is not named: {}", all[4]);
    }
}
