//! Python literals, and how Python prints them. Other benchmarks store values as the text of a Python dict, and their
//! rules compare these values as printed by `str`.

use std::fmt::Write as _;

use serde_json::Value;

/// A value that Python's `ast.literal_eval` can return, except complex numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of any size, in decimal digits with its sign.
    Integer(String),
    /// A float.
    Float(f64),
    /// A string.
    Text(String),
    /// A bytes object.
    Bytes(Vec<u8>),
    /// A tuple.
    Tuple(Vec<Self>),
    /// A list.
    List(Vec<Self>),
    /// A set, in the order written: Python's own order depends on hashes.
    Set(Vec<Self>),
    /// A dict: each key once, at its first position, with its last value.
    Dict(Vec<(Self, Self)>),
}

/// Maximum levels of nesting, so that no input overflows the stack.
const DEEPEST: usize = 128;

impl Literal {
    /// Parses one literal and nothing else.
    ///
    /// # Errors
    /// A fragment with the fault and its character position (from 1).
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        parser.space();
        let value = parser.value()?;
        parser.space();
        if parser.at < text.len() { Err(parser.wrong("unexpected text after the literal")) } else { Ok(value) }
    }

    /// Converts a JSON value as Python's `json` module does.
    #[must_use]
    pub fn from_json(value: &Value) -> Self {
        match value {
            Value::Null => Self::None,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) if number.is_f64() => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            Value::Number(number) => Self::Integer(number.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Value::Object(map) => {
                Self::Dict(map.iter().map(|(key, value)| (Self::Text(key.clone()), Self::from_json(value))).collect())
            }
        }
    }

    /// Returns the result of `str(value)`.
    #[must_use]
    pub fn printed(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.repr(),
        }
    }

    /// Returns the result of `repr(value)`.
    #[must_use]
    pub fn repr(&self) -> String {
        let all = |items: &[Self]| items.iter().map(Self::repr).collect::<Vec<_>>().join(", ");
        match self {
            Self::None => "None".to_owned(),
            Self::Bool(flag) => if *flag { "True" } else { "False" }.to_owned(),
            Self::Integer(digits) => digits.clone(),
            Self::Float(number) => float_repr(*number),
            Self::Text(text) => text_repr(text),
            Self::Bytes(bytes) => bytes_repr(bytes),
            Self::Tuple(items) if items.len() == 1 => format!("({},)", items[0].repr()),
            Self::Tuple(items) => format!("({})", all(items)),
            Self::List(items) => format!("[{}]", all(items)),
            Self::Set(items) if items.is_empty() => "set()".to_owned(),
            Self::Set(items) => format!("{{{}}}", all(items)),
            Self::Dict(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{}: {}", key.repr(), value.repr()));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Returns the value as a number, if it is one to Python, which counts `True` as 1.
    fn number(&self) -> Option<f64> {
        match self {
            Self::Bool(flag) => Some(f64::from(u8::from(*flag))),
            Self::Integer(digits) => digits.parse().ok(),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether Python treats both as the same dict key.
    #[allow(clippy::float_cmp, reason = "as Python compares keys")]
    fn is_same_key(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            (Some(first), Some(second)) => first == second,
            _ => self == other,
        }
    }

    fn is_hashable(&self) -> bool {
        match self {
            Self::List(_) | Self::Set(_) | Self::Dict(_) => false,
            Self::Tuple(items) => items.iter().all(Self::is_hashable),
            _ => true,
        }
    }
}

/// Returns `repr` of a float: the shortest digits that round-trip, with an exponent below 1e-4 and from 1e16 on.
fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Returns `repr` of a string: in single quotes, or in double quotes if it contains only single ones.
fn text_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == quote => out.extend(['\\', c]),
            ' ' => out.push(' '),
            _ if c.is_control() || c.is_whitespace() || is_format(c) => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
            _ => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// Whether Python escapes this invisible character; covers those that occur in real texts.
const fn is_format(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn bytes_repr(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut out = format!("b{quote}");
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ if char::from(byte) == quote => out.extend(['\\', quote]),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => _ = write!(out, "\\x{byte:02x}"),
        }
    }
    out.push(quote);
    out
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn wrong(&self, what: &str) -> String {
        let character = self.text[..self.at].chars().count() + 1;
        let found: String = self.rest().chars().take(20).collect();
        if found.is_empty() {
            format!("{what}, at the end")
        } else {
            format!("{what}: `{found}` at character {character}")
        }
    }

    /// Skips blanks, line breaks and comments.
    fn space(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                ' ' | '\t' | '\n' | '\r' | '\u{c}' => self.at += 1,
                _ if self.rest().starts_with("\\\n") => self.at += 2,
                _ => return,
            }
        }
    }

    fn value(&mut self) -> Result<Literal, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong("nested too deeply"));
        }
        let value = match self.peek() {
            Some('{') => self.braces(),
            Some('[') => Ok(Literal::List(self.items("[", "]")?.0)),
            Some('(') => self.parentheses(),
            Some(sign @ ('+' | '-')) => self.signed(sign),
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some('\'' | '"') => self.texts(),
            Some(c) if c.is_alphabetic() || c == '_' => self.word(),
            _ => Err(self.wrong("not a Python literal")),
        };
        self.depth -= 1;
        value
    }

    /// Parses the values between two brackets; also returns whether a comma follows the last.
    fn items(&mut self, open: &str, close: &str) -> Result<(Vec<Literal>, bool), String> {
        self.take(open);
        let (mut items, mut comma) = (Vec::new(), false);
        loop {
            self.space();
            if self.take(close) {
                return Ok((items, comma));
            }
            if !items.is_empty() && !comma {
                return Err(self.wrong(&format!("expected `,` or `{close}`")));
            }
            items.push(self.value()?);
            self.space();
            comma = self.take(",");
        }
    }

    fn parentheses(&mut self) -> Result<Literal, String> {
        let (mut items, comma) = self.items("(", ")")?;
        Ok(if items.len() == 1 && !comma { items.remove(0) } else { Literal::Tuple(items) })
    }

    fn braces(&mut self) -> Result<Literal, String> {
        self.take("{");
        let (mut entries, mut members): (Vec<(Literal, Literal)>, Vec<Literal>) = (Vec::new(), Vec::new());
        let mut comma = true;
        loop {
            self.space();
            if self.take("}") {
                return Ok(if members.is_empty() { Literal::Dict(entries) } else { Literal::Set(members) });
            }
            if !comma {
                return Err(self.wrong("expected `,` or `}`"));
            }
            let key = self.value()?;
            if !key.is_hashable() {
                return Err(self.wrong("a list, a set or a dict cannot be a key"));
            }
            self.space();
            if members.is_empty() && self.take(":") {
                self.space();
                let value = self.value()?;
                match entries.iter_mut().find(|(known, _)| known.is_same_key(&key)) {
                    Some((_, known)) => *known = value,
                    None => entries.push((key, value)),
                }
            } else if entries.is_empty() {
                if !members.iter().any(|known| known.is_same_key(&key)) {
                    members.push(key);
                }
            } else {
                return Err(self.wrong("expected `:`"));
            }
            self.space();
            comma = self.take(",");
        }
    }

    fn signed(&mut self, sign: char) -> Result<Literal, String> {
        self.at += 1;
        self.space();
        let is_negative = sign == '-';
        match self.value()? {
            Literal::Integer(digits) if is_negative && digits != "0" => {
                Ok(Literal::Integer(match digits.strip_prefix('-') {
                    Some(digits) => digits.to_owned(),
                    None => format!("-{digits}"),
                }))
            }
            Literal::Float(number) => Ok(Literal::Float(if is_negative { -number } else { number })),
            value @ Literal::Integer(_) => Ok(value),
            _ => Err(self.wrong("only numbers have a sign")),
        }
    }

    fn number(&mut self) -> Result<Literal, String> {
        let bytes = self.rest().as_bytes();
        let mut end = 0;
        while end < bytes.len() {
            let is_exponent = matches!(bytes[end], b'+' | b'-')
                && matches!(bytes[end - 1], b'e' | b'E')
                && !bytes[..end].starts_with(b"0x")
                && !bytes[..end].starts_with(b"0X");
            if !(bytes[end].is_ascii_alphanumeric() || matches!(bytes[end], b'.' | b'_') || is_exponent) {
                break;
            }
            end += 1;
        }
        let written = self.rest()[..end].to_owned();
        let Some(number) = read_number(&written) else { return Err(self.wrong("not a number that Python reads")) };
        self.at += end;
        Ok(number)
    }

    fn word(&mut self) -> Result<Literal, String> {
        let end = self.rest().find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest().len());
        let word = self.rest()[..end].to_owned();
        let is_prefix = matches!(word.to_ascii_lowercase().as_str(), "r" | "u" | "b" | "br" | "rb");
        if is_prefix && self.rest()[end..].starts_with(['\'', '"']) {
            return self.texts();
        }
        let value = match word.as_str() {
            "None" => Literal::None,
            "True" => Literal::Bool(true),
            "False" => Literal::Bool(false),
            "set" if self.rest()[end..].starts_with("()") => {
                self.at += end + 2;
                return Ok(Literal::Set(Vec::new()));
            }
            _ => return Err(self.wrong("not a Python literal")),
        };
        self.at += end;
        Ok(value)
    }

    /// Parses one string, or several adjacent ones, which Python joins.
    fn texts(&mut self) -> Result<Literal, String> {
        let (mut text, mut bytes): (Option<String>, Option<Vec<u8>>) = (None, None);
        loop {
            let end = self.rest().find(['\'', '"']).unwrap_or(0);
            let prefix = self.rest()[..end].to_ascii_lowercase();
            if !matches!(prefix.as_str(), "" | "r" | "u" | "b" | "br" | "rb")
                || !self.rest()[end..].starts_with(['\'', '"'])
            {
                break;
            }
            if (prefix.contains('b') && text.is_some()) || (!prefix.contains('b') && bytes.is_some()) {
                return Err(self.wrong("bytes next to a string"));
            }
            self.at += end;
            let part = self.quoted(prefix.contains('r'), prefix.contains('b'))?;
            if prefix.contains('b') {
                // The characters of bytes are below 256, see `escape`.
                bytes.get_or_insert_default().extend(part.chars().map(|c| c as u8));
            } else {
                text.get_or_insert_default().push_str(&part);
            }
            self.space();
        }
        match (text, bytes) {
            (Some(text), _) => Ok(Literal::Text(text)),
            (None, Some(bytes)) => Ok(Literal::Bytes(bytes)),
            (None, None) => Err(self.wrong("not a string")),
        }
    }

    fn quoted(&mut self, is_raw: bool, is_bytes: bool) -> Result<String, String> {
        let Some(quote) = self.peek() else { return Err(self.wrong("not a string")) };
        let triple = quote.to_string().repeat(3);
        let close = if self.rest().starts_with(&triple) { triple } else { quote.to_string() };
        self.at += close.len();
        let mut out = String::new();
        loop {
            if self.take(&close) {
                return Ok(out);
            }
            let Some(c) = self.peek() else { return Err(self.wrong("a string that is never closed")) };
            if c == '\n' && close.len() == 1 {
                return Err(self.wrong("a line break in a string"));
            }
            if is_bytes && !c.is_ascii() {
                return Err(self.wrong("bytes hold only ASCII"));
            }
            self.at += c.len_utf8();
            match c {
                '\\' if is_raw => {
                    out.push('\\');
                    if let Some(next) = self.peek() {
                        self.at += next.len_utf8();
                        out.push(next);
                    }
                }
                '\\' => self.escape(&mut out, is_bytes)?,
                _ => out.push(c),
            }
        }
    }

    /// Parses the rest of an escape, after the backslash.
    fn escape(&mut self, out: &mut String, is_bytes: bool) -> Result<(), String> {
        let Some(c) = self.peek() else { return Err(self.wrong("a string that is never closed")) };
        let hex = match c {
            'x' => 2,
            'u' if !is_bytes => 4,
            'U' if !is_bytes => 8,
            _ => 0,
        };
        if hex > 0 {
            let digits = self.rest().get(1..=hex).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
            let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let Some(character) = code.and_then(char::from_u32) else { return Err(self.wrong("a broken escape")) };
            out.push(character);
            self.at += 1 + hex;
            return Ok(());
        }
        if c.is_digit(8) {
            let digits: String = self.rest().chars().take(3).take_while(|c| c.is_digit(8)).collect();
            let code = u32::from_str_radix(&digits, 8).unwrap_or(0);
            out.extend(char::from_u32(if is_bytes { code & 0xff } else { code }));
            self.at += digits.len();
            return Ok(());
        }
        self.at += c.len_utf8();
        match c {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(c),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\u{b}'),
            'N' if !is_bytes => return Err(self.wrong("characters by name are not read")),
            _ => out.extend(['\\', c]),
        }
        Ok(())
    }
}

