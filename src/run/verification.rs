//! Verification: runs the agent's code again, in new workspaces and new sandboxes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::attempt::{AttemptInProgress, RunContext, env_gone};
use super::check::Measurement;
use super::family::{AttemptOutput, Ready, Staged};
use super::gpus::Lease;
use super::results::CheckKey;
use super::round;
use crate::agent::{Event, Trajectory};
use crate::error::{Error, FailureKind, Result, with_causes};
use crate::sandbox::stop_signal::is_stopping;
use crate::sandbox::{EvidenceKind, Fault, Loss, Sandbox, evidence_in};
use crate::workspace::Workspace;

/// The outcome of verification.
pub(super) struct Verification {
    /// Paths of changes that were left out, see [`Ready::keeps_out`].
    pub ignored: Vec<String>,
    /// For each check, by its id: `{"result": ...}` or `{"error": "..."}`; if it ran several times, also `runs`, the list
    /// of all results.
    pub results: Map<String, Value>,
    /// Ids of the checks that were not run because the cache had their results.
    pub cached: Vec<String>,
    /// The last part of standard error, for each check without a result.
    pub stderr: BTreeMap<String, String>,
    /// Seconds that verification took.
    pub seconds: f64,
}

/// The outcome of one try of verification.
struct VerificationTry {
    ignored: Vec<String>,
    cached: Vec<String>,
    seconds: f64,
}

/// Results and standard errors of the checks that have run in one try of verification.
#[derive(Default)]
struct CheckResults {
    results: Map<String, Value>,
    stderr: BTreeMap<String, String>,
}

impl RunContext {
    /// Runs the experiments again on the agent's code, in new workspaces and new sandboxes. If the machine lost the
    /// sandbox, this function tries verification again, so that the agent's work need not be repeated. If a sandbox
    /// ends without evidence that the machine failed, every check fails that has not completed all its runs.
    ///
    /// # Errors
    /// Returns an error with [`Evidence`](crate::sandbox::Evidence) if every try was lost, one of kind `Interrupted` if
    /// the run is stopped, and errors whose kind is not `Infrastructure`, `Machine` or `Place`.
    pub(super) async fn verify(
        &self,
        under: AttemptInProgress<'_>,
        evidence: &AttemptOutput<'_>,
        trajectory: &mut Trajectory,
        cancel: &CancellationToken,
    ) -> Result<Verification> {
        let begun = Instant::now();
        let stopped = || Error::new(FailureKind::Interrupted, "the run was stopped");
        let mut last = None;
        for _ in 0..self.configuration.tries.max(1) {
            let mut found = CheckResults::default();
            let tried = tokio::select! {
                () = cancel.cancelled() => return Err(stopped()),
                tried = self.verify_once(under, evidence, trajectory, &mut found) => tried,
            };
            if let Some(evidence) = env_gone(under.ready.env()) {
                let loss = Loss::new("no result").proven(evidence);
                last = Some(Error::new(FailureKind::Infrastructure, "no result").because(loss));
                continue;
            }
            match tried {
                Ok(VerificationTry { ignored, cached, seconds }) => {
                    let CheckResults { results, stderr } = found;
                    return Ok(Verification { ignored, results, cached, stderr, seconds });
                }
                Err(error)
                    if !matches!(
                        error.kind,
                        FailureKind::Infrastructure | FailureKind::Machine | FailureKind::Place
                    ) =>
                {
                    return Err(error);
                }
                Err(error) if evidence_in(&error).is_some() => last = Some(error),
                Err(error) => match self.machine.examine().await {
                    Some(evidence) => {
                        let loss = Loss::new(with_causes(&error)).proven(evidence);
                        last = Some(Error::new(FailureKind::Infrastructure, "no result").because(loss));
                    }
                    None if is_stopping(Instant::now(), cancel).await => return Err(stopped()),
                    // The machine did not fail, so the attempt's code ended the sandbox. Every check fails that has not
                    // completed all its runs.
                    None => {
                        let why = format!("{ENDED}: {}", with_causes(&error));
                        for check in &under.staged.checks {
                            fail_unless_complete(&mut found.results, &check.id, runs(under.ready, &check.id), &why);
                        }
                        let CheckResults { results, stderr } = found;
                        let (ignored, cached, seconds) = (Vec::new(), Vec::new(), begun.elapsed().as_secs_f64());
                        return Ok(Verification { ignored, results, cached, stderr, seconds });
                    }
                },
            }
        }
        Err(last.unwrap_or_else(|| Error::internal("verification was never tried")))
    }

