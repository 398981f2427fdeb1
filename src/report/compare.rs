//! Comparison of contenders on the samples they share: the difference in pass rate, its interval and p-values.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;

use super::clean::clean;
use super::terminal::{TOO_FEW, plain_table, too_few_legend, trimmed, wrap};
use crate::run::{Outcome, counting};
use crate::stats::{
    Discordant, FEWEST_PAIRS, Interval, Intervals, Population, SampleValue, difference_interval, holm, mcnemar,
    sign_flip,
};

/// Adjusted p-value below which a contender counts as ahead of another.
const SIGNIFICANT: f64 = 0.05;

/// The attempts of one agent and model in one run.
#[derive(Debug, Clone)]
pub struct Contender {
    /// Label in tables: `agent model`, prefixed with `run/` when several runs are compared.
    pub name: String,
    /// Attempts by sample id.
    samples: BTreeMap<String, Tries>,
}

impl Contender {
    /// Returns the number of attempts (including those lost to infrastructure) and the number of lost ones.
    fn attempts_and_lost(&self) -> (usize, usize) {
        let lost = self.samples.values().map(|tries| tries.lost).sum();
        (self.samples.values().map(|tries| tries.passes.len()).sum::<usize>() + lost, lost)
    }

    /// Explains that this contender cannot be compared because infrastructure lost all its attempts; `None` otherwise.
    #[must_use]
    pub fn all_lost_note(&self) -> Option<String> {
        let name = clean(&self.name);
        let (_, lost) = self.attempts_and_lost();
        self.is_all_lost()
            .then(|| format!("`{name}` cannot be compared: all of its {lost} attempts were lost to infrastructure."))
    }

    fn is_all_lost(&self) -> bool {
        let (attempts, lost) = self.attempts_and_lost();
        attempts == lost
    }
}

#[derive(Debug, Clone)]
struct Tries {
    paper: String,
    n: usize,
    /// Whether each attempt passed, by attempt number; lost attempts are absent.
    passes: BTreeMap<u32, bool>,
    /// Attempts lost to infrastructure.
    lost: usize,
}

impl Tries {
    fn passed(&self) -> usize {
        self.passes.values().filter(|pass| **pass).count()
    }

    /// Share of attempts that passed; `None` if all were lost.
    fn rate(&self) -> Option<f64> {
        (!self.passes.is_empty()).then(|| self.passed() as f64 / self.passes.len() as f64)
    }

    /// The pass rate if all lost attempts had failed, and the pass rate if all of them had passed.
    fn bounds(&self) -> [f64; 2] {
        let all = (self.passes.len() + self.lost).max(1) as f64;
        [self.passed() as f64 / all, (self.passed() + self.lost) as f64 / all]
    }
}

/// One contender compared with another. A contender whose attempts were all lost to infrastructure still has a row,
/// with 0 samples and with NaN (null in JSON) for rates, difference and p-values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContenderComparison {
    /// The first contender.
    pub first: String,
    /// The second contender.
    pub second: String,
    /// Number of masked functions; `None` for all.
    pub n: Option<usize>,
    /// Samples at which both contenders have an attempt that was not lost to infrastructure.
    pub samples: usize,
    /// Samples at which only one contender has an attempt that was not lost to infrastructure; they are left out.
    pub unmatched: usize,
    /// The first contender's pass@1, averaged over the matched samples.
    pub first_rate: f64,
    /// The second contender's pass@1, averaged over the matched samples.
    pub second_rate: f64,
    /// `second_rate - first_rate`.
    pub difference: f64,
    /// Confidence interval of the difference; `None` with too few samples.
    pub interval: Option<Interval>,
    /// Attempts of the first contender lost to infrastructure, at samples that both attempted.
    pub first_lost: usize,
    /// Attempts of the second contender lost to infrastructure, at samples that both attempted.
    pub second_lost: usize,
    /// Smallest and largest possible difference, assuming that all lost attempts of one contender would have failed and
    /// all lost attempts of the other would have passed; `None` if none were lost.
    pub lost_bounds: Option<Interval>,
    /// Samples where the first attempt passes for the first contender but not for the second.
    pub only_first: u64,
    /// Samples where the first attempt passes for the second contender but not for the first.
    pub only_second: u64,
    /// P-value of the sign-flip permutation test over samples, or over papers if the interval covers other papers too
    /// ([`Population::Papers`]).
    pub p: f64,
    /// `p` after Holm's adjustment for all comparisons made together.
    pub adjusted_p: f64,
    /// McNemar's exact p-value over the samples' first attempts. With one attempt per sample it equals `p`, unless `p`
    /// comes from a test over papers.
    pub mcnemar_p: f64,
}

