//! The result of a session.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::run::scheduler::RunOutcome;
use crate::run::{AttemptRecord, PlannedAttempts};
use crate::verifier::stored::ChoiceRecord;

/// The result of a session, and the stored run as it is now.
#[derive(Debug)]
pub struct Finished {
    /// How the session ended.
    pub outcome: RunOutcome,
    /// The run's folder; the folder of a new run doesn't exist if the session was stopped while the run was being
    /// prepared.
    pub folder: PathBuf,
    /// Planned numbers of attempts, by agent and by n (such as the number of masked functions).
    pub planned: Vec<PlannedAttempts>,
    /// Records of all sessions, in the order of writing.
    pub records: Vec<AttemptRecord>,
    /// The verifiers' choices.
    pub choices: Vec<ChoiceRecord>,
    /// Error that kept a verifier from finishing, if any.
    pub unverified: Option<Error>,
}

impl Finished {
    /// The result of a session that was stopped before its first attempt.
    pub(super) fn not_started(folder: &Path, planned: Vec<PlannedAttempts>) -> Self {
        Self {
            outcome: RunOutcome::NotStarted,
            folder: folder.to_owned(),
            planned,
            records: Vec::new(),
            choices: Vec::new(),
            unverified: None,
        }
    }

    /// Whether any attempt failed. Attempts that were lost to infrastructure failures do not count as failed.
    #[must_use]
    pub fn any_failed(&self) -> bool {
        self.records.iter().any(|record| !record.is_infrastructure() && !record.pass)
    }
}
