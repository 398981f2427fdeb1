//! Detects the encoding of a Python file, and makes a text of the same length that tree-sitter can read.
//!
//! The rules are those of PEP 263 and of Python's tokenizer: a byte order mark, or a comment such as
//! `# -*- coding: latin-1 -*-` on the first line, or on the second line if the first is blank or a comment; UTF-8
//! otherwise. tree-sitter reads UTF-8 with `\n` or `\r\n`. For other files it is given a substitute text in which every
//! byte has the same offset as in the file, so that offsets in the text are valid for the file.

use std::borrow::Cow;

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8, with or without a byte order mark, or ASCII.
    Utf8,
    /// ISO 8859-1: each byte is the character of that number.
    Latin1,
    /// Any other encoding in which bytes below 0x80 always mean ASCII. Bytes from 0x80 are kept but never interpreted.
    AsciiSuperset,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Encoding {
    /// Detects the encoding of `source`. The error is a message and the line (from 1) that it is about.
    pub(super) fn detect(source: &[u8]) -> Result<Self, (String, usize)> {
        if let Some(at) = source.iter().position(|&byte| byte == 0) {
            return Err(("the file holds a null byte".to_owned(), line_of(source, at)));
        }
        let marked = source.starts_with(BYTE_ORDER_MARK);
        let (declared, line) = declared(source).unwrap_or(("utf-8", 1));
        let name = declared.to_ascii_lowercase().replace('_', "-");
        let encoding = by_name(&name)
            .ok_or_else(|| (format!("the encoding `{declared}` is unknown or does not extend ASCII"), line))?;
        if marked && encoding != Self::Utf8 {
            return Err((format!("a UTF-8 byte order mark, but the encoding is declared as `{declared}`"), line));
        }
        if encoding == Self::Utf8 {
            let text = std::str::from_utf8(source)
                .map_err(|error| ("the file is not valid UTF-8".to_owned(), line_of(source, error.valid_up_to())))?;
            if is_ascii_name(&name) && !text.is_ascii() {
                return Err(("the file is declared as ASCII but is not".to_owned(), line));
            }
        }
        Ok(encoding)
    }

    /// Returns a text for tree-sitter in which every byte has the same offset as in `source`. Lone carriage returns,
    /// which end a line in Python, become line feeds. Bytes that are not UTF-8 become underscores, which are allowed
    /// wherever a letter is: in names, strings and comments.
    pub(super) fn readable(self, source: &[u8]) -> Cow<'_, [u8]> {
        let lone_return =
            |at: usize| source.get(at) == Some(&b'\r') && source.get(at + 1).is_none_or(|&next| next != b'\n');
        let returns = source.contains(&b'\r') && (0..source.len()).any(lone_return);
        let foreign = self != Self::Utf8 && !source.is_ascii();
        if !returns && !foreign {
            return Cow::Borrowed(source);
        }
        let stand_in = |at: usize| match source[at] {
            b'\r' if lone_return(at) => b'\n',
            byte if foreign && !byte.is_ascii() => b'_',
            byte => byte,
        };
        Cow::Owned((0..source.len()).map(stand_in).collect())
    }

    /// Decodes a name in the source. Returns `None` if the name has non-ASCII letters and this program does not know
    /// how the encoding writes letters.
    pub(super) fn name(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Utf8 => std::str::from_utf8(bytes).ok().map(str::to_owned),
            Self::Latin1 => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
            Self::AsciiSuperset => bytes.is_ascii().then(|| String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    /// Decodes a part of the source to show it to users. Bytes whose letter is unknown may be shown as `�`.
    pub(super) fn text(self, bytes: &[u8]) -> String {
        self.name(bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Appends a character in this encoding. Returns `false` if the encoding lacks the character, or if this program
    /// does not know its byte.
    pub(super) fn push(self, character: char, to: &mut Vec<u8>) -> bool {
        match (self, u32::from(character)) {
            (_, code @ 0..0x80) | (Self::Latin1, code @ 0x80..=0xff) => to.push(code as u8),
            (Self::Utf8, _) => to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            _ => return false,
        }
        true
    }
}

/// Returns the line (from 1) that contains the byte at `at`.
pub(super) fn line_of(source: &[u8], at: usize) -> usize {
    let ends = |at: &usize| match source[*at] {
        b'\n' => true,
        byte => byte == b'\r' && source.get(at + 1) != Some(&b'\n'),
    };
    1 + (0..at).filter(ends).count()
}

/// Returns the encoding that a comment declares, and the comment's line.
fn declared(source: &[u8]) -> Option<(&str, usize)> {
    let mut rest = source.strip_prefix(BYTE_ORDER_MARK).unwrap_or(source);
    for number in 1..=2 {
        let end = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r').unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        let text = line.trim_ascii_start();
        if !text.is_empty() && text[0] != b'#' {
            return None;
        }
        if let Some(name) = cookie(text) {
            return Some((name, number));
        }
        rest = after.strip_prefix(b"\r\n").or_else(|| after.get(1..))?;
    }
    None
}

/// Returns the name after `coding:` or `coding=` in a comment.
fn cookie(comment: &[u8]) -> Option<&str> {
    let mut rest = comment;
    while let Some(at) = rest.windows(7).position(|window| window == b"coding:" || window == b"coding=") {
        rest = &rest[at + 7..];
        let value = rest.trim_ascii_start();
        let end = value.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"-_.".contains(byte)));
        let name = &value[..end.unwrap_or(value.len())];
        if !name.is_empty() {
            return std::str::from_utf8(name).ok();
        }
    }
    None
}

fn is_ascii_name(name: &str) -> bool {
    matches!(name, "ascii" | "us-ascii" | "646" | "iso646-us" | "ansi-x3.4-1968")
}

/// Looks up an encoding by its (lower-case, hyphenated) Python name. Encodings in which a byte below 0x80 can be part
/// of another character (Shift JIS, GBK, Big5, UTF-16, UTF-7, ISO 2022) are not supported, because such bytes could be
/// mistaken for quotes and backslashes.
fn by_name(name: &str) -> Option<Encoding> {
    let is = |names: &[&str]| names.contains(&name);
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if is_ascii_name(name) || is(&["utf8", "u8", "utf", "cp65001", "utf-8"]) || begins(&["utf-8-"]) {
        return Some(Encoding::Utf8);
    }
    if is(&["latin-1", "latin1", "latin", "l1", "iso-8859-1", "iso8859-1", "iso8859", "8859", "cp819", "iso-latin-1"])
        || begins(&["latin-1-", "iso-8859-1-", "iso-latin-1-"])
    {
        return Some(Encoding::Latin1);
    }
    let known = begins(&["iso-8859-", "iso8859-", "cp125", "windows-125", "koi8-", "mac-", "latin"])
        || is(&[
            "cp437", "cp850", "cp852", "cp855", "cp858", "cp866", "tis-620", "euc-jp", "euc-kr", "gb2312", "euc-cn",
        ]);
    known.then_some(Encoding::AsciiSuperset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_declaration_is_read_only_where_python_reads_it() {
        for (source, encoding) in [
            (&b"x = 1\n"[..], Encoding::Utf8),
            (b"# -*- coding: latin-1 -*-\n", Encoding::Latin1),
            (b"#!/usr/bin/python\n# vim: set fileencoding=iso-8859-1 :\n", Encoding::Latin1),
            (b"#!/usr/bin/python\r\n# coding: ISO_8859_1\r\n", Encoding::Latin1),
            (b"\n# coding=koi8-r\n", Encoding::AsciiSuperset),
            (b"x = 1\n# coding: latin-1\n", Encoding::Utf8),
            (b"\n\n# coding: latin-1\n", Encoding::Utf8),
            (b"\xef\xbb\xbf# coding: utf-8\n", Encoding::Utf8),
            (b"# coding: utf_8_sig\n", Encoding::Utf8),
        ] {
            assert_eq!(Encoding::detect(source), Ok(encoding), "{:?}", String::from_utf8_lossy(source));
        }
    }

    #[test]
    fn files_that_python_would_not_decode_are_refused_with_the_line() {
        for (source, line) in [
            (&b"x = 1\ny = '\xe9'\n"[..], 2),
            (b"# coding: shift_jis\n", 1),
            (b"\n# coding: nonsense\n", 2),
            (b"# coding: ascii\nx = '\xc3\xa9'\n", 1),
            (b"\xef\xbb\xbf# coding: latin-1\n", 1),
            (b"a\nb\n\0\n", 3),
        ] {
            assert_eq!(Encoding::detect(source).unwrap_err().1, line, "{:?}", String::from_utf8_lossy(source));
        }
    }

    #[test]
    fn the_copy_for_tree_sitter_has_the_same_byte_offsets_as_the_file() {
        assert_eq!(&*Encoding::Latin1.readable(b"'\xe9'\r\nx\ry\r"), b"'_'\r\nx\ny\n");
        assert!(matches!(Encoding::Utf8.readable("é\r\n".as_bytes()), Cow::Borrowed(_)));
    }
}
