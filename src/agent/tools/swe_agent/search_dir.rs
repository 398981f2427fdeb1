//! `search_dir`: finds files that contain a text.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::window::LINES;
use crate::agent::Context;
use crate::agent::tools::{Session, ToolFailure, ToolOutput, TypedTool, show_exec};

/// Searches a folder.
pub struct SearchDir;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The text to look for, as it stands in the files.
    text: String,
    /// The folder; the current directory when left out.
    path: Option<String>,
}

/// Counts matching lines per file; skips binary and unreadable files.
const SCRIPT: &str = r#"cd -- "$2" && { grep -rIcFs -e "$1" . | grep -v ':0$' | sort | head -n "$3"; }"#;

#[async_trait]
impl TypedTool for SearchDir {
    const NAME: &'static str = "search_dir";
    const DESCRIPTION: &'static str =
        "Show which files of a folder, and of those below it, hold a text, and in how many lines.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { text, path }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        if text.is_empty() {
            return Err(ToolFailure::Refused("an empty text is everywhere".to_owned()));
        }
        let shown = path.as_deref().unwrap_or(".");
        let folder = session.path(context, shown).await?;
        let folder = context.sandbox.workdir().join(folder);
        let most = (LINES + 1).to_string();
        let argv = ["sh", "-c", SCRIPT, "sh", &text, &folder.to_string_lossy(), &most];
        let exec = session.exec(context, &argv, None).await?.exec;
        if !exec.success() {
            return Ok(ToolOutput::Observation(show_exec(&exec)));
        }
        let printed = String::from_utf8_lossy(&exec.stdout);
        let counts: Vec<(&str, &str)> = printed.lines().filter_map(|line| line.rsplit_once(':')).collect();
        let found: Vec<String> = counts
            .iter()
            .map(|(file, count)| format!("{} ({count})", file.strip_prefix("./").unwrap_or(file)))
            .collect();
        Ok(ToolOutput::Observation(match found.len() {
            0 => format!("no file in `{shown}` holds `{text}`"),
            count if count > LINES => {
                format!("more than {LINES} files in `{shown}` hold `{text}`: look for something longer")
            }
            count => format!("{count} file(s) in `{shown}` hold `{text}` (lines):\n{}", found.join("\n")),
        }))
    }
}
