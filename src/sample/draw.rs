//! Draws a run's samples without listing all of them, from the seed and names alone.
//!
//! For each paper and each number n of masked functions, a Fisher-Yates shuffle orders all combinations of n functions.
//! Its swaps are derived from hashes of (seed, paper, n, position). A draw takes the first `limit` combinations of that
//! order. So a draw with a smaller limit is the beginning of a draw with a larger limit, and a paper's samples depend
//! on no other paper. The shuffle is sparse: only swapped positions are stored, so a draw costs the same out of 10^12
//! combinations as out of 10.
//!
//! Combinations that samples may not withhold together, such as a function and another one inside it, are skipped. If
//! only a few of very many combinations are allowed, the allowed ones alone are shuffled instead.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::Units;
use super::combination::{count, unrank};
use crate::error::{Error, Result};

/// Draws at most `limit` sets of `n` units of an item, such as functions of a paper. If there are fewer such sets,
/// returns all of them.
///
/// # Errors
/// Kind `Usage` if the number of allowed combinations exceeds u128.
pub fn draw(paper: &str, functions: &dyn Units, n: usize, limit: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    let too_many =
        || Error::usage(format!("paper `{paper}` has more combinations of {n} functions than can be counted"));
    let allowed = functions.count(n).ok_or_else(too_many)?;
    // Cap at the number of allowed sets, so that the draw ends after the last one.
    let wanted = allowed.min(limit as u128) as usize;
    let shuffled = |total| Shuffled { total, seed, paper, n, place: 0, swapped: HashMap::new() };
    if let Some(total) = count(functions.len(), n).filter(|&total| !is_rare(allowed, total)) {
        let chosen = shuffled(total).filter_map(|rank| unrank(functions.len(), n, rank));
        return Ok(chosen.filter(|chosen| functions.allows(chosen)).take(wanted).collect());
    }
    let ranks: Vec<u128> = shuffled(allowed).take(wanted).collect();
    Ok(functions.ranked(n, &ranks))
}

/// If there are at most this many combinations, all of them are shuffled, even if only a few are allowed.
const ALWAYS_SHUFFLED: u128 = 1 << 20;

/// If there are more combinations than [`ALWAYS_SHUFFLED`], all of them are shuffled only if at least one in this many
/// is allowed.
const MOST_PER_ALLOWED: u128 = 1000;

/// Whether so few of all combinations are allowed that drawing from all and skipping those not allowed would take too
/// much time and memory. This rule must never change, because it decides which samples a published seed gives.
const fn is_rare(allowed: u128, total: u128) -> bool {
    total > ALWAYS_SHUFFLED && total / MOST_PER_ALLOWED > allowed
}

/// The numbers below `total` in an order that the seed, the paper and n decide.
struct Shuffled<'a> {
    total: u128,
    seed: u64,
    paper: &'a str,
    n: usize,
    /// Number of the next position, from 0.
    place: u128,
    /// Positions whose number differs from the position itself, each with its number.
    swapped: HashMap<u128, u128>,
}

impl Iterator for Shuffled<'_> {
    type Item = u128;

    fn next(&mut self) -> Option<u128> {
        let place = self.place;
        if place == self.total {
            return None;
        }
        let other = place + below(self.total - place, self.seed, self.paper, self.n, place);
        let taken = self.swapped.get(&other).copied().unwrap_or(other);
        let here = self.swapped.get(&place).copied().unwrap_or(place);
        self.swapped.insert(other, here);
        self.place += 1;
        Some(taken)
    }
}

