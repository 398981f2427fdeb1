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
    /// samples; 0 without samples.
    pub rates: [f64; 3],
    /// Confidence intervals of `rates`.
    pub intervals: Option<[Interval; 3]>,
    /// (chosen - single) / (best - single), computed from the pass rates in `rates`; `None` if best equals single.
    pub gap_closed: Option<f64>,
    /// Confidence interval of `gap_closed`.
    pub gap_interval: Option<Interval>,
    /// Dollars spent on choosing. Includes choices that the rates leave out, because they were made twice or among
    /// other attempts than those of the sample now.
    pub cost: f64,
    /// Number of replies of the verifier's model that named a candidate that doesn't exist.
    pub unknown: u32,
    /// Number of replies that named no candidate, plus the number of questions that got no reply because the question
    /// was refused or too long.
    pub unreadable: u32,
}

/// The data of a row.
#[derive(Default)]
struct VerifierTally<'a> {
    /// For each sample, the pass rates of a single attempt, of the chosen one and of the best one.
    samples: Vec<(SampleValue<'a>, [f64; 3])>,
    /// The smallest number of attempts at a sample.
    k: Option<usize>,
    cost: f64,
    unknown: u32,
    unreadable: u32,
}

/// Tallies by n. The key is `None` for choices at samples without attempts, whose n is unknown.
type TalliesByN<'a> = BTreeMap<Option<usize>, VerifierTally<'a>>;

impl<'a> VerifierTally<'a> {
    fn add(&mut self, other: &VerifierTally<'a>) {
        self.samples.extend(&other.samples);
        self.k = self.k.into_iter().chain(other.k).min();
        self.cost += other.cost;
        self.unknown = self.unknown.saturating_add(other.unknown);
        self.unreadable = self.unreadable.saturating_add(other.unreadable);
    }

    /// Computes the row of a verifier, an agent and a model, at `n` masked functions.
    fn row(
        &self,
        (verifier, agent, model): (&str, &str, Option<&str>),
        n: Option<usize>,
        how: Intervals,
    ) -> VerifierRow {
        let samples = self.samples.len();
        let gap = gap_closed(&self.samples, how);
        let column = |column: usize| -> Vec<SampleValue<'_>> {
            self.samples.iter().map(|(sample, values)| SampleValue { value: values[column], ..*sample }).collect()
        };
        let mean = |column: usize| {
            let sum = self.samples.iter().map(|(_, values)| values[column]).sum::<f64>();
            if samples == 0 { 0.0 } else { sum / samples as f64 }
        };
        let k = self.k.unwrap_or_default();
        // At each sample, the pass rate of a single attempt is the mean over all k attempts and so counts as k trials.
        // The other two rates count as one trial.
        let [single, chosen, best] =
            [(0, k as f64), (1, 1.0), (2, 1.0)].map(|(place, trials)| rate_interval(&column(place), trials, how));
        VerifierRow {
            verifier: verifier.to_owned(),
            agent: agent.to_owned(),
            model: model.map(str::to_owned),
            n,
            samples,
            k,
            rates: std::array::from_fn(mean),
            intervals: single.zip(chosen).zip(best).map(|((single, chosen), best)| [single, chosen, best]),
            gap_closed: gap.map(|(share, _)| share),
            gap_interval: gap.and_then(|(_, interval)| interval),
            cost: self.cost,
            unknown: self.unknown,
            unreadable: self.unreadable,
        }
    }
}

