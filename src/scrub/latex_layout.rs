//! Splits a LaTeX document into blocks.

use std::ops::Range;

use super::ScrubRule;
use super::latex::{arguments, braces, is_font, sign};
use super::layout::{BlockKind, PROSE_WORDS, TableCell, TableLayout, TextBlock, section};
use super::words::SectionKind;

/// Splits a document into blocks.
pub(super) fn blocks(text: &str) -> Vec<TextBlock> {
    let mut reader =
        LatexReader { text, blocks: Vec::new(), begun: 0, section: SectionKind::Other, caption: None, float_end: 0 };
    let mut at = 0;
    if let Some(body) = text.find("\\begin{document}") {
        reader.preamble(body);
        at = body + "\\begin{document}".len();
        reader.begun = at;
    }
    while at < text.len() {
        at = reader.step(at);
    }
    reader.flush(text.len());
    reader.blocks
}

/// Commands that define a command.
const DEFINITIONS: [&str; 4] = ["\\newcommand", "\\renewcommand", "\\providecommand", "\\def"];

/// Whether a command is defined as a number and not as a length. The definition may also contain signs and commands for
/// the number's appearance.
fn is_number(definition: &str) -> bool {
    let mut parts = definition.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let is_length = ["width", "height", "sep", "skip"].iter().any(|ending| name.ends_with(ending));
        if is_length || !(name.is_empty() || name == "xspace" || is_font(name) || sign(name).is_some()) {
            return false;
        }
        plain.push_str(rest);
    }
    plain.contains(|letter: char| letter.is_ascii_digit())
        && !plain.contains(|letter: char| letter.is_ascii_alphabetic() || letter == '#')
}

struct LatexReader<'a> {
    text: &'a str,
    blocks: Vec<TextBlock>,
    /// Offset of the first byte that is in no block yet.
    begun: usize,
    section: SectionKind,
    /// Caption of the current float.
    caption: Option<Range<usize>>,
    float_end: usize,
}

