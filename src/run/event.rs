//! Events of a run in progress: one stream for every kind of progress display.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::AttemptRecord;
use crate::agent::LiveUsage;
use crate::env;

/// An event of a run.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// A stage of the work before or after the attempts has begun or made progress.
    Stage(Stage),
    /// Progress of building an env.
    Env(env::BuildProgress),
    /// A message for the user, such as a warning.
    Warning(String),
    /// The preparation is complete. Sent before the first attempt.
    Planned {
        /// Planned attempts in total.
        total: usize,
        /// Attempts finished in an earlier session.
        finished: usize,
    },
    /// An attempt has begun.
    Started {
        /// The agent's name.
        agent: String,
        /// The sample's id.
        sample: String,
        /// Number of the attempt.
        attempt: u32,
        /// Steps and cost so far, updated while the attempt runs.
        so_far: Arc<LiveUsage>,
    },
    /// An attempt was lost to infrastructure and is tried again.
    Retried {
        /// The agent's name.
        agent: String,
        /// The sample's id.
        sample: String,
        /// Number of the attempt.
        attempt: u32,
        /// Why the attempt was lost.
        why: String,
    },
    /// An attempt has ended and is in the store.
    Finished(Arc<AttemptRecord>),
}

/// A stage with its progress: "masked runs of `kmeanspp`: 3 of 8 pairs".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The activity, such as "masked runs of". In messages, `subject` follows it.
    pub what: Cow<'static, str>,
    /// The name of the thing being worked on.
    pub subject: String,
    /// Number of completed units.
    pub done: usize,
    /// Number of all units; 0 if nothing is counted.
    pub total: usize,
    /// Name of the units in the plural, such as "pairs".
    pub unit: Cow<'static, str>,
}

impl Stage {
    /// Creates a stage without numbers of units; [`Self::counted`] adds them.
    pub fn new(what: impl Into<Cow<'static, str>>, subject: &str) -> Self {
        Self { what: what.into(), subject: subject.to_owned(), done: 0, total: 0, unit: Cow::Borrowed("") }
    }

    /// Returns the same stage with its progress.
    #[must_use]
    pub fn counted(&self, done: usize, total: usize, unit: impl Into<Cow<'static, str>>) -> Self {
        Self { done, total, unit: unit.into(), ..self.clone() }
    }

    /// Whether `other` is the same stage as this one, whatever their progress.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.what, &self.subject) == (&other.what, &other.subject)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.what, self.subject)?;
        if self.total > 0 {
            write!(f, ": {} of {} {}", self.done, self.total, self.unit)?;
        }
        Ok(())
    }
}

/// A listener for [`RunEvent`]s. Must not block.
pub trait Observer: Send + Sync {
    /// Handles an event. Called from any thread.
    fn on(&self, event: RunEvent);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_stages_are_the_same_if_name_and_subject_agree_whatever_their_progress() {
        let stage = Stage::new("masked runs of", "tiny2");
        let (one, other) = (stage.counted(1, 8, "pairs"), stage.counted(2, 8, "pairs"));
        assert!(one.is_same(&other) && stage.is_same(&one));
        assert!(
            !stage.is_same(&Stage::new("masked runs of", "tiny3"))
                && !stage.is_same(&Stage::new("mutants of", "tiny2"))
        );
        assert_eq!(one.to_string(), "masked runs of `tiny2`: 1 of 8 pairs");
        assert_eq!(stage.to_string(), "masked runs of `tiny2`");
    }
}
