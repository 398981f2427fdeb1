//! `search_file`: finds lines of a file that contain a text.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::window::{self, LINES};
use crate::agent::Context;
use crate::agent::tools::{READ_LIMIT, Session, ToolFailure, ToolOutput, TypedTool, cut_middle, read_text};

/// Maximum characters shown of a line.
const SHOWN: usize = 300;

/// Searches a file.
pub struct SearchFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The text to look for, as it stands in the file.
    text: String,
    /// The file's path; the open file when left out.
    path: Option<String>,
}

#[async_trait]
impl TypedTool for SearchFile {
    const NAME: &'static str = "search_file";
    const DESCRIPTION: &'static str = "Show the lines of a file that hold a text, with their numbers.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { text: wanted, path }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let (text, shown) = if let Some(path) = path {
            let file = session.path(context, &path).await?;
            (read_text(context, &file, &path, READ_LIMIT).await?, path)
        } else {
            let window = window::open(session)?;
            (window.text(context).await?, window.shown.clone())
        };
        let found: Vec<String> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains(&wanted))
            .map(|(index, line)| format!("{}:{}", index + 1, cut_middle(line, SHOWN)))
            .collect();
        Ok(ToolOutput::Observation(match found.len() {
            0 => format!("no line of `{shown}` holds `{wanted}`"),
            count if count > LINES => {
                format!("{count} lines of `{shown}` hold `{wanted}`: too many to show, look for something longer")
            }
            count => format!("{count} line(s) of `{shown}` hold `{wanted}`:\n{}", found.join("\n")),
        }))
    }
}