impl LatexReader<'_> {
    fn push(&mut self, kind: BlockKind, range: Range<usize>) {
        self.begun = range.end;
        if !range.is_empty() {
            self.blocks.push(TextBlock { range, kind, section: self.section });
        }
    }

    /// Makes the text before `at` that is in no block yet a block of prose.
    fn flush(&mut self, at: usize) {
        if self.begun < at {
            self.push(BlockKind::Prose, self.begun..at);
        }
    }

    /// Reads the definitions before the document. A macro whose text is a number may be a result, so the number is
    /// judged like a number in a caption. All other numbers are kept as layout, except those in prose (see
    /// [`Self::layout`]).
    fn preamble(&mut self, end: usize) {
        let mut at = 0;
        let next = |at: usize| {
            let found = DEFINITIONS.iter().filter_map(|word| Some((at + self.text[at..end].find(word)?, word.len())));
            found.min()
        };
        while let Some((start, length)) = next(at) {
            let mut body = start + length;
            // The name of the new command is in braces, or follows directly, as in `\def\acc{93.4}`.
            if self.text[body..].starts_with('\\') {
                let name = self.text[body + 1..].find(|letter: char| !letter.is_ascii_alphabetic());
                body = name.map_or(end, |length| body + 1 + length);
            } else if self.text[start..].starts_with("\\def") {
                // Not `\def`, but a command whose name begins with it, such as `\definecolor`.
                at = body;
                continue;
            }
            arguments(self.text, &mut body, usize::from(self.text[start + length..].starts_with(['{', '*'])));
            let close = braces(self.text, body).clamp(body, end.max(body));
            let number = is_number(&self.text[body..close]);
            self.layout(body);
            self.push(if number { BlockKind::Caption } else { BlockKind::Kept(ScrubRule::Layout) }, body..close);
            at = close.max(start + 1);
            if at >= end {
                return;
            }
        }
        self.layout(end);
    }

    /// Keeps the numbers of the preamble up to `end`, except in arguments that are prose, such as those of `\title` and
    /// `\abstract`.
    fn layout(&mut self, end: usize) {
        let mut at = self.begun;
        while let Some(open) = self.text[at..end].find('{').map(|found| at + found) {
            let close = braces(self.text, open).min(end);
            let argument = self.text[open + 1..close.max(open + 1)].trim_end_matches('}');
            let words = argument.split_whitespace().filter(|word| word.chars().all(|c| c.is_alphabetic() || c == ','));
            if words.count() >= PROSE_WORDS {
                self.push(BlockKind::Kept(ScrubRule::Layout), self.begun..open);
                let is_title = self.text[..open].ends_with("\\title");
                let section = std::mem::replace(&mut self.section, SectionKind::Results);
                self.push(if is_title { BlockKind::Heading } else { BlockKind::Prose }, open..close);
                self.section = section;
            }
            at = close.max(open + 1);
        }
        self.push(BlockKind::Kept(ScrubRule::Layout), self.begun..end);
    }

    /// Processes the text at this position and returns the next position.
    fn step(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        let next = rest.find(['\\', '\n']).map_or(self.text.len(), |found| at + found);
        if next > at {
            return next;
        }
        if let Some(line) = rest.strip_prefix('\n') {
            if line.trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
                self.flush(at);
            }
            return at + 1;
        }
        if rest.starts_with("\\[") {
            let end = rest.find("\\]").map_or(self.text.len(), |end| at + end + 2);
            return self.kept(at, end, ScrubRule::Equation);
        }
        if let Some(name) = environment_name(rest) {
            return self.environment(at, name);
        }
        if let Some(open) = ["\\section", "\\subsection", "\\subsubsection", "\\chapter", "\\title"]
            .iter()
            .find_map(|command| opened(rest, command))
        {
            let end = braces(self.text, at + open);
            let heading = &self.text[at + open..end];
            self.flush(at);
            if !rest.starts_with("\\title") {
                let above = if rest.starts_with("\\section") { SectionKind::Other } else { self.section };
                self.section = section(heading, above);
            }
            self.push(BlockKind::Heading, at..end);
            return end;
        }
        if let Some(open) = opened(rest, "\\caption") {
            let end = braces(self.text, at + open);
            self.flush(at);
            self.push(BlockKind::Caption, at..end);
            return end;
        }
        // The character after a backslash is part of the command.
        at + 1 + rest[1..].chars().next().map_or(0, char::len_utf8)
    }

    fn kept(&mut self, at: usize, end: usize, rule: ScrubRule) -> usize {
        self.flush(at);
        self.push(BlockKind::Kept(rule), at..end);
        end
    }

    fn environment(&mut self, at: usize, name: &str) -> usize {
        let close = format!("\\end{{{name}}}");
        let head = at + "\\begin{}".len() + name.len();
        let end = self.text[head..].find(&close).map_or(self.text.len(), |end| head + end + close.len());
        match name.trim_end_matches('*') {
            "equation" | "align" | "gather" | "multline" | "eqnarray" | "displaymath" | "math" | "alignat"
            | "flalign" => self.kept(at, end, ScrubRule::Equation),
            "tikzpicture" => self.plot(at, end),
            "verbatim" | "lstlisting" | "minted" | "algorithm" | "algorithmic" | "filecontents" => {
                self.kept(at, end, ScrubRule::Code)
            }
            "thebibliography" => self.kept(at, end, ScrubRule::Bibliography),
            tabular if is_tabular(tabular) => {
                let end = nested_end(self.text, head, name).unwrap_or(end);
                self.tabular(at, head, end, &close, name);
                end
            }
            "table" | "figure" | "wraptable" | "sidewaystable" => {
                self.flush(at);
                self.caption = self.text[head..end].find("\\caption").and_then(|found| {
                    let start = head + found;
                    let open = opened(&self.text[start..], "\\caption")?;
                    Some(start + open..braces(self.text, start + open).min(end))
                });
                self.float_end = end;
                head
            }
            "abstract" => {
                self.flush(at);
                self.section = SectionKind::Results;
                head
            }
            _ => head,
        }
    }

    /// Keeps the numbers of a picture, except the values that a plot shows.
    fn plot(&mut self, at: usize, end: usize) -> usize {
        self.flush(at);
        let mut from = at;
        while let Some(found) = self.text[from..end].find("coordinates") {
            let start = from + found + "coordinates".len();
            let open = start + self.text[start..end].len() - self.text[start..end].trim_start().len();
            from = start;
            if self.text[open..end].starts_with('{') {
                let close = braces(self.text, open).min(end);
                self.push(BlockKind::Kept(ScrubRule::Code), self.begun..open);
                let inner = open + 1..close - usize::from(self.text[..close].ends_with('}'));
                self.push(BlockKind::Table(points(self.text, inner)), open..close);
                from = close;
            }
        }
        self.push(BlockKind::Kept(ScrubRule::Code), self.begun..end);
        end
    }

    fn tabular(&mut self, at: usize, head: usize, end: usize, close: &str, name: &str) {
        self.flush(at);
        let mut body = head;
        let of_width =
            matches!(name, "tabularx" | "tabular*" | "tabulary" | "xltabular" | "NiceTabularX" | "NiceTabular*");
        arguments(self.text, &mut body, if of_width { 2 } else { 1 });
        let body = body.min(end);
        let foot = if self.text[..end].ends_with(close) { end - close.len() } else { end };
        let foot = foot.max(body);
        self.push(BlockKind::Kept(ScrubRule::Layout), at..body);
        let mut table = rows(self.text, body..foot);
        if at < self.float_end {
            table.caption.clone_from(&self.caption);
        }
        self.push(BlockKind::Table(table), body..foot);
        self.begun = end;
    }
}

