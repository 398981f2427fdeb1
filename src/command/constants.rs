//! The constants of a program, and variants of the program with one constant changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tree_sitter::{Node, Parser};

use super::manifest::Instruction;
use crate::score::ml_bench::ProgramKind;

/// A program with one constant changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstantChange {
    /// The constant in the manifest's notation: `2#3` is the third `2` of the program.
    pub constant: String,
    /// The new value.
    pub instead: String,
    /// The changed program.
    pub code: String,
}

/// Returns versions of an instruction's right program, in each of which one constant has another value. For a text,
/// `others` returns related values of the repo, such as the other files of a folder.
#[must_use]
pub fn changes(instruction: &Instruction, others: &dyn Fn(&str) -> Vec<String>) -> Vec<ConstantChange> {
    let code = instruction.gold.as_str();
    let places = match instruction.kind {
        ProgramKind::Python => python(code, 0),
        ProgramKind::Bash => bash(code),
    };
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for place in places {
        let text = &code[place.range.clone()];
        let count = seen.entry(text).or_insert(0);
        *count += 1;
        let constant = if *count == 1 { text.to_owned() } else { format!("{text}#{count}") };
        let mut instead = place.instead;
        if place.is_text {
            instead.extend(others(text));
        }
        let asked = instruction.required_arguments().unwrap_or_default();
        let named = asked.iter().filter(|argument| argument.value == text);
        instead.extend(named.filter_map(|argument| instruction.expect.instead.get(&argument.name).cloned()));
        let instead: BTreeSet<String> = instead.into_iter().filter(|other| other != text).collect();
        found.extend(instead.into_iter().map(|other| ConstantChange {
            constant: constant.clone(),
            code: format!("{}{other}{}", &code[..place.range.start], &code[place.range.end..]),
            instead: other,
        }));
    }
    found
}

/// A constant and its possible replacements.
struct ReplaceableConstant {
    range: Range<usize>,
    instead: Vec<String>,
    is_text: bool,
}

impl ReplaceableConstant {
    fn new(range: Range<usize>, instead: Vec<String>) -> Self {
        Self { range, instead, is_text: false }
    }

    /// Finds the constants in a text: a number, each part of a list, or the text as a whole.
    fn in_text(text: &str, start: usize) -> Vec<Self> {
        let mut places = Vec::new();
        let mut at = start;
        for part in text.split(',') {
            let range = at..at + part.len();
            at = range.end + 1;
            if let Some(instead) = numbers(part) {
                places.push(Self::new(range, instead));
            } else if !part.trim().is_empty() {
                places.push(Self { range, instead: texts(part), is_text: true });
            }
        }
        places
    }
}

/// Returns wrong numbers to put in place of a number; `None` if the text is not a number.
fn numbers(text: &str) -> Option<Vec<String>> {
    let digits = text.replace('_', "");
    if let Ok(whole) = digits.parse::<i64>() {
        let mut others = vec![whole + 1, whole.saturating_mul(2).saturating_add(3)];
        if whole > 0 {
            others.push(whole - 1);
        }
        return Some(others.iter().map(ToString::to_string).collect());
    }
    let number: f64 = digits.parse().ok().filter(|number: &f64| number.is_finite())?;
    let written = |number: f64| format!("{}", (number * 1e9).round() / 1e9);
    Some(vec![written(number * 1.5 + 0.01), written(number * 0.9)])
}

/// Returns wrong texts to put in place of a text: longer, shorter, and without the first word. Options are only
/// lengthened, because a shorter option may be an abbreviation of the same one.
fn texts(text: &str) -> Vec<String> {
    let mut others = vec![format!("{text}x")];
    if text.starts_with("--") {
        return others;
    }
    let mut shorter = text.to_owned();
    shorter.pop();
    others.extend(Some(shorter).filter(|text| !text.is_empty()));
    others.extend(text.split_once(' ').map(|(_, rest)| rest.to_owned()));
    others
}

/// Returns the constants of Python code that begins at byte `start` of the program.
fn python(code: &str, start: usize) -> Vec<ReplaceableConstant> {
    let mut parser = Parser::new();
    let tree = parser.set_language(&tree_sitter_python::LANGUAGE.into()).ok().and_then(|()| parser.parse(code, None));
    let Some(tree) = tree else { return Vec::new() };
    let mut places = Vec::new();
    visit(tree.root_node(), code, start, &mut places);
    places
}

