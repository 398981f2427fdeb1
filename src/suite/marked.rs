//! Numbers that a text's author marks as settings: scrubbing keeps them, even if they look like results.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

/// Matches `<!-- settings: 0.546, 30 -->` in Markdown, `% settings: 0.546, 30` in LaTeX, `# settings: ...` in plain
/// text.
static MARK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)^[ \t]*(?:<!--|%+|#)[ \t]*settings:([^\n]*?)(?:-->)?[ \t]*$").ok());

/// Returns the numbers that a text marks as settings, as written.
#[must_use]
pub fn settings(text: &str) -> BTreeSet<String> {
    let lists = MARK.iter().flat_map(|mark| mark.captures_iter(text)).filter_map(|found| found.get(1));
    let numbers = lists.flat_map(|list| list.as_str().split([',', ';', ' ']));
    numbers.map(plain).filter(|number| number.bytes().any(|byte| byte.is_ascii_digit())).collect()
}

/// Strips a number's decoration: percent signs, dollars, thousands commas; and replaces a Unicode minus.
#[must_use]
pub fn plain(number: &str) -> String {
    number.trim().trim_end_matches(['%', '\\', '$']).trim_start_matches('$').replace('−', "-").replace("{,}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_settings_are_read_from_comments_in_markdown_and_latex() {
        let all = |text: &str| settings(text).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(all("# T\n\n<!-- settings: 0.546, 30% -->\n\nText 0.9"), "0.546 30");
        assert_eq!(all("% settings: 5e-4; $7$\nText"), "5e-4 7");
        assert_eq!(all("The settings: 0.546"), "");
    }
}