/// Returns the position of the brace that opens the argument of `command`, after a star and an optional argument.
fn opened(rest: &str, command: &str) -> Option<usize> {
    let mut at = rest.strip_prefix(command).map(|_| command.len())?;
    if rest[at..].starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    arguments(rest, &mut at, 0);
    rest[at..].starts_with('{').then_some(at)
}

/// Whether an environment is a table.
fn is_tabular(name: &str) -> bool {
    const TABLES: [&str; 17] = [
        "tabular",
        "tabularx",
        "tabulary",
        "longtable",
        "array",
        "supertabular",
        "tblr",
        "longtblr",
        "talltblr",
        "NiceTabular",
        "NiceTabularX",
        "tabu",
        "longtabu",
        "xltabular",
        "xtabular",
        "ltxtable",
        "deluxetable",
    ];
    TABLES.contains(&name.trim_end_matches('*'))
}

/// Returns the position after the end of a table whose `\begin` ends at `head`; `None` if it is never closed. The table
/// may contain others of its name. Comments do not count.
fn nested_end(text: &str, head: usize, name: &str) -> Option<usize> {
    let (open, close) = (format!("\\begin{{{name}}}"), format!("\\end{{{name}}}"));
    let is_comment = |at: usize| {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        line.match_indices('%').any(|(place, _)| !line[..place].ends_with('\\'))
    };
    let (mut at, mut depth) = (head, 1_usize);
    while let Some(end) = text[at..].find(&close).map(|found| at + found) {
        depth += text[at..end].match_indices(&open).filter(|(found, _)| !is_comment(at + found)).count();
        at = end + close.len();
        if !is_comment(end) {
            depth -= 1;
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Returns the name of the environment that begins at the start of this text.
fn environment_name(text: &str) -> Option<&str> {
    text.strip_prefix("\\begin{").and_then(|name| name.split_once('}')).map(|(name, _)| name)
}

/// Splits the coordinates of a plot, such as `(Ours, 93.4) (Base, 71.3)`, into rows with a label and values.
fn points(text: &str, range: Range<usize>) -> TableLayout {
    let mut table = TableLayout::default();
    let mut at = range.start;
    while let Some(open) = text[at..range.end].find('(').map(|found| at + found) {
        let close = text[open..range.end].find(')').map_or(range.end, |found| open + found);
        // Leave the label's cell empty, because words of the label would otherwise decide about the value.
        let mut row = vec![TableCell { range: open + 1..open + 1, span: 1 }];
        let mut start = open + 1;
        for part in text[start..close].split(',') {
            if start > open + 1 {
                row.push(TableCell { range: start..start + part.len(), span: 1 });
            }
            start += part.len() + 1;
        }
        table.rows.push(row);
        at = close.max(open + 1);
    }
    table
}

/// Splits a table into rows at `\\` and cells at `&`; the header ends at the first rule below a row.
fn rows(text: &str, range: Range<usize>) -> TableLayout {
    let bytes = text.as_bytes();
    let mut table = TableLayout::default();
    let mut row: Vec<TableCell> = Vec::new();
    let mut begun = range.start;
    let mut at = range.start;
    let cell = |start: usize, end: usize| TableCell { range: start..end, span: span(&text[start..end]) };
    while at < range.end {
        match bytes[at] {
            b'&' => {
                row.push(cell(begun, at));
                begun = at + 1;
                at += 1;
            }
            b'\\' if bytes.get(at + 1) == Some(&b'\\') => {
                row.push(cell(begun, at));
                table.rows.push(std::mem::take(&mut row));
                at += 2;
                arguments(&text[..range.end], &mut at, 0);
                begun = at;
            }
            b'\\' => {
                // A table in a cell, as for a header of two lines, is a part of the cell.
                if let Some(name) = environment_name(&text[at..range.end]).filter(|name| is_tabular(name)) {
                    let head = at + "\\begin{}".len() + name.len();
                    at = nested_end(text, head, name).unwrap_or(head).min(range.end);
                    continue;
                }
                let rule = ["\\midrule", "\\hline", "\\cmidrule", "\\cline"];
                if table.header == 0 && rule.iter().any(|rule| text[at..].starts_with(rule)) {
                    table.header = table.rows.len();
                }
                at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8);
            }
            _ => at += 1,
        }
    }
    if begun < range.end {
        row.push(cell(begun, range.end));
    }
    if row.iter().any(|cell| text[cell.range.clone()].chars().any(|c| c.is_ascii_digit())) {
        table.rows.push(row);
    }
    if table.header == 0 && table.rows.len() > 1 {
        table.header = 1;
    }
    table
}

/// Returns the number of columns that a cell spans.
fn span(cell: &str) -> usize {
    cell.split_once("\\multicolumn{")
        .and_then(|(_, rest)| rest.split_once('}'))
        .and_then(|(count, _)| count.trim().parse().ok())
        .map_or(1, |count: usize| count.clamp(1, 100))
}
