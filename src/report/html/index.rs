//! What the page's script knows at once: agents, papers, samples and how their attempts went.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::material::{Material, Origin, SampleDetails};
use crate::error::{Error, Result};
use crate::report::full_name;
use crate::run::{AttemptRecord, counting};

/// Gives the details of a sample by its place in [`samples`].
pub struct Details<'a> {
    samples: usize,
    of: &'a (dyn Fn(usize) -> SampleDetails + Sync),
}

impl<'a> Details<'a> {
    /// For this many samples, by this function.
    #[must_use]
    pub fn new(samples: usize, of: &'a (dyn Fn(usize) -> SampleDetails + Sync)) -> Self {
        Self { samples, of }
    }

    pub(super) const fn samples(&self) -> usize {
        self.samples
    }

    pub(super) fn of(&self, place: usize) -> SampleDetails {
        (self.of)(place)
    }

    /// Those of one sample as JSON, with the names of the contenders that its attempts speak of by their places.
    ///
    /// # Errors
    /// Kind `Internal`, should serialisation fail.
    pub fn json(&self, place: usize, material: &Material) -> Result<Value> {
        let mut details = serde_json::to_value(self.of(place))
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
    /// The paper or repo that it belongs to.
    pub paper: String,
    /// Its value on the difficulty axis.
    pub n: usize,
    /// Its attempts, by agent and number.
    pub attempts: Vec<AttemptEntry>,
}

/// One attempt in the list of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEntry {
    /// Place of agent and model among the contenders.
    pub contender: usize,
    /// The attempt's number.
    pub attempt: u32,
    /// What came of it.
    pub state: &'static str,
    /// Place among the material's records.
    pub record: Option<usize>,
    /// Place among the material's attempts without a record.
    pub begun: Option<usize>,
}

/// An agent and its model.
type Contender = (String, Option<String>);

/// The agents with their models, in the order of their names.
pub(super) fn contenders(material: &Material) -> Vec<Contender> {
    let of_records = material.records.iter().map(|record| (record.agent.clone(), record.model.clone()));
    let mut found: Vec<Contender> = of_records.collect();
    found.sort();
    found.dedup();
    for begun in &material.begun {
        if contender_of(&found, begun).is_none() {
            found.push((begun.agent.clone(), begun.model.clone()));
        }
    }
    found
}

fn shown_name((agent, model): &Contender) -> String {
    full_name(agent, model.as_deref())
}

fn contender_of(contenders: &[Contender], begun: &super::Begun) -> Option<usize> {
    let same = |(agent, model): &Contender| *agent == begun.agent && (*model == begun.model || begun.model.is_none());
    contenders.iter().position(same)
}

/// Where each contender comes from: its run, and its label there.
fn origins(material: &Material) -> BTreeMap<Contender, &Origin> {
    let of_records = material.records.iter().zip(&material.origins);
    let of_records = of_records.map(|(record, origin)| ((record.agent.clone(), record.model.clone()), origin));
    let of_begun = material.begun.iter().map(|begun| ((begun.agent.clone(), begun.model.clone()), &begun.origin));
    of_records.chain(of_begun).collect()
}

/// What came of an attempt, in a word that the page has a sign for.
#[must_use]
pub(super) fn state(record: &AttemptRecord) -> &'static str {
    match (record.is_infrastructure(), record.pass, record.is_unsupported()) {
        (true, ..) => "lost",
        (_, true, _) => "pass",
        (_, _, true) => "unsupported",
        _ => "fail",
    }
}

/// All samples that were tried, by paper, n and id; of each attempt the record that counts.
#[must_use]
pub fn samples(material: &Material) -> Vec<SampleEntry> {
    let contenders = contenders(material);
    let places: BTreeMap<&Contender, usize> =
        contenders.iter().enumerate().map(|(place, contender)| (contender, place)).collect();
    let mut found: BTreeMap<(String, usize, String), Vec<AttemptEntry>> = BTreeMap::new();
    for (place, (record, counts)) in material.records.iter().zip(counting(&material.records)).enumerate() {
        if !counts {
            continue;
        }
        let key = (record.paper.clone(), record.n, record.sample.clone());
        let contender = places.get(&(record.agent.clone(), record.model.clone())).copied().unwrap_or_default();
        found.entry(key).or_default().push(AttemptEntry {
            contender,
            attempt: record.attempt,
            state: state(record),
            record: Some(place),
            begun: None,
        });
    }
    for (place, begun) in material.begun.iter().enumerate() {
        let facts = material.samples.get(&begun.sample).map(|facts| (facts.cluster.clone(), facts.n));
        let (cluster, n) = facts.or_else(|| known(material, &begun.sample)).unwrap_or_default();
        let key = (cluster, n, begun.sample.clone());
        found.entry(key).or_default().push(AttemptEntry {
            contender: contender_of(&contenders, begun).unwrap_or_default(),
            attempt: begun.attempt,
            state: "begun",
            record: None,
            begun: Some(place),
        });
    }
    found
        .into_iter()
        .map(|((paper, n, id), mut attempts)| {
            attempts.sort_by_key(|entry| (entry.contender, entry.attempt));
            SampleEntry { id, paper, n, attempts }
        })
        .collect()
}

/// The cluster and n of a sample that has been tried before.
fn known(material: &Material, sample: &str) -> Option<(String, usize)> {
    let record = material.records.iter().find(|record| record.sample == sample)?;
    Some((record.paper.clone(), record.n))
}

/// What the page loads apart of the paper in this place; `None` where there is no such paper.
#[must_use]
pub fn papers_text(material: &Material, place: usize) -> Option<Value> {
    material.papers.iter().nth(place).map(|(id, paper)| json!({ "id": id, "text": paper.text }))
}

/// What the script knows at once.
#[must_use]
pub fn index(material: &Material) -> Value {
    let origins = origins(material);
    let contenders: Vec<Value> = contenders(material)
        .iter()
        .map(|contender| {
            let origin = origins.get(contender);
            let own = origin.map(|origin| full_name(&origin.agent, contender.1.as_deref()));
            json!({ "name": shown_name(contender), "run": origin.map(|origin| origin.run), "own": own })
        })
        .collect();
    let samples: Vec<Value> = samples(material)
        .iter()
        .map(|sample| {
            let attempts: Vec<Value> = sample
                .attempts
                .iter()
                .map(|entry| json!({ "c": entry.contender, "a": entry.attempt, "s": entry.state }))
                .collect();
            let facts = material.samples.get(&sample.id);
            let extent = facts.map_or_else(|| format!("n = {}", sample.n), |facts| facts.extent.clone());
            let item = facts.map_or(&sample.paper, |facts| &facts.item);
            json!({
                "id": sample.id, "paper": sample.paper, "item": item, "n": sample.n, "extent": extent,
                "attempts": attempts,
            })
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
            (id.clone(), facts)
        })
        .collect();
    json!({ "contenders": contenders, "samples": samples, "papers": papers })
}
