//! Aggregates attempts into rows: one for each agent, model and n (such as the number of masked functions).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::curriculum::{CurriculumCourse, CurriculumRun};
use super::names::full_name;
use super::verifiers::{VerifierRow, verifier_rows};
use crate::agent::End;
use crate::model::Usage;
use crate::run::{Outcome, PlannedAttempts, counting};
use crate::stats::{
    FEWEST_PAPERS, FEWEST_SAMPLES, Interval, Intervals, Population, SampleValue, pass_all_k, pass_at_k, rate_interval,
    weighted_rate_interval,
};
use crate::verifier::stored::ChoiceRecord;

/// Options of [`summarise`].
#[derive(Debug, Clone)]
pub struct SummaryOptions {
    /// The k of each pass@k, in the order shown; usually includes 1.
    pub ks: Vec<usize>,
    /// Method of the intervals.
    pub intervals: Intervals,
    /// Planned attempts, used to report missing ones; empty if unknown.
    pub planned: Vec<PlannedAttempts>,
    /// Sentences about records that could not be read.
    pub notes: Vec<String>,
    /// The choices of verifiers. A verifier chooses one of a sample's attempts. Agents have the same labels here as in
    /// the records of attempts.
    pub choices: Vec<ChoiceRecord>,
    /// The runs that have a curriculum, which adapts the difficulty of episodes to the success rate.
    pub curricula: Vec<CurriculumRun>,
}

impl Default for SummaryOptions {
    /// Returns options for pass@1 only, with no planned attempts.
    fn default() -> Self {
        Self {
            ks: vec![1],
            intervals: Intervals::default(),
            planned: Vec::new(),
            notes: Vec::new(),
            choices: Vec::new(),
            curricula: Vec::new(),
        }
    }
}

/// Results of a run or of several runs, and what a reader must know about the results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// Rows ordered by agent, model and n. An agent and model with several n have a last row over all n.
    pub rows: Vec<SummaryRow>,
    /// Confidence level of the intervals, such as 0.95.
    pub level: f64,
    /// The papers that the intervals are about.
    pub population: Population,
    /// The word for a group of samples in texts: "paper", or another word in other families (kinds of task).
    #[serde(skip)]
    pub group: &'static str,
    /// Sentences about what is missing or was left out.
    pub notes: Vec<String>,
    /// Pass rates of the attempts that verifiers chose.
    pub verifiers: Vec<VerifierRow>,
    /// Success and difficulty over the course of each run with a curriculum.
    pub curricula: Vec<CurriculumCourse>,
}

