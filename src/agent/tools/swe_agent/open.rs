//! `open`: opens a file and shows a window of its lines.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::window::Window;
use crate::agent::Context;
use crate::agent::tools::{Session, ToolFailure, ToolOutput, TypedTool};

/// Opens a file.
pub struct OpenFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file's path.
    path: String,
    /// The line to show, counted from 1; the file's beginning when left out.
    line: Option<usize>,
}

#[async_trait]
impl TypedTool for OpenFile {
    const NAME: &'static str = "open";
    const DESCRIPTION: &'static str =
        "Open a file and show 100 lines of it with their numbers, those around `line` when it is given.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path, line }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let mut window = Window { path: session.path(context, &path).await?, shown: path, top: 0 };
        let text = window.text(context).await?;
        if let Some(line) = line {
            window.center(line.saturating_sub(1), text.lines().count());
        }
        let shown = window.show(&text);
        session.window = Some(window);
        Ok(ToolOutput::Observation(shown))
    }
}
