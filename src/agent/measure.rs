//! The one way to run a check (an experiment and the like): its old result file goes, its command runs, and its result is
//! read by its rule. Agents do this within their budget; gold, the baseline and verification do it in a sandbox alone.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::Check;
use crate::sandbox::{Command, Exec, Exit, Fault};
use crate::score::read_result;
use crate::suite::ResultRule;

/// Bytes kept of a check's stdout and stderr each, and the most that its result file may have.
pub(crate) const MOST_OUTPUT: usize = 4 << 20;

/// A sandbox as somebody may use it.
#[async_trait]
pub(crate) trait Place: Send {
    /// Runs a command for at most so long.
    async fn exec(&mut self, command: &Command, wall: Duration) -> Result<Exec, Fault>;
    /// Reads a file of at most [`MOST_OUTPUT`] bytes.
    async fn read(&mut self, path: &Path) -> Result<Vec<u8>, Fault>;
    /// Removes a file that may not be there. A failure shows in what the check gives.
    async fn remove(&mut self, path: &Path) -> Result<(), Fault>;
}

/// What a check gave.
pub(crate) struct Measured {
    /// How its command went.
    pub exec: Exec,
    /// Its result.
    pub result: Result<Value, NoResult>,
}

/// Why a check gave no result.
pub(crate) enum NoResult {
    /// Its command did not succeed.
    Ended(Exit),
    /// Its result file cannot be read.
    File(String),
    /// What it wrote does not fit its rule.
    Misfit(String),
}

/// The command that removes a file.
pub(crate) fn removal(path: &Path) -> Command {
    Command { argv: vec!["rm".into(), "-rf".into(), "--".into(), path.into()], ..Command::default() }
}

/// How long a check may take.
pub(crate) fn wall(check: &Check) -> Duration {
    Duration::try_from_secs_f64(check.time_limit).unwrap_or(Duration::from_hours(1))
}

/// Runs one check. An old result file is removed first, so that only this run's result can be read.
///
/// # Errors
/// [`Fault::Lost`] when the sandbox died, [`Fault::Refused`] when the command could not be run at all.
pub(crate) async fn measure(place: &mut dyn Place, check: &Check) -> Result<Measured, Fault> {
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
        return Ok(Measured { exec, result: Err(NoResult::Ended(exit)) });
    }
    let written = match file {
        Some(file) => match place.read(file).await {
            Ok(bytes) => Some(bytes),
            Err(Fault::Refused(what)) => return Ok(Measured { exec, result: Err(NoResult::File(what)) }),
            Err(lost) => return Err(lost),
        },
        None => None,
    };
    let result = read_result(&check.result, &exec.stdout, written.as_deref()).map_err(NoResult::Misfit);
    Ok(Measured { exec, result })
}
