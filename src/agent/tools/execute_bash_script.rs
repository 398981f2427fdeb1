//! `execute_bash_script`: runs a shell script of the workspace.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Session, ToolFailure, ToolOutput, TypedTool};

/// Runs a shell script.
pub(super) struct ExecuteBashScript;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "models are shown these names")]
pub(crate) struct Arguments {
    /// The script's path.
    pub(super) path: String,
    /// Arguments of the script.
    #[serde(default)]
    pub(super) arguments: Vec<String>,
    /// Seconds after which the script is stopped.
    #[serde(default)]
    pub(super) timeout_seconds: Option<f64>,
}

#[async_trait]
impl TypedTool for ExecuteBashScript {
    const NAME: &'static str = "execute_bash_script";
    const DESCRIPTION: &'static str =
        "Run a shell script with bash in the current directory. Shows its exit code, stdout and stderr.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path, arguments, timeout_seconds }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let ran = session.script("bash", &path, &arguments, timeout_seconds, context).await?;
        Ok(ToolOutput::Observation(ran.show()))
    }
}
