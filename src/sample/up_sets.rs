//! Items that consist of steps, some of which need earlier steps: a sample that withholds a step also withholds all
//! steps that need it.

use super::Units;

/// Steps in order, each with the earlier steps that it needs. The allowed sets are the up-sets of this partial order:
/// with each step, a set also contains all steps that need it.
#[derive(Debug, Clone)]
pub struct UpSets {
    /// For each step, a bit set of all steps that it needs directly or indirectly.
    needs: Vec<u32>,
}

/// Maximum number of steps of an item. It is small because all sets of steps are enumerated.
pub const MOST_STEPS: usize = 20;

impl UpSets {
    /// Creates the partial order. `needs` has, for each step, the indexes of the earlier steps that it needs.
    ///
    /// # Panics
    /// If there are more than [`MOST_STEPS`] steps, or a step needs itself or a later one; manifests are checked for
    /// this.
    #[must_use]
    pub fn new(needs: &[Vec<usize>]) -> Self {
        assert!(needs.len() <= MOST_STEPS, "at most {MOST_STEPS} steps");
        let mut all: Vec<u32> = Vec::with_capacity(needs.len());
        for (step, direct) in needs.iter().enumerate() {
            assert!(direct.iter().all(|&earlier| earlier < step), "a step needs earlier ones only");
            all.push(direct.iter().fold(0, |bits, &earlier| bits | 1 << earlier | all[earlier]));
        }
        Self { needs: all }
    }

    /// Whether no step outside the set needs a step inside the set.
    fn is_up(&self, set: u32) -> bool {
        self.needs.iter().enumerate().all(|(step, needs)| set >> step & 1 == 1 || needs & set == 0)
    }

    /// All allowed sets of `n` steps.
    fn sets(&self, n: usize) -> impl Iterator<Item = u32> {
        (0..1_u32 << self.needs.len()).filter(move |set| set.count_ones() as usize == n && self.is_up(*set))
    }
}

impl Units for UpSets {
    fn len(&self) -> usize {
        self.needs.len()
    }

    fn allows(&self, chosen: &[usize]) -> bool {
        chosen.iter().all(|&step| step < self.len()) && self.is_up(chosen.iter().fold(0, |bits, step| bits | 1 << step))
    }

    fn count(&self, n: usize) -> Option<u128> {
        Some(self.sets(n).count() as u128)
    }

    fn most(&self) -> usize {
        self.len()
    }

    fn ranked(&self, n: usize, ranks: &[u128]) -> Vec<Vec<usize>> {
        let sets: Vec<u32> = self.sets(n).collect();
        let ranked = ranks.iter().filter_map(|&rank| sets.get(usize::try_from(rank).ok()?).copied());
        ranked.map(|set| (0..self.len()).filter(|step| set >> step & 1 == 1).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use itertools::Itertools;

    use super::*;
    use crate::sample::draw;

    #[test]
    fn steps_that_need_a_withheld_step_are_withheld_too() {
        // Steps 1 and 2 need step 0, step 3 needs steps 1 and 2, and step 4 needs none.
        let steps = UpSets::new(&[vec![], vec![0], vec![0], vec![1, 2], vec![]]);
        assert!(steps.allows(&[]) && steps.allows(&[3]) && steps.allows(&[1, 3]) && steps.allows(&[0, 1, 2, 3, 4]));
        assert!(!steps.allows(&[1]) && !steps.allows(&[0, 3]) && !steps.allows(&[7]));
        let counts: Vec<u128> = (0..=5).map(|n| steps.count(n).unwrap()).collect();
        assert_eq!(counts, [1, 2, 3, 3, 2, 1]);
        for (n, count) in counts.iter().enumerate() {
            let drawn = draw("x", &steps, n, 100, 3).unwrap();
            assert_eq!(drawn.len() as u128, *count);
            assert!(drawn.iter().all(|set| steps.allows(set)));
            let mut ranked = steps.ranked(n, &(0..=*count).collect::<Vec<_>>());
            ranked.sort();
            assert_eq!(ranked, drawn.into_iter().sorted().collect::<Vec<_>>());
        }
        assert_eq!(UpSets::new(&[vec![], vec![0], vec![1]]).count(2), Some(1), "of a chain there is one");
    }
}
