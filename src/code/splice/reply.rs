//! Finds the code in a model's reply: fenced blocks, the whole text, or the lines of one function among prose.

use std::ops::Range;

use tree_sitter::Tree;

use crate::code::walk;

/// Returns the texts that may be the code, most likely first: the fenced blocks from last to first, because drafts come
/// before the final version; then the whole reply without its fences; then each signature with the block after it.
pub(super) fn candidates(reply: &str) -> Vec<String> {
    let (mut blocks, rest) = fenced(reply);
    let continued: Vec<String> = blocks.windows(2).filter_map(|pair| continued(&pair[0], &pair[1])).collect();
    blocks.reverse();
    blocks.push(rest);
    blocks.extend(continued);
    blocks.iter().map(|block| dedent(block)).filter(|block| !block.trim().is_empty()).collect()
}

/// Joins a block that ends with a signature or a docstring with the next block, which is taken as the body. Some models
/// first repeat the given code in a separate fence. Returns `None` if the second block defines a function, because it
/// is then another draft.
fn continued(signature: &str, body: &str) -> Option<String> {
    let signature = dedent(signature);
    let end = signature.trim_end();
    let is_open = end.ends_with(':') || end.ends_with("\"\"\"") || end.ends_with("'''");
    let header = end.lines().rev().find(|line| defines_any(line))?;
    if !is_open || body.lines().any(defines_any) {
        return None;
    }
    let depth = " ".repeat(indent_of(header).len() + 4);
    let body = dedent(body);
    let mut text = format!("{end}\n");
    for (line, in_string) in body.lines().zip(begin_in_strings("", &body)) {
        if !line.is_empty() && !in_string {
            text.push_str(&depth);
        }
        text.push_str(line);
        text.push('\n');
    }
    Some(text)
}

/// Whether the line begins the definition of a function.
fn defines_any(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("def ") || line.starts_with("async def ")
}

/// A fenced block whose closing fence has not been read yet.
struct OpenBlock {
    fence: String,
    /// Indentation of the opening fence.
    indent: String,
    text: String,
}

impl OpenBlock {
    /// Returns the block's text without the fence's indentation, which the lines have in a Markdown list. If a line is
    /// indented less, the text is returned as it is.
    fn text(&self) -> String {
        let is_deeper = |line: &str| line.trim().is_empty() || line.starts_with(&self.indent);
        if self.indent.is_empty() || !self.text.lines().all(is_deeper) {
            return self.text.clone();
        }
        let mut text = String::with_capacity(self.text.len());
        for line in self.text.lines() {
            text.push_str(line.strip_prefix(&self.indent).unwrap_or_default());
            text.push('\n');
        }
        text
    }
}

/// Returns the contents of the fenced blocks, and the whole text without the fence lines. A last block may lack its
/// closing fence.
fn fenced(reply: &str) -> (Vec<String>, String) {
    let (mut blocks, mut all) = (Vec::new(), String::new());
    let mut open: Option<OpenBlock> = None;
    for line in reply.lines() {
        let fence = fence_of(line);
        match (&mut open, fence) {
            (None, Some(fence)) => {
                let indent = indent_of(line).to_owned();
                open = Some(OpenBlock { fence: fence.to_owned(), indent, text: String::new() });
            }
            (Some(block), Some(fence)) if fence.starts_with(&block.fence) && line.trim() == fence => {
                blocks.push(block.text());
                open = None;
            }
            (open, _) => {
                if let Some(block) = open {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                all.push_str(line);
                all.push('\n');
            }
        }
    }
    blocks.extend(open.as_ref().map(OpenBlock::text));
    (blocks, all)
}

/// Returns the fence at the beginning of a line, if any.
fn fence_of(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = text.chars().take_while(|other| *other == mark).count();
    (length >= 3).then(|| &text[..length])
}

/// Removes the indentation that all non-blank lines share, and makes `\n` the end of every line. Lines that begin
/// inside a string do not change, and their indentation does not count, if the text parses.
pub(super) fn dedent(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // Without an indented first line, no indentation is shared.
    let in_strings = if indent_of(first).is_empty() { Vec::new() } else { begin_in_strings("if 1:\n", &text) };
    let in_strings = in_strings.into_iter().chain(std::iter::repeat(false));
    let lines: Vec<(&str, bool)> = text.lines().zip(in_strings).collect();
    let shared = shared_indent(lines.iter().filter(|(_, in_string)| !in_string).map(|(line, _)| *line));
    let mut dedented = String::with_capacity(text.len() + 1);
    for (line, in_string) in lines {
        let cut = line.strip_prefix(shared).unwrap_or(line.trim_start());
        dedented.push_str(if in_string { line } else { cut });
        dedented.push('\n');
    }
    dedented
}

/// Returns for each line of a text whether the line begins inside a string. The text is parsed after the code `before`.
/// If it does not parse, no line counts as part of a string.
fn begin_in_strings(before: &str, text: &str) -> Vec<bool> {
    let whole = format!("{before}{text}");
    let tree = walk::parse(whole.as_bytes()).filter(|tree| !tree.root_node().has_error());
    let strings = tree.map_or_else(Vec::new, |tree| multi_line_strings(&tree, &(0..whole.len())));
    let mut next = before.len();
    let begins_in_string = |line: &str| {
        let start = next;
        next += line.len() + 1;
        strings.iter().any(|string| string.start < start && start < string.end)
    };
    text.split('\n').map(begins_in_string).collect()
}

/// Returns the ranges of those strings in `range` that span several lines.
pub(super) fn multi_line_strings(tree: &Tree, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut cursor = tree.walk();
    'tree: loop {
        let node = cursor.node();
        let apart = node.end_byte() <= range.start || node.start_byte() >= range.end;
        let string = node.kind() == "string";
        if string && !apart && node.start_position().row < node.end_position().row {
            found.push(node.byte_range());
        }
        if !apart && !string && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'tree;
            }
        }
    }
    found
}

