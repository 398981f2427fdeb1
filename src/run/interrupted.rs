//! Interrupted attempts: a killed process left their trajectories, but no records. What they have cost is put on record
//! before the run goes on, so that no money is forgotten.

use std::collections::HashSet;

use super::family::Family;
use super::{AttemptRecord, Store};
use crate::agent::{End, Event, Line, Trajectory};
use crate::error::Result;
use crate::model::Usage;

/// Records, as cancelled, of the attempts that have spent something and are not among `records`.
///
/// # Errors
/// Kind `Store` when a trajectory cannot be read.
pub fn interrupted_attempts(
    store: &Store,
    records: &[AttemptRecord],
    family: &dyn Family,
) -> Result<Vec<AttemptRecord>> {
    let known: HashSet<(&str, &str, u32)> =
        records.iter().map(|record| (record.agent.as_str(), record.sample.as_str(), record.attempt)).collect();
    let mut found = Vec::new();
    for stored in store.trajectories()? {
        // Such a trajectory may end anywhere, and one whose first event is not whole has spent nothing.
        let Ok(lines) = Trajectory::read(&stored.path) else { continue };
        if let Some(record) = record_of(&lines, family)
            && !known.contains(&(record.agent.as_str(), record.sample.as_str(), record.attempt))
            && (record.cost > 0.0 || record.usage != Usage::default())
        {
            found.push(record);
        }
    }
    Ok(found)
}

/// What a trajectory tells of its attempt.
fn record_of(lines: &[Line], family: &dyn Family) -> Option<AttemptRecord> {
    let Event::Started { sample, attempt, agent, model, sandbox } = &lines.first()?.event else { return None };
    let sample = family.sample(sample).ok()?;
    let mut record = AttemptRecord {
        model: model.clone(),
        sandbox: sandbox.clone(),
        end_detail: Some("the process was killed".to_owned()),
        ..AttemptRecord::blank(agent, &sample, *attempt)
    };
    record.end = End::Cancelled;
    for line in lines {
        match &line.event {
            Event::Reply { usage, cost, seconds, .. } => {
                record.steps += 1;
                record.usage += *usage;
                record.cost += cost;
                record.model_seconds += seconds;
            }
            Event::ToolModelCall { usage, cost, seconds, .. } | Event::CallFailed { usage, cost, seconds, .. } => {
                record.usage += *usage;
                record.cost += cost;
                record.model_seconds += seconds;
            }
            Event::FormatError { .. } => record.format_errors += 1,
            _ => {}
        }
    }
    Some(record)
}
