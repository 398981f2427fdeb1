//! `list_files`: lists a folder.

use std::fmt::Write as _;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Session, ToolFailure, ToolOutput, TypedTool};
use crate::sandbox::{EntryKind, Fault};

/// Maximum entries shown; a folder such as /usr/bin would fill a small model's whole context.
const SHOWN: usize = 200;

/// Lists a folder.
pub(super) struct ListFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The folder; the current directory when left out.
    path: Option<String>,
}

#[async_trait]
impl TypedTool for ListFiles {
    const NAME: &'static str = "list_files";
    const DESCRIPTION: &'static str = "List a folder: folders end in /, links in @, files show their size in bytes.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let folder = session.path(context, path.as_deref().unwrap_or(".")).await?;
        let entries = context.list(&folder).await.map_err(|fault| match fault {
            Fault::Refused(what) if what.contains("Not a directory") => {
                ToolFailure::Refused(format!("{what}; it may be a file, which `read_file` shows"))
            }
            other => other.into(),
        })?;
        if entries.is_empty() {
            return Ok(ToolOutput::Observation("the folder is empty".to_owned()));
        }
        let mut text = String::new();
        for entry in entries.iter().take(SHOWN) {
            // Names may contain line breaks and control characters, so escape them.
            let name = entry.name.to_string_lossy().escape_debug().to_string();
            let _ = match entry.kind {
                EntryKind::Folder => writeln!(text, "{name}/"),
                EntryKind::Link => writeln!(text, "{name}@"),
                EntryKind::File => writeln!(text, "{name}  {}", entry.size),
                EntryKind::Other => writeln!(text, "{name}  (no regular file)"),
            };
        }
        if entries.len() > SHOWN {
            let _ = writeln!(text, "[... {} more entries not shown ...]", entries.len() - SHOWN);
        }
        Ok(ToolOutput::Observation(text))
    }
}