fn visit(node: Node<'_>, code: &str, start: usize, places: &mut Vec<ReplaceableConstant>) {
    let range = start + node.start_byte()..start + node.end_byte();
    let text = &code[node.byte_range()];
    match node.kind() {
        "integer" | "float" => places.extend(numbers(text).map(|instead| ReplaceableConstant::new(range, instead))),
        "true" => places.push(ReplaceableConstant::new(range, vec!["False".to_owned()])),
        "false" => places.push(ReplaceableConstant::new(range, vec!["True".to_owned()])),
        "none" => places.push(ReplaceableConstant::new(range, vec!["0".to_owned(), "1".to_owned()])),
        "string_content" => places.extend(ReplaceableConstant::in_text(text, range.start)),
        // A docstring has no effect, so it contains no constants.
        "expression_statement"
            if node.child(0).is_some_and(|child| ["string", "concatenated_string"].contains(&child.kind())) => {}
        _ => {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                visit(child, code, start, places);
            }
        }
    }
}

/// Returns the constants of a Bash script: values and options of its commands. An option is removed together with its
/// value.
fn bash(code: &str) -> Vec<ReplaceableConstant> {
    let mut places = Vec::new();
    for command in commands(code) {
        for (index, word) in command.iter().enumerate().skip(1) {
            let text = &code[word.clone()];
            let inside = text.trim_matches(['\'', '"']);
            let inside_start = word.start + (text.len() - text.trim_start_matches(['\'', '"']).len());
            let is_option = inside.starts_with('-') && inside.parse::<f64>().is_err();
            if is_option {
                let (name, value) = inside.split_once('=').map_or((inside, None), |(name, value)| (name, Some(value)));
                if let Some(value) = value {
                    places.extend(ReplaceableConstant::in_text(value, inside_start + name.len() + 1));
                }
                let next =
                    command.get(index + 1).filter(|next| value.is_none() && !code[(*next).clone()].starts_with('-'));
                let end = next.map_or(word.end, |next| next.end);
                places.push(ReplaceableConstant::new(word.start..end, vec![String::new()]));
            } else if inside.contains(['{', '(']) {
                places.extend(python(inside, inside_start));
            } else {
                places.extend(ReplaceableConstant::in_text(inside, inside_start));
            }
        }
    }
    places
}

/// Returns the words of each command of a script, as byte ranges.
fn commands(code: &str) -> Vec<Vec<Range<usize>>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<usize> = None;
    let mut quote: Option<char> = None;
    let mut rest = code.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let is_end = quote.is_none() && (c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')'));
        if is_end {
            if let (Some(start), Some(command)) = (word.take(), commands.last_mut()) {
                command.push(start..at);
            }
            if matches!(c, '\n' | ';' | '|' | '&') {
                commands.push(Vec::new());
            }
            continue;
        }
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '\\') => {
                let next = rest.next();
                if quote.is_none() && word.is_none() && next.is_some_and(|(_, c)| c == '\n') {
                    continue;
                }
            }
            _ => {}
        }
        word.get_or_insert(at);
    }
    if let (Some(start), Some(command)) = (word, commands.last_mut()) {
        command.push(start..code.len());
    }
    commands.retain(|command| !command.is_empty());
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(kind: ProgramKind, code: &str) -> Vec<String> {
        let places = if kind == ProgramKind::Bash { bash(code) } else { python(code, 0) };
        let changes = places.into_iter().flat_map(|place| {
            let name = code[place.range.clone()].to_owned();
            place.instead.into_iter().map(move |other| format!("{name}>{other}"))
        });
        changes.collect()
    }

    #[test]
    fn variants_of_a_python_program_change_one_of_its_constants_and_keep_its_names() {
        let code = "\"\"\"Docs 1.\"\"\"\nimport a2\nx = a2.f(3, rate=0.5, on=True, name='ab', sizes='4,5')\n";
        let expected =
            ["3>4", "3>9", "3>2", "0.5>0.76", "0.5>0.45", "True>False", "ab>abx", "ab>a", "4>5", "4>11", "4>3", "5>6"];
        assert_eq!(changed(ProgramKind::Python, code)[..12], expected);
    }

    #[test]
    fn variants_of_a_bash_program_change_or_omit_one_of_its_arguments_or_options() {
        let code = "python main.py --k=10 -v \\\n  --p \"{'a': 7}\"; sort x";
        let changes = changed(ProgramKind::Bash, code);
        for one in ["main.py>main.pyx", "10>11", "--k=10>", "-v>", "7>8", "--p \"{'a': 7}\">", "x>xx"] {
            assert!(changes.iter().any(|change| change == one), "{one} in {changes:?}");
        }
    }
}
