//! The table of a suite: the contents of each paper and the evidence for its soundness, read from files without running
//! anything.
//!
//! [`suite_rows`] computes one row per paper and one for all; [`suite_console`], [`suite_markdown`] and [`suite_csv`]
//! render them. Values that have not been measured are `None` and shown as `-`.

use comfy_table::{Cell, CellAlignment};
use serde::Serialize;

use super::clean;
use super::csv::write;
use crate::sample::{Nesting, UnitChoice};
use crate::suite::{LoadedPaper, PaperEvidence, Protocol};

/// The values of n that have a column in the table.
const SHOWN: std::ops::RangeInclusive<usize> = 1..=5;

/// Name of the row of all papers.
const ALL: &str = "all";

/// The row of one paper, or of all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuiteRow {
    /// The paper's id; `all` in the row of all papers.
    pub paper: String,
    /// Year of publication; `None` in the row of all papers.
    pub year: Option<u16>,
    /// Maskable functions; in a paper without functions, its regions.
    pub functions: usize,
    /// Experiments.
    pub experiments: usize,
    /// For n from 1 to 5, the exact number of samples with n masked functions; `None` if it exceeds u128.
    pub samples: Vec<Option<u128>>,
    /// For n from 1 to 5, the mean number of tests of a sample with n masked functions.
    pub tests: Option<Vec<f64>>,
    /// For n from 1 to 5, the mean seconds for running the tests of a sample with n masked functions one after another.
    /// A test takes the median time of its gold runs, which are repeated runs of the unmasked code.
    pub seconds: Option<Vec<f64>>,
    /// Mean number of lines of the functions.
    pub lines: f64,
    /// Mean number of calls in the functions' bodies.
    pub calls: f64,
    /// Share of killed mutants among those that are not equivalent to the original, 0 to 1.
    pub mutation_score: Option<f64>,
    /// Share, from 0 to 1, of a function's body that agents can also read in one other place: the maximum over all
    /// functions and places.
    pub containment: Option<f64>,
}

/// Sums from which the means in a row are computed.
#[derive(Default)]
struct RowSums {
    lines: usize,
    calls: usize,
    /// For n from 1 to 5, the number of tests of all samples with n masked functions. `seconds` is the sum of their
    /// durations.
    tests: Option<Vec<f64>>,
    seconds: Option<Vec<f64>>,
    /// Numbers of killed mutants and of mutants that are not equivalent.
    mutants: Option<(usize, usize)>,
}

/// Computes one row per paper, in the given order, and one row for all papers if there are several. The evidence of a
/// paper must be about the current state of its repo; pass `None` if there is no such evidence.
#[must_use]
pub fn suite_rows(papers: &[(LoadedPaper, Option<PaperEvidence>)]) -> Vec<SuiteRow> {
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for (loaded, evidence) in papers {
        let (row, sums) = row(loaded, evidence.as_ref());
        rows.push(row);
        all.push(sums);
    }
    if rows.len() > 1 {
        rows.push(total(&rows, &all));
    }
    rows
}

