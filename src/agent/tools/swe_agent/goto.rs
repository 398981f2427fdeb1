//! `goto`: shows a line of the open file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::window;
use crate::agent::Context;
use crate::agent::tools::{Session, ToolFailure, ToolOutput, TypedTool};

/// Moves the window to a line.
pub struct Goto;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The line, counted from 1.
    line: usize,
}

#[async_trait]
impl TypedTool for Goto {
    const NAME: &'static str = "goto";
    const DESCRIPTION: &'static str = "Show the lines of the open file around this one.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { line }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let window = window::open(session)?;
        let text = window.text(context).await?;
        let total = text.lines().count();
        if line == 0 || line > total {
            return Err(ToolFailure::Refused(format!("the file has lines 1 to {total}, so there is no line {line}")));
        }
        window.center(line - 1, total);
        Ok(ToolOutput::Observation(window.show(&text)))
    }
}
