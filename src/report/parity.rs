//! Parity of two stored runs over the same samples, in the form that Harbor asks of adapters
//! (`parity_experiment.json`). By Harbor's rule, two sides agree if the ranges of their runs' results overlap. Here,
//! the first attempts at all samples count as one run, the second attempts as another, and so on.

use std::collections::BTreeMap;

use serde::Serialize;

use super::terminal::{plain_table, trimmed, wrap};
use crate::run::{Outcome, scored};
use crate::stats::standard_error;

/// The value that is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aspect {
    /// Pass rate in percent.
    Pass,
    /// A measure in the verdicts, by name.
    Measure(String),
}

/// Results of the two sides, the original benchmark and its adapter in Harbor, over the samples that both attempted.
#[derive(Debug, Clone, PartialEq)]
pub struct Parity {
    /// Samples with an attempt in every run of both sides.
    pub samples: usize,
    /// Samples that are left out, because a run of one side has no attempt at them.
    pub unmatched: usize,
    /// For each side and each of its runs, the mean over the samples.
    pub runs: [Vec<f64>; 2],
}

impl Parity {
    /// Whether the ranges of the two sides' runs overlap or touch.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        let [(low, high), (other_low, other_high)] = self.runs.each_ref().map(|runs| range(runs));
        low <= other_high && other_low <= high
    }
}

/// Descriptive fields that Harbor requires in addition to the results.
#[derive(Debug, Clone, Default)]
pub struct ParityDescription {
    /// The adapter's name.
    pub adapter: String,
    /// The benchmark's name.
    pub benchmark: String,
    /// Number of tasks that the adapter converts, if it is larger than the number compared.
    pub size: Option<usize>,
    /// Free-text notes.
    pub notes: String,
}

/// An entry of `parity_experiment.json`, with the field names that Harbor's validator reads. The fields for links are
/// empty, for the adapter's author to fill in.
#[derive(Debug, Serialize)]
pub struct ParityExperiment {
    adapter_name: String,
    agent: String,
    model: String,
    date: String,
    adapted_benchmark_size: usize,
    parity_benchmark_size: usize,
    number_of_runs: usize,
    notes: String,
    original_parity_repo: String,
    adapter_pr: Vec<String>,
    dataset_pr: Vec<String>,
    parity_pr: Vec<String>,
    metrics: [ParityMetric; 1],
    ranges_overlap: bool,
}

#[derive(Debug, Serialize)]
struct ParityMetric {
    benchmark_name: String,
    metric: String,
    original: String,
    harbor: String,
    original_runs: Vec<f64>,
    harbor_runs: Vec<f64>,
}

/// Compares the records of two sides, each with one agent. Attempts that were lost to infrastructure failures or lack
/// the value are ignored. A side has as many runs as its largest number of attempts at a sample. If the sides have
/// different numbers of runs, the smaller number is used for both. A sample is compared if each side has at least this
/// many attempts at it.
///
/// # Errors
/// Returns an error message that says what the sides lack.
pub fn parity(sides: [&[Outcome]; 2], aspect: &Aspect) -> Result<Parity, String> {
    let values = sides.map(|records| by_sample(records, aspect));
    let most = |side: &BTreeMap<String, BTreeMap<u32, f64>>| side.values().map(BTreeMap::len).max().unwrap_or(0);
    let runs = values.iter().map(most).min().unwrap_or(0);
    if runs == 0 {
        return Err("one side has no attempt with a value to compare".to_owned());
    }
    let is_whole = |values: &BTreeMap<u32, f64>| values.len() >= runs;
    let [first, second] = &values;
    let known = first.keys().chain(second.keys().filter(|id| !first.contains_key(*id)));
    let (both, unmatched): (Vec<&String>, Vec<&String>) =
        known.partition(|id| [first, second].iter().all(|side| side.get(*id).is_some_and(is_whole)));
    if both.is_empty() {
        return Err("no sample has an attempt on both sides in every run".to_owned());
    }
    let means = |side: &BTreeMap<String, BTreeMap<u32, f64>>| {
        // Attempts that `by_sample` has left out are not in `side`; later attempts take their places.
        let of_run = |run: usize| both.iter().filter_map(|id| side.get(*id)?.values().nth(run)).sum::<f64>();
        (0..runs).map(|run| of_run(run) / both.len() as f64).collect()
    };
    Ok(Parity { samples: both.len(), unmatched: unmatched.len(), runs: [means(first), means(second)] })
}

/// Returns the value to compare of each attempt, by sample and attempt number. Leaves out attempts that were lost to
/// infrastructure failures, and attempts without the measure that `aspect` names.
fn by_sample(records: &[Outcome], aspect: &Aspect) -> BTreeMap<String, BTreeMap<u32, f64>> {
    let mut found: BTreeMap<String, BTreeMap<u32, f64>> = BTreeMap::new();
    for record in scored(records) {
        let value = match aspect {
            Aspect::Pass => Some(if record.pass { 100.0 } else { 0.0 }),
            Aspect::Measure(name) => record.measures().get(name).copied(),
        };
        if let Some(value) = value {
            found.entry(record.sample.to_string()).or_default().insert(record.attempt, value);
        }
    }
    found
}

fn range(runs: &[f64]) -> (f64, f64) {
    runs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &run| (low.min(run), high.max(run)))
}

fn mean(runs: &[f64]) -> f64 {
    runs.iter().sum::<f64>() / runs.len() as f64
}

