//! `continue_wait`: waits for running code.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::agent::tools::{Session, ToolFailure, ToolOutput, TypedTool};
use crate::agent::{Context, python};

/// Waits for running code.
pub struct Wait;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Seconds after which the call returns.
    #[serde(default)]
    timeout_seconds: Option<f64>,
}

#[async_trait]
impl TypedTool for Wait {
    const NAME: &'static str = "continue_wait";
    const DESCRIPTION: &'static str = "Wait for the code that is still running, until this call's time limit is up.";
    const WAITS: bool = true;
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { timeout_seconds }: Arguments,
        context: &mut Context<'_>,
        _session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let before = super::be_patient(timeout_seconds, context)?;
        let shown = python::wait(context).await;
        context.session.patience = before;
        Ok(ToolOutput::Observation(shown?))
    }
}
