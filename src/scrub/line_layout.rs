//! Splits Markdown, and plain text as written by `pandoc -t plain`, into blocks.

use std::ops::Range;

use super::layout::{BlockKind, PROSE_WORDS, TableLayout, TextBlock, section};
use super::line_table::{self, TextLine};
use super::words::SectionKind;
use super::{MarkupFormat, ScrubRule, html_table};

/// Splits a text into blocks.
pub(super) fn blocks(text: &str, format: MarkupFormat) -> Vec<TextBlock> {
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lines.push(TextLine { start: at, text: line.trim_end_matches(['\n', '\r']) });
        at += line.len();
    }
    let mut reader =
        LineReader { source: text, lines, format, blocks: Vec::new(), section: SectionKind::Other, in_list: false };
    reader.run();
    reader.captions(text);
    reader.blocks
}

struct LineReader<'a> {
    source: &'a str,
    lines: Vec<TextLine<'a>>,
    format: MarkupFormat,
    blocks: Vec<TextBlock>,
    section: SectionKind,
    /// Whether the previous block is a list item, whose further paragraphs are indented.
    in_list: bool,
}

impl LineReader<'_> {
    fn text(&self, line: usize) -> &str {
        self.lines.get(line).map_or("", |line| line.text)
    }

    fn is_blank(&self, line: usize) -> bool {
        self.text(line).trim().is_empty()
    }

    fn push(&mut self, kind: BlockKind, lines: Range<usize>) {
        let (Some(first), Some(last)) = (self.lines.get(lines.start), self.lines.get(lines.end.wrapping_sub(1))) else {
            return;
        };
        let range = first.start..last.start + last.text.len();
        self.blocks.push(TextBlock { range, kind, section: self.section });
    }

    fn run(&mut self) {
        let mut at = self.front_matter();
        while at < self.lines.len() {
            if self.is_blank(at) {
                at += 1;
                continue;
            }
            at = self.block(at).max(at + 1);
        }
    }

    /// Reads the YAML front matter at the start of a Markdown text, and returns the line after it. A value of several words
    /// counts as prose, because it may be the abstract. Other values are kept as they are.
    fn front_matter(&mut self) -> usize {
        if self.format != MarkupFormat::Markdown || self.text(0) != "---" {
            return 0;
        }
        let Some(end) = (1..self.lines.len()).find(|&line| matches!(self.text(line), "---" | "...")) else { return 0 };
        let mut at = 1;
        while at < end {
            let is_further = |line: &usize| self.text(*line).starts_with([' ', '\t']) || self.is_blank(*line);
            let next = at + 1 + (at + 1..end).take_while(is_further).count();
            let key = self.text(at).split(':').next().unwrap_or_default();
            self.section = section(key, SectionKind::Other);
            let words = (at..next).flat_map(|line| self.text(line).split_whitespace());
            let is_prose = words.filter(|word| word.chars().all(char::is_alphabetic)).count() >= PROSE_WORDS;
            self.push(if is_prose { BlockKind::Prose } else { BlockKind::Kept(ScrubRule::Layout) }, at..next);
            at = next;
        }
        self.section = SectionKind::Other;
        end + 1
    }

    /// Reads the block that starts at this line and returns the line after it.
    fn block(&mut self, at: usize) -> usize {
        if let Some(end) = self.code(at) {
            return self.take(BlockKind::Kept(ScrubRule::Code), at, end);
        }
        if self.text(at).trim_start().starts_with("$$")
            && let Some(end) = self.display(at)
        {
            return self.take(BlockKind::Kept(ScrubRule::Equation), at, end);
        }
        if is_html_table(self.text(at)) {
            let far = self.lines.len().min(at + line_table::MOST_ROWS);
            if let Some(end) = (at..far).find(|&line| self.text(line).contains("</table>")) {
                let last = self.lines[end];
                let table = html_table::read(self.source, self.lines[at].start..last.start + last.text.len());
                return self.take(BlockKind::Table(table), at, end + 1);
            }
        }
        if let Some((table, end)) = line_table::read(&self.lines, at) {
            return self.take(BlockKind::Table(table), at, end);
        }
        if let Some(end) = self.heading(at) {
            return end;
        }
        let end = self.paragraph(at);
        if self.section == SectionKind::Bibliography {
            return self.take(BlockKind::Kept(ScrubRule::Bibliography), at, end);
        }
        if !self.in_list && self.is_formula(at, end) {
            return self.take(BlockKind::Kept(ScrubRule::Equation), at, end);
        }
        self.in_list = is_item(self.text(at)) || (self.in_list && self.text(at).starts_with(' '));
        let kind = if is_caption(self.text(at)) { BlockKind::Caption } else { BlockKind::Prose };
        self.push(kind, at..end);
        end
    }

    fn take(&mut self, kind: BlockKind, at: usize, end: usize) -> usize {
        if !matches!(kind, BlockKind::Kept(ScrubRule::Equation | ScrubRule::Code)) {
            self.in_list = false;
        }
        self.push(kind, at..end);
        end
    }

    /// Returns the end of a fenced or indented code block in Markdown.
    fn code(&self, at: usize) -> Option<usize> {
        if self.format != MarkupFormat::Markdown {
            return None;
        }
        let line = self.text(at).trim_start();
        if let Some(fence) = ["```", "~~~"].iter().find(|fence| line.starts_with(**fence)) {
            let end = (at + 1..self.lines.len()).find(|&line| self.text(line).trim_start().starts_with(fence));
            return Some(end.map_or(self.lines.len(), |end| end + 1));
        }
        let indented = |line: usize| self.text(line).starts_with("    ") || self.text(line).starts_with('\t');
        if self.in_list || !indented(at) || line_table::read(&self.lines, at).is_some() {
            return None;
        }
        (at + 1..=self.lines.len()).find(|&line| line == self.lines.len() || !indented(line))
    }

    /// Returns the end of a display formula between `$$`.
    fn display(&self, at: usize) -> Option<usize> {
        let first = self.text(at).trim();
        if first.len() > 2 && first[2..].contains("$$") {
            return first.ends_with("$$").then_some(at + 1);
        }
        (at + 1..self.lines.len()).find(|&line| self.text(line).contains("$$")).map(|end| end + 1)
    }

    /// Reads a heading if there is one at this line.
    fn heading(&mut self, at: usize) -> Option<usize> {
        let line = self.text(at).to_owned();
        let alone = (at == 0 || self.is_blank(at - 1)) && self.is_blank(at + 1);
        let top;
        let end;
        if self.format == MarkupFormat::Markdown {
            let underlined = |sign: char| {
                let below = self.text(at + 1).trim_end();
                !below.is_empty() && below.chars().all(|c| c == sign)
            };
            if line.starts_with('#') {
                top = !line.starts_with("###");
                end = at + 1;
            } else if underlined('=') || underlined('-') {
                top = true;
                end = at + 2;
            } else {
                return None;
            }
        } else {
            let short = line.len() < 70 && !line.starts_with(' ') && !line.trim_end().ends_with(['.', ',', ':', ';']);
            let body = line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ' '));
            let titled = body.starts_with(char::is_uppercase) && !line.starts_with('[');
            if !(alone && short && titled) {
                return None;
            }
            let number = line.split(' ').next().unwrap_or_default();
            top = !number.trim_end_matches('.').contains('.');
            end = at + 1;
        }
        let above = if top { SectionKind::Other } else { self.section };
        self.section = section(&line, above);
        self.in_list = false;
        self.push(BlockKind::Heading, at..end);
        Some(end)
    }

    /// Returns the end of a paragraph: a blank line, the next list item, a heading, a fence or a table.
    fn paragraph(&self, at: usize) -> usize {
        let mut end = at + 1;
        while end < self.lines.len() && !self.is_blank(end) {
            let line = self.text(end).trim_start();
            let markdown = self.format == MarkupFormat::Markdown
                && (line.starts_with('#') || line.starts_with("```") || line.starts_with("~~~"));
            if markdown
                || is_html_table(line)
                || is_item(self.text(end))
                || (line.starts_with(['|', '+']) && self.opens_table(end))
            {
                break;
            }
            end += 1;
        }
        end
    }

    fn opens_table(&self, at: usize) -> bool {
        line_table::read(&self.lines, at).is_some()
    }

    /// Whether these lines are indented and contain mathematical signs and few long words, like formulas in plain text.
    fn is_formula(&self, at: usize, end: usize) -> bool {
        let mut signs = 0;
        let mut words = 0;
        for line in at..end {
            let text = self.text(line);
            if !text.starts_with("  ") || is_caption(text) || is_item(text) {
                return false;
            }
            signs += text.chars().filter(|c| "=≤≥≪≈√∑∫∏^/·+<>‖|∈∝→_".contains(*c)).count();
            words += text.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().count() > 3).count();
        }
        signs > 0 && words <= 2 * signs.max(2) && words <= 4 * (end - at)
    }

    /// Assigns to each table the caption directly above or below it.
    fn captions(&mut self, text: &str) {
        for place in 0..self.blocks.len() {
            let near = |other: Option<usize>| {
                other.and_then(|other| self.blocks.get(other)).filter(|block| block.kind == BlockKind::Caption)
            };
            let caption = near(place.checked_sub(1))
                .filter(|block| !text[block.range.clone()].trim_start().starts_with(':'))
                .filter(|_| near(Some(place + 1)).is_none_or(|below| !is_of_above(text, &below.range)))
                .or_else(|| near(Some(place + 1)))
                .map(|block| block.range.clone());
            if let Some(TextBlock { kind: BlockKind::Table(TableLayout { caption: slot, .. }), .. }) =
                self.blocks.get_mut(place)
            {
                *slot = caption;
            }
        }
    }
}

/// Whether the form of a caption shows that it belongs to the table above.
fn is_of_above(text: &str, caption: &Range<usize>) -> bool {
    text[caption.clone()].trim_start().starts_with(':')
}

/// Whether an HTML table starts in this line, perhaps after other tags.
fn is_html_table(line: &str) -> bool {
    line.trim_start().starts_with('<') && line.contains("<table")
}

/// Whether a line starts a list item or a footnote.
fn is_item(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ']);
    if line.starts_with("- ") || line.starts_with("* ") || line.starts_with("+ ") || line.starts_with("[^") {
        return true;
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    (1..=2).contains(&digits) && (line[digits..].starts_with(". ") || line[digits..].starts_with(") "))
}

/// Whether a line starts like the caption of a table or figure.
fn is_caption(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '*', '_']);
    if let Some(rest) = line.strip_prefix(':') {
        return rest.starts_with(' ');
    }
    ["Table", "Figure", "Fig."].iter().filter_map(|word| line.strip_prefix(word)).any(|rest| {
        let number = rest.trim_start_matches(' ');
        let rest = number.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        (number.starts_with(|c: char| c.is_ascii_digit()) || number.starts_with(':')) && rest.starts_with([':', '.'])
    })
}
