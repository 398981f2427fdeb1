//! A run's events as JSON lines on stdout, for machines.

use serde_json::{Value, json};

use super::shared::print;
use crate::env::Progress as EnvProgress;
use crate::report::outcome;
use crate::run::event::RunEvent;

/// Prints an event. A reader that has gone away does not stop the run.
pub fn print_event(event: &RunEvent) {
    if let Some(mut value) = event_json(event) {
        value["time"] = json!(jiff::Timestamp::now());
        let _ = print(&format!("{value}\n"));
    }
}

/// Prints how the session ended: `complete`, `lost`, `interrupted`, `cost_limit`; `unverified` when a verifier failed.
pub fn print_end(run: &str, outcome: &str) {
    let time = jiff::Timestamp::now();
    let _ = print(&format!("{}\n", json!({ "event": "ended", "run": run, "outcome": outcome, "time": time })));
}

/// An event as a JSON object; `None` for those that only make a bar move.
fn event_json(event: &RunEvent) -> Option<Value> {
    Some(match event {
        RunEvent::Stage(stage) | RunEvent::Env(EnvProgress::Stage(stage)) => json!({ "event": "stage", "what": stage }),
        RunEvent::Env(EnvProgress::Step(..) | EnvProgress::Detail(_)) => return None,
        RunEvent::Warning(what) | RunEvent::Env(EnvProgress::Notice(what)) => {
            json!({ "event": "warning", "what": what })
        }
        RunEvent::Planned { total, finished } => json!({ "event": "planned", "total": total, "finished": finished }),
        RunEvent::Started { agent, sample, attempt } => {
            json!({ "event": "started", "agent": agent, "sample": sample, "attempt": attempt })
        }
        RunEvent::Retried { sample, why } => json!({ "event": "retried", "sample": sample, "why": why }),
        RunEvent::Finished(record) => json!({
            "event": "finished",
            "agent": record.agent,
            "model": record.model,
            "sample": record.sample,
            "attempt": record.attempt,
            "outcome": outcome(record),
            "end": record.end,
            "detail": record.end_detail,
            "steps": record.steps,
            "cost": record.cost,
            "seconds": record.wall_seconds,
        }),
    })
}
