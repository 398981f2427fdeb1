//! Verifiers over a stored run: `runs/<run>/choices.jsonl`, one line a choice. No agent runs again.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;

use super::{Candidate, Question, Verifier};
use crate::error::{Error, Kind, Result};
use crate::model::Usage;
use crate::run::gold::tolerance;
use crate::run::judge::experiment_key;
use crate::run::{AttemptRecord, Store, scored};
use crate::sample::Sample;
use crate::score::{Expected, placed_answer};
use crate::suite::{LoadedPaper, sections};
use serde::{Deserialize, Serialize};

/// What a verifier chose among the attempts of one agent at one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChoiceRecord {
    /// The verifier's name.
    pub verifier: String,
    /// The agent's label.
    pub agent: String,
    /// The model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The sample's id.
    pub sample: String,
    /// The attempts that it chose among.
    pub attempts: Vec<u32>,
    /// The one it chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<u32>,
    /// Why.
    pub reason: String,
    /// Tokens that it took.
    #[serde(default)]
    pub usage: Usage,
    /// Dollars that it took.
    #[serde(default)]
    pub cost: f64,
}

/// All attempts of one agent at one sample.
pub struct Group<'a> {
    /// Of each attempt the record that counts, in the order of attempts; none that was lost.
    pub records: Vec<&'a AttemptRecord>,
}

/// The attempts by agent, model and sample; of each attempt the record that counts.
#[must_use]
pub fn groups(records: &[AttemptRecord]) -> Vec<Group<'_>> {
    let mut found: BTreeMap<_, BTreeMap<u32, &AttemptRecord>> = BTreeMap::new();
    for record in scored(records) {
        let key = (record.agent.as_str(), record.model.as_deref(), record.n, record.sample.as_str());
        found.entry(key).or_default().insert(record.attempt, record);
    }
    found.into_values().map(|attempts| Group { records: attempts.into_values().collect() }).collect()
}

/// All choices that are stored of a run. A line that cannot be read, as one torn by a kill, is left out: that choice is
/// made again.
///
/// # Errors
/// Kind `Store` when the file cannot be read.
pub fn choices(store: &Store) -> Result<Vec<ChoiceRecord>> {
    let path = store.folder().join("choices.jsonl");
    match std::fs::read(&path) {
        Ok(bytes) => {
            Ok(bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::store(format!("failed to read `{}`", path.display())).because(error)),
    }
}

/// Has a verifier choose in every group, and keeps each choice at once. Choices that are stored already, among the same
/// attempts, are not made again. Gives the choices of this verifier.
///
/// # Errors
/// Kind `Model` when its model does not answer, `Store` when a choice cannot be kept, `Suite` when the paper is gone.
pub async fn verify_run(
    store: &Store,
    records: &[AttemptRecord],
    papers: &BTreeMap<String, LoadedPaper>,
    verifier: &dyn Verifier,
    told: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<ChoiceRecord>> {
    let known = choices(store)?;
    let groups = groups(records);
    let total = groups.len();
    let mut made = Vec::with_capacity(total);
    for (done, group) in groups.iter().enumerate() {
        told(done, total);
        let Some(first) = group.records.first() else { continue };
        let attempts: Vec<u32> = group.records.iter().map(|record| record.attempt).collect();
        let same = |choice: &&ChoiceRecord| {
            choice.verifier == verifier.name()
                && (&choice.agent, &choice.model, &choice.sample) == (&first.agent, &first.model, &first.sample)
                && choice.attempts == attempts
        };
        if let Some(choice) = known.iter().find(same) {
            made.push(choice.clone());
            continue;
        }
        let loaded = papers
            .get(&first.paper)
            .ok_or_else(|| Error::suite(format!("the suite has no paper `{}`", first.paper)))?;
        let question = question(loaded, &first.sample.parse()?)?;
        let expected = expected(loaded, &first.sample.parse()?);
        let candidates: Vec<Candidate> =
            group.records.iter().map(|record| candidate(store, record, &expected)).collect::<Result<_>>()?;
        let choice = verifier
            .choose(&question, &candidates)
            .await
            .map_err(|error| Error::new(error.kind, format!("sample `{}`: {}", first.sample, error.message)))?;
        let record = ChoiceRecord {
            verifier: verifier.name(),
            agent: first.agent.clone(),
            model: first.model.clone(),
            sample: first.sample.clone(),
            attempts,
            chosen: choice.chosen.map(|place| candidates[place].attempt),
            reason: choice.reason,
            usage: choice.usage,
            cost: choice.cost,
        };
        append(store, &record)?;
        made.push(record);
    }
    told(total, total);
    Ok(made)
}

fn append(store: &Store, record: &ChoiceRecord) -> Result<()> {
    let path = store.folder().join("choices.jsonl");
    let mut line =
        serde_json::to_vec(record).map_err(|error| Error::internal("failed to serialise a choice").because(error))?;
    line.push(b'\n');
    // A line torn by an earlier kill must not swallow this one.
    let torn = std::fs::read(&path).is_ok_and(|bytes| bytes.last().is_some_and(|&last| last != b'\n'));
    if torn {
        line.insert(0, b'\n');
    }
    let written = OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| {
        file.write_all(&line)?;
        file.sync_data()
    });
    written.map_err(|error| {
        Error { kind: Kind::Store, ..Error::io("write", &path, error) }
            .hint("free some space, or change the folder's rights")
    })
}

fn question(loaded: &LoadedPaper, sample: &Sample) -> Result<Question> {
    loaded.require(&sample.functions)?;
    let functions: Vec<_> = sample.functions.iter().map(|&place| &loaded.paper.functions[place]).collect();
    let sections = sections(&loaded.text);
    let named = |heading: &str| functions.iter().any(|function| function.passages.iter().any(|it| it == heading));
    let passages = sections.iter().filter(|section| named(section.heading));
    Ok(Question {
        sample: sample.id(),
        title: loaded.paper.title.clone(),
        functions: functions.iter().map(|function| (function.at.clone(), function.description.clone())).collect(),
        passages: passages
            .map(|section| format!("### {}\n{}\n", section.heading, section.text.trim()))
            .collect::<Vec<_>>()
            .concat(),
        experiments: loaded
            .tests(&sample.functions)
            .into_iter()
            .map(|place| (experiment_key(place), tolerance(&loaded.paper.experiments[place])))
            .collect(),
    })
}

/// The sample's experiments, without their gold: a verifier knows none.
fn expected(loaded: &LoadedPaper, sample: &Sample) -> Vec<Expected> {
    let tests = loaded.tests(&sample.functions).into_iter();
    tests
        .map(|place| {
            let experiment = &loaded.paper.experiments[place];
            let (id, key) = (experiment.id.clone(), experiment_key(place));
            Expected { id, key, gold: serde_json::Value::Null, tolerance: tolerance(experiment) }
        })
        .collect()
}

fn candidate(store: &Store, record: &AttemptRecord, expected: &[Expected]) -> Result<Candidate> {
    let path = store.diff(&record.agent, &record.sample, record.attempt);
    let patch = match std::fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Error::store(format!("failed to read `{}`", path.display())).because(error)),
    };
    let answer = placed_answer(expected, record.answer.as_deref());
    let runs =
        (!record.results.is_empty()).then(|| record.results.values().all(|outcome| outcome.get("result").is_some()));
    Ok(Candidate { attempt: record.attempt, patch, answer, runs, pass: record.pass })
}
