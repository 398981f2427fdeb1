//! Statistics on the course of attempts: crashes of first runs, recoveries, cost and time per sample, and bounds on the
//! effect of lost attempts.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::console::render;
use super::course::Course;
use super::end_name;
use super::terminal::{TOO_FEW, decimal, dollars, percent, tokens, wrap};
use crate::agent::End;
use crate::error::Result;
use crate::run::{Outcome, counting};
use crate::stats::{Interval, Intervals, SampleValue, rate_interval};

/// Statistics on the attempts of one agent and model, with one number of masked functions or with all numbers together.
/// Attempts that were lost or stopped are counted only in `lost`, `lost_ends` and `stopped`; lost ones also affect the
/// two bounds of pass@1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HowRow {
    /// The agent's label.
    pub agent: String,
    /// The model's name.
    pub model: Option<String>,
    /// Number of masked functions; `None` in the row for all numbers together.
    pub n: Option<usize>,
    /// Samples with at least one attempt that was neither lost nor stopped.
    pub samples: usize,
    /// Attempts that were neither lost nor stopped.
    pub attempts: usize,
    /// Attempts (of `attempts`) whose trajectory could be read.
    pub trajectories: usize,
    /// Attempts (of `trajectories`) that ran code.
    pub ran: usize,
    /// Attempts (of `ran`) whose first run crashed.
    pub first_crashed: usize,
    /// Share of `ran` whose first run crashed.
    pub first_crashed_share: AttemptShare,
    /// Attempts in which the first run crashed and a later run did not.
    pub recovered: usize,
    /// Share of the attempts counted by `first_crashed` that recovered.
    pub recovered_share: AttemptShare,
    /// Attempts whose first run crashed and that pass in the end.
    pub ended_right: usize,
    /// Share of the attempts counted by `first_crashed` that pass.
    pub ended_right_share: AttemptShare,
    /// Number of the first step at which code ran without crashing, averaged over the attempts that have such a step.
    pub steps_to_working: Option<f64>,
    /// Input and output tokens per sample.
    pub tokens_per_sample: Option<f64>,
    /// Dollars per sample.
    pub cost_per_sample: Option<f64>,
    /// Seconds per sample, including waiting and verification.
    pub seconds_per_sample: Option<f64>,
    /// Attempts whose reported results are right but whose code doesn't produce them.
    pub unsupported: usize,
    /// Number of attempts by the reason why they ended, without lost and stopped ones.
    pub ends: BTreeMap<End, usize>,
    /// Number of lost attempts by the reason why they ended.
    pub lost_ends: BTreeMap<End, usize>,
    /// Attempts lost to infrastructure.
    pub lost: usize,
    /// Attempts that were under way when the run was stopped, and have not been made again.
    pub stopped: usize,
    /// pass@1, lost attempts left out.
    pub pass: Option<f64>,
    /// pass@1 if every lost attempt had failed.
    pub pass_at_worst: Option<f64>,
    /// pass@1 if every lost attempt had passed.
    pub pass_at_best: Option<f64>,
}

/// A share of attempts with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct AttemptShare {
    /// Share from 0 to 1; `None` if there are no attempts.
    pub rate: Option<f64>,
    /// Confidence interval over samples.
    pub interval: Option<Interval>,
}

/// The record of an attempt that statistics use (see [`counting`]), and what happened when the attempt ran code, if its
/// trajectory could be read.
type AttemptWithCourse<'a> = (&'a Outcome, Option<Course>);

/// The attempts of one agent and model, by the number of masked functions (n).
type CoursesByN<'a> = BTreeMap<usize, Vec<AttemptWithCourse<'a>>>;

/// Computes the rows of the table: for each agent and model, one row for each number of masked functions and, if there
/// are several numbers, one row for all of them. `course` reads what happened when an attempt ran code from its
/// trajectory, and returns `None` if there is no trajectory.
///
/// # Errors
/// Returns the errors of `course`.
pub fn how(
    records: &[Outcome],
    options: Intervals,
    mut course: impl FnMut(&Outcome) -> Result<Option<Course>>,
) -> Result<Vec<HowRow>> {
    let mut groups: BTreeMap<(&str, Option<&str>), CoursesByN<'_>> = BTreeMap::new();
    for (record, counts) in records.iter().zip(counting(records)) {
        if counts {
            let told = if record.is_infrastructure() { None } else { course(record)? };
            let by_n = groups.entry((&record.agent, record.model.as_deref())).or_default();
            by_n.entry(record.n).or_default().push((record, told));
        }
    }
    let mut rows = Vec::new();
    for by_n in groups.into_values() {
        let several = by_n.len() > 1;
        let mut all = Vec::new();
        for (n, attempts) in by_n {
            rows.extend(row(Some(n), &attempts, options));
            all.extend(attempts);
        }
        if several {
            rows.extend(row(None, &all, options));
        }
    }
    Ok(rows)
}

