//! The index: the data that the page's script has from the start. It lists agents, papers, samples and the outcomes of
//! their attempts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use serde_json::{Value, json};

use super::material::{Material, Origin, SampleDetails};
use crate::agent::End;
use crate::error::{Error, Result};
use crate::report::{end_name, full_name};
use crate::run::{Outcome, counting};

/// Callback for the details of a sample, by its index in [`samples`].
pub struct Details<'a> {
    samples: usize,
    of: &'a (dyn Fn(usize) -> SampleDetails + Sync),
}

impl<'a> Details<'a> {
    /// Creates the callback: `of` returns the details of a sample by its index; `samples` is the number of samples.
    #[must_use]
    pub fn new(samples: usize, of: &'a (dyn Fn(usize) -> SampleDetails + Sync)) -> Self {
        Self { samples, of }
    }

    pub(super) const fn samples(&self) -> usize {
        self.samples
    }

    pub(super) fn sample(&self, place: usize) -> SampleDetails {
        (self.of)(place)
    }

    /// Returns one sample's details as JSON. They contain the names of all agents and models, because the sample's
    /// attempts refer to them by index.
    ///
    /// # Errors
    /// Kind `Internal` if serialisation fails.
    pub fn json(&self, place: usize, material: &Material) -> Result<Value> {
        let mut details = serde_json::to_value(self.sample(place))
            .map_err(|error| Error::internal("failed to write a sample's details").because(error))?;
        details["contenders"] = contenders(material).iter().map(shown_name).collect();
        Ok(details)
    }
}

/// One sample and its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleEntry {
    /// The sample's id.
    pub id: String,
    /// The paper or repo of the sample.
    pub paper: String,
    /// The sample's n, such as the number of masked functions.
    pub n: usize,
    /// Attempts, sorted by agent and then by number.
    pub attempts: Vec<AttemptEntry>,
}

/// One attempt in the list of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEntry {
    /// Index of the agent and model in the list that `contenders` returns.
    pub contender: usize,
    /// The attempt's number.
    pub attempt: u32,
    /// Outcome: `pass`, `fail`, `unsupported`, `lost` or `begun`.
    pub state: &'static str,
    /// Why the attempt ended; `None` without a record.
    pub end: Option<End>,
    /// Index in [`Material::records`].
    pub record: Option<usize>,
    /// Index in [`Material::begun`].
    pub begun: Option<usize>,
}

/// An agent and its model.
type ContenderName = (String, Option<String>);

/// Returns all agents with their models, sorted by name; those that have no record yet come last.
pub(super) fn contenders(material: &Material) -> Vec<ContenderName> {
    let of_records: BTreeSet<(&str, Option<&str>)> =
        material.records.iter().map(|record| (&*record.agent, record.model.as_deref())).collect();
    let mut found: Vec<ContenderName> =
        of_records.into_iter().map(|(agent, model)| (agent.to_owned(), model.map(str::to_owned))).collect();
    for begun in &material.begun {
        if contender_of(&found, begun).is_none() {
            found.push((begun.agent.clone(), begun.model.clone()));
        }
    }
    found
}

fn shown_name((agent, model): &ContenderName) -> String {
    full_name(agent, model.as_deref())
}

fn contender_of(contenders: &[ContenderName], begun: &super::UnrecordedAttempt) -> Option<usize> {
    let same =
        |(agent, model): &ContenderName| *agent == begun.agent && (*model == begun.model || begun.model.is_none());
    contenders.iter().position(same)
}

/// Returns the origin of each agent and model: the run, and the agent's label in that run.
fn origins(material: &Material) -> BTreeMap<(&str, Option<&str>), &Origin> {
    let of_records = material.records.iter().zip(&material.origins);
    let of_records = of_records.map(|(record, origin)| ((&*record.agent, record.model.as_deref()), origin));
    let of_begun = material.begun.iter();
    let of_begun = of_begun.map(|begun| ((begun.agent.as_str(), begun.model.as_deref()), &begun.origin));
    of_records.chain(of_begun).collect()
}

/// Outcome of an attempt, as a word that the page shows with a symbol.
#[must_use]
pub(super) fn state(record: &Outcome) -> &'static str {
    match (record.is_infrastructure(), record.pass, record.is_unsupported()) {
        (true, ..) if record.is_stopped() => "begun",
        (true, ..) => "lost",
        (_, true, _) => "pass",
        (_, _, true) => "unsupported",
        _ => "fail",
    }
}