fn row(loaded: &LoadedPaper, evidence: Option<&PaperEvidence>) -> (SuiteRow, RowSums) {
    let drawn = loaded.drawn(UnitChoice::default(), |_| true);
    let (places, nesting) = &drawn;
    let all = loaded.statistics();
    let statistics: Vec<_> = places.iter().map(|&place| &all[place]).collect();
    let functions = places.len();
    let samples: Vec<Option<u128>> = SHOWN.map(|n| nesting.count(n)).collect();
    // Use the stored measurements (`evidence`) only if they cover every function of the paper.
    let measured: Option<Vec<_>> =
        evidence.and_then(|evidence| statistics.iter().map(|function| evidence.functions.get(&function.at)).collect());
    let mutants = measured.as_ref().map(|measured| {
        let real = |it: &&crate::suite::FunctionEvidence| it.mutants.saturating_sub(it.equivalent);
        (measured.iter().map(|it| it.killed).sum(), measured.iter().map(real).sum())
    });
    let sums = RowSums {
        lines: statistics.iter().map(|function| function.lines).sum(),
        calls: statistics.iter().map(|function| function.calls).sum(),
        tests: over_samples(loaded, &drawn, |_| Some(1.0)),
        seconds: over_samples(loaded, &drawn, |experiment| gold_seconds(loaded, experiment)),
        mutants,
    };
    let row = SuiteRow {
        paper: loaded.paper.id.clone(),
        year: Some(loaded.paper.year),
        functions,
        experiments: loaded.paper.experiments.len(),
        tests: means(sums.tests.as_deref(), &samples),
        seconds: means(sums.seconds.as_deref(), &samples),
        samples,
        lines: mean(sums.lines, functions),
        calls: mean(sums.calls, functions),
        mutation_score: score(mutants),
        containment: measured.map(|measured| measured.iter().map(|it| it.containment).fold(0.0, f64::max)),
    };
    (row, sums)
}

fn total(rows: &[SuiteRow], sums: &[RowSums]) -> SuiteRow {
    let functions = rows.iter().map(|row| row.functions).sum();
    let by_n = |of: &dyn Fn(&RowSums) -> Option<Vec<f64>>| -> Option<Vec<f64>> {
        let all: Vec<Vec<f64>> = sums.iter().map(of).collect::<Option<_>>()?;
        Some(SHOWN.enumerate().map(|(place, _)| all.iter().map(|one| one[place]).sum()).collect())
    };
    let samples: Vec<Option<u128>> = SHOWN
        .enumerate()
        .map(|(place, _)| rows.iter().try_fold(0_u128, |sum, row| sum.checked_add(row.samples[place]?)))
        .collect();
    let mutants: Option<Vec<(usize, usize)>> = sums.iter().map(|sums| sums.mutants).collect();
    let mutants = mutants.map(|all| all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)));
    SuiteRow {
        paper: ALL.to_owned(),
        year: None,
        functions,
        experiments: rows.iter().map(|row| row.experiments).sum(),
        tests: means(by_n(&|sums| sums.tests.clone()).as_deref(), &samples),
        seconds: means(by_n(&|sums| sums.seconds.clone()).as_deref(), &samples),
        samples,
        lines: mean(sums.iter().map(|sums| sums.lines).sum(), functions),
        calls: mean(sums.iter().map(|sums| sums.calls).sum(), functions),
        mutation_score: score(mutants),
        containment: rows.iter().map(|row| row.containment).try_fold(0.0, |most: f64, one| Some(most.max(one?))),
    }
}

/// Sums the weights of the tests of all samples, for each n. The sums are exact except for the rounding of floats.
///
/// An experiment is a test of each sample that masks at least one function that the experiment needs. The number of
/// these samples is the number of all samples minus the number of samples that mask only functions that the experiment
/// does not need. `places` are the functions that samples mask, as indices in the manifest. Returns `None` without a
/// dependency matrix or if an experiment has no weight.
fn over_samples(
    loaded: &LoadedPaper,
    (places, nesting): &(Vec<usize>, Nesting),
    weight: impl Fn(usize) -> Option<f64>,
) -> Option<Vec<f64>> {
    let dependencies = loaded.dependencies.as_ref()?;
    SHOWN
        .map(|n| {
            let all = nesting.count(n)?;
            let mut sum = 0.0;
            for (place, experiment) in loaded.paper.experiments.iter().enumerate() {
                let at = |function: usize| &loaded.paper.units[places[function]].at;
                let is_needed = |function: usize| dependencies.is_test_of(&experiment.id, at(function));
                let without = nesting.count_of(n, |function| !is_needed(function))?;
                sum += weight(place)? * (all - without) as f64;
            }
            Some(sum)
        })
        .collect()
}

