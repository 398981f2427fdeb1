//! Runs a check (an experiment or similar): removes the old result file, runs the command, and reads the result by its
//! rule. Every part of this program that runs checks uses this implementation. Agents run checks within their budget;
//! gold runs, the baseline and verification run them directly in a sandbox.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::Check;
use crate::sandbox::{Command, Exec, Exit, Fault};
use crate::score::read_result;
use crate::suite::ResultRule;

/// Maximum bytes kept of a check's stdout and of its stderr, and maximum size of its result file.
pub(crate) const MOST_OUTPUT: usize = 4 << 20;

/// Access to a sandbox for running a check.
#[async_trait]
pub(crate) trait CheckRunner: Send {
    /// Runs a command for at most `wall`.
    async fn exec(&mut self, command: &Command, wall: Duration) -> Result<Exec, Fault>;
    /// Reads a file of at most [`MOST_OUTPUT`] bytes.
    async fn read(&mut self, path: &Path) -> Result<Vec<u8>, Fault>;
    /// Removes a file if it exists. If the file cannot be removed, [`measure`] runs the check anyway; only a lost
    /// sandbox ends the check.
    async fn remove(&mut self, path: &Path) -> Result<(), Fault>;
}

/// Outcome of a check.
pub(crate) struct CheckOutcome {
    /// How the check's command ended.
    pub exec: Exec,
    /// The value that was read as the check's result, or the reason if no value was read.
    pub result: Result<Value, NoResult>,
}

/// Why a check has no result.
pub(crate) enum NoResult {
    /// The command did not succeed.
    Ended(Exit),
    /// The result file cannot be read.
    File(String),
    /// The output does not match the rule for reading the result.
    Misfit(String),
}

/// Builds the command that removes a file.
pub(crate) fn removal(path: &Path) -> Command {
    Command { argv: vec!["rm".into(), "-rf".into(), "--".into(), path.into()], ..Command::default() }
}

/// Time limit of a check.
pub(crate) fn wall(check: &Check) -> Duration {
    Duration::try_from_secs_f64(check.time_limit).unwrap_or(Duration::from_hours(1))
}

/// Runs one check. Removes an old result file first, so that only this run's result can be read.
///
/// # Errors
/// [`Fault::Lost`] if the sandbox died, [`Fault::Refused`] if the command could not be run at all.
pub(crate) async fn measure(place: &mut dyn CheckRunner, check: &Check) -> Result<CheckOutcome, Fault> {
    let file = match &check.result {
        ResultRule::JsonFile(file) => Some(Path::new(file)),
        ResultRule::JsonLine(_) | ResultRule::Regex(_) => None,
    };
    if let Some(file) = file
        && let Err(Fault::Lost(loss)) = place.remove(file).await
    {
        return Err(Fault::Lost(loss));
    }
    let exec = place.exec(&Command::shell(&check.command), wall(check)).await?;
    if !exec.success() {
        let exit = exec.exit;
        return Ok(CheckOutcome { exec, result: Err(NoResult::Ended(exit)) });
    }
    let written = match file {
        Some(file) => match place.read(file).await {
            Ok(bytes) => Some(bytes),
            Err(Fault::Refused(what)) => return Ok(CheckOutcome { exec, result: Err(NoResult::File(what)) }),
            Err(lost) => return Err(lost),
        },
        None => None,
    };
    let result = read_result(&check.result, &exec.stdout, written.as_deref()).map_err(NoResult::Misfit);
    Ok(CheckOutcome { exec, result })
}
