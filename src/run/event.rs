//! What a run reports while it is running: one stream for everything that shows it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::AttemptRecord;
use crate::agent::SoFar;
use crate::env;

/// Something happened in a run.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// A stage of the work before or after the attempts has begun, or got further.
    Stage(Stage),
    /// The progress of an env's build.
    Env(env::Progress),
    /// Something that the user should know. Sent once.
    Warning(String),
    /// The preparation is over, and this many attempts are planned and already finished.
    Planned {
        /// Attempts in all.
        total: usize,
        /// Finished in an earlier session.
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
        /// What it has used, which goes on with it.
        so_far: Arc<SoFar>,
    },
    /// An attempt was lost to infrastructure and is tried again.
    Retried {
        /// The sample's id.
        sample: String,
        /// Why.
        why: String,
    },
    /// An attempt has ended and is in the store.
    Finished(Arc<AttemptRecord>),
}

/// What is being done, and how far it is: "masked runs of `kmeanspp`: 3 of 8 pairs".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// What is being done, as "masked runs of".
    pub what: Cow<'static, str>,
    /// The name of what it is done to.
    pub subject: String,
    /// How much is done.
    pub done: usize,
    /// Of how much; 0 where nothing is counted.
    pub total: usize,
    /// Of what, as "pairs".
    pub unit: Cow<'static, str>,
}

impl Stage {
    /// A stage in which nothing is counted.
    pub fn new(what: impl Into<Cow<'static, str>>, subject: &str) -> Self {
        Self { what: what.into(), subject: subject.to_owned(), done: 0, total: 0, unit: Cow::Borrowed("") }
    }

    /// The same stage, this far.
    #[must_use]
    pub fn counted(&self, done: usize, total: usize, unit: impl Into<Cow<'static, str>>) -> Self {
        Self { done, total, unit: unit.into(), ..self.clone() }
    }

    /// Whether the two are the same stage, however far it is.
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
    /// Called for each event, from any thread.
    fn on(&self, event: RunEvent);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_the_same_however_far_it_is_and_another_about_something_else() {
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
