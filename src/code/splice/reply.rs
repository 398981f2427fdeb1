//! Finds the code in a model's reply: fenced blocks, the whole text, or the lines of one function among prose.

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
    let body: String =
        body.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{depth}{line}\n") }).collect();
    Some(format!("{end}\n{body}"))
}

/// Whether the line begins the definition of a function.
fn defines_any(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("def ") || line.starts_with("async def ")
}

/// Returns the contents of the fenced blocks, and the whole text without the fence lines. A last block may lack its
/// closing fence.
fn fenced(reply: &str) -> (Vec<String>, String) {
    let (mut blocks, mut all) = (Vec::new(), String::new());
    let mut open: Option<(String, String)> = None;
    for line in reply.lines() {
        let fence = fence_of(line);
        match (&mut open, fence) {
            (None, Some(fence)) => open = Some((fence.to_owned(), String::new())),
            (Some((opened, block)), Some(fence)) if fence.starts_with(opened.as_str()) && line.trim() == fence => {
                blocks.push(std::mem::take(block));
                open = None;
            }
            (open, _) => {
                if let Some((_, block)) = open {
                    block.push_str(line);
                    block.push('\n');
                }
                all.push_str(line);
                all.push('\n');
            }
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    (blocks, all)
}

/// Returns the fence at the beginning of a line, if any.
fn fence_of(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = text.chars().take_while(|other| *other == mark).count();
    (length >= 3).then(|| &text[..length])
}

/// Removes the indentation that all non-blank lines share, and makes `\n` the end of every line.
pub(super) fn dedent(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = text.lines().collect();
    let shared = shared_indent(lines.iter().copied());
    let cut: Vec<&str> = lines.iter().map(|line| line.strip_prefix(shared).unwrap_or(line.trim_start())).collect();
    cut.join("\n") + "\n"
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

/// Returns the text before its last definition, which is incomplete if the reply was cut off.
pub(super) fn without_last_definition(text: &str) -> Option<String> {
    let begins = |line: &str| {
        let line = line.trim_start();
        ["def ", "async def ", "class ", "@"].iter().any(|word| line.starts_with(word))
    };
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().rposition(|line| begins(line)).filter(|&last| last > 0)?;
    Some(lines[..last].join("\n") + "\n")
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
    Some(dedent(&lines[first..=end].join("\n")))
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
    fn a_function_among_prose_is_found_by_its_lines() {
        let text = "So we write\n@cache\ndef f(a,\n  b):\n    return (a\n+ b)\n\nThat is all.\n";
        assert_eq!(lines_of(text, "f", None).unwrap(), "@cache\ndef f(a,\n  b):\n    return (a\n+ b)\n");
        assert_eq!(lines_of(text, "g", None), None);
    }
}
