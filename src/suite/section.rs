//! The sections of a paper's text. The manifest refers to passages of the paper by the headings of their sections.

/// A section: its heading, and its text up to the next heading of any level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'a> {
    /// The heading without its `#`; empty for the text before the first heading.
    pub heading: &'a str,
    /// The text below the heading.
    pub text: &'a str,
}

/// Splits a Markdown text into sections. Lines in fenced code are not headings.
#[must_use]
pub fn sections(text: &str) -> Vec<Section<'_>> {
    let mut found = Vec::new();
    let (mut heading, mut start, mut at) = ("", 0, 0);
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fenced = !fenced;
        }
        if !fenced && line.starts_with('#') {
            found.push(Section { heading, text: &text[start..at] });
            heading = trimmed.trim_start_matches('#').trim();
            start = at + line.len();
        }
        at += line.len();
    }
    found.push(Section { heading, text: &text[start..] });
    found.retain(|section| !(section.heading.is_empty() && section.text.trim().is_empty()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_where_the_next_heading_begins() {
        let text = "before\n# One\na\n\n## Two\nb\n```\n# no heading\n```\n### Three\n";
        let found: Vec<(&str, &str)> = sections(text).iter().map(|it| (it.heading, it.text)).collect();
        assert_eq!(found, [("", "before\n"), ("One", "a\n\n"), ("Two", "b\n```\n# no heading\n```\n"), ("Three", "")]);
        assert!(sections("").is_empty());
    }
}