impl Summary {
    /// Returns the method of the intervals.
    #[must_use]
    pub const fn intervals(&self) -> Intervals {
        Intervals { level: self.level, population: self.population, group: self.group }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Results of one agent and model, for one n (such as the number of masked functions) or for all n together.
///
/// Each attempt counts once: among several records of the same agent, model, sample and attempt, the last one that was
/// not lost to infrastructure counts or, if all were lost, the last one. Lost attempts appear in `lost` and `ends`, and
/// their spending in `cost` and `usage`; they are left out of all rates and means.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Row")]
pub struct SummaryRow {
    /// The agent's label.
    pub agent: String,
    /// The model's name.
    pub model: Option<String>,
    /// Number of masked functions; `None` in the row over all n.
    pub n: Option<usize>,
    /// Samples with at least one attempt that was not lost.
    pub samples: usize,
    /// Attempts that were not lost.
    pub attempts: usize,
    /// Attempts that pass.
    pub passed: usize,
    /// pass@k for each requested k.
    pub pass_at: Vec<PassAt>,
    /// pass@1, whichever k are requested.
    #[serde(skip)]
    pub pass_at_1: PassAt,
    /// pass^k, the probability that all of k attempts pass, for each k above 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_all: Vec<PassAt>,
    /// Share of attempts whose report agrees with gold, averaged over samples; `None` if answers don't report values.
    pub reported: Option<f64>,
    /// Share of verified attempts whose code agrees with gold, averaged over samples; `None` if no attempt was
    /// verified.
    pub verified: Option<f64>,
    /// Completed share of the task from 0 to 1, averaged over samples, in families (kinds of task) with partial credit.
    /// Each attempt counts with the share found by verification or, without verification, by the comparison of the
    /// answer with gold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Confidence interval of `score`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_interval: Option<Interval>,
    /// Pass rate in which the weight of a sample is the number of lines of code that the sample withholds. Samples
    /// whose number of lines is unknown are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_lines: Option<f64>,
    /// Confidence interval of `score_lines`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_lines_interval: Option<Interval>,
    /// Sum of the numbers of lines of code that the samples withhold. Samples whose number of lines is unknown are left
    /// out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<usize>,
    /// Shares of attempts that pass after the first round, after the second round, and so on, averaged over samples. An
    /// attempt with fewer rounds counts with the final outcome. Absent if no attempt got feedback.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after_rounds: Vec<f64>,
    /// Additional measures of the family (kind of task), averaged over samples. Names begin with `reported_` or
    /// `verified_`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, f64>,
    /// Confidence intervals of the measures whose values are all from 0 to 1.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measure_intervals: BTreeMap<String, Interval>,
    /// Attempts whose reported results are right but whose code doesn't produce them.
    pub unsupported: usize,
    /// Attempts lost to infrastructure.
    pub lost: usize,
    /// Attempts that were under way when the run was stopped, and have not been made again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped: usize,
    /// pass@1 if every lost attempt had failed; `None` if none were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_at_worst: Option<f64>,
    /// pass@1 if every lost attempt had passed; `None` if none were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_at_best: Option<f64>,
    /// Number of attempts for each way in which attempts ended, including lost attempts.
    pub ends: BTreeMap<End, usize>,
    /// Mean number of steps per attempt: model replies or, of an agent without a model, the calls that it made.
    pub steps: Option<f64>,
    /// Mean number of unreadable replies per attempt.
    pub format_errors: Option<f64>,
    /// Dollars per sample, over the attempts that count.
    pub cost_per_sample: Option<f64>,
    /// Total dollars, including those of lost attempts and of attempts that were made again.
    pub cost: f64,
    /// Total tokens, including those of lost attempts and of attempts that were made again.
    pub usage: Usage,
    /// Mean seconds of tool time per attempt.
    pub tool_seconds: Option<f64>,
    /// Mean seconds of waiting for the model per attempt.
    pub model_seconds: Option<f64>,
    /// Tokens written per second of waiting for the model, including lost attempts.
    pub tokens_per_second: Option<f64>,
    /// Mean seconds of verification per attempt.
    pub verify_seconds: Option<f64>,
}

/// pass@k or pass^k, averaged over samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PassAt {
    /// Number of attempts k.
    pub k: usize,
    /// The rate; `None` if no sample has k attempts.
    pub rate: Option<f64>,
    /// Confidence interval of the rate.
    pub interval: Option<Interval>,
    /// Samples with at least k attempts; the others are left out.
    pub samples: usize,
}

/// A record, and whether it counts; see [`SummaryRow`].
type CountedRecord<'a> = (&'a Outcome, bool);

/// The records of one agent and model, by n (such as the number of masked functions).
type RecordsByN<'a> = BTreeMap<usize, Vec<CountedRecord<'a>>>;

/// Computes the rows. If an attempt was tried several times, the record of each try must come after those of the
/// earlier tries. Otherwise, the order of the records does not matter.
#[must_use]
pub fn summarise(records: &[Outcome], options: &SummaryOptions) -> Summary {
    let mut groups: BTreeMap<(&str, Option<&str>), RecordsByN<'_>> = BTreeMap::new();
    let flags = counting(records);
    for (record, &counts) in records.iter().zip(&flags) {
        let group = groups.entry((&record.agent, record.model.as_deref())).or_default();
        group.entry(record.n).or_default().push((record, counts));
    }
    let mut tables = Vec::new();
    for by_n in groups.into_values() {
        let all = (by_n.len() > 1).then(|| (None, by_n.values().flatten().copied().collect::<Vec<_>>()));
        tables.extend(by_n.into_iter().map(|(n, records)| (Some(n), records)).chain(all));
    }
    // Start with the largest groups, so that the other processors don't wait for a large group at the end.
    let mut largest_first: Vec<_> = tables.iter().enumerate().collect();
    largest_first.sort_by_key(|(_, (_, records))| std::cmp::Reverse(records.len()));
    let mut rows: Vec<(usize, SummaryRow)> = largest_first
        .into_iter()
        .par_bridge()
        .filter_map(|(place, (n, records))| Some((place, row(*n, records, options)?)))
        .collect();
    rows.sort_by_key(|(place, _)| *place);
    let rows: Vec<SummaryRow> = rows.into_iter().map(|(_, row)| row).collect();
    let verifiers = verifier_rows(records, &options.choices, options.intervals);
    let mut notes = notes(&rows, records, &flags, options);
    notes.extend(partly_chosen(&rows, &verifiers));
    let Intervals { level, population, group } = options.intervals;
    let curricula = options.curricula.iter().filter_map(|run| run.course(records)).collect();
    Summary { rows, level, population, group, notes, verifiers, curricula }
}

