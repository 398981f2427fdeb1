//! `interrupt`: interrupts running code.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::agent::tools::{Session, ToolFailure, ToolOutput, TypedTool};
use crate::agent::{Context, python};

/// Interrupts running code.
pub struct Interrupt;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {}

#[async_trait]
impl TypedTool for Interrupt {
    const NAME: &'static str = "interrupt";
    const DESCRIPTION: &'static str =
        "Interrupt the code that is still running, as Ctrl-C does. Variables are kept where it stops.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments {}: Arguments,
        context: &mut Context<'_>,
        _session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::Observation(python::interrupt(context).await?))
    }
}
