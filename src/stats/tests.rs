use super::*;

fn close(got: f64, wanted: f64, within: f64) {
    assert!((got - wanted).abs() <= within, "got {got}, wanted {wanted}");
}

/// Computes 1 - C(n-c, k) / C(n, k) by enumerating all subsets, for small numbers.
fn pass_by_counting(n: usize, c: usize, k: usize) -> f64 {
    let subsets = (0_u32..1 << n).filter(|set| set.count_ones() as usize == k);
    let (mut all, mut passing) = (0, 0);
    for set in subsets {
        all += 1;
        passing += usize::from(set & ((1 << c) - 1) != 0);
    }
    passing as f64 / f64::from(all)
}

#[test]
fn pass_at_k_is_the_share_of_k_subsets_that_hold_a_passing_attempt() {
    for n in 1..=9 {
        for c in 0..=n {
            for k in 1..=n {
                close(pass_at_k(n, c, k).unwrap(), pass_by_counting(n, c, k), 1e-12);
            }
        }
    }
}

#[test]
fn pass_at_k_gives_known_values_and_stays_exact_for_many_attempts() {
    // By hand: 1 - C(3,2)/C(5,2) = 1 - 3/10. By Python: 1 - comb(190, 100) / comb(200, 100), as fractions.
    close(pass_at_k(5, 2, 2).unwrap(), 0.7, 1e-15);
    close(pass_at_k(200, 10, 100).unwrap(), 0.999_228_973_937_282_2, 1e-15);
    close(pass_at_k(1_000_000, 1, 10).unwrap(), 1e-5, 1e-15);
    assert_eq!(pass_at_k(5, 0, 5), Some(0.0));
    assert_eq!(pass_at_k(5, 1, 5), Some(1.0));
}

#[test]
fn pass_at_k_is_undefined_with_fewer_attempts_than_k() {
    assert_eq!(pass_at_k(4, 4, 5), None);
    assert_eq!(pass_at_k(0, 0, 1), None);
    assert_eq!(pass_at_k(5, 1, 0), None);
    assert_eq!(pass_at_k(5, 6, 1), None);
}

#[test]
fn wilson_gives_published_intervals() {
    // Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I, method 3.
    for (successes, total, low, high) in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ] {
        let interval = wilson(f64::from(successes), f64::from(total), 0.95).unwrap();
        close(interval.low, low, 5e-5);
        close(interval.high, high, 5e-5);
    }
    // z is 2.5758293035489004 at 99%; without a success the upper bound is z^2 / (n + z^2).
    let interval = wilson(0.0, 10.0, 0.99).unwrap();
    close(interval.high, 6.634_896_601_021_214 / 16.634_896_601_021_214, 1e-12);
}

#[test]
fn wilson_refuses_impossible_counts() {
    assert_eq!(wilson(0.0, 0.0, 0.95), None);
    assert_eq!(wilson(3.0, 2.0, 0.95), None);
    assert_eq!(wilson(f64::NAN, 2.0, 0.95), None);
    assert_eq!(wilson(1.0, 2.0, 1.0), None);
}

#[test]
fn pass_all_k_is_the_share_of_subsets_whose_attempts_all_pass() {
    for n in 1..=9_usize {
        for c in 0..=n {
            for k in 1..=n {
                let subsets = (0_u32..1 << n).filter(|set| set.count_ones() as usize == k);
                let (mut all, mut whole) = (0, 0);
                for set in subsets {
                    all += 1;
                    whole += usize::from(set & !((1 << c) - 1) == 0);
                }
                close(pass_all_k(n, c, k).unwrap(), whole as f64 / f64::from(all), 1e-12);
            }
        }
    }
    assert_eq!(pass_all_k(4, 4, 5), None);
    assert_eq!(pass_all_k(5, 6, 1), None);
}

#[test]
fn mcnemar_gives_published_p_values() {
    // Fagerland et al. (2013): airway hyper-responsiveness before and after transplantation, 1 and 7 discordant pairs,
    // exact p = 0.070. The other values are computed by counting.
    close(mcnemar(Discordant { first: 1, second: 7 }), 0.070_312_5, 1e-12);
    close(mcnemar(Discordant { first: 9, second: 3 }), 2.0 * 299.0 / 4096.0, 1e-12);
    close(mcnemar(Discordant { first: 0, second: 0 }), 1.0, 0.0);
    close(mcnemar(Discordant { first: 5, second: 5 }), 1.0, 0.0);
    close(mcnemar(Discordant { first: 0, second: 10 }), 2.0 / 1024.0, 1e-15);
    // By Python, with fractions: 2 * sum(comb(3000, i) for i in range(1401)) / 2**3000.
    close(mcnemar(Discordant { first: 1400, second: 1600 }), 0.000_278_563_961_039_233_7, 1e-14);
}