/// Returns all attempted samples, sorted by paper, n and id. Each attempt comes with the record from which rates are
/// computed (see [`counting`]), or without a record if it has none yet.
#[must_use]
pub fn samples(material: &Material) -> Vec<SampleEntry> {
    let contenders = contenders(material);
    let places: HashMap<(&str, Option<&str>), usize> = contenders
        .iter()
        .enumerate()
        .map(|(place, (agent, model))| ((agent.as_str(), model.as_deref()), place))
        .collect();
    let mut found: BTreeMap<(&str, usize, &str), Vec<AttemptEntry>> = BTreeMap::new();
    for (place, (record, counts)) in material.records.iter().zip(counting(&material.records)).enumerate() {
        if !counts {
            continue;
        }
        let contender = places.get(&(&*record.agent, record.model.as_deref())).copied().unwrap_or_default();
        found.entry((&record.paper, record.n, &record.sample)).or_default().push(AttemptEntry {
            contender,
            attempt: record.attempt,
            state: state(record),
            end: Some(record.end),
            record: Some(place),
            begun: None,
        });
    }
    for (place, begun) in material.begun.iter().enumerate() {
        let facts = material.samples.get(&begun.sample).map(|facts| (facts.cluster.as_str(), facts.n));
        let (cluster, n) = facts.or_else(|| known(material, &begun.sample)).unwrap_or_default();
        found.entry((cluster, n, &begun.sample)).or_default().push(AttemptEntry {
            contender: contender_of(&contenders, begun).unwrap_or_default(),
            attempt: begun.attempt,
            state: "begun",
            end: None,
            record: None,
            begun: Some(place),
        });
    }
    found
        .into_iter()
        .map(|((paper, n, id), mut attempts)| {
            attempts.sort_by_key(|entry| (entry.contender, entry.attempt));
            attempts.shrink_to_fit();
            SampleEntry { id: id.to_owned(), paper: paper.to_owned(), n, attempts }
        })
        .collect()
}

/// Returns the paper or repo of a sample that already has a record, and the number n of units (such as functions) that
/// the sample withholds.
fn known<'a>(material: &'a Material, sample: &str) -> Option<(&'a str, usize)> {
    let record = material.records.iter().find(|record| &*record.sample == sample)?;
    Some((&record.paper, record.n))
}

/// Returns the text of the paper with this index, which the page loads separately; `None` if there is no such paper.
#[must_use]
pub fn papers_text(material: &Material, place: usize) -> Option<Value> {
    material.papers.iter().nth(place).map(|(id, paper)| json!({ "id": id, "text": paper.text }))
}

/// Outcomes of attempts; the index stores positions in this list.
const STATES: [&str; 5] = ["pass", "fail", "unsupported", "lost", "begun"];

/// Text that the page shows in place of the reason why an attempt ended, if the attempt has no record.
const UNENDED: &str = "not_finished";

/// Data that the page's script has from the start.
#[derive(Debug, Serialize)]
pub struct Index {
    states: [&'static str; 5],
    /// Reasons why attempts ended; [`UNENDED`] for attempts without a record.
    ends: Vec<String>,
    contenders: Vec<Value>,
    samples: Vec<IndexedSample>,
    papers: serde_json::Map<String, Value>,
    /// The key of a page that is read from a file. The page's script uses only details that contain the same key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Identifies the state that the server shows. The page's script requests this text again and again, to notice
    /// changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// Name of the folder next to the page with the data that is not in the page; absent if all data is in the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
}

/// A sample in the index. The field names are short because there may be many samples.
#[derive(Debug, Serialize)]
struct IndexedSample {
    id: String,
    paper: String,
    item: String,
    n: usize,
    extent: String,
    /// Indexes of the units (such as functions) that the sample withholds. The units' names are in [`Index`]'s field
    /// `papers`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    units: Vec<usize>,
    /// Four numbers for each attempt, in one flat list: index of the agent and model, number of the attempt, index in
    /// `states`, index in `ends`.
    tries: Vec<usize>,
}

/// Builds the index.
#[must_use]
pub fn index(material: &Material) -> Index {
    let origins = origins(material);
    let contenders: Vec<Value> = contenders(material)
        .iter()
        .map(|contender| {
            let origin = origins.get(&(contender.0.as_str(), contender.1.as_deref()));
            let own = origin.map(|origin| full_name(&origin.agent, contender.1.as_deref()));
            json!({ "name": shown_name(contender), "run": origin.map(|origin| origin.run), "own": own })
        })
        .collect();
    let samples = samples(material);
    let end_of = |entry: &AttemptEntry| entry.end.map_or_else(|| UNENDED.to_owned(), end_name);
    let ends: BTreeSet<String> = samples.iter().flat_map(|sample| &sample.attempts).map(end_of).collect();
    let ends: Vec<String> = ends.into_iter().collect();
    let samples = samples
        .into_iter()
        .map(|sample| {
            let number = |state| STATES.iter().position(|it| *it == state).unwrap_or_default();
            let of = |entry: &AttemptEntry| {
                let end = ends.iter().position(|end| *end == end_of(entry)).unwrap_or_default();
                [entry.contender, entry.attempt as usize, number(entry.state), end]
            };
            let tries = sample.attempts.iter().flat_map(of).collect();
            let facts = material.samples.get(&sample.id);
            let extent = facts.map_or_else(|| format!("n = {}", sample.n), |facts| facts.extent.clone());
            let item = facts.map_or_else(|| sample.paper.clone(), |facts| facts.item.clone());
            let units = facts.map(|facts| facts.units.clone()).unwrap_or_default();
            IndexedSample { id: sample.id, paper: sample.paper, item, n: sample.n, extent, units, tries }
        })
        .collect();
    let papers: serde_json::Map<String, Value> = material
        .papers
        .iter()
        .enumerate()
        .map(|(place, (id, paper))| {
            let mut facts = serde_json::to_value(paper).unwrap_or_default();
            if paper.text.is_some() {
                facts["chunk"] = format!("p{place}").into();
            }
            if let Some(units) = material.units.get(id) {
                let named = units.iter().map(|(place, name)| (place.to_string(), Value::from(name.as_str())));
                facts["units"] = named.collect();
            }
            (id.clone(), facts)
        })
        .collect();
    Index { states: STATES, ends, contenders, samples, papers, key: None, live: None, beside: None }
}