/// Returns the label of an agent and its model.
pub(super) fn contender_name(agent: &str, model: Option<&str>) -> String {
    model.map_or_else(|| agent.to_owned(), |model| format!("{agent} {model}"))
}

/// Groups a run's records into contenders, sorted by name.
#[must_use]
pub fn contenders(records: &[Outcome]) -> Vec<Contender> {
    let mut found: BTreeMap<(&str, Option<&str>), Contender> = BTreeMap::new();
    let counted = records.iter().zip(counting(records)).filter(|(_, counts)| *counts);
    for (record, _) in counted.filter(|(record, _)| !record.is_stopped()) {
        let contender = found.entry((&record.agent, record.model.as_deref())).or_insert_with(|| Contender {
            name: contender_name(&record.agent, record.model.as_deref()),
            samples: BTreeMap::new(),
        });
        let blank = || Tries { paper: record.paper.to_string(), n: record.n, passes: BTreeMap::new(), lost: 0 };
        let tries = contender.samples.entry(record.sample.to_string()).or_insert_with(blank);
        if record.is_infrastructure() {
            tries.lost += 1;
        } else {
            tries.passes.insert(record.attempt, record.pass);
        }
    }
    found.into_values().collect()
}

/// Compares the first contender with each of the others or, with `every_pair`, all pairs. Each comparison covers all
/// samples that both attempted and, with `by_n`, is repeated for each n. All p-values are adjusted together.
#[must_use]
pub fn compare(contenders: &[Contender], every_pair: bool, by_n: bool, how: Intervals) -> Vec<ContenderComparison> {
    let mut pairs = Vec::new();
    for (place, first) in contenders.iter().enumerate() {
        for second in &contenders[place + 1..] {
            pairs.push((first, second, None));
            let ns: BTreeSet<usize> = first.samples.values().map(|tries| tries.n).collect();
            if by_n && ns.len() > 1 {
                pairs.extend(ns.into_iter().map(|n| (first, second, Some(n))));
            }
        }
        if !every_pair {
            break;
        }
    }
    let mut rows: Vec<ContenderComparison> =
        pairs.into_par_iter().filter_map(|(first, second, n)| pair(first, second, n, how)).collect();
    let tested = || rows.iter().enumerate().filter(|(_, row)| row.samples > 0);
    let places: Vec<usize> = tested().map(|(place, _)| place).collect();
    let adjusted = holm(&tested().map(|(_, row)| row.p).collect::<Vec<_>>());
    for (place, p) in places.into_iter().zip(adjusted) {
        rows[place].adjusted_p = p;
    }
    rows
}

