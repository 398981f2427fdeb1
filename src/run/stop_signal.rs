//! Stop signals that reach the processes of a sandbox before they reach this process.
//!
//! A batch system, a service manager or a machine that shuts down sends a signal to each process of a job, in any
//! order. An experiment may therefore end without a result some time before this process knows that the run is being
//! stopped, and the solution that it tests would fail for it. So an end by a signal counts only if the run goes on.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::sandbox::{Command, Exec, ExecLimits, Fault, Sandbox};

/// Longest time that may pass between the signals to two processes of a job.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// Runs a command whose result is stored. If a signal ends it, returns later than a stop signal reaches this process,
/// which then drops the caller's work before anything is stored.
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

/// Waits until the processes of a job that is being stopped since `since` have all got their signals. Returns whether
/// the run is being stopped.
pub(super) async fn is_stopping(since: Instant, cancel: &CancellationToken) -> bool {
    let left = LONGEST_DELAY.saturating_sub(since.elapsed());
    cancel.is_cancelled() || tokio::time::timeout(left, cancel.cancelled()).await.is_ok()
}
