//! Types of the lines printed for machines, from which their schemas are made.

use schemars::JsonSchema;
use serde::Serialize;

use crate::agent::End;

/// A line of `--json-events`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventLine<'a> {
    /// The event.
    #[serde(flatten)]
    pub told: EventPayload<'a>,
    /// Time of the event.
    pub time: jiff::Timestamp,
}

/// An event of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Told")]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventPayload<'a> {
    /// A stage of the preparation began.
    Stage {
        /// Name of the stage.
        what: &'a str,
    },
    /// A warning for the user.
    Warning {
        /// Text of the warning.
        what: &'a str,
    },
    /// The preparation is finished.
    Planned {
        /// Total number of attempts.
        total: usize,
        /// Attempts finished by earlier sessions.
        finished: usize,
    },
    /// An attempt began.
    Started {
        /// The agent's label.
        agent: &'a str,
        /// The sample's id.
        sample: &'a str,
        /// Number of the attempt at its sample, from 0.
        attempt: u32,
    },
    /// An attempt was lost to infrastructure and is tried again.
    Retried {
        /// The agent's label.
        agent: &'a str,
        /// The sample's id.
        sample: &'a str,
        /// Number of the attempt at its sample, from 0.
        attempt: u32,
        /// Why the attempt was lost.
        why: &'a str,
    },
    /// An attempt ended and is stored.
    Finished {
        /// The agent's label.
        agent: &'a str,
        /// The model's name; null for agents without a model.
        model: Option<&'a str>,
        /// The sample's id.
        sample: &'a str,
        /// Number of the attempt at its sample, from 0.
        attempt: u32,
        /// `pass`, `fail` or `lost`.
        outcome: &'a str,
        /// Why the attempt stopped.
        end: End,
        /// Details of the end.
        detail: Option<&'a str>,
        /// Number of steps: model replies or, of an agent without a model, the calls that it made.
        steps: u32,
        /// Cost in dollars.
        cost: f64,
        /// Seconds from start to end.
        seconds: f64,
    },
    /// The session ended.
    Ended {
        /// The run's name.
        run: &'a str,
        /// `complete`, `lost`, `interrupted`, `cost_limit`, or `unverified` if a verifier failed.
        outcome: &'a str,
    },
}

/// A line of `autoexperiment sample`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SampleLine<'a> {
    /// The sample's id, such as `kmeanspp_0,3`.
    pub sample: &'a str,
    /// The paper's id.
    pub paper: &'a str,
    /// Number of masked functions.
    pub n: usize,
    /// The masked functions' selectors.
    pub functions: Vec<String>,
    /// Ids of the experiments that need at least one of these functions.
    pub experiments: Vec<String>,
}
