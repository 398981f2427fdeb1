//! `inspect_file_lines`: shows numbered lines of a file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, READ_LIMIT, Session, ToolFailure, ToolOutput, TypedTool, show};

/// Shows lines of a file with their numbers.
pub(super) struct InspectFileLines;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file's path.
    path: String,
    /// First line to show, counted from 1; 1 when left out.
    start_line: Option<usize>,
    /// Last line to show, itself included; the file's last when left out.
    end_line: Option<usize>,
}

#[async_trait]
impl TypedTool for InspectFileLines {
    const NAME: &'static str = "inspect_file_lines";
    const DESCRIPTION: &'static str = "Show lines of a file with their numbers, from start_line to end_line, both included, and say how many lines \
         the file has.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path, start_line, end_line }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let path = session.path(context, &path).await?;
        let bytes = context.read(&path, READ_LIMIT).await?;
        let text = String::from_utf8_lossy(&bytes);
        show::lines(&text, start_line.unwrap_or(1), end_line.unwrap_or(usize::MAX), true)
            .map(ToolOutput::Observation)
            .map_err(ToolFailure::Refused)
    }
}
