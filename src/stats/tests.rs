use super::*;

fn close(got: f64, wanted: f64, within: f64) {
    assert!((got - wanted).abs() <= within, "got {got}, wanted {wanted}");
}

/// C(n-c, k) / C(n, k) by counting, for small numbers.
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
    // z is 2.5758293035489004 at 99%; with no success the upper bound is z^2 / (n + z^2).
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
fn the_bootstrap_of_one_paper_agrees_with_the_binomial() {
    // 40 of 100 pass: the mean's standard error is sqrt(0.4 * 0.6 / 100) = 0.049.
    let paper: Vec<[f64; 1]> = (0..100).map(|i| [f64::from(u8::from(i < 40))]).collect();
    let [interval] = bootstrap(&[paper], Bootstrap::default()).unwrap();
    close(interval.low, 0.4 - 1.96 * 0.049, 0.011);
    close(interval.high, 0.4 + 1.96 * 0.049, 0.011);
}

#[test]
fn papers_that_differ_widen_the_interval_of_other_papers_and_not_that_of_the_suite() {
    let papers: Vec<Vec<[f64; 1]>> =
        (0..8).map(|p| (0..50).map(|s| [f64::from(u8::from(s < 5 * p + 5))]).collect()).collect();
    let [suite] = bootstrap(&papers, Bootstrap::default()).unwrap();
    let within: f64 = (1..9).map(|p| f64::from(p) / 10.0).map(|rate| rate * (1.0 - rate) * 50.0).sum();
    close(suite.high - suite.low, 2.0 * 1.96 * within.sqrt() / 400.0, 0.006);
    let how = Bootstrap { population: Population::Papers, ..Bootstrap::default() };
    let [others] = bootstrap(&papers, how).unwrap();
    // The papers' rates are 0.1 to 0.8: standard deviation 0.2449; t with 7 degrees of freedom is 2.365.
    close(others.high - others.low, 2.0 * 2.365 * 0.2449 / 8.0_f64.sqrt(), 0.02);
    // One paper says nothing about others.
    assert_eq!(bootstrap(&papers[..1], how), bootstrap(&papers[..1], Bootstrap::default()));
}

#[test]
fn the_bca_interval_leans_to_the_side_that_the_data_lean_to() {
    // 3 of 60 pass: the percentile interval is about symmetric, BCa and Wilson reach further up than down.
    let paper: Vec<[f64; 1]> = (0..60).map(|i| [f64::from(u8::from(i < 3))]).collect();
    let [interval] = bootstrap(&[paper], Bootstrap::default()).unwrap();
    assert!(interval.high - 0.05 > 0.05 - interval.low + 0.01, "{interval:?}");
    assert!(interval.low > 0.0 && interval.high < 0.16, "{interval:?}");
}

#[test]
fn the_bca_interval_of_a_skewed_mean_is_that_of_its_expansion() {
    // 80 values spread as an exponential distribution's. Hall, "Theoretical Comparison of Bootstrap Confidence
    // Intervals" (1988), section 3: BCa bounds are, to second order, mean + s / sqrt(n) (z + g (2 z^2 + 1) / (6 sqrt(n)))
    // with the skewness g; plain percentiles have z^2 - 1 in place of 2 z^2 + 1.
    let values: Vec<f64> = (0..80).map(|i| -(1.0 - (f64::from(i) + 0.5) / 80.0).ln() / 8.0).collect();
    let mean = values.iter().sum::<f64>() / 80.0;
    let moment = |power: i32| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / 80.0;
    let skewness = moment(3) / moment(2).powf(1.5);
    let error = (moment(2) / 79.0).sqrt();
    let paper: Vec<[f64; 1]> = values.iter().map(|&value| [value]).collect();
    let how = Bootstrap { replicates: 40_000, ..Bootstrap::default() };
    let [interval] = bootstrap(&[paper], how).unwrap();
    for (bound, z) in [(interval.low, -1.959_964_f64), (interval.high, 1.959_964)] {
        let shift = |square: f64| z + skewness * square / (6.0 * 80.0_f64.sqrt());
        let got = (bound - mean) / error;
        close(got, shift(2.0 * z * z + 1.0), 0.08);
        assert!((got - shift(z * z - 1.0)).abs() > 0.1, "{got} is the percentile's bound");
    }
}