/// Computes the rows of all verifiers that chose among these attempts. Samples with attempts that the verifier didn't
/// see are left out, but the cost and the replies of all choices count.
#[must_use]
pub fn verifier_rows(records: &[Outcome], choices: &[ChoiceRecord], how: Intervals) -> Vec<VerifierRow> {
    if choices.is_empty() {
        return Vec::new();
    }
    let mut groups: HashMap<(&str, Option<&str>, &str), BTreeMap<u32, &Outcome>> = HashMap::new();
    for record in scored(records) {
        let group = groups.entry((&record.agent, record.model.as_deref(), &record.sample)).or_default();
        group.insert(record.attempt, record);
    }
    // Two processes may have chosen among the same attempts at the same time. Only the first of such choices counts in
    // the rates.
    let mut seen = BTreeSet::new();
    let mut tallies: BTreeMap<(&str, &str, Option<&str>), TalliesByN<'_>> = BTreeMap::new();
    for choice in choices {
        let group = groups.get(&(choice.agent.as_str(), choice.model.as_deref(), choice.sample.as_str()));
        let first = group.and_then(|group| group.values().next());
        let by_n = tallies.entry((&choice.verifier, &choice.agent, choice.model.as_deref())).or_default();
        let tally = by_n.entry(first.map(|first| first.n)).or_default();
        tally.cost += choice.cost;
        tally.unknown = tally.unknown.saturating_add(choice.unknown);
        tally.unreadable = tally.unreadable.saturating_add(choice.unreadable);
        let is_new = seen.insert((&choice.verifier, &choice.agent, &choice.model, &choice.sample, &choice.attempts));
        let (Some(group), Some(first)) = (group, first) else { continue };
        if !is_new || !group.keys().eq(&choice.attempts) {
            continue;
        }
        let k = group.len();
        let passed = group.values().filter(|record| record.pass).count();
        let chosen = choice.chosen.and_then(|chosen| group.get(&chosen));
        let values = [
            passed as f64 / k as f64,
            f64::from(u8::from(chosen.is_some_and(|record| record.pass))),
            pass_at_k(k, passed, k).unwrap_or_default(),
        ];
        tally.samples.push((SampleValue { paper: &first.paper, n: first.n, value: 0.0 }, values));
        tally.k = Some(tally.k.map_or(k, |least| least.min(k)));
    }
    let mut rows = Vec::new();
    for (contender, by_n) in tallies {
        let (mut all, mut parts, mut is_unplaced) = (VerifierTally::default(), 0, false);
        for (n, tally) in &by_n {
            all.add(tally);
            if tally.samples.is_empty() {
                is_unplaced |= tally.cost > 0.0 || tally.unknown > 0 || tally.unreadable > 0;
            } else {
                rows.push(tally.row(contender, *n, how));
                parts += 1;
            }
        }
        // Without any used choice at an n, there is no row for this n. The cost is then in the row over all n only.
        if parts > 1 || is_unplaced {
            rows.push(all.row(contender, None, how));
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
            if row.samples == 0 {
                return "-".to_owned();
            }
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
    let is_few = |row: &VerifierRow| {
        row.samples > 0 && (row.intervals.is_none() || (row.gap_closed.is_some() && row.gap_interval.is_none()))
    };
    if rows.iter().any(is_few) {
        let _ = write!(legend, " {}", too_few_legend(FEWEST_SAMPLES, how));
    }
    // If there is a row over all n, skip the rows for single n, because it already contains their costs and counts.
    let whole: BTreeSet<_> = rows.iter().filter(|row| row.n.is_none()).map(VerifierRow::contender).collect();
    let mut asked: BTreeMap<&str, (f64, u32, u32)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.n.is_none() || !whole.contains(&row.contender())) {
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
    /// Returns the verifier, the agent and the model.
    fn contender(&self) -> (&str, &str, Option<&str>) {
        (&self.verifier, &self.agent, self.model.as_deref())
    }

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

    /// Creates the first `attempts` attempts at a sample, of which the second one passes.
    fn tried(id: &str, attempts: u32) -> Vec<Outcome> {
        let sample = masked(id);
        let record =
            |attempt: u32| Outcome { pass: attempt == 1, end: End::Answered, ..Outcome::blank("a", &sample, attempt) };
        (0..attempts).map(record).collect()
    }

    /// Creates a choice of the second attempt at a sample.
    fn choice(id: &str, attempts: u32, cost: f64) -> ChoiceRecord {
        ChoiceRecord {
            verifier: "v".to_owned(),
            agent: "a".to_owned(),
            model: None,
            sample: masked(id).id().to_owned(),
            attempts: (0..attempts).collect(),
            chosen: Some(1),
            reason: String::new(),
            usage: Usage::default(),
            cost,
            unknown: 1,
            unreadable: 2,
        }
    }

    #[test]
    fn a_verifiers_row_for_n_masked_functions_has_the_cost_and_attempts_of_samples_with_n_masked_functions() {
        let (mut records, mut choices) = (Vec::new(), Vec::new());
        for (id, attempts, cost) in [("x_0", 2, 0.25), ("x_1", 2, 0.25), ("x_0,1", 3, 1.0)] {
            records.extend(tried(id, attempts));
            choices.push(choice(id, attempts, cost));
        }
        let rows = verifier_rows(&records, &choices, Intervals::default());
        let told: Vec<_> = rows.iter().map(|row| (row.n, row.samples, row.k, row.cost)).collect();
        assert_eq!(told, [(Some(1), 2, 2, 0.5), (Some(2), 1, 3, 1.0), (None, 3, 2, 1.5)]);
        assert!(rows.iter().all(|row| row.gap_closed == Some(1.0)), "{rows:?}");
    }

    #[test]
    fn choices_that_the_rates_leave_out_count_in_cost_and_replies() {
        let how = Intervals::default();
        let records = [tried("x_0", 3), tried("x_1", 2)].concat();
        // The first choice was made before the third attempt. The last choice was made twice.
        let mut choices = vec![choice("x_0", 2, 0.25), choice("x_1", 2, 0.5), choice("x_1", 2, 0.5)];
        let told = |choices: &[ChoiceRecord]| -> Vec<_> {
            let rows = verifier_rows(&records, choices, how);
            rows.iter().map(|row| (row.n, row.samples, row.cost, row.unknown, row.unreadable)).collect()
        };
        assert_eq!(told(&choices), [(Some(1), 1, 1.25, 3, 6)]);
        // Without attempts at a sample, its choices count in the row over all n only.
        choices.push(choice("x_0,1", 2, 2.0));
        assert_eq!(told(&choices), [(Some(1), 1, 1.25, 3, 6), (None, 1, 3.25, 4, 8)]);
        let words = |rows: &[VerifierRow]| -> String {
            verifiers_console(rows, how).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let text = words(&verifier_rows(&records, &choices, how));
        assert!(text.contains(" v cost $3.2500 and gave no vote"), "{text}");
        // A verifier without any usable choice has a row, too, but no rates.
        let rows = verifier_rows(&records, &choices[..1], how);
        assert_eq!(told(&choices[..1]), [(None, 0, 0.25, 1, 2)]);
        assert_eq!((rows[0].rates, rows[0].intervals, rows[0].gap_closed), ([0.0; 3], None, None));
        let text = words(&rows);
        assert!(text.contains("cost $0.2500") && !text.contains("NaN"), "{text}");
        let free = ChoiceRecord { unknown: 0, unreadable: 0, ..choice("x_0", 2, 0.0) };
        assert!(told(&[free]).is_empty());
    }
}
