//! The progress of a run, read from its store alone: `autoexperiment status` shows it from another terminal.

use std::fmt::Write as _;

use itertools::Itertools as _;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::clean::{middle_cut, short};
use super::end_name;
use crate::agent::End;
use crate::model::ledger::PaidTotals;
use crate::run::{Outcome, RunFile, counting};

/// Number of recently ended attempts that are listed.
const LAST: usize = 5;
/// Length in seconds of the window over which the rate is measured.
const WINDOW: f64 = 600.0;

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Status {
    /// The run's name.
    pub run: String,
    /// Whether a process is writing to the run; for shared runs, on any machine.
    pub being_written: bool,
    /// Attempts planned; `None` if unknown.
    pub planned: Option<usize>,
    /// Attempts with a verdict.
    pub finished: usize,
    /// Finished attempts that pass.
    pub passed: usize,
    /// Finished attempts that fail.
    pub failed: usize,
    /// Attempts lost to infrastructure and not made again yet.
    pub lost: usize,
    /// Attempts in progress; 0 if no process is writing.
    pub running: usize,
    /// Dollars spent on all model calls that have ended, including those of lost attempts and verifiers.
    pub cost: f64,
    /// Maximum cost in dollars of model calls that are in progress or that a kill of the run's process interrupted. This
    /// sum counts towards `max_cost`, too.
    pub reserved: f64,
    /// Part of `cost` that is in the records of attempts and verifiers. This part is smaller than `cost` while attempts
    /// run and, after a kill of the run's process, until the run is resumed.
    pub recorded: f64,
    /// Cost limit of the run in dollars.
    pub max_cost: Option<f64>,
    /// Number of attempts that ended per minute, over the last ten minutes or, in a younger session, since the session
    /// began.
    pub per_minute: Option<f64>,
    /// Seconds until the run is finished, at the rate of `per_minute`.
    pub seconds_left: Option<f64>,
    /// The attempts that ended last, newest first.
    pub last: Vec<LastEnded>,
}

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LastEnded {
    /// Time at which the attempt ended.
    pub at: Timestamp,
    /// The agent's label.
    pub agent: String,
    /// The sample's id.
    pub sample: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// `pass`, `fail`, `lost` or `stopped`.
    pub outcome: &'static str,
    /// Why the attempt stopped.
    pub end: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// Cost in dollars.
    pub cost: f64,
}

/// Returns the outcome of an attempt as one word, `pass`, `fail`, `lost` or `stopped`, from its end and whether it
/// passed.
#[must_use]
pub const fn outcome(end: End, pass: bool) -> &'static str {
    match (end.is_infrastructure(), pass) {
        (true, _) if matches!(end, End::Cancelled) => "stopped",
        (true, _) => "lost",
        (_, true) => "pass",
        _ => "fail",
    }
}

/// Returns the time at which an attempt ended.
fn ended(record: &Outcome) -> Timestamp {
    let seconds = jiff::SignedDuration::try_from_secs_f64(record.wall_seconds).unwrap_or_default();
    record.started.checked_add(seconds).unwrap_or(record.started)
}

impl Status {
    /// Computes the status at time `now`. `begun` is the number of attempts that have no record yet or were started
    /// again after their last record; they count as running only while a process writes to the run.
    #[must_use]
    pub fn compute(
        name: String,
        run: Option<&RunFile>,
        records: &[Outcome],
        begun: usize,
        being_written: bool,
        now: Timestamp,
    ) -> Self {
        let flags = counting(records);
        let counted: Vec<&Outcome> =
            records.iter().zip(flags).filter(|(_, counts)| *counts).map(|(record, _)| record).collect();
        let count = |wanted: &str| counted.iter().filter(|record| outcome(record.end, record.pass) == wanted).count();
        let (passed, failed, lost) = (count("pass"), count("fail"), count("lost"));
        let finished = passed + failed;
        let planned = run
            .filter(|run| !run.planned.is_empty())
            .map(|run| run.planned.iter().map(|it| it.attempts).sum::<usize>());
        // Measure the rate since the session began, but at most over the last `WINDOW` seconds.
        let session = run.and_then(|run| run.sessions.last()).map(|session| session.started);
        let since = session.map_or(WINDOW, |at| now.duration_since(at).as_secs_f64().clamp(1.0, WINDOW));
        let age = |record: &Outcome| now.duration_since(ended(record)).as_secs_f64();
        let late = counted.iter().filter(|record| (0.0..=since).contains(&age(record))).count();
        let per_second = (being_written && late > 0).then(|| late as f64 / since);
        let left = planned.map(|planned| planned.saturating_sub(finished + lost));
        Self {
            run: name,
            being_written,
            planned,
            finished,
            passed,
            failed,
            lost,
            running: if being_written { begun } else { 0 },
            // Fold from 0.0, because an empty `sum()` is -0.0.
            cost: records.iter().fold(0.0, |sum, record| sum + record.cost),
            reserved: 0.0,
            recorded: records.iter().fold(0.0, |sum, record| sum + record.cost),
            max_cost: run.and_then(|run| run.configuration.max_cost),
            per_minute: per_second.map(|rate| 60.0 * rate),
            seconds_left: per_second.zip(left).map(|(rate, left)| left as f64 / rate),
            last: counted
                .iter()
                .k_largest_by_key(LAST, |record| ended(record))
                .map(|record| LastEnded {
                    at: ended(record),
                    agent: record.agent.to_string(),
                    sample: record.sample.to_string(),
                    attempt: record.attempt,
                    outcome: outcome(record.end, record.pass),
                    end: end_name(record.end),
                    seconds: record.wall_seconds,
                    cost: record.cost,
                })
                .collect(),
        }
    }

