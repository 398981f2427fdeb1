//! Extracts the description of a function from its docstring: the first sentence.

/// Returns the first sentence in a docstring literal (with prefix and quotes), on one line; `None` if it has no words.
pub fn first_sentence(literal: &str) -> Option<String> {
    let inner = literal.trim().trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '(').trim_end_matches(')');
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let quote = quotes.into_iter().find(|quote| inner.starts_with(quote))?;
    let inner = inner.strip_prefix(quote)?.strip_suffix(quote)?;
    let paragraph: Vec<&str> = inner.trim().lines().map(str::trim).take_while(|line| !is_break(line)).collect();
    let paragraph = paragraph.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = paragraph[..sentence_end(&paragraph)].trim();
    if sentence.chars().filter(|c| c.is_alphabetic()).count() < 3 {
        return None;
    }
    let ended = sentence.ends_with(['.', '!', '?', ':']);
    Some(if ended { sentence.to_owned() } else { format!("{sentence}.") })
}

/// Whether a line ends the first paragraph: it is empty, underlines a heading, or begins a list of parameters in one of
/// the usual styles.
fn is_break(line: &str) -> bool {
    const SECTIONS: [&str; 8] =
        ["args:", "arguments:", "parameters", "parameters:", "returns", "returns:", "inputs:", "example:"];
    line.is_empty()
        || line.starts_with(":param")
        || line.starts_with("@param")
        || line.starts_with(">>>")
        || line.chars().all(|c| c == '-' || c == '=')
        || SECTIONS.contains(&line.to_ascii_lowercase().as_str())
}

/// Returns the index after the first sentence. A sentence ends at a full stop that is followed by a space but not by a
/// lower-case letter.
fn sentence_end(text: &str) -> usize {
    const NO_ENDS: [&str; 10] = ["e.g.", "i.e.", "cf.", "Eq.", "eq.", "Sec.", "Fig.", "al.", "vs.", "No."];
    for (place, _) in text.match_indices(". ") {
        let before = &text[..=place];
        let next = text[place + 2..].chars().next();
        if next.is_some_and(|next| !next.is_lowercase()) && !NO_ENDS.iter().any(|end| before.ends_with(end)) {
            return place + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_found_in_any_kind_of_docstring() {
        for (literal, expected) in [
            ("\"\"\"The mean.\"\"\"", "The mean."),
            ("'the mean'", "the mean."),
            ("r\"\"\"\n    The mean of\n    all values. Not the median.\n    \"\"\"", "The mean of all values."),
            (
                "'''Draws, as in Eq. 3, k of them\n\nParameters\n----------\nk : int\n'''",
                "Draws, as in Eq. 3, k of them.",
            ),
            ("\"\"\"Fit the model.\n:param x: data\"\"\"", "Fit the model."),
            ("\"\"\"Fit the model\n    Args:\n        x: data\"\"\"", "Fit the model."),
            ("(\"\"\"Rate by e.g. Newton. Or not.\"\"\")", "Rate by e.g. Newton."),
        ] {
            assert_eq!(first_sentence(literal).as_deref(), Some(expected), "{literal}");
        }
    }

    #[test]
    fn a_docstring_without_information_gives_no_description() {
        for literal in ["\"\"\"\"\"\"", "'''\n:param x: y\n'''", "\"\"\"...\"\"\"", "'x'"] {
            assert_eq!(first_sentence(literal), None, "{literal}");
        }
    }
}
