//! Combinations of n out of m in lexicographic order: count, rank and unrank, exact in u128.

/// Number of ways to choose `n` of `m`, or `None` beyond u128.
#[must_use]
pub fn count(m: usize, n: usize) -> Option<u128> {
    if n > m {
        return Some(0);
    }
    let n = n.min(m - n);
    let mut total: u128 = 1;
    for i in 0..n as u128 {
        // total * (m - i) / (i + 1) is an integer at every step. Divide by the common factor first, so that the
        // intermediate product doesn't overflow.
        let (numerator, denominator) = (m as u128 - i, i + 1);
        let common = gcd(total, denominator);
        total = (total / common).checked_mul(numerator / (denominator / common))?;
    }
    Some(total)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the combination of `n` of `m` with this rank, from 0; `None` if the rank is too large.
#[must_use]
pub(super) fn unrank(m: usize, n: usize, mut place: u128) -> Option<Vec<usize>> {
    if place >= count(m, n)? {
        return None;
    }
    let mut combination = Vec::with_capacity(n);
    let mut next = 0;
    for left in (1..=n).rev() {
        // The next element is the largest one for which at most `place` combinations have a smaller element at this
        // position. The number of such combinations grows with the element, so use a binary search. For all n elements
        // together, binary searches compute about n log m binomial coefficients; linear searches would compute about m.
        let all = count(m - next, left)?;
        let (mut low, mut high) = (next, m - left);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if all - count(m - middle, left)? <= place {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        place -= all - count(m - low, left)?;
        combination.push(low);
        next = low + 1;
    }
    Some(combination)
}

#[cfg(test)]
mod tests {
    use itertools::Itertools;
    use proptest::prelude::*;

    use super::*;

    /// Computes the rank of a combination by counting, at each position, the combinations with a smaller element.
    fn place_of(m: usize, combination: &[usize]) -> u128 {
        let (mut place, mut next) = (0, 0);
        for (taken, &element) in combination.iter().enumerate() {
            let behind = combination.len() - taken - 1;
            place += (next..element).map(|smaller| count(m - smaller - 1, behind).unwrap()).sum::<u128>();
            next = element + 1;
        }
        place
    }

    #[test]
    fn ranks_follow_the_order_in_which_combinations_are_listed() {
        for m in 0..9 {
            for n in 0..=m + 1 {
                let all: Vec<_> = (0..m).combinations(n).collect();
                assert_eq!(count(m, n), Some(all.len() as u128));
                for (place, combination) in all.iter().enumerate() {
                    assert_eq!(place_of(m, combination), place as u128);
                    assert_eq!(unrank(m, n, place as u128).as_ref(), Some(combination));
                }
                assert_eq!(unrank(m, n, all.len() as u128), None);
            }
        }
    }

    #[test]
    fn the_published_suite_has_the_published_number_of_combinations() {
        // Four papers with 23, 33, 14 and 15 functions have 85, 977, 8,046, 52,141 and 275,990 samples for n = 1 to 5.
        let totals: Vec<u128> = (1..=5).map(|n| [23, 33, 14, 15].iter().map(|&m| count(m, n).unwrap()).sum()).collect();
        assert_eq!(totals, [85, 977, 8_046, 52_141, 275_990]);
    }

    #[test]
    fn combinations_are_counted_up_to_u128_and_overflow_is_reported() {
        assert_eq!(count(128, 64), Some(23_951_146_041_928_082_866_135_587_776_380_551_750));
        assert_eq!(count(1000, 500), None);
    }

    proptest! {
        #[test]
        fn unrank_inverts_rank_for_any_combination(m in 1_usize..700, n in 0_usize..6, place in any::<u128>()) {
            let total = count(m, n).unwrap();
            prop_assume!(total > 0);
            let combination = unrank(m, n, place % total).unwrap();
            prop_assert_eq!(place_of(m, &combination), place % total);
        }
    }
}
