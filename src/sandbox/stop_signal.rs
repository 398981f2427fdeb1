//! Stop signals that reach the processes of a sandbox before they reach this process.
//!
//! A batch system, a service manager or a machine that shuts down sends a signal to each process of a job, in any
//! order. An experiment may therefore be killed some time before this process knows that the run is being stopped, and
//! its missing result would count as a failure of the tested solution. So after an experiment was ended by a signal,
//! this module waits a moment; the end counts only if the run is not being stopped by then.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{Command, Exec, ExecLimits, Fault, Sandbox};

/// Longest time that is assumed to pass until the stop signal for a job has reached all its processes.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// Runs a command whose result will be stored. If a signal ends the command, waits a moment before returning. If the
/// whole job is being stopped, this process also gets a stop signal in that moment and cancels the caller's work, so
/// that nothing is stored.
///
/// # Errors
/// Same as [`Sandbox::exec`].
pub async fn exec(sandbox: &mut dyn Sandbox, command: &Command, limits: &ExecLimits) -> Result<Exec, Fault> {
    let exec = sandbox.exec(command, limits).await?;
    if exec.exit.is_by_signal() {
        tokio::time::sleep(LONGEST_DELAY).await;
    }
    Ok(exec)
}

/// Returns whether the run is being stopped. A process of a sandbox ended at the time `since`, perhaps by a signal that
/// stops the whole job. This process would get that signal at most [`LONGEST_DELAY`] later, so the function waits until
/// then.
pub(crate) async fn is_stopping(since: Instant, cancel: &CancellationToken) -> bool {
    let left = LONGEST_DELAY.saturating_sub(since.elapsed());
    cancel.is_cancelled() || tokio::time::timeout(left, cancel.cancelled()).await.is_ok()
}
