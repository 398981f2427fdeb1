//! Splits any text into Python's tokens: code, and also prose, notebooks or patches that may contain code.
//!
//! A separate tokenizer is used instead of a syntax tree. The tree of prose that contains code depends on how the
//! parser recovers from errors, so the same lines of code would have different tokens in a README and in a module. Here
//! a token depends on little more than its own bytes. Spaces, line breaks, line continuations and comments are not
//! tokens.

use std::ops::Range;

/// The tokens of a text.
#[derive(Debug, Clone)]
pub struct CodeTokens<'source> {
    source: &'source [u8],
    tokens: Vec<CodeToken>,
}

/// A token, as a range of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeToken {
    start: usize,
    end: usize,
    /// Whether the token is a name and not a keyword.
    pub(super) is_identifier: bool,
    /// Hash of the token's bytes.
    pub(super) hash: u64,
}

impl CodeToken {
    /// Range of the token in its text.
    pub(super) const fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

impl<'source> CodeTokens<'source> {
    /// Splits any text into tokens, including code that does not parse.
    #[must_use]
    pub fn new(source: &'source [u8]) -> Self {
        Self::split(source, 0..source.len())
    }

    /// Splits a part of a text into tokens. The tokens' ranges are relative to the whole text.
    #[must_use]
    pub fn split(source: &'source [u8], part: Range<usize>) -> Self {
        let mut lexer = Lexer { source, end: part.end, at: part.start, tokens: Vec::with_capacity(part.len() / 4) };
        while lexer.at < lexer.end {
            lexer.step();
        }
        Self { source, tokens: lexer.tokens }
    }

    /// Gives all comparison operators, `and`, `or`, `True` and `False` the same hash, and removes every `not`. Two
    /// bodies that are opposites, such as those of `__eq__` and `__ne__`, then have the same tokens.
    #[must_use]
    pub(super) fn without_truth(mut self) -> Self {
        const TRUTH: [&[u8]; 12] =
            [b"==", b"!=", b"<", b"<=", b">", b">=", b"and", b"or", b"in", b"is", b"True", b"False"];
        let source = self.source;
        self.tokens.retain(|token| &source[token.range()] != b"not");
        for token in self.tokens.iter_mut().filter(|token| TRUTH.contains(&&source[token.range()])) {
            token.hash = hash(b"truth");
        }
        self
    }

    /// Number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Iterates over the ranges of tokens that are contents of strings of at least `least` bytes. Code may be hidden in
    /// such strings.
    pub fn long_strings(&self, least: usize) -> impl Iterator<Item = Range<usize>> {
        // A token does not record whether it is the contents of a string. So select long tokens that begin directly
        // after a quote. After a closing quote, other tokens may follow directly, but they are usually shorter than
        // `least`.
        self.tokens
            .windows(2)
            .filter(move |pair| {
                let inside = pair[1].range();
                inside.len() >= least
                    && pair[0].end == inside.start
                    && matches!(self.source[pair[0].end - 1], b'"' | b'\'')
            })
            .map(|pair| pair[1].range())
    }

    /// Iterates over the ranges of the tokens.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.tokens.iter().map(CodeToken::range)
    }

    pub(super) fn tokens(&self) -> &[CodeToken] {
        &self.tokens
    }
}

/// Maximum bytes of a string on one line. If no closing quote follows within this length, a quote is a token by itself.
/// Searching further would take quadratic time in a file of one long line.
const LONGEST_STRING: usize = 2000;

struct Lexer<'source> {
    source: &'source [u8],
    /// Offset of the end of the part that is split into tokens.
    end: usize,
    at: usize,
    tokens: Vec<CodeToken>,
}

