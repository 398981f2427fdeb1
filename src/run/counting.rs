//! Which record of an attempt counts.

use std::collections::HashMap;

use super::AttemptRecord;

/// For each record, whether it is the one that counts among those of its agent, model, sample and attempt: the last that
/// was not lost to infrastructure, else the last.
#[must_use]
pub fn counting(records: &[AttemptRecord]) -> Vec<bool> {
    let mut last: HashMap<_, usize> = HashMap::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let key = (record.agent.as_str(), record.model.as_deref(), record.sample.as_str(), record.attempt);
        let counts = last.entry(key).or_insert(index);
        if !record.is_infrastructure() || records[*counts].is_infrastructure() {
            *counts = index;
        }
    }
    let mut flags = vec![false; records.len()];
    for index in last.into_values() {
        flags[index] = true;
    }
    flags
}

/// The records that count and were not lost to infrastructure: those that rates are made of.
pub fn scored(records: &[AttemptRecord]) -> impl Iterator<Item = &AttemptRecord> {
    let flags = counting(records);
    records
        .iter()
        .zip(flags)
        .filter(|(record, counts)| *counts && !record.is_infrastructure())
        .map(|(record, _)| record)
}
