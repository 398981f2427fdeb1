//! Finds the first and last byte of function bodies, and the indentation of masked bodies.
//!
//! The offsets of the colon, the first statement and the last token come from the syntax tree. Comments between the
//! colon and the first statement, and after the last statement, are part of the body, because they describe the masked
//! code and would give it away. A `# type:` comment after the colon is part of the signature (PEP 484) and is kept.

use std::ops::Range;

/// Returns the range of a function's body. `def` is the offset of the `def` keyword, `colon` the offset after the
/// header, and `last` the offset after the last token.
pub(super) fn body(source: &[u8], def: usize, colon: usize, last: usize) -> Range<usize> {
    let start = if is_type_comment(&source[colon..]) { end_of_line(source, colon) } else { colon };
    start..end(source, last, column(source, def)).max(start)
}

/// Returns the end of a block whose last token ends at `last`. This is the end of that token's line or, if comment
/// lines that are indented deeper than `depth` follow, the end of the last of these lines.
pub(super) fn end(source: &[u8], last: usize, depth: usize) -> usize {
    let mut end = end_of_logical_line(source, last);
    let mut at = end;
    while at < source.len() {
        at = next_line(source, at);
        let text = at + source[at..].iter().take_while(|byte| b" \t\x0c".contains(byte)).count();
        let line_end = end_of_line(source, text);
        if source.get(text) == Some(&b'#') {
            if column(source, text) <= depth {
                break;
            }
            end = line_end;
        } else if text != line_end {
            break;
        }
        at = line_end;
    }
    end
}

/// Returns the start of the line of the statement at `at` or, if comment lines at the same column stand directly above
/// it, the start of the first of them. `at` must be the first token of its line. `is_one` says whether a comment begins
/// at a given offset and belongs to the statement.
pub(super) fn start_with_comments(source: &[u8], at: usize, is_one: impl Fn(usize) -> bool) -> usize {
    let depth = column(source, at);
    let first = if source.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut start = start_of_line(source, at);
    while start > first {
        let above = start_of_line(source, start - if source[..start].ends_with(b"\r\n") { 2 } else { 1 });
        let text = above + source[above..].iter().take_while(|byte| b" \t\x0c".contains(byte)).count();
        if !is_one(text) || column(source, text) != depth {
            break;
        }
        start = above;
    }
    start
}

/// Returns the indentation of a masked body: the indentation of the first statement (at `first`) if that is deeper than
/// the indentation of `def`. Otherwise, for example for a body on the header's line, a tab or four spaces are added to
/// the indentation of `def`.
pub(super) fn indent(source: &[u8], def: usize, first: usize) -> Vec<u8> {
    let outer = indent_of_line(source, def);
    let inner = indent_of_line(source, first);
    if inner.len() > outer.len() && inner.starts_with(outer) {
        return inner.to_vec();
    }
    let step: &[u8] = if outer.ends_with(b"\t") { b"\t" } else { b"    " };
    [outer, step].concat()
}

/// Returns the line ending that follows `at` or, if there is none, the last one before `at`. Returns `\n` if the source
/// has no line ending.
pub(super) fn line_ending(source: &[u8], at: usize) -> &'static [u8] {
    let is_end = |byte: &u8| *byte == b'\n' || *byte == b'\r';
    let next = source[at..].iter().position(is_end).map(|offset| at + offset);
    // The line ending is `\r\n` if a `\r` precedes the `\n`.
    let last = || source[..at].iter().rposition(is_end).map(|end| end - usize::from(source[..=end].ends_with(b"\r\n")));
    match next.or_else(last) {
        Some(end) if source[end..].starts_with(b"\r\n") => b"\r\n",
        Some(end) if source[end] == b'\r' => b"\r",
        _ => b"\n",
    }
}

/// Whether two statements of one block are at the same column. Also true if `other` follows a `;` or a line that ends
/// in a backslash, because such a statement may be at any column.
pub(super) fn aligned(source: &[u8], first: usize, other: usize) -> bool {
    column(source, first) == column(source, other) || !begins_line(source, other)
}

/// Whether the statement at `at` is the first on its line.
pub(super) fn begins_line(source: &[u8], at: usize) -> bool {
    let start = start_of_line(source, at);
    source[start..at].iter().all(|byte| b" \t\x0c".contains(byte)) && !ends_in_backslash(&source[..start])
}

/// Returns the column of the byte at `at`, counted like Python's tokenizer: tabs advance to multiples of eight, form
/// feeds reset to 0.
pub(super) fn column(source: &[u8], at: usize) -> usize {
    source[start_of_line(source, at)..at].iter().fold(0, |column, byte| match byte {
        b'\t' => column / 8 * 8 + 8,
        b'\x0c' => 0,
        _ => column + 1,
    })
}

/// Returns the white space at the start of the line of `at`. If this white space contains form feeds, returns only the
/// part after the last form feed.
pub(super) fn indent_of_line(source: &[u8], at: usize) -> &[u8] {
    let line = &source[start_of_line(source, at)..];
    let space = &line[..line.iter().take_while(|byte| b" \t\x0c".contains(byte)).count()];
    space.rsplit(|&byte| byte == b'\x0c').next().unwrap_or(space)
}

pub(super) fn start_of_line(source: &[u8], at: usize) -> usize {
    let start = source[..at].iter().rposition(|&byte| byte == b'\n' || byte == b'\r').map_or(0, |end| end + 1);
    if start == 0 && source.starts_with(b"\xef\xbb\xbf") { 3.min(at) } else { start }
}

pub(super) fn end_of_line(source: &[u8], at: usize) -> usize {
    source[at..].iter().position(|&byte| byte == b'\n' || byte == b'\r').map_or(source.len(), |offset| at + offset)
}

/// Returns the start of the line after the line ending at `end`.
pub(super) fn next_line(source: &[u8], end: usize) -> usize {
    end + if source[end..].starts_with(b"\r\n") { 2 } else { usize::from(end < source.len()) }
}

/// Returns the end of the line on which a statement ends; `at` is the offset after the statement. The line includes a
/// comment after the statement, and the empty lines that backslashes join to the line.
pub(super) fn end_of_logical_line(source: &[u8], mut at: usize) -> usize {
    loop {
        let end = end_of_line(source, at);
        let rest = &source[at..end];
        if rest.contains(&b'#') || !rest.ends_with(b"\\") || end == source.len() {
            return end;
        }
        at = next_line(source, end);
    }
}

/// Whether the last of `lines` ends in a backslash.
fn ends_in_backslash(lines: &[u8]) -> bool {
    [&b"\\\n"[..], b"\\\r\n", b"\\\r"].iter().any(|end| lines.ends_with(end))
}

fn is_type_comment(after_colon: &[u8]) -> bool {
    let text = after_colon.trim_ascii_start();
    let same_line = !after_colon[..after_colon.len() - text.len()].iter().any(|&byte| byte == b'\n' || byte == b'\r');
    same_line && text.strip_prefix(b"#").is_some_and(|comment| comment.trim_ascii_start().starts_with(b"type:"))
}
