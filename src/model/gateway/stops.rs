//! The texts at which a client wants a reply to end.

/// A text before the first of its stops.
pub(super) fn stop_at<'a>(text: &'a str, stops: &[String]) -> &'a str {
    let end = stops.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| text.find(stop.as_str())).min();
    &text[..end.unwrap_or(text.len())]
}

/// At which of its stops a text is cut.
pub(super) fn which<'a>(text: &str, stops: &'a [String]) -> Option<&'a str> {
    let end = stop_at(text, stops).len();
    stops.iter().find(|stop| !stop.is_empty() && text[end..].starts_with(stop.as_str())).map(String::as_str)
}

/// Of a text that goes on, the bytes that no stop can take away any more: all up to the first stop, without an end with
/// which a stop may begin. And whether there is a stop.
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
    use super::safe;

    #[test]
    fn an_end_that_may_become_a_stop_waits() {
        let stops = ["STOP".to_owned(), "é!".to_owned()];
        assert_eq!(safe("go ST", &stops), (3, false));
        assert_eq!(safe("go STx", &stops), (6, false));
        assert_eq!(safe("go STOP on", &stops), (3, true));
        assert_eq!(safe("go é", &stops), (3, false));
        assert_eq!(safe("", &stops), (0, false));
    }
}
