//! The tables of docs/statistics.md.

use super::IntervalCounts;
use super::baseline::{Baseline, RestoreChances};
use super::exact::{SINGLE_SAMPLES, exact_coverages};
use super::grid::{Chances, Estimand, Pairing, Shape, differences, simulate};
use super::quick::promised_and_seen;
use crate::stats::paired::student_difference;
use crate::stats::uniform::Uniform;
use crate::stats::{Intervals, Population, difference_interval, sign_flip};

/// Label of a column, the quantity that is estimated, and the distribution of the samples' pass probabilities.
type CoverageColumn = (String, Estimand, Chances);

/// A quantity that reports show with an interval, and the simulations that measure its coverage.
struct Measure {
    name: &'static str,
    columns: Vec<CoverageColumn>,
    ks: Vec<usize>,
    /// The measure is simulated only for runs with at least this number of papers.
    papers: usize,
}

/// Returns named distributions of the samples' pass probabilities. For each of `means`, there is one in which all
/// samples have this probability, and one in which the probabilities vary around it. For each of `further`, there is
/// the beta distribution with these parameters. For each of `always`, this share of the samples always passes, and the
/// other samples never pass.
fn chances(means: &[f64], further: &[(f64, f64)], always: &[f64]) -> Vec<(String, Chances)> {
    let same = means.iter().map(|&mean| (format!("{mean}"), Chances::Same(mean)));
    let varying = means.iter().map(|&mean| (format!("~{mean}"), Chances::varying(mean)));
    let further = further.iter().map(|&(a, b)| (format!("Beta({a}, {b})"), Chances::Beta(a, b)));
    let always = always.iter().map(|&share| (format!("{share} or never"), Chances::Always(share)));
    same.chain(varying).chain(further).chain(always).collect()
}

/// Returns all measures except [`slopes`]. The numbers in `alike` say how similar papers are (see
/// [`Estimand::Papers`]).
fn measures(kinds: &[(String, Chances)], ks: &[usize], alike: &[f64]) -> Vec<Measure> {
    let several: Vec<usize> = ks.iter().copied().filter(|&k| k > 1).collect();
    let each = |asked: &dyn Fn(Chances) -> Vec<(String, Estimand)>| -> Vec<CoverageColumn> {
        let of = |(name, chances): &(String, Chances)| {
            let asked = asked(*chances).into_iter();
            asked.map(|(more, asked)| (format!("{name}{more}"), asked, *chances)).collect::<Vec<_>>()
        };
        kinds.iter().flat_map(of).collect()
    };
    let simple = |asked: Estimand| each(&move |_| vec![(String::new(), asked)]);
    let is_drawn = |column: &CoverageColumn| matches!(column.2, Chances::Beta(..));
    let plain = |name, columns, ks: &[usize], papers| Measure { name, columns, ks: ks.to_vec(), papers };
    let shifted = |by: f64| {
        move |first: Chances| {
            let mean = if first.mean() > 0.5 { first.mean() - by } else { first.mean() + by };
            match first {
                Chances::Same(_) => Chances::Same(mean),
                Chances::Beta(..) => Chances::varying(mean),
                Chances::Always(_) => Chances::Always(mean),
            }
        }
    };
    vec![
        plain("pass@1", simple(Estimand::Any(1)), ks, 1),
        plain("pass@3", simple(Estimand::Any(3)), &several, 1),
        plain("pass^3", simple(Estimand::All(3)), &several, 1),
        plain(
            "difference",
            each(&|first| {
                let far = shifted(0.3)(first);
                vec![
                    (", 0".to_owned(), Estimand::Difference(first, Pairing::Apart)),
                    (", 30".to_owned(), Estimand::Difference(far, Pairing::Apart)),
                    (", 30 nested".to_owned(), Estimand::Difference(far, Pairing::Nested)),
                ]
            }),
            ks,
            1,
        ),
        plain(
            "gap closed",
            each(&|_| [0.1, 0.5, 0.9].map(|finds| (format!(", {finds}"), Estimand::Gap(finds))).to_vec())
                .into_iter()
                .filter(is_drawn)
                .collect(),
            &several,
            1,
        ),
        plain(
            "papers' own pass@1",
            each(&|_| alike.iter().map(|&alike| (format!(", {alike}"), Estimand::Correlated(alike))).collect()),
            ks,
            2,
        ),
        plain(
            "papers: pass@1",
            each(&|_| alike.iter().map(|&alike| (format!(", {alike}"), Estimand::Papers(alike))).collect()),
            ks,
            2,
        ),
        plain(
            "papers: difference",
            each(&|first| {
                let far = shifted(0.3)(first);
                let of = |&alike: &f64| {
                    [
                        (format!(", {alike}, 0"), Estimand::PapersDifference(alike, first)),
                        (format!(", {alike}, 30"), Estimand::PapersDifference(alike, far)),
                    ]
                };
                alike.iter().flat_map(of).collect()
            }),
            ks,
            2,
        ),
    ]
}

