//! Details of a function's body that cannot be derived from what the function does: words in string literals, unusual
//! numbers, the exceptions that it raises, and the types that it requires.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use tree_sitter::Node;

use super::module::Module;
use super::walk;

/// Fields that a program fills in (`%s`, `%(name)d`, `{name}`), and escape sequences such as `\n`.
static PLACEHOLDER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"%(\(\w*\))?[-+ #0-9.]*[a-zA-Z%]|\{[^{}]*\}|\\(x..|N\{[^}]*\}|u....|.)").ok());

/// Words with fewer letters are ignored.
const LEAST_LETTERS: usize = 2;

/// Numbers with fewer significant digits are ignored, except fractions.
const LEAST_DIGITS: usize = 2;

/// Words with fewer letters, and numbers with fewer significant digits, may be in a text by chance.
const LEAST_DISTINCT: usize = 3;

/// Well-known numbers. They are not treated as details, because an agent can guess them.
const KNOWN: [&str; 44] = [
    "0.1", "0.2", "0.25", "0.5", "0.75", "0.01", "0.05", "0.001", "0.95", "0.99", "1.5", "2.5", "11", "12", "15", "16",
    "23", "24", "25", "26", "28", "29", "31", "32", "36", "45", "52", "59", "64", "99", "127", "128", "255", "256",
    "360", "365", "512", "1024", "2048", "3600", "4096", "65535", "65536", "86400",
];

/// Texts that Python's own functions expect as arguments. They are not treated as details.
const OF_PYTHON: [&str; 10] =
    ["utf-8", "utf8", "ascii", "latin-1", "strict", "ignore", "replace", "little", "big", "__main__"];

/// [`Module::with_other_details`] replaces every other exception class by this one.
const OTHER_EXCEPTION: &str = "NotImplementedError";

/// Pairs of similar types. A function may accept one and refuse the other for no reason that agents can know. Each
/// entry has the accepted type, the refused type, and words that state the accepted type.
const ALIKE: [(&str, &str, &[&str]); 4] = [
    ("int", "float", &["int", "ints", "integer", "integers"]),
    ("float", "int", &["float", "floats", "floating"]),
    ("list", "tuple", &["list", "lists"]),
    ("tuple", "list", &["tuple", "tuples"]),
];

/// The kind of a [`Detail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailKind {
    /// Words or a number in a literal.
    Literal,
    /// The class of an exception.
    Exception,
    /// A type in an `isinstance` call. The function refuses values of other types.
    Type,
}

/// A word, number, exception or type in a function's body. An agent can know a detail only if something that the agent
/// sees states the detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Detail {
    pub(crate) kind: DetailKind,
    /// Parts of the detail's text, in which each stretch of white space is a single space. A description states the
    /// detail if it contains all parts. For a type, the parts are alternative names, and a description needs only one
    /// of them.
    pub(crate) parts: Vec<String>,
    /// Whether all words and numbers of the detail are so short that a text may contain them by chance.
    pub(crate) is_short: bool,
    /// The detail's range of bytes in the file.
    range: Range<usize>,
    /// The code by which [`Module::with_other_details`] replaces the detail: other words, another number or another
    /// exception; for a type, a tuple of that type and a similar one.
    other: Vec<u8>,
}

impl Module {
    /// Returns the details in a range of the file's bytes, in source order. A detail is a word in a string literal that
    /// is neither raw (a regular expression) nor a statement (a docstring); a fraction, or a number with at least two
    /// significant digits; an exception; or a type in an `isinstance` call, if the function raises an exception or
    /// returns `NotImplemented` for values of other types.
    pub(crate) fn details(&self, within: &Range<usize>) -> Vec<Detail> {
        let readable = self.encoding.readable(self.source());
        let Some(tree) = walk::parse(&readable) else { return Vec::new() };
        let mut found = Vec::new();
        let names: BTreeSet<&[u8]> = walk::nodes_within(&tree, within)
            .filter(|node| node.kind() == "identifier")
            .map(|node| &self.source()[node.byte_range()])
            .collect();
        for node in walk::nodes_within(&tree, within) {
            let place = match node.kind() {
                "string_content" if is_for_people(&node, self.source()) => Some((DetailKind::Literal, node)),
                "integer" | "float" => Some((DetailKind::Literal, node)),
                "raise_statement" => raised(&node).map(|class| (DetailKind::Exception, class)),
                "call" => required(&node, self.source(), &names).map(|class| (DetailKind::Type, class)),
                _ => None,
            };
            if let Some((kind, place)) = place {
                let range = place.byte_range();
                let bytes = &self.source()[range.clone()];
                let text = self.encoding.text(bytes);
                let other = match kind {
                    DetailKind::Exception => exception(&text),
                    DetailKind::Type => accepted(&text, &names),
                    // Skip text whose bytes in the file are not UTF-8, because the replacement is written in UTF-8.
                    DetailKind::Literal if node.kind() == "string_content" => {
                        words(&text).filter(|_| text.as_bytes() == bytes)
                    }
                    DetailKind::Literal => number(&text),
                };
                let is_short = kind == DetailKind::Literal && is_short(&text);
                found.extend(other.map(|(parts, other)| Detail { kind, parts, is_short, range, other }));
            }
        }
        found
    }