/// Compares two contenders. Returns `None` if there is no sample at which each contender has an attempt that was not
/// lost. If one contender lost all its attempts, the row over all n is returned nevertheless, with NaNs.
fn pair(first: &Contender, second: &Contender, n: Option<usize>, how: Intervals) -> Option<ContenderComparison> {
    let within = |tries: &&Tries| n.is_none_or(|n| tries.n == n);
    let mut differences: Vec<SampleValue<'_>> = Vec::new();
    let (mut rates, mut discordant, mut attempts) = ((0.0, 0.0), Discordant::default(), 0);
    let (mut lost, mut worst, mut best, mut both) = ([0, 0], 0.0, 0.0, 0_usize);
    for (id, tries) in first.samples.iter().filter(|(_, tries)| within(tries)) {
        let Some(others) = second.samples.get(id) else { continue };
        lost = [lost[0] + tries.lost, lost[1] + others.lost];
        both += 1;
        worst += others.bounds()[0] - tries.bounds()[1];
        best += others.bounds()[1] - tries.bounds()[0];
        let (Some(one), Some(other)) = (tries.rate(), others.rate()) else { continue };
        differences.push(SampleValue { paper: &tries.paper, n: tries.n, value: other - one });
        rates = (rates.0 + one, rates.1 + other);
        attempts += tries.passes.len() + others.passes.len();
        match (tries.passes.values().next(), others.passes.values().next()) {
            (Some(true), Some(false)) => discordant.first += 1,
            (Some(false), Some(true)) => discordant.second += 1,
            _ => {}
        }
    }
    let scored = |of: &Contender| of.samples.values().filter(|tries| within(tries) && !tries.passes.is_empty()).count();
    let count = differences.len();
    let (samples, over_papers) = (count as f64, how.population == Population::Papers);
    let is_lost = n.is_none() && (first.is_all_lost() || second.is_all_lost());
    let or_none = |p: f64| if count > 0 { p } else { f64::NAN };
    (count > 0 || is_lost).then(|| ContenderComparison {
        first: first.name.clone(),
        second: second.name.clone(),
        n,
        samples: count,
        unmatched: scored(first) + scored(second) - 2 * count,
        first_rate: rates.0 / samples,
        second_rate: rates.1 / samples,
        difference: (rates.1 - rates.0) / samples,
        interval: difference_interval(&differences, attempts as f64 / (2.0 * samples.max(1.0)), how),
        first_lost: lost[0],
        second_lost: lost[1],
        lost_bounds: (lost != [0, 0] && both > 0)
            .then(|| Interval { low: worst / both as f64, high: best / both as f64 }),
        only_first: discordant.first,
        only_second: discordant.second,
        p: or_none(sign_flip(&flipped(&differences, over_papers))),
        adjusted_p: or_none(1.0),
        mcnemar_p: or_none(mcnemar(discordant)),
    })
}

/// The values whose signs the permutation test flips: the difference at each sample or, if `over_papers`, the sum of
/// these differences for each paper.
fn flipped(differences: &[SampleValue<'_>], over_papers: bool) -> Vec<f64> {
    let mut papers: BTreeMap<&str, f64> = BTreeMap::new();
    for sample in differences {
        *papers.entry(sample.paper).or_default() += sample.value;
    }
    if over_papers && papers.len() > 1 {
        papers.into_values().collect()
    } else {
        differences.iter().map(|sample| sample.value).collect()
    }
}

/// Formats the comparisons as a table with a legend.
#[must_use]
pub fn compare_console(rows: &[ContenderComparison], how: Intervals) -> String {
    let mut table = plain_table();
    let by_n = rows.iter().any(|row| row.n.is_some());
    let n = |text: String| by_n.then_some(text);
    let heading = ["samples", "first %", "second %", "difference", "flipped", "p", "Holm p"].map(str::to_owned);
    table.set_header(["first, second".to_owned()].into_iter().chain(n("n".to_owned())).chain(heading));
    for row in rows {
        // Put the two names on separate lines: side by side they would leave no room for the numbers.
        let names = format!("{}\n{}", clean(&row.first), clean(&row.second));
        let cells = [
            row.samples.to_string(),
            percent(row.first_rate),
            percent(row.second_rate),
            row.shown_difference(),
            format!("{} / {}", row.only_first, row.only_second),
            p_value(row.p),
            p_value(row.adjusted_p),
        ];
        let of_n = n(row.n.map_or_else(|| "all".to_owned(), |n| n.to_string()));
        table.add_row([names].into_iter().chain(of_n).chain(cells));
    }
    let mut below = vec![wrap(&legend(how), "")];
    let overall = || rows.iter().filter(|row| row.n.is_none());
    if rows.iter().any(|row| row.interval.is_none() && row.samples > 0) {
        below.push(wrap(&too_few_legend(FEWEST_PAIRS, how), ""));
    }
    below.extend(unmatched_note(&overall().collect::<Vec<_>>()).map(|note| wrap(&note, "  ")));
    below.extend(overall().filter_map(|row| Some(wrap(&row.lost_note()?, "  "))));
    format!("{}\n\n{}\n", trimmed(table, &[0]), below.join("\n"))
}

/// Says for each comparison how many samples only one contender has; `None` if there are no such samples. The numbers
/// are not added up, because the same sample may be left out of several comparisons.
fn unmatched_note(rows: &[&ContenderComparison]) -> Option<String> {
    let told = match rows {
        [row] if row.unmatched > 0 => row.unmatched.to_string(),
        rows => {
            let unmatched = rows.iter().filter(|row| row.unmatched > 0);
            let of_row = |row: &&ContenderComparison| {
                format!("{} of `{}` and `{}`", row.unmatched, clean(&row.first), clean(&row.second))
            };
            unmatched.map(of_row).collect::<Vec<_>>().join("; ")
        }
    };
    (!told.is_empty()).then(|| format!("Samples that only one has, left out: {told}."))
}

/// Names the values whose signs the permutation test flips, in the plural.
pub(super) fn flipped_units(how: Intervals) -> String {
    match how.population {
        Population::Suite => "samples".to_owned(),
        Population::Papers => format!("whole {}s", how.group),
    }
}

fn legend(how: Intervals) -> String {
    let flips = flipped_units(how);
    format!(
        "difference: second minus first, in points, with its {:.0}% interval ({}). flipped: samples whose first attempt \
         only the first / only the second passes. p: sign-flip permutation test over {flips}, all attempts included, which also \
         decides whether the interval contains 0; with single attempts it is McNemar's exact test. Holm p: adjusted for all rows.",
        100.0 * how.level,
        how.legend()
    )
}

impl ContenderComparison {
    /// Returns the contender that is ahead of the other, if the difference is more than chance: `adjusted_p` below
    /// 0.05.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        let leader = if self.difference > 0.0 { &self.second } else { &self.first };
        (self.samples > 0 && self.adjusted_p < SIGNIFICANT && self.difference != 0.0).then_some(leader)
    }

    /// Formats the difference and its interval in percentage points, as `+10.0 [-1.2, +21.2]`.
    pub(super) fn shown_difference(&self) -> String {
        if self.samples == 0 {
            return "-".to_owned();
        }
        let bounds = self.interval.map(|it| format!("[{}, {}]", points(it.low), points(it.high)));
        format!("{} {}", points(self.difference), bounds.as_deref().unwrap_or(TOO_FEW))
    }

    /// Note on how far lost attempts could change the difference; a warning if one contender lost more than the other.
    pub(super) fn lost_note(&self) -> Option<String> {
        let bounds = self.lost_bounds?;
        let warning = if self.first_lost == self.second_lost { "" } else { "Warning: " };
        Some(format!(
            "{warning}lost to infrastructure and left out of the rates: {} of `{}`, {} of `{}`. With them the difference could be \
             anything from {} to {} points.",
            self.first_lost,
            clean(&self.first),
            self.second_lost,
            clean(&self.second),
            points(bounds.low),
            points(bounds.high)
        ))
    }
}

