//! ML-Bench's checks of a program without running it ("ML-Bench: Evaluating Large Language Models and Agents for
//! Machine Learning Tasks on Repository-Level Code"): the rules as published, faults included, and strict ones.
//!
//! The published rules look at the whole reply, including prose and fences. Each argument's value must occur somewhere
//! in the reply, even within another word or number; a reply is Bash if `.py` or `.sh` followed by a blank occurs
//! anywhere in it. The strict rules look at the reply's code without comments, find values only as whole tokens, and
//! distinguish Bash from Python by syntax. Neither the published nor the strict rules check to which option a value
//! belongs, because only running the program can show this.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::comments::without_comments;
use super::python::Literal;
use crate::code::Module;

/// The language that an answer must be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {
    /// A Bash script.
    Bash,
    /// Python code.
    Python,
}

impl ProgramKind {
    /// Returns the kind for a published row's `type`: "Bash Script", or anything else for Python.
    #[must_use]
    pub fn published(name: &str) -> Self {
        if name == "Bash Script" { Self::Bash } else { Self::Python }
    }
}

/// An argument that an instruction asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// The argument's name, such as `learning_rate`.
    pub name: String,
    /// The argument's value, as printed by Python.
    pub value: String,
}

/// Results of the checks without execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticCheck {
    /// Whether the answer contains each argument's value, in the arguments' order.
    pub arguments: Vec<bool>,
    /// Whether the answer is in the required language.
    pub kind: bool,
}

impl StaticCheck {
    /// Whether the answer contains all arguments' values.
    #[must_use]
    pub fn has_arguments(&self) -> bool {
        self.arguments.iter().all(|&hit| hit)
    }

    /// Whether the answer passes both checks.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.kind && self.has_arguments()
    }
}

/// Parses a row's arguments: the text of a Python dict, as published, or a JSON object.
///
/// # Errors
/// Returns a part of an error message that describes the fault.
pub fn read_arguments(arguments: &Value) -> Result<Vec<Argument>, String> {
    let literal = match arguments {
        Value::String(text) => Literal::parse(text)?,
        other => Literal::from_json(other),
    };
    let Literal::Dict(entries) = literal else { return Err("not a dict".to_owned()) };
    Ok(entries.iter().map(|(name, value)| Argument { name: name.printed(), value: value.printed() }).collect())
}

/// Applies the published checks to a whole reply.
#[must_use]
pub fn shipped_check(reply: &str, arguments: &[Argument], kind: ProgramKind) -> StaticCheck {
    let lower = reply.to_lowercase();
    StaticCheck {
        arguments: arguments.iter().map(|argument| lower.contains(&argument.value.to_lowercase())).collect(),
        kind: shipped_kind(reply) == kind,
    }
}

/// Returns the language in which a reply is written according to the published rule. The reply is also run in this
/// language.
#[must_use]
pub fn shipped_kind(reply: &str) -> ProgramKind {
    if reply.contains(".sh ") || reply.contains(".py ") { ProgramKind::Bash } else { ProgramKind::Python }
}

/// Applies the strict checks to the code in a reply.
#[must_use]
pub fn strict_check(reply: &str, arguments: &[Argument], kind: ProgramKind) -> StaticCheck {
    let code = extract_code(reply);
    let bare = without_comments(code);
    StaticCheck {
        arguments: arguments.iter().map(|argument| holds_value(&bare, &argument.value)).collect(),
        kind: strict_kind(code) == Some(kind),
    }
}

/// Returns the code of a reply by the published rule: the contents of the first fence marked `python`, or else `bash`,
/// `shell` or `script`, or else of the first fence at all, or else the whole reply. Surrounding blanks, and the rest of
/// the line that opens the fence, are removed.
#[must_use]
pub fn extract_code(reply: &str) -> &str {
    static FENCES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        let fence = |language: &str| Regex::new(&format!("(?s)```{language}(.*?)```")).ok();
        ["python[0-9]?", "bash", "shell", "script", r"(?:[A-Za-z]+[ \t]*(?:\r?\n))?"]
            .into_iter()
            .filter_map(fence)
            .collect()
    });
    let code = FENCES.iter().find_map(|fence| Some(fence.captures(reply)?.get(1)?.as_str()));
    code.unwrap_or(reply).trim()
}

