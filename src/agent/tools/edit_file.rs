//! `edit_file`: has the model rewrite a file according to an instruction.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use similar::TextDiff;

use super::swe_agent::syntax;
use super::{Context, Session, ToolFailure, ToolOutput, TypedTool, ask, cut_middle, read_text};
use crate::agent::prompts;
use crate::model::{Message, Role};

/// Maximum bytes of a file; models cannot write longer files in one reply.
const LIMIT: u64 = 256 << 10;

/// Shortest code fence.
const FENCE: &str = "```";

/// Maximum characters that an error message quotes from a reply that is not the rewritten file, such as a refusal.
const SHOWN: usize = 300;

/// Has the model rewrite a file according to an instruction.
pub(super) struct EditFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file's path.
    path: String,
    /// What to change, as precisely as to a colleague who sees nothing but the file.
    instruction: String,
    /// Where to write the result; the same file when left out.
    save_as: Option<String>,
}

#[async_trait]
impl TypedTool for EditFile {
    const NAME: &'static str = "edit_file";
    const DESCRIPTION: &'static str = "Have a language model rewrite a file by an instruction. Shows what was changed. Costs money; for small \
         files write_file is surer.";
    const ASKS_MODEL: bool = true;
    type Arguments = Arguments;

    async fn run(
        &self,
        Arguments { path, instruction, save_as }: Arguments,
        context: &mut Context<'_>,
        session: &mut Session,
    ) -> Result<ToolOutput, ToolFailure> {
        let source = session.path(context, &path).await?;
        let target = match &save_as {
            Some(save_as) => session.path(context, save_as).await?,
            None => source.clone(),
        };
        let before = read_text(context, &source, &path, LIMIT).await?;
        let prompt = prompts::edit_file(&path, &before, &instruction);
        let reply = ask(Self::NAME, vec![Message::new(Role::User, prompt)], context).await?;
        if context.cut_note(&reply).is_some() {
            let what = "the model's reply was cut off at a length limit; nothing was written. Change the file with \
                        `write_file` or a command instead";
            return Err(ToolFailure::Refused(what.to_owned()));
        }
        let Some(mut after) = rewritten(&reply.text) else {
            return Err(ToolFailure::Refused("the model gave no new content; nothing was written".to_owned()));
        };
        let shown = save_as.as_deref().unwrap_or(&path);
        // A reply without a fence counts as the file. If it breaks the syntax of a Python file, it is probably a
        // refusal or a question instead.
        if !reply.text.lines().any(|line| line.starts_with(FENCE)) && syntax::broken(shown, &before, &after).is_some() {
            let said = cut_middle(reply.text.trim(), SHOWN);
            return Err(ToolFailure::Refused(format!(
                "the model's reply is not Python code; nothing was written. The model replied: {said}"
            )));
        }
        if !after.ends_with('\n') {
            after.push('\n');
        }
        context.write(&target, after.as_bytes()).await?;
        if before == after {
            return Ok(ToolOutput::Observation(format!("`{shown}` was written without any change")));
        }
        let diff = TextDiff::from_lines(&before, &after);
        let diff = diff.unified_diff().context_radius(3).header(&path, shown).to_string();
        Ok(ToolOutput::Observation(format!("`{shown}` was written with these changes:\n{diff}")))
    }
}

/// Returns the new content: the largest code fence of the reply, or the whole reply if it has no fence. A fence ends at
/// a line that consists of at least as many backticks as opened the fence.
fn rewritten(reply: &str) -> Option<String> {
    let mut best: Option<String> = None;
    let mut open: Option<(usize, String)> = None;
    for line in reply.split_inclusive('\n') {
        let ticks = line.chars().take_while(|character| *character == '`').count();
        match &mut open {
            None if ticks >= FENCE.len() => open = Some((ticks, String::new())),
            None => {}
            Some((opened, content)) if ticks >= *opened && line.trim_end().len() == ticks => {
                if best.as_ref().is_none_or(|best| best.len() < content.len()) {
                    best = Some(std::mem::take(content));
                }
                open = None;
            }
            Some((_, content)) => content.push_str(line),
        }
    }
    // An unclosed fence means that the reply was cut off; half a file must not replace a whole one.
    let fenced = best.or_else(|| if open.is_none() { Some(reply.to_owned()) } else { None });
    fenced.filter(|content| !content.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_content_is_the_largest_fence_or_the_whole_reply() {
        let two = "First:\n```sh\nls\n```\nthen\n```python\nx = 1\ny = 2\n```\ndone";
        assert_eq!(rewritten(two).as_deref(), Some("x = 1\ny = 2\n"));
        assert_eq!(rewritten("x = 1\n").as_deref(), Some("x = 1\n"));
        assert_eq!(rewritten("````md\n```\ninner\n```\n````").as_deref(), Some("```\ninner\n```\n"));
    }

    #[test]
    fn a_reply_that_was_cut_off_or_is_empty_changes_nothing() {
        assert_eq!(rewritten("```python\nx = 1\n"), None);
        assert_eq!(rewritten(" \n"), None);
        assert_eq!(rewritten("```\n\n```"), None);
    }
}
