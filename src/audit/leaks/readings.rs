//! The ways to read a file in search of hidden code: comments, strings, prose, patches, notebooks.
//!
//! Nearly all readings are the file with some of its bytes blanked, so that offsets stay valid.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::code::CodeTokens;

/// The contents of strings of at least this many bytes are also read as code.
const LONG_STRING: usize = 24;

/// A `<` without a `>` within this many bytes does not begin a tag.
const LONGEST_TAG: usize = 1000;

/// One way to read a file.
pub struct FileReading<'bytes> {
    /// The bytes of the file, some of them perhaps blanked, or the bytes of a text that the file contains.
    pub bytes: Cow<'bytes, [u8]>,
    /// The range of `bytes` that is split into tokens; the rest is ignored.
    pub part: Range<usize>,
    /// Whether offsets in `bytes` are also offsets in the file.
    pub in_place: bool,
}

impl<'bytes> FileReading<'bytes> {
    fn whole(bytes: impl Into<Cow<'bytes, [u8]>>) -> Self {
        let bytes = bytes.into();
        Self { part: 0..bytes.len(), bytes, in_place: true }
    }

    /// Splits the range [`Self::part`] of the bytes into tokens.
    pub fn tokens(&self) -> CodeTokens<'_> {
        CodeTokens::split(&self.bytes, self.part.clone())
    }
}

/// Reads a Python file in several ways: its code, its comments, and each of its long strings.
pub(super) fn of_python(bytes: &[u8]) -> Vec<FileReading<'_>> {
    let code = FileReading::whole(bytes);
    let tokens = code.tokens();
    let mut readings: Vec<_> = strings(bytes, &tokens);
    readings.push(FileReading::whole(only_comments(bytes, &tokens)));
    drop(tokens);
    readings.push(code);
    readings
}

/// Reads a file that is not Python code in several ways, which depend on its contents. `ending` is the file's extension
/// in lower case.
pub(super) fn of_text<'bytes>(bytes: &'bytes [u8], ending: &str) -> Vec<FileReading<'bytes>> {
    if bytes.contains(&0) {
        // A binary file may contain uncompressed code.
        return vec![FileReading::whole(only_text(bytes))];
    }
    let mut readings = vec![FileReading::whole(bytes)];
    readings.extend(strings(bytes, &CodeTokens::new(bytes)));
    readings.push(FileReading::whole(blank_lines(bytes, |line| {
        // Blank two prefixes of each line, because a comment mark may be followed by a prompt such as `>>>`.
        blank_prefix(line);
        blank_prefix(line);
    })));
    if bytes.starts_with(b"@@ ") || bytes.windows(4).any(|start| start == b"\n@@ ") {
        for (other, own) in [(b'-', b'+'), (b'+', b'-')] {
            readings.push(FileReading::whole(blank_lines(bytes, |line| match line.first() {
                Some(first) if *first == other => line.fill(b' '),
                Some(first) if *first == own => line[0] = b' ',
                _ => {}
            })));
        }
    }
    if bytes.windows(2).any(|pair| pair == br"\n") {
        readings.push(FileReading::whole(unescaped(bytes)));
    }
    if matches!(ending, "html" | "htm" | "xhtml" | "xml") {
        readings.push(FileReading::whole(without_tags(bytes)));
    }
    if matches!(ending, "ipynb" | "json")
        && let Ok(value) = serde_json::from_slice(bytes)
    {
        joined_lines(&value, &mut |text| {
            readings.push(FileReading { in_place: false, ..FileReading::whole(text.into_bytes()) });
        });
    }
    readings
}

/// Blanks long tables of numbers: long lines, or many lines in a row, that have no two adjacent letters and so contain
/// no code.
pub(super) fn without_tables(bytes: &[u8]) -> Cow<'_, [u8]> {
    const LINES: usize = 30;
    const LENGTH: usize = 2000;
    let has_words = |line: &[u8]| line.windows(2).any(|pair| pair.iter().all(u8::is_ascii_alphabetic));
    let mut out = Cow::Borrowed(bytes);
    let (mut run_start, mut lines, mut at) = (0, 0, 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n').map(Some).chain([None]) {
        match line {
            Some(line) if !has_words(line) => lines += 1 + LINES * (line.len() / LENGTH),
            _ => {
                if lines >= LINES {
                    out.to_mut()[run_start..at].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                }
                lines = 0;
                run_start = at + line.map_or(0, <[u8]>::len);
            }
        }
        at += line.map_or(0, <[u8]>::len);
    }
    out
}