/// Median duration in seconds of an experiment's curtailed (shortened) form, over its repeated gold runs.
fn gold_seconds(loaded: &LoadedPaper, experiment: usize) -> Option<f64> {
    let results = loaded.gold.as_ref()?.results.get(&Protocol::Curtailed)?;
    let mut seconds = results.get(&loaded.paper.experiments[experiment].id)?.seconds.clone();
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.len() / 2;
    Some(if seconds.len() % 2 == 1 {
        seconds[middle]
    } else {
        (seconds.get(middle.checked_sub(1)?)? + seconds[middle]) / 2.0
    })
}

fn means(sums: Option<&[f64]>, samples: &[Option<u128>]) -> Option<Vec<f64>> {
    sums?.iter().zip(samples).map(|(sum, samples)| Some(sum / (*samples)?.max(1) as f64)).collect()
}

fn mean(sum: usize, count: usize) -> f64 {
    sum as f64 / count.max(1) as f64
}

fn score(mutants: Option<(usize, usize)>) -> Option<f64> {
    mutants.filter(|(_, real)| *real > 0).map(|(killed, real)| killed as f64 / real as f64)
}

const HEADING: [&str; 10] = [
    "paper",
    "functions",
    "experiments",
    "samples, n = 1 to 5",
    "tests per sample",
    "seconds per sample",
    "lines",
    "calls",
    "mutation score",
    "worst containment",
];

const LEGEND: &str = "tests and seconds per sample: means over all samples of each n; seconds as measured when gold was \
recorded. lines and calls: means of the functions. mutation score: share of wrong variants of the functions that some \
test distinguishes from the original. worst containment: largest part of a function's body that is also elsewhere in \
what agents see.";

fn cells(row: &SuiteRow) -> Vec<String> {
    let list = |texts: Vec<String>| texts.join(" / ");
    let decimals = |values: &Option<Vec<f64>>| {
        values
            .as_ref()
            .map_or("-".to_owned(), |values| list(values.iter().map(|value| format!("{value:.1}")).collect()))
    };
    let share = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    vec![
        row.year.map_or_else(|| row.paper.clone(), |year| format!("{} ({year})", row.paper)),
        row.functions.to_string(),
        row.experiments.to_string(),
        list(row.samples.iter().copied().map(count).collect()),
        decimals(&row.tests),
        decimals(&row.seconds),
        format!("{:.1}", row.lines),
        format!("{:.1}", row.calls),
        share(row.mutation_score),
        share(row.containment),
    ]
}

/// Formats a number with commas between thousands.
fn count(number: Option<u128>) -> String {
    let Some(number) = number else { return "> 10^38".to_owned() };
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats the rows for a terminal: one table of the values that do not depend on n, the number of masked functions,
/// and one table for each value that does.
#[must_use]
pub fn suite_console(rows: &[SuiteRow]) -> String {
    let fixed = [0, 1, 2, 6, 7, 8, 9];
    let mut parts = vec![aligned(
        &fixed.map(|column| HEADING[column].to_owned()),
        rows.iter().map(|row| {
            let cells = cells(row);
            fixed.iter().map(|&column| cells[column].clone()).collect()
        }),
    )];
    let by_n = |title: &str, figures: &dyn Fn(&SuiteRow) -> Option<Vec<String>>| {
        let mut heading = vec![title.to_owned()];
        heading.extend(SHOWN.map(|n| format!("n={n}")));
        let rows = rows.iter().map(|row| {
            let mut cells = vec![clean(&row.paper)];
            cells.extend(figures(row).unwrap_or_else(|| SHOWN.map(|_| "-".to_owned()).collect()));
            cells
        });
        aligned(&heading, rows)
    };
    let one = |values: &Option<Vec<f64>>| {
        values.as_ref().map(|values| values.iter().map(|value| format!("{value:.1}")).collect())
    };
    parts.push(by_n("samples", &|row| Some(row.samples.iter().copied().map(count).collect())));
    parts.push(by_n(HEADING[4], &|row| one(&row.tests)));
    parts.push(by_n(HEADING[5], &|row| one(&row.seconds)));
    parts.push(super::terminal::wrap(LEGEND, ""));
    parts.join("\n\n") + "\n"
}

/// Renders a plain table with the first column left-aligned and the others right-aligned.
fn aligned(heading: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| {
        let alignment = |place| if place == 0 { CellAlignment::Left } else { CellAlignment::Right };
        cells
            .iter()
            .enumerate()
            .map(|(place, text)| Cell::new(clean(text)).set_alignment(alignment(place)))
            .collect::<Vec<_>>()
    };
    let mut table = super::terminal::plain_table();
    table.set_header(line(heading));
    for row in rows {
        table.add_row(line(&row));
    }
    super::terminal::trimmed(table, &[])
}

/// Formats the rows as a Markdown table, with the meaning of its columns below.
#[must_use]
pub fn suite_markdown(rows: &[SuiteRow]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&HEADING.map(str::to_owned));
    text.push_str("|---|");
    text.push_str(&"---:|".repeat(HEADING.len() - 1));
    text.push('\n');
    for row in rows {
        let cells: Vec<String> = cells(row).iter().map(|cell| clean(cell).replace('|', "\\|")).collect();
        text.push_str(&line(&cells));
    }
    // Each sentence of the legend gets a line of its own.
    let sentence = |part: &str| part[..1].to_uppercase() + &part[1..];
    let legend = LEGEND.split(". ").map(sentence).collect::<Vec<_>>().join(".\n");
    format!("{text}\n{legend}\n")
}

