//! Evaluation of verifiers, which choose one of a sample's attempts without knowing which of them pass. The pass rate
//! of the chosen attempts is compared with pass@1 (a random choice) and pass@k (the best possible choice).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use comfy_table::ColumnConstraint;
use schemars::JsonSchema;
use serde::Serialize;

use super::clean::{clean, middle_cut};
use super::names::short_name;
use super::terminal::{TOO_FEW, plain_table, too_few_legend, trimmed, wrap};
use crate::run::{Outcome, scored};
use crate::stats::{FEWEST_SAMPLES, Interval, Intervals, SampleValue, gap_closed, pass_at_k, rate_interval};
use crate::verifier::stored::ChoiceRecord;

/// Maximum width of a verifier's name, in characters.
const VERIFIER_WIDTH: usize = 24;

/// Results of one verifier that chose among the attempts of one agent and model, at one n or over all n.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerifierRow {
    /// The verifier's label.
    pub verifier: String,
    /// The agent's label.
    pub agent: String,
    /// The model's name.
    pub model: Option<String>,
    /// Number of masked functions of the samples in this row; `None` in the row of all samples.
    pub n: Option<usize>,
    /// Samples at which the verifier chose an attempt.
    pub samples: usize,
    /// Attempts per sample; the smallest number if samples have different numbers.
    pub k: usize,
    /// Pass rates of a single attempt, of the chosen attempt, and of the best of all attempts, each averaged over
    /// samples.
    pub rates: [f64; 3],
    /// Confidence intervals of `rates`.
    pub intervals: Option<[Interval; 3]>,
    /// (chosen - single) / (best - single), computed from the pass rates in `rates`; `None` if best equals single.
    pub gap_closed: Option<f64>,
    /// Confidence interval of `gap_closed`.
    pub gap_interval: Option<Interval>,
    /// Dollars spent on choosing.
    pub cost: f64,
    /// Number of replies of the verifier's model that named a candidate that doesn't exist.
    pub unknown: u32,
    /// Number of replies that named no candidate, plus the number of questions that got no reply because the question
    /// was refused or too long.
    pub unreadable: u32,
}

