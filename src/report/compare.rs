//! Two contenders on the same samples: by how much do they differ, and is it more than chance?

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;

use super::clean::clean;
use super::terminal::{plain_table, trimmed, wrap};
use crate::run::{AttemptRecord, scored};
use crate::stats::{Bootstrap, Discordant, Interval, holm, mcnemar, paired_bootstrap};

/// The attempts of one agent and model in one run.
#[derive(Debug, Clone)]
pub struct Contender {
    /// How it is called in tables: `run/agent model`.
    pub name: String,
    /// By sample: whether its attempts pass, in the order of their numbers; lost ones left out.
    samples: BTreeMap<String, Tries>,
}

#[derive(Debug, Clone)]
struct Tries {
    paper: String,
    n: usize,
    passes: BTreeMap<u32, bool>,
}

/// One contender against another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The first contender.
    pub first: String,
    /// The second.
    pub second: String,
    /// Number of masked functions; `None` for all.
    pub n: Option<usize>,
    /// Samples that both have.
    pub samples: usize,
    /// Samples that only one of them has, which are left out.
    pub unmatched: usize,
    /// The first's pass@1, averaged over the matched samples.
    pub first_rate: f64,
    /// The second's.
    pub second_rate: f64,
    /// The second's less the first's.
    pub difference: f64,
    /// The difference's interval.
    pub interval: Option<Interval>,
    /// Samples that only the first's first attempt passes.
    pub only_first: u64,
    /// Samples that only the second's first attempt passes.
    pub only_second: u64,
    /// McNemar's exact p-value, over the samples' first attempts.
    pub p: f64,
    /// The same, adjusted by Holm for all comparisons made together.
    pub adjusted_p: f64,
}

/// The contenders among a run's records, in the order of their names; `prefix` goes before each.
#[must_use]
pub fn contenders(records: &[AttemptRecord], prefix: &str) -> Vec<Contender> {
    let mut found: BTreeMap<(&str, Option<&str>), Contender> = BTreeMap::new();
    for record in scored(records) {
        let contender = found.entry((&record.agent, record.model.as_deref())).or_insert_with(|| {
            let model = record.model.as_ref().map(|model| format!(" {model}")).unwrap_or_default();
            Contender { name: format!("{prefix}{}{model}", record.agent), samples: BTreeMap::new() }
        });
        let blank = || Tries { paper: record.paper.clone(), n: record.n, passes: BTreeMap::new() };
        let tries = contender.samples.entry(record.sample.clone()).or_insert_with(blank);
        tries.passes.insert(record.attempt, record.pass);
    }
    found.into_values().collect()
}

/// Compares the first contender with each of the others, or every pair; over all samples that both have and, with
/// `by_n`, for each n as well. All p-values are adjusted together.
#[must_use]
pub fn compare(contenders: &[Contender], every_pair: bool, by_n: bool, how: Bootstrap) -> Vec<Comparison> {
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
    // Each row is a resampling of its own.
    let mut rows: Vec<Comparison> =
        pairs.into_par_iter().filter_map(|(first, second, n)| pair(first, second, n, how)).collect();
    let adjusted = holm(&rows.iter().map(|row| row.p).collect::<Vec<_>>());
    for (row, p) in rows.iter_mut().zip(adjusted) {
        row.adjusted_p = p;
    }
    rows
}

/// `None` when no sample is in both.
fn pair(first: &Contender, second: &Contender, n: Option<usize>, how: Bootstrap) -> Option<Comparison> {
    let within = |tries: &&Tries| n.is_none_or(|n| tries.n == n);
    let mut papers: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let (mut samples, mut only_one) = (0_usize, 0);
    let (mut rates, mut discordant) = ((0.0, 0.0), Discordant::default());
    for (id, tries) in &first.samples {
        if !within(&tries) {
            continue;
        }
        let Some(others) = second.samples.get(id) else {
            only_one += 1;
            continue;
        };
        let (one, other) = (rate(tries), rate(others));
        papers.entry(&tries.paper).or_default().push(other - one);
        samples += 1;
        rates = (rates.0 + one, rates.1 + other);
        match (tries.passes.values().next(), others.passes.values().next()) {
            (Some(true), Some(false)) => discordant.first += 1,
            (Some(false), Some(true)) => discordant.second += 1,
            _ => {}
        }
    }
    only_one +=
        second.samples.iter().filter(|(id, tries)| within(tries) && !first.samples.contains_key(id.as_str())).count();
    let papers: Vec<Vec<f64>> = papers.into_values().collect();
    (samples > 0).then(|| Comparison {
        first: first.name.clone(),
        second: second.name.clone(),
        n,
        samples,
        unmatched: only_one,
        first_rate: rates.0 / samples as f64,
        second_rate: rates.1 / samples as f64,
        difference: (rates.1 - rates.0) / samples as f64,
        interval: paired_bootstrap(&papers, how),
        only_first: discordant.first,
        only_second: discordant.second,
        p: mcnemar(discordant),
        adjusted_p: 1.0,
    })
}