    async fn verify_once(
        &self,
        AttemptInProgress { ready, staged, job, gpu, without }: AttemptInProgress<'_>,
        evidence: &AttemptOutput<'_>,
        trajectory: &mut Trajectory,
        found: &mut CheckResults,
    ) -> Result<VerificationTry> {
        let begun = Instant::now();
        let mut part = ready.stage(&job.sample, job.attempt)?;
        let mut all = Vec::new();
        for check in std::mem::take(&mut part.checks) {
            let runs = runs(ready, &check.id);
            all.extend(std::iter::repeat_n(check, runs));
        }
        let mut checks = all.into_iter().peekable();
        part.files.retain(|(path, _)| !without.iter().any(|left_out| path == Path::new(left_out)));
        let together = if ready.checks_are_independent() { 1 } else { usize::MAX };
        let base = self.machine.backend.base().await.map_err(not_made)?;
        let shown = part.snapshot;
        let mut cached = Vec::new();
        let ignored = loop {
            part.checks = checks.by_ref().take(together).collect();
            // Use the repo with the hidden files only for a hidden check, so that the code that other checks run cannot
            // read these files.
            let hidden = part.checks.iter().find_map(|check| ready.hidden_snapshot(&check.id));
            part.snapshot = hidden.unwrap_or(shown);
            let is_repeated = part.checks.first().is_some_and(|check| runs(ready, &check.id) > 1);
            let key = self.key(ready, &part, evidence, base.as_deref());
            let known = part.checks.first().zip(key.as_ref());
            let known =
                known.and_then(|(check, key)| Some((&check.id, self.machine.results.get(key, check.time_limit)?)));
            if let Some((id, known)) = known {
                keep(known.measurement(id), true, is_repeated, found, trajectory);
                cached.push(id.clone());
                if checks.peek().is_none() {
                    break known.ignored;
                }
                continue;
            }
            let prepare = || {
                let workspace = self.workspace(&part, without).map_err(not_made)?;
                let ignored =
                    tokio::task::block_in_place(|| workspace.apply(evidence.changes, |path| ready.keeps_out(path)))?;
                Ok((workspace, ignored))
            };
            let (workspace, ignored, mut sandbox) = self.start(ready, gpu, prepare).await?;
            let mut measured = None;
            let mut done = |measurement: Measurement| {
                measured = Some(measurement.clone());
                keep(measurement, false, is_repeated, found, trajectory);
            };
            ready.verify(&part, evidence, sandbox.as_mut(), &mut done).await.map_err(lost)?;
            sandbox.destroy().await.map_err(lost)?;
            if let (Some(key), Some(measured)) = (&key, &measured) {
                tokio::task::block_in_place(|| self.machine.results.put(key, measured, &ignored));
            }
            workspace.discard().await;
            if checks.peek().is_none() {
                break ignored;
            }
        };
        if ready.repeats(staged, evidence, &found.results) {
            let prepare = || Ok((self.workspace(staged, without).map_err(not_made)?, ()));
            let (workspace, (), mut sandbox) = self.start(ready, gpu, prepare).await?;
            let mut done = |measurement: Measurement| keep(measurement, false, false, found, trajectory);
            let repeated = ready.repeat(staged, evidence, sandbox.as_mut(), &mut done).await;
            repeated.map_err(lost)?;
            sandbox.destroy().await.map_err(lost)?;
            workspace.discard().await;
        }
        Ok(VerificationTry { ignored, cached, seconds: begun.elapsed().as_secs_f64() })
    }

    /// Starts a sandbox on a new workspace, in up to `1 + STARTS` tries. A failure with an outside cause, such as a
    /// kill, usually affects a single try. If files of the attempt prevent the sandbox from starting, all tries fail.
    /// Each try has its own workspace: a sandbox's first process moves the workspace's disk into its own mount
    /// namespace, and when that process ends, the disk is gone.
    async fn start<T>(
        &self,
        ready: &dyn Ready,
        gpu: Option<&Lease>,
        prepare: impl Fn() -> Result<(Workspace, T)> + Sync,
    ) -> Result<(Workspace, T, Box<dyn Sandbox>)> {
        let mut tries = 0;
        loop {
            let (workspace, prepared) = prepare()?;
            match self.machine.backend.start(&self.machine.spec(ready.env(), &workspace, gpu)).await {
                Ok(sandbox) => return Ok((workspace, prepared, sandbox)),
                Err(error) if error.kind == FailureKind::Infrastructure && tries < STARTS => tries += 1,
                Err(error) => return Err(error),
            }
            workspace.discard().await;
        }
    }