/// Computes the rows of all verifiers that chose among these attempts. Samples with attempts that the verifier didn't
/// see are left out.
#[must_use]
pub fn verifier_rows(records: &[Outcome], choices: &[ChoiceRecord], how: Intervals) -> Vec<VerifierRow> {
    /// The data of a row: for each sample, the pass rates of a single attempt, of the chosen one and of the best one;
    /// the smallest number of attempts at a sample; and sums over the samples.
    #[derive(Clone, Default)]
    struct VerifierTally<'a> {
        samples: Vec<(SampleValue<'a>, [f64; 3])>,
        k: Option<usize>,
        cost: f64,
        unknown: u32,
        unreadable: u32,
    }
    if choices.is_empty() {
        return Vec::new();
    }
    let mut groups: HashMap<(&str, Option<&str>, &str), BTreeMap<u32, &Outcome>> = HashMap::new();
    for record in scored(records) {
        let group = groups.entry((&record.agent, record.model.as_deref(), &record.sample)).or_default();
        group.insert(record.attempt, record);
    }
    // Two processes may have chosen among the same attempts at the same time. Only the first of such choices counts.
    let mut seen = BTreeSet::new();
    let choices = choices.iter().filter(|choice| {
        seen.insert((&choice.verifier, &choice.agent, &choice.model, &choice.sample, &choice.attempts))
    });
    let mut tallies: BTreeMap<(&str, &str, Option<&str>), BTreeMap<usize, VerifierTally<'_>>> = BTreeMap::new();
    for choice in choices {
        let group = groups.get(&(choice.agent.as_str(), choice.model.as_deref(), choice.sample.as_str()));
        let Some(group) = group.filter(|group| group.keys().eq(&choice.attempts)) else { continue };
        let Some(first) = group.values().next() else { continue };
        let k = group.len();
        let passed = group.values().filter(|record| record.pass).count();
        let chosen = choice.chosen.and_then(|chosen| group.get(&chosen));
        let values = [
            passed as f64 / k as f64,
            f64::from(u8::from(chosen.is_some_and(|record| record.pass))),
            pass_at_k(k, passed, k).unwrap_or_default(),
        ];
        let by_n = tallies.entry((&choice.verifier, &choice.agent, choice.model.as_deref())).or_default();
        let tally = by_n.entry(first.n).or_default();
        tally.samples.push((SampleValue { paper: &first.paper, n: first.n, value: 0.0 }, values));
        tally.k = Some(tally.k.map_or(k, |least| least.min(k)));
        tally.cost += choice.cost;
        tally.unknown = tally.unknown.saturating_add(choice.unknown);
        tally.unreadable = tally.unreadable.saturating_add(choice.unreadable);
    }
    let mut rows = Vec::new();
    for ((verifier, agent, model), by_n) in tallies {
        let row = |n: Option<usize>, tally: VerifierTally<'_>| {
            let samples = tally.samples.len();
            let gap = gap_closed(&tally.samples, how);
            let column = |column: usize| -> Vec<SampleValue<'_>> {
                tally.samples.iter().map(|(sample, values)| SampleValue { value: values[column], ..*sample }).collect()
            };
            let k = tally.k.unwrap_or_default();
            // At each sample, the pass rate of a single attempt is the mean over all k attempts and so counts as k
            // trials. The other two rates count as one trial.
            let [single, chosen, best] =
                [(0, k as f64), (1, 1.0), (2, 1.0)].map(|(place, trials)| rate_interval(&column(place), trials, how));
            VerifierRow {
                verifier: verifier.to_owned(),
                agent: agent.to_owned(),
                model: model.map(str::to_owned),
                n,
                samples,
                k,
                rates: std::array::from_fn(|column| {
                    tally.samples.iter().map(|(_, values)| values[column]).sum::<f64>() / samples as f64
                }),
                intervals: single.zip(chosen).zip(best).map(|((single, chosen), best)| [single, chosen, best]),
                gap_closed: gap.map(|(share, _)| share),
                gap_interval: gap.and_then(|(_, interval)| interval),
                cost: tally.cost,
                unknown: tally.unknown,
                unreadable: tally.unreadable,
            }
        };
        let several = by_n.len() > 1;
        let mut all = VerifierTally::default();
        for (n, tally) in by_n {
            all.samples.extend(&tally.samples);
            all.k = all.k.into_iter().chain(tally.k).min();
            all.cost += tally.cost;
            all.unknown = all.unknown.saturating_add(tally.unknown);
            all.unreadable = all.unreadable.saturating_add(tally.unreadable);
            rows.push(row(Some(n), tally));
        }
        if several {
            rows.push(row(None, all));
        }
    }
    rows
}

