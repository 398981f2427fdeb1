//! `scroll`: shows the next or previous lines of the open file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::window::{self, LINES, OVERLAP};
use crate::agent::Context;
use crate::agent::tools::{AnyTool, Session, ToolFailure, ToolOutput, TypedTool, signature_of};

/// Moves the window up or down.
pub struct Scroll;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// `up` or `down`.
    direction: String,
}

#[async_trait]
impl TypedTool for Scroll {
    const NAME: &'static str = "scroll";
    const DESCRIPTION: &'static str = "Show the next (`down`) or the previous (`up`) lines of the open file.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { direction }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let window = window::open(session)?;
        let text = window.text(context).await?;
        let last = text.lines().count().saturating_sub(LINES);
        window.top = match direction.trim() {
            "up" => window.top.saturating_sub(LINES - OVERLAP),
            "down" => (window.top + LINES - OVERLAP).min(last),
            _ => {
                let what = format!(
                    "`direction` must be `up` or `down`; the arguments are {}",
                    signature_of(&self.parameters())
                );
                return Err(ToolFailure::Arguments(what));
            }
        };
        Ok(ToolOutput::Observation(window.show(&text)))
    }
}
