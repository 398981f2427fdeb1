//! What a session gives back.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::run::scheduler::Outcome;
use crate::run::{AttemptRecord, Planned};
use crate::verifier::stored::ChoiceRecord;

/// A session that has come to its end, and the run as it is stored now.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub outcome: Outcome,
    /// The run's folder. A new run that was not started has none yet.
    pub folder: PathBuf,
    /// How many attempts the run is to have, by agent and n.
    pub planned: Vec<Planned>,
    /// The records of all sessions, in the order of writing.
    pub records: Vec<AttemptRecord>,
    /// What the verifiers chose.
    pub choices: Vec<ChoiceRecord>,
    /// Why verifiers did not finish, if one of them failed.
    pub unverified: Option<Error>,
}

impl Finished {
    /// A session that was stopped before its first attempt.
    pub(super) fn not_started(folder: &Path, planned: Vec<Planned>) -> Self {
        Self {
            outcome: Outcome::NotStarted,
            folder: folder.to_owned(),
            planned,
            records: Vec::new(),
            choices: Vec::new(),
            unverified: None,
        }
    }

    /// Whether any attempt failed. Lost ones did not.
    #[must_use]
    pub fn any_failed(&self) -> bool {
        self.records.iter().any(|record| !record.is_infrastructure() && !record.pass)
    }
}