/// Formats the mean and its standard error, as "72.00 ± 1.53"; a single run has no standard error.
fn with_error(runs: &[f64]) -> String {
    let mean = format!("{:.2}", mean(runs));
    standard_error(runs).map_or_else(|| mean.clone(), |error| format!("{mean} ± {error:.2}"))
}

fn metric_name(aspect: &Aspect) -> &str {
    match aspect {
        Aspect::Pass => "pass rate (%)",
        Aspect::Measure(name) => name,
    }
}

/// Builds the entry for Harbor. The names of agent and model and the date are taken from `record`, which is any attempt
/// of the second side (the benchmark's adapter in Harbor).
#[must_use]
pub fn parity_experiment(
    parity: &Parity,
    aspect: &Aspect,
    about: &ParityDescription,
    record: &Outcome,
) -> ParityExperiment {
    let [original_runs, harbor_runs] = parity.runs.clone();
    ParityExperiment {
        adapter_name: about.adapter.clone(),
        agent: format!("{}@{}", record.agent, env!("CARGO_PKG_VERSION")),
        model: record.model.as_deref().unwrap_or_default().to_owned(),
        date: record.started.strftime("%Y-%m-%d").to_string(),
        adapted_benchmark_size: about.size.unwrap_or(parity.samples),
        parity_benchmark_size: parity.samples,
        number_of_runs: original_runs.len(),
        notes: about.notes.clone(),
        original_parity_repo: String::new(),
        adapter_pr: Vec::new(),
        dataset_pr: Vec::new(),
        parity_pr: Vec::new(),
        ranges_overlap: parity.overlaps(),
        metrics: [ParityMetric {
            benchmark_name: about.benchmark.clone(),
            metric: metric_name(aspect).to_owned(),
            original: with_error(&original_runs),
            harbor: with_error(&harbor_runs),
            original_runs,
            harbor_runs,
        }],
    }
}

/// Formats the results of the two sides as a table, followed by a sentence that says whether they agree.
#[must_use]
pub fn parity_console(parity: &Parity, aspect: &Aspect) -> String {
    let mut table = plain_table();
    table.set_header(["side", "samples", "runs", metric_name(aspect), "range"]);
    for (side, runs) in ["original", "harbor"].into_iter().zip(&parity.runs) {
        let (low, high) = range(runs);
        let range = format!("{low:.2} to {high:.2}");
        table.add_row([side.to_owned(), parity.samples.to_string(), runs.len().to_string(), with_error(runs), range]);
    }
    let verdict = if parity.overlaps() { "overlap: parity" } else { "do not overlap: no parity" };
    let legend = format!(
        "The ranges of the two sides {verdict} by Harbor's rule. Each attempt number is a run, over the samples that both \
         sides attempted in all runs; the mean has its standard error. {} other samples are left out.",
        parity.unmatched
    );
    format!("{}\n{}\n", trimmed(table, &[]), wrap(&legend, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::sample::masked;

    fn side(attempts: &[(&str, u32, bool)]) -> Vec<Outcome> {
        let record = |&(id, attempt, pass): &(&str, u32, bool)| {
            let blank = Outcome::blank("react", &masked(id), attempt);
            Outcome { pass, end: End::Answered, ..blank }
        };
        attempts.iter().map(record).collect()
    }

    #[test]
    fn each_attempt_number_counts_as_one_repetition_and_only_samples_that_both_runs_attempted_are_compared() {
        let first = side(&[("p_0", 0, true), ("p_0", 1, false), ("p_1", 0, true), ("p_1", 1, true), ("p_2", 0, true)]);
        let second =
            side(&[("p_0", 0, true), ("p_0", 1, true), ("p_1", 0, false), ("p_1", 1, false), ("p_3", 0, true)]);
        let agree = parity([&first, &second], &Aspect::Pass).unwrap();
        assert_eq!((agree.samples, agree.unmatched), (2, 2));
        assert_eq!(agree.runs, [vec![100.0, 50.0], vec![50.0, 50.0]]);
        assert!(agree.overlaps());
        let about = ParityDescription {
            adapter: "ours".to_owned(),
            benchmark: "Ours".to_owned(),
            ..ParityDescription::default()
        };
        let entry = serde_json::to_value(parity_experiment(&agree, &Aspect::Pass, &about, &second[0])).unwrap();
        assert_eq!((&entry["number_of_runs"], &entry["parity_benchmark_size"]), (&2.into(), &2.into()));
        assert_eq!(entry["metrics"][0]["original"], "75.00 ± 25.00");
        assert_eq!(entry["metrics"][0]["harbor_runs"], serde_json::json!([50.0, 50.0]));
        let text = parity_console(&agree, &Aspect::Pass);
        assert!(text.contains("50.00 to 100.00") && text.contains("overlap: parity"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn runs_with_disjoint_ranges_have_no_parity_and_runs_without_a_common_sample_are_an_error() {
        let [all, none] = [true, false].map(|pass| side(&[("p_0", 0, pass), ("p_0", 1, pass)]));
        let apart = parity([&all, &none], &Aspect::Pass).unwrap();
        assert!(!apart.overlaps() && parity_console(&apart, &Aspect::Pass).contains("no parity"));
        assert!(parity([&all, &side(&[("q_0", 0, true)])], &Aspect::Pass).is_err());
        assert!(parity([&all, &none], &Aspect::Measure("verified_accuracy".to_owned())).is_err());
    }
}
