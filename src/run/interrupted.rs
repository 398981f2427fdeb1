//! Interrupted attempts: a killed process left their trajectories and ledger entries but no records. Their cost is
//! recorded before the run continues, so that no money is forgotten.

use std::collections::HashSet;

use super::family::Family;
use super::{AttemptRecord, PlannedAttempts, Store};
use crate::agent::{End, Event, TimedEvent, Trajectory};
use crate::error::Result;
use crate::model::Usage;
use crate::model::ledger::{PaidTotals, Payer, RunLedgers};

/// Returns a record with the end "cancelled" for each interrupted try of an attempt that spent something and is not
/// among `records`.
///
/// # Errors
/// Kind `Store` if the trajectories cannot be listed.
pub fn interrupted_attempts(
    store: &Store,
    books: Option<&RunLedgers>,
    records: &[AttemptRecord],
    family: &dyn Family,
) -> Result<Vec<AttemptRecord>> {
    match books {
        Some(books) => Ok(from_books(store, books, records, family)),
        None => from_trajectories(store, records, family),
    }
}

/// Finds the interrupted tries of attempts in the ledger.
fn from_books(store: &Store, books: &RunLedgers, records: &[AttemptRecord], family: &dyn Family) -> Vec<AttemptRecord> {
    let known: HashSet<_> = records
        .iter()
        .map(|record| (record.agent.as_str(), record.sample.as_str(), record.attempt, Some(record.started)))
        .collect();
    let missing = books.payers.iter().filter(|(payer, paid)| {
        let of = |attempt| (payer.agent.as_str(), payer.sample.as_str(), attempt, payer.started);
        has_spent(paid.settled, paid.usage) && payer.attempt.is_some_and(|attempt| !known.contains(&of(attempt)))
    });
    let planned = Store::open(store.folder()).map(|(_, run)| run.planned).unwrap_or_default();
    let mut found: Vec<_> =
        missing.filter_map(|(payer, paid)| of_payer(store, payer, paid, &planned, family)).collect();
    found.sort_by_key(|record| record.started);
    found
}

/// Builds the record of a try of an attempt. The cost comes from the ledger, the rest from the trajectory of the try. If
/// there is no such trajectory, the model comes from the plan of the run.
fn of_payer(
    store: &Store,
    payer: &Payer,
    paid: &PaidTotals,
    planned: &[PlannedAttempts],
    family: &dyn Family,
) -> Option<AttemptRecord> {
    let attempt = payer.attempt?;
    let tries = store.tries(&payer.agent, &payer.sample, attempt).into_iter();
    let lines = tries.rev().filter_map(|path| Trajectory::read(&path).ok()).find(|lines| {
        matches!(lines.first().map(|line| &line.event), Some(Event::Started { started, .. }) if *started == payer.started)
    });
    let record = match lines {
        Some(lines) => record_of(&lines, family)?,
        None => {
            let blank = AttemptRecord::blank(&payer.agent, &family.sample(&payer.sample).ok()?, attempt);
            let of_agent = planned.iter().find(|planned| planned.agent == payer.agent);
            let model = of_agent.and_then(|planned| planned.model.clone());
            cancelled(AttemptRecord { model, ..blank })
        }
    };
    let started = payer.started.unwrap_or(record.started);
    Some(AttemptRecord { started, cost: paid.settled, usage: paid.usage, ..record })
}

/// Finds the interrupted tries of attempts by their trajectories, in a run without a ledger.
fn from_trajectories(store: &Store, records: &[AttemptRecord], family: &dyn Family) -> Result<Vec<AttemptRecord>> {
    let known: HashSet<(&str, &str, u32)> =
        records.iter().map(|record| (record.agent.as_str(), record.sample.as_str(), record.attempt)).collect();
    let mut found = Vec::new();
    for stored in store.trajectories()? {
        // An interrupted trajectory may end anywhere. If even its first event is incomplete, the try has spent nothing.
        let Ok(lines) = Trajectory::read(&stored.path) else { continue };
        if let Some(record) = record_of(&lines, family)
            && !known.contains(&(record.agent.as_str(), record.sample.as_str(), record.attempt))
            && has_spent(record.cost, record.usage)
        {
            found.push(record);
        }
    }
    Ok(found)
}

fn has_spent(dollars: f64, usage: Usage) -> bool {
    dollars > 0.0 || usage != Usage::default()
}

fn cancelled(record: AttemptRecord) -> AttemptRecord {
    AttemptRecord { end: End::Cancelled, end_detail: Some("the process was killed".to_owned()), ..record }
}

/// Builds a record from the events of a trajectory.
fn record_of(lines: &[TimedEvent], family: &dyn Family) -> Option<AttemptRecord> {
    let Event::Started { sample, attempt, agent, model, sandbox, .. } = &lines.first()?.event else { return None };
    let sample = family.sample(sample).ok()?;
    let blank = cancelled(AttemptRecord::blank(agent, &sample, *attempt));
    let mut record = AttemptRecord { model: model.clone(), sandbox: sandbox.clone(), ..blank };
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
