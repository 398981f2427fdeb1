//! `header.json`: the task, its configuration, and the rates over all samples.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{AttemptMoment, InspectUsage, Log};
use crate::model::Usage;
use crate::run::record_index::IndexedRecord;
use crate::run::{AttemptRecord, RunFile};

/// Version of Inspect's log format.
pub const VERSION: u32 = 2;

/// Returns `{version, eval, plan}`, the part of the header that is known when the run starts.
pub fn start(run: &RunFile, log: &Log<'_>, attempts: &[&IndexedRecord]) -> Value {
    let configuration = &run.configuration;
    let mut samples: Vec<&str> = attempts.iter().map(|record| &*record.sample).collect();
    samples.sort_unstable();
    samples.dedup();
    let sampling = &configuration.sampling;
    let settings = json!({
        "papers": configuration.papers,
        "n": configuration.draw.n,
        "k": configuration.k,
        "seed": configuration.seed,
        "protocol": configuration.protocol,
        "scoring": configuration.scoring,
        "verify": configuration.verify,
    });
    let sessions = run.sessions.last();
    json!({
        "version": VERSION,
        "eval": {
            "eval_id": log.id,
            "run_id": super::identifier(&[&run.run, &run.created.to_string()]),
            "created": AttemptMoment::start(run.created),
            "task": super::TASK,
            "task_id": log.id,
            "task_display_name": format!("AutoExperiment: {}", log.agent),
            "task_args": settings,
            "solver": log.agent,
            "dataset": { "name": "autoexperiment", "samples": samples.len(), "sample_ids": samples, "shuffled": true },
            "model": log.model,
            "model_generate_config": {
                "temperature": sampling.temperature,
                "seed": sampling.seed,
                "max_tokens": sampling.max_tokens,
                "reasoning_tokens": sampling.reasoning_tokens,
            },
            "model_base_url": configuration.model.as_ref().and_then(|model| model.base_url.as_ref()),
            "config": {
                "epochs": configuration.k,
                "epochs_reducer": ["mean"],
                "turn_limit": configuration.limits.steps,
                "token_limit": configuration.limits.tokens,
                "working_limit": configuration.limits.seconds.ceil() as u64,
                "cost_limit": (configuration.limits.cost > 0.0).then_some(configuration.limits.cost),
                "fail_on_error": false,
            },
            "packages": { "autoexperiment": sessions.map_or("unknown", |session| session.version.as_str()) },
            "metadata": {
                "run": run.run,
                "sandbox": sessions.map_or(configuration.sandbox.name(), |session| &session.sandbox),
                "digests": run.digests,
            },
        },
        "plan": { "name": "plan", "steps": [{ "solver": log.agent, "params": {}, "params_passed": {} }] },
    })
}

/// Totals over all attempts for the header.
#[derive(Default)]
pub struct LogTotals {
    attempts: usize,
    /// Attempts without those during which the run was stopped.
    made: usize,
    completed: usize,
    usage: Usage,
    cost: f64,
    began: Option<jiff::Timestamp>,
    ended: Option<jiff::Timestamp>,
    scores: [ScorerResults; SCORERS.len()],
}

/// Names of the scorers. Inspect shows the first one as the headline.
const SCORERS: [&str; 3] = ["pass", "reported", "verified"];

/// Results of one scorer: for each sample, the number of its attempts that pass, and the number of those that have a
/// score.
#[derive(Default)]
struct ScorerResults {
    samples: BTreeMap<String, (f64, f64)>,
    attempts: usize,
}

impl LogTotals {
    /// Adds an attempt.
    pub fn add(&mut self, record: &AttemptRecord) {
        self.attempts += 1;
        self.made += usize::from(!record.is_stopped());
        self.completed += usize::from(!record.is_infrastructure());
        self.usage += record.usage;
        self.cost += record.cost;
        let ended = AttemptMoment::start(record.started).after(record.wall_seconds).timestamp();
        self.began = Some(self.began.map_or(record.started, |began| began.min(record.started)));
        self.ended = Some(self.ended.map_or(ended, |before| before.max(ended)));
        let passes = [
            (!record.is_infrastructure()).then_some(record.pass),
            record.reported.as_ref().map(|verdict| verdict.pass),
            record.verified.as_ref().map(|verdict| verdict.pass),
        ];
        for (scored, pass) in self.scores.iter_mut().zip(passes) {
            if let Some(pass) = pass {
                let (passed, all) = scored.samples.entry(record.sample.clone()).or_default();
                *passed += f64::from(u8::from(pass));
                *all += 1.0;
                scored.attempts += 1;
            }
        }
    }
}

/// Returns the complete header.
pub fn header(run: &RunFile, log: &Log<'_>, attempts: &[&IndexedRecord], totals: &LogTotals) -> Value {
    let mut header = start(run, log, attempts);
    let planned: usize = run
        .planned
        .iter()
        .filter(|planned| planned.agent == log.agent && planned.model.as_deref() == log.asked)
        .map(|planned| planned.attempts)
        .sum();
    // Inspect's status for a run that was stopped or is still in progress is `cancelled`.
    let status = if totals.made < planned { "cancelled" } else { "success" };
    let mut model_usage = BTreeMap::new();
    if log.asked.is_some() {
        model_usage.insert(log.model, InspectUsage::new(totals.usage, totals.cost));
    }
    let scored = SCORERS.into_iter().zip(&totals.scores);
    let scores: Vec<Value> = scored.filter_map(|(scorer, scored)| score(scorer, scored, totals.attempts)).collect();
    header["status"] = status.into();
    header["results"] = json!({
        "total_samples": planned.max(attempts.len()),
        "completed_samples": totals.completed,
        "scores": scores,
    });
    header["stats"] = json!({
        "started_at": totals.began.map(AttemptMoment::start),
        "completed_at": totals.ended.map(AttemptMoment::start),
        "model_usage": model_usage,
    });
    header
}

/// Computes Inspect's `EvalScore`: averages each sample's attempts, then averages the samples, and adds the standard
/// error of this mean; `None` if no attempt has this score.
fn score(
    scorer: &'static str,
    ScorerResults { samples, attempts: scored }: &ScorerResults,
    attempts: usize,
) -> Option<Value> {
    if samples.is_empty() {
        return None;
    }
    let rates: Vec<f64> = samples.values().map(|(passed, all)| passed / all).collect();
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let error = if rates.len() > 1 { (squares / (count - 1.0) / count).sqrt() } else { 0.0 };
    Some(json!({
        "name": scorer,
        "scorer": scorer,
        "reducer": "mean",
        "scored_samples": scored,
        "unscored_samples": attempts - scored,
        "params": {},
        "metrics": {
            "accuracy": { "name": "accuracy", "value": mean, "params": {} },
            "stderr": { "name": "stderr", "value": error, "params": {} },
        },
    }))
}
