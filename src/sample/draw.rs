//! Draws a run's samples without listing all of them, from the seed and names alone.
//!
//! For each paper and each number n of masked functions, a Fisher-Yates shuffle orders all combinations of n functions.
//! Its swaps are derived from hashes of (seed, paper, n, position). A draw takes the first `limit` combinations of that
//! order. So a draw with a smaller limit is the beginning of a draw with a larger limit, and a paper's samples depend
//! on no other paper. The shuffle is sparse: only swapped positions are stored, so a draw costs the same out of 10^12
//! combinations as out of 10.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::Units;
use super::combination::{count, unrank};
use crate::error::{Error, Result};

/// Draws at most `limit` sets of `n` units of an item, such as functions of a paper. If there are fewer such sets,
/// returns all of them.
///
/// # Errors
/// Kind `Usage` if the number of combinations exceeds u128.
pub fn draw(paper: &str, functions: &dyn Units, n: usize, limit: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    let too_many =
        || Error::usage(format!("paper `{paper}` has more combinations of {n} functions than can be counted"));
    let total = count(functions.len(), n).ok_or_else(too_many)?;
    // Cap at the number of allowed sets, so that the loop below ends after the last one.
    let wanted = functions.count(n).ok_or_else(too_many)?.min(limit as u128) as usize;
    let mut samples = Vec::with_capacity(wanted);
    let mut swapped: HashMap<u128, u128> = HashMap::new();
    let mut place: u128 = 0;
    while samples.len() < wanted && place < total {
        let other = place + below(total - place, seed, paper, n, place);
        let taken = swapped.get(&other).copied().unwrap_or(other);
        let here = swapped.get(&place).copied().unwrap_or(place);
        swapped.insert(other, here);
        place += 1;
        if let Some(chosen) = unrank(functions.len(), n, taken)
            && functions.allows(&chosen)
        {
            samples.push(chosen);
        }
    }
    Ok(samples)
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