/// Returns the longest white space with which all non-blank lines begin.
pub(super) fn shared_indent<'a>(lines: impl Iterator<Item = &'a str>) -> &'a str {
    let mut shared: Option<&str> = None;
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let indent = indent_of(line);
        shared = Some(shared.map_or(indent, |shared| {
            let same = shared.bytes().zip(indent.bytes()).take_while(|(a, b)| a == b).count();
            &shared[..same]
        }));
    }
    shared.unwrap_or_default()
}

/// Returns the spaces and tabs at the beginning of a line.
pub(super) fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Returns the text before its last definition, which is incomplete if the reply was cut off. Returns `None` if that
/// definition is inside the function called `name`: the text before would then seem to be all of this function.
pub(super) fn without_last_definition(text: &str, name: &str) -> Option<String> {
    let begins = |line: &str| {
        let line = line.trim_start();
        ["def ", "async def ", "class ", "@"].iter().any(|word| line.starts_with(word))
    };
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().rposition(|line| begins(line)).filter(|&last| last > 0)?;
    let function = (0..last).rev().find(|&at| defines(lines[at], name));
    let is_inside = function.is_some_and(|function| {
        indent_of(lines[last]).len() > indent_of(lines[function]).len() && last <= last_line_of(&lines, function)
    });
    (!is_inside).then(|| lines[..last].join("\n") + "\n")
}

/// Returns the lines of the last function called `name` in a text that does not parse as a whole: decorators, signature
/// and the lines below that are indented deeper. Functions in a class other than `class` are ignored.
pub(super) fn lines_of(text: &str, name: &str, class: Option<&str>) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let fits = |at: usize| match class_of(&lines, at) {
        Some(found) => class == Some(found),
        None => true,
    };
    let at = (0..lines.len()).rev().find(|&at| defines(lines[at], name) && fits(at))?;
    let depth = indent_of(lines[at]).len();
    let mut first = at;
    while first > 0 && lines[first - 1].trim_start().starts_with('@') && indent_of(lines[first - 1]).len() == depth {
        first -= 1;
    }
    Some(dedent(&lines[first..=last_line_of(&lines, at)].join("\n")))
}

/// Returns the index of the last line of the function whose signature is at the line `at`. Judged by indentation and
/// brackets.
fn last_line_of(lines: &[&str], at: usize) -> usize {
    let depth = indent_of(lines[at]).len();
    let mut open = 0_i64;
    let mut end = at;
    for (number, line) in lines.iter().enumerate().skip(at) {
        let code = line.split('#').next().unwrap_or_default();
        let deeper = indent_of(line).len() > depth || line.trim().is_empty();
        if number > at && open <= 0 && !deeper {
            break;
        }
        for character in code.chars() {
            match character {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' => open -= 1,
                _ => {}
            }
        }
        end = number;
    }
    end
}

