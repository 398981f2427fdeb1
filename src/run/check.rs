//! Runs checks, such as experiments, in a sandbox and reads their results. Gold, the baseline and verification all use
//! this module, so that all three measure the same thing.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::agent::measure::{CheckRunner, MOST_OUTPUT, NoResult, removal, wall};
use crate::agent::{self, Check};
use crate::sandbox::stop_signal;
use crate::sandbox::{Command, Exec, ExecLimits, Exit, Fault, Sandbox, patience};
use crate::score::read_result;

/// Time limit for removing an old result file.
const REMOVAL: Duration = Duration::from_mins(1);
/// Number of bytes of standard error that are kept if a check fails.
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
    /// Part of the wall time spent waiting for a processor used by other processes.
    pub starved: Duration,
    /// The result, or the reason why it is missing.
    pub result: Result<Value, String>,
    /// The last part of standard error if there is no result; otherwise empty.
    pub stderr: String,
}

impl Measurement {
    /// Builds the outcome of a command that was run.
    pub fn from_exec(id: &str, exec: &Exec, result: Result<Value, String>) -> Self {
        let stderr = if result.is_err() { tail(&exec.stderr) } else { String::new() };
        let (id, starved) = (id.to_owned(), exec.starved);
        Self { id, exit: exec.exit, wall: exec.wall, cpu: exec.cpu, starved, result, stderr }
    }

    /// Builds the outcome of a check whose command was not run.
    pub fn not_run(id: &str, exit: Exit, why: String) -> Self {
        let none = Duration::ZERO;
        Self { id: id.to_owned(), exit, wall: none, cpu: none, starved: none, result: Err(why), stderr: String::new() }
    }

    /// Converts the outcome to its form in a record: `{"result": ...}` or `{"error": "..."}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.result {
            Ok(value) => json!({ "result": value }),
            Err(reason) => json!({ "error": reason }),
        }
    }
}

/// A sandbox used only for checks, without a budget.
struct UnbudgetedSandbox<'a>(&'a mut dyn Sandbox);

#[async_trait]
impl CheckRunner for UnbudgetedSandbox<'_> {
    async fn exec(&mut self, command: &Command, wall: Duration) -> Result<Exec, Fault> {
        let limits = ExecLimits { wall, patience: patience(wall), grace: Duration::from_secs(2), output: MOST_OUTPUT };
        stop_signal::exec(self.0, command, &limits).await
    }

    async fn read(&mut self, path: &Path) -> Result<Vec<u8>, Fault> {
        self.0.read(path, MOST_OUTPUT as u64).await
    }

    async fn remove(&mut self, path: &Path) -> Result<(), Fault> {
        self.exec(&removal(path), REMOVAL).await.map(drop)
    }
}

/// Runs one check.
///
/// # Errors
/// [`Fault::Lost`] if the sandbox died; a check that fails is not an error.
pub async fn measure(sandbox: &mut dyn Sandbox, check: &Check) -> Result<Measurement, Fault> {
    measure_with_output(sandbox, check).await.map(|(measurement, _)| measurement)
}

/// Runs one check and also returns the command's complete output, stdout before stderr.
///
/// # Errors
/// Same as [`measure`].
pub async fn measure_with_output(sandbox: &mut dyn Sandbox, check: &Check) -> Result<(Measurement, String), Fault> {
    let measured = match agent::measure::measure(&mut UnbudgetedSandbox(sandbox), check).await {
        Ok(measured) => measured,
        Err(Fault::Lost(why)) => return Err(Fault::Lost(why)),
        // Code under test that breaks its own sandbox, for instance by removing the working folder, has failed.
        Err(Fault::Refused(why)) => {
            let why = format!("could not be run: {why}");
            return Ok((Measurement::not_run(&check.id, Exit::Code(126), why), String::new()));
        }
    };
    let exec = measured.exec;
    let result = measured.result.map_err(|why| match why {
        NoResult::Ended(Exit::Code(code)) => format!("exit code {code}"),
        NoResult::Ended(Exit::Signal(signal)) => format!("killed by signal {signal}"),
        NoResult::Ended(Exit::TimedOut) => format!("timed out after {:.0} s", wall(check).as_secs_f64()),
        NoResult::Ended(Exit::DiskFull) => "wrote more than the disk limit".to_owned(),
        NoResult::File(what) => read_result(&check.result, &exec.stdout, None).err().unwrap_or(what),
        NoResult::Misfit(what) => what,
    });
    let output = [String::from_utf8_lossy(&exec.stdout), String::from_utf8_lossy(&exec.stderr)].concat();
    Ok((Measurement::from_exec(&check.id, &exec, result), output))
}

/// Returns the part of stderr that is kept: about the last [`STDERR_KEPT`] bytes, beginning at a character boundary.
pub fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut start = text.len().saturating_sub(STDERR_KEPT);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].trim_end().to_owned()
}
