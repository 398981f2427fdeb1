//! Attempts that were made twice. If a process of a shared run stalls for too long, it counts as dead, and another
//! process makes its attempt again. Reports then use one record of the attempt, and only the cost of the others.

use std::collections::HashSet;

use super::counting::TryRecord;

/// If an attempt has several records that were not lost to infrastructure, keeps the first of them, in the order of
/// file names and lines. Reduces the others to their cost. Then sorts the records by the start of the attempts. Also
/// sorts `beside`, which has one element for each record, in the same order.
pub(super) fn resolve_duplicates<T: TryRecord, U: Clone>(records: &mut [T], beside: &mut [U]) {
    let mut known: HashSet<(String, String, u32)> = HashSet::with_capacity(records.len());
    for record in records.iter_mut() {
        let one = record.which();
        if !one.is_lost && !known.insert((one.agent.to_owned(), one.sample.to_owned(), one.attempt)) {
            record.supersede();
        }
    }
    in_order(records, beside);
}

/// Sorts records by the start of the attempts, and `beside`, which has one element for each record, in the same order.
pub fn in_order<T: TryRecord, U: Clone>(records: &mut [T], beside: &mut [U]) {
    let mut order: Vec<usize> = (0..beside.len()).collect();
    order.sort_by_key(|&place| records[place].which().started);
    let moved: Vec<U> = order.into_iter().map(|place| beside[place].clone()).collect();
    beside.clone_from_slice(&moved);
    // Records are large; sorting by a cached key moves each of them only once.
    records.sort_by_cached_key(|record| record.which().started);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::run::AttemptRecord;

    #[test]
    fn of_two_complete_records_of_an_attempt_the_first_counts_and_both_costs_are_kept() {
        let sample = crate::sample::masked("x_0");
        let record = |attempt, end, pass, cost| AttemptRecord {
            end,
            pass,
            cost,
            ..AttemptRecord::blank("react", &sample, attempt)
        };
        let mut records = [
            record(0, End::SandboxLost, false, 0.1),
            record(0, End::Answered, true, 0.2),
            record(1, End::GaveUp, false, 0.3),
            record(0, End::Answered, false, 0.4),
        ];
        resolve_duplicates(&mut records, &mut [(); 0]);
        let counting: Vec<_> = super::super::scored(&records).map(|record| (record.attempt, record.pass)).collect();
        assert_eq!(counting, [(0, true), (1, false)]);
        assert!((records.iter().map(|record| record.cost).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
