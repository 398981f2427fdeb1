//! `python:FILE.py:NAME`: an agent written by the user as a Python function. Each attempt runs the function on this
//! machine, in a separate process that asks the harness for everything it does: commands and files in the attempt's
//! sandbox, calls of the run's model. So the harness limits, charges and records these agents like all others.
//!
//! The Python side is `python/autoexperiment/_agents.py`. The two sides exchange lines of JSON ([`wire`]).

mod child;
mod serve;
mod spec;
mod wire;

use std::process::Command;

use async_trait::async_trait;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::agent::{Agent, AttemptEnd, Context, Task};
use crate::env::secret_variables;
use crate::error::{Error, Result};
use crate::files::hex;

pub use spec::FunctionSpec;

/// The Python program that loads and runs the function.
const DRIVER: &str = include_str!("../../../../python/autoexperiment/_agents.py");

/// An agent written as a Python function.
pub struct FunctionAgent {
    label: String,
    spec: FunctionSpec,
    about: About,
    digest: String,
}

/// Properties of the function, as reported by the Python program.
#[derive(Debug, Deserialize)]
struct About {
    /// Whether the function takes a model.
    model: bool,
    /// Version of the Python that runs the function.
    python: String,
}

/// The Python program's reply to `describe`.
#[derive(Deserialize)]
#[serde(untagged)]
enum DescribeReply {
    About(About),
    Wrong { error: String },
}

impl FunctionAgent {
    /// Opens the function, and loads its file once to check it.
    ///
    /// # Errors
    /// Kind `Usage` if the file cannot be loaded or has no such function; `Machine` if Python cannot be started.
    pub fn open(label: String, spec: &FunctionSpec) -> Result<Self> {
        let path = &spec.file;
        let text = std::fs::read(path).map_err(|error| {
            Error::usage(format!("failed to read the agent's file `{}`", path.display()))
                .hint("an agent in Python is named `python:FILE.py` or `python:FILE.py:NAME`")
                .because(error)
        })?;
        let mut command = command("describe", spec);
        let output = command.output().map_err(|error| no_python(&command, error))?;
        let about = match serde_json::from_slice(&output.stdout) {
            Ok(DescribeReply::About(about)) => about,
            described => {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                let what = match described {
                    Ok(DescribeReply::Wrong { error }) => error,
                    _ => said.lines().last().unwrap_or("Python ended without printing a reason").to_owned(),
                };
                return Err(Error::usage(format!("the agent `{spec}` cannot be loaded: {what}"))
                    .at(path, None)
                    .hint("`AUTOEXPERIMENT_PYTHON` says which Python runs agents, by default `python3`"));
            }
        };
        let digest = Sha256::new().chain_update(DRIVER).chain_update(&about.python).chain_update(&text).finalize();
        Ok(Self { label, spec: spec.clone(), about, digest: hex(&digest) })
    }
}

/// Builds the command line of the Python program.
fn command(verb: &str, spec: &FunctionSpec) -> Command {
    let python = std::env::var_os("AUTOEXPERIMENT_PYTHON").filter(|python| !python.is_empty());
    let mut command = Command::new(python.unwrap_or_else(|| "python3".into()));
    command.args(["-c", DRIVER, verb]).arg(&spec.file).arg(spec.name.as_deref().unwrap_or_default());
    command.env("AUTOEXPERIMENT_AGENT", "1").stdin(std::process::Stdio::null());
    // Remove API keys from the environment, because calls of models other than the run's would be neither charged nor
    // recorded.
    for name in secret_variables() {
        command.env_remove(name);
    }
    command
}

fn no_python(command: &Command, error: std::io::Error) -> Error {
    let python = command.get_program().to_string_lossy().into_owned();
    Error::machine(format!("failed to start `{python}`, which runs agents in Python"))
        .hint("set `AUTOEXPERIMENT_PYTHON` to a Python of version 3.10 or newer")
        .because(error)
}

#[async_trait]
impl Agent for FunctionAgent {
    fn name(&self) -> &str {
        &self.label
    }

    fn needs_model(&self) -> bool {
        self.about.model
    }

    fn digest(&self) -> Option<String> {
        Some(self.digest.clone())
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        serve::run(command("attempt", &self.spec), &self.label, task, context).await
    }
}
