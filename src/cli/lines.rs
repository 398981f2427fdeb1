//! What is printed for machines a line at a time, as types, so that it has schemas.

use schemars::JsonSchema;
use serde::Serialize;

use crate::agent::End;

/// A line of `--json-events`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventLine<'a> {
    /// What happened.
    #[serde(flatten)]
    pub told: Told<'a>,
    /// When.
    pub time: jiff::Timestamp,
}

/// What happened in a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Told<'a> {
    /// A stage of the preparation has begun.
    Stage {
        /// Which.
        what: &'a str,
    },
    /// Something that the user should know.
    Warning {
        /// What.
        what: &'a str,
    },
    /// The preparation is over.
    Planned {
        /// Attempts in all.
        total: usize,
        /// Of these, the ones that earlier sessions have finished.
        finished: usize,
    },
    /// An attempt has begun.
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
        /// The sample's id.
        sample: &'a str,
        /// Why.
        why: &'a str,
    },
    /// An attempt has ended and is in the store.
    Finished {
        /// The agent's label.
        agent: &'a str,
        /// The model's name, null for agents without one.
        model: Option<&'a str>,
        /// The sample's id.
        sample: &'a str,
        /// Number of the attempt at its sample, from 0.
        attempt: u32,
        /// `pass`, `fail` or `lost`.
        outcome: &'a str,
        /// Why it stopped.
        end: End,
        /// More about the end.
        detail: Option<&'a str>,
        /// Replies of the model.
        steps: u32,
        /// Dollars.
        cost: f64,
        /// Seconds from start to end.
        seconds: f64,
    },
    /// The session has ended.
    Ended {
        /// The run's name.
        run: &'a str,
        /// `complete`, `lost`, `interrupted`, `cost_limit`, or `unverified` when a verifier failed.
        outcome: &'a str,
    },
}

/// A line of `autoexperiment sample`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SampleLine<'a> {
    /// The sample's id, as `kmeanspp_0,3`.
    pub sample: &'a str,
    /// The paper's id.
    pub paper: &'a str,
    /// Number of masked functions.
    pub n: usize,
    /// The masked functions' selectors.
    pub functions: Vec<String>,
    /// Ids of the experiments that need any of them.
    pub experiments: Vec<String>,
}
