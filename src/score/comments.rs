//! Removes comments from code, for rules that must not take a comment for a command.

/// Removes comments of Python or Bash: from a `#` at the beginning of a word, outside quotes, to the end of the line.
/// Quotes are tracked only within a line.
pub(super) fn without_comments(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    for line in code.split_inclusive('\n') {
        let (mut quote, mut before, mut is_escaped) = (None, ' ', false);
        for c in line.chars() {
            if c == '#' && quote.is_none() && (before.is_whitespace() || before == ';') {
                if line.ends_with('\n') {
                    out.push('\n');
                }
                break;
            }
            out.push(c);
            match quote {
                _ if is_escaped => is_escaped = false,
                _ if c == '\\' => is_escaped = true,
                Some(open) if c == open => quote = None,
                None if matches!(c, '"' | '\'') => quote = Some(c),
                _ => {}
            }
            before = c;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_removed_and_hash_signs_in_words_and_quotes_stay() {
        let code = "# all\nrun a.py # now\necho 'a # b' \"it's # c\" d#e; # f\nlast # g";
        assert_eq!(without_comments(code), "\nrun a.py \necho 'a # b' \"it's # c\" d#e; \nlast ");
    }
}