/// Formats the rows as CSV. A value that depends on n has five columns, with the suffixes `_1` to `_5`; any other value
/// has one. Unknown values are empty cells.
#[must_use]
pub fn suite_csv(rows: &[SuiteRow]) -> String {
    let mut heading = ["paper", "year", "functions", "experiments"].map(str::to_owned).to_vec();
    for figure in ["samples", "tests", "seconds"] {
        heading.extend(SHOWN.map(|n| format!("{figure}_{n}")));
    }
    heading.extend(["lines", "calls", "mutation_score", "containment"].map(str::to_owned));
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let rows = rows.iter().map(|row| {
        let mut cells = vec![
            super::clean::cell(&row.paper),
            row.year.map(|year| year.to_string()).unwrap_or_default(),
            row.functions.to_string(),
            row.experiments.to_string(),
        ];
        cells.extend(row.samples.iter().map(|count| count.map(|count| count.to_string()).unwrap_or_default()));
        for figures in [&row.tests, &row.seconds] {
            cells.extend((0..row.samples.len()).map(|place| number(figures.as_ref().map(|figures| figures[place]))));
        }
        cells.extend([Some(row.lines), Some(row.calls), row.mutation_score, row.containment].map(number));
        cells
    });
    write(&heading, rows)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use itertools::Itertools;

    use super::*;
    use crate::suite::{FunctionEvidence, Suite};

    fn papers() -> Vec<(LoadedPaper, Option<PaperEvidence>)> {
        let suite = Suite::open(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        suite.ids().unwrap().iter().map(|id| (LoadedPaper::load(&suite, id).unwrap(), None)).collect()
    }

    fn evidence(loaded: &LoadedPaper, of_one: &FunctionEvidence) -> PaperEvidence {
        let functions = loaded.paper.functions.iter().map(|it| (it.at.clone(), of_one.clone())).collect();
        PaperEvidence { functions, ..PaperEvidence::default() }
    }

    #[test]
    fn mean_numbers_of_tests_and_seconds_equal_the_means_over_a_list_of_all_samples() {
        // Remove one experiment from the dependency matrix of every second paper. An experiment that is missing from
        // the matrix counts as a test of every sample.
        for (place, (mut loaded, _)) in papers().into_iter().enumerate() {
            if let Some(dependencies) = loaded.dependencies.as_mut().filter(|_| place % 2 == 1) {
                dependencies.needs.pop_last();
            }
            let (row, _) = row(&loaded, None);
            if loaded.dependencies.is_none() {
                assert_eq!((row.tests, row.seconds), (None, None));
                continue;
            }
            let functions = 0..loaded.paper.functions.len();
            let (_, nesting) = loaded.drawn(UnitChoice::default(), |_| true);
            for n in 1..=3 {
                let samples: Vec<_> =
                    functions.clone().combinations(n).filter(|chosen| nesting.allows(chosen)).collect();
                let mean_of = |weight: &dyn Fn(usize) -> f64| {
                    let of_sample = |sample: &Vec<usize>| loaded.tests(sample).into_iter().map(weight).sum::<f64>();
                    samples.iter().map(of_sample).sum::<f64>() / samples.len() as f64
                };
                let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{} n = {n}: {a} and {b}", loaded.paper.id);
                close(row.tests.as_ref().unwrap()[n - 1], mean_of(&|_| 1.0));
                let seconds = |experiment| gold_seconds(&loaded, experiment).unwrap();
                close(row.seconds.as_ref().unwrap()[n - 1], mean_of(&seconds));
            }
        }
    }

    #[test]
    fn the_row_of_all_papers_counts_every_sample_function_and_mutant_once() {
        let mut papers = papers();
        let rows = suite_rows(&papers);
        let (all, each) = rows.split_last().unwrap();
        assert_eq!(all.functions, each.iter().map(|row| row.functions).sum::<usize>());
        assert_eq!(all.samples[1], each.iter().map(|row| row.samples[1]).sum());
        assert_eq!((all.mutation_score, all.containment), (None, None));
        if let Some(tests) = &all.tests {
            let total: f64 =
                each.iter().map(|row| row.tests.as_ref().unwrap()[2] * row.samples[2].unwrap() as f64).sum();
            assert!((tests[2] - total / all.samples[2].unwrap() as f64).abs() < 1e-9);
        }

        papers.truncate(2);
        let one = FunctionEvidence { mutants: 10, killed: 8, containment: 0.25, ..FunctionEvidence::default() };
        papers[0].1 = Some(evidence(&papers[0].0, &one));
        let two = FunctionEvidence { mutants: 12, killed: 10, equivalent: 2, containment: 0.5, ..one };
        papers[1].1 = Some(evidence(&papers[1].0, &two));
        let rows = suite_rows(&papers);
        let scores: Vec<f64> = rows.iter().map(|row| row.mutation_score.unwrap()).collect();
        let (first, second) = (rows[0].functions as f64, rows[1].functions as f64);
        for (score, expected) in
            scores.iter().zip([0.8, 1.0, (8.0 * first + 10.0 * second) / (10.0 * (first + second))])
        {
            assert!((score - expected).abs() < 1e-12);
        }
        let containments: Vec<_> = rows.iter().map(|row| row.containment).collect();
        assert_eq!(containments, [Some(0.25), Some(0.5), Some(0.5)]);
    }

    #[test]
    fn a_papers_row_lacks_mutation_score_and_containment_if_evidence_for_a_function_is_missing() {
        let (loaded, _) = papers().remove(0);
        let mut part = evidence(&loaded, &FunctionEvidence { mutants: 1, killed: 1, ..FunctionEvidence::default() });
        assert!(row(&loaded, Some(&part)).0.mutation_score.is_some());
        part.functions.pop_first();
        let (row, _) = row(&loaded, Some(&part));
        assert_eq!((row.mutation_score, row.containment), (None, None));
        assert_eq!(&cells(&row)[8..], ["-", "-"]);
    }

    #[test]
    fn csv_has_a_cell_for_every_heading() {
        let text = suite_csv(&suite_rows(&papers()));
        let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert!(widths.iter().all(|&width| width == 23), "{widths:?}");
        assert!(text.starts_with("paper,year,functions,experiments,samples_1,"));
    }

    #[test]
    fn counts_are_written_with_commas_between_groups_of_three_digits() {
        assert_eq!(
            [0, 999, 1000, 275_990, 1_234_567].map(|it| count(Some(it))),
            ["0", "999", "1,000", "275,990", "1,234,567"]
        );
    }
}
