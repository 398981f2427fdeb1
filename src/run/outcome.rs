//! The part of a stored record from which reports compute rates, costs and times. It takes much less memory than the
//! full record.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize};

use super::counting::{SUPERSEDED, Try, TryRecord};
use super::record::{masked, named_measures};
use super::{AttemptRecord, Round};
use crate::agent::End;
use crate::model::Usage;
use crate::score::Verdict;

/// The outcome of an attempt: its record without answer, results and files, and with only a summary of its verdicts.
/// The fields mean the same as those of [`AttemptRecord`]. 100,000 outcomes need about 40 MB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each field is the record's")]
pub struct Outcome {
    #[serde(deserialize_with = "shared")]
    pub agent: Arc<str>,
    #[serde(default, deserialize_with = "shared_if_any")]
    pub model: Option<Arc<str>>,
    #[serde(default = "masked::<Arc<str>>", deserialize_with = "shared")]
    pub family: Arc<str>,
    #[serde(deserialize_with = "shared")]
    pub paper: Arc<str>,
    #[serde(deserialize_with = "shared")]
    pub sample: Arc<str>,
    pub n: usize,
    #[serde(default)]
    pub lines: Option<usize>,
    pub attempt: u32,
    pub started: jiff::Timestamp,
    #[serde(with = "end_name")]
    pub end: End,
    #[serde(default)]
    pub end_detail: Option<Box<str>>,
    #[serde(default)]
    pub reported: Option<VerdictSummary>,
    #[serde(default)]
    pub verified: Option<VerdictSummary>,
    pub pass: bool,
    #[serde(default, with = "rounds")]
    pub rounds: Vec<Round>,
    pub steps: u32,
    pub format_errors: u32,
    pub usage: Usage,
    #[serde(deserialize_with = "crate::model::ledger::dollars")]
    pub cost: f64,
    pub tool_seconds: f64,
    pub model_seconds: f64,
    pub verify_seconds: f64,
    pub wall_seconds: f64,
    #[serde(default)]
    pub verification_lost: bool,
    #[serde(default)]
    pub curriculum: Option<u64>,
}

/// A verdict without its experiments, reasons and warnings; see [`Verdict`] for the fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each field is the verdict's")]
pub struct VerdictSummary {
    pub pass: bool,
    #[serde(default)]
    pub score: Option<f64>,
    #[serde(default)]
    pub measures: BTreeMap<String, f64>,
    #[serde(default)]
    pub unchecked: bool,
}

/// Stores an [`End`] by its name. Postcard, the format of the cache, would otherwise store the variant's index, which
/// changes if variants are added.
mod end_name {
    use serde::de::IntoDeserializer as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, ser};

    use super::{Cow, End};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn serialize<S: Serializer>(end: &End, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::to_value(end).map_err(ser::Error::custom)?.as_str().unwrap_or_default().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<End, D::Error> {
        End::deserialize(Cow::<str>::deserialize(deserializer)?.into_deserializer())
    }
}

/// Serialises the rounds of an attempt. In a text format, such as JSON, they are stored as in records, where a missing
/// value is left out. Postcard, the format of the cache, cannot leave out a field, so rounds are stored in it as tuples
/// of all values.
mod rounds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Round;

    type Fields = (bool, bool, Option<bool>, u32, f64);

    pub(super) fn serialize<S: Serializer>(rounds: &[Round], serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return rounds.serialize(serializer);
        }
        let fields = |it: &Round| -> Fields { (it.pass, it.reported, it.verified, it.steps, it.cost) };
        rounds.iter().map(fields).collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Round>, D::Error> {
        if deserializer.is_human_readable() {
            return Vec::deserialize(deserializer);
        }
        let rounds: Vec<Fields> = Vec::deserialize(deserializer)?;
        let round = |(pass, reported, verified, steps, cost)| Round { pass, reported, verified, steps, cost };
        Ok(rounds.into_iter().map(round).collect())
    }
}

/// One copy of each name in memory. Outcomes share these copies, because many have the same agent, paper or sample.
static NAMES: Mutex<Option<HashSet<Arc<str>>>> = Mutex::new(None);

