//! `read_file`: shows a whole file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, READ_LIMIT, Session, ToolFailure, ToolOutput, TypedTool, show};
use crate::sandbox::Fault;

/// Shows a whole file.
pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file's path.
    path: String,
}

#[async_trait]
impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str =
        "Show a file from its beginning, as much of it as fits. See the rest of a long one with inspect_file_lines.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let path = session.path(context, &path).await?;
        let bytes = context.read(&path, READ_LIMIT).await.map_err(|fault| match fault {
            Fault::Refused(what) if what.contains("not a regular file") => {
                ToolFailure::Refused(format!("{what}; it may be a folder, which `list_files` shows"))
            }
            other => other.into(),
        })?;
        let text = String::from_utf8_lossy(&bytes);
        show::lines(&text, 1, usize::MAX, false).map(ToolOutput::Observation).map_err(ToolFailure::Refused)
    }
}
