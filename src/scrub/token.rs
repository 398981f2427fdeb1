//! Splits prose into words, numbers and signs. Markup becomes signs, or opaque tokens that no rule looks into.

use super::number::{self, NumberForm};
use super::{MARKERS, MarkupFormat};

/// One word, number or sign, with its position in the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TextToken {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Number of the inline formula that contains the token, if any.
    pub(super) formula: Option<usize>,
    /// Whether blanks precede the token.
    pub(super) spaced: bool,
}

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TokenKind {
    /// Letters; in a formula also the name of a LaTeX command, such as `alpha`. Also the name of a metric with a number
    /// in it, such as `F1`.
    Word,
    /// A number.
    Number(NumberForm),
    /// A marker with which an earlier pass replaced a number.
    Marker,
    /// A single sign, including LaTeX commands that produce one.
    Sign(char),
    /// A part whose numbers mean nothing: a citation, a reference, a link, inline code.
    Opaque,
    /// A place where a sentence ends without a full stop, such as a line break or the start of a list item.
    Break,
}

/// Splits `text[start..end]` into tokens.
pub(super) fn split(text: &str, start: usize, end: usize, format: MarkupFormat) -> Vec<TextToken> {
    let mut splitter = Splitter { text, end, format, tokens: Vec::new(), formula: None, formulas: 0, spaced: true };
    splitter.run(start);
    splitter.tokens
}

struct Splitter<'a> {
    text: &'a str,
    end: usize,
    format: MarkupFormat,
    tokens: Vec<TextToken>,
    formula: Option<usize>,
    formulas: usize,
    spaced: bool,
}