/// Returns the class that contains a line, judged by indentation.
fn class_of<'a>(lines: &[&'a str], at: usize) -> Option<&'a str> {
    let depth = indent_of(lines[at]).len();
    let outer = lines[..at].iter().rev().find(|line| !line.trim().is_empty() && indent_of(line).len() < depth)?;
    let name = outer.trim_start().strip_prefix("class ")?;
    name.split(|character: char| !character.is_alphanumeric() && character != '_').find(|part| !part.is_empty())
}

/// Whether the line begins the definition of `name`.
fn defines(line: &str, name: &str) -> bool {
    let text = line.trim_start();
    let text = text.strip_prefix("async ").map_or(text, str::trim_start);
    text.strip_prefix("def ")
        .and_then(|rest| rest.trim_start().strip_prefix(name))
        .is_some_and(|rest| rest.trim_start().starts_with('('))
}

/// Removes a line's indentation and comment. If a line contains quotes, its comment is kept, because `#` may be part of
/// a string.
pub(super) fn plain(line: &str) -> &str {
    let line = line.trim();
    let end = line.find('#').filter(|&at| !line[..at].contains(['"', '\'']));
    end.map_or(line, |end| line[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_code_block_is_tried_first_and_the_whole_text_last() {
        let reply = "Draft:\n```python\na = 1\n```\nBetter:\n````py\n  b = 2\n  ```\n````\nend";
        assert_eq!(candidates(reply), ["b = 2\n```\n", "a = 1\n", "Draft:\na = 1\nBetter:\n  b = 2\n  ```\nend\n"]);
    }

    #[test]
    fn an_unclosed_code_block_is_read_to_its_end() {
        assert_eq!(candidates("```\nx = 1")[0], "x = 1\n");
    }

    #[test]
    fn the_indentation_of_a_block_in_a_list_is_removed_also_from_strings() {
        let reply = "1. So:\n   ~~~python\n   t = \"\"\"\n   a\n     b\"\"\"\n\n   u = 1\n   ~~~\n2. Done.";
        assert_eq!(candidates(reply)[0], "t = \"\"\"\na\n  b\"\"\"\n\nu = 1\n");
        assert_eq!(candidates("  ```\ndef f():\n  return 1\n  ```")[0], "def f():\n  return 1\n");
    }

    #[test]
    fn lines_that_begin_inside_a_string_are_not_dedented() {
        let text = "    t = \"\"\"\n      a\n\n  b\n\"\"\"\n    return t\n";
        assert_eq!(dedent(text), "t = \"\"\"\n      a\n\n  b\n\"\"\"\nreturn t\n");
        assert_eq!(dedent("    x\n    isn't \"\"\" code\n    y\n"), "x\nisn't \"\"\" code\ny\n");
    }

    #[test]
    fn a_body_in_the_block_after_a_signature_keeps_its_strings() {
        let reply = "```\ndef f():\n```\n```\nt = \"\"\"\na\"\"\"\nreturn t\n```";
        let joined = "def f():\n    t = \"\"\"\na\"\"\"\n    return t\n";
        assert!(candidates(reply).iter().any(|text| text == joined));
    }

    #[test]
    fn a_text_is_not_cut_before_a_definition_inside_the_wanted_function() {
        let before = "def f(a,\n  b,\n):\n    c = 0\n";
        for inner in ["    def g():\n        retur", "    class G:\n        def f2():\n            (", "    @cach"] {
            assert_eq!(without_last_definition(&format!("{before}{inner}"), "f"), None, "{inner}");
        }
        for next in ["def g():\n    retur", "@cach"] {
            assert_eq!(without_last_definition(&format!("{before}{next}"), "f").unwrap(), before);
        }
        let class = "class A:\n    x = 1\n";
        let text = format!("{before}{class}    def g(self):\n        retur");
        assert_eq!(without_last_definition(&text, "f").unwrap(), format!("{before}{class}"));
    }

    #[test]
    fn a_function_among_prose_is_found_by_its_lines() {
        let text = "So we write\n@cache\ndef f(a,\n  b):\n    return (a\n+ b)\n\nThat is all.\n";
        assert_eq!(lines_of(text, "f", None).unwrap(), "@cache\ndef f(a,\n  b):\n    return (a\n+ b)\n");
        assert_eq!(lines_of(text, "g", None), None);
    }
}
