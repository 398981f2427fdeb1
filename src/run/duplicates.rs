//! Attempts that were made twice. If a process of a shared run stalls for too long, it counts as dead, and another
//! process makes its attempt again. Reports then use one record of the attempt, and only the cost of the others.

use super::counting::{Try, TryRecord};

/// If an attempt has several records that were not lost to infrastructure, keeps the one that ended first, whatever the
/// order of the records. Reduces the others to their cost. If one try has several records, only the one with the highest
/// cost keeps its cost: a process that counts as dead, but was only suspended, records its try, and so does the process
/// that takes over its work. Then sorts the records by the start of the attempts. Also sorts `beside`, which has one
/// element for each record, in the same order.
pub(super) fn resolve_duplicates<T: TryRecord, U: Clone>(records: &mut [T], beside: &mut [U]) {
    let which = |place: &usize| records[*place].which();
    let attempt = |place: &usize| {
        let one = which(place);
        (one.agent, one.sample, one.attempt)
    };
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by(|one, other| {
        let by_end = || ended(&which(one)).total_cmp(&ended(&which(other)));
        attempt(one).cmp(&attempt(other)).then_with(by_end)
    });
    let attempts = order.chunk_by(|one, other| attempt(one) == attempt(other));
    let superseded: Vec<usize> =
        attempts.flat_map(|places| places.iter().filter(|place| !which(place).is_lost).skip(1)).copied().collect();
    // Sort the records of one try by cost, so that the last of them has the highest cost.
    let of_try = |place: &usize| (attempt(place), which(place).started);
    order.sort_by(|one, other| {
        let by_cost = || which(one).cost.total_cmp(&which(other).cost);
        of_try(one).cmp(&of_try(other)).then_with(by_cost)
    });
    let pairs = order.windows(2).filter(|pair| of_try(&pair[0]) == of_try(&pair[1]));
    let repeated: Vec<usize> = pairs.map(|pair| pair[0]).collect();
    for place in superseded {
        records[place].supersede();
    }
    for place in repeated {
        records[place].remove_cost();
    }
    in_order(records, beside);
}

/// Time of a try's end, in seconds since 1970.
fn ended(one: &Try<'_>) -> f64 {
    one.started.as_duration().as_secs_f64() + one.seconds
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

    fn record(attempt: u32, started: i64, end: End, pass: bool, cost: f64) -> AttemptRecord {
        AttemptRecord {
            started: jiff::Timestamp::from_second(started).unwrap(),
            wall_seconds: 5.0,
            end,
            pass,
            cost,
            ..AttemptRecord::blank("react", &crate::sample::masked("x_0"), attempt)
        }
    }

    #[test]
    fn of_two_complete_records_of_an_attempt_the_one_that_ended_first_counts_and_both_costs_are_kept() {
        let mut records = [
            record(0, 10, End::SandboxLost, false, 0.1),
            record(0, 40, End::Answered, false, 0.4),
            record(1, 30, End::GaveUp, false, 0.3),
            record(0, 20, End::Answered, true, 0.2),
        ];
        for _ in 0..records.len() {
            records.rotate_left(1);
            let mut resolved = records.clone();
            resolve_duplicates(&mut resolved, &mut [(); 0]);
            let counting: Vec<_> =
                super::super::scored(&resolved).map(|record| (record.attempt, record.pass)).collect();
            assert_eq!(counting, [(0, true), (1, false)]);
            assert!((resolved.iter().map(|record| record.cost).sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_cost_of_a_try_that_two_processes_record_counts_once() {
        let mut records = [
            record(0, 10, End::Cancelled, false, 0.2),
            record(0, 10, End::Answered, true, 0.3),
            record(0, 20, End::Answered, false, 0.4),
        ];
        resolve_duplicates(&mut records, &mut [(); 0]);
        assert_eq!(records.each_ref().map(|record| record.cost.to_string()), ["0", "0.3", "0.4"]);
    }
}