/// Returns a uniformly distributed number below `bound`, computed from a hash of the other arguments. A generator of
/// the crate `rand` might give other numbers in another version, but the seed of a published run must always give the
/// same samples.
fn below(bound: u128, seed: u64, paper: &str, n: usize, place: u128) -> u128 {
    // Values above `zone` would make small remainders more likely, so another hash is computed instead.
    let zone = u128::MAX - (u128::MAX % bound + 1) % bound;
    for round in 0_u64.. {
        let digest = Sha256::new()
            .chain_update(b"sample\0")
            .chain_update(seed.to_le_bytes())
            .chain_update((n as u64).to_le_bytes())
            .chain_update(place.to_le_bytes())
            .chain_update(round.to_le_bytes())
            .chain_update(paper.as_bytes())
            .finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        let value = u128::from_le_bytes(bytes);
        if value <= zone {
            return value % bound;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::sample::{Nesting, Withheld};

    fn ids(item: &str, samples: &[Vec<usize>]) -> Vec<String> {
        let id = |units: &Vec<usize>| Withheld { item: item.to_owned(), units: units.clone() }.to_string();
        samples.iter().map(id).collect()
    }

    #[test]
    fn a_draw_with_a_smaller_limit_gives_the_first_samples_of_a_larger_draw() {
        let functions = Nesting::flat(20);
        let hundred = draw("p", &functions, 3, 100, 1).unwrap();
        let fifty = draw("p", &functions, 3, 50, 1).unwrap();
        assert_eq!(hundred.len(), 100);
        assert_eq!(hundred[..50], fifty);
    }

    #[test]
    fn a_limit_above_the_number_of_samples_gives_every_sample_once() {
        let samples = draw("p", &Nesting::flat(8), 3, 1000, 9).unwrap();
        let distinct: BTreeSet<_> = samples.iter().collect();
        assert_eq!((samples.len(), distinct.len()), (56, 56));
    }

    #[test]
    fn the_draw_of_samples_is_reproducible_and_depends_on_the_seed_and_the_paper() {
        let functions = Nesting::flat(30);
        let first = draw("p", &functions, 2, 10, 1).unwrap();
        assert_eq!(first, draw("p", &functions, 2, 10, 1).unwrap());
        assert_ne!(first, draw("p", &functions, 2, 10, 2).unwrap());
        assert_ne!(first, draw("q", &functions, 2, 10, 1).unwrap());
    }

    #[test]
    fn the_draw_of_a_published_run_never_changes() {
        let samples = draw("kmeanspp", &Nesting::flat(16), 2, 5, 0).unwrap();
        insta::assert_snapshot!(ids("kmeanspp", &samples).join(" "), @"kmeanspp_8,12 kmeanspp_4,12 kmeanspp_0,14 kmeanspp_0,4 kmeanspp_4,5");
    }

    #[test]
    fn no_sample_holds_a_function_and_one_nested_in_it() {
        let functions = Nesting::new(vec![None, Some(0), None, Some(2), Some(3)]);
        let samples = draw("p", &functions, 2, 100, 0).unwrap();
        assert_eq!(samples.len() as u128, functions.count(2).unwrap());
        assert!(samples.iter().all(|sample| functions.allows(sample)));
    }

    #[test]
    fn skipping_sets_with_nested_functions_keeps_the_order_of_the_others() {
        let nested = Nesting::new((0..16_usize).map(|function| (function % 2 == 1).then(|| function - 1)).collect());
        for n in [2, 8] {
            let mut all = draw("p", &Nesting::flat(16), n, 20_000, 5).unwrap();
            all.retain(|sample| nested.allows(sample));
            all.truncate(100);
            assert_eq!(draw("p", &nested, n, 100, 5).unwrap(), all);
        }
    }

    #[test]
    fn samples_are_drawn_at_once_even_if_nearly_all_sets_hold_nested_functions() {
        // 24 functions, each of which contains another one.
        let pairs = Nesting::new((0..48_usize).map(|function| function.checked_sub(24)).collect());
        let samples = draw("p", &pairs, 24, 300, 1).unwrap();
        assert_eq!(samples.iter().collect::<BTreeSet<_>>().len(), 300);
        assert!(samples.iter().all(|sample| sample.len() == 24 && pairs.allows(sample)));
        assert_eq!(samples[..50], draw("p", &pairs, 24, 50, 1).unwrap());
        assert_ne!(samples[..50], draw("p", &pairs, 24, 50, 2).unwrap());
        // Sets of the largest n contain one function of each pair, the outer one about as often as the inner one.
        let outer = samples.iter().flatten().filter(|&&function| function < 24).count();
        assert!((3300..3900).contains(&outer), "{outer} of 7200");
        // 39 functions without nesting, and a chain of functions nested in each other, of which a set can contain only
        // one. With 200 functions, there are more combinations of 40 than u128 can count.
        let chain = |functions: usize| {
            Nesting::new((0..functions).map(|function| function.checked_sub(40).map(|_| function - 1)).collect())
        };
        for functions in [60, 200] {
            let samples = draw("p", &chain(functions), 40, 1000, 0).unwrap();
            assert_eq!(samples.iter().collect::<BTreeSet<_>>().len(), functions - 39);
            assert!(draw("p", &chain(functions), 41, 1000, 0).unwrap().is_empty());
        }
    }

    #[test]
    fn only_the_numbers_of_sets_decide_whether_the_allowed_ones_are_shuffled_alone() {
        assert!(!is_rare(1, ALWAYS_SHUFFLED) && is_rare(1, ALWAYS_SHUFFLED + 1));
        assert!(!is_rare(10_000, 10_000_999) && is_rare(10_000, 10_001_000));
    }

    #[test]
    fn for_n_0_the_only_sample_masks_nothing() {
        assert_eq!(ids("p", &draw("p", &Nesting::flat(4), 0, 100, 0).unwrap()), ["p_"]);
    }

    #[test]
    fn every_sample_is_about_equally_likely_to_come_first() {
        let functions = Nesting::flat(5);
        let mut seen: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for seed in 0..5000 {
            let first = draw("p", &functions, 2, 1, seed).unwrap().remove(0);
            *seen.entry(first).or_default() += 1;
        }
        // Each of the 10 sets is expected 500 times, with a standard deviation of 21; allow six standard deviations.
        assert_eq!(seen.len(), 10);
        assert!(seen.values().all(|times| (373..627).contains(times)), "{seen:?}");
    }
}