/// Returns the language of a program by its syntax: Python if it parses as Python and contains more than words and
/// options such as `ls -l`; else Bash if its first line could begin with a command and no line looks like Python; else
/// `None`.
#[must_use]
pub fn strict_kind(code: &str) -> Option<ProgramKind> {
    // Python parses `ls -l` as a difference of two names, so names alone do not make a program Python.
    static ONLY_A_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\w./-]+(?:\s+--?[\w./-]+)*$").ok());
    static COMMAND: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[!$]?\s*(?:\w+=\S*\s+)*(?:\w+=\S*|[\w.~/${}\x22'\[-]+(?:\s|;|$)|[})\]])").ok());
    static PYTHON: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^(?:import|from|def|class|async|with|try:|print\(|[\w.]+\s+=\s|@\w)").ok());
    let is = |pattern: &Option<Regex>, text: &str| pattern.as_ref().is_some_and(|pattern| pattern.is_match(text));
    let bare = without_comments(code).replace("\\\n", " ");
    let lines: Vec<&str> = bare.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return None;
    }
    let names_only = lines.iter().all(|line| is(&ONLY_A_NAME, line));
    if !names_only && Module::parse("answer.py", code.as_bytes().to_vec()).is_ok() {
        return Some(ProgramKind::Python);
    }
    let is_bash = is(&COMMAND, lines[0]) && !lines.iter().any(|line| is(&PYTHON, line));
    is_bash.then_some(ProgramKind::Bash)
}

/// Whether code contains a value as a whole token. A number matches any number of the same value, however written; a
/// text must not be part of a longer word or hyphenated word. Case, and blanks around punctuation, do not matter.
#[allow(clippy::float_cmp, reason = "the same number, written in two ways")]
fn holds_value(code: &str, value: &str) -> bool {
    let value = value.trim();
    if let Some(number) = as_number(value) {
        return numbers(code).any(|other| other == number);
    }
    let (code, value) = (squeezed(code), squeezed(value));
    if value.is_empty() {
        return true;
    }
    let mut at = 0;
    while let Some(start) = code[at..].find(&value).map(|offset| at + offset) {
        let end = start + value.len();
        if ends_token(code[..start].chars().rev(), value.chars())
            && ends_token(code[end..].chars(), value.chars().rev())
        {
            return true;
        }
        at = start + value.chars().next().map_or(1, char::len_utf8);
    }
    false
}

/// Whether one of the two ends of a value that was found in a text is the end of a token, so that the value is not just
/// a part of a longer word or number. Both iterators start at this end and go away from it: `inside` through the
/// value's characters, `outside` through the text's characters next to the value.
fn ends_token(mut outside: impl Iterator<Item = char>, mut inside: impl Iterator<Item = char>) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (Some(next), Some(own)) = (outside.next(), inside.next()) else { return true };
    match next {
        _ if is_word(next) => !is_word(own) && !matches!(own, '-' | '.'),
        // `cora` is not a token in `cora-full`, but is in `cora.`, `cora.py` and `--cora`.
        '-' if is_word(own) => !outside.next().is_some_and(is_word),
        '.' if is_word(own) => !outside.next().is_some_and(|c| c.is_ascii_digit()),
        '-' | '.' => next != own,
        _ => true,
    }
}

/// Converts a text to lower case, and replaces each run of blanks by one blank. Blanks next to brackets, commas and
/// colons are removed.
fn squeezed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let separates = |c: char| matches!(c, ',' | '(' | ')' | '[' | ']' | '{' | '}' | ':');
    for word in text.to_lowercase().split_whitespace() {
        let glued = out.chars().last().is_none_or(separates) || word.starts_with(separates);
        if !glued {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

fn as_number(text: &str) -> Option<f64> {
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))
        .then(|| text.replace('_', "").parse().ok())
        .flatten()
}

/// Returns the numbers in a text that are whole tokens, that is, not part of a word, a version, a file name or a
/// hyphenated word. A minus counts as a sign unless a number or name before it makes it a subtraction.
fn numbers(text: &str) -> impl Iterator<Item = f64> {
    static NUMBER: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?").ok());
    let found = NUMBER.iter().flat_map(move |pattern| pattern.find_iter(text));
    found.filter_map(move |found| {
        let mut before = text[..found.start()].chars().rev();
        let mut after = text[found.end()..].chars();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (last, second) = (before.next(), before.next());
        let signed = matches!(last, Some('-' | '+'));
        let starts = match last {
            Some('-' | '+') => {
                second.is_none_or(|c| c.is_whitespace() || matches!(c, '=' | '(' | '[' | '{' | ',' | ':' | '"' | '\''))
            }
            Some(c) => !is_word(c) && c != '.',
            None => true,
        };
        let (next, then) = (after.next(), after.next());
        let ends = match next {
            Some('-' | '.') => !then.is_some_and(is_word),
            Some(c) => !is_word(c),
            None => true,
        };
        let number: f64 = found.as_str().replace('_', "").parse().ok().filter(|_| starts && ends)?;
        Some(if signed && last == Some('-') { -number } else { number })
    })
}