    /// Adds `beside_attempts`, the costs of verifiers and of probing models, to the recorded cost. Sets the total cost
    /// and the reserved dollars to those of the ledger. Without a ledger, the total cost is the recorded cost.
    #[must_use]
    pub fn with_costs(self, beside_attempts: f64, ledger: Option<PaidTotals>) -> Self {
        let recorded = self.recorded + beside_attempts;
        let (cost, reserved) = ledger.map_or((recorded, 0.0), |paid| (paid.settled, paid.open));
        Self { cost, reserved, recorded, ..self }
    }

    /// Describes, in one sentence, how the ledger and the records disagree; `None` if they agree, or while a process is
    /// writing to the run.
    fn disagreement(&self) -> Option<String> {
        let unrecorded = self.cost - self.recorded;
        if self.being_written || unrecorded.abs() < 1e-6 {
            return None;
        }
        Some(format!(
            "the ledger shows a cost of ${:.4}, the records ${:.4}: {}",
            self.cost,
            self.recorded,
            if unrecorded > 0.0 {
                "a process was killed in between; `autoexperiment resume` records the rest"
            } else {
                "lines of the ledger are missing"
            }
        ))
    }

    /// Formats the status as a few lines.
    #[must_use]
    pub fn text(&self) -> String {
        let of = self.planned.map(|planned| format!(" of {planned}")).unwrap_or_default();
        let state = if self.being_written {
            "running"
        } else if self.planned.is_some_and(|planned| planned == self.finished) {
            "complete"
        } else {
            "not running"
        };
        let mut text = format!("{}: {state}, {}{of} attempts finished\n", short(&self.run, 60), self.finished);
        let limit = self.max_cost.map(|most| format!(" of ${most:.2}")).unwrap_or_default();
        let _ = write!(
            text,
            "{} running, {} passed, {} failed, {} lost to infrastructure, ${:.2}{limit}",
            self.running, self.passed, self.failed, self.lost, self.cost
        );
        if self.reserved > 0.0 {
            let why = if self.being_written { "under way or of unknown cost" } else { "of unknown cost" };
            let _ = write!(text, " and at most ${:.2} for calls {why}", self.reserved);
        }
        if let Some(rate) = self.per_minute {
            let _ = write!(text, ", {rate:.1}/min");
        }
        if let Some(left) = self.seconds_left {
            let _ = write!(text, ", {} left", duration(left));
        }
        text.push('\n');
        if let Some(disagreement) = self.disagreement() {
            text += &(disagreement + "\n");
        }
        for last in &self.last {
            let (agent, sample) = (middle_cut(&last.agent, 24), short(&last.sample, 40));
            let _ = writeln!(
                text,
                "  {}  {sample}.{} {agent}: {}, {}, {}, ${:.2}",
                last.at.strftime("%H:%M:%S"),
                last.attempt,
                last.outcome,
                last.end.replace('_', " "),
                duration(last.seconds),
                last.cost
            );
        }
        text
    }
}

/// Formats a duration, as `43 s`, `12 min` or `3.5 h`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    match seconds {
        ..99.5 => format!("{seconds:.0} s"),
        99.5..5970.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::masked;

    #[test]
    fn a_status_counts_each_attempt_once_and_takes_its_rate_from_the_last_minutes() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let sample = masked("x_0");
        let record = |attempt: u32, minutes_ago: i64, end: End, pass: bool| Outcome {
            started: now.checked_sub(jiff::SignedDuration::from_mins(minutes_ago)).unwrap(),
            wall_seconds: 60.0,
            end,
            pass,
            cost: 0.5,
            ..Outcome::blank("react", &sample, attempt)
        };
        let records = [
            record(0, 60, End::Answered, true),
            record(1, 9, End::ModelError, false),
            record(1, 6, End::StepLimit, false),
            record(2, 4, End::SandboxLost, false),
        ];
        let status = Status::compute("r".into(), None, &records, 2, true, now);
        assert_eq!((status.finished, status.passed, status.failed, status.lost), (2, 1, 1, 1));
        assert_eq!((status.running, status.cost, status.per_minute), (2, 2.0, Some(0.2)));
        assert_eq!(status.last.iter().map(|last| last.attempt).collect::<Vec<_>>(), [2, 1, 0]);
        insta::assert_snapshot!(status.text(), @r"
        r: running, 2 attempts finished
        2 running, 1 passed, 1 failed, 1 lost to infrastructure, $2.00, 0.2/min
          11:57:00  x_0.2 react: lost, sandbox lost, 60 s, $0.50
          11:55:00  x_0.1 react: fail, step limit, 60 s, $0.50
          11:01:00  x_0.0 react: pass, answered, 60 s, $0.50
        ");
        let stopped = Status::compute("r".into(), None, &records, 2, false, now);
        assert_eq!((stopped.running, stopped.per_minute), (0, None));
        assert!(Status::compute("r".into(), None, &[], 0, false, now).text().starts_with("r: not running, 0 attempts"));
    }
}
