//! Removes the outputs of examples from documentation, because they may be values that hidden tests compare.

use std::sync::LazyLock;

use regex::Regex;

use crate::code::Module;

/// Results that examples show in comments: `f(1)  # -> 2`. The heading `# Returns` of a docstring is not a result.
static SHOWN_IN_COMMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let signs = r"=>|->|→|==>|[Oo]utputs?:|(?:[Pp]rints|[Rr]eturns)\b:?[ \t]*[^\s:]";
    Regex::new(&format!(r"(?m)[ \t]*#[ \t]*(?:{signs})[^\n]*$")).ok()
});

/// Removes the lines that examples of Python's console, of IPython and of Sphinx print, and returns the text and the
/// number of removed lines. The inputs stay.
pub(super) fn without_outputs(text: &str) -> (String, usize) {
    let text = match SHOWN_IN_COMMENT.as_ref() {
        Some(regex) => regex.replace_all(text, ""),
        None => text.into(),
    };
    let mut kept = String::with_capacity(text.len());
    let mut removed = 0;
    // Indentation of the input of the example whose outputs the next line may contain; `None` outside of examples.
    let mut example: Option<usize> = None;
    let mut directive: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let start = line.trim_start_matches([' ', '\t', '#']);
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        let is_prompt = start.starts_with(">>>") || (start.starts_with("In [") && start.contains("]:"));
        if let Some(outer) = directive {
            if bare.trim().is_empty() || indent > outer {
                removed += usize::from(!bare.trim().is_empty());
                continue;
            }
            directive = None;
        }
        if bare.starts_with(".. testoutput::") {
            directive = Some(indent);
            removed += 1;
            continue;
        }
        if is_prompt {
            example = Some(indent);
        } else if start.starts_with("Out[") {
            example = Some(indent);
            removed += 1;
            continue;
        } else if let Some(outer) = example {
            let ends = bare.trim().is_empty() || indent < outer || bare.starts_with("```") || bare.starts_with("~~~");
            let quoted = ["\"\"\"", "'''"].iter().any(|quotes| bare.contains(quotes));
            if ends || quoted {
                example = None;
            } else if !start.starts_with("...") {
                removed += 1;
                continue;
            }
        }
        kept.push_str(line);
    }
    (kept, removed)
}

/// Whether this line ends the header of a function or class, which may have several lines.
fn is_header_end(line: &str) -> bool {
    let is_first = ["def ", "async def ", "class "].iter().any(|word| line.starts_with(word));
    line.strip_suffix(':').is_some_and(|header| is_first || header.ends_with([')', ']']) || header.contains("->"))
}

/// Removes the outputs of examples from the docstrings of a Python file. Returns `None` if nothing changes, or if the
/// file would not have the same functions afterwards.
pub(super) fn source_without_outputs(module: &Module) -> Option<(Vec<u8>, usize)> {
    let source = std::str::from_utf8(module.source()).ok()?;
    let mut text = String::with_capacity(source.len());
    let mut removed = 0;
    // Whether a string at the beginning of the next line would be a docstring. This is so after the header of a function
    // or class, and before the file's first code.
    let mut expected = true;
    let mut lines = source.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let bare = line.trim();
        let literal = bare.trim_start_matches(['r', 'R', 'u', 'U']);
        let quotes = ["\"\"\"", "'''"].into_iter().find(|quotes| literal.starts_with(quotes));
        let Some(quotes) = quotes.filter(|_| expected) else {
            if !bare.is_empty() && !bare.starts_with('#') {
                expected = is_header_end(bare.split(" #").next().unwrap_or_default().trim_end());
            }
            text.push_str(line);
            continue;
        };
        let mut docstring = line.to_owned();
        if literal[3..].find(quotes).is_none() {
            for more in lines.by_ref() {
                docstring.push_str(more);
                if more.contains(quotes) {
                    break;
                }
            }
        }
        // Clean only the text between the quotes, because an output may end at the closing quotes.
        let start = docstring.find(quotes).map_or(0, |place| place + quotes.len());
        let end = docstring.rfind(quotes).filter(|end| *end >= start).unwrap_or(docstring.len());
        let (cleaned, count) = without_outputs(&docstring[start..end]);
        text.extend([&docstring[..start], &cleaned, &docstring[end..]]);
        removed += count;
        expected = false;
    }
    if text == source {
        return None;
    }
    let names = |module: &Module| module.functions().iter().map(crate::code::Function::label).collect::<Vec<_>>();
    let after = Module::parse(module.path(), text.clone().into_bytes()).ok()?;
    (names(&after) == names(module)).then(|| (text.into_bytes(), removed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_examples_are_removed_and_inputs_stay() {
        let text = "Use:\n\n>>> f(1,\n...   2)\n3.5\nand more\n\nText.\n```python\n>>> g()\n[1]\n```\n.. testoutput::\n\n   7\n\nEnd f(2)  # -> 9\n";
        let (cleaned, removed) = without_outputs(text);
        assert_eq!(cleaned, "Use:\n\n>>> f(1,\n...   2)\n\nText.\n```python\n>>> g()\n```\nEnd f(2)\n");
        assert_eq!(removed, 5);
    }

    #[test]
    fn removing_the_outputs_of_examples_changes_only_the_docstrings_of_a_source_file() {
        let source = "\"\"\"Top.\n\n>>> 1\n1\n\"\"\"\nX = '''\n>>> data\nstays\n'''\n\n\ndef f(x):\n    r\"\"\"F.\n\n    >>> f(1)\n    2\n    \"\"\"\n    return 2 * x\n";
        let module = Module::parse("m.py", source.as_bytes().to_vec()).unwrap();
        let (cleaned, removed) = source_without_outputs(&module).unwrap();
        let cleaned = String::from_utf8(cleaned).unwrap();
        assert_eq!(removed, 2);
        assert!(cleaned.contains(">>> data\nstays\n") && cleaned.contains(">>> f(1)\n    \"\"\"\n    return 2 * x"));
        assert!(cleaned.starts_with("\"\"\"Top.\n\n>>> 1\n\"\"\""));
        let plain = Module::parse("m.py", b"def f(): return 1\n".to_vec()).unwrap();
        assert!(source_without_outputs(&plain).is_none());
    }

    #[test]
    fn outputs_in_docstrings_without_prompts_or_lines_of_output_are_removed() {
        let source = |text: &str| format!("def f(x):\n    \"\"\"{text}\"\"\"\n    return 2 * x  # -> stays\n");
        let cleaned = |text: &str| {
            let module = Module::parse("m.py", source(text).into_bytes()).unwrap();
            source_without_outputs(&module).map(|(bytes, _)| String::from_utf8(bytes).unwrap())
        };
        for (before, after) in [
            ("F.\n\n    f(2)  # -> 9\n    ", "F.\n\n    f(2)\n    "),
            ("F.\n\n    >>> f(1)  # -> 3\n    ", "F.\n\n    >>> f(1)\n    "),
            ("F.\n\n    .. testoutput::\n\n        7\n\n    End.", "F.\n\n    End."),
            ("F(2)  # -> 9", "F(2)"),
            ("F.\n\n    >>> f(1)\n    3", "F.\n\n    >>> f(1)\n"),
            (">>> f(1)\n    3\n    ", ">>> f(1)\n    "),
        ] {
            assert_eq!(cleaned(before), Some(source(after)));
        }
        for text in ["F.\n\n    # Returns\n        A number.\n    ", "F(1) is # 3.", "Prints ->"] {
            assert_eq!(cleaned(text), None, "{text}");
        }
    }
}
