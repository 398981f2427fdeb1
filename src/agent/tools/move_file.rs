//! `move`: moves or renames a file or folder.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Session, ToolFailure, ToolOutput, TypedTool, show};

/// Moves or renames a file or folder.
pub(super) struct Move;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Path of the file or folder to move.
    source: String,
    /// The new path, or the folder to move the file or folder into.
    destination: String,
}

#[async_trait]
impl TypedTool for Move {
    const NAME: &'static str = "move";
    const DESCRIPTION: &'static str = "Move or rename a file or folder. A file that is in the way is replaced.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { source, destination }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let from = session.path(context, &source).await?;
        let to = session.path(context, &destination).await?;
        // Run in the workspace's root, because the resolved paths are relative to it.
        let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
        let exec = Session::default().exec(context, &["mv", "-f", "--", &from, &to], None).await?.exec;
        if exec.success() {
            Ok(ToolOutput::Observation(format!("moved `{source}` to `{destination}`")))
        } else {
            Ok(ToolOutput::Observation(show::exec(&exec)))
        }
    }
}
