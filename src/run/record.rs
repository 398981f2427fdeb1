//! One line of `attempts.jsonl`: the record of a finished attempt.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{AttemptEnd, End};
use crate::model::Usage;
use crate::sample::{MASKED, Sample};
use crate::sandbox::Evidence;
use crate::score::Verdict;

/// A finished attempt, or one that was stopped or lost to infrastructure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptRecord {
    /// The agent's label in this run, such as `react`.
    pub agent: String,
    /// The model's name, for agents that use one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The kind of task; masked replication if absent.
    #[serde(default = "masked::<String>", skip_serializing_if = "is_masked")]
    pub family: String,
    /// Id of the sample's paper or repo, by which statistics group samples.
    pub paper: String,
    /// The sample's id, such as `kmeanspp_0,3`.
    pub sample: String,
    /// The sample's value on the difficulty axis, such as the number of masked functions.
    pub n: usize,
    /// Lines of code that the sample withholds, in families that withhold code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<usize>,
    /// Number of the attempt at this sample, from 0.
    pub attempt: u32,
    /// Start of the attempt.
    pub started: jiff::Timestamp,
    /// Why the attempt ended.
    pub end: End,
    /// Details of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_detail: Option<String>,
    /// The agent's answer, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Comparison of the answer with gold; absent if the attempt was stopped or lost to infrastructure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Verdict>,
    /// Comparison of the results of the agent's code, run again by the harness, with gold; absent with `--no-verify`,
    /// or if the attempt was stopped or lost to infrastructure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verdict>,
    /// Data about the agent's work that are scored in addition to the answer, in families (kinds of task) with such
    /// data.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub observed: serde_json::Map<String, serde_json::Value>,
    /// Results of verification by check, so that a stored run can be scored again.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub results: serde_json::Map<String, serde_json::Value>,
    /// Whether the attempt passes: reported and, unless `--no-verify`, verified.
    pub pass: bool,
    /// Verdicts after each round of an attempt with feedback. If the rounds or the attempt's budget are used up, the
    /// last round is missing, because the attempt's own verdicts are about the same work. Empty without feedback.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Round>,
    /// Number of steps: model replies or, of an agent without a model, the calls that it made.
    pub steps: u32,
    /// Number of replies that could not be carried out because of their format.
    pub format_errors: u32,
    /// Tokens of all calls of the attempt.
    pub usage: Usage,
    /// Cost of the attempt in dollars.
    #[serde(deserialize_with = "crate::model::ledger::dollars")]
    pub cost: f64,
    /// Seconds of tool time.
    pub tool_seconds: f64,
    /// Seconds spent waiting for the model.
    pub model_seconds: f64,
    /// Seconds of verification.
    pub verify_seconds: f64,
    /// Seconds from start to end, everything included.
    pub wall_seconds: f64,
    /// Whether the agent had finished, but verification was stopped or lost to infrastructure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verification_lost: bool,
    /// Evidence that the machine failed, not the attempt. Present only if `end` is `sandbox_lost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Files that the agent changed.
    pub changed: Vec<String>,
    /// Changed paths that verification does not use: links, special files, and files that are too large, cannot be read
    /// or have an unusable path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// Number of further new files, which are neither listed nor used in verification.
    #[serde(default)]
    pub unlisted: u64,
    /// Changed files that verification ignored, for example because the paper protects them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// The sandbox backend.
    pub sandbox: String,
    /// The graphics processor reserved for this attempt and its verification, under the machine's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Checks of verification that were not run, because a result for the same code was cached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cached_checks: Vec<String>,
    /// Number of replies from `--model-cache`, which cost nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_replies: u32,
    /// Number of requests of an external agent that the gateway could not pass on, such as requests with a tool that
    /// the provider would have to run. The trajectory has the reasons (`call_refused`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_requests: u32,
    /// Number of the curriculum's draw that chose the sample, from 0; absent if the curriculum did not choose the
    /// sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curriculum: Option<u64>,
}

/// Verdicts at the end of one round of an attempt with feedback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Whether the attempt passed at the end of the round.
    pub pass: bool,
    /// Whether the answer agreed with gold.
    pub reported: bool,
    /// Whether the results of the code, run again, agreed with gold; absent without verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Number of steps from the start of the attempt to the end of the round.
    pub steps: u32,
    /// Dollars spent from the start of the attempt to the end of the round.
    pub cost: f64,
}

