//! Makes the table of docs/statistics.md, which shows how often right and biased solutions of simulated papers pass.
//! The other columns show how often these pass:
//!
//! - a report of a right solution, with the first value of each experiment moved by six standard deviations;
//! - runs whose values are twice as far from gold's mean as those of a right solution;
//! - runs that all give the same right result;
//! - runs that all give the same result, of which the first value is 1,000 standard deviations off.

use serde_json::json;

use super::*;
use crate::stats::Uniform;
use crate::tolerance::FEWEST_REPEATS;

/// Number of simulated attempts for each kind of paper and each bias. A bias is added to the first value of the first
/// experiment in all runs of an attempt. There are `GOLDS` simulated gold results, and an equal part of the attempts is
/// compared with each of them.
const ATTEMPTS: usize = 300;
const GOLDS: usize = 30;

/// Draws a standard normal number.
fn normal(random: &mut Uniform) -> f64 {
    let radius = (-2.0 * (1.0 - random.next()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.next()).cos()
}

/// Draws the values of one run of each experiment of a kind of paper.
fn draw(kind: &str, random: &mut Uniform) -> Vec<Vec<f64>> {
    let mut repeat =
        |count: usize, value: &dyn Fn(&mut Uniform) -> f64| -> Vec<f64> { (0..count).map(|_| value(random)).collect() };
    match kind {
        "1 normal" => vec![repeat(1, &normal)],
        "5 normal" => vec![repeat(5, &normal)],
        "50 normal" => vec![repeat(50, &normal)],
        "20 correlated" => {
            let common = repeat(1, &normal)[0];
            vec![repeat(20, &|random| 0.9 * common + 0.4 * normal(random))]
        }
        "5 lognormal" => vec![repeat(5, &|random| (1.5 * normal(random)).exp())],
        "5 of t with 2 degrees" => vec![repeat(5, &|random| {
            let spread = -(1.0 - random.next()).ln();
            normal(random) / spread.sqrt()
        })],
        "5 of 0 and 1" => vec![repeat(5, &|random| f64::from(u8::from(random.next() < 0.1)))],
        "5 binomial" => vec![repeat(5, &|random| (0..20).map(|_| f64::from(u8::from(random.next() < 0.3))).sum())],
        "12 experiments of 4 normal" => (0..12).map(|_| repeat(4, &normal)).collect(),
        _ => (0..6)
            .map(|place| {
                repeat(5, &|random| if place % 2 == 0 { (1.5 * normal(random)).exp() } else { normal(random) })
            })
            .collect(),
    }
}

/// Numbers of attempts that pass, for one kind of paper.
#[derive(Default)]
struct Passed {
    /// Numbers of passing attempts, for biases of 0, two and four standard errors of the mean of gold's repeats.
    biased: [usize; 3],
    /// Number of attempts without bias whose report passes although the first value that it states for each experiment
    /// was moved by six standard deviations.
    reported_far: usize,
    /// Number of attempts whose runs pass verification although all values are twice as far from gold's mean as those
    /// of a right solution.
    spread: usize,
    /// Numbers of attempts that pass verification with the same result in all runs: if this result is right, and if its
    /// first value is 1,000 standard deviations off.
    constant: [usize; 2],
}

/// Simulates `golds` gold results and, for each of them and each bias, `attempts` attempts.
fn simulate(kind: &str, golds: usize, attempts: usize) -> Passed {
    let mut random = Uniform::seeded(11);
    let mut passed = Passed::default();
    for _ in 0..golds {
        let gold: Vec<Vec<Vec<f64>>> = (0..FEWEST_REPEATS).map(|_| draw(kind, &mut random)).collect();
        let experiments: Vec<Expected> = (0..gold[0].len())
            .map(|place| {
                let repeats: Vec<Value> = gold.iter().map(|run| json!(run[place])).collect();
                Expected {
                    id: format!("e{place}"),
                    key: format!("e{place}"),
                    gold: repeats[0].clone(),
                    tolerance: Tolerance { repeats, ..Tolerance::default() },
                }
            })
            .collect();
        let values: Vec<f64> = gold.iter().map(|run| run[0][0]).collect();
        let error = crate::stats::standard_error(&values).unwrap();
        let deviation = error * (values.len() as f64).sqrt();
        let mean =
            |place: usize, value: usize| gold.iter().map(|run| run[place][value]).sum::<f64>() / gold.len() as f64;
        let means: Vec<Vec<f64>> = (0..gold[0].len())
            .map(|place| (0..gold[0][place].len()).map(|value| mean(place, value)).collect())
            .collect();
        for (bias, passed_biased) in passed.biased.iter_mut().enumerate() {
            let mut run = |place: usize| {
                let mut values = draw(kind, &mut random).swap_remove(place);
                if place == 0 {
                    values[0] += 2.0 * bias as f64 * error;
                }
                json!(values)
            };
            for _ in 0..attempts {
                let runs: ExperimentRuns = (0..experiments.len())
                    .map(|place| (format!("e{place}"), (0..redraw::RUNS).map(|_| run(place)).collect()))
                    .collect();
                let mut answer: Map<String, Value> =
                    (0..experiments.len()).map(|place| (format!("e{place}"), run(place))).collect();
                let verified = score_results(Rule::Strict, &experiments, &runs, &BTreeMap::new()).pass;
                let reported = |answer: &Map<String, Value>| {
                    let answer = Value::Object(answer.clone()).to_string();
                    score_answer(Rule::Strict, &experiments, Some(&answer), &runs).pass
                };
                *passed_biased += usize::from(verified && reported(&answer));
                if bias == 0 {
                    for values in answer.values_mut() {
                        values[0] = json!(values[0].as_f64().unwrap() + 6.0 * deviation);
                    }
                    passed.reported_far += usize::from(reported(&answer));
                }
            }
        }
        for _ in 0..attempts {
            let passes = |values: &mut dyn FnMut(usize) -> Vec<Vec<f64>>| {
                let made: Vec<Vec<Vec<f64>>> = (0..redraw::RUNS).map(values).collect();
                let runs: ExperimentRuns = (0..experiments.len())
                    .map(|place| (format!("e{place}"), made.iter().map(|run| json!(run[place])).collect()))
                    .collect();
                usize::from(score_results(Rule::Strict, &experiments, &runs, &BTreeMap::new()).pass)
            };
            passed.spread += passes(&mut |_| {
                let mut run = draw(kind, &mut random);
                for (values, means) in run.iter_mut().zip(&means) {
                    for (value, mean) in values.iter_mut().zip(means) {
                        *value += *value - mean;
                    }
                }
                run
            });
            let mut run = draw(kind, &mut random);
            passed.constant[0] += passes(&mut |_| run.clone());
            run[0][0] += 1000.0 * deviation;
            passed.constant[1] += passes(&mut |_| run.clone());
        }
    }
    passed
}

#[test]
#[ignore = "minutes: makes a table of the documentation"]
fn simulates_the_table_of_pass_rates_for_experiments_that_vary() {
    const KINDS: [&str; 10] = [
        "1 normal",
        "5 normal",
        "50 normal",
        "20 correlated",
        "5 lognormal",
        "5 of t with 2 degrees",
        "5 of 0 and 1",
        "5 binomial",
        "12 experiments of 4 normal",
        "6 experiments of 5, mixed",
    ];
    println!("| values | right | biased | twice | report far off | twice the spread | equal | equal, far off |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for kind in KINDS {
        let passed = simulate(kind, GOLDS, ATTEMPTS / GOLDS);
        let rate = |count: usize| format!("{:.1}%", 100.0 * count as f64 / ATTEMPTS as f64);
        let [right, biased, twice] = passed.biased.map(rate);
        let [equal, equal_far] = passed.constant.map(rate);
        let (far, spread) = (rate(passed.reported_far), rate(passed.spread));
        println!("| {kind} | {right} | {biased} | {twice} | {far} | {spread} | {equal} | {equal_far} |");
    }
}

#[test]
fn right_answers_with_random_variation_pass_and_answers_far_from_gold_fail() {
    // A right attempt fails with a probability of 3%, so one of 32 fails on average. For `reported_far`, values were moved
    // by six standard deviations, so hardly any report passes.
    for kind in ["1 normal", "12 experiments of 4 normal"] {
        let passed = simulate(kind, 4, 8);
        assert!(passed.biased[0] >= 25, "{kind}: {} of 32 right", passed.biased[0]);
        assert!(passed.reported_far <= 2, "{kind}: {} of 32 far", passed.reported_far);
        assert!(passed.constant[0] >= 28 && passed.constant[1] == 0, "{kind}: equal runs: {:?}", passed.constant);
    }
}