fn row(n: Option<usize>, attempts: &[AttemptWithCourse<'_>], options: Intervals) -> Option<HowRow> {
    let (first, _) = attempts.first()?;
    let scored: Vec<&AttemptWithCourse<'_>> =
        attempts.iter().filter(|(record, _)| !record.is_infrastructure()).collect();
    let mut passes: HashMap<&str, [usize; 3]> = HashMap::new();
    let (mut ends, mut lost_ends, mut stopped) = (BTreeMap::new(), BTreeMap::new(), 0);
    for (record, _) in attempts {
        let [passed, failed, lost] = passes.entry(&record.sample).or_default();
        if record.is_stopped() {
            stopped += 1;
        } else if record.is_infrastructure() {
            *lost += 1;
            *lost_ends.entry(record.end).or_default() += 1;
        } else {
            *(if record.pass { passed } else { failed }) += 1;
            *ends.entry(record.end).or_default() += 1;
        }
    }
    let samples = passes.values().filter(|[passed, failed, _]| passed + failed > 0).count();
    // Average over each sample's attempts first, then over samples, as for pass@1.
    let mean = |rate: &dyn Fn([usize; 3]) -> Option<f64>| {
        let mut rates: Vec<f64> = passes.values().filter_map(|&counts| rate(counts)).collect();
        // Sort before summing: float sums must not depend on the order of the hash map.
        rates.sort_unstable_by(f64::total_cmp);
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    };
    let of = |part: usize, all: usize| (all > 0).then(|| part as f64 / all as f64);
    let courses: Vec<(&Outcome, &Course)> =
        scored.iter().filter_map(|(record, course)| Some((*record, course.as_ref()?))).collect();
    let ran: Vec<_> = courses.iter().filter(|(_, course)| !course.crashed.is_empty()).copied().collect();
    let crashed: Vec<_> = ran.iter().filter(|(_, course)| course.first_crashed() == Some(true)).copied().collect();
    let count = |among: &[(&Outcome, &Course)], is: &dyn Fn(&Outcome, &Course) -> bool| {
        among.iter().filter(|(record, course)| is(record, course)).count()
    };
    let is_crashed = |_: &Outcome, course: &Course| course.first_crashed() == Some(true);
    let is_recovered = |_: &Outcome, course: &Course| course.recovered();
    let is_right = |record: &Outcome, _: &Course| record.pass;
    let steps: Vec<u32> = courses.iter().filter_map(|(_, course)| course.working_step).collect();
    let per_sample = |value: fn(&Outcome) -> f64| {
        (samples > 0).then(|| scored.iter().map(|(record, _)| value(record)).sum::<f64>() / samples as f64)
    };
    Some(HowRow {
        agent: first.agent.to_string(),
        model: first.model.as_deref().map(str::to_owned),
        n,
        samples,
        attempts: scored.len(),
        trajectories: courses.len(),
        ran: ran.len(),
        first_crashed: crashed.len(),
        first_crashed_share: share(&ran, is_crashed, options),
        recovered: count(&crashed, &is_recovered),
        recovered_share: share(&crashed, is_recovered, options),
        ended_right: count(&crashed, &is_right),
        ended_right_share: share(&crashed, is_right, options),
        steps_to_working: of(steps.iter().map(|&step| step as usize).sum(), steps.len()),
        tokens_per_sample: per_sample(|record| record.usage.input.saturating_add(record.usage.output) as f64),
        cost_per_sample: per_sample(|record| record.cost),
        seconds_per_sample: per_sample(|record| record.wall_seconds),
        unsupported: scored.iter().filter(|(record, _)| record.is_unsupported()).count(),
        ends,
        lost: lost_ends.values().sum(),
        lost_ends,
        stopped,
        pass: mean(&|[passed, failed, _]| of(passed, passed + failed)),
        pass_at_worst: mean(&|[passed, failed, lost]| of(passed, passed + failed + lost)),
        pass_at_best: mean(&|[passed, failed, lost]| of(passed + lost, passed + failed + lost)),
    })
}

/// Computes a share of attempts, averaged over each sample's attempts first and then over samples.
fn share(among: &[(&Outcome, &Course)], is: impl Fn(&Outcome, &Course) -> bool, options: Intervals) -> AttemptShare {
    let mut samples: BTreeMap<&str, (&Outcome, [usize; 2])> = BTreeMap::new();
    for (record, course) in among {
        let (_, [some, all]) = samples.entry(&record.sample).or_insert((record, [0, 0]));
        *some += usize::from(is(record, course));
        *all += 1;
    }
    let rates: Vec<SampleValue<'_>> = samples
        .values()
        .map(|(first, [some, all])| SampleValue { paper: &first.paper, n: first.n, value: *some as f64 / *all as f64 })
        .collect();
    let count = rates.len() as f64;
    AttemptShare {
        rate: (!rates.is_empty()).then(|| rates.iter().map(|sample| sample.value).sum::<f64>() / count),
        interval: rate_interval(&rates, among.len() as f64 / count, options),
    }
}

/// Formats the rows as three tables of at most 100 columns with legends.
#[must_use]
pub fn how_console(rows: &[HowRow]) -> String {
    let heading = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let key = |row: &HowRow| (row.agent.clone(), row.model.clone(), row.n);
    let runs = render(
        rows,
        &heading(&["attempts", "read", "ran code", "first crashed", "recovered", "ended right", "steps to working"]),
        key,
        |row| {
            vec![
                row.attempts.to_string(),
                row.trajectories.to_string(),
                row.ran.to_string(),
                share_cell(row.first_crashed_share),
                share_cell(row.recovered_share),
                share_cell(row.ended_right_share),
                decimal(row.steps_to_working),
            ]
        },
    );
    let legend = "first crashed: percent of the attempts that ran code whose first run crashed. recovered: percent of \
                  these with a later run that went through. ended right: percent of these that pass. Each averaged over \
                  samples, with its interval. read: attempts with a trajectory. steps to working: mean number of the \
                  step at which code first ran through.";
    let runs = format!("How runs of code went\n{runs}\n{}\n", wrap(legend, ""));
    let ends = |ends: &BTreeMap<End, usize>| {
        let each = ends.iter().map(|(end, count)| format!("{} {count}", end_name(*end).replace('_', " ")));
        each.collect::<Vec<_>>().join(", ")
    };
    let took = render(rows, &heading(&["tokens", "cost", "seconds", "unsupported", "ends"]), key, |row| {
        vec![
            row.tokens_per_sample.map_or_else(|| "-".to_owned(), |count| tokens(count.round() as u64)),
            row.cost_per_sample.map_or_else(|| "-".to_owned(), dollars),
            decimal(row.seconds_per_sample),
            row.unsupported.to_string(),
            ends(&row.ends),
        ]
    });
    let legend = "tokens, cost, seconds: mean a sample, over all its attempts. unsupported: attempts reported rightly but \
                  not verified. ends: why attempts stopped.";
    let took = format!("What samples took\n{took}\n{}\n", wrap(legend, ""));
    let has_stopped = rows.iter().any(|row| row.stopped > 0);
    let mut columns = heading(&["lost", "at worst", "pass@1", "at best", "ends"]);
    columns.extend(has_stopped.then(|| "stopped".to_owned()));
    let lost = render(rows, &columns, key, |row| {
        let mut cells = vec![
            row.lost.to_string(),
            percent(row.pass_at_worst),
            percent(row.pass),
            percent(row.pass_at_best),
            ends(&row.lost_ends),
        ];
        cells.extend(has_stopped.then(|| row.stopped.to_string()));
        cells
    });
    let stopped = " stopped: attempts that ended because the run was stopped; they are not lost.";
    let legend = format!(
        "pass@1 in percent: as reported, lost attempts left out; at worst, had every lost attempt failed; at best, had \
         every one passed.{}",
        if has_stopped { stopped } else { "" }
    );
    format!("{runs}\n{took}\nLost to infrastructure\n{lost}\n{}\n", wrap(&legend, ""))
}

/// Formats a share in percent with its interval, as `69.4 [60, 78]`.
fn share_cell(share: AttemptShare) -> String {
    match share.interval {
        Some(it) => format!("{} [{:.0}, {:.0}]", percent(share.rate), 100.0 * it.low, 100.0 * it.high),
        None if share.rate.is_some() => format!("{} {TOO_FEW}", percent(share.rate)),
        None => percent(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::masked;

    /// An attempt of 10 s by `react`.
    fn attempt(sample: &str, number: u32, pass: bool) -> Outcome {
        let sample = masked(sample);
        let wall_seconds = 10.0;
        Outcome { pass, end: End::Answered, wall_seconds, ..Outcome::blank("react", &sample, number) }
    }

    fn rows() -> Vec<HowRow> {
        let mut lost = attempt("x_1", 1, false);
        lost.end = End::ModelError;
        let mut lost_alone = attempt("x_2", 0, false);
        lost_alone.end = End::SandboxLost;
        let records = [
            attempt("x_0", 0, true),
            attempt("x_0", 1, false),
            attempt("x_1", 0, true),
            lost,
            lost_alone,
            attempt("y_0", 0, false),
        ];
        let mut courses = vec![
            Some(Course { crashed: vec![true, false], working_step: Some(6) }),
            Some(Course { crashed: vec![true, true], working_step: None }),
            Some(Course { crashed: vec![false], working_step: Some(2) }),
            None,
        ]
        .into_iter();
        how(&records, Intervals::default(), |_| Ok(courses.next().flatten())).unwrap()
    }

    #[test]
    fn shares_are_averages_over_samples_and_lost_attempts_widen_the_bounds_of_the_pass_rate() {
        let rows = rows();
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.samples, row.attempts, row.trajectories, row.ran), (3, 4, 3, 3));
        assert_eq!((row.first_crashed, row.recovered, row.ended_right), (2, 1, 1));
        // An average over samples: the first run crashed in all attempts at x_0 and in no attempt at x_1.
        assert_eq!(row.first_crashed_share.rate, Some(0.5));
        assert_eq!((row.recovered_share.rate, row.ended_right_share.rate), (Some(0.5), Some(0.5)));
        assert_eq!((row.steps_to_working, row.seconds_per_sample), (Some(4.0), Some(40.0 / 3.0)));
        // Half of the attempts at x_0 pass, all attempts at x_1 pass, and all attempts at y_0 fail. All attempts at x_2
        // are lost.
        assert_eq!((row.lost, row.pass), (2, Some(0.5)));
        assert_eq!(row.pass_at_worst, Some((0.5 + 0.5 + 0.0 + 0.0) / 4.0));
        assert_eq!(row.pass_at_best, Some((0.5 + 1.0 + 1.0 + 0.0) / 4.0));
    }

    #[test]
    fn the_tables_fit_100_columns_and_name_the_causes_of_lost_attempts() {
        let text = how_console(&rows());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("model error 1, sandbox lost 1"), "{text}");
    }

    #[test]
    fn attempts_that_were_stopped_with_the_run_are_not_lost() {
        let ended = |number: u32, end: End| Outcome { end, ..attempt("x_0", number, false) };
        let records = [attempt("x_0", 0, true), ended(1, End::Cancelled), ended(2, End::ModelError)];
        let rows = how(&records, Intervals::default(), |_| Ok(None)).unwrap();
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.attempts, row.lost, row.stopped), (1, 1, 1));
        assert_eq!(row.lost_ends, [(End::ModelError, 1)].into());
        assert_eq!((row.pass_at_worst, row.pass_at_best), (Some(0.5), Some(1.0)));
        let text = how_console(&rows);
        assert!(text.contains("stopped: ") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(!how_console(&how(&records[..1], Intervals::default(), |_| Ok(None)).unwrap()).contains("stopped: "));
    }

    #[test]
    fn attempts_without_a_trajectory_still_have_a_row() {
        let rows = how(&[attempt("x_0", 0, false)], Intervals::default(), |_| Ok(None)).unwrap();
        assert_eq!((rows[0].trajectories, rows[0].first_crashed_share), (0, AttemptShare::default()));
        assert!(how_console(&rows).contains('-'));
        assert_eq!(how(&[], Intervals::default(), |_| Ok(None)).unwrap(), []);
    }
}