fn rate(tries: &Tries) -> f64 {
    tries.passes.values().filter(|pass| **pass).count() as f64 / tries.passes.len().max(1) as f64
}

/// The comparisons as a table with a legend.
#[must_use]
pub fn compare_console(rows: &[Comparison], how: Bootstrap) -> String {
    let mut table = plain_table();
    let by_n = rows.iter().any(|row| row.n.is_some());
    let n = |text: String| by_n.then_some(text);
    let heading = ["samples", "first %", "second %", "difference", "flipped", "p", "Holm p"].map(str::to_owned);
    table.set_header(["first, second".to_owned()].into_iter().chain(n("n".to_owned())).chain(heading));
    for row in rows {
        let interval = row
            .interval
            .map(|bounds| format!(" [{:+.1}, {:+.1}]", 100.0 * bounds.low, 100.0 * bounds.high))
            .unwrap_or_default();
        // One below the other: side by side two names leave no room for the numbers.
        let names = format!("{}\n{}", clean(&row.first), clean(&row.second));
        let cells = [
            row.samples.to_string(),
            format!("{:.1}", 100.0 * row.first_rate),
            format!("{:.1}", 100.0 * row.second_rate),
            format!("{:+.1}{interval}", 100.0 * row.difference),
            format!("{} / {}", row.only_first, row.only_second),
            p_value(row.p),
            p_value(row.adjusted_p),
        ];
        let of_n = n(row.n.map_or_else(|| "all".to_owned(), |n| n.to_string()));
        table.add_row([names].into_iter().chain(of_n).chain(cells));
    }
    let unmatched: usize = rows.iter().filter(|row| row.n.is_none()).map(|row| row.unmatched).sum();
    let left_out =
        if unmatched > 0 { format!("Samples that only one has, left out: {unmatched}.\n") } else { String::new() };
    let legend = format!(
        "difference: second less first, in points, with its {:.0}% interval (paired {}; Wilson's where all differ alike). \
         flipped: samples whose first attempt only the first / only the second passes. p: McNemar's exact test on them. \
         Holm p: adjusted for all rows.",
        100.0 * how.level,
        how.population.legend()
    );
    format!("{}\n\n{}\n{left_out}", trimmed(table, &[0]), wrap(&legend, ""))
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "<1e-4".to_owned() } else { format!("{p:.4}") }
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
        let rows = compare(&contenders(&records, ""), false, false, Bootstrap::default());
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.samples, row.unmatched), (18, 4));
        // Of samples 2 to 19, a passes 2, 3, 4 and b passes 2 to 14.
        assert_eq!((row.only_first, row.only_second), (0, 10));
        assert!((row.difference - 10.0 / 18.0).abs() < 1e-12);
        assert!((row.p - 2.0 / 1024.0).abs() < 1e-12);
        let interval = row.interval.unwrap();
        assert!(interval.low > 0.3 && interval.high < 0.8, "{interval:?}");
    }

    #[test]
    fn lost_attempts_are_in_no_comparison_and_later_tries_replace_them() {
        let mut lost = record("a", "x_0", 0, false);
        lost.end = End::SandboxLost;
        let mut also_lost = record("b", "x_1", 0, false);
        also_lost.end = End::ModelError;
        let records =
            [lost, record("a", "x_0", 0, true), record("b", "x_0", 0, true), record("a", "x_1", 0, true), also_lost];
        let rows = compare(&contenders(&records, ""), false, false, Bootstrap::default());
        assert_eq!((rows[0].samples, rows[0].unmatched, rows[0].p), (1, 1, 1.0));
    }

    #[test]
    fn all_p_values_are_adjusted_together_and_every_pair_can_be_asked_for() {
        let mut records = Vec::new();
        for i in 0..12 {
            for (agent, pass) in [("a", false), ("b", true), ("c", i % 2 == 0)] {
                records.push(record(agent, &format!("x_{i}"), 0, pass));
            }
        }
        let all = contenders(&records, "run/");
        assert_eq!(compare(&all, false, false, Bootstrap::default()).len(), 2);
        let rows = compare(&all, true, false, Bootstrap::default());
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[0].first.as_str(), rows[0].second.as_str()), ("run/a", "run/b"));
        assert!((rows[0].adjusted_p - 3.0 * rows[0].p).abs() < 1e-12);
        assert!(rows.iter().all(|row| row.adjusted_p >= row.p));
    }
}