/// Returns the shared copy of a name.
fn share(name: &str) -> Arc<str> {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name) {
        return known.clone();
    }
    // Before the set grows, which is rare, remove names that no outcome uses any more.
    if names.len() == names.capacity() {
        names.retain(|name| Arc::strong_count(name) > 1);
    }
    let name: Arc<str> = name.into();
    names.insert(name.clone());
    name
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    Ok(share(&Cow::<str>::deserialize(deserializer)?))
}

fn shared_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<str>>, D::Error> {
    Ok(Option::<Cow<str>>::deserialize(deserializer)?.map(|name| share(&name)))
}

impl From<&Verdict> for VerdictSummary {
    fn from(verdict: &Verdict) -> Self {
        let Verdict { pass, score, measures, unchecked, .. } = verdict;
        Self { pass: *pass, score: *score, measures: measures.clone(), unchecked: *unchecked }
    }
}

impl From<&AttemptRecord> for Outcome {
    fn from(record: &AttemptRecord) -> Self {
        Self {
            agent: share(&record.agent),
            model: record.model.as_deref().map(share),
            family: share(&record.family),
            paper: share(&record.paper),
            sample: share(&record.sample),
            n: record.n,
            lines: record.lines,
            attempt: record.attempt,
            started: record.started,
            end: record.end,
            end_detail: record.end_detail.as_deref().map(Into::into),
            reported: record.reported.as_ref().map(Into::into),
            verified: record.verified.as_ref().map(Into::into),
            pass: record.pass,
            rounds: record.rounds.clone(),
            steps: record.steps,
            format_errors: record.format_errors,
            usage: record.usage,
            cost: record.cost,
            tool_seconds: record.tool_seconds,
            model_seconds: record.model_seconds,
            verify_seconds: record.verify_seconds,
            wall_seconds: record.wall_seconds,
            verification_lost: record.verification_lost,
            curriculum: record.curriculum,
        }
    }
}

/// The outcomes of full records.
#[must_use]
pub fn outcomes(records: &[AttemptRecord]) -> Vec<Outcome> {
    records.iter().map(Into::into).collect()
}

impl TryRecord for Outcome {
    fn which(&self) -> Try<'_> {
        Try {
            agent: &self.agent,
            model: self.model.as_deref(),
            sample: &self.sample,
            attempt: self.attempt,
            started: self.started,
            seconds: self.wall_seconds,
            cost: self.cost,
            is_lost: self.is_infrastructure(),
        }
    }

    fn remove_cost(&mut self) {
        (self.cost, self.usage) = (0.0, Usage::default());
    }

    fn supersede(&mut self) {
        (self.end, self.end_detail) = (End::Cancelled, Some(SUPERSEDED.into()));
        (self.pass, self.reported, self.verified) = (false, None, None);
    }
}

impl Outcome {
    /// Same as [`AttemptRecord::blank`].
    #[cfg(test)]
    pub(crate) fn blank(agent: &str, sample: &crate::sample::Sample, attempt: u32) -> Self {
        (&AttemptRecord::blank(agent, sample, attempt)).into()
    }

    /// Same as [`AttemptRecord::is_infrastructure`].
    #[must_use]
    pub fn is_infrastructure(&self) -> bool {
        self.end.is_infrastructure()
    }

    /// Same as [`AttemptRecord::is_stopped`].
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.end, End::Cancelled)
    }

    /// Same as [`AttemptRecord::score`].
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        self.verified.as_ref().or(self.reported.as_ref())?.score
    }

    /// Same as [`AttemptRecord::measures`].
    #[must_use]
    pub fn measures(&self) -> BTreeMap<String, f64> {
        named_measures([&self.reported, &self.verified].map(|verdict| verdict.as_ref().map(|it| &it.measures)))
    }

    /// Same as [`AttemptRecord::is_unsupported`].
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.reported.as_ref().is_some_and(|verdict| verdict.pass && !verdict.unchecked)
            && self.verified.as_ref().is_some_and(|verdict| !verdict.pass)
    }
}
