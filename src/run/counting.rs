//! An attempt has several records if it was repeated. This module decides which of them counts, which means that
//! statistics use it.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::AttemptRecord;
use crate::agent::End;
use crate::model::Usage;

/// Identifies one try of an attempt, and says whether this try was lost. An attempt that is lost to infrastructure is
/// tried again.
#[derive(Debug, Clone, Copy)]
pub struct Try<'a> {
    /// The agent's label.
    pub agent: &'a str,
    /// The model's name.
    pub model: Option<&'a str>,
    /// The sample's id.
    pub sample: &'a str,
    /// Number of the attempt at its sample.
    pub attempt: u32,
    /// Start of the try.
    pub started: jiff::Timestamp,
    /// Seconds from start to end of the try.
    pub seconds: f64,
    /// Cost of the try in dollars.
    pub cost: f64,
    /// Whether the try was lost to infrastructure.
    pub is_lost: bool,
}

/// Value of `end_detail` in a record that does not count because another process has made the same attempt.
pub(super) const SUPERSEDED: &str = "made twice: the record of another process counts";

/// A record of a try, or the part of a record that identifies the try.
pub trait TryRecord {
    /// Identifies the try.
    fn which(&self) -> Try<'_>;

    /// Marks the record as lost and removes its verdicts, because another record of the attempt counts. The cost is
    /// kept.
    fn supersede(&mut self);

    /// Removes the cost and the tokens, because another record of the same try contains them.
    fn remove_cost(&mut self);
}

impl TryRecord for AttemptRecord {
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

    fn supersede(&mut self) {
        (self.end, self.end_detail) = (End::Cancelled, Some(SUPERSEDED.to_owned()));
        self.pass = false;
        (self.reported, self.verified) = (None, None);
        self.results.clear();
    }

    fn remove_cost(&mut self) {
        (self.cost, self.usage) = (0.0, Usage::default());
    }
}

/// Decides for each record whether it counts. Of the records of one attempt (same agent, model, sample and number), the
/// last one not lost to infrastructure counts; if all were lost, the last one.
#[must_use]
pub fn counting<T: TryRecord>(records: &[T]) -> Vec<bool> {
    let hasher = RandomState::new();
    let key = |index: usize| {
        let one = records[index].which();
        (one.agent, one.model, one.sample, one.attempt)
    };
    // For each attempt, the index of the record that counts. To save memory, the table stores no keys, but reads them
    // from the records.
    let mut last: HashTable<usize> = HashTable::with_capacity(records.len());
    for index in 0..records.len() {
        let own = key(index);
        let is_same = |known: &usize| key(*known) == own;
        match last.entry(hasher.hash_one(own), is_same, |known| hasher.hash_one(key(*known))) {
            Entry::Vacant(place) => drop(place.insert(index)),
            Entry::Occupied(mut place) => {
                if !records[index].which().is_lost || records[*place.get()].which().is_lost {
                    *place.get_mut() = index;
                }
            }
        }
    }
    let mut flags = vec![false; records.len()];
    for index in last {
        flags[index] = true;
    }
    flags
}

/// The records that count and were not lost to infrastructure, from which rates are computed.
pub fn scored<T: TryRecord>(records: &[T]) -> impl Iterator<Item = &T> {
    let flags = counting(records);
    records.iter().zip(flags).filter(|(record, counts)| *counts && !record.which().is_lost).map(|(record, _)| record)
}