/// Returns the simulations for the slope of the log-odds over n, the number of masked functions. A fit for each
/// simulated run is slow, so there are fewer cells (cases) than for other measures.
fn slopes(name: &'static str, k: usize) -> Measure {
    let kinds = [
        ("0.1", Chances::Same(0.1)),
        ("0.5", Chances::Same(0.5)),
        ("~0.3", Chances::varying(0.3)),
        ("~0.5", Chances::varying(0.5)),
    ];
    let mut columns: Vec<CoverageColumn> =
        kinds.iter().map(|&(name, chances)| (format!("{name}, 0"), Estimand::Slope(0.0), chances)).collect();
    columns.push(("Beta(1, 4), 0".to_owned(), Estimand::Slope(0.0), Chances::Beta(1.0, 4.0)));
    columns.push(("0.5, -0.7".to_owned(), Estimand::Slope(-0.7), Chances::Same(0.5)));
    Measure { name, columns, ks: vec![k], papers: 1 }
}

/// One cell of a table, filled by simulation. The name `pass@1, 2 x 3, k = 5, ~0.1` means: pass@1 of 2 papers with 3
/// samples each and 5 attempts per sample, whose pass probabilities vary around 0.1.
struct SimulatedCell {
    name: String,
    tally: IntervalCounts,
}

fn cells(measure: &Measure, shape: Shape, runs: usize) -> Vec<SimulatedCell> {
    let mut cells = Vec::new();
    for &k in &measure.ks {
        for (place, (kind, asked, chances)) in measure.columns.iter().enumerate() {
            let shape = Shape { k, ..shape };
            // Runs with many samples take long, and their results vary less, so half as many runs are enough.
            let runs = if shape.papers * shape.samples > 400 { runs / 2 } else { runs };
            let seed = ((shape.papers * 1000 + shape.samples) * 100 + k) * 1000 + place;
            let tally = simulate(*asked, shape, *chances, runs, seed as u64);
            let name = format!("{}, {} x {}, k = {k}, {kind}", measure.name, shape.papers, shape.samples);
            cells.push(SimulatedCell { name, tally });
        }
    }
    cells
}

