//! `command_line`: runs a shell command.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Session, ToolFailure, ToolOutput, TypedTool};

/// Runs a shell command.
pub struct CommandLine;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The command, for a POSIX shell.
    command: String,
    /// Seconds after which it is stopped.
    #[serde(default)]
    timeout_seconds: Option<f64>,
}

#[async_trait]
impl TypedTool for CommandLine {
    const NAME: &'static str = "command_line";
    const DESCRIPTION: &'static str = "Run a command with sh in the current directory. Shows its exit code, stdout and stderr. A `cd` lasts for \
         this command only; processes started with & go on in the background.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { command, timeout_seconds }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::Observation(session.exec(context, &["sh", "-c", &command], timeout_seconds).await?.show()))
    }
}
