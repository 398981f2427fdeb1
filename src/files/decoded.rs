//! Text of files in any usual encoding.

use std::borrow::Cow;

/// Converts UTF-16 with a byte order mark to UTF-8. Other bytes stay as they are.
#[must_use]
pub fn without_utf16(bytes: &[u8]) -> Cow<'_, [u8]> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return Cow::Borrowed(bytes),
    };
    let units: Vec<u16> = bytes[2..].as_chunks().0.iter().map(|pair| unit(*pair)).collect();
    Cow::Owned(String::from_utf16_lossy(&units).into_bytes())
}

/// Returns a file's text; `None` if the file is binary. In a text that is not UTF-8, such as Latin-1, only the characters
/// beyond ASCII are lost.
#[must_use]
pub fn readable_text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let bytes = without_utf16(bytes);
    if is_binary(&bytes) {
        return None;
    }
    Some(match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    })
}

/// Whether the bytes are binary data: they contain NUL bytes, are not UTF-8, and more than one in a hundred is another
/// control character.
/// Archives of texts (tar) and logs that were cut off contain NUL bytes, too, but hardly any other control characters.
fn is_binary(bytes: &[u8]) -> bool {
    let is_control = |byte: &&u8| byte.is_ascii_control() && !matches!(byte, 0 | b'\t' | b'\n' | b'\r');
    bytes.contains(&0)
        && std::str::from_utf8(bytes).is_err()
        && bytes.iter().filter(is_control).count() * 100 > bytes.len()
}

#[cfg(test)]
mod tests {
    use super::readable_text;

    #[test]
    fn texts_in_utf_8_latin_1_and_utf_16_are_readable_and_binary_files_are_not() {
        assert_eq!(readable_text("Müller: 0.87".as_bytes()).as_deref(), Some("Müller: 0.87"));
        assert!(readable_text(b"M\xfcller: 0.87").is_some_and(|text| text.ends_with("ller: 0.87")));
        let units = "\u{feff}a: 0.87".encode_utf16();
        assert_eq!(
            readable_text(&units.clone().flat_map(u16::to_le_bytes).collect::<Vec<_>>()).as_deref(),
            Some("a: 0.87")
        );
        assert_eq!(readable_text(&units.flat_map(u16::to_be_bytes).collect::<Vec<_>>()).as_deref(), Some("a: 0.87"));
        assert_eq!(readable_text(b"\x7fELF\x02\x01\x01\0\xff\x90"), None);
    }

    #[test]
    fn texts_between_nul_bytes_are_readable() {
        for text in ["table.csv\0\0\0ours,0.87\n\0\0".as_bytes(), b"M\xfcller.csv\0\0\0ours,0.87\n\0\0"] {
            assert!(readable_text(text).is_some_and(|text| text.contains("ours,0.87")));
        }
    }
}