/// Prints, for each shape (numbers of papers and samples) and measure, the minimum, median and maximum coverage over
/// all cases. Then prints, for each measure, how many cases have a low, good or high coverage, and the three cases with
/// the lowest coverage.
fn print(title: &str, measures: &[Measure], shapes: &[Shape], runs: usize) {
    let names: Vec<&str> = measures.iter().map(|measure| measure.name).collect();
    println!("\n{title}\n\n| papers x samples | {} |\n|{}", names.join(" | "), "---|".repeat(names.len() + 1));
    let all: Vec<Vec<Vec<SimulatedCell>>> = in_threads(shapes.len(), |place| {
        let shape = shapes[place];
        eprintln!("{title}: {} x {}", shape.papers, shape.samples);
        let of = |measure: &Measure| {
            if shape.papers < measure.papers { Vec::new() } else { cells(measure, shape, runs) }
        };
        measures.iter().map(of).collect()
    });
    for (shape, row) in shapes.iter().zip(&all) {
        let told = row.iter().map(|cells| {
            let mut covered: Vec<f64> = cells
                .iter()
                .filter(|cell| cell.tally.is_meaningful())
                .map(|cell| 100.0 * cell.tally.coverage())
                .collect();
            covered.sort_by(f64::total_cmp);
            match covered.as_slice() {
                [] if cells.is_empty() => String::new(),
                [] => "too few".to_owned(),
                covered => {
                    format!("{:.1} {:.1} {:.1}", covered[0], covered[covered.len() / 2], covered[covered.len() - 1])
                }
            }
        });
        println!("| {} x {} | {} |", shape.papers, shape.samples, told.collect::<Vec<_>>().join(" | "));
    }
    println!("\n| measure | cells | below 93 | 93 to 97 | above 97 | the lowest |\n|---|---|---|---|---|---|");
    for (place, measure) in measures.iter().enumerate() {
        let mut told: Vec<&SimulatedCell> =
            all.iter().flat_map(|row| &row[place]).filter(|cell| cell.tally.is_meaningful()).collect();
        told.sort_by(|a, b| a.tally.coverage().total_cmp(&b.tally.coverage()));
        let count = |within: &dyn Fn(f64) -> bool| told.iter().filter(|cell| within(cell.tally.coverage())).count();
        let lowest: Vec<String> =
            told.iter().take(3).map(|cell| format!("{:.1} ({})", 100.0 * cell.tally.coverage(), cell.name)).collect();
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            measure.name,
            told.len(),
            count(&|it| it < 0.93),
            count(&|it| (0.93..=0.97).contains(&it)),
            count(&|it| it > 0.97),
            lowest.join("; ")
        );
    }
}

/// Computes `of(0)`, `of(1)`, … on all processors and returns the results in order.
fn in_threads<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new(Vec::new());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                loop {
                    // Start from the end: the cases with the most samples come last in the tables and take longest. If
                    // one of them were started last, the other threads would have to wait for it.
                    let taken = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(place) = count.checked_sub(taken + 1) else { break };
                    let value = of(place);
                    found.lock().unwrap().push((place, value));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, value)| value).collect()
}

fn shapes(papers: &[usize], samples: &[usize]) -> Vec<Shape> {
    papers.iter().flat_map(|&papers| samples.iter().map(move |&samples| Shape::even(papers, samples, 1))).collect()
}

#[test]
#[ignore = "a measurement, the tables of docs/statistics.md: cargo test --release --lib the_simulation_prints_the_coverage_tables_of_the_docs -- --ignored --nocapture"]
fn the_simulation_prints_the_coverage_tables_of_the_docs() {
    let runs = std::env::var("RUNS").map_or(1000, |runs| runs.parse().unwrap());
    let part = std::env::var("PART").unwrap_or_default();
    let is_asked = |name: &str| part.is_empty() || part.split(',').any(|part| part == name);
    if is_asked("grid") {
        let grid = chances(&[0.02, 0.1, 0.3, 0.5, 0.9, 0.98], &[(1.0, 4.0)], &[]);
        let all = shapes(&[1, 2, 3, 6, 20], &[2, 3, 4, 8, 24, 100]);
        print("The grid", &measures(&grid, &[1, 3, 5], &[5.0]), &all, runs);
    }
    // These are held-out distributions: they were not used when the method of the intervals was chosen.
    let other = chances(&[0.05, 0.2, 0.7, 0.95], &[(0.5, 0.5), (2.0, 8.0)], &[0.3, 0.8]);
    if is_asked("held") {
        let sizes = shapes(&[1, 2, 4, 10], &[2, 5, 6, 12, 40]);
        print("Held out", &measures(&other, &[1, 4], &[3.0, 20.0]), &sizes, runs);
    }
    if is_asked("uneven") {
        let uneven: Vec<Shape> =
            shapes(&[2, 4, 10], &[5, 12]).into_iter().map(|shape| Shape { uneven: true, ..shape }).collect();
        print("Held out, papers of different sizes", &measures(&other, &[1, 4], &[3.0, 20.0]), &uneven, runs);
    }
    if is_asked("exact") {
        print_exact();
    }
    if is_asked("agreement") {
        print_agreement(20 * runs);
    }
    if is_asked("slopes") {
        let few = shapes(&[1, 2, 3, 6], &[2, 3, 4, 8, 24]);
        print("Slopes", &[slopes("k = 1", 1), slopes("k = 3", 3), slopes("k = 5", 5)], &few, runs);
    }
    if is_asked("baseline") {
        print_baseline(runs);
    }
    if is_asked("power") {
        print_power(runs);
    }
}

