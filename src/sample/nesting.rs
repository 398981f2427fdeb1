//! Nesting of functions: a sample never contains both a function and another function nested in it.

use super::combination::unrank;

/// Which of a paper's maskable functions are nested in which others: a forest.
#[derive(Debug, Clone)]
pub struct Nesting {
    /// For each function, the index of the innermost maskable function that contains it, if any.
    parents: Vec<Option<usize>>,
}

impl Nesting {
    /// Creates a nesting from each function's nearest containing function.
    #[must_use]
    pub const fn new(parents: Vec<Option<usize>>) -> Self {
        Self { parents }
    }

    /// Returns the unit that directly contains this unit.
    #[must_use]
    pub fn parent(&self, unit: usize) -> Option<usize> {
        self.parents.get(unit).copied().flatten()
    }

    /// `m` functions without nesting.
    #[must_use]
    pub fn flat(m: usize) -> Self {
        Self { parents: vec![None; m] }
    }

    /// Number of functions.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether there are no functions.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// The nesting of a subset, given by ascending indexes; a function's parent is the nearest containing function
    /// within the subset.
    #[must_use]
    pub fn only(&self, places: &[usize]) -> Self {
        let nearest = |&place: &usize| {
            let mut around = self.parents[place];
            while let Some(outer) = around {
                if let Ok(kept) = places.binary_search(&outer) {
                    return Some(kept);
                }
                around = self.parents[outer];
            }
            None
        };
        Self { parents: places.iter().map(nearest).collect() }
    }

    /// Whether no chosen function is nested in another chosen function.
    #[must_use]
    pub fn allows(&self, chosen: &[usize]) -> bool {
        chosen.iter().all(|&function| {
            let mut around = self.parents.get(function).copied().flatten();
            while let Some(outer) = around {
                if chosen.contains(&outer) {
                    return false;
                }
                around = self.parents[outer];
            }
            true
        })
    }

    /// Exact number of sets of `n` functions in which no function is nested in another; `None` if the number exceeds
    /// u128.
    #[must_use]
    pub fn count(&self, n: usize) -> Option<u128> {
        self.count_of(n, |_| true)
    }

    /// Returns the exact number of sets of `n` functions that [`Self::allows`] accepts, or `None` if the number exceeds
    /// u128. Only sets of functions for whose index `may` is true are counted.
    #[must_use]
    pub fn count_of(&self, n: usize, may: impl Fn(usize) -> bool) -> Option<u128> {
        if self.is_flat() {
            return super::count((0..self.len()).filter(|&function| may(function)).count(), n);
        }
        if n > self.most() {
            return Some(0);
        }
        Some(SetCounts::new(self, n, may)?.counts[0][n])
    }

    /// Largest number of functions of which none is nested in another: the number of functions that contain no other.
    #[must_use]
    pub fn most(&self) -> usize {
        let mut is_outer = vec![false; self.len()];
        for &outer in self.parents.iter().flatten() {
            is_outer[outer] = true;
        }
        is_outer.into_iter().filter(|is_outer| !is_outer).count()
    }

    /// Returns the sets of `n` functions that [`Self::allows`] accepts, by their ranks, which go from 0 to
    /// `count(n) - 1`. Leaves out ranks that are too large.
    #[must_use]
    pub fn ranked(&self, n: usize, ranks: &[u128]) -> Vec<Vec<usize>> {
        if self.is_flat() {
            return ranks.iter().filter_map(|&rank| unrank(self.len(), n, rank)).collect();
        }
        if n > self.most() {
            return Vec::new();
        }
        let counts = SetCounts::new(self, n, |_| true);
        counts.map(|counts| ranks.iter().filter_map(|&rank| counts.set(n, rank)).collect()).unwrap_or_default()
    }

    /// Whether no function is nested in another.
    fn is_flat(&self) -> bool {
        self.parents.iter().all(Option::is_none)
    }

    /// Returns all functions in an order in which those inside a function directly follow this function. Also returns,
    /// for each function, the number of functions in it, itself included.
    fn outer_first(&self) -> (Vec<usize>, Vec<usize>) {
        let mut inside: Vec<Vec<usize>> = vec![Vec::new(); self.len()];
        let mut next = Vec::new();
        for (function, parent) in self.parents.iter().enumerate().rev() {
            match parent {
                Some(outer) => inside[*outer].push(function),
                None => next.push(function),
            }
        }
        let mut order = Vec::with_capacity(self.len());
        while let Some(function) = next.pop() {
            order.push(function);
            next.append(&mut inside[function]);
        }
        let mut sizes = vec![1; self.len()];
        for &function in order.iter().rev() {
            if let Some(outer) = self.parents[function] {
                let size = sizes[function];
                sizes[outer] += size;
            }
        }
        (order, sizes)
    }
}