/// Parses an integer or a float in Python's syntax.
fn read_number(written: &str) -> Option<Literal> {
    let parts_are_whole = |text: &str, is_digit: fn(&u8) -> bool| {
        text.split('_').all(|part| !part.is_empty() && part.as_bytes().iter().all(is_digit))
    };
    let lower = written.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            let digits = digits.strip_prefix('_').unwrap_or(digits);
            let well_formed = parts_are_whole(digits, u8::is_ascii_hexdigit);
            let value = u128::from_str_radix(&digits.replace('_', ""), radix).ok().filter(|_| well_formed)?;
            return Some(Literal::Integer(value.to_string()));
        }
    }
    if parts_are_whole(&lower, u8::is_ascii_digit) {
        let digits = lower.replace('_', "");
        let significant = digits.trim_start_matches('0');
        // Python refuses `012`, and reads `00` as 0.
        return match significant {
            "" => Some(Literal::Integer("0".to_owned())),
            _ if significant.len() < digits.len() => None,
            _ => Some(Literal::Integer(digits)),
        };
    }
    let (mantissa, exponent) = lower.split_once('e').map_or((lower.as_str(), None), |(m, e)| (m, Some(e)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_part = |text: &str| text.is_empty() || parts_are_whole(text, u8::is_ascii_digit);
    let is_exponent = |text: &str| parts_are_whole(text.strip_prefix(['+', '-']).unwrap_or(text), u8::is_ascii_digit);
    let well_formed = is_part(whole) && is_part(fraction) && !(whole.is_empty() && fraction.is_empty());
    if !well_formed || !exponent.is_none_or(is_exponent) {
        return None;
    }
    lower.replace('_', "").parse().ok().map(Literal::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_print_as_python_prints_them() {
        // The right sides were printed by `str(...)` of CPython 3.11.
        for (written, printed) in [
            ("None", "None"),
            ("True", "True"),
            ("1e-4", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e16", "1e+16"),
            ("123456789012345680.0", "1.2345678901234568e+17"),
            ("1e15", "1000000000000000.0"),
            ("1.0", "1.0"),
            (".5", "0.5"),
            ("5.", "5.0"),
            ("1_000", "1000"),
            ("0xff", "255"),
            ("- 3", "-3"),
            ("+3", "3"),
            ("--3", "3"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("1e400", "inf"),
            ("123456789012345678901234567890123456789012", "123456789012345678901234567890123456789012"),
            ("'a' \"b\"", "ab"),
            (r"'it\'s\n\x41\u00e9\101'", "it's\nAéA"),
            (r"r'\n'", "\\n"),
            (r"'\d'", "\\d"),
            ("'''a\nb'''", "a\nb"),
            ("b'a\\xff'", "b'a\\xff'"),
            ("()", "()"),
            ("(1)", "1"),
            ("(1,)", "(1,)"),
            ("(1, 'x')", "(1, 'x')"),
            ("[1, [2.50, None], ]", "[1, [2.5, None]]"),
            ("{1, 1.0, 2}", "{1, 2}"),
            ("set()", "set()"),
            ("{}", "{}"),
            ("{'a': 1, 'b': {'c': (True,)}, 'a': 2}", "{'a': 2, 'b': {'c': (True,)}}"),
            (
                r#"["it's", 'say "x"', 'both \' "', '\\', '\t', '\x00', 'é', '\u200b']"#,
                r#"["it's", 'say "x"', 'both \' "', '\\', '\t', '\x00', 'é', '\u200b']"#,
            ),
            ("{ # a comment\n 'a' : 1 }", "{'a': 1}"),
        ] {
            let read = Literal::parse(written).unwrap_or_else(|error| panic!("{written}: {error}"));
            assert_eq!(read.printed(), printed, "{written}");
        }
    }

    #[test]
    fn literals_that_python_refuses_are_refused_with_their_position() {
        for (written, wrong) in [
            ("{'a': true}", "not a Python literal: `true}` at character 7"),
            ("{'a' 1}", "expected `,` or `}`: `1}` at character 6"),
            ("{'a': 1, 2}", "expected `:`: `}` at character 11"),
            ("{[1]: 2}", "a list, a set or a dict cannot be a key: `: 2}` at character 5"),
            ("'a", "a string that is never closed, at the end"),
            ("012", "not a number that Python reads: `012` at character 1"),
            ("1__0", "not a number that Python reads: `1__0` at character 1"),
            ("1 2", "unexpected text after the literal: `2` at character 3"),
            ("", "not a Python literal, at the end"),
            ("-'a'", "only numbers have a sign, at the end"),
            ("f'x'", "not a Python literal: `f'x'` at character 1"),
            ("[1 2]", "expected `,` or `]`: `2]` at character 4"),
        ] {
            assert_eq!(Literal::parse(written).unwrap_err(), wrong, "{written}");
        }
        assert!(Literal::parse(&"[".repeat(100_000)).unwrap_err().starts_with("nested too deeply"));
    }

    #[test]
    fn values_of_json_print_as_python_prints_them() {
        let value = serde_json::json!({"a": true, "b": null, "c": 1e-5, "d": [1, "x"]});
        assert_eq!(Literal::from_json(&value).printed(), "{'a': True, 'b': None, 'c': 1e-05, 'd': [1, 'x']}");
    }
}