    /// Returns the key under which the result of `part` is cached; `None` unless `part` contains a single check whose
    /// result may be cached.
    fn key(
        &self,
        ready: &dyn Ready,
        part: &Staged<'_>,
        evidence: &AttemptOutput<'_>,
        base: Option<&str>,
    ) -> Option<String> {
        let [check] = part.checks.as_slice() else { return None };
        if !ready.checks_are_independent() || !ready.is_exact(&check.id) {
            return None;
        }
        let changes: Vec<_> =
            evidence.changes.files.iter().map(|change| (change, ready.keeps_out(&change.path))).collect();
        self.machine.results.key(&CheckKey {
            repo: part.snapshot.content(),
            env: ready.env(),
            base,
            sandbox: self.machine.backend.name(),
            limits: &self.machine.limits,
            check,
            files: &part.files,
            changes: &changes,
        })
    }
}

/// Maximum number of further tries to start a sandbox, if the first one fails.
const STARTS: usize = 2;

/// Stores the outcome of a check. A check that runs several times has one entry with all its results.
fn keep(
    measurement: Measurement,
    cached: bool,
    is_repeated: bool,
    found: &mut CheckResults,
    trajectory: &mut Trajectory,
) {
    let outcome = measurement.to_json();
    match found.results.get_mut(&measurement.id).filter(|_| is_repeated) {
        Some(earlier) => add_run(earlier, outcome),
        None => drop(found.results.insert(measurement.id.clone(), outcome)),
    }
    if !measurement.stderr.is_empty() {
        found.stderr.insert(measurement.id.clone(), measurement.stderr.clone());
    }
    trajectory.push(&Event::Verification {
        experiment: measurement.id,
        exit: measurement.exit,
        seconds: round(measurement.wall.as_secs_f64()),
        result: measurement.result.ok(),
        stderr: measurement.stderr,
        cached,
    });
}

/// Number of times that verification runs a check.
fn runs(ready: &dyn Ready, check: &str) -> usize {
    if ready.checks_are_independent() { ready.runs(check).max(1) } else { 1 }
}

/// Adds another run's outcome to a check's entry. A run without a result fails the check.
fn add_run(earlier: &mut Value, outcome: Value) {
    let (Some(first), Some(result)) = (earlier.get("result").cloned(), outcome.get("result").cloned()) else {
        if earlier.get("error").is_none() {
            *earlier = outcome;
        }
        return;
    };
    match earlier.get_mut("runs").and_then(Value::as_array_mut) {
        Some(runs) => runs.push(result),
        None => earlier["runs"] = json!([first, result]),
    }
}

/// Gives a check the error `why`, unless it has an error already, or the results of all its `runs`.
fn fail_unless_complete(results: &mut Map<String, Value>, check: &str, runs: usize, why: &str) {
    let entry = results.entry(check.to_owned()).or_insert(Value::Null);
    let made = match entry.get("runs").and_then(Value::as_array) {
        Some(made) => made.len(),
        None => usize::from(entry.get("result").is_some()),
    };
    if made < runs && entry.get("error").is_none() {
        *entry = json!({ "error": why });
    }
}

/// Beginning of the error message of a check whose sandbox ended although nothing shows that the machine failed. So the
/// check's own code must have ended the sandbox.
const ENDED: &str = "it ended its sandbox";

fn lost(fault: Fault) -> Error {
    Error::new(FailureKind::Infrastructure, "no result").because(fault)
}

/// Converts a failure to create the workspace to an error that counts as a loss to infrastructure and contains the
/// evidence. The attempt cannot have caused the failure.
fn not_made(error: Error) -> Error {
    if !matches!(error.kind, FailureKind::Infrastructure | FailureKind::Machine | FailureKind::Place) {
        return error;
    }
    let what = with_causes(&error);
    let loss = Loss::new("no workspace").proven(EvidenceKind::NotStarted.because(what));
    Error::new(FailureKind::Infrastructure, "no result").because(loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_of_which_a_run_is_missing_fails_although_earlier_runs_have_results() {
        let entry = |results: Value| {
            let mut found = Map::from_iter([("a".to_owned(), results)]);
            fail_unless_complete(&mut found, "a", 3, "it ended its sandbox");
            found.swap_remove("a").unwrap()
        };
        let error = json!({ "error": "it ended its sandbox" });
        assert_eq!(entry(json!({ "result": 1 })), error);
        assert_eq!(entry(json!({ "result": 1, "runs": [1, 2] })), error);
        assert_eq!(entry(json!({ "error": "exit code 1" })), json!({ "error": "exit code 1" }));
        let whole = json!({ "result": 1, "runs": [1, 2, 3] });
        assert_eq!(entry(whole.clone()), whole);
        let mut none = Map::new();
        fail_unless_complete(&mut none, "a", 1, "it ended its sandbox");
        assert_eq!(none["a"], error);
    }
}
