//! Texts for people in code: messages of errors and other sentences.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use tree_sitter::Node;

use super::module::Module;
use super::walk;

/// Two words, which identifiers, formats and most regular expressions do not have.
static TWO_WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z]{2,}[,:;.'!]? +[A-Za-z]{2,}").ok());

/// Fields that a program fills in (`%s`, `%(name)d`, `{name}`), and escapes.
static PLACEHOLDER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"%(\(\w*\))?[-+ #0-9.]*[a-zA-Z%]|\{[^{}]*\}|\\(x..|N\{[^}]*\}|u....|.)").ok());

/// A sentence in a string literal, or the part of a sentence between two replacement fields of an f-string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// The sentence's parts between placeholders and escapes, with single spaces, for a search in other texts.
    pub(crate) parts: Vec<String>,
    /// The sentence's range of bytes in the file.
    range: Range<usize>,
}

impl Module {
    /// Returns the sentences in string literals in a range of the file's bytes, in source order: at least two words, in a
    /// literal that is neither raw (a regular expression) nor a statement (a docstring).
    pub(crate) fn sentences(&self, within: &Range<usize>) -> Vec<Sentence> {
        let readable = self.encoding.readable(self.source());
        let (Some(tree), Some(two_words), Some(placeholder)) =
            (walk::parse(&readable), TWO_WORDS.as_ref(), PLACEHOLDER.as_ref())
        else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut waiting = vec![tree.root_node()];
        while let Some(node) = waiting.pop() {
            if node.end_byte() <= within.start || within.end <= node.start_byte() {
                continue;
            }
            if node.kind() == "string_content" {
                let is_inside = within.start <= node.start_byte() && node.end_byte() <= within.end;
                let text = self.encoding.text(&self.source()[node.byte_range()]);
                if is_inside && two_words.is_match(&text) && is_for_people(&node, self.source()) {
                    let parts = placeholder.split(&text).map(one_spaced).filter(|part| !part.is_empty());
                    found.push(Sentence { parts: parts.collect(), range: node.byte_range() });
                }
                continue;
            }
            waiting.extend((0..node.child_count()).rev().filter_map(|place| node.child(place)));
        }
        found
    }

    /// Returns the file's bytes with every word of at least three letters in these sentences written backwards.
    pub(crate) fn with_other_words(&self, sentences: &[Sentence]) -> Vec<u8> {
        let mut text = self.source().to_vec();
        for sentence in sentences {
            let old = text[sentence.range.clone()].to_vec();
            let readable = String::from_utf8_lossy(&old).into_owned();
            let kept = PLACEHOLDER.iter().flat_map(|it| it.find_iter(&readable)).map(|found| found.range());
            let kept: Vec<Range<usize>> = kept.collect();
            let mut at = 0;
            while at < old.len() {
                let length = old[at..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                let word = at..at + length.max(1);
                let is_kept = kept.iter().any(|kept| kept.start < word.end && word.start < kept.end);
                if length >= 3 && readable.len() == old.len() && !is_kept {
                    text[sentence.range.start + word.start..sentence.range.start + word.end].reverse();
                }
                at = word.end;
            }
        }
        text
    }
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

    const SOURCE: &str = "def f(x):\n    \"\"\"Of two words.\"\"\"\n    if x < 0:\n        raise ValueError(f'the value {x!r} is below\\n zero, %s' % x)\n    \
        \"another plain statement\"\n    p = re.compile(r'one or two')\n    return {'key': 'some longer text' 'word'}\n";

    #[test]
    fn sentences_are_found_in_literals_but_not_in_docstrings_regular_expressions_or_single_words() {
        let module = Module::parse("m.py", SOURCE.as_bytes().to_vec()).unwrap();
        let found = module.sentences(&module.body_code(0));
        let parts: Vec<&[String]> = found.iter().map(|sentence| sentence.parts.as_slice()).collect();
        assert_eq!(parts, [vec!["the value"], vec!["is below", "zero,"], vec!["some longer text"]]);
    }

    #[test]
    fn other_words_keep_placeholders_escapes_and_the_rest_of_the_file() {
        let module = Module::parse("m.py", SOURCE.as_bytes().to_vec()).unwrap();
        let changed = String::from_utf8(module.with_other_words(&module.sentences(&module.body_code(0)))).unwrap();
        assert!(changed.contains("f'eht eulav {x!r} is woleb\\n orez, %s' % x"), "{changed}");
        assert!(changed.contains("'emos regnol txet' 'word'") && changed.contains("\"\"\"Of two words.\"\"\""));
        assert_eq!(changed.len(), SOURCE.len());
    }
}
