//! `fixed:preset=researchcodebench`: asks for missing parts as ResearchCodeBench does, with prompts of the same
//! structure in our own words. For each missing part the model gets one message with the whole paper, the files that
//! the part's description names, and the part's own file with a TODO comment in place of the part. The last block of
//! Python in the reply replaces the comment. If a reply cannot be used, the model is not asked again.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{FixedAttempt, order};
use crate::agent::TaskFunction;
use crate::agent::prompts::fixed::{STAND_IN, one_prompt};
use crate::agent::retrieval::{Code, CodeChoice, PaperChoice, RetrievalQuery};
use crate::agent::settings::{Fill, Settings};
use crate::code::region_name;
use crate::error::{Error, Result};

/// Checks that the preset is used only with settings that it supports.
///
/// # Errors
/// Kind `Usage` for retrieval, repair, reasoning or feedback.
pub(super) fn check(settings: &Settings) -> Result<()> {
    let whole = matches!(settings.paper, None | Some(PaperChoice::Full | PaperChoice::None))
        && matches!(settings.code, None | Some(CodeChoice::Full));
    if whole && settings.repair == 0 && settings.reasoning_tokens == 0 && settings.feedback.is_none() {
        return Ok(());
    }
    Err(Error::usage("`preset=researchcodebench` takes no retrieval, repair, reasoning tokens or feedback")
        .hint("leave these options out, or the preset; `paper=none` leaves out the paper"))
}

/// Returns the message that asks the model for the code of one masked function or region.
///
/// # Errors
/// Returns an error message if the file no longer exists or no longer contains the statement that stands in for the
/// masked code.
pub(super) fn ask(place: usize, settings: &Settings, work: &FixedAttempt<'_>) -> Result<String, String> {
    let function = &work.task.functions[place];
    let (code, region) = match settings.fill {
        Fill::Masked => (&work.masked, function.region.as_ref().map(|region| &region.stand_in)),
        Fill::Filled => (&work.filled.code, work.filled.region(place)),
    };
    let (file, at) = stand_in(function, region, code)?;
    let text = code.modules.get(&file).ok_or("its file is gone")?.source();
    let start = text[..at.start].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let blanks = text[start..].iter().take_while(|byte| b" \t".contains(byte));
    let indent: String = blanks.map(|&byte| char::from(byte)).collect();
    let name = region_name(&function.at).unwrap_or_else(|| order::last(&function.at));
    let length = function.region.as_ref().map_or_else(String::new, |region| {
        let lines = if region.lines == 1 { "1 line".to_owned() } else { format!("{} lines", region.lines) };
        format!("{indent}# About {lines} of code.\n")
    });
    let todo = format!("{indent}# TODO: write the block \"{name}\" here.\n{length}{indent}pass");
    let shown = [&text[..start], todo.as_bytes(), &text[at.end..]].concat();
    let mut files = described_files(function, code, &file);
    files.push((file.display().to_string(), without_tags(&shown)));
    let paper = if settings.paper == Some(PaperChoice::None) { "" } else { work.task.text.trim() };
    Ok(one_prompt(paper, &files))
}

/// Returns the file of a masked function or region, and the range of the statement that stands in for the masked code.
fn stand_in(
    function: &TaskFunction,
    region: Option<&Range<usize>>,
    code: &Code,
) -> Result<(PathBuf, Range<usize>), String> {
    if let Some(of) = &function.region {
        return region.map(|at| (of.file.clone(), at.clone())).ok_or_else(|| "its place is gone".to_owned());
    }
    let wanted = RetrievalQuery::new(function, code)?;
    let module = code.modules.get(&wanted.file).ok_or("its file is gone")?;
    let body = module.functions()[wanted.function].body.clone();
    let text = &module.source()[body.clone()];
    let found = text.windows(STAND_IN.len()).rposition(|part| part == STAND_IN.as_bytes());
    let start = body.start + found.ok_or("its place is gone")?;
    Ok((wanted.file, start..start + STAND_IN.len()))
}

/// Returns the Python files that a description names in backticks, except `own`, with their texts.
fn described_files(function: &TaskFunction, code: &Code, own: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for name in function.description.split('`').skip(1).step_by(2) {
        if Path::new(name) != own
            && files.iter().all(|(path, _)| path != name)
            && let Some(module) = code.modules.get(Path::new(name))
        {
            files.push((name.to_owned(), without_tags(module.source())));
        }
    }
    files
}

/// Returns a file's text without the comment lines `<paper2code ...>` and `</paper2code ...>`, which mark regions. The
/// published benchmark removes these lines, too.
fn without_tags(source: &[u8]) -> String {
    let is_tag = |line: &str| {
        let comment = line.trim_start().strip_prefix('#').map(str::trim_start).unwrap_or_default();
        comment.starts_with("<paper2code ") || comment.starts_with("</paper2code ")
    };
    String::from_utf8_lossy(source).split_inclusive('\n').filter(|line| !is_tag(line)).collect()
}

/// Returns the last block of Python in a reply, with its fence.
///
/// # Errors
/// Returns an error message if the reply has no such block.
pub(super) fn last_block(reply: &str) -> Result<String, String> {
    const OPEN: &str = "```python\n";
    let mut last = None;
    let mut rest = reply;
    while let Some((_, inside)) = rest.split_once(OPEN) {
        let Some((block, behind)) = inside.split_once("```") else { break };
        (last, rest) = (Some(block), behind);
    }
    last.map(|block| format!("{OPEN}{block}```"))
        .ok_or_else(|| format!("the reply has no block between {OPEN:?} and ```"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_reply_is_its_last_complete_python_block() {
        let reply =
            "First:\n```python\nx = 1\n```\nBetter:\n```python\n    x = 2\n```\nor\n```\nx = 3\n```\n```python\nx = ";
        assert_eq!(last_block(reply).unwrap(), "```python\n    x = 2\n```");
        assert!(last_block("```\nx = 3\n```").is_err() && last_block("x = 3").is_err());
    }
}
