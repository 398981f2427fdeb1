//! `change_directory`: sets the directory for commands and relative paths in this and later steps.

use std::path::Path;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Session, ToolFailure, ToolOutput, TypedTool};

/// Changes the current directory.
pub(super) struct ChangeDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The folder, relative to the current directory.
    path: String,
}

#[async_trait]
impl TypedTool for ChangeDirectory {
    const NAME: &'static str = "change_directory";
    const DESCRIPTION: &'static str = "Change the current directory for all later commands and relative paths.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let target = session.path(context, &path).await?;
        // With `./` in front, a folder named `-` is not taken for the previous directory.
        let target = Path::new(".").join(target);
        let target = target.to_string_lossy();
        // The path is relative to the workspace's root, so run there instead of in the current directory.
        let root = Session::default();
        let script = "cd -- \"$1\" && pwd -P && echo .";
        let exec = root.exec(context, &["sh", "-c", script, "sh", &target], None).await?.exec;
        if !exec.success() {
            return Err(ToolFailure::Refused(format!("cannot change to `{path}`: no such folder, or no way into it")));
        }
        let printed = String::from_utf8_lossy(&exec.stdout).into_owned();
        // The script prints a dot after the folder. So line breaks at the end of the folder's name are not taken for
        // the line break that the shell prints.
        let directory = printed.strip_suffix("\n.\n").unwrap_or(&printed);
        session.directory = directory.into();
        Ok(ToolOutput::Observation(format!("the current directory is now {directory}")))
    }
}
