//! The end of a long text, for messages.

/// Returns the last `most` characters of a text.
pub(crate) fn tail(text: &str, most: usize) -> &str {
    let start = text.char_indices().rev().take(most).last().map_or(text.len(), |(at, _)| at);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_reduced_to_its_last_whole_characters() {
        assert_eq!(["abc", "äöü", "ab", ""].map(|text| tail(text, 2)), ["bc", "öü", "ab", ""]);
        assert_eq!(tail("abc", 0), "");
    }
}
