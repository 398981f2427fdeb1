//! Parses JSON as programs and models actually write it, so that one odd value does not invalidate the whole answer.
//!
//! `NaN`, `Infinity`, numbers too large for a double and tokens that merely begin like a number (`.5`, `1_000`) become
//! strings. The scoring rule then reads such a string as a number, or quotes it in the reason why the value fails. If a
//! key appears twice with different values, neither value counts. Nesting is limited to 128 levels (by serde_json), so
//! that no input overflows the stack.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses one JSON value and nothing else.
///
/// # Errors
/// The fault and its position, for text that is not JSON even with the extensions that the module's description lists.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let text = quote_tokens(text, |token| (!is_plain(token) && begins_like_number(token)).then(|| token.to_owned()));
    serde_json::from_str::<UniqueKeysValue>(&text).map(|unique| unique.0).map_err(|error| error.to_string())
}

/// Parses one JSON value as Python's `json.loads` does: the last of several equal keys counts, `NaN` and `Infinity` are
/// numbers (represented as strings of that spelling), and numbers that are too large are infinite.
///
/// # Errors
/// If Python would refuse the text, or if the text is nested too deeply or contains an escaped lone surrogate, both of
/// which serde_json refuses.
pub fn read_as_python(text: &str) -> Result<Value, String> {
    let text = quote_tokens(text, |token| match token {
        _ if not_finite(token).is_some() => Some(token.to_owned()),
        _ if overflows(token) => Some(if token.starts_with('-') { "-Infinity" } else { "Infinity" }.to_owned()),
        _ => None,
    });
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Returns the number that a string from [`read_as_python`] represents: NaN or an infinity; `None` for any other
/// string.
pub(super) fn not_finite(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Whether serde_json accepts the token unchanged.
fn is_plain(token: &str) -> bool {
    serde_json::from_str::<Value>(token).is_ok()
}

/// Whether the token was meant as a number, including `nan` and `inf`.
fn begins_like_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) || token.parse::<f64>().is_ok()
}

/// Whether the token is a JSON number beyond the range of a double.
fn overflows(token: &str) -> bool {
    token.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
        && token.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'))
        && token.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Passes each token outside of strings to `replacement`. If this function returns a text, replaces the token by the
/// text in quotes.
fn quote_tokens(text: &str, replacement: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] == b'"' {
            at = string_end(bytes, at);
        } else if is_token_byte(bytes[at]) {
            let start = at;
            while at < bytes.len() && is_token_byte(bytes[at]) {
                at += 1;
            }
            if let Some(new) = replacement(&text[start..at]) {
                out.push_str(&text[copied..start]);
                out.push('"');
                out.push_str(&new);
                out.push('"');
                copied = at;
            }
        } else {
            at += 1;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Whether this byte occurs in numbers and bare words. All such bytes are ASCII, so slices between them stay valid
/// UTF-8.
const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

/// Returns the position after the string that opens at `start`, or the end of the text if it never closes.
pub(super) fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A JSON value without duplicate keys. Different values under one key are replaced by the string of [`two_values`].
struct UniqueKeysValue(Value);

impl<'de> Deserialize<'de> for UniqueKeysValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = UniqueKeysValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<UniqueKeysValue, A::Error> {
        let mut values = Vec::new();
        while let Some(UniqueKeysValue(value)) = access.next_element()? {
            values.push(value);
        }
        Ok(UniqueKeysValue(Value::Array(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<UniqueKeysValue, A::Error> {
        let mut map = Map::new();
        while let Some((key, UniqueKeysValue(value))) = access.next_entry::<String, UniqueKeysValue>()? {
            let kept = match map.get(&key) {
                Some(first) if !same(first, &value) => two_values(first, &value),
                _ => value,
            };
            map.insert(key, kept);
        }
        Ok(UniqueKeysValue(Value::Object(map)))
    }
}

/// Beginning of the string that replaces two different values under one key.
pub(super) const GIVEN_TWICE: &str = "given twice: ";

/// Returns the string that replaces two different values under one key: it names both, and no gold equals it.
fn two_values(first: &Value, second: &Value) -> Value {
    format!("{GIVEN_TWICE}{} and {}", excerpt(&first.to_string()), excerpt(&second.to_string())).into()
}

/// Whether two values are equal, treating 1 and 1.0 as equal.
pub(super) fn same(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Number(first), Value::Number(second)) => first.as_f64() == second.as_f64(),
        (Value::Array(first), Value::Array(second)) => {
            first.len() == second.len() && first.iter().zip(second).all(|(first, second)| same(first, second))
        }
        (Value::Object(first), Value::Object(second)) => {
            first.len() == second.len()
                && first.iter().all(|(key, value)| second.get(key).is_some_and(|other| same(value, other)))
        }
        _ => first == second,
    }
}

/// Shortens a long text for messages.
pub(super) fn excerpt(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
