//! Runs checks (experiments and the like) in a sandbox and reads their results. Used for gold, for the baseline and for
//! verification alike, so that all three measure the same thing.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent::Check;
use crate::sandbox::{Command, ExecLimits, Exit, Fault, Sandbox};
use crate::score::read_result;
use crate::suite::ResultRule;

/// Largest result file, and most output, that is read of an experiment.
const MOST_OUTPUT: usize = 4 << 20;
/// How much of a failed experiment's standard error is kept.
const STDERR_KEPT: usize = 2000;

/// The outcome of one check.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The check's id.
    pub id: String,
    /// How the command ended.
    pub exit: Exit,
    /// Wall time.
    pub wall: Duration,
    /// CPU time.
    pub cpu: Duration,
    /// The result, or why there is none.
    pub result: Result<Value, String>,
    /// The end of standard error when there is no result.
    pub stderr: String,
}

impl Measurement {
    /// As it is kept in a record: `{"result": ...}` or `{"error": "..."}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.result {
            Ok(value) => json!({ "result": value }),
            Err(reason) => json!({ "error": reason }),
        }
    }
}

/// Runs one check. An old result file is removed first, so that only this run's result can be read.
///
/// # Errors
/// [`Fault::Lost`] when the sandbox died; a check that fails is not an error.
pub async fn measure(sandbox: &mut dyn Sandbox, check: &Check) -> Result<Measurement, Fault> {
    let limits = ExecLimits {
        wall: Duration::try_from_secs_f64(check.time_limit).unwrap_or(Duration::from_hours(1)),
        grace: Duration::from_secs(2),
        output: MOST_OUTPUT,
    };
    let file = match &check.result {
        ResultRule::JsonFile(file) => Some(Path::new(file)),
        ResultRule::JsonLine(_) | ResultRule::Regex(_) => None,
    };
    if let Some(file) = file {
        let remove = Command { argv: vec!["rm".into(), "-rf".into(), "--".into(), file.into()], ..Command::default() };
        if let Err(Fault::Lost(why)) = sandbox.exec(&remove, &limits).await {
            return Err(Fault::Lost(why));
        }
    }
    let exec = match sandbox.exec(&Command::shell(&check.command), &limits).await {
        Ok(exec) => exec,
        Err(Fault::Lost(why)) => return Err(Fault::Lost(why)),
        // What the code under test did to its own sandbox, such as removing the working folder, is its own failure.
        Err(Fault::Refused(why)) => {
            let result = Err(format!("could not be run: {why}"));
            let (id, exit, wall) = (check.id.clone(), Exit::Code(126), Duration::ZERO);
            let cpu = Duration::ZERO;
            return Ok(Measurement { id, exit, wall, cpu, result, stderr: String::new() });
        }
    };
    let result = match exec.exit {
        Exit::Code(0) => {
            let written = match file {
                Some(file) => match sandbox.read(file, MOST_OUTPUT as u64).await {
                    Ok(bytes) => Some(bytes),
                    Err(Fault::Refused(_)) => None,
                    Err(lost) => return Err(lost),
                },
                None => None,
            };
            read_result(&check.result, &exec.stdout, written.as_deref())
        }
        Exit::Code(code) => Err(format!("exit code {code}")),
        Exit::Signal(signal) => Err(format!("killed by signal {signal}")),
        Exit::TimedOut => Err(format!("timed out after {:.0} s", limits.wall.as_secs_f64())),
        Exit::DiskFull => Err("wrote more than the disk limit".to_owned()),
    };
    let stderr = if result.is_err() { tail(&exec.stderr) } else { String::new() };
    Ok(Measurement { id: check.id.clone(), exit: exec.exit, wall: exec.wall, cpu: exec.cpu, result, stderr })
}

/// The last part of a text, from a character boundary on.
fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut start = text.len().saturating_sub(STDERR_KEPT);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].trim_end().to_owned()
}
