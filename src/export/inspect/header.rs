//! `header.json`: what was run, and the rates over all samples.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Log, Moment, UsageOf};
use crate::model::Usage;
use crate::run::{AttemptRecord, RunFile};

/// Version of Inspect's log format.
pub const VERSION: u32 = 2;

/// `{version, eval, plan}`: what is known at the start.
pub fn start(run: &RunFile, log: &Log<'_>, attempts: &[&AttemptRecord]) -> Value {
    let configuration = &run.configuration;
    let mut samples: Vec<&str> = attempts.iter().map(|record| record.sample.as_str()).collect();
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
            "created": Moment::of(run.created),
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

/// The whole header.
pub fn header(run: &RunFile, log: &Log<'_>, attempts: &[&AttemptRecord]) -> Value {
    let mut header = start(run, log, attempts);
    let planned: usize = run
        .planned
        .iter()
        .filter(|planned| planned.agent == log.agent && planned.model.as_deref() == log.asked)
        .map(|planned| planned.attempts)
        .sum();
    // A run that was stopped, or is still going on, is what Inspect calls cancelled.
    let status = if attempts.len() < planned { "cancelled" } else { "success" };
    let usage = attempts.iter().fold((Usage::default(), 0.0), |(mut usage, cost), record| {
        usage += record.usage;
        (usage, cost + record.cost)
    });
    let mut model_usage = BTreeMap::new();
    if log.asked.is_some() {
        model_usage.insert(log.model, UsageOf::new(usage.0, usage.1));
    }
    let began = attempts.iter().map(|record| record.started).min();
    let ended = attempts.iter().map(|record| Moment::of(record.started).after(record.wall_seconds).timestamp()).max();
    let scores: Vec<Value> =
        ["pass", "reported", "verified"].into_iter().filter_map(|scorer| score(scorer, attempts)).collect();
    header["status"] = status.into();
    header["results"] = json!({
        "total_samples": planned.max(attempts.len()),
        "completed_samples": attempts.iter().filter(|record| !record.is_infrastructure()).count(),
        "scores": scores,
    });
    header["stats"] = json!({
        "started_at": began.map(Moment::of),
        "completed_at": ended.map(Moment::of),
        "model_usage": model_usage,
    });
    header
}

/// `EvalScore`: mean over samples of the mean over a sample's attempts, and its standard error; `None` when nothing was
/// scored so.
fn score(scorer: &'static str, attempts: &[&AttemptRecord]) -> Option<Value> {
    let mut samples: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut scored = 0;
    for record in attempts {
        let passed_by = match scorer {
            "pass" => (!record.is_infrastructure()).then_some(record.pass),
            "reported" => record.reported.as_ref().map(|verdict| verdict.pass),
            _ => record.verified.as_ref().map(|verdict| verdict.pass),
        };
        if let Some(pass) = passed_by {
            let (passed, all) = samples.entry(&record.sample).or_default();
            *passed += f64::from(u8::from(pass));
            *all += 1.0;
            scored += 1;
        }
    }
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
        "unscored_samples": attempts.len() - scored,
        "params": {},
        "metrics": {
            "accuracy": { "name": "accuracy", "value": mean, "params": {} },
            "stderr": { "name": "stderr", "value": error, "params": {} },
        },
    }))
}
