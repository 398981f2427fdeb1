//! `execute`: runs Python code in a persistent session.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::agent::tools::{Session, ToolFailure, ToolOutput, TypedTool};
use crate::agent::{Context, python};

/// Runs Python code.
pub struct Execute;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The code, one or more lines.
    code: String,
    /// Seconds after which the call returns.
    #[serde(default)]
    timeout_seconds: Option<f64>,
}

#[async_trait]
impl TypedTool for Execute {
    const NAME: &'static str = "execute";
    const DESCRIPTION: &'static str = "Run Python code in a session that keeps its variables from call to call, as a notebook does: the value of a last expression is shown, `!command` runs a shell command, `%cd folder` changes the folder, `%%bash`, `%%writefile FILE`, `%pip`, `%env` and `%ls` work. A call returns when its time limit is up and the code runs on; then `continue_wait` or `interrupt`: anything else interrupts the code.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { code, timeout_seconds }: Arguments,
        context: &mut Context<'_>,
        _session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let before = super::be_patient(timeout_seconds, context)?;
        let shown = python::execute(&code, context).await;
        context.session.patience = before;
        Ok(ToolOutput::Observation(shown?))
    }
}
