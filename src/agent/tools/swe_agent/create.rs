//! `create`: creates a file and opens it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::window::Window;
use crate::agent::Context;
use crate::agent::tools::{READ_LIMIT, Session, ToolFailure, ToolOutput, TypedTool};
use crate::sandbox::Fault;

/// Creates a file.
pub struct Create;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The new file's path; missing folders are made.
    path: String,
}

#[async_trait]
impl TypedTool for Create {
    const NAME: &'static str = "create";
    const DESCRIPTION: &'static str =
        "Create a file with one empty line and open it, to be filled with edit. Refuses one that exists.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let target = session.path(context, &path).await?;
        match context.read(&target, READ_LIMIT).await {
            Ok(_) => return Err(ToolFailure::Refused(format!("`{path}` exists already; see it with open"))),
            Err(lost @ Fault::Lost(_)) => return Err(lost.into()),
            // Either the file does not exist yet, or the path is wrong, which the write below reports.
            Err(Fault::Refused(_)) => {}
        }
        context.write(&target, b"\n").await?;
        let window = Window { path: target, shown: path, top: 0 };
        let shown = window.show("\n");
        session.window = Some(window);
        Ok(ToolOutput::Observation(shown))
    }
}
