//! Findings about the soundness of an item (a paper or a task), from attempts that need no model: the right solution
//! must pass, and doing nothing or forging results must fail.

use serde::{Deserialize, Serialize};

use super::AttemptRecord;
use crate::score::Verdict;

/// Findings about the soundness of an item (a paper or a task).
#[derive(Debug, Default, Serialize)]
pub struct Soundness {
    /// Id of the item.
    pub item: String,
    /// Attempts with the right solution.
    pub gold: PassCount,
    /// Attempts that do nothing.
    pub noop: PassCount,
    /// Attempts with a forged solution, which satisfies every measure that does not run the agent's code again.
    pub forger: PassCount,
    /// For each part of the right solution (a block of cells in a notebook task), the checks that fail without that
    /// part. Empty for kinds of tasks whose solutions have no such parts.
    pub units: Vec<UnitProof>,
    /// Outcomes of changed solutions. Empty for kinds of tasks without changed solutions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<TrialOutcome>,
    /// Outcomes of changing constants of the right solution, one at a time. `None` for kinds of tasks in which no
    /// constants are changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ConstantChanges>,
    /// Problems of the item.
    pub faults: Vec<SoundnessFault>,
    /// Seconds of all attempts together.
    pub seconds: f64,
}

/// Number of attempts, and number of passes.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct PassCount {
    /// Number of attempts that passed.
    pub passed: usize,
    /// Number of attempts.
    pub made: usize,
}

/// Counts of solutions that were right until one constant in them was changed.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct ConstantChanges {
    /// Number of changed solutions.
    pub made: usize,
    /// Changed solutions that pass although they should not.
    pub unnoticed: usize,
    /// Changed solutions that pass and are declared harmless in the manifest.
    pub harmless: usize,
}

/// Result of checking the right solution without one of its parts.
#[derive(Debug, Serialize)]
pub struct UnitProof {
    /// Name of the part of the solution that was removed.
    pub unit: String,
    /// Names of the checks of a right solution that fail without this part of the solution.
    pub loses: Vec<String>,
}

/// The outcome of an attempt with a changed solution.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialOutcome {
    /// Name of the changed solution, such as "rows: `200` becomes `201`".
    pub name: String,
    /// Whether the changed solution passes.
    pub pass: bool,
    /// Why the attempt failed or, if it passed and the change is listed as harmless, why the change is harmless;
    /// otherwise empty.
    pub why: String,
    /// Seconds of the attempt.
    pub seconds: f64,
}

/// A problem of an item.
#[derive(Debug, Serialize)]
pub struct SoundnessFault {
    /// Description of the problem, as a phrase.
    pub what: String,
    /// Whether the problem is that the right solution does not reach the gold result on this machine. The machine may
    /// be the cause.
    pub baseline: bool,
}

impl Soundness {
    /// Creates empty findings about an item: without attempts and problems.
    #[must_use]
    pub fn new(item: &str) -> Self {
        Self { item: item.to_owned(), ..Self::default() }
    }

    /// Counts one attempt.
    pub fn count(&mut self, record: &AttemptRecord, tally: fn(&mut Self) -> &mut PassCount) {
        self.seconds += record.wall_seconds;
        let tally = tally(self);
        tally.made += 1;
        tally.passed += usize::from(record.pass);
    }

    /// Adds a problem of the item.
    pub fn fault(&mut self, what: String) {
        self.faults.push(SoundnessFault { what, baseline: false });
    }

    /// Adds the problem that the right solution does not reach gold.
    pub fn unreached(&mut self, what: String) {
        self.faults.push(SoundnessFault { what, baseline: true });
    }
}

/// Describes in one line why a verdict is not a pass, or why the attempt has no verdict.
#[must_use]
pub fn why(record: &AttemptRecord) -> String {
    let failed = |verdict: &Verdict| {
        let experiment = verdict.experiments.iter().find(|experiment| !experiment.pass)?;
        let value = experiment.values.iter().find(|value| !value.pass);
        let value = value.map(|value| format!("`{}`: {}", value.path, value.reason.as_deref().unwrap_or("wrong")));
        let reason = experiment.reason.clone().or(value)?;
        Some(format!("{}: {reason}", experiment.experiment))
    };
    let of = |verdict: &Verdict| verdict.reason.clone().or_else(|| failed(verdict));
    let verdicts = record.verified.iter().chain(&record.reported);
    let detail = || record.end_detail.clone().unwrap_or_else(|| "the verdicts give no reason".to_owned());
    verdicts.filter(|verdict| !verdict.pass).find_map(of).unwrap_or_else(detail)
}
