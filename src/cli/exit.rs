//! The exit codes, by which scripts distinguish failures.

use crate::error::Kind;
use crate::run::scheduler::Outcome;

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
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
    /// The machine lacks something.
    Machine = 5,
    /// A problem with the model or its price.
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

impl Exit {
    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Maps the outcome of a session to an exit code. `failed` is whether an attempt failed that was required to pass.
    pub const fn of(outcome: &Outcome, failed: bool) -> Self {
        match outcome {
            Outcome::Complete | Outcome::Left(_) if failed => Self::Failed,
            Outcome::Complete | Outcome::Left(_) => Self::Done,
            Outcome::Lost(_) => Self::Lost,
            Outcome::Interrupted | Outcome::NotStarted => Self::Interrupted,
            Outcome::CostLimit => Self::CostLimit,
        }
    }
}

impl From<Kind> for Exit {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Internal => Self::Bug,
            Kind::Usage | Kind::Taken => Self::Usage,
            Kind::Suite => Self::Suite,
            Kind::Baseline => Self::Baseline,
            Kind::Machine => Self::Machine,
            Kind::Place => Self::Place,
            Kind::Model => Self::Model,
            Kind::Provider => Self::Provider,
            Kind::Store => Self::Store,
            Kind::Infrastructure => Self::Lost,
            Kind::CostLimit => Self::CostLimit,
            Kind::Interrupted => Self::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_session_has_its_code() {
        let lost = Outcome::Lost(vec!["why".to_owned()]);
        for (outcome, failed, code) in [
            (Outcome::Complete, false, 0),
            (Outcome::Complete, true, 9),
            (Outcome::Left(1), false, 0),
            (lost.clone(), false, 8),
            (lost, true, 8),
            (Outcome::CostLimit, true, 10),
            (Outcome::Interrupted, true, 130),
            (Outcome::NotStarted, false, 130),
        ] {
            assert_eq!(Exit::of(&outcome, failed).code(), code, "{outcome:?}");
        }
        assert_eq!(Exit::from(Kind::Taken), Exit::Usage);
    }
}
