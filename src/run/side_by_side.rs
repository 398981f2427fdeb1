//! Work on all processors, its results in order.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

/// Does `count` pieces of work on all processors, begun in their order; the results are in order, whoever is done first.
pub fn side_by_side<T: Send>(count: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    side_by_side_with(count, &|| (), &|(), place| work(place))
}

/// Likewise for pieces of different sizes: the largest are begun first, so that none is left over for one processor in the end.
pub fn largest_first<T: Send>(
    count: usize,
    size: impl Fn(usize) -> usize,
    work: &(dyn Fn(usize) -> T + Sync),
) -> Vec<T> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(size(place)));
    let done = side_by_side(count, &|rank| work(order[rank]));
    let mut placed: Vec<(usize, T)> = order.iter().copied().zip(done).collect();
    placed.sort_unstable_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, result)| result).collect()
}

/// Likewise, with something that each processor makes once and keeps for all its pieces, as a buffer.
pub fn side_by_side_with<S, T: Send>(
    count: usize,
    state: &(dyn Fn() -> S + Sync),
    work: &(dyn Fn(&mut S, usize) -> T + Sync),
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let (mut state, mut done) = (state(), Vec::new());
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= count {
                return done;
            }
            done.push((place, work(&mut state, place)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(count.max(1));
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        // This thread would only wait: it is one of the workers.
        let started: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let own = worker();
        let join = |thread: ScopedJoinHandle<'_, Vec<(usize, T)>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        own.into_iter().chain(started.into_iter().flat_map(join)).collect()
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_each_piece_is_done_once() {
        assert_eq!(side_by_side(1000, &|place| place * 2), (0..1000).map(|place| place * 2).collect::<Vec<_>>());
        let sizes = [3, 1, 4, 1, 5, 9, 2, 6];
        assert_eq!(largest_first(sizes.len(), |place| sizes[place], &|place| sizes[place]), sizes);
        assert!(side_by_side(0, &|place| place).is_empty());
        let made = AtomicUsize::new(0);
        let state = || {
            made.fetch_add(1, Ordering::Relaxed);
            0_usize
        };
        let counts = side_by_side_with(50, &state, &|done, _| {
            *done += 1;
            *done
        });
        // Each worker counts its own pieces from 1.
        let workers = made.load(Ordering::Relaxed);
        assert_eq!(counts.len(), 50);
        assert!(counts.iter().filter(|&&count| count == 1).count() <= workers, "{counts:?}");
    }
}