/// Prints the exact coverage (computed without simulation) for single attempts, one row for each number of samples.
fn print_exact() {
    println!("\nSingle attempts at the samples of one paper, exact\n\n| samples | lowest | at the rate | below 93 |");
    for samples in SINGLE_SAMPLES {
        let covered = exact_coverages(samples, 5000);
        let (rate, lowest) = covered.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let below = covered.iter().filter(|(_, coverage)| *coverage < 0.93).count();
        println!("| {samples} | {:.2} | {rate:.4} | {below} of {} |", 100.0 * lowest, covered.len());
    }
}

/// Prints how often the interval and the p-value of a difference between two pass rates contradict each other: for
/// Student's interval, and for the interval that reports show.
fn print_agreement(runs: usize) {
    println!("\nIntervals that exclude 0 at p >= 0.05, and that contain it at p < 0.05, in percent; coverage; width\n");
    for samples in [8, 48] {
        for k in [1, 5] {
            for difference in [0.0, 0.2, 0.4] {
                let both = [Chances::varying(0.3), Chances::varying(0.3 + difference)];
                let mut uniform = Uniform(7);
                let mut counts = [AgreementCounts::default(); 2];
                for _ in 0..runs {
                    let drawn = differences(Shape::even(1, samples, k), both, Pairing::Apart, &mut uniform);
                    let p = sign_flip(&drawn.iter().map(|sample| sample.value).collect::<Vec<_>>());
                    let how = Intervals::default();
                    let student = student_difference(&drawn, k as f64, how).unwrap().interval;
                    let shown = difference_interval(&drawn, k as f64, how).unwrap();
                    for (counts, interval) in counts.iter_mut().zip([student, shown]) {
                        let contains = (interval.low..=interval.high).contains(&0.0);
                        counts.excluding += usize::from(!contains && p >= 0.05);
                        counts.containing += usize::from(contains && p < 0.05);
                        counts.intervals.count(Some(interval), difference);
                    }
                }
                let told = counts.map(|it| {
                    let share = |count: usize| 100.0 * count as f64 / runs as f64;
                    let width = it.intervals.width / runs as f64;
                    let coverage = 100.0 * it.intervals.coverage();
                    format!("{:.2} | {:.2} | {coverage:.1} | {width:.3}", share(it.excluding), share(it.containing))
                });
                println!("| {samples} | {k} | {difference} | {} | {} |", told[0], told[1]);
            }
        }
    }
}

/// Counts of contradictions between intervals and p-values.
#[derive(Clone, Copy, Default)]
struct AgreementCounts {
    excluding: usize,
    containing: usize,
    intervals: IntervalCounts,
}

fn print_baseline(runs: usize) {
    println!("\nmutant baseline\n");
    let suite =
        [RestoreChances::Even(0.1), RestoreChances::Even(0.3), RestoreChances::Even(0.5), RestoreChances::Uneven(0.6)];
    let papers = [RestoreChances::Even(0.3), RestoreChances::Uneven(0.6), RestoreChances::NewPapers(0.4)];
    for (population, kinds) in [(Population::Suite, suite.as_slice()), (Population::Papers, papers.as_slice())] {
        for &chances in kinds {
            for (samples, k) in [(4, 1), (20, 1), (20, 5)] {
                let cells = [1, 3].map(|n| {
                    let baseline = Baseline { chances, n, samples, k, population };
                    format!("{:.1}", 100.0 * baseline.simulate(runs, 7).coverage())
                });
                println!("| {population:?} | {chances:?} | {samples} | {k} | {} | {} |", cells[0], cells[1]);
            }
        }
    }
}

fn print_power(runs: usize) {
    println!("\npower\n");
    for k in [1, 3, 5] {
        for means in [[0.4, 0.6], [0.1, 0.2], [0.3, 0.6], [0.5, 0.9], [0.1, 0.7], [0.05, 0.95]] {
            for alike in [0.0, 1.0 / 3.0] {
                let (samples, share) = promised_and_seen(k, means, alike, runs);
                println!("| {k} | {alike:.2} | {means:?} | {samples} | {:.1} |", 100.0 * share);
            }
        }
    }
}