/// Whether the published rule counts a program as executed: exit code 0, or still running at the time limit (`None`).
#[must_use]
pub const fn shipped_ran(exit: Option<i32>) -> bool {
    matches!(exit, None | Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(text: &str) -> Vec<Argument> {
        read_arguments(&json!(text)).unwrap()
    }

    #[test]
    fn arguments_are_read_from_a_dict_in_python_or_json() {
        let read = arguments("{'lr': 1e-5, 'gpu': '3', 'sizes': (1, 2), 'flag': True, 'lr': 0.1}");
        let pairs: Vec<_> = read.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
        assert_eq!(pairs, [("lr", "0.1"), ("gpu", "3"), ("sizes", "(1, 2)"), ("flag", "True")]);
        assert_eq!(read_arguments(&json!({"a": null})).unwrap()[0].value, "None");
        assert_eq!(read_arguments(&json!("[1]")).unwrap_err(), "not a dict");
        assert!(read_arguments(&json!("{'a'")).is_err());
    }

    #[test]
    fn the_published_check_finds_argument_values_as_substrings_anywhere_in_the_reply() {
        let asked = arguments("{'lr': 1, 'data': 'Cora'}");
        let check = shipped_check("Use 10 of CORA-full: python run.py --x", &asked, ProgramKind::Bash);
        assert!(check.passes());
        let check = shipped_check("python -m run --lr 1", &asked, ProgramKind::Bash);
        assert_eq!(check, StaticCheck { arguments: vec![true, false], kind: false });
        assert_eq!(shipped_kind("python run.py"), ProgramKind::Python);
        assert!(shipped_check("", &[], ProgramKind::Python).passes());
    }

    #[test]
    fn the_strict_rules_find_values_only_as_whole_tokens() {
        for (code, value, holds) in [
            ("run.py --lr 0.0001", "1e-4", true),
            ("run.py --lr=1e-4", "0.0001", true),
            ("run.py --lr 10", "1", false),
            ("run.py --lr 0.1", "1", false),
            ("run.py --lr -1", "1", false),
            ("run.py --lr -1", "-1", true),
            ("run.py --lr 1e-5", "5", false),
            ("vit_base_16", "16", false),
            ("vit-b-16", "16", false),
            ("f(x=1_000)", "1000", true),
            ("torch 1.13.1", "13", false),
            ("--data cora", "Cora", true),
            ("--data cora_full", "cora", false),
            ("--data cora-full", "cora", false),
            ("--cora", "cora", true),
            ("python train.py", "train", true),
            ("release v2.5", "v2", false),
            ("python train.py", "train.py", true),
            ("python pretrain.py", "train.py", false),
            ("--file ./a/b.txt", "b.txt", true),
            ("--file ../a", "./a", false),
            ("randn( 50, 64,512 )", "(50,64,512)", true),
            ("randn(150,64,512)", "(50,64,512)", false),
            ("--flag True", "True", true),
            ("x = None", "None", true),
            ("say 'a cat.'", "a cat", true),
            ("anything", "", true),
        ] {
            assert_eq!(holds_value(code, value), holds, "{value} in {code}");
        }
        let asked = arguments("{'lr': 3}");
        assert!(!strict_check("python a.py # --lr 3", &asked, ProgramKind::Bash).has_arguments());
        assert!(!strict_check("Set 3.\n```bash\npython a.py\n```", &asked, ProgramKind::Bash).has_arguments());
    }

    #[test]
    fn code_comes_from_the_first_fence_of_the_preferred_language() {
        assert_eq!(extract_code("a\n```bash\nls\n```\n```python\nx = 1\n```"), "x = 1");
        assert_eq!(extract_code("```script\nls\n``` ```bash\npwd\n```"), "pwd");
        assert_eq!(extract_code("```\nls\n```"), "ls");
        assert_eq!(extract_code("```sh\nls\n```"), "ls");
        assert_eq!(extract_code("```ls -l```"), "ls -l");
        assert_eq!(extract_code(" ls\n"), "ls");
        assert_eq!(extract_code("```python\nx = 1"), "```python\nx = 1");
    }

    #[test]
    fn the_strict_rule_tells_from_the_syntax_whether_a_program_is_python_or_bash() {
        for (code, kind) in [
            ("python run.py", Some(ProgramKind::Bash)),
            ("python run.py --a 1", Some(ProgramKind::Bash)),
            ("# first\nCUDA_VISIBLE_DEVICES=0 python -m a.b \\\n  --x 1", Some(ProgramKind::Bash)),
            ("bash run.sh", Some(ProgramKind::Bash)),
            ("./run.sh", Some(ProgramKind::Bash)),
            ("cd a && ls", Some(ProgramKind::Bash)),
            ("make", Some(ProgramKind::Bash)),
            ("ls -l", Some(ProgramKind::Bash)),
            ("import os\nos.system('python run.py ')", Some(ProgramKind::Python)),
            ("x = 1", Some(ProgramKind::Python)),
            ("import os\nx = (", None),
            ("", None),
            ("# nothing", None),
        ] {
            assert_eq!(strict_kind(code), kind, "{code}");
        }
    }

    #[test]
    fn the_published_rule_of_ml_bench_counts_exit_code_0_and_a_timeout_as_executed() {
        assert!(shipped_ran(None) && shipped_ran(Some(0)) && !shipped_ran(Some(1)));
    }
}