/// Counts over the attempts of one sample that were not lost.
#[derive(Default)]
struct SampleCounts<'a> {
    paper: &'a str,
    n: usize,
    lines: Option<usize>,
    attempts: usize,
    passed: usize,
    reported: usize,
    verifiable: usize,
    verified: usize,
    graded: usize,
    score: f64,
    /// Sum and number of values, by measure.
    measures: BTreeMap<String, (f64, usize)>,
}

/// Computes one row; `None` without records.
fn row(n: Option<usize>, records: &[CountedRecord<'_>], options: &SummaryOptions) -> Option<SummaryRow> {
    let (first, _) = records.first()?;
    let mut tallies: HashMap<&str, SampleCounts<'_>> = HashMap::new();
    let mut ends = BTreeMap::new();
    let mut usage = Usage::default();
    let mut scored = Vec::with_capacity(records.len());
    let (mut is_reported, mut stopped) = (true, 0);
    // Numbers of passed, failed and lost attempts of each sample.
    let mut tries: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for &(record, counts) in records {
        usage += record.usage;
        if !counts {
            continue;
        }
        *ends.entry(record.end).or_default() += 1;
        if record.is_stopped() {
            stopped += 1;
            continue;
        }
        let place = if record.is_infrastructure() { 2 } else { usize::from(!record.pass) };
        tries.entry(&record.sample).or_default()[place] += 1;
        if record.is_infrastructure() {
            continue;
        }
        is_reported &= !record.reported.as_ref().is_some_and(|verdict| verdict.unchecked);
        scored.push(record);
        let tally = tallies.entry(&record.sample).or_default();
        tally.paper = &record.paper;
        tally.n = record.n;
        tally.lines = record.lines;
        tally.attempts += 1;
        tally.passed += usize::from(record.pass);
        tally.reported += usize::from(record.reported.as_ref().is_some_and(|verdict| verdict.pass));
        tally.verifiable += usize::from(record.verified.is_some());
        tally.verified += usize::from(record.verified.as_ref().is_some_and(|verdict| verdict.pass));
        if let Some(score) = record.score() {
            tally.graded += 1;
            tally.score += score;
        }
        for (name, value) in record.measures() {
            let (sum, count) = tally.measures.entry(name).or_default();
            *sum += value;
            *count += 1;
        }
    }
    // Sort before summing: float sums must not depend on the order of the hash map.
    let mut samples: Vec<(&str, SampleCounts<'_>)> = tallies.into_iter().collect();
    samples.sort_unstable_by_key(|(sample, tally)| (tally.paper, *sample));
    let samples: Vec<SampleCounts<'_>> = samples.into_iter().map(|(_, tally)| tally).collect();

    let (pass_at, pass_all) = pass_rates(&samples, options);
    let pass_at_1 = pass_at.iter().find(|at| at.k == 1).copied();
    let score = MeasuredMean::over(&samples, options.intervals, |tally| Some((tally.score, tally.graded)));
    let measures = measures(&samples, options.intervals);
    let mean = |value: fn(&Outcome) -> f64| average(scored.iter().map(|record| value(record)));
    let spent: f64 = scored.iter().map(|record| record.cost).sum();
    let waited: f64 = records.iter().map(|(record, _)| record.model_seconds).sum();
    let lost = tries.values().map(|tries| tries[2]).sum::<usize>();
    let bound = |passed: fn(&[usize; 3]) -> usize| {
        let rates = tries.values().map(|tries| passed(tries) as f64 / tries.iter().sum::<usize>() as f64);
        average(rates).filter(|_| lost > 0)
    };
    Some(SummaryRow {
        agent: first.agent.to_string(),
        model: first.model.as_deref().map(str::to_owned),
        n,
        samples: samples.len(),
        attempts: scored.len(),
        passed: scored.iter().filter(|record| record.pass).count(),
        pass_at,
        pass_at_1: pass_at_1.unwrap_or_else(|| pass_rate(&samples, 1, pass_at_k, options.intervals)),
        pass_all,
        reported: average(samples.iter().map(|tally| tally.reported as f64 / tally.attempts as f64))
            .filter(|_| is_reported),
        verified: average(
            samples
                .iter()
                .filter(|tally| tally.verifiable > 0)
                .map(|tally| tally.verified as f64 / tally.verifiable as f64),
        ),
        score: score.mean,
        score_interval: score.interval,
        score_lines: score_lines(&samples),
        score_lines_interval: score_lines_interval(&samples, options.intervals),
        after_rounds: after_rounds(&scored),
        lines: samples.iter().filter_map(|tally| tally.lines).reduce(usize::saturating_add),
        measures: measures.iter().filter_map(|(name, it)| Some((name.clone(), it.mean?))).collect(),
        measure_intervals: measures.iter().filter_map(|(name, it)| Some((name.clone(), it.interval?))).collect(),
        unsupported: scored.iter().filter(|record| record.is_unsupported()).count(),
        lost,
        stopped,
        pass_at_worst: bound(|[passed, ..]| *passed),
        pass_at_best: bound(|[passed, _, lost]| passed + lost),
        ends,
        steps: mean(|record| f64::from(record.steps)),
        format_errors: mean(|record| f64::from(record.format_errors)),
        cost_per_sample: (!samples.is_empty()).then(|| spent / samples.len() as f64),
        cost: records.iter().map(|(record, _)| record.cost).sum(),
        usage,
        tool_seconds: mean(|record| record.tool_seconds),
        model_seconds: mean(|record| record.model_seconds),
        tokens_per_second: Some(waited).filter(|waited| *waited > 0.0).map(|waited| usage.output as f64 / waited),
        verify_seconds: mean(|record| record.verify_seconds),
    })
}

/// Computes the pass rate weighted by the samples' lines.
fn score_lines(samples: &[SampleCounts<'_>]) -> Option<f64> {
    let weighed = samples.iter().filter_map(|tally| Some((tally.lines? as f64, tally)));
    let (passed, all) = weighed.fold((0.0, 0.0), |(passed, all), (lines, tally)| {
        (passed + lines * tally.passed as f64 / tally.attempts as f64, all + lines)
    });
    (all > 0.0).then(|| passed / all)
}

/// Confidence interval of [`score_lines`].
fn score_lines_interval(samples: &[SampleCounts<'_>], how: Intervals) -> Option<Interval> {
    let weighed = samples.iter().filter_map(|tally| {
        let value = tally.passed as f64 / tally.attempts as f64;
        Some((SampleValue { paper: tally.paper, n: tally.n, value }, tally.lines? as f64))
    });
    let (measured, weights): (Vec<_>, Vec<_>) = weighed.unzip();
    weighted_rate_interval(&measured, &weights, how)
}

/// Pass rate after each round; empty if no attempt got feedback.
fn after_rounds(scored: &[&Outcome]) -> Vec<f64> {
    // `rounds` lacks the last round if the attempt made more steps after the last feedback. Count this round, too.
    let count = |record: &Outcome| {
        record.rounds.last().map_or(0, |last| record.rounds.len() + usize::from(last.steps < record.steps))
    };
    let most = scored.iter().map(|record| count(record)).max().unwrap_or_default();
    let rate = |round: usize| {
        let mut by_sample: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for record in scored {
            let (passed, all) = by_sample.entry(&record.sample).or_default();
            *passed += usize::from(record.rounds.get(round).map_or(record.pass, |it| it.pass));
            *all += 1;
        }
        average(by_sample.values().map(|(passed, all)| *passed as f64 / *all as f64))
    };
    (0..most).filter_map(rate).collect()
}

/// Mean of a measure over the samples that have it.
struct MeasuredMean {
    mean: Option<f64>,
    interval: Option<Interval>,
}

impl MeasuredMean {
    /// Averages a measure over samples. `of` returns the sum and the number of the measure's values in one sample.
    fn over<'a>(
        samples: &[SampleCounts<'a>],
        how: Intervals,
        of: impl Fn(&SampleCounts<'a>) -> Option<(f64, usize)>,
    ) -> Self {
        let mut measured = Vec::with_capacity(samples.len());
        let mut attempts = 0;
        for tally in samples {
            if let Some((sum, count)) = of(tally).filter(|(_, count)| *count > 0) {
                measured.push(SampleValue { paper: tally.paper, n: tally.n, value: sum / count as f64 });
                attempts += count;
            }
        }
        let is_share = measured.iter().all(|sample| (0.0..=1.0).contains(&sample.value));
        let trials = attempts as f64 / measured.len().max(1) as f64;
        Self {
            mean: average(measured.iter().map(|sample| sample.value)),
            interval: rate_interval(&measured, trials, how).filter(|_| is_share),
        }
    }
}

/// Each measure, averaged over samples.
fn measures(samples: &[SampleCounts<'_>], how: Intervals) -> BTreeMap<String, MeasuredMean> {
    let names: BTreeSet<&String> = samples.iter().flat_map(|tally| tally.measures.keys()).collect();
    let mean = |name: &String| MeasuredMean::over(samples, how, |tally| tally.measures.get(name).copied());
    names.into_iter().map(|name| (name.clone(), mean(name))).collect()
}

/// Computes the mean; `None` without values.
fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_usize);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

/// Estimates pass@k or pass^k at one sample from the number of attempts n, the number of passed attempts c, and k.
type Estimate = fn(usize, usize, usize) -> Option<f64>;

/// pass@k for each k and pass^k for each k above 1, each over the samples with at least k attempts.
fn pass_rates(samples: &[SampleCounts<'_>], options: &SummaryOptions) -> (Vec<PassAt>, Vec<PassAt>) {
    let any = options.ks.iter().map(|&k| pass_rate(samples, k, pass_at_k, options.intervals));
    let above_one = options.ks.iter().filter(|&&k| k > 1);
    let all = above_one.map(|&k| pass_rate(samples, k, pass_all_k, options.intervals));
    (any.collect(), all.collect())
}

fn pass_rate(samples: &[SampleCounts<'_>], k: usize, estimate: Estimate, how: Intervals) -> PassAt {
    let mut measured = Vec::with_capacity(samples.len());
    let mut attempts = 0;
    for tally in samples {
        if let Some(value) = estimate(tally.attempts, tally.passed, k) {
            measured.push(SampleValue { paper: tally.paper, n: tally.n, value });
            attempts += tally.attempts;
        }
    }
    // An estimate of pass@k from m attempts at a sample is as informative as m / k independent trials.
    let trials = attempts as f64 / (measured.len() * k).max(1) as f64;
    PassAt {
        k,
        rate: average(measured.iter().map(|sample| sample.value)),
        interval: rate_interval(&measured, trials, how),
        samples: measured.len(),
    }
}

/// Returns the notes on what is missing or was left out. `flags` says for each record whether it counts (see
/// [`SummaryRow`]).
fn notes(rows: &[SummaryRow], records: &[Outcome], flags: &[bool], options: &SummaryOptions) -> Vec<String> {
    let mut notes = options.notes.clone();
    if records.is_empty() {
        notes.push("no attempt has been stored yet".to_owned());
    }
    notes.extend(all_refused(records, flags));
    for planned in &options.planned {
        let row = rows
            .iter()
            .find(|row| row.agent == planned.agent && row.model == planned.model && row.n == Some(planned.n));
        let done = row.map_or(0, |row| row.attempts + row.lost);
        if done < planned.attempts {
            let name = full_name(&planned.agent, planned.model.as_deref());
            let (n, all, open) = (planned.n, planned.attempts, planned.attempts - done);
            notes.push(format!("{name}, n = {n}: {done} of {} stored, {open} missing", plural(all, "planned attempt")));
        }
    }
    let stopped: usize = rows.iter().filter(|row| row.n.is_some()).map(|row| row.stopped).sum();
    if stopped > 0 {
        notes.push(format!(
            "stopped with the run and not scored: {}; `autoexperiment resume` makes {} again",
            plural(stopped, "attempt"),
            if stopped == 1 { "it" } else { "them" }
        ));
    }
    for row in rows.iter().filter(|row| row.n.is_some()) {
        let label = format!("{}, n = {}", full_name(&row.agent, row.model.as_deref()), row.n.unwrap_or_default());
        if let (Some(worst), Some(best)) = (row.pass_at_worst, row.pass_at_best) {
            notes.push(format!(
                "{label}: {} lost to infrastructure and left out of the rates; pass@1 would be {:.1}% if all had failed and \
                 {:.1}% if all had passed",
                plural(row.lost, "attempt"),
                100.0 * worst,
                100.0 * best
            ));
        }
        for at in row.pass_at.iter().filter(|at| at.samples < row.samples) {
            let (k, some, all) = (at.k, at.samples, row.samples);
            notes.push(if some == 0 {
                format!("{label}: there is no pass@{k} yet, because no sample has {k} attempts")
            } else {
                format!("{label}: pass@{k} is over the {some} of {all} samples with {k} or more attempts")
            });
        }
        if row.verified.is_none() && row.attempts > 0 {
            notes
                .push(format!("{label}: not verified; only the results that agents report decide which attempts pass"));
        }
    }
    notes.extend(too_few(rows, options.intervals));
    notes.extend(unequal_losses(rows));
    let superseded = flags.iter().filter(|counts| !**counts).count();
    if superseded > 0 {
        notes.push(format!(
            "superseded by later tries of the same attempt: {}, of which nothing counts but the cost",
            plural(superseded, "record")
        ));
    }
    notes
}

/// Notes on verifiers that chose at only some samples of an agent and model.
fn partly_chosen(rows: &[SummaryRow], verifiers: &[VerifierRow]) -> Vec<String> {
    let mut chosen: BTreeMap<(&str, Option<&str>, &str), usize> = BTreeMap::new();
    for row in verifiers.iter().filter(|row| row.n.is_some()) {
        *chosen.entry((&row.agent, row.model.as_deref(), &row.verifier)).or_default() += row.samples;
    }
    let mut notes = Vec::new();
    for ((agent, model, verifier), some) in chosen {
        let own = rows.iter().filter(|row| row.n.is_some() && row.agent == agent && row.model.as_deref() == model);
        let all = own.map(|row| row.samples).sum::<usize>();
        if some < all {
            let name = full_name(agent, model);
            notes.push(format!("{name}: verifier `{verifier}` chose at {some} of {}", plural(all, "sample")));
        }
    }
    notes
}

/// Note on rows with too few samples or papers for intervals.
fn too_few(rows: &[SummaryRow], how: Intervals) -> Option<String> {
    let is_few = |row: &&SummaryRow| row.pass_at.iter().any(|at| at.rate.is_some() && at.interval.is_none());
    let of_n = |n: Option<usize>| n.map_or_else(|| "all n".to_owned(), |n| format!("n = {n}"));
    let name = |row: &SummaryRow| format!("{}, {}", full_name(&row.agent, row.model.as_deref()), of_n(row.n));
    let named: Vec<String> = rows.iter().filter(is_few).map(name).collect();
    let papers = match how.population {
        Population::Suite => String::new(),
        Population::Papers => format!(" from at least {FEWEST_PAPERS} {}s", how.group),
    };
    (!named.is_empty())
        .then(|| format!("too few samples for an interval, which needs {FEWEST_SAMPLES}{papers}: {}", named.join("; ")))
}

/// Returns a warning if some agents and models lost more attempts than others, because their rates are then computed
/// from different attempts.
fn unequal_losses(rows: &[SummaryRow]) -> Option<String> {
    let mut lost: BTreeMap<(&str, Option<&str>), (usize, usize)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.n.is_some()) {
        let sum = lost.entry((&row.agent, row.model.as_deref())).or_default();
        *sum = (sum.0 + row.lost, sum.1 + row.lost + row.attempts);
    }
    let counts: BTreeSet<usize> = lost.values().map(|(lost, _)| *lost).collect();
    let named =
        lost.iter().map(|((agent, model), (lost, all))| format!("{} {lost} of {all}", full_name(agent, *model)));
    (counts.len() > 1).then(|| {
        format!(
            "WARNING contenders lost different numbers of attempts to infrastructure ({}): if losing them depends on the \
             contender, the rates cannot be compared; `autoexperiment resume` makes them again",
            named.collect::<Vec<_>>().join(", ")
        )
    })
}

/// Warning for each agent and model whose attempts were all refused by the provider: the rate then says nothing about
/// the model.
fn all_refused(records: &[Outcome], flags: &[bool]) -> Vec<String> {
    let mut attempts: BTreeMap<(&str, Option<&str>), Vec<&Outcome>> = BTreeMap::new();
    for (record, counts) in records.iter().zip(flags) {
        if *counts && !record.is_infrastructure() {
            attempts.entry((&record.agent, record.model.as_deref())).or_default().push(record);
        }
    }
    let refused = attempts.into_iter().filter(|(_, all)| all.len() > 1 && all.iter().all(|it| it.end == End::Refused));
    refused
        .map(|((agent, model), all)| {
            let why: String = all[0].end_detail.as_deref().unwrap_or("no reason given").chars().take(300).collect();
            format!(
                "WARNING {}: the provider refused all {}, so this rate says nothing about the model. The first was refused \
                 with: {why}. Change what is asked (model, the setting `protocol`, `--temperature`, `--max-tokens`) and start a new run",
                full_name(agent, model),
                plural(all.len(), "attempt")
            )
        })
        .collect()
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
