//! A paper's text as passages: its sections, with long sections split.

use crate::suite::sections;

/// Sections longer than this many bytes are split between paragraphs.
const MOST: usize = 2400;

/// A part of a paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Heading of the section that the passage belongs to.
    pub heading: String,
    /// The passage's text, without the heading.
    pub text: String,
}

impl Passage {
    /// Heading and text together, as they are embedded, indexed and shown.
    #[must_use]
    pub fn heading_and_text(&self) -> String {
        format!("### {}\n\n{}", self.heading, self.text)
    }
}

/// Splits a paper into passages, in order. Sections without text are omitted.
#[must_use]
pub fn passages(text: &str) -> Vec<Passage> {
    let mut found = Vec::new();
    for section in sections(text).into_iter().filter(|section| !section.text.trim().is_empty()) {
        let mut part = String::new();
        for paragraph in section.text.trim().split("\n\n") {
            if !part.is_empty() && part.len() + paragraph.len() > MOST {
                found.push(Passage { heading: section.heading.to_owned(), text: std::mem::take(&mut part) });
            }
            if !part.is_empty() {
                part.push_str("\n\n");
            }
            part.push_str(paragraph.trim_end());
        }
        found.push(Passage { heading: section.heading.to_owned(), text: part });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_section_is_split_between_paragraphs_and_keeps_its_heading() {
        let long = "word ".repeat(300);
        let found = passages(&format!("# T\n\n## A\n\n{long}\n\n{long}\n\n## B\nb\n\nc\n"));
        let shapes: Vec<(&str, usize)> = found.iter().map(|it| (it.heading.as_str(), it.text.len())).collect();
        assert_eq!(shapes, [("A", 1499), ("A", 1499), ("B", 4)]);
    }
}
