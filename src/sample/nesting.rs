//! Nesting of functions: a sample never contains both a function and another function nested in it.

/// The nesting of a paper's maskable functions, a forest.
#[derive(Debug, Clone)]
pub struct Nesting {
    /// For each function, the nearest listed function that contains it.
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
    ///
    /// The number is the coefficient of x^n in the product of the polynomials T(f) of all outermost functions f. T(f)
    /// is x plus the product of the T(g) of all functions g directly inside f, because a set contains either f itself
    /// or any allowed set of functions inside f. If f may not be chosen, T(f) has no term x.
    #[must_use]
    pub fn count_of(&self, n: usize, may: impl Fn(usize) -> bool) -> Option<u128> {
        if self.parents.iter().all(Option::is_none) {
            return super::count((0..self.len()).filter(|&function| may(function)).count(), n);
        }
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.len()];
        let mut outermost = Vec::new();
        for (function, parent) in self.parents.iter().enumerate() {
            match parent {
                Some(outer) => children[*outer].push(function),
                None => outermost.push(function),
            }
        }
        let total = product(&outermost, &children, n, &may)?;
        Some(total.get(n).copied().unwrap_or(0))
    }
}

/// Product of the generating polynomials of these functions (see [`Nesting::count_of`]), up to x^n; `None` if a
/// coefficient exceeds u128.
fn product(functions: &[usize], children: &[Vec<usize>], n: usize, may: &impl Fn(usize) -> bool) -> Option<Vec<u128>> {
    let mut all = vec![1_u128];
    for &function in functions {
        let mut tree = product(&children[function], children, n, may)?;
        if tree.len() < 2 {
            tree.resize(2, 0);
        }
        tree[1] = tree[1].checked_add(u128::from(may(function)))?;
        let mut next = vec![0_u128; (all.len() + tree.len() - 1).min(n + 1)];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in tree.iter().enumerate().take_while(|(j, _)| i + j <= n) {
                next[i + j] = next[i + j].checked_add(a.checked_mul(*b)?)?;
            }
        }
        all = next;
    }
    Some(all)
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
