//! A run's events as JSON lines on stdout, for machines.

use super::lines::{EventLine, EventPayload};
use super::shared::print_json_line;
use crate::env::BuildProgress as EnvProgress;
use crate::report::outcome;
use crate::run::event::RunEvent;

/// Prints an event. Write errors, such as a closed pipe, do not stop the run.
pub(super) fn print_event(event: &RunEvent) {
    match event {
        // This payload is made here and not in `event_payload`, because it borrows a string that `event_payload` would
        // have to create and could not return.
        RunEvent::Stage(stage) => print_line(EventPayload::Stage { what: &stage.to_string() }),
        event => {
            if let Some(told) = event_payload(event) {
                print_line(told);
            }
        }
    }
}

/// Prints the end of the session: `complete`, `lost`, `interrupted`, `cost_limit`, or `unverified` if a verifier
/// failed.
pub(super) fn print_end(run: &str, outcome: &str) {
    print_line(EventPayload::Ended { run, outcome });
}

fn print_line(told: EventPayload<'_>) {
    let _ = print_json_line(&EventLine { told, time: crate::files::now() });
}

/// Converts an event to its line; `None` for events that only move a progress bar.
fn event_payload(event: &RunEvent) -> Option<EventPayload<'_>> {
    Some(match event {
        RunEvent::Env(EnvProgress::Task(what)) => EventPayload::Stage { what },
        RunEvent::Stage(_) | RunEvent::Env(EnvProgress::Step(..) | EnvProgress::Detail(_)) => return None,
        RunEvent::Warning(what) | RunEvent::Env(EnvProgress::Notice(what)) => EventPayload::Warning { what },
        RunEvent::Planned { total, finished } => EventPayload::Planned { total: *total, finished: *finished },
        RunEvent::Started { agent, sample, attempt, so_far: _ } => {
            EventPayload::Started { agent, sample, attempt: *attempt }
        }
        RunEvent::Retried { agent, sample, attempt, why } => {
            EventPayload::Retried { agent, sample, attempt: *attempt, why }
        }
        RunEvent::Finished(record) => EventPayload::Finished {
            agent: &record.agent,
            model: record.model.as_deref(),
            sample: &record.sample,
            attempt: record.attempt,
            outcome: outcome(record.end, record.pass),
            end: record.end,
            detail: record.end_detail.as_deref(),
            steps: record.steps,
            cost: record.cost,
            seconds: record.wall_seconds,
        },
    })
}
