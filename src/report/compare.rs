//! Two contenders on the same samples: by how much do they differ, and is it more than chance?

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;

use super::clean::clean;
use super::terminal::{TOO_FEW, plain_table, too_few_legend, trimmed, wrap};
use crate::run::{AttemptRecord, counting};
use crate::stats::{
    Discordant, FEWEST_PAIRS, Interval, Intervals, Measured, Population, difference_interval, holm, mcnemar, sign_flip,
};

/// The attempts of one agent and model in one run.
#[derive(Debug, Clone)]
pub struct Contender {
    /// How it is called in tables: `agent model`, and `run/agent model` beside other runs.
    pub name: String,
    /// By sample.
    samples: BTreeMap<String, Tries>,
}

impl Contender {
    /// Attempts, those lost to infrastructure included, and these alone.
    fn attempts_and_lost(&self) -> (usize, usize) {
        let lost = self.samples.values().map(|tries| tries.lost).sum();
        (self.samples.values().map(|tries| tries.passes.len()).sum::<usize>() + lost, lost)
    }

    /// Why nothing of it can be compared, where infrastructure lost all.
    #[must_use]
    pub fn all_lost_note(&self) -> Option<String> {
        let name = clean(&self.name);
        let (_, lost) = self.attempts_and_lost();
        self.is_all_lost().then(|| {
            format!("nothing of `{name}` can be compared: all of its {lost} attempts were lost to infrastructure.")
        })
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
    /// Whether attempts pass, in the order of their numbers; lost ones left out.
    passes: BTreeMap<u32, bool>,
    /// Attempts lost to infrastructure.
    lost: usize,
}

impl Tries {
    fn passed(&self) -> usize {
        self.passes.values().filter(|pass| **pass).count()
    }

    /// The share of attempts that pass; `None` where all were lost.
    fn rate(&self) -> Option<f64> {
        (!self.passes.is_empty()).then(|| self.passed() as f64 / self.passes.len() as f64)
    }

    /// The share had all lost attempts failed, and had they all passed.
    fn bounds(&self) -> [f64; 2] {
        let all = (self.passes.len() + self.lost).max(1) as f64;
        [self.passed() as f64 / all, (self.passed() + self.lost) as f64 / all]
    }
}

/// One contender against another. Of one that infrastructure lost wholly there is a row as well: with no samples, and rates,
/// difference and p-values that are not numbers (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The first contender.
    pub first: String,
    /// The second.
    pub second: String,
    /// Number of masked functions; `None` for all.
    pub n: Option<usize>,
    /// Samples at which both have an attempt that was not lost to infrastructure.
    pub samples: usize,
    /// Samples at which only one of them has, which are left out.
    pub unmatched: usize,
    /// The first's pass@1, averaged over the matched samples.
    pub first_rate: f64,
    /// The second's.
    pub second_rate: f64,
    /// The second's less the first's.
    pub difference: f64,
    /// The difference's interval.
    pub interval: Option<Interval>,
    /// The first's attempts lost to infrastructure, at samples that both were to attempt.
    pub first_lost: usize,
    /// The second's.
    pub second_lost: usize,
    /// Where attempts were lost: the least and the greatest that the difference could have been, had all those of
    /// one contender failed and all those of the other passed.
    pub lost_bounds: Option<Interval>,
    /// Samples that only the first's first attempt passes.
    pub only_first: u64,
    /// Samples that only the second's first attempt passes.
    pub only_second: u64,
    /// The p-value of the sign-flip permutation test over samples, or over papers where the interval is for papers like
    /// these.
    pub p: f64,
    /// The same, adjusted by Holm for all comparisons made together.
    pub adjusted_p: f64,
    /// McNemar's exact p-value over the samples' first attempts: the same as `p` where there are no others.
    pub mcnemar_p: f64,
}