impl Splitter<'_> {
    fn push(&mut self, kind: TokenKind, start: usize, end: usize) {
        self.tokens.push(TextToken { kind, start, end, formula: self.formula, spaced: self.spaced });
        self.spaced = false;
    }

    fn run(&mut self, start: usize) {
        let mut at = start;
        while at < self.end {
            at = self.step(at);
        }
    }

    /// Reads one token and returns the position of the next.
    fn step(&mut self, at: usize) -> usize {
        let rest = &self.text[at..self.end];
        let Some(first) = rest.chars().next() else { return self.end };
        if first.is_whitespace() || (first == '~' && self.format == MarkupFormat::Latex) {
            self.spaced = true;
            return at + first.len_utf8();
        }
        if let Some(marker) = MARKERS.iter().find(|marker| rest.starts_with(**marker)) {
            self.push(TokenKind::Marker, at, at + marker.len());
            return at + marker.len();
        }
        if let Some((end, form)) = number::at(self.text, at)
            && end <= self.end
        {
            self.push(TokenKind::Number(form), at, end);
            return end;
        }
        if first.is_alphabetic() {
            return self.word(at);
        }
        match first {
            '\\' if self.format == MarkupFormat::Latex || self.formula.is_some() => self.command(at),
            '\\' => at + 1,
            '$' if self.format != MarkupFormat::Plain || rest.starts_with("$$") || self.formula.is_some() => {
                self.dollar(at)
            }
            '`' if self.format == MarkupFormat::Markdown => self.code(at),
            '<' if self.format == MarkupFormat::Markdown => self.angle(at),
            '(' if self.format == MarkupFormat::Markdown && self.text[..at].ends_with(']') => {
                self.skip_to(at, ')', TokenKind::Opaque)
            }
            '{' | '}' if self.format == MarkupFormat::Latex || self.formula.is_some() => at + 1,
            '*' | '~' | '\u{200b}' => at + first.len_utf8(),
            '%' if self.format == MarkupFormat::Latex => {
                // The `%` that begins a comment ends a sentence. The comment's text is split like all other text.
                self.push(TokenKind::Break, at, at + 1);
                at + 1
            }
            _ => {
                self.push(TokenKind::Sign(first), at, at + first.len_utf8());
                at + first.len_utf8()
            }
        }
    }

    fn word(&mut self, at: usize) -> usize {
        let rest = &self.text[at..self.end];
        let apostrophe = |place: usize| rest[place + 1..].starts_with(char::is_alphabetic);
        let length = rest
            .char_indices()
            .find(|(place, c)| !(c.is_alphabetic() || (*c == '\'' && apostrophe(*place))))
            .map_or(rest.len(), |(place, _)| place);
        if self.formula.is_none()
            && !self.text[..at].ends_with(char::is_alphanumeric)
            && let Some(length) = super::words::numbered_metric(rest)
        {
            self.push(TokenKind::Word, at, at + length);
            return at + length;
        }
        let link = rest.get(length..).is_some_and(|behind| behind.starts_with("://"));
        if link || rest[..length].eq_ignore_ascii_case("doi") || rest[..length].eq_ignore_ascii_case("arxiv") {
            let length = rest.find([' ', '\n', ')', '>', '}', '"']).unwrap_or(rest.len());
            self.push(TokenKind::Opaque, at, at + length);
            return at + length;
        }
        let ratio = super::words::is_spelt_number(&rest[..length]) && is_ratio(&rest[length..]);
        let kind =
            if ratio { TokenKind::Number(NumberForm { digits: 1, ..NumberForm::default() }) } else { TokenKind::Word };
        self.push(kind, at, at + length);
        at + length
    }

    /// Reads a `$`: the end of an inline formula, or its start if the formula is closed.
    fn dollar(&mut self, at: usize) -> usize {
        let rest = &self.text[at..self.end];
        if let Some(display) = rest.strip_prefix("$$") {
            let length = near(display).find("$$").map_or(2, |end| end + 4);
            self.push(TokenKind::Opaque, at, at + length);
            return at + length;
        }
        if self.formula.take().is_none() {
            let inner = near(&rest[1..]);
            let closed = inner.find('$').is_some_and(|end| {
                end > 0
                    && !inner[..end].contains("\n\n")
                    && (self.format == MarkupFormat::Latex
                        || (!inner.starts_with(char::is_whitespace)
                            && !inner[..end].ends_with(char::is_whitespace)
                            && !inner[end + 1..].starts_with(|c: char| c.is_ascii_digit())))
            });
            if closed {
                self.formula = Some(self.formulas);
                self.formulas += 1;
            }
        }
        at + 1
    }

    fn code(&mut self, at: usize) -> usize {
        let rest = &self.text[at..self.end];
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        let length = near(&rest[ticks..]).find(&rest[..ticks]).map_or(ticks, |end| end + 2 * ticks);
        self.push(TokenKind::Opaque, at, at + length);
        at + length
    }

    /// Reads a `<`. A link or an HTML tag becomes one opaque token. The `<!--` of a comment becomes a break, and the
    /// comment's text is split like all other text.
    fn angle(&mut self, at: usize) -> usize {
        let rest = &self.text[at..self.end];
        if rest.starts_with("<!--") {
            self.push(TokenKind::Break, at, at + 4);
            return at + 4;
        }
        if rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') && !rest[1..].starts_with('\n') {
            return self.skip_to(at, '>', TokenKind::Opaque);
        }
        self.push(TokenKind::Sign('<'), at, at + 1);
        at + 1
    }

    /// Reads one token up to `closing` in the same line, or a single sign if the line doesn't contain it.
    fn skip_to(&mut self, at: usize, closing: char, kind: TokenKind) -> usize {
        let rest = &self.text[at..self.end];
        let rest = near(rest);
        let line = rest.find('\n').unwrap_or(rest.len());
        if let Some(end) = rest[..line].find(closing) {
            self.push(kind, at, at + end + 1);
            return at + end + 1;
        }
        let sign = rest.chars().next().unwrap_or(' ');
        self.push(TokenKind::Sign(sign), at, at + sign.len_utf8());
        at + sign.len_utf8()
    }

    fn command(&mut self, at: usize) -> usize {
        let rest = &self.text[at + 1..self.end];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        if letters == 0 {
            let Some(sign) = rest.chars().next() else { return self.end };
            let next = at + 1 + sign.len_utf8();
            match sign {
                '%' | '&' | '#' | '$' | '{' | '}' => self.push(TokenKind::Sign(sign), at, next),
                '\\' => {
                    self.push(TokenKind::Break, at, next);
                    return self.arguments(next, 0);
                }
                '(' | ')' => {
                    self.formula = if sign == '(' { Some(self.formulas) } else { None };
                    self.formulas += usize::from(sign == '(');
                }
                _ => self.spaced = true,
            }
            return next;
        }
        let name = &rest[..letters];
        let next = at + 1 + letters;
        if let Some(sign) = super::latex::sign(name) {
            self.push(TokenKind::Sign(sign), at, next);
            return next;
        }
        if let Some(units) = super::latex::number_arguments(name)
            && let Some(open) = self.text[next..self.end].find('{')
            && let Some((_, form)) = number::at(self.text, next + open + 1)
        {
            // The arguments of this LaTeX command can contain only a number and units, so the command and its arguments
            // count as one number.
            let end = self.arguments(next, 1 + units);
            self.push(TokenKind::Number(form), at, end);
            return end;
        }
        if let Some(count) = super::latex::opaque_arguments(name) {
            let end = self.arguments(next, count);
            self.push(TokenKind::Opaque, at, end);
            return end;
        }
        match name {
            "item" | "footnote" | "par" | "newline" | "paragraph" | "hline" | "midrule" => {
                self.push(TokenKind::Break, at, next);
            }
            // Font commands carry no meaning, unlike letters such as lambda.
            _ if self.formula.is_some() && !super::latex::is_font(name) => self.push(TokenKind::Word, at + 1, next),
            _ => {}
        }
        next
    }

    /// Returns the position after a LaTeX command's arguments: any optional ones, and `count` in braces.
    fn arguments(&self, mut at: usize, count: usize) -> usize {
        super::latex::arguments(&self.text[..self.end], &mut at, count);
        at
    }
}

/// Returns the first 2,000 bytes of `text`. A `$`, backtick or bracket that was opened before `text` counts as closed
/// only if its end is in these bytes. The limit keeps the time for splitting a text linear.
fn near(text: &str) -> &str {
    const FAR: usize = 2000;
    let mut end = text.len().min(FAR);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whether this text follows the number of a ratio: `-fold`, ` times as`.
fn is_ratio(behind: &str) -> bool {
    behind.starts_with("-fold")
        || behind.strip_prefix(" times ").is_some_and(|rest| {
            super::words::is_comparative(rest.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default())
        })
}