    /// Returns the file's bytes with each of these details replaced by a different one, such as a number by another
    /// number.
    pub(crate) fn with_other_details(&self, details: &[Detail]) -> Vec<u8> {
        let mut text = self.source().to_vec();
        let mut details: Vec<&Detail> = details.iter().collect();
        details.sort_by_key(|detail| std::cmp::Reverse(detail.range.start));
        for detail in details {
            text.splice(detail.range.clone(), detail.other.iter().copied());
        }
        text
    }
}

/// Returns the parts of a literal's text between placeholders and escapes, and the whole text with every word written
/// backwards. Returns `None` if no word would change, and for the texts in [`OF_PYTHON`].
fn words(text: &str) -> Option<(Vec<String>, Vec<u8>)> {
    let placeholder = PLACEHOLDER.as_ref()?;
    let kept: Vec<Range<usize>> = placeholder.find_iter(text).map(|found| found.range()).collect();
    let (mut other, mut has_word) = (String::new(), false);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        let length = if end == 0 { rest.chars().next().map_or(1, char::len_utf8) } else { end };
        let word = at..at + length;
        let is_kept = kept.iter().any(|kept| kept.start < word.end && word.start < kept.end);
        let backwards: String = text[word.clone()].chars().rev().collect();
        if end > 0 && backwards.chars().count() >= LEAST_LETTERS && backwards != text[word.clone()] && !is_kept {
            other.push_str(&backwards);
            has_word = true;
        } else {
            other.push_str(&text[word.clone()]);
        }
        at = word.end;
    }
    let parts: Vec<String> = placeholder.split(text).map(one_spaced).filter(|part| !part.is_empty()).collect();
    let is_of_python = OF_PYTHON.iter().any(|known| text.trim().eq_ignore_ascii_case(known));
    (has_word && !is_of_python).then_some((parts, other.into_bytes()))
}

impl Detail {
    /// Whether `text`, whose words must be separated by single spaces, states the detail: the text contains all parts
    /// as whole words and numbers or, if the detail is a type, at least one part.
    pub(crate) fn is_stated_in(&self, text: &str) -> bool {
        let mut parts = self.parts.iter();
        match self.kind {
            DetailKind::Type => parts.any(|part| contains(text, part)),
            DetailKind::Literal | DetailKind::Exception => parts.all(|part| contains(text, part)),
        }
    }
}

/// Whether a text contains `part` at least once as whole words and numbers, and not only inside of longer ones.
fn contains(text: &str, part: &str) -> bool {
    let continues = |end: Option<char>, next: Option<char>| match (end, next) {
        (Some(end), Some(next)) if end.is_ascii_digit() => next.is_ascii_digit(),
        (Some(end), Some(next)) => end.is_alphabetic() && next.is_alphabetic(),
        _ => false,
    };
    text.match_indices(part).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + part.len()..]);
        !continues(part.chars().next(), before.chars().next_back())
            && !continues(part.chars().next_back(), after.chars().next())
    })
}

/// Whether a character counts as a letter. All non-ASCII characters except white space count, because in some scripts
/// the marks on letters are separate characters.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() || (!c.is_ascii() && !c.is_whitespace())
}

/// Returns a number's text, and that of another number: the last nonzero digit before the exponent is different.
/// Returns `None` for numbers that are not decimal, have few digits ([`LEAST_DIGITS`]) or are well known ([`KNOWN`]).
fn number(text: &str) -> Option<(Vec<String>, Vec<u8>)> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"._eE+-".contains(&byte));
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_fraction = mantissa.split_once('.').is_some_and(|(_, part)| part.bytes().any(|byte| byte != b'0'));
    let is_long = significant(mantissa) >= LEAST_DIGITS || is_fraction;
    if !is_decimal || !is_long || KNOWN.contains(&mantissa.replace('_', "").as_str()) {
        return None;
    }
    let last = mantissa.rfind(|c: char| c.is_ascii_digit() && c != '0')?;
    let mut other = text.as_bytes().to_vec();
    other[last] = if other[last] == b'9' { b'8' } else { other[last] + 1 };
    Some((vec![text.to_owned()], other))
}

