//! What a page is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::report::Options;
use crate::report::figures::Condition;
use crate::run::AttemptRecord;
use crate::run::family::{ItemFacts, Part};
use crate::run::reading::Line;

/// Runs and what is known of them, as far as it could be read.
#[derive(Debug, Clone, Default)]
pub struct Material {
    /// The heading.
    pub title: String,
    /// The runs.
    pub runs: Vec<RunFacts>,
    /// Their attempts. With several runs an agent's label begins with the run's name.
    pub records: Vec<AttemptRecord>,
    /// Where each record comes from, in the same order.
    pub origins: Vec<Origin>,
    /// Attempts that have a trajectory and no record.
    pub begun: Vec<Begun>,
    /// The papers or other items, by id.
    pub papers: BTreeMap<String, ItemFacts>,
    /// Names of what items withhold, as functions, by item and place.
    pub units: BTreeMap<String, BTreeMap<usize, String>>,
    /// The samples, by id, as far as their family can read them.
    pub samples: BTreeMap<String, SampleFacts>,
    /// What n counts.
    pub axis: String,
    /// What was set for agents, by label.
    pub conditions: BTreeMap<String, Condition>,
    /// What an agent is called beside others of its run, by its label.
    pub agents: BTreeMap<String, String>,
    /// How rows are made, and what verifiers chose.
    pub options: Options,
    /// What could not be read, a sentence each.
    pub notes: Vec<String>,
}

/// One run.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// Its name.
    pub name: String,
    /// When it was started.
    pub created: String,
    /// Names and values, to be shown as they are.
    pub facts: Vec<(String, String)>,
}

/// Where a record comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The run's place.
    pub run: usize,
    /// The agent's label in that run.
    pub agent: Arc<str>,
    /// Where the record stands in the run's files.
    pub line: Option<Line>,
}

/// An attempt without a record: under way, or cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Where it comes from.
    pub origin: Origin,
    /// The agent's label in this page.
    pub agent: String,
    /// The model's name, where its trajectory says.
    pub model: Option<String>,
    /// The sample's id.
    pub sample: String,
    /// The attempt's number.
    pub attempt: u32,
}

/// What is shown of a sample in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFacts {
    /// The item that it is drawn from.
    pub item: String,
    /// The paper or repo that it belongs to.
    pub cluster: String,
    /// Its value on the difficulty axis.
    pub n: usize,
    /// The same in words.
    pub extent: String,
    /// Places of what it withholds, in families that withhold units of an item.
    pub units: Vec<usize>,
}

/// All that is shown of a sample's attempts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SampleDetails {
    /// The sample's id: places change while a run goes on.
    pub id: String,
    /// What was asked, where the parts do not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// What the parts are, as a heading.
    pub heading: String,
    /// The parts that were to be written, as masked functions, as far as the item can be read.
    pub functions: Vec<Part>,
    /// The attempts.
    pub attempts: Vec<AttemptDetails>,
    /// What is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One attempt, whole.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AttemptDetails {
    /// Place of its agent and model in the index.
    pub contender: usize,
    /// Its number.
    pub attempt: u32,
    /// What came of it, in a word.
    pub state: &'static str,
    /// Its record, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<AttemptRecord>,
    /// The parts as it left them, in the sample's order; `None` where one could not be found.
    pub written: Vec<Option<String>>,
    /// Why parts could not be found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
    /// Its changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Whether only the beginning of the changes is here.
    pub patch_cut: bool,
    /// Its events, as they are stored.
    pub events: Vec<Value>,
    /// What could not be read of it.
    pub problems: Vec<String>,
}
