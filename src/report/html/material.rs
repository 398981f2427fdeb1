//! The data that an HTML page about runs shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::report::SummaryOptions;
use crate::report::figures::Condition;
use crate::run::family::{ItemFacts, MeasureFacts, WrittenPart};
use crate::run::reading::LinePosition;
use crate::run::{AttemptRecord, Outcome};

/// Runs and everything shown about them, including runs that could only be read in part.
#[derive(Debug, Clone, Default)]
pub struct Material {
    /// Heading of the page.
    pub title: String,
    /// Facts about each run.
    pub runs: Vec<RunFacts>,
    /// Attempts of all runs. With several runs an agent's label begins with the run's name.
    pub records: Vec<Outcome>,
    /// Origin of each record, in the same order.
    pub origins: Vec<Origin>,
    /// Attempts that have a trajectory and no record.
    pub begun: Vec<UnrecordedAttempt>,
    /// Papers or other items by id.
    pub papers: BTreeMap<String, ItemFacts>,
    /// Names of the units that samples withhold, such as functions: by the item's id, then by the unit's index in the
    /// item.
    pub units: BTreeMap<String, BTreeMap<usize, String>>,
    /// Samples by id. A sample is missing if this program does not know its kind of task or cannot parse its id.
    pub samples: BTreeMap<String, SampleFacts>,
    /// Name of the number that measures the samples' difficulty ([`SampleFacts::n`]), such as "masked functions".
    pub axis: String,
    /// The measures that are defined by the families (kinds of task) of the runs, in the order shown.
    pub measures: Vec<MeasureFacts>,
    /// Settings of agents, by label.
    pub conditions: BTreeMap<String, Condition>,
    /// Short name of each agent within its run, by label.
    pub agents: BTreeMap<String, String>,
    /// Options of the summary, and which attempts verifiers chose.
    pub options: SummaryOptions,
    /// Sentences about what could not be read.
    pub notes: Vec<String>,
}

/// Facts about one run.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// The run's name.
    pub name: String,
    /// Start of the run.
    pub created: String,
    /// Other facts, such as settings: pairs of a name and a value, shown unchanged.
    pub facts: Vec<(String, String)>,
}

/// Origin of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Index of the run.
    pub run: usize,
    /// The agent's label in that run.
    pub agent: Arc<str>,
    /// Position of the record in the run's files.
    pub line: Option<LinePosition>,
}

/// An attempt without a record: in progress or interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrecordedAttempt {
    /// Run and agent of the attempt.
    pub origin: Origin,
    /// The agent's label in this page.
    pub agent: String,
    /// The model's name, if the attempt's trajectory contains it.
    pub model: Option<String>,
    /// The sample's id.
    pub sample: String,
    /// The attempt's number.
    pub attempt: u32,
}

/// Facts about a sample for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFacts {
    /// The item that the sample is drawn from.
    pub item: String,
    /// The paper or repo of the sample.
    pub cluster: String,
    /// How much the sample withholds, such as the number of masked functions.
    pub n: usize,
    /// The value of [`Self::n`] in words, such as "1 withheld layer".
    pub extent: String,
    /// Indices of the units that the sample withholds; empty if samples of its kind of task do not withhold units of an
    /// item.
    pub units: Vec<usize>,
}

/// Everything shown about a sample and its attempts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SampleDetails {
    /// The sample's id. Its index may change while a run continues.
    pub id: String,
    /// The question that the agent was asked. `None` if the parts in [`Self::functions`] contain the whole question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Heading above the parts in [`Self::functions`], such as "Masked functions".
    pub heading: String,
    /// Parts to be written, such as masked functions; empty if the item can't be read.
    pub functions: Vec<WrittenPart>,
    /// The attempts.
    pub attempts: Vec<AttemptDetails>,
    /// Why the question and the parts cannot be shown; `None` if they can be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// An attempt's record, or its outcome if the record could not be read.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "named above")]
pub enum ShownRecord {
    Whole(Box<AttemptRecord>),
    Outcome(Box<Outcome>),
}

/// Everything shown about one attempt.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AttemptDetails {
    /// Index of the attempt's agent and model in the page's list of contenders (agents with their models).
    pub contender: usize,
    /// The attempt's number.
    pub attempt: u32,
    /// Outcome, as one word.
    pub state: &'static str,
    /// The attempt's record, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<ShownRecord>,
    /// The text of each masked part after the attempt's changes, in the sample's order; `None` for a part that was not
    /// found in the attempt's files.
    pub written: Vec<Option<String>>,
    /// Why masked parts could not be found in the attempt's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
    /// The attempt's changes as a patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Whether the patch was truncated.
    pub patch_cut: bool,
    /// Events as stored in the trajectory.
    pub events: Vec<Value>,
    /// Errors while reading the attempt's files.
    pub problems: Vec<String>,
}
