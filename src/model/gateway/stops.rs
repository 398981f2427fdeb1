//! Stop texts: texts at which the agent wants a reply to end.

/// Returns the text before the first stop text. The first stop text is the one that would be complete first if the text
/// arrived piece by piece.
pub(super) fn stop_at<'a>(text: &'a str, stops: &[String]) -> &'a str {
    &text[..first(text, stops).map_or(text.len(), |(start, _)| start)]
}

/// Returns the stop text at which a reply with this text ends: the one that is complete first.
pub(super) fn which<'a>(text: &str, stops: &'a [String]) -> Option<&'a str> {
    first(text, stops).map(|(_, stop)| stop)
}

/// Returns the start of the stop text that ends first, and the stop text itself; if several end at the same byte, the
/// longest.
fn first<'a>(text: &str, stops: &'a [String]) -> Option<(usize, &'a str)> {
    let found = |stop: &'a String| Some((text.find(stop.as_str())?, stop.as_str()));
    let found = stops.iter().filter(|stop| !stop.is_empty()).filter_map(found);
    found.min_by_key(|(start, stop)| (start + stop.len(), *start))
}

/// Returns how many bytes of an unfinished text can be sent, and whether a stop text was found. Bytes of the stop text
/// cannot be sent, nor can bytes at the end of the text that may begin a stop text.
pub(super) fn safe(text: &str, stops: &[String]) -> (usize, bool) {
    let whole = stop_at(text, stops);
    if whole.len() < text.len() {
        return (whole.len(), true);
    }
    let begins = |stop: &String| {
        (1..stop.len().min(text.len() + 1))
            .rev()
            .find(|&length| stop.is_char_boundary(length) && text.ends_with(&stop[..length]))
    };
    (text.len() - stops.iter().filter_map(begins).max().unwrap_or(0), false)
}

#[cfg(test)]
mod tests {
    use super::{safe, stop_at, which};

    #[test]
    fn text_that_may_begin_a_stop_sequence_is_held_back() {
        let stops = ["STOP".to_owned(), "é!".to_owned()];
        assert_eq!(safe("go ST", &stops), (3, false));
        assert_eq!(safe("go STx", &stops), (6, false));
        assert_eq!(safe("go STOP on", &stops), (3, true));
        assert_eq!(safe("go é", &stops), (3, false));
        assert_eq!(safe("", &stops), (0, false));
    }

    #[test]
    fn a_text_ends_at_the_stop_sequence_that_is_complete_first() {
        let stops = ["aba".to_owned(), "b".to_owned(), "ab".to_owned()];
        assert_eq!((stop_at("caba", &stops), which("caba", &stops)), ("c", Some("ab")));
        assert_eq!((stop_at("aba", &stops[..2]), which("aba", &stops[..2])), ("a", Some("b")));
        assert_eq!((stop_at("ca", &stops), which("ca", &stops)), ("ca", None));
    }
}