#[test]
fn the_bootstrap_is_deterministic_and_its_seed_matters() {
    let papers: Vec<Vec<[f64; 2]>> =
        (0..7).map(|p| (0..30 + p).map(|s| [f64::from(s * p % 5) / 4.0, f64::from(s % 2)]).collect()).collect();
    let how = Bootstrap { replicates: 500, ..Bootstrap::default() };
    let first = bootstrap(&papers, how);
    assert_eq!(first, bootstrap(&papers, how));
    assert_ne!(first, bootstrap(&papers, Bootstrap { seed: 1, ..how }));
}

#[test]
fn degenerate_data_get_wilsons_interval_instead_of_certainty() {
    let all = bootstrap(&[vec![[1.0, 0.0]; 20]], Bootstrap::default()).unwrap();
    assert_eq!(all[0], wilson(20.0, 20.0, 0.95).unwrap());
    assert_eq!(all[1], wilson(0.0, 20.0, 0.95).unwrap());
    let single = bootstrap(&[vec![[0.6]]], Bootstrap::default()).unwrap();
    assert!(single[0].low < 0.2 && single[0].high > 0.9, "{single:?}");
    assert_eq!(bootstrap::<1>(&[vec![], vec![]], Bootstrap::default()), None);
    // Of other papers, six that agree say as much as six trials, however many samples they have.
    let how = Bootstrap { population: Population::Papers, ..Bootstrap::default() };
    assert_eq!(bootstrap(&vec![vec![[1.0]; 40]; 6], how), Some([wilson(6.0, 6.0, 0.95).unwrap()]));
}

/// A generator for simulations, deterministic, so that these tests cannot flake.
fn uniforms(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[test]
fn the_interval_of_other_papers_covers_the_truth_about_as_often_as_it_says() {
    // 300 runs of 6 papers x 10 samples; each paper has its own pass rate.
    let mut uniform = uniforms(1);
    let how = Bootstrap { replicates: 400, population: Population::Papers, ..Bootstrap::default() };
    let mut covered = 0;
    for _ in 0..300 {
        let papers: Vec<Vec<[f64; 1]>> = (0..6)
            .map(|_| {
                let rate = uniform();
                (0..10).map(|_| [f64::from(u8::from(uniform() < rate))]).collect()
            })
            .collect();
        let [interval] = bootstrap(&papers, how).unwrap();
        covered += usize::from((interval.low..=interval.high).contains(&0.5));
    }
    assert!((276..=294).contains(&covered), "{covered} of 300");
}

#[test]
fn the_interval_of_the_suite_covers_the_truth_about_as_often_as_it_says() {
    // 500 runs of 6 papers, whose chances differ from sample to sample and from paper to paper; 24 samples each, and 4.
    for each in [24, 4] {
        assert_suite_covered(each);
    }
}

fn assert_suite_covered(each: usize) {
    let mut uniform = uniforms(2);
    let how = Bootstrap { replicates: 400, ..Bootstrap::default() };
    let chances: Vec<Vec<f64>> =
        (0..6).map(|p| (0..each).map(|_| 0.5 + 0.05 * f64::from(p) + 0.2 * uniform()).collect()).collect();
    let truth = chances.iter().flatten().sum::<f64>() / (6 * each) as f64;
    let mut covered = 0;
    for _ in 0..500 {
        let papers: Vec<Vec<[f64; 1]>> = chances
            .iter()
            .map(|chances| chances.iter().map(|&chance| [f64::from(u8::from(uniform() < chance))]).collect())
            .collect();
        let [interval] = bootstrap(&papers, how).unwrap();
        covered += usize::from((interval.low..=interval.high).contains(&truth));
    }
    assert!((463..=487).contains(&covered), "{covered} of 500 with {each} samples each");
}

#[test]
#[ignore = "a measurement: cargo test --release --lib stats:: -- --ignored --nocapture"]
fn ten_thousand_replicates_over_ten_thousand_samples_take_less_than_a_second() {
    let papers: Vec<Vec<[f64; 2]>> =
        (0..20).map(|p| (0..500).map(|s| [f64::from((s * 7 + p) % 6) / 5.0, f64::from(s % 2)]).collect()).collect();
    let begun = std::time::Instant::now();
    let intervals = bootstrap(&papers, Bootstrap::default());
    println!("{intervals:?} in {:?}", begun.elapsed());
    assert!(begun.elapsed().as_secs_f64() < 1.0);
}

#[test]
fn pass_all_k_is_the_share_of_k_subsets_that_pass_whole() {
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
    // exact p = 0.070. The others by counting.
    close(mcnemar(Discordant { first: 1, second: 7 }), 0.070_312_5, 1e-12);
    close(mcnemar(Discordant { first: 9, second: 3 }), 2.0 * 299.0 / 4096.0, 1e-12);
    close(mcnemar(Discordant { first: 0, second: 0 }), 1.0, 0.0);
    close(mcnemar(Discordant { first: 5, second: 5 }), 1.0, 0.0);
    close(mcnemar(Discordant { first: 0, second: 10 }), 2.0 / 1024.0, 1e-15);
    // By Python, with fractions: 2 * sum(comb(3000, i) for i in range(1401)) / 2**3000.
    close(mcnemar(Discordant { first: 1400, second: 1600 }), 0.000_278_563_961_039_233_7, 1e-14);
}

#[test]
fn holm_gives_his_own_example() {
    // Holm (1979), section 3: p = 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02.
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (got, wanted) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
        close(got, wanted, 1e-15);
    }
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}

