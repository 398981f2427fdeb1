//! Watches a run's job: reports its progress, and resubmits tasks that were preempted, timed out, or lost with their
//! node.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{JobArray, Submission, Tasks};
use crate::error::{Error, FailureKind, Result};
use crate::run::reading::read_outcomes;
use crate::run::shared::last_chooser;
use crate::run::{Outcome, RunFile, Store, counting};
use crate::verifier::stored::written;

/// Interval between polls.
const EVERY: Duration = Duration::from_secs(5);

/// Watching fails after this number of resubmissions in a row during which no attempt was finished and no verifier
/// chose anything. It also fails after this number of failed requests in a row to Slurm to submit or remove tasks.
const MOST_IN_VAIN: u32 = 10;

/// Progress of a run and its job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobProgress {
    /// Number of planned attempts.
    pub planned: usize,
    /// Number of attempts that have ended and need not be made again.
    pub finished: usize,
    /// Number of attempts that were lost to infrastructure and have not been made again yet.
    pub lost: usize,
    /// Number of tasks in Slurm's queue by state.
    pub tasks: BTreeMap<String, usize>,
}

/// How watching a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEnd {
    /// No task is left, and no task needs to be submitted again.
    Ended,
    /// The user stopped watching; the tasks continue.
    Left,
}

/// An event for the watcher.
#[derive(Debug)]
pub enum WatchEvent<'a> {
    /// The progress has changed.
    Progress(&'a JobProgress),
    /// Tasks were resubmitted.
    Submitted(&'a Submission),
    /// Slurm does not answer, or has not done what it was asked; the next poll will ask again.
    Unanswered(&'a Error),
}

/// Watches a job to its end, and resubmits tasks that end before their shard is complete.
///
/// # Errors
/// Fails if the run cannot be read, or if tasks repeatedly end without finishing an attempt.
pub async fn watch(
    array: &JobArray,
    tell: &mut dyn FnMut(WatchEvent<'_>),
    cancel: &CancellationToken,
) -> Result<WatchEnd> {
    let (mut last, mut in_vain, mut done_then) = (JobProgress::default(), 0, None);
    let mut missing_before: Vec<u32> = Vec::new();
    let mut failures = 0;
    loop {
        match tokio::task::block_in_place(|| array.queue().tasks()) {
            Err(error) => tell(WatchEvent::Unanswered(&error)),
            Ok(tasks) => {
                let run = tokio::task::block_in_place(|| look(array))?;
                let seen = run.job_progress(&tasks);
                if seen != last {
                    tell(WatchEvent::Progress(&seen));
                }
                let mut missing =
                    if run.is_done() || array.is_cancelled() { Vec::new() } else { run.missing(array, &tasks) };
                if run.is_done() && tasks.values().all(|state| state == "PENDING") && !tasks.is_empty() {
                    // All remaining tasks are waiting. Remove them from the queue, because they would find nothing left
                    // to do.
                    tolerated(tokio::task::block_in_place(|| array.queue().cancel()), &mut failures, tell)?;
                }
                if tasks.is_empty() && missing.is_empty() {
                    return Ok(WatchEnd::Ended);
                }
                // A task that was just submitted or is being requeued may be absent for a moment, so it must be missing
                // in two polls.
                let twice: Vec<u32> = missing.iter().copied().filter(|task| missing_before.contains(task)).collect();
                if !twice.is_empty() {
                    let done = (seen.finished, run.chosen);
                    let vain = if done_then == Some(done) { in_vain + 1 } else { 0 };
                    if vain >= MOST_IN_VAIN {
                        return Err(Error::machine("tasks keep ending without finishing an attempt or a choice")
                            .hint(format!("see their output in `{}`", array.run.join("slurm").display())));
                    }
                    let submitted = tokio::task::block_in_place(|| array.submit(&twice));
                    // Tasks that could not be submitted stay missing, so the next poll submits them.
                    if let Some(submission) = tolerated(submitted, &mut failures, tell)? {
                        (in_vain, done_then) = (vain, Some(done));
                        tell(WatchEvent::Submitted(&submission));
                        missing.retain(|task| !twice.contains(task));
                    }
                }
                missing_before = missing;
                last = seen;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = cancel.cancelled() => return Ok(WatchEnd::Left),
        }
    }
}

/// Returns the result of a request to Slurm; `None`, after telling the watcher, if Slurm has failed. The caller repeats
/// the request at the next poll. `failures` counts the failures in a row.
///
/// # Errors
/// Returns the error if it is not Slurm's, or if Slurm has failed [`MOST_IN_VAIN`] times in a row.
fn tolerated<T>(done: Result<T>, failures: &mut u32, tell: &mut dyn FnMut(WatchEvent<'_>)) -> Result<Option<T>> {
    match done {
        Ok(done) => {
            *failures = 0;
            Ok(Some(done))
        }
        Err(error) if error.kind == FailureKind::Machine && *failures + 1 < MOST_IN_VAIN => {
            *failures += 1;
            tell(WatchEvent::Unanswered(&error));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A run's state according to its store.
struct RunProgress {
    run: Option<RunFile>,
    records: Vec<Outcome>,
    names: Vec<String>,
    /// Name of the process that last began to run the verifiers.
    chooser: Option<String>,
    /// Bytes that the verifiers have written.
    chosen: u64,
}

fn look(array: &JobArray) -> Result<RunProgress> {
    let reading = read_outcomes(&array.run)?;
    let chooser = last_chooser(&array.run).map_err(|error| Error::io("read", &array.run, error))?;
    let store = Store::at(&array.run);
    let (names, chosen) = (store.shard_names()?, written(&store));
    Ok(RunProgress { run: reading.run, records: reading.records, names, chooser, chosen })
}

impl RunProgress {
    fn job_progress(&self, tasks: &Tasks) -> JobProgress {
        let flags = counting(&self.records);
        let counted = || self.records.iter().zip(&flags).filter(|(_, counts)| **counts).map(|(record, _)| record);
        let mut states = BTreeMap::new();
        for state in tasks.values() {
            *states.entry(state.to_lowercase()).or_default() += 1;
        }
        JobProgress {
            planned: self.run.iter().flat_map(|run| &run.planned).map(|it| it.attempts).sum(),
            finished: counted().filter(|record| !record.is_infrastructure()).count(),
            // An attempt that the user stopped is not lost: it is made again like one that had not begun.
            lost: counted().filter(|record| record.is_infrastructure() && !record.is_stopped()).count(),
            tasks: states,
        }
    }

    /// Whether all attempts are finished, and the verifiers, if there are any, have chosen among them.
    fn is_done(&self) -> bool {
        let seen = self.job_progress(&Tasks::new());
        let has_verifiers = self.run.as_ref().is_some_and(|run| !run.configuration.verifiers.is_empty());
        let has_chosen = || self.chooser.as_deref().is_some_and(|name| self.has_ended(name));
        seen.finished == seen.planned && (!has_verifiers || has_chosen())
    }

    /// Whether the process `name` has ended its work. A process that was interrupted, for example by the signal that
    /// Slurm sends before the time limit, has not.
    fn has_ended(&self, name: &str) -> bool {
        let session =
            self.run.as_ref().and_then(|run| run.sessions.iter().find(|it| it.shard.as_deref() == Some(name)));
        session.and_then(|session| session.ended.as_deref()).is_some_and(|ended| ended != "interrupted")
    }

    /// Returns the tasks that are absent from the queue although their shard is not complete.
    fn missing(&self, array: &JobArray, tasks: &Tasks) -> Vec<u32> {
        let width = array.job.shards.to_string().len();
        let has_ended = |task: u32| {
            let shard = format!("{task:0width$}");
            let starts = self.names.iter().filter_map(|name| Some((start_of(name, &shard)?, name)));
            starts.max().is_some_and(|(_, name)| self.has_ended(name))
        };
        (1..=array.job.shards).filter(|task| !tasks.contains_key(task) && !has_ended(*task)).collect()
    }
}

/// Parses the name of one of the processes of a run: returns 1 for `03`, the first start of shard `03`, and 2 for
/// `03-2`, its second start. Returns `None` for names of other shards.
fn start_of(name: &str, shard: &str) -> Option<u32> {
    match name.strip_prefix(shard)? {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;

    #[test]
    fn attempts_that_the_user_stopped_are_not_lost() {
        let ended =
            |end: End, attempt: u32| Outcome { end, ..Outcome::blank("a", &crate::sample::masked("x_0"), attempt) };
        let records = vec![ended(End::Answered, 0), ended(End::Cancelled, 1), ended(End::SandboxLost, 2)];
        let progress =
            RunProgress { run: None, records, names: Vec::new(), chooser: None, chosen: 0 }.job_progress(&Tasks::new());
        assert_eq!((progress.finished, progress.lost), (1, 1));
    }

    #[test]
    fn slurm_may_fail_for_a_while_but_not_forever() {
        let (mut failures, mut told) = (0, 0);
        let mut request = |done: Result<()>| {
            let mut tell = |event: WatchEvent<'_>| told += u32::from(matches!(event, WatchEvent::Unanswered(_)));
            tolerated(done, &mut failures, &mut tell)
        };
        let failed = || Err(Error::machine("`sbatch` failed: Socket timed out on send/recv operation"));
        for _ in 0..3 {
            for _ in 1..MOST_IN_VAIN {
                assert_eq!(request(failed()).unwrap(), None);
            }
            assert_eq!(request(Ok(())).unwrap(), Some(()));
        }
        assert!(request(Err(Error::store("the disk is full"))).is_err());
        for _ in 1..MOST_IN_VAIN {
            assert!(request(failed()).unwrap().is_none());
        }
        assert!(request(failed()).is_err());
        assert_eq!(told, 4 * (MOST_IN_VAIN - 1));
    }

    #[test]
    fn how_often_a_shard_was_started_is_read_from_its_process_name() {
        assert_eq!((start_of("03", "03"), start_of("03-12", "03")), (Some(1), Some(12)));
        assert_eq!((start_of("031", "03"), start_of("13", "03")), (None, None));
    }
}