/// Counts the significant digits of a number without exponent.
fn significant(mantissa: &str) -> usize {
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len()
}

/// Whether all words and numbers of a text are shorter than [`LEAST_DISTINCT`].
fn is_short(text: &str) -> bool {
    let longest = text.split(|c| !is_letter(c)).map(|word| word.chars().count()).max().unwrap_or_default();
    longest < LEAST_DISTINCT && significant(text.split(['e', 'E']).next().unwrap_or_default()) < LEAST_DISTINCT
}

/// Returns the name of an exception class, without its module, and [`OTHER_EXCEPTION`], which replaces it. Returns
/// `None` for [`OTHER_EXCEPTION`] itself.
fn exception(class: &str) -> Option<(Vec<String>, Vec<u8>)> {
    let last = class.rsplit('.').next().unwrap_or_default();
    (last != OTHER_EXCEPTION).then(|| (vec![last.to_owned()], OTHER_EXCEPTION.as_bytes().to_vec()))
}

/// Returns the class in a `raise` statement: `Name` or `module.Name`, called or not.
fn raised<'a>(statement: &Node<'a>) -> Option<Node<'a>> {
    let value = statement.named_child(0)?;
    let class = if value.kind() == "call" { value.child_by_field_name("function")? } else { value };
    matches!(class.kind(), "identifier" | "attribute").then_some(class)
}

/// Returns the type in `isinstance(value, type)` if the function refuses values of other types. It does so if the call
/// is negated in an `if` whose block begins with `raise`, or if the body contains the name `NotImplemented`. `names`
/// are the names in the body.
fn required<'a>(call: &Node<'a>, source: &[u8], names: &BTreeSet<&[u8]>) -> Option<Node<'a>> {
    let function = call.child_by_field_name("function")?;
    let class = call.child_by_field_name("arguments")?.named_child(1)?;
    let raises = || {
        let negated = call.parent().filter(|parent| parent.kind() == "not_operator")?;
        let statement = negated.parent().filter(|parent| parent.kind() == "if_statement")?;
        let block = statement.child_by_field_name("consequence")?;
        block.named_child(0).filter(|first| first.kind() == "raise_statement")
    };
    let refuses = names.contains(&b"NotImplemented"[..]) || raises().is_some();
    (&source[function.byte_range()] == b"isinstance" && class.kind() == "identifier" && refuses).then_some(class)
}

/// Returns words that state the type `class`, and the code that replaces it: a tuple of `class` and the similar type
/// that [`ALIKE`] has for it. Returns `None` if [`ALIKE`] has none, or if the similar type is among `names`, the names
/// in the body.
fn accepted(class: &str, names: &BTreeSet<&[u8]>) -> Option<(Vec<String>, Vec<u8>)> {
    let (_, other, words) = ALIKE.iter().find(|(name, ..)| *name == class)?;
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    (!names.contains(other.as_bytes())).then(|| (words, format!("({class}, {other})").into_bytes()))
}

