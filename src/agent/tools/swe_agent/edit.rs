//! `edit`: replaces lines of the open file; refuses changes that break a Python file's syntax.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::window::{self, LINES};
use super::{Window, syntax};
use crate::agent::Context;
use crate::agent::tools::{Session, ToolFailure, ToolOutput, TypedTool};

/// Replaces lines.
pub struct SweEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// First line to replace, counted from 1.
    start_line: usize,
    /// Last line to replace, itself included; one less than `start_line` replaces nothing and inserts before it.
    end_line: usize,
    /// The new lines, with their indentation; empty to delete.
    replacement: String,
}

#[async_trait]
impl TypedTool for SweEdit {
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Replace the lines start_line to end_line of the open file, both included. A change after which a Python file \
         can no longer be parsed is refused. Shows the file around the change; lines below it have new numbers then.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { start_line, end_line, replacement }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let window = window::open(session)?;
        let before = window.text(context).await?;
        let lines: Vec<&str> = before.split_inclusive('\n').collect();
        // `start_line` may be one past the last line, to append.
        if start_line == 0 || start_line > lines.len() + 1 || end_line > lines.len() || end_line + 1 < start_line {
            return Err(ToolFailure::Refused(format!(
                "the file has {} lines, so lines {start_line} to {end_line} cannot be replaced; nothing was changed",
                lines.len()
            )));
        }
        let ending = if before.contains("\r\n") { "\r\n" } else { "\n" };
        let mut new = String::new();
        for line in replacement.lines() {
            new.push_str(line);
            new.push_str(ending);
        }
        let mut after = lines[..start_line - 1].concat();
        if !after.is_empty() && !after.ends_with('\n') && !new.is_empty() {
            after.push_str(ending);
        }
        after.push_str(&new);
        after.push_str(&lines[end_line..].concat());
        let end = start_line - 1 + replacement.lines().count();
        if let Some(line) = syntax::broken(&window.shown, &before, &after) {
            return Err(ToolFailure::Refused(refusal(window, line, start_line, end_line, end, &before, &after)));
        }
        context.write(&window.path, after.as_bytes()).await?;
        let total = after.lines().count();
        // Move the shown part of the file only if it does not contain the whole change.
        if start_line - 1 < window.top || end > window.top + LINES {
            window.center(start_line - 1, total);
        }
        let shown = window.show(&after);
        Ok(ToolOutput::Observation(format!("the file was changed; check the lines and their indentation:\n{shown}")))
    }
}

/// Shows the lines that the refused change would have produced, and the current lines.
fn refusal(
    window: &Window,
    line: usize,
    start_line: usize,
    end_line: usize,
    end: usize,
    before: &str,
    after: &str,
) -> String {
    let around = |text: &str, last: usize| {
        let first = start_line.saturating_sub(4);
        let shown = text.lines().enumerate().skip(first).take((last + 3).saturating_sub(first).min(LINES));
        shown.map(|(index, line)| format!("{}:{line}", index + 1)).collect::<Vec<_>>().join("\n")
    };
    format!(
        "nothing was changed, because `{}` would have a syntax error in line {line}. It would have become:\n{}\n\nIt \
         is still:\n{}\n\nCorrect the replacement or its line numbers; do not send the same edit again.",
        window.shown,
        around(after, end),
        around(before, end_line)
    )
}
