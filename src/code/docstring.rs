//! Writes a docstring for a masked function that has none, from the manifest's description of the function.

use super::encoding::Encoding;

/// Appends `description` as a triple-quoted string literal. Python reads the literal as the description, trimmed at
/// both ends and with its lines indented like the body's. Control characters and characters that the file's encoding
/// lacks are written as escapes. If the description is blank, writes nothing and returns `false`.
pub(super) fn push(description: &str, encoding: Encoding, indent: &[u8], line_ending: &[u8], to: &mut Vec<u8>) -> bool {
    let description = description.trim();
    if description.is_empty() {
        return false;
    }
    to.extend_from_slice(b"\"\"\"");
    let several = description.lines().nth(1).is_some();
    for (number, line) in description.lines().enumerate() {
        let line = line.trim_end();
        if number > 0 {
            to.extend_from_slice(line_ending);
            if !line.is_empty() {
                to.extend_from_slice(indent);
            }
        }
        push_line(line, encoding, to);
    }
    if several {
        to.extend_from_slice(line_ending);
        to.extend_from_slice(indent);
    }
    to.extend_from_slice(b"\"\"\"");
    true
}

fn push_line(line: &str, encoding: Encoding, to: &mut Vec<u8>) {
    let mut quotes = 0;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        quotes = if character == '"' { quotes + 1 } else { 0 };
        match character {
            '\\' => to.extend_from_slice(b"\\\\"),
            // Three quotes in a row would end the literal, as would a quote just before the three closing quotes.
            '"' if quotes == 3 || characters.peek().is_none() => {
                quotes = 0;
                to.extend_from_slice(b"\\\"");
            }
            '\t' => to.push(b'\t'),
            _ if character.is_control() || !encoding.push(character, to) => push_escape(character, to),
            _ => {}
        }
    }
}

fn push_escape(character: char, to: &mut Vec<u8>) {
    let code = u32::from(character);
    let escape = match code {
        0..0x100 => format!("\\x{code:02x}"),
        0x100..0x1_0000 => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    };
    to.extend_from_slice(escape.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(description: &str, encoding: Encoding) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(push(description, encoding, b"  ", b"\r\n", &mut bytes));
        bytes
    }

    #[test]
    fn a_one_line_description_gives_a_one_line_docstring() {
        assert_eq!(made(" The mean. ", Encoding::Utf8), b"\"\"\"The mean.\"\"\"");
    }

    #[test]
    fn a_docstring_of_several_lines_is_indented_like_the_body() {
        assert_eq!(made("One.\n\n  Two.", Encoding::Utf8), b"\"\"\"One.\r\n\r\n    Two.\r\n  \"\"\"");
    }

    #[test]
    fn quotes_and_backslashes_in_a_description_neither_end_nor_change_the_docstring() {
        assert_eq!(made(r#"a "b""#, Encoding::Utf8), br#""""a "b\"""""#);
        assert_eq!(made(r#""""a""""b\n"#, Encoding::Utf8), b"\"\"\"\"\"\\\"a\"\"\\\"\"b\\\\n\"\"\"");
    }

    #[test]
    fn characters_missing_from_the_encoding_are_escaped() {
        assert_eq!(made("é→", Encoding::Utf8), "\"\"\"é→\"\"\"".as_bytes());
        assert_eq!(made("é→", Encoding::Latin1), b"\"\"\"\xe9\\u2192\"\"\"");
        assert_eq!(made("é→🦀", Encoding::AsciiSuperset), b"\"\"\"\\xe9\\u2192\\U0001f980\"\"\"");
        assert_eq!(made("a\u{0}b\u{c}", Encoding::Utf8), b"\"\"\"a\\x00b\"\"\"");
    }

    #[test]
    fn a_blank_description_makes_no_docstring() {
        assert!(!push(" \n", Encoding::Utf8, b"", b"\n", &mut Vec::new()));
    }
}
