//! `write_file`: writes a file's whole content.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Session, ToolFailure, ToolOutput, TypedTool};

/// Creates or replaces a file.
pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file's path; missing folders are made.
    path: String,
    /// The whole new content.
    content: String,
}

#[async_trait]
impl TypedTool for WriteFile {
    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str = "Create a file, or replace all of its content.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path, content }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let target = session.path(context, &path).await?;
        context.write(&target, content.as_bytes()).await?;
        Ok(ToolOutput::Observation(format!("wrote {} bytes to `{path}`", content.len())))
    }
}