/// The contenders among a run's records, in the order of their names.
#[must_use]
pub fn contenders(records: &[AttemptRecord]) -> Vec<Contender> {
    let mut found: BTreeMap<(&str, Option<&str>), Contender> = BTreeMap::new();
    for (record, _) in records.iter().zip(counting(records)).filter(|(_, counts)| *counts) {
        let contender = found.entry((&record.agent, record.model.as_deref())).or_insert_with(|| {
            let model = record.model.as_ref().map(|model| format!(" {model}")).unwrap_or_default();
            Contender { name: format!("{}{model}", record.agent), samples: BTreeMap::new() }
        });
        let blank = || Tries { paper: record.paper.clone(), n: record.n, passes: BTreeMap::new(), lost: 0 };
        let tries = contender.samples.entry(record.sample.clone()).or_insert_with(blank);
        if record.is_infrastructure() {
            tries.lost += 1;
        } else {
            tries.passes.insert(record.attempt, record.pass);
        }
    }
    found.into_values().collect()
}

/// Compares the first contender with each of the others, or every pair; over all samples that both have and, with
/// `by_n`, for each n as well. All p-values are adjusted together.
#[must_use]
pub fn compare(contenders: &[Contender], every_pair: bool, by_n: bool, how: Intervals) -> Vec<Comparison> {
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
    let mut rows: Vec<Comparison> =
        pairs.into_par_iter().filter_map(|(first, second, n)| pair(first, second, n, how)).collect();
    let tested = || rows.iter().enumerate().filter(|(_, row)| row.samples > 0);
    let places: Vec<usize> = tested().map(|(place, _)| place).collect();
    let adjusted = holm(&tested().map(|(_, row)| row.p).collect::<Vec<_>>());
    for (place, p) in places.into_iter().zip(adjusted) {
        rows[place].adjusted_p = p;
    }
    rows
}

