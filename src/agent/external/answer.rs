//! The answer in what a program printed: its last JSON object.

use serde_json::Value;

/// The last JSON object in a text, as it was written. Objects within it do not count, nor what only begins like one.
pub(super) fn last_object(text: &str) -> Option<&str> {
    let mut last = None;
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|open| from + open) {
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

    proptest! {
        #[test]
        fn an_object_is_found_after_any_text_without_braces(before in "[^{}]{0,40}", after in "[^{}]{0,40}") {
            let text = format!("{before}{{\"k\": [1, {{}}]}}{after}");
            prop_assert_eq!(last_object(&text), Some("{\"k\": [1, {}]}"));
        }
    }
}