/// Names of the additional measures of these records, sorted.
pub fn measure_names<'a>(records: impl IntoIterator<Item = &'a AttemptRecord>) -> Vec<String> {
    let names: BTreeSet<String> = records.into_iter().flat_map(|record| record.measures().into_keys()).collect();
    names.into_iter().collect()
}

/// A record's measures under these names; `None` for measures that it lacks.
#[must_use]
pub fn measured(record: &AttemptRecord, names: &[String]) -> BTreeMap<String, Option<f64>> {
    let found = record.measures();
    names.iter().map(|name| (name.clone(), found.get(name).copied())).collect()
}

/// Returns the family (kind of task) of records and runs that name none: masked replication.
pub(super) fn masked<T: From<&'static str>>() -> T {
    MASKED.into()
}

pub(super) fn is_masked(family: &impl AsRef<str>) -> bool {
    family.as_ref() == MASKED
}

/// The measures of an attempt's two verdicts, reported and verified, with `reported_` or `verified_` in front of each
/// name.
pub(super) fn named_measures(verdicts: [Option<&BTreeMap<String, f64>>; 2]) -> BTreeMap<String, f64> {
    let named = |source| move |(name, value): (&String, &f64)| (format!("{source}_{name}"), *value);
    // Leave out names with other characters: names become column headings, and a store that somebody else has written
    // may contain any names.
    let is_plain = |(name, _): &(&String, &f64)| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let [reported, verified] = verdicts.map(|measures| measures.into_iter().flatten().filter(is_plain));
    reported.map(named("reported")).chain(verified.map(named("verified"))).collect()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl AttemptRecord {
    /// Creates the record of an attempt that starts now, before anything is known about it.
    #[must_use]
    pub fn blank(agent: &str, sample: &Sample, attempt: u32) -> Self {
        Self {
            agent: agent.to_owned(),
            model: None,
            family: sample.family().to_owned(),
            paper: sample.cluster().to_owned(),
            sample: sample.id().to_owned(),
            n: sample.n(),
            lines: None,
            attempt,
            started: crate::files::now(),
            end: End::Cancelled,
            end_detail: None,
            answer: None,
            reported: None,
            verified: None,
            observed: serde_json::Map::new(),
            results: serde_json::Map::new(),
            pass: false,
            rounds: Vec::new(),
            steps: 0,
            format_errors: 0,
            usage: Usage::default(),
            cost: 0.0,
            tool_seconds: 0.0,
            model_seconds: 0.0,
            verify_seconds: 0.0,
            wall_seconds: 0.0,
            verification_lost: false,
            evidence: None,
            changed: Vec::new(),
            skipped: Vec::new(),
            unlisted: 0,
            ignored: Vec::new(),
            sandbox: String::new(),
            gpu: None,
            cached_checks: Vec::new(),
            cached_replies: 0,
            refused_requests: 0,
            curriculum: None,
        }
    }

    /// Records how the attempt ended.
    pub(super) fn end_as(&mut self, ended: AttemptEnd) {
        (self.end, self.end_detail, self.evidence) = (ended.end, ended.detail, ended.evidence);
    }

    /// Whether the attempt was lost to infrastructure: such attempts are reported separately and count in no pass rate.
    #[must_use]
    pub fn is_infrastructure(&self) -> bool {
        self.end.is_infrastructure()
    }

    /// Whether the run was stopped during the attempt. The machine did not fail: a stopped attempt is made again on
    /// resume, like an attempt that had not begun.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.end, End::Cancelled)
    }

    /// Share of the task that was done, from 0 to 1, in families (kinds of task) with partial credit. This is the
    /// verified share or, without verification, the reported one.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        self.verified.as_ref().or(self.reported.as_ref())?.score
    }

    /// Additional measures of the attempt's verdicts, with `reported_` or `verified_` in front of each name.
    #[must_use]
    pub fn measures(&self) -> BTreeMap<String, f64> {
        named_measures([&self.reported, &self.verified].map(|verdict| verdict.as_ref().map(|it| &it.measures)))
    }

    /// Whether the agent's answer agrees with gold, but the results of its code, run again, do not. An answer in which
    /// nothing could be compared does not count as agreeing.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.reported.as_ref().is_some_and(|verdict| verdict.pass && !verdict.unchecked)
            && self.verified.as_ref().is_some_and(|verdict| !verdict.pass)
    }
}
