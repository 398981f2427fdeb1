//! `understand_file`: the model answers a question about a file. Long files are read in parts.

use std::fmt::Write as _;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, READ_LIMIT, Session, ToolFailure, ToolOutput, TypedTool, ask, read_text};
use crate::agent::prompts;
use crate::model::{Message, Role};

/// Maximum characters of a file that are shown to the model with one question.
const WINDOW: usize = 24_000;

/// Maximum number of parts of a file; files with more parts are refused. This bounds the time of one tool call even if
/// the model costs nothing.
const WINDOWS: usize = 20;

/// Answers a question about a file.
pub(super) struct UnderstandFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file's path.
    path: String,
    /// What to find out.
    question: String,
}

#[async_trait]
impl TypedTool for UnderstandFile {
    const NAME: &'static str = "understand_file";
    const DESCRIPTION: &'static str =
        "Have a language model read a file, a long one in parts, and answer a question about it. Costs money.";
    const ASKS_MODEL: bool = true;
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path, question }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let file = session.path(context, &path).await?;
        let text = read_text(context, &file, &path, READ_LIMIT).await?;
        let windows = windows(&text);
        if windows.len() > WINDOWS {
            return Err(ToolFailure::Refused(format!(
                "`{path}` is too long to be read as a whole; search it with a command, or see parts of it with \
                 inspect_file_lines"
            )));
        }
        let mut answers = Vec::with_capacity(windows.len());
        for (first, window) in &windows {
            let last = first + window.lines().count().saturating_sub(1);
            let prompt = prompts::understand_file(&path, &question, window, *first, last);
            answers.push((*first, last, ask(Self::NAME, vec![Message::new(Role::User, prompt)], context).await?.text));
        }
        if let [(_, _, answer)] = answers.as_mut_slice() {
            return Ok(ToolOutput::Observation(std::mem::take(answer)));
        }
        let mut notes = String::new();
        for (first, last, answer) in &answers {
            let _ = writeln!(notes, "Lines {first} to {last}:\n{answer}\n");
        }
        let prompt = prompts::understand_notes(&path, &question, &notes);
        let reply = ask(Self::NAME, vec![Message::new(Role::User, prompt)], context).await?;
        Ok(ToolOutput::Observation(reply.text))
    }
}

/// Splits the text into parts of whole lines, each with the number of its first line, from 1. Every line is in exactly
/// one part. A line longer than a part is a part by itself.
fn windows(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut first) = (0, 1);
    let (mut at, mut length) = (0, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let line_length = line.chars().count();
        if length > 0 && length + line_length > WINDOW {
            parts.push((first, &text[start..at]));
            (start, first, length) = (at, index + 1, 0);
        }
        at += line.len();
        length += line_length;
    }
    parts.push((first, &text[start..]));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_in_exactly_one_part_of_a_long_file() {
        let text = (0..9000).map(|number| format!("line {number}\n")).collect::<Vec<_>>().concat();
        let parts = windows(&text);
        assert!(parts.len() > 3);
        assert_eq!(parts.iter().map(|(_, part)| *part).collect::<String>(), text);
        for (first, part) in parts {
            assert!(part.starts_with(&format!("line {}\n", first - 1)), "{first}");
            assert!(part.chars().count() <= WINDOW);
        }
        assert_eq!(windows(""), [(1, "")]);
        assert_eq!(windows(&"x".repeat(WINDOW * 2)).len(), 1);
    }
}
