//! Lines of a reply's code, and how their indentation changes.

use std::ops::Range;

use super::reply;
use super::taken::{FunctionFromReply, ReplyCode};

/// A line of code without the indentation that it shares with the lines around it.
#[derive(Clone, Copy)]
pub(super) struct CodeLine<'a> {
    pub text: &'a str,
    /// Offset of the line in the reply's code, before its indentation.
    pub start: usize,
    /// Whether the line begins inside a string. Its indentation must then not change.
    pub in_string: bool,
}

impl CodeLine<'_> {
    /// Returns the line with this indentation.
    pub fn place(&self, indent: &str) -> String {
        if self.in_string || self.text.is_empty() { self.text.to_owned() } else { format!("{indent}{}", self.text) }
    }
}

/// Returns the lines of a function's body, without the header's line, the docstring and the body's indentation.
pub(super) fn body_lines(taken: &FunctionFromReply) -> Vec<CodeLine<'_>> {
    let code = taken.code.module.body_code(taken.function);
    let base = String::from_utf8_lossy(&taken.function().indent);
    let text = &taken.code.text[code.clone()];
    let first_end = text.find('\n').unwrap_or(text.len());
    let first = text[..first_end].trim().trim_start_matches(';').trim();
    let mut found = Vec::new();
    // Keep code that is on the line of the header or of the docstring.
    if !first.is_empty() && !first.starts_with('#') {
        found.push(CodeLine { text: first, start: code.start, in_string: false });
    }
    if first_end < text.len() {
        let range = code.start + first_end + 1..code.end;
        found.extend(lines(&taken.code, &range, &base, taken.added_indent()));
    }
    let blank = |line: &CodeLine<'_>| line.text.trim().is_empty() && !line.in_string;
    while found.last().is_some_and(blank) {
        found.pop();
    }
    let start = found.iter().position(|line| !blank(line)).unwrap_or(0);
    found.drain(..start);
    found
}

/// Returns the lines in `range`, which must begin at the start of a line or of a statement. The indentation `base` is
/// removed from each line that does not begin inside a string. From a line that does, only `added_indent` is removed,
/// which this program has added to the reply.
pub(super) fn lines<'a>(
    code: &'a ReplyCode,
    range: &Range<usize>,
    base: &str,
    added_indent: &str,
) -> Vec<CodeLine<'a>> {
    let strings = reply::multi_line_strings(&code.tree, range);
    let mut at = range.start;
    let mut found = Vec::new();
    for line in code.text[range.clone()].split('\n') {
        let in_string = strings.iter().any(|string| string.start < at && at < string.end);
        let text = if in_string {
            line.strip_prefix(added_indent).unwrap_or(line)
        } else {
            let line = line.trim_end();
            line.strip_prefix(base).unwrap_or_else(|| line.trim_start_matches([' ', '\t']))
        };
        found.push(CodeLine { text, start: at, in_string });
        at += line.len() + 1;
    }
    found
}
