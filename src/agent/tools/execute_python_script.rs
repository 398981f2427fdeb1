//! `execute_python_script`: runs a Python script of the workspace.

use async_trait::async_trait;

use super::execute_bash_script::Arguments;
use super::{Context, Session, ToolFailure, ToolOutput, TypedTool};

/// Runs a Python script.
pub(super) struct ExecutePythonScript;

#[async_trait]
impl TypedTool for ExecutePythonScript {
    const NAME: &'static str = "execute_python_script";
    const DESCRIPTION: &'static str = "Run a Python script with the paper's environment in the current directory. Shows its exit code, stdout and stderr.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path, arguments, timeout_seconds }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let ran = session.script("python", &path, &arguments, timeout_seconds, context).await?;
        Ok(ToolOutput::Observation(ran.show()))
    }
}