#[test]
fn the_adjustment_reproduces_holms_published_example() {
    // Holm (1979), section 3: p = 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02.
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (got, wanted) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
        close(got, wanted, 1e-15);
    }
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}

fn at(values: &[f64]) -> Vec<SampleValue<'static>> {
    values.iter().map(|&value| SampleValue { paper: "a", n: 1, value }).collect()
}

#[test]
fn a_paired_interval_is_narrower_than_that_of_two_independent_runs() {
    // 100 samples: both runs pass the same 45, and the second passes 10 more, so 10 of 100 differences are 1.
    let differences: Vec<f64> = (0..100).map(|i| f64::from(u8::from(i < 10))).collect();
    let interval = difference_interval(&at(&differences), 1.0, Intervals::default()).unwrap();
    // The interval is computed after two artificial samples, with differences of 1 and -1, are added. So the variance
    // of the mean is (100 * 0.1 * 0.9 * 100 / 99 + 2) / 102^2, and t has 99 degrees of freedom.
    let half = 1.984_217 * ((100.0 * 0.1 * 0.9 * 100.0 / 99.0 + 2.0) / 102.0_f64.powi(2)).sqrt();
    close(interval.low, 0.1 - half, 1e-6);
    close(interval.high, 0.1 + half, 1e-6);
    assert!(half < 1.96 * (2.0 * 0.5 * 0.5 / 100.0_f64).sqrt());
}

#[test]
fn the_difference_between_runs_with_equal_results_has_an_interval_that_is_wider_than_zero() {
    let interval = difference_interval(&at(&[0.0; 20]), 5.0, Intervals::default()).unwrap();
    // 3.84 / 23.84, Wilson's upper bound at 0 of 20.
    close(interval.high, 0.1611, 5e-5);
    close(interval.low, -0.1611, 5e-5);
    let always = difference_interval(&at(&[1.0; 20]), 1.0, Intervals::default()).unwrap();
    close(always.low, 1.0 - 0.1611, 5e-5);
    close(always.high, 1.0, 0.0);
    assert_eq!(difference_interval(&[], 1.0, Intervals::default()), None);

    // Student's t with one degree of freedom would extend from -6.9 to 5.9, so the bounds are clamped.
    let papers = Intervals { population: Population::Papers, ..Intervals::default() };
    let mut two = at(&[-1.0, -1.0, -1.0, 0.0, 0.0, 0.0]);
    two.iter_mut().skip(3).for_each(|sample| sample.paper = "b");
    let widest = difference_interval(&two, 1.0, papers).unwrap();
    assert_eq!((widest.low, widest.high), (-1.0, 1.0));
}

/// Tries all ways to change the signs of `differences`. Returns the share of those for which the sum is at least as far
/// from 0 as the sum of `differences` itself.
fn flips_by_counting(differences: &[f64]) -> f64 {
    let seen = differences.iter().sum::<f64>().abs();
    let all = 1_u32 << differences.len();
    let sum = |signs: u32| -> f64 {
        differences.iter().enumerate().map(|(at, value)| if signs >> at & 1 == 1 { -value } else { *value }).sum()
    };
    (0..all).filter(|&signs| sum(signs).abs() >= seen - 1e-9).count() as f64 / f64::from(all)
}

#[test]
fn the_sign_flip_test_counts_all_assignments_of_signs() {
    for differences in [
        vec![0.2, 0.4, -0.2, 0.6, 0.0, 0.2, 0.8],
        vec![1.0, 1.0, 1.0, 1.0, 1.0],
        // Differences of rates over 5 attempts and rates over fewer attempts, as they occur if some attempts were lost.
        vec![0.2 - 0.25, 0.8 - 1.0 / 3.0, 0.6 - 0.5, -0.4, 0.75 - 0.2],
        vec![0.5, -0.5],
        vec![],
    ] {
        close(sign_flip(&differences), flips_by_counting(&differences), 1e-12);
    }
}

#[test]
fn the_sign_flip_test_gives_fishers_published_result_for_darwins_maize() {
    // Darwin's maize as analysed in "The Design of Experiments" (1935), section 21: differences in eighths of an inch.
    // 1726 of 32768 sign assignments have a sum at least as far from 0 (835 further out and 28 equal on either side).
    let eighths = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48].map(f64::from);
    close(sign_flip(&eighths), 1726.0 / 32768.0, 1e-12);
}

#[test]
fn with_single_attempts_the_sign_flip_test_is_mcnemars() {
    for (first, second, neither) in [(1, 7, 12), (9, 3, 0), (0, 0, 5), (140, 160, 700)] {
        let differences: Vec<f64> = std::iter::repeat_n(-1.0, first)
            .chain(std::iter::repeat_n(1.0, second))
            .chain(std::iter::repeat_n(0.0, neither))
            .collect();
        let wanted = mcnemar(Discordant { first: first as u64, second: second as u64 });
        close(sign_flip(&differences), wanted, 1e-12);
    }
}
