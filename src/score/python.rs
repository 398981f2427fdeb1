//! Python literals, and how Python prints them. Other benchmarks store values as the text of a Python dict, and their
//! rules compare these values as printed by `str`.

use std::fmt::Write as _;

use serde_json::Value;
use tree_sitter::Node;

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
    /// Returns a phrase for an error message: the fault and, unless it is at the end of the text, its character
    /// position (from 1).
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = tree_sitter::Parser::new();
        let is_ready = parser.set_language(&tree_sitter_python::LANGUAGE.into()).is_ok();
        // Python ignores space around the whole literal, also at the beginning of a line.
        let blank = text.len() - text.trim_start().len();
        let source = Source { text: &text[blank..], skipped: text[..blank].chars().count() };
        let tree = parser.parse(source.text, None).filter(|_| is_ready).ok_or("the parser of Python failed")?;
        let module = tree.root_node();
        if let Some(fault) = first_fault(module) {
            return Err(source.wrong("not a Python literal", fault));
        }
        match parts(module).as_slice() {
            [] => Err("not a Python literal: there is no text".to_owned()),
            [statement] if statement.kind() == "expression_statement" => match parts(*statement).as_slice() {
                [value] if statement.child_count() == 1 => source.value(*value, 0),
                items => Ok(Self::Tuple(source.values(items, 0)?)),
            },
            [statement] => Err(source.wrong("not a Python literal", *statement)),
            [_, next, ..] => Err(source.wrong("unexpected text after the literal", *next)),
        }
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

    /// Returns the number that Python takes this value for; `None` if Python does not treat it as a number. `True`
    /// counts as 1.
    fn number(&self) -> Option<f64> {
        match self {
            Self::Bool(flag) => Some(f64::from(u8::from(*flag))),
            Self::Integer(digits) => digits.parse().ok(),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether Python treats the two values as the same dict key.
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

/// Returns `repr` of a string: in single quotes, or in double quotes if the string contains single quotes but no double
/// quotes.
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

/// Whether this is an invisible character that `repr` escapes. Covers only the invisible characters that occur in real
/// texts.
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

/// Returns the named children of a node, without comments.
fn parts(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk()).filter(|child| !child.is_extra()).collect()
}

/// Returns the first place where the syntax is broken.
fn first_fault(node: Node<'_>) -> Option<Node<'_>> {
    let mut node = node;
    while node.has_error() && !node.is_error() && !node.is_missing() {
        let child = node.children(&mut node.walk()).find(|child| child.has_error() || child.is_missing());
        node = child?;
    }
    (node.is_error() || node.is_missing()).then_some(node)
}

/// The text of a literal. The methods convert nodes of the text's syntax tree.
struct Source<'a> {
    text: &'a str,
    /// Number of white-space characters that preceded `text` and were cut off, for positions in messages.
    skipped: usize,
}

impl Source<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        &self.text[node.byte_range()]
    }

    /// Returns an error that quotes the beginning of this node.
    fn wrong(&self, what: &str, node: Node<'_>) -> String {
        let (before, rest) = self.text.split_at(node.start_byte());
        let quoted: String = rest.chars().take(20).collect();
        if quoted.is_empty() {
            return format!("{what}, at the end");
        }
        format!("{what}: `{quoted}` at character {}", self.skipped + before.chars().count() + 1)
    }

    fn value(&self, node: Node<'_>, depth: usize) -> Result<Literal, String> {
        if depth == DEEPEST {
            return Err(self.wrong("nested too deeply", node));
        }
        let children = parts(node);
        match (node.kind(), children.as_slice()) {
            ("none", _) => Ok(Literal::None),
            ("true", _) => Ok(Literal::Bool(true)),
            ("false", _) => Ok(Literal::Bool(false)),
            ("integer" | "float", _) => {
                read_number(self.text(node)).ok_or_else(|| self.wrong("not a number that Python reads", node))
            }
            ("string", _) => self.strings(&[node]),
            ("concatenated_string", strings) => self.strings(strings),
            ("list", items) => Ok(Literal::List(self.values(items, depth)?)),
            ("tuple", items) => Ok(Literal::Tuple(self.values(items, depth)?)),
            ("parenthesized_expression", [inner]) => self.value(*inner, depth + 1),
            ("set", items) => self.set(items, depth),
            ("dictionary", pairs) => self.dict(pairs, depth),
            ("unary_operator", [operand]) => self.signed(node, *operand, depth),
            ("call", _) if self.text(node) == "set()" => Ok(Literal::Set(Vec::new())),
            _ => Err(self.wrong("not a Python literal", node)),
        }
    }

    fn values(&self, nodes: &[Node<'_>], depth: usize) -> Result<Vec<Literal>, String> {
        nodes.iter().map(|node| self.value(*node, depth + 1)).collect()
    }

    /// Reads a member of a set or a key of a dict.
    fn key(&self, node: Node<'_>, depth: usize) -> Result<Literal, String> {
        let key = self.value(node, depth + 1)?;
        if key.is_hashable() { Ok(key) } else { Err(self.wrong("a list, a set or a dict cannot be a key", node)) }
    }

    fn set(&self, items: &[Node<'_>], depth: usize) -> Result<Literal, String> {
        let mut members: Vec<Literal> = Vec::new();
        for item in items {
            let member = self.key(*item, depth)?;
            if !members.iter().any(|known| known.is_same_key(&member)) {
                members.push(member);
            }
        }
        Ok(Literal::Set(members))
    }

    fn dict(&self, pairs: &[Node<'_>], depth: usize) -> Result<Literal, String> {
        let mut entries: Vec<(Literal, Literal)> = Vec::new();
        for pair in pairs {
            let (Some(key), Some(value)) = (pair.child_by_field_name("key"), pair.child_by_field_name("value")) else {
                return Err(self.wrong("not a Python literal", *pair));
            };
            let (key, value) = (self.key(key, depth)?, self.value(value, depth + 1)?);
            match entries.iter_mut().find(|(known, _)| known.is_same_key(&key)) {
                Some((_, known)) => *known = value,
                None => entries.push((key, value)),
            }
        }
        Ok(Literal::Dict(entries))
    }

    fn signed(&self, node: Node<'_>, operand: Node<'_>, depth: usize) -> Result<Literal, String> {
        let is_negative = match self.text[node.start_byte()..].chars().next() {
            Some('-') => true,
            Some('+') => false,
            _ => return Err(self.wrong("not a Python literal", node)),
        };
        match self.value(operand, depth + 1)? {
            Literal::Integer(digits) if is_negative && digits != "0" => {
                Ok(Literal::Integer(match digits.strip_prefix('-') {
                    Some(digits) => digits.to_owned(),
                    None => format!("-{digits}"),
                }))
            }
            Literal::Float(number) => Ok(Literal::Float(if is_negative { -number } else { number })),
            value @ Literal::Integer(_) => Ok(value),
            _ => Err(self.wrong("only numbers have a sign", node)),
        }
    }

    /// Reads one string, or several adjacent ones, which Python joins.
    fn strings(&self, nodes: &[Node<'_>]) -> Result<Literal, String> {
        let (mut text, mut bytes): (Option<String>, Option<Vec<u8>>) = (None, None);
        for node in nodes {
            let (Some(start), Some(end)) = (node.child(0), node.child(node.child_count().saturating_sub(1))) else {
                return Err(self.wrong("not a string", *node));
            };
            let prefix = self.text(start).trim_end_matches(['\'', '"']).to_ascii_lowercase();
            if !matches!(prefix.as_str(), "" | "r" | "u" | "b" | "br" | "rb") {
                return Err(self.wrong("not a Python literal", *node));
            }
            let content = &self.text[start.end_byte()..end.start_byte()];
            let is_bytes = prefix.contains('b');
            if is_bytes && !content.is_ascii() {
                return Err(self.wrong("bytes hold only ASCII", *node));
            }
            let content = if prefix.contains('r') {
                content.to_owned()
            } else {
                unescaped(content, is_bytes).map_err(|what| self.wrong(&what, *node))?
            };
            if is_bytes {
                // The characters of a bytes literal are below 256 (see `unescaped`), so each of them fits into a byte.
                bytes.get_or_insert_default().extend(content.chars().map(|c| c as u8));
            } else {
                text.get_or_insert_default().push_str(&content);
            }
        }
        match (text, bytes) {
            (Some(text), None) => Ok(Literal::Text(text)),
            (None, Some(bytes)) => Ok(Literal::Bytes(bytes)),
            _ => Err(nodes.first().map_or_else(String::new, |node| self.wrong("bytes next to a string", *node))),
        }
    }
}

/// Replaces the escapes in a string or in bytes by the characters that they represent.
fn unescaped(content: &str, is_bytes: bool) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = content;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let Some(c) = escape.chars().next() else { return Err("a string that is never closed".to_owned()) };
        let mut end = c.len_utf8();
        let hex = match c {
            'x' => 2,
            'u' if !is_bytes => 4,
            'U' if !is_bytes => 8,
            _ => 0,
        };
        if hex > 0 {
            let digits = escape.get(1..=hex).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
            let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            out.push(code.and_then(char::from_u32).ok_or("a broken escape")?);
            end = 1 + hex;
        } else if c.is_digit(8) {
            end = escape.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            let code = u32::from_str_radix(&escape[..end], 8).unwrap_or(0);
            out.extend(char::from_u32(if is_bytes { code & 0xff } else { code }));
        } else {
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
                'N' if !is_bytes => return Err("characters by name are not read".to_owned()),
                _ => out.extend(['\\', c]),
            }
        }
        rest = &escape[end..];
    }
    Ok(out + rest)
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
        // Pairs of a literal and its text as printed by `str(...)` of CPython 3.11.
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
            ("{[1]: 2}", "a list, a set or a dict cannot be a key: `[1]: 2}` at character 2"),
            (" 012", "not a number that Python reads: `012` at character 2"),
            ("", "not a Python literal: there is no text"),
            ("-'a'", "only numbers have a sign: `-'a'` at character 1"),
            ("~1", "not a Python literal: `~1` at character 1"),
            ("f'x'", "not a Python literal: `f'x'` at character 1"),
            ("{'a': 1, **b}", "not a Python literal: `**b}` at character 10"),
            ("'a' b'b'", "bytes next to a string: `'a' b'b'` at character 1"),
            (r"'\xg1'", r"a broken escape: `'\xg1'` at character 1"),
            ("b'é'", "bytes hold only ASCII: `b'é'` at character 1"),
            ("1\n2", "unexpected text after the literal: `2` at character 3"),
            ("x = 1", "not a Python literal: `x = 1` at character 1"),
        ] {
            assert_eq!(Literal::parse(written).unwrap_err(), wrong, "{written}");
        }
        for written in ["{'a' 1}", "{'a': 1, 2}", "'a", "1__0", "1 2", "[1 2]", "[1", "'a\nb'", "(1))"] {
            assert!(Literal::parse(written).is_err(), "{written}");
        }
        assert!(Literal::parse(&"[".repeat(100_000)).is_err());
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert!(Literal::parse(&deep).unwrap_err().starts_with("nested too deeply"));
    }

    #[test]
    fn values_of_json_print_as_python_prints_them() {
        let value = serde_json::json!({"a": true, "b": null, "c": 1e-5, "d": [1, "x"]});
        assert_eq!(Literal::from_json(&value).printed(), "{'a': True, 'b': None, 'c': 1e-05, 'd': [1, 'x']}");
    }
}