/// Formats a rate in percent, NaN as a dash.
fn percent(rate: f64) -> String {
    if rate.is_nan() { "-".to_owned() } else { format!("{:.1}", 100.0 * rate) }
}

/// Formats a share in percentage points with its sign, never as `-0.0`.
fn points(share: f64) -> String {
    let text = format!("{:+.1}", 100.0 * share);
    if text == "-0.0" { "+0.0".to_owned() } else { text }
}

/// Formats a p-value for a sentence: `p = 0.031`.
pub(super) fn p_phrase(p: f64) -> String {
    match p {
        p if p < 0.0001 => "p < 0.0001".to_owned(),
        p => format!("p = {p:.4}"),
    }
}

/// Formats a p-value for a table.
pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p.is_nan() => "-".to_owned(),
        p if p < 0.0001 => "<.0001".to_owned(),
        p => format!("{p:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::sample::masked;

    fn record(agent: &str, sample: &str, attempt: u32, pass: bool) -> Outcome {
        let sample = masked(sample);
        Outcome { pass, end: End::Answered, ..Outcome::blank(agent, &sample, attempt) }
    }

    #[test]
    fn only_samples_that_both_contenders_attempted_are_compared() {
        let mut records = Vec::new();
        for i in 0..20 {
            records.push(record("a", &format!("x_{i}"), 0, i < 5));
            records.push(record("b", &format!("x_{}", i + 2), 0, i < 13));
        }
        let rows = compare(&contenders(&records), false, false, Intervals::default());
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.samples, row.unmatched), (18, 4));
        // Of the samples 2 to 19, `a` passes 2, 3 and 4, and `b` passes 2 to 14.
        assert_eq!((row.only_first, row.only_second), (0, 10));
        assert!((row.difference - 10.0 / 18.0).abs() < 1e-12);
        assert!((row.p - 2.0 / 1024.0).abs() < 1e-12);
        let interval = row.interval.unwrap();
        assert!(interval.low > 0.25 && interval.high < 0.85, "{interval:?}");
    }

    #[test]
    fn lost_attempts_are_in_no_comparison_and_later_tries_replace_them() {
        let mut lost = record("a", "x_0", 0, false);
        lost.end = End::SandboxLost;
        let mut also_lost = record("b", "x_1", 0, false);
        also_lost.end = End::ModelError;
        let records =
            [lost, record("a", "x_0", 0, true), record("b", "x_0", 0, true), record("a", "x_1", 0, true), also_lost];
        let rows = compare(&contenders(&records), false, false, Intervals::default());
        assert_eq!((rows[0].samples, rows[0].unmatched, rows[0].p), (1, 1, 1.0));
    }

    #[test]
    fn a_contender_with_only_lost_attempts_keeps_its_row_and_changes_no_other_comparison() {
        let mut records = Vec::new();
        for i in 0..12 {
            for (agent, pass, end) in
                [("a", false, End::Answered), ("b", false, End::SandboxLost), ("c", true, End::Answered)]
            {
                records.push(Outcome { end, ..record(agent, &format!("x_{i}"), 0, pass) });
            }
        }
        let how = Intervals::default();
        let rows = compare(&contenders(&records), true, true, how);
        let [a_b, a_c, b_c] = rows.as_slice() else { panic!("{rows:?}") };
        for row in [a_b, b_c] {
            assert_eq!((row.samples, row.first_lost + row.second_lost), (0, 12), "{row:?}");
            assert!(row.first_rate.is_nan() && row.second_rate.is_nan() && row.p.is_nan() && row.adjusted_p.is_nan());
            assert!(row.interval.is_none());
        }
        // The bounds assume that all attempts of `b` had failed, or that all had passed.
        assert_eq!(a_b.lost_bounds, Some(Interval { low: 0.0, high: 1.0 }));
        assert!((a_c.adjusted_p - a_c.p).abs() < 1e-12, "only what was tested is adjusted for: {a_c:?}");
        let json = serde_json::to_value(&rows).unwrap();
        assert!(json[0]["difference"].is_null() && json[0]["p"].is_null() && json[1]["difference"].is_number());
        let text = compare_console(&rows, how);
        assert!(!text.contains("NaN"), "{text}");
        assert!(text.contains("lost to infrastructure and left out of the rates: 0 of `a`, 12 of `b`"), "{text}");
        // A contender whose attempts were all lost also gets a row when it is compared with only one other.
        let alone = compare(&contenders(&records[..2]), false, false, how);
        assert_eq!((alone.len(), alone[0].samples), (1, 0));
    }

    #[test]
    fn a_sample_that_several_comparisons_leave_out_is_not_counted_several_times() {
        let mut records = Vec::new();
        for (agent, samples) in [("a", 9), ("b", 4), ("c", 4), ("d", 9)] {
            records.extend((0..samples).map(|i| record(agent, &format!("x_{i}"), 0, true)));
        }
        let how = Intervals::default();
        let rows = compare(&contenders(&records), false, false, how);
        let text = compare_console(&rows, how).replace("\n  ", " ");
        assert!(text.contains("only one has, left out: 5 of `a` and `b`; 5 of `a` and `c`."), "{text}");
        // If there is only one comparison, its contenders are not named.
        let text = compare_console(&rows[..1], how);
        assert!(text.contains("only one has, left out: 5.\n"), "{text}");
        assert!(!compare_console(&rows[2..], how).contains("left out:"));
    }

    #[test]
    fn a_comparison_covers_every_pair_on_request_and_adjusts_all_p_values_together() {
        let mut records = Vec::new();
        for i in 0..12 {
            for (agent, pass) in [("a", false), ("b", true), ("c", i % 2 == 0)] {
                records.push(record(agent, &format!("x_{i}"), 0, pass));
            }
        }
        let all = contenders(&records);
        assert_eq!(compare(&all, false, false, Intervals::default()).len(), 2);
        let rows = compare(&all, true, false, Intervals::default());
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[0].first.as_str(), rows[0].second.as_str()), ("a", "b"));
        assert!((rows[0].adjusted_p - 3.0 * rows[0].p).abs() < 1e-12);
        assert!(rows.iter().all(|row| row.adjusted_p >= row.p));
    }
}
