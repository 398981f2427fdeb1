//! The answer in what a program printed: its last JSON object.

use serde_json::Value;

/// Bytes at the end of a program's output in which its answer is looked for: what is nested on purpose takes long to read.
const LOOKED_AT: usize = 64 << 10;

/// The last JSON object in a text, as it was written. Objects within it do not count, nor what only begins like one, nor
/// what stands further from the end than an answer can be long.
pub(super) fn last_object(text: &str) -> Option<&str> {
    let text = &text[text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT))..];
    let mut last = None;
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|open| from + open) {
        // Values are read up to a depth of 128, so that no beginning is read more often than that.
        let mut values = serde_json::Deserializer::from_str(&text[open..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(_)) => {
                let end = open + values.byte_offset();
                last = Some(&text[open..end]);
                from = end;
            }
            _ => from = open + 1,
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_whole_object_is_the_answer_whatever_stands_around_it() {
        let text = "{\"a\": 1}\n```json\n{\"Experiment 1\": {\"x\": 0.5}}\n```\nDone {really}.\n{\"cut\": ";
        assert_eq!(last_object(text), Some("{\"Experiment 1\": {\"x\": 0.5}}"));
        assert_eq!(last_object("no object"), None);
    }

    #[test]
    fn output_that_is_nested_on_purpose_is_read_in_time() {
        let text = format!("{}[{}", "{\"a\":".repeat(126), "0,".repeat(30 << 10));
        let begun = std::time::Instant::now();
        assert_eq!(last_object(&text), None);
        assert_eq!(last_object(&format!("{}{}", "{\"a\":".repeat(10_000), "{}")), Some("{}"));
        assert!(begun.elapsed() < std::time::Duration::from_mins(1), "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn an_object_is_found_after_any_text_without_braces(before in "[^{}]{0,40}", after in "[^{}]{0,40}") {
            let text = format!("{before}{{\"k\": [1, {{}}]}}{after}");
            prop_assert_eq!(last_object(&text), Some("{\"k\": [1, {}]}"));
        }
    }
}
