//! `find_file`: finds files by name.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::window::LINES;
use crate::agent::Context;
use crate::agent::tools::{Session, ToolFailure, ToolOutput, TypedTool, show_exec};

/// Finds files.
pub struct FindFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file's name, or a pattern with `*`.
    name: String,
    /// The folder; the current directory when left out.
    path: Option<String>,
}

const SCRIPT: &str = r#"cd -- "$2" && { find . -name "$1" ! -type d 2> /dev/null | sort | head -n "$3"; }"#;

#[async_trait]
impl TypedTool for FindFile {
    const NAME: &'static str = "find_file";
    const DESCRIPTION: &'static str = "Find files by name in a folder and those below it.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { name, path }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let shown = path.as_deref().unwrap_or(".");
        let folder = session.path(context, shown).await?;
        let folder = context.sandbox.workdir().join(folder);
        let most = (LINES + 1).to_string();
        let argv = ["sh", "-c", SCRIPT, "sh", &name, &folder.to_string_lossy(), &most];
        let exec = session.exec(context, &argv, None).await?.exec;
        if !exec.success() {
            return Ok(ToolOutput::Observation(show_exec(&exec)));
        }
        let printed = String::from_utf8_lossy(&exec.stdout);
        let found: Vec<&str> = printed.lines().map(|file| file.strip_prefix("./").unwrap_or(file)).collect();
        Ok(ToolOutput::Observation(match found.len() {
            0 => format!("no file in `{shown}` is named `{name}`"),
            count if count > LINES => format!("more than {LINES} files in `{shown}` are named `{name}`"),
            count => format!("{count} file(s) in `{shown}` are named `{name}`:\n{}", found.join("\n")),
        }))
    }
}