impl Lexer<'_> {
    /// Moves past one token, or past a character that is not a token.
    fn step(&mut self) {
        let byte = self.source[self.at];
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => self.at += 1,
            b'#' => self.at = self.line_end(self.at),
            b'\\' if matches!(self.peek(1), b'\n' | b'\r') => self.at += 1,
            b'"' | b'\'' => self.string(self.at),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            _ if is_name(byte) => self.name(),
            _ => self.operator(),
        }
    }

    /// Returns the byte that is `ahead` bytes after the current one; 0 after the end.
    fn peek(&self, ahead: usize) -> u8 {
        if self.at + ahead < self.end { self.source[self.at + ahead] } else { 0 }
    }

    fn line_end(&self, from: usize) -> usize {
        let rest = &self.source[from..self.end];
        rest.iter().position(|&byte| byte == b'\n').map_or(self.end, |length| from + length)
    }

    fn push(&mut self, range: Range<usize>, is_identifier: bool) {
        let hash = hash(&self.source[range.clone()]);
        self.tokens.push(CodeToken { start: range.start, end: range.end, is_identifier, hash });
        self.at = range.end;
    }

    /// Reads a name, a keyword, or the prefix of a string.
    fn name(&mut self) {
        let start = self.at;
        let mut end = start;
        while end < self.end && is_name(self.source[end]) {
            end += 1;
        }
        let word = &self.source[start..end];
        let prefix = word.len() <= 2 && word.iter().all(|letter| b"rRbBuUfFtT".contains(letter));
        if prefix && end < self.end && matches!(self.source[end], b'"' | b'\'') {
            self.string(end);
        } else {
            self.push(start..end, !is_keyword(word));
        }
    }

    fn number(&mut self) {
        let start = self.at;
        let hexadecimal = matches!(self.peek(1), b'x' | b'X');
        let mut end = start;
        while end < self.end {
            let byte = self.source[end];
            let signed = matches!(byte, b'+' | b'-') && matches!(self.source[end - 1], b'e' | b'E') && !hexadecimal;
            if !(byte == b'.' || byte == b'_' || byte.is_ascii_alphanumeric() || (signed && end > start)) {
                break;
            }
            end += 1;
        }
        self.push(start..end, false);
    }

    /// Reads a string whose quotes begin at `quote`, as three tokens: the prefix with the quotes, the contents, and the
    /// closing quotes. The contents of an f-string are split at its replacement fields, and the code in these fields is
    /// split into tokens. A quote without a closing quote, as in "don't", is a token by itself.
    fn string(&mut self, quote: usize) {
        let prefix = &self.source[self.at..quote];
        let formatted = prefix.iter().any(|letter| matches!(letter, b'f' | b'F' | b't' | b'T'));
        let mark = self.source[quote];
        let triple = self.source[quote..self.end].starts_with(&[mark; 3]);
        let width = if triple { 3 } else { 1 };
        let inside = quote + width;
        let Some(close) = self.closing(inside, mark, triple) else {
            if quote > self.at {
                self.push(self.at..quote, true);
            }
            self.push(quote..quote + 1, false);
            return;
        };
        self.push(self.at..inside, false);
        if formatted {
            self.formatted(inside, close);
        } else if close > inside {
            self.push(inside..close, false);
        }
        self.push(close..close + width, false);
    }

    /// Returns the offset of a string's closing quotes.
    fn closing(&self, inside: usize, mark: u8, triple: bool) -> Option<usize> {
        let mut at = inside;
        let end = if triple { self.end } else { self.end.min(inside + LONGEST_STRING) };
        while at < end {
            match self.source[at] {
                b'\\' => at += 1,
                b'\n' if !triple => return None,
                byte if byte == mark && (!triple || self.source[at..self.end].starts_with(&[mark; 3])) => {
                    return Some(at);
                }
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Reads the contents of an f-string.
    fn formatted(&mut self, inside: usize, close: usize) {
        let end = std::mem::replace(&mut self.end, close);
        let mut text = inside;
        self.at = inside;
        while self.at < close {
            let double = self.peek(1) == self.source[self.at];
            match self.source[self.at] {
                b'{' | b'}' if double => self.at += 2,
                b'{' => {
                    if self.at > text {
                        self.push(text..self.at, false);
                    }
                    let mut depth = 0_usize;
                    while self.at < close {
                        match self.source[self.at] {
                            b'{' => depth += 1,
                            b'}' => depth -= 1,
                            _ => {}
                        }
                        self.step();
                        if depth == 0 {
                            break;
                        }
                    }
                    text = self.at;
                }
                _ => self.at += 1,
            }
        }
        if close > text {
            self.push(text..close, false);
        }
        self.end = end;
    }

    fn operator(&mut self) {
        const THREE: [&[u8]; 5] = [b"**=", b"//=", b">>=", b"<<=", b"..."];
        const TWO: [&[u8]; 20] = [
            b"**", b"//", b">>", b"<<", b"<=", b">=", b"==", b"!=", b"->", b"+=", b"-=", b"*=", b"/=", b"%=", b"@=",
            b"&=", b"|=", b"^=", b":=", b"<>",
        ];
        let rest = &self.source[self.at..self.end];
        let width = if THREE.iter().any(|operator| rest.starts_with(operator)) {
            3
        } else if TWO.iter().any(|operator| rest.starts_with(operator)) {
            2
        } else {
            1
        };
        self.push(self.at..self.at + width, false);
    }
}

const fn is_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// Whether a word is one of Python's keywords.
fn is_keyword(word: &[u8]) -> bool {
    const KEYWORDS: [&str; 35] = [
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
        "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
        "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
    ];
    (2..=8).contains(&word.len()) && KEYWORDS.binary_search_by(|keyword| keyword.as_bytes().cmp(word)).is_ok()
}

/// Computes the 64-bit FNV-1a hash.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        CodeTokens::new(text.as_bytes()).tokens().iter().map(|token| &text[token.range()]).collect()
    }

    #[test]
    fn code_is_split_into_the_same_tokens_as_by_python() {
        let expected = ["x", "**=", "a", "[", "1", ":", "2", "]", "->", "1.5e-3", "-", "0x1f", "...", "@", ".5"];
        assert_eq!(words("x **= a[1:2] \\\n -> 1.5e-3-0x1f ... @ .5 # no"), expected);
    }

    #[test]
    fn strings_are_split_into_quotes_and_contents_and_f_strings_also_into_their_code() {
        assert_eq!(words("rb'a\\'b' + \"\""), ["rb'", "a\\'b", "'", "+", "\"", "\""]);
        assert_eq!(words("\"\"\"two\n\"lines\"\"\"\""), ["\"\"\"", "two\n\"lines", "\"\"\"", "\""]);
        assert_eq!(
            words("f'{{n}} {x:>{w}} of {d[\"k\"]}.'"),
            [
                "f'", "{{n}} ", "{", "x", ":", ">", "{", "w", "}", "}", " of ", "{", "d", "[", "\"", "k", "\"", "]",
                "}", ".", "'"
            ]
        );
    }

    #[test]
    fn prose_and_broken_code_are_tokenised_too() {
        assert_eq!(words("don't\nx = 1"), ["don", "'", "t", "x", "=", "1"]);
        assert_eq!(words("\"\"\"open\nx"), ["\"", "\"", "\"", "open", "x"]);
        assert_eq!(words("f'open {x"), ["f", "'", "open", "{", "x"]);
        assert_eq!(words("f'}{ }}'"), ["f'", "}", "{", "}", "}", "'"]);
    }

    #[test]
    fn only_long_string_literals_are_found_and_neither_short_strings_nor_long_names() {
        let text = b"s = 'a long enough inside'\nabcdefghijklmnopqrst = 'short'\n";
        let tokens = CodeTokens::new(text);
        let found: Vec<&[u8]> = tokens.long_strings(10).map(|range| &text[range]).collect();
        assert_eq!(found, [b"a long enough inside"]);
    }

    #[test]
    fn tokens_of_python_keywords_do_not_count_as_identifiers() {
        let tokens = CodeTokens::new(b"for name in yield lambda False match");
        let names: Vec<bool> = tokens.tokens().iter().map(|token| token.is_identifier).collect();
        assert_eq!(names, [false, true, false, false, false, false, true]);
    }

    proptest::proptest! {
        #[test]
        fn tokens_of_any_bytes_are_in_order_and_within_the_text(bytes: Vec<u8>, code in "[a-f{}'\"\\\\ \n.0-9]{0,60}") {
            for text in [bytes.as_slice(), code.as_bytes()] {
                let tokens = CodeTokens::new(text);
                let mut last = 0;
                for token in tokens.tokens() {
                    proptest::prop_assert!(token.start >= last && token.end > token.start && token.end <= text.len());
                    last = token.end;
                }
            }
        }
    }
}