/// Replaces each stretch of white space by one space, and removes it at both ends.
pub(crate) fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the contents of a string literal are for people: the literal is neither raw (a regular expression) nor a
/// statement (a docstring).
fn is_for_people(content: &Node<'_>, source: &[u8]) -> bool {
    let Some(literal) = content.parent() else { return false };
    let mut prefix = source[literal.byte_range()].iter().take_while(|byte| byte.is_ascii_alphabetic());
    let is_raw = prefix.any(|byte| byte.eq_ignore_ascii_case(&b'r'));
    let outer = literal.parent().filter(|parent| parent.kind() == "concatenated_string").or(Some(literal));
    let is_statement = outer.and_then(|outer| outer.parent()).is_some_and(|it| it.kind() == "expression_statement");
    !is_raw && !is_statement
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "def f(x):\n    \"\"\"Of two words, 1234.\"\"\"\n    if x < 0:\n        raise ValueError(f'the value {x!r} is below\\n zero, %s' % x)\n    \
        \"another plain statement\"\n    p = re.compile(r'one or two')\n    if x > 0.0254 or x == 360 or x == 0x1234 or x == 1_250e3:\n        raise m.OwnError\n    \
        raise NotImplementedError\n    return {'key': 'some longer text' 'word'}, x.encode('UTF-8'), 'T:%Y ถ้วน', 'et', 0.7, 37, 0.5, 24, 40\n";

    #[test]
    fn words_numbers_and_exceptions_in_code_are_details_but_docstrings_and_regular_expressions_are_not() {
        let module = Module::parse("m.py", SOURCE.as_bytes().to_vec()).unwrap();
        let found = module.details(&module.body_code(0));
        let short: Vec<&str> =
            found.iter().filter(|detail| detail.is_short).map(|detail| detail.parts[0].as_str()).collect();
        assert_eq!(short, ["et", "0.7", "37"]);
        let expected = [
            vec!["ValueError"],
            vec!["the value"],
            vec!["is below", "zero,"],
            vec!["0.0254"],
            vec!["1_250e3"],
            vec!["OwnError"],
            vec!["key"],
            vec!["some longer text"],
            vec!["word"],
            vec!["T:", "ถ้วน"],
            vec!["et"],
            vec!["0.7"],
            vec!["37"],
        ];
        assert_eq!(found.into_iter().map(|detail| detail.parts).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_text_states_a_detail_only_if_it_contains_all_words_and_numbers_of_the_detail() {
        let detail = |parts: &[&str]| Detail {
            kind: DetailKind::Literal,
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
            is_short: false,
            range: 0..0,
            other: Vec::new(),
        };
        assert!(detail(&["key"]).is_stated_in("its key2 is") && !detail(&["key"]).is_stated_in("monkeys"));
        assert!(detail(&["254"]).is_stated_in("x=254.") && !detail(&["254"]).is_stated_in("1254"));
        assert!(detail(&["is below", "zero,"]).is_stated_in("zero, which is below"));
        assert!(!detail(&["is below", "zero,"]).is_stated_in("what is below"));
    }

    #[test]
    fn when_words_and_numbers_of_a_body_are_replaced_placeholders_escapes_and_other_code_stay_unchanged() {
        let module = Module::parse("m.py", SOURCE.as_bytes().to_vec()).unwrap();
        let changed = module.with_other_details(&module.details(&module.body_code(0)));
        let changed = String::from_utf8(changed).unwrap();
        assert!(
            changed.contains("raise NotImplementedError(f'eht eulav {x!r} si woleb\\n orez, %s' % x)"),
            "{changed}"
        );
        assert!(changed.contains("'emos regnol txet' 'drow'") && changed.contains("\"\"\"Of two words, 1234.\"\"\""));
        assert!(
            changed.contains(
                "x > 0.0255 or x == 360 or x == 0x1234 or x == 1_260e3:\n        raise NotImplementedError\n"
            )
        );
        assert!(changed.ends_with("x.encode('UTF-8'), 'T:%Y นว้ถ', 'te', 0.8, 38, 0.5, 24, 40\n"), "{changed}");
    }

    #[test]
    fn a_type_check_that_refuses_a_similar_type_is_a_detail_that_agents_cannot_guess() {
        let of_body = |body: &str| {
            let source = format!("def f(self, x, y):\n    {body}\n");
            let module = Module::parse("m.py", source.into_bytes()).unwrap();
            let details = module.details(&module.body_code(0));
            let details: Vec<Detail> = details.into_iter().filter(|detail| detail.kind == DetailKind::Type).collect();
            let changed = String::from_utf8(module.with_other_details(&details)).unwrap();
            (details, changed)
        };
        let (details, changed) =
            of_body("if isinstance(x, int):\n        return self.n * x\n    return NotImplemented");
        assert!(details.len() == 1 && changed.contains("if isinstance(x, (int, float)):"), "{changed}");
        assert!(details[0].is_stated_in("by an integer x") && !details[0].is_stated_in("prints a number"));
        let (details, changed) = of_body("if not isinstance(x, list):\n        raise TypeError(x)\n    return x");
        assert!(details.len() == 1 && changed.contains("if not isinstance(x, (list, tuple)):"), "{changed}");
        for body in [
            "if isinstance(x, int):\n        return 1\n    return 2",
            "if isinstance(x, int):\n        return 1\n    if isinstance(x, float):\n        return 2\n    return NotImplemented",
            "if not isinstance(x, str):\n        raise TypeError(x)\n    return x",
        ] {
            assert_eq!(of_body(body).0, []);
        }
    }
}
