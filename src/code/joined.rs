//! Hides line breaks inside brackets from the parser, which would wrongly interpret the indentation of the next line.
//!
//! The grammar's scanner knows that it is inside brackets only where a closing bracket is allowed. After an operator or
//! a dot, no closing bracket is allowed: if the next line is indented less than the block, the scanner then wrongly
//! concludes that the block ends. For Python, `(a.\nb)` is one expression, whatever the indentation of `b`.

use std::ops::Range;

use tree_sitter::{Point, Range as Stretch};

/// Returns the parts of the text that the parser reads. The parser skips the text between these parts: the line breaks
/// inside brackets, each with the comment before it. Meaning and offsets stay the same. Returns `None` if nothing has
/// to be skipped.
pub(super) fn stretches(text: &[u8]) -> Option<Vec<Stretch>> {
    let gaps = gaps(text);
    if gaps.is_empty() {
        return None;
    }
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1))
        .collect();
    let point = |at: usize| {
        let row = starts.partition_point(|&start| start <= at) - 1;
        Point::new(row, at - starts[row])
    };
    let edges = std::iter::once(0).chain(gaps.iter().flat_map(|gap| [gap.start, gap.end])).chain([text.len()]);
    let edges: Vec<usize> = edges.collect();
    let kept = edges.chunks_exact(2).map(|edge| Stretch {
        start_byte: edge[0],
        end_byte: edge[1],
        start_point: point(edge[0]),
        end_point: point(edge[1]),
    });
    Some(kept.collect())
}

/// Returns the line breaks inside brackets, each with the comment before it. A line break that is the only separator
/// between two words is not returned, because without it they would become one word.
fn gaps(text: &[u8]) -> Vec<Range<usize>> {
    let mut gaps = Vec::new();
    let mut depth = 0_usize;
    let mut last = 0_u8;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            quote @ (b'"' | b'\'') => {
                at = behind_string(text, at);
                last = quote;
                continue;
            }
            b'#' | b'\n' => {
                let end = text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |line| at + line + 1);
                if depth > 0 && !(ends_word(last) && text.get(end).copied().is_some_and(ends_word)) {
                    gaps.push(at..end);
                }
                at = end;
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !text[at].is_ascii_whitespace() {
            last = text[at];
        }
        at += 1;
    }
    gaps
}

/// Whether the byte may be part of a name, a number or a string's quotes. Two such bytes side by side would merge into
/// one token.
fn ends_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || matches!(byte, b'_' | b'"' | b'\'')
}

/// Returns the offset after the string whose opening quote is at `at`.
fn behind_string(text: &[u8], at: usize) -> usize {
    let quote = text[at];
    let triple = text[at..].starts_with(&[quote; 3]);
    let mut at = at + if triple { 3 } else { 1 };
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b'\n' if !triple => return at,
            byte if byte == quote && !triple => return at + 1,
            byte if byte == quote && text[at..].starts_with(&[quote; 3]) => return at + 3,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::gaps;

    #[test]
    fn lines_are_joined_only_inside_brackets_and_never_merge_two_words() {
        let text = b"x = (a +  # why\nb)\ny = [1\n2]\nz = '(.\\\n'\nw = '''(\n+\n'''\n(v.\n\nu)\n";
        let found: Vec<&[u8]> = gaps(text).into_iter().map(|gap| &text[gap]).collect();
        assert_eq!(found, [&b"# why\n"[..], b"\n", b"\n"]);
    }
}
