//! Escapes untrusted text (from models, agents and repos) so that it is safe to show.

use std::fmt::Write as _;

/// Escapes visibly everything that could control a terminal or deceive a reader: control characters (ESC and the C1
/// range included), line breaks and tabs, direction overrides, invisible characters.
///
/// ```
/// assert_eq!(autoexperiment::report::clean("gpt\u{1b}[2J\n"), r"gpt\u{1b}[2J\n");
/// ```
#[must_use]
pub fn clean(text: &str) -> String {
    // Return most texts quickly: they are plain names, and tables have millions of them.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
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

/// Escapes the same characters as [`clean`] in JSON, except line breaks between values, which are layout. The JSON means
/// the same as before.
#[must_use]
pub fn safe_json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Line breaks inside strings are escaped already.
        if c != '\n' && is_unsafe(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Whether a character must be escaped before it is printed.
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

/// Cleans the text and shortens it to at most `most` characters, ending in `…` if cut.
pub(super) fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(most.saturating_sub(1)) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text,
    }
}

/// Cleans the text and shortens it to at most `most` characters by cutting out its middle, because names of models and
/// paths often differ only at their ends.
pub(super) fn middle_cut(text: &str, most: usize) -> String {
    let text = clean(text);
    let count = text.chars().count();
    if count <= most {
        return text;
    }
    let kept = most.saturating_sub(1);
    let (first, last) = (kept / 2, kept - kept / 2);
    text.chars().take(first).chain(['…']).chain(text.chars().skip(count - last)).collect()
}

/// Shortens each name to at most `most` characters by cutting out its middle. If different names become equal by this,
/// each of them is cut to the part around their first difference instead.
pub(super) fn cut_apart(names: &[&str], most: usize) -> Vec<String> {
    let cut: Vec<String> = names.iter().map(|name| middle_cut(name, most)).collect();
    let whole: Vec<Vec<char>> = names.iter().map(|name| clean(name).chars().collect()).collect();
    let of = |place: usize| {
        let alike = (0..names.len()).filter(|&other| cut[other] == cut[place] && whole[other] != whole[place]);
        let shared = |other: usize| whole[place].iter().zip(&whole[other]).take_while(|(one, two)| one == two).count();
        let Some(differs) = alike.map(shared).min() else { return cut[place].clone() };
        let first = differs.saturating_sub(most / 2);
        let last = (first + most.saturating_sub(2)).min(whole[place].len());
        let (before, behind) = (if first > 0 { "…" } else { "" }, if last < whole[place].len() { "…" } else { "" });
        format!("{before}{}{behind}", whole[place][first..last].iter().collect::<String>())
    };
    (0..names.len()).map(of).collect()
}

/// Cleans text for a CSV cell. Spreadsheets treat text that begins with `=`, `+`, `-` or `@`, full-width or not, as a
/// formula and may run it (OWASP, "CSV Injection"), so an apostrophe is put before such text. Numbers don't go through
/// this function.
pub(crate) fn cell(text: &str) -> String {
    let text = clean(text);
    if text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) { format!("'{text}") } else { text }
}
