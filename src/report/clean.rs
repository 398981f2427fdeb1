//! Makes text that somebody else wrote safe to show.

/// The text with everything that could steer a terminal or deceive a reader written as a visible escape: control
/// characters (ESC and the C1 range included), line breaks and tabs, direction overrides, invisible characters.
///
/// ```
/// assert_eq!(autoexperiment::report::clean("gpt\u{1b}[2J\n"), r"gpt\u{1b}[2J\n");
/// ```
#[must_use]
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character must not be printed raw.
pub(super) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{061C}' | '\u{180E}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E007F}')
}

/// Cleaned text of at most `most` characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(most.saturating_sub(1)) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text,
    }
}

/// Cleaned text for a CSV cell. A spreadsheet takes text that begins with one of these characters for a formula and may
/// run it (OWASP, "CSV Injection"): an apostrophe before it keeps it text. Numbers are written without this.
pub(crate) fn cell(text: &str) -> String {
    let text = clean(text);
    if text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) { format!("'{text}") } else { text }
}
