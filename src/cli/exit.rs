//! The exit codes, by which scripts distinguish failures.

use crate::error::FailureKind;
use crate::run::scheduler::RunOutcome;

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ProgramExit {
    /// Success.
    Done = 0,
    /// A bug in this program.
    Bug = 1,
    /// A wrong command line, or a name that does not exist or is taken; clap's own errors as well.
    Usage = 2,
    /// A faulty suite.
    Suite = 3,
    /// Gold is not reproduced.
    Baseline = 4,
    /// The machine lacks something that the program needs.
    Machine = 5,
    /// The model cannot be used, or its price is unknown.
    Model = 6,
    /// A problem with the run store.
    Store = 7,
    /// Attempts were lost to infrastructure.
    Lost = 8,
    /// With `--require-pass`, at least one attempt failed.
    Failed = 9,
    /// `--max-cost` was reached.
    CostLimit = 10,
    /// The model's provider is down, or refuses every request.
    Provider = 11,
    /// A folder that the program needs is not usable.
    Place = 12,
    /// Ctrl-C or a termination signal.
    Interrupted = 130,
}

impl ProgramExit {
    /// Returns the exit code as a number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the exit code for the outcome of `run` or `resume`. `failed` is whether all attempts were required to
    /// pass and at least one failed.
    pub(super) const fn from_outcome(outcome: &RunOutcome, failed: bool) -> Self {
        match outcome {
            RunOutcome::Complete | RunOutcome::Left(_) if failed => Self::Failed,
            RunOutcome::Complete | RunOutcome::Left(_) => Self::Done,
            RunOutcome::Lost(_) => Self::Lost,
            RunOutcome::Interrupted | RunOutcome::NotStarted => Self::Interrupted,
            RunOutcome::CostLimit => Self::CostLimit,
        }
    }
}

impl From<FailureKind> for ProgramExit {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Internal => Self::Bug,
            FailureKind::Usage | FailureKind::Taken => Self::Usage,
            FailureKind::Suite => Self::Suite,
            FailureKind::Baseline => Self::Baseline,
            FailureKind::Machine => Self::Machine,
            FailureKind::Place => Self::Place,
            FailureKind::Model => Self::Model,
            FailureKind::Provider => Self::Provider,
            FailureKind::Store => Self::Store,
            FailureKind::Infrastructure => Self::Lost,
            FailureKind::CostLimit => Self::CostLimit,
            FailureKind::Interrupted => Self::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_of_a_run_has_its_exit_code() {
        let lost = RunOutcome::Lost(vec!["why".to_owned()]);
        for (outcome, failed, code) in [
            (RunOutcome::Complete, false, 0),
            (RunOutcome::Complete, true, 9),
            (RunOutcome::Left(1), false, 0),
            (lost.clone(), false, 8),
            (lost, true, 8),
            (RunOutcome::CostLimit, true, 10),
            (RunOutcome::Interrupted, true, 130),
            (RunOutcome::NotStarted, false, 130),
        ] {
            assert_eq!(ProgramExit::from_outcome(&outcome, failed).code(), code, "{outcome:?}");
        }
        assert_eq!(ProgramExit::from(FailureKind::Taken), ProgramExit::Usage);
    }
}