/// Counts of the sets of functions in which no function is nested in another, for counting and ranking such sets.
///
/// The functions are listed so that each one is directly followed by all functions inside it. Consider the sets of
/// functions from some place of the list on. Each set either does not contain the function at that place, or contains
/// it but none of the functions inside it. So the counts for a place follow from the counts for later places.
struct SetCounts {
    /// The function at each place.
    order: Vec<usize>,
    /// For each place, the first later place whose function is not inside the function at this place.
    after: Vec<usize>,
    /// For each place, and for the end of the list: how many sets of 0, 1, 2 and so on functions there are among the
    /// functions from that place on.
    counts: Vec<Vec<u128>>,
}

impl SetCounts {
    /// Counts the sets of up to `n` functions for whose index `may` is true; `None` if a number exceeds u128.
    fn new(nesting: &Nesting, n: usize, may: impl Fn(usize) -> bool) -> Option<Self> {
        let (order, sizes) = nesting.outer_first();
        let after: Vec<usize> = order.iter().enumerate().map(|(place, &function)| place + sizes[function]).collect();
        let mut counts = vec![vec![0_u128; n + 1]; order.len() + 1];
        counts[order.len()][0] = 1;
        for (place, &function) in order.iter().enumerate().rev() {
            let mut sets = counts[place + 1].clone();
            if may(function) {
                for (sum, with) in sets[1..].iter_mut().zip(&counts[after[place]]) {
                    *sum = sum.checked_add(*with)?;
                }
            }
            counts[place] = sets;
        }
        Some(Self { order, after, counts })
    }

    /// Returns the set of `n` functions with this rank, in ascending order; `None` if the rank is too large.
    fn set(&self, n: usize, mut rank: u128) -> Option<Vec<usize>> {
        if rank >= self.counts[0][n] {
            return None;
        }
        let mut set = Vec::with_capacity(n);
        let mut place = 0;
        while set.len() < n {
            // The sets without the function at this place come before those with it.
            let without = self.counts[place + 1][n - set.len()];
            if rank < without {
                place += 1;
            } else {
                rank -= without;
                set.push(self.order[place]);
                place = self.after[place];
            }
        }
        set.sort_unstable();
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use itertools::Itertools;

    use super::*;

    #[test]
    fn the_formula_for_the_number_of_sets_without_nested_functions_agrees_with_listing_these_sets() {
        for parents in [
            vec![None, Some(0), Some(1), None, Some(3), Some(3), None],
            vec![None, Some(0), Some(0), Some(0)],
            vec![Some(1), None, Some(0)],
            vec![None; 6],
        ] {
            let nesting = Nesting::new(parents);
            for n in 0..=nesting.len() {
                let listed = (0..nesting.len()).combinations(n).filter(|set| nesting.allows(set)).count();
                assert_eq!(nesting.count(n), Some(listed as u128), "n = {n}");
                let may = |function: usize| function % 3 != 1;
                let allowed = |set: &Vec<usize>| nesting.allows(set) && set.iter().all(|&function| may(function));
                let listed = (0..nesting.len()).combinations(n).filter(allowed).count();
                assert_eq!(nesting.count_of(n, may), Some(listed as u128), "n = {n}");
            }
        }
    }

    #[test]
    fn each_set_without_nested_functions_has_one_rank() {
        for parents in [
            vec![None, Some(0), Some(1), None, Some(3), Some(3), None],
            vec![None, Some(0), Some(0), Some(0)],
            vec![Some(1), None, Some(0)],
            vec![None; 6],
            vec![],
        ] {
            let nesting = Nesting::new(parents);
            for n in 0..=nesting.len() + 1 {
                let listed: Vec<_> = (0..nesting.len()).combinations(n).filter(|set| nesting.allows(set)).collect();
                let count = nesting.count(n).unwrap();
                let mut ranked = nesting.ranked(n, &(0..count + 2).collect::<Vec<_>>());
                ranked.sort();
                assert_eq!(ranked, listed, "n = {n}");
                assert_eq!(n <= nesting.most(), count > 0, "n = {n}");
            }
        }
    }

    #[test]
    fn a_nesting_reduced_to_some_functions_allows_the_same_sets_of_them_as_the_whole_nesting() {
        let all = Nesting::new(vec![None, Some(0), Some(1), None, Some(3), Some(2), None]);
        for places in [vec![0, 2, 5], vec![1, 3, 4, 6], (0..7).collect(), vec![]] {
            let part = all.only(&places);
            for n in 0..=places.len() {
                for set in (0..places.len()).combinations(n) {
                    let whole: Vec<usize> = set.iter().map(|&place| places[place]).collect();
                    assert_eq!(part.allows(&set), all.allows(&whole), "{whole:?}");
                }
            }
        }
    }

    #[test]
    fn the_published_suite_has_the_published_number_of_samples() {
        // The published suite has 23, 33, 14 and 15 functions in four papers, none of them nested. Its samples mask 1
        // to 5 functions.
        let papers = [23, 33, 14, 15].map(Nesting::flat);
        let totals = [1, 2, 3, 4, 5].map(|n| papers.iter().map(|paper| paper.count(n).unwrap()).sum::<u128>());
        assert_eq!(totals, [85, 977, 8_046, 52_141, 275_990]);
    }
}