/// `None` when there is no sample at which both have an attempt that was not lost, unless infrastructure lost all of one.
fn pair(first: &Contender, second: &Contender, n: Option<usize>, how: Intervals) -> Option<Comparison> {
    let within = |tries: &&Tries| n.is_none_or(|n| tries.n == n);
    let mut differences: Vec<Measured<'_>> = Vec::new();
    let (mut rates, mut discordant, mut attempts) = ((0.0, 0.0), Discordant::default(), 0);
    let (mut lost, mut worst, mut best, mut both) = ([0, 0], 0.0, 0.0, 0_usize);
    for (id, tries) in first.samples.iter().filter(|(_, tries)| within(tries)) {
        let Some(others) = second.samples.get(id) else { continue };
        lost = [lost[0] + tries.lost, lost[1] + others.lost];
        both += 1;
        worst += others.bounds()[0] - tries.bounds()[1];
        best += others.bounds()[1] - tries.bounds()[0];
        let (Some(one), Some(other)) = (tries.rate(), others.rate()) else { continue };
        differences.push(Measured { paper: &tries.paper, n: tries.n, value: other - one });
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
    (count > 0 || is_lost).then(|| Comparison {
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

/// What changes its sign as a whole: each sample's difference, or the sum of each paper's.
fn flipped(differences: &[Measured<'_>], over_papers: bool) -> Vec<f64> {
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

/// The comparisons as a table with a legend.
#[must_use]
pub fn compare_console(rows: &[Comparison], how: Intervals) -> String {
    let mut table = plain_table();
    let by_n = rows.iter().any(|row| row.n.is_some());
    let n = |text: String| by_n.then_some(text);
    let heading = ["samples", "first %", "second %", "difference", "flipped", "p", "Holm p"].map(str::to_owned);
    table.set_header(["first, second".to_owned()].into_iter().chain(n("n".to_owned())).chain(heading));
    for row in rows {
        // One below the other: side by side two names leave no room for the numbers.
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
    let unmatched: usize = overall().map(|row| row.unmatched).sum();
    if unmatched > 0 {
        below.push(format!("Samples that only one has, left out: {unmatched}."));
    }
    below.extend(overall().filter_map(|row| Some(wrap(&row.lost_note()?, "  "))));
    format!("{}\n\n{}\n", trimmed(table, &[0]), below.join("\n"))
}

fn legend(how: Intervals) -> String {
    let flips = match how.population {
        Population::Suite => "samples".to_owned(),
        Population::Papers => format!("whole {}s", how.group),
    };
    format!(
        "difference: second less first, in points, with its {:.0}% interval ({}). flipped: samples whose first attempt \
         only the first / only the second passes. p: sign-flip permutation test over {flips}, all attempts included; with \
         single attempts it is McNemar's exact test. Holm p: adjusted for all rows.",
        100.0 * how.level,
        how.legend()
    )
}

impl Comparison {
    /// `+10.0 [-1.2, +21.2]`, in points.
    pub(super) fn shown_difference(&self) -> String {
        if self.samples == 0 {
            return "-".to_owned();
        }
        let bounds = self.interval.map(|it| format!("[{}, {}]", points(it.low), points(it.high)));
        format!("{} {}", points(self.difference), bounds.as_deref().unwrap_or(TOO_FEW))
    }

    /// What attempts lost to infrastructure could change; a warning where one contender lost more than the other.
    pub(super) fn lost_note(&self) -> Option<String> {
        let bounds = self.lost_bounds?;
        let warning = if self.first_lost == self.second_lost { "" } else { "Warning: " };
        Some(format!(
            "{warning}lost to infrastructure, in no rate: {} of `{}`, {} of `{}`. With them the difference could be \
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

/// A rate in percent; a dash where there is none.
fn percent(rate: f64) -> String {
    if rate.is_nan() { "-".to_owned() } else { format!("{:.1}", 100.0 * rate) }
}

/// A share in points with its sign; what rounds to nothing is `+0.0`.
fn points(share: f64) -> String {
    let text = format!("{:+.1}", 100.0 * share);
    if text == "-0.0" { "+0.0".to_owned() } else { text }
}

/// A p-value for a table.
pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p.is_nan() => "-".to_owned(),
        p if p < 0.0001 => "<1e-4".to_owned(),
        p => format!("{p:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::sample::masked;

    fn record(agent: &str, sample: &str, attempt: u32, pass: bool) -> AttemptRecord {
        let sample = masked(sample);
        AttemptRecord { pass, end: End::Answered, ..AttemptRecord::blank(agent, &sample, attempt) }
    }

    #[test]
    fn only_samples_that_both_have_are_compared() {
        let mut records = Vec::new();
        for i in 0..20 {
            records.push(record("a", &format!("x_{i}"), 0, i < 5));
            records.push(record("b", &format!("x_{}", i + 2), 0, i < 13));
        }
        let rows = compare(&contenders(&records), false, false, Intervals::default());
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.samples, row.unmatched), (18, 4));
        // Of samples 2 to 19, a passes 2, 3, 4 and b passes 2 to 14.
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
    fn a_contender_that_is_wholly_lost_keeps_its_row_and_changes_no_other() {
        let mut records = Vec::new();
        for i in 0..12 {
            for (agent, pass, end) in
                [("a", false, End::Answered), ("b", false, End::SandboxLost), ("c", true, End::Answered)]
            {
                records.push(AttemptRecord { end, ..record(agent, &format!("x_{i}"), 0, pass) });
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
        // Had all of b failed, or passed.
        assert_eq!(a_b.lost_bounds, Some(Interval { low: 0.0, high: 1.0 }));
        assert!((a_c.adjusted_p - a_c.p).abs() < 1e-12, "only what was tested is adjusted for: {a_c:?}");
        let json = serde_json::to_value(&rows).unwrap();
        assert!(json[0]["difference"].is_null() && json[0]["p"].is_null() && json[1]["difference"].is_number());
        let text = compare_console(&rows, how);
        assert!(!text.contains("NaN"), "{text}");
        assert!(text.contains("lost to infrastructure, in no rate: 0 of `a`, 12 of `b`"), "{text}");
        // Alone against one that is there, too.
        let alone = compare(&contenders(&records[..2]), false, false, how);
        assert_eq!((alone.len(), alone[0].samples), (1, 0));
    }

    #[test]
    fn all_p_values_are_adjusted_together_and_every_pair_can_be_asked_for() {
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
