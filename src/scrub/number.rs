//! Parses numbers in text: their extent and their form.

/// The written form of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NumberForm {
    /// Digits after the decimal point.
    pub(super) decimals: usize,
    /// Total digits, without leading zeros.
    pub(super) digits: usize,
    /// Whether the number has more than one point, as in 1.2.3.
    pub(super) version: bool,
    /// Whether the number begins with a sign.
    pub(super) signed: bool,
    /// Whether the number has thousands separators or an exponent.
    pub(super) grouped: bool,
    /// Whether the number begins with a zero before another digit, as in 03.
    pub(super) padded: bool,
}

impl NumberForm {
    /// Whether the number has neither decimals nor several points.
    pub(super) const fn is_whole(&self) -> bool {
        self.decimals == 0 && !self.version
    }
}

/// Parses the number that starts at `start`, including its sign; returns its end and its form.
pub(super) fn at(text: &str, start: usize) -> Option<(usize, NumberForm)> {
    let bytes = text.as_bytes();
    let mut form = NumberForm::default();
    let mut at = start;
    let sign = sign(text, start);
    if sign > 0 {
        form.signed = true;
        at += sign;
    }
    let first = at;
    while at < bytes.len() {
        if bytes[at].is_ascii_digit() {
            at += 1;
        } else if at > first
            && let Some(separator) = thousands(bytes, at)
        {
            form.grouped = true;
            at += separator;
        } else {
            break;
        }
    }
    let whole = at;
    while at + 1 < bytes.len() && bytes[at] == b'.' && bytes[at + 1].is_ascii_digit() {
        form.version = form.decimals > 0;
        at += 1;
        let point = at;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            at += 1;
        }
        form.decimals = at - point;
    }
    if at == first || (whole == first && !may_begin_with_point(bytes, first)) {
        return None;
    }
    form.padded = whole > first + 1 && bytes[first] == b'0';
    form.digits = text[first..at].trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
    if let Some(exponent) = exponent(bytes, at) {
        at += exponent;
        form.grouped = true;
    }
    Some((at, form))
}

/// Returns the length in bytes of the sign at `start` if it belongs to the number after it, otherwise 0. A sign
/// directly after a word, a number or a closing bracket is a hyphen or an operator and does not belong to the number.
fn sign(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let length = match rest.chars().next() {
        Some(sign @ ('-' | '+' | '−')) => sign.len_utf8(),
        _ => return 0,
    };
    let before = text[..start].chars().next_back();
    let free = before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '{' | '$' | '|' | '/' | '&' | '*'));
    let behind = &text.as_bytes()[start + length..];
    let digit = |place: usize| behind.get(place).is_some_and(u8::is_ascii_digit);
    if free && (digit(0) || (behind.first() == Some(&b'.') && digit(1))) { length } else { 0 }
}

/// Returns the length in bytes of a thousands separator at `at`: `,`, `{,}`, `\,` or `_` before exactly three digits.
fn thousands(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let length = [&b"{,}"[..], b"\\,", b",", b"_"].into_iter().find(|separator| rest.starts_with(separator))?.len();
    let group = rest.get(length..length + 3)?;
    let whole = group.iter().all(u8::is_ascii_digit) && !rest.get(length + 3).is_some_and(u8::is_ascii_digit);
    whole.then_some(length)
}

/// Returns the length in bytes of an exponent such as `e-4`.
fn exponent(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if !matches!(rest.first(), Some(b'e' | b'E')) {
        return None;
    }
    let sign = usize::from(matches!(rest.get(1), Some(b'-' | b'+')));
    let digits = rest[1 + sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ended = !rest.get(1 + sign + digits).is_some_and(u8::is_ascii_alphanumeric);
    (digits > 0 && ended).then_some(1 + sign + digits)
}

/// Whether `.5` at this position is a number rather than the end of something else.
fn may_begin_with_point(bytes: &[u8], at: usize) -> bool {
    at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || matches!(bytes[at - 1], b'.' | b')' | b']' | b'}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<&str> {
        at(text, 0).map(|(end, _)| &text[..end])
    }

    #[test]
    fn a_number_in_a_text_is_parsed_without_the_punctuation_or_unit_behind_it() {
        for (text, number) in [
            ("1,234.50 s", "1,234.50"),
            ("10{,}000 steps", "10{,}000"),
            ("3, 7]", "3"),
            ("1,2", "1"),
            ("93.4. Then", "93.4"),
            ("−0.5)", "−0.5"),
            ("1e-4,", "1e-4"),
            ("2epochs", "2"),
            (".001)", ".001"),
            ("1.2.3-rc", "1.2.3"),
            ("16x16", "16"),
        ] {
            assert_eq!(read(text), Some(number), "{text}");
        }
        assert_eq!(read("..5"), None);
        assert_eq!(read("-x"), None);
    }
}