#[test]
fn a_paired_interval_is_narrower_than_that_of_two_independent_runs() {
    // 100 samples of which both runs pass the same 45 and the first 10 more: differences of 1 in 10 of 100.
    let differences: Vec<f64> = (0..100).map(|i| f64::from(u8::from(i < 10))).collect();
    let interval = paired_bootstrap(&[differences], Bootstrap::default()).unwrap();
    let error = (0.1_f64 * 0.9 / 100.0).sqrt();
    close(interval.low, 0.1 - 1.96 * error, 0.012);
    close(interval.high, 0.1 + 1.96 * error, 0.012);
}

#[test]
fn two_runs_that_never_differ_are_not_known_to_be_the_same() {
    let interval = paired_bootstrap(&[vec![0.0; 20]], Bootstrap::default()).unwrap();
    // 3.84 / 23.84, by Wilson at 0 of 20.
    close(interval.high, 0.1611, 5e-5);
    close(interval.low, -0.1611, 5e-5);
    let always = paired_bootstrap(&[vec![1.0; 20]], Bootstrap::default()).unwrap();
    close(always.low, 1.0 - 0.1611, 5e-5);
    close(always.high, 1.0, 0.0);
    assert_eq!(paired_bootstrap(&[], Bootstrap::default()), None);

    // Student's with one degree of freedom would reach from -6.9 to 5.9.
    let papers = Bootstrap { population: Population::Papers, ..Bootstrap::default() };
    let widest = paired_bootstrap(&[vec![-1.0; 3], vec![0.0; 3]], papers).unwrap();
    assert_eq!((widest.low, widest.high), (-1.0, 1.0));
}

#[test]
fn the_share_of_the_gap_that_is_closed_has_an_interval_and_needs_a_gap() {
    // pass@1 0.2, pass@k 0.6; the verifier finds half of the 40 samples of 100 that have something to find.
    let sample = |i: usize| match i {
        0..20 => [1.0, 1.0, 1.0],
        20..40 => [0.0, 1.0, 1.0],
        40..60 => [0.0, 0.0, 1.0],
        _ => [0.0; 3],
    };
    let (share, interval) = gap_closed(&[(0..100).map(sample).collect()], Bootstrap::default()).unwrap();
    close(share, 0.5, 1e-12);
    // A binomial share of 40: standard error 0.079.
    close(interval.low, 0.5 - 1.96 * 0.079, 0.02);
    close(interval.high, 0.5 + 1.96 * 0.079, 0.02);
    assert_eq!(gap_closed(&[vec![[1.0; 3]; 5]], Bootstrap::default()), None);
    assert_eq!(gap_closed(&[], Bootstrap::default()), None);
}

#[test]
fn papers_whose_rates_differ_by_rounding_only_claim_no_certainty() {
    // 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in their last digit.
    let papers = [vec![[0.1], [0.2], [0.3]], vec![[0.3], [0.2], [0.1]]];
    let how = Bootstrap { population: Population::Papers, ..Bootstrap::default() };
    let [interval] = bootstrap(&papers, how).unwrap();
    assert!(interval.high - interval.low > 0.3, "{interval:?}");
}
