//! `edit`: replaces exact lines, which must occur exactly once in the file. The error messages follow SUPER.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::agent::tools::{READ_LIMIT, Session, ToolFailure, ToolOutput, TypedTool, read_text};
use crate::agent::{Context, python};
use crate::sandbox::Fault;

/// Number of lines shown before and after the change.
const AROUND: usize = 2;

/// Replaces lines.
pub struct SuperEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file's path.
    path: String,
    /// The lines to replace, whole and exactly as they stand in the file; they must stand there once. Empty for a new file.
    old_lines: String,
    /// The new lines, with their indentation.
    new_lines: String,
}

#[async_trait]
impl TypedTool for SuperEdit {
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Replace exact lines of a file by others. Paths begin at the repository's root.";
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path, old_lines, new_lines }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        python::stop(context).await?;
        let file = session.path(context, &path).await?;
        if old_lines.trim().is_empty() {
            return match context.read(&file, READ_LIMIT).await {
                Ok(bytes) if !bytes.is_empty() => Err(ToolFailure::Refused(format!(
                    "`{path}` is not empty, so `old_lines` must hold the lines to replace; nothing was changed"
                ))),
                Err(lost @ Fault::Lost(_)) => Err(lost.into()),
                Ok(_) | Err(Fault::Refused(_)) => {
                    context.write(&file, with_end(&new_lines).as_bytes()).await?;
                    Ok(ToolOutput::Observation(format!(
                        "`{path}` was written with {} lines",
                        new_lines.lines().count()
                    )))
                }
            };
        }
        let before = read_text(context, &file, &path, READ_LIMIT).await?;
        let (after, changed) = replaced(&before, &old_lines, &new_lines).map_err(ToolFailure::Refused)?;
        context.write(&file, after.as_bytes()).await?;
        Ok(ToolOutput::Observation(format!("`{path}` was changed; it now reads there:\n{changed}")))
    }
}

/// Returns the changed file and the excerpt to show; an error says why nothing was changed.
fn replaced(before: &str, old: &str, new: &str) -> Result<(String, String), String> {
    let lines: Vec<&str> = before.lines().collect();
    let mut wanted: Vec<&str> = old.lines().collect();
    // Ignore empty lines at the beginning and end of the text.
    while wanted.first().is_some_and(|line| line.is_empty()) {
        wanted.remove(0);
    }
    while wanted.last().is_some_and(|line| line.is_empty()) {
        wanted.pop();
    }
    let places = |same: &dyn Fn(&str, &str) -> bool| -> Vec<usize> {
        let fits = |window: &[&str]| window.iter().zip(&wanted).all(|(line, wanted)| same(line, wanted));
        lines.windows(wanted.len()).enumerate().filter(|(_, window)| fits(window)).map(|(index, _)| index).collect()
    };
    match places(&|line, wanted| line == wanted).as_slice() {
        [] => Err(match places(&|line, wanted| bare(line) == bare(wanted)).first() {
            Some(&place) => format!(
                "the lines are not there exactly, but these differ from them in white space only; nothing was changed. \
                 Give `old_lines` just as they are:\n{}",
                lines[place..place + wanted.len()].join("\n")
            ),
            None => {
                "the lines to replace are not in the file; nothing was changed. Look at it again: `old_lines` must \
                     be whole lines, with their indentation"
                    .to_owned()
            }
        }),
        [place] => {
            let ending = if before.contains("\r\n") { "\r\n" } else { "\n" };
            let new: Vec<&str> = new.lines().collect();
            let all = [&lines[..*place], &new, &lines[place + wanted.len()..]].concat();
            let mut after = all.join(ending);
            if !all.is_empty() && (before.ends_with('\n') || place + wanted.len() == lines.len()) {
                after.push_str(ending);
            }
            Ok((after, around(&all, *place, new.len())))
        }
        [first, second, ..] => Err(format!(
            "the lines are there more than once; nothing was changed. Add lines before or after them to `old_lines`, so \
             that they are there once. The first two places:\n{}\n...\n{}",
            around(&lines, *first, wanted.len()),
            around(&lines, *second, wanted.len())
        )),
    }
}

/// Returns an excerpt of a file around some lines, with line numbers.
fn around(lines: &[&str], place: usize, count: usize) -> String {
    let first = place.saturating_sub(AROUND);
    let shown = lines.iter().enumerate().take(place + count + AROUND).skip(first);
    shown.map(|(index, line)| format!("{:>5}  {line}", index + 1)).collect::<Vec<_>>().join("\n")
}

/// Returns a line without its white space.
fn bare(line: &str) -> String {
    line.split_whitespace().collect()
}

fn with_end(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "a = 1\nb = 2\nif b:\n    c = 3\nb = 2\nd = 4\n";

    #[test]
    fn lines_that_occur_once_are_replaced_and_shown_with_their_surroundings() {
        let (after, shown) = replaced(FILE, "if b:\n    c = 3\n", "if a:\n    c = 5\n    e = 6").unwrap();
        assert_eq!(after, "a = 1\nb = 2\nif a:\n    c = 5\n    e = 6\nb = 2\nd = 4\n");
        insta::assert_snapshot!(shown, @r"
            1  a = 1
            2  b = 2
            3  if a:
            4      c = 5
            5      e = 6
            6  b = 2
            7  d = 4
        ");
        assert_eq!(replaced("a\r\nb\r\n", "b", "c\nd").unwrap().0, "a\r\nc\r\nd\r\n");
        assert_eq!(replaced("a\nb", "a", "").unwrap().0, "b");
        assert_eq!(replaced("a", "a", "").unwrap().0, "");
    }

    #[test]
    fn ambiguous_matches_are_shown_with_two_lines_of_context() {
        let error = replaced(FILE, "b = 2", "b = 3").unwrap_err();
        insta::assert_snapshot!(error, @r"
        the lines are there more than once; nothing was changed. Add lines before or after them to `old_lines`, so that they are there once. The first two places:
            1  a = 1
            2  b = 2
            3  if b:
            4      c = 3
        ...
            3  if b:
            4      c = 3
            5  b = 2
            6  d = 4
        ");
    }

    #[test]
    fn lines_that_differ_only_in_white_space_are_quoted_in_the_error() {
        let error = replaced(FILE, "if b:\n  c=3", "x").unwrap_err();
        assert!(error.contains("in white space only") && error.ends_with(":\nif b:\n    c = 3"), "{error}");
        assert!(replaced(FILE, "z = 1", "x").unwrap_err().starts_with("the lines to replace are not in the file"));
        assert!(replaced("", "z = 1", "x").is_err());
    }
}
