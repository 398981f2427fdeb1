//! Parses one record's line: in full, or only the parts needed for rates, costs and times.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::{AttemptRecord, Round};
use crate::agent::End;
use crate::model::Usage;
use crate::sample::MASKED;
use crate::score::Verdict;

/// How much of each record is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The full record.
    Whole,
    /// Only the parts that rates, costs and times need: no answer, results or files, and only the summary of verdicts.
    /// 100,000 attempts then need some tens of megabytes.
    Outcome,
}

/// Parses a record from its line.
pub(super) fn parse(line: &[u8], detail: Detail) -> serde_json::Result<AttemptRecord> {
    let record: AttemptRecord = match detail {
        Detail::Whole => serde_json::from_slice(line)?,
        Detail::Outcome => serde_json::from_slice(line).map(OutcomeLine::record)?,
    };
    if record.cost < 0.0 {
        return Err(serde::de::Error::custom("a negative cost"));
    }
    Ok(record)
}

/// A record's line without the parts that [`Detail::Outcome`] leaves out; these are skipped while parsing.
#[derive(Deserialize)]
struct OutcomeLine<'a> {
    #[serde(borrow)]
    agent: Cow<'a, str>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    family: Option<Cow<'a, str>>,
    #[serde(borrow)]
    paper: Cow<'a, str>,
    #[serde(borrow)]
    sample: Cow<'a, str>,
    n: usize,
    #[serde(default)]
    lines: Option<usize>,
    attempt: u32,
    started: jiff::Timestamp,
    end: End,
    #[serde(default)]
    end_detail: Option<String>,
    #[serde(default)]
    reported: Option<VerdictFigures>,
    #[serde(default)]
    verified: Option<VerdictFigures>,
    pass: bool,
    #[serde(default)]
    rounds: Vec<Round>,
    steps: u32,
    format_errors: u32,
    usage: Usage,
    cost: f64,
    tool_seconds: f64,
    model_seconds: f64,
    verify_seconds: f64,
    wall_seconds: f64,
    #[serde(default)]
    verification_lost: bool,
    #[serde(default)]
    curriculum: Option<u64>,
}

#[derive(Deserialize)]
struct VerdictFigures {
    pass: bool,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    measures: BTreeMap<String, f64>,
    #[serde(default)]
    unchecked: bool,
}

impl OutcomeLine<'_> {
    fn record(self) -> AttemptRecord {
        let verdict = |it: VerdictFigures| Verdict {
            pass: it.pass,
            score: it.score,
            measures: it.measures,
            unchecked: it.unchecked,
            ..Verdict::default()
        };
        AttemptRecord {
            agent: self.agent.into_owned(),
            model: self.model.map(Cow::into_owned),
            family: self.family.map_or_else(|| MASKED.to_owned(), Cow::into_owned),
            paper: self.paper.into_owned(),
            sample: self.sample.into_owned(),
            n: self.n,
            lines: self.lines,
            attempt: self.attempt,
            started: self.started,
            end: self.end,
            end_detail: self.end_detail,
            answer: None,
            reported: self.reported.map(verdict),
            verified: self.verified.map(verdict),
            observed: serde_json::Map::new(),
            results: serde_json::Map::new(),
            pass: self.pass,
            rounds: self.rounds,
            steps: self.steps,
            format_errors: self.format_errors,
            usage: self.usage,
            cost: self.cost,
            tool_seconds: self.tool_seconds,
            model_seconds: self.model_seconds,
            verify_seconds: self.verify_seconds,
            wall_seconds: self.wall_seconds,
            verification_lost: self.verification_lost,
            evidence: None,
            changed: Vec::new(),
            skipped: Vec::new(),
            unlisted: 0,
            ignored: Vec::new(),
            sandbox: String::new(),
            cached_checks: Vec::new(),
            gpu: None,
            cached_replies: 0,
            refused_requests: 0,
            curriculum: self.curriculum,
        }
    }
}