/// Formats the rows as a table with a legend that says how the intervals were made.
#[must_use]
pub fn verifiers_console(rows: &[VerifierRow], how: Intervals) -> String {
    let mut table = plain_table();
    table.set_header(["verifier", "agent", "n", "samples", "k", "pass@1", "chosen", "pass@k", "gap closed %"]);
    // Shorten the name: a model's name may be a long path.
    let verifier = |row: &VerifierRow| middle_cut(&row.verifier, VERIFIER_WIDTH);
    for row in rows {
        let rate = |column: usize| {
            let bounds = row.intervals.map(|intervals| intervals[column]);
            let bounds = bounds.map(|it| format!("[{:.0}, {:.0}]", 100.0 * it.low, 100.0 * it.high));
            format!("{:.0} {}", 100.0 * row.rates[column], bounds.as_deref().unwrap_or(TOO_FEW))
        };
        table.add_row([
            verifier(row),
            short_name(&row.agent, row.model.as_deref()),
            row.n.map_or_else(|| "all".to_owned(), |n| n.to_string()),
            row.samples.to_string(),
            row.k.to_string(),
            rate(0),
            rate(1),
            rate(2),
            row.gap(),
        ]);
    }
    let mut legend = format!(
        "pass@1, chosen, pass@k: percent of samples that one attempt, the chosen one, and the best of all pass. gap closed: \
         (chosen - pass@1) / (pass@k - pass@1). Intervals: {:.0}%, {}.",
        100.0 * how.level,
        how.legend()
    );
    if rows.iter().any(|row| row.intervals.is_none() || (row.gap_closed.is_some() && row.gap_interval.is_none())) {
        let _ = write!(legend, " {}", too_few_legend(FEWEST_SAMPLES, how));
    }
    // Skip the rows over all n, because the rows for single n already contain the same costs and counts.
    let mut asked: BTreeMap<&str, (f64, u32, u32)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.n.is_some()) {
        let told = asked.entry(&row.verifier).or_default();
        let (unreadable, unknown) = (told.1.saturating_add(row.unreadable), told.2.saturating_add(row.unknown));
        *told = (told.0 + row.cost, unreadable, unknown);
    }
    for (verifier, (cost, unreadable, unknown)) in asked {
        let mut told = Vec::new();
        if unreadable > 0 {
            told.push(format!("gave no vote that could be read {unreadable} times"));
        }
        if unknown > 0 {
            told.push(format!("named a candidate that does not exist {unknown} times"));
        }
        if cost > 0.0 || !told.is_empty() {
            told.insert(0, format!("cost ${cost:.4}"));
            let _ = write!(legend, " {} {}.", clean(verifier), told.join(" and "));
        }
    }
    // Only names may be wrapped; a rate stays on one line with its interval.
    for column in table.column_iter_mut().skip(2) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    format!("Verifiers\n{}\n{}\n", trimmed(table, &[]), wrap(&legend, ""))
}

impl VerifierRow {
    /// Formats [`Self::gap_closed`] in percent, with its interval.
    pub(super) fn gap(&self) -> String {
        let Some(share) = self.gap_closed else { return "-".to_owned() };
        let bounds = self.gap_interval.map(|it| format!("[{:.0}, {:.0}]", 100.0 * it.low, 100.0 * it.high));
        format!("{:.0} {}", 100.0 * share, bounds.as_deref().unwrap_or(TOO_FEW))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::model::Usage;
    use crate::sample::masked;

    #[test]
    fn a_verifiers_row_for_n_masked_functions_has_the_cost_and_attempts_of_samples_with_n_masked_functions() {
        let (mut records, mut choices) = (Vec::new(), Vec::new());
        for (id, attempts, cost) in [("x_0", 2, 0.25), ("x_1", 2, 0.25), ("x_0,1", 3, 1.0)] {
            let sample = masked(id);
            for attempt in 0..attempts {
                let pass = attempt == 1;
                records.push(Outcome { pass, end: End::Answered, ..Outcome::blank("a", &sample, attempt) });
            }
            choices.push(ChoiceRecord {
                verifier: "v".to_owned(),
                agent: "a".to_owned(),
                model: None,
                sample: sample.id().to_owned(),
                attempts: (0..attempts).collect(),
                chosen: Some(1),
                reason: String::new(),
                usage: Usage::default(),
                cost,
                unknown: 1,
                unreadable: 2,
            });
        }
        choices.push(choices[0].clone());
        let rows = verifier_rows(&records, &choices, Intervals::default());
        let told: Vec<_> = rows.iter().map(|row| (row.n, row.samples, row.k, row.cost)).collect();
        assert_eq!(told, [(Some(1), 2, 2, 0.5), (Some(2), 1, 3, 1.0), (None, 3, 2, 1.5)]);
        assert!(rows.iter().all(|row| row.gap_closed == Some(1.0)), "{rows:?}");
    }
}