/// Blanks a binary file except for stretches of text.
fn only_text(bytes: &[u8]) -> Vec<u8> {
    const SHORTEST: usize = 24;
    let is_text = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    let mut out = bytes.to_vec();
    for run in out.chunk_by_mut(|&a, &b| is_text(a) == is_text(b)) {
        if run.len() < SHORTEST || !is_text(run[0]) {
            run.fill(b' ');
        }
    }
    out
}

fn strings<'bytes>(bytes: &'bytes [u8], tokens: &CodeTokens<'_>) -> Vec<FileReading<'bytes>> {
    tokens.long_strings(LONG_STRING).map(|part| FileReading { part, ..FileReading::whole(bytes) }).collect()
}

/// Blanks everything but comments.
fn only_comments(bytes: &[u8], tokens: &CodeTokens<'_>) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for range in tokens.ranges() {
        for byte in &mut out[range] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    // All tokens are blank now, and no token overlaps a comment, so only the comments remain. Blank their `#` marks,
    // too, which aren't part of the text.
    for byte in &mut out {
        if *byte == b'#' {
            *byte = b' ';
        }
    }
    out
}

/// Returns a copy of the bytes, in each line of which `blank` has replaced some parts by blanks.
fn blank_lines(bytes: &[u8], blank: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out.split_mut(|&byte| byte == b'\n').for_each(blank);
    out
}

/// Blanks the prefix of a line of quoted code: a prompt such as `>>>` or `$`, a line number, or the mark of a comment,
/// quote, patch or list.
fn blank_prefix(line: &mut [u8]) {
    const MARKS: [&[u8]; 14] =
        [b">>>", b"...", b"//", b"--", b">", b"#", b"|", b"*", b"+", b"-", b"%", b"$", b"!", b";"];
    let start = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let rest = &mut line[start..];
    if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(mark)) {
        rest[..mark.len()].fill(b' ');
        return;
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 && rest.get(digits).is_some_and(|behind| b" \t:|".contains(behind)) {
        rest[..=digits].fill(b' ');
    }
}

/// Resolves the escapes of JSON, YAML and Python strings, and blanks the escaping byte.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at + 1 < out.len() {
        if out[at] == b'\\' {
            out[at] = b' ';
            out[at + 1] = match out[at + 1] {
                b'n' | b'r' => b'\n',
                b't' => b' ',
                other => other,
            };
            at += 1;
        }
        at += 1;
    }
    out
}

/// Blanks HTML tags and resolves entities.
fn without_tags(bytes: &[u8]) -> Vec<u8> {
    const ENTITIES: [(&[u8], u8); 6] =
        [(b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&'), (b"&quot;", b'"'), (b"&#39;", b'\''), (b"&#x27;", b'\'')];
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < out.len() {
        let mut width = 1;
        if out[at] == b'<' {
            width = out[at..].iter().take(LONGEST_TAG).position(|&byte| byte == b'>').map_or(1, |end| end + 1);
            out[at..at + width].fill(b' ');
        } else if let Some((entity, plain)) = ENTITIES.iter().find(|(entity, _)| out[at..].starts_with(entity)) {
            width = entity.len();
            out[at..at + width].fill(b' ');
            out[at + width - 1] = *plain;
        }
        at += width;
    }
    out
}

/// Joins lists of lines, which notebooks use for their cells.
fn joined_lines(value: &Value, found: &mut impl FnMut(String)) {
    match value {
        Value::Array(items) if items.len() > 1 && items.iter().all(Value::is_string) => {
            let lines = items.iter().filter_map(Value::as_str);
            found(lines.map(|line| if line.ends_with('\n') { line.to_owned() } else { format!("{line}\n") }).collect());
        }
        Value::Array(items) => items.iter().for_each(|item| joined_lines(item, found)),
        Value::Object(items) => items.values().for_each(|item| joined_lines(item, found)),
        _ => {}
    }
}
