//! Extracts the program from an answer: JSON that contains it or names its file, or text from which ML-Bench's
//! published rule extracts code.

use serde_json::Value;

use crate::score::ml_bench::{ProgramKind, extract_code, strict_kind};

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Source text of the program.
    pub code: String,
    /// Kind of the program: as declared by its author, else as recognised by its syntax, else the requested kind.
    pub kind: ProgramKind,
}

/// Where to find the program that an agent submits with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerProgram {
    /// The answer contains the text of the program.
    Program(Program),
    /// The program is in the file with this name or, if there is no name, in the file with the default name
    /// ([`file_name`]).
    File(Option<String>),
}

/// The file name of a program of this kind.
#[must_use]
pub const fn file_name(kind: ProgramKind) -> &'static str {
    match kind {
        ProgramKind::Bash => "run.sh",
        ProgramKind::Python => "run.py",
    }
}

/// Returns the kind of program whose default file name ([`file_name`]) this is; `None` for any other name.
#[must_use]
pub(super) fn kind_of_file(name: &str) -> Option<ProgramKind> {
    let last = name.rsplit('/').next().unwrap_or(name);
    [ProgramKind::Bash, ProgramKind::Python].into_iter().find(|&kind| file_name(kind) == last)
}

/// Finds the program in an answer. `asked` is the requested kind, used if nothing else shows the kind.
#[must_use]
pub fn find(answer: &str, asked: ProgramKind) -> AnswerProgram {
    let text = answer.trim();
    if let Ok(Value::Object(object)) = serde_json::from_str(text) {
        let said = |key: &str| object.get(key).and_then(Value::as_str);
        if let Some(code) = said("code") {
            let kind = said("kind").and_then(kind_named);
            return AnswerProgram::Program(fenced(code, kind, asked));
        }
        return AnswerProgram::File(said("file").map(str::to_owned));
    }
    if text.is_empty() || kind_of_file(text).is_some() {
        return AnswerProgram::File(Some(text.to_owned()).filter(|name| !name.is_empty()));
    }
    AnswerProgram::Program(fenced(text, None, asked))
}

/// Extracts the code from a text in which it may be in a code fence. If `kind` is `None`, the language of the code
/// fence decides the kind, then the syntax of the code, then `asked`.
fn fenced(text: &str, kind: Option<ProgramKind>, asked: ProgramKind) -> Program {
    let code = extract_code(text);
    let before = text.find(code).map_or("", |start| &text[..start]);
    let language = before.rsplit("```").next().filter(|_| before.contains("```")).unwrap_or_default();
    let by_fence = kind_named(language.split_whitespace().next().unwrap_or_default());
    let kind = kind.or(by_fence).or_else(|| strict_kind(code)).unwrap_or(asked);
    Program { code: format!("{}\n", code.trim_end()), kind }
}

fn kind_named(name: &str) -> Option<ProgramKind> {
    match name.trim_end_matches(|c: char| c.is_ascii_digit()).to_lowercase().as_str() {
        "bash" | "sh" | "shell" | "script" => Some(ProgramKind::Bash),
        "python" | "py" => Some(ProgramKind::Python),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answers_program_is_read_from_json_a_fence_or_a_file() {
        use ProgramKind::{Bash, Python};
        let program = |code: &str, kind| AnswerProgram::Program(Program { code: code.to_owned(), kind });
        for (answer, asked, expected) in [
            (r#"{"code": "ls -l"}"#, Bash, program("ls -l\n", Bash)),
            (r#"{"kind": "python", "code": "x = 1"}"#, Bash, program("x = 1\n", Python)),
            (r#"{"code": "```bash\nls\n```"}"#, Python, program("ls\n", Bash)),
            (r#"{"file": "run.sh"}"#, Bash, AnswerProgram::File(Some("run.sh".into()))),
            ("{}", Bash, AnswerProgram::File(None)),
            ("run.py", Python, AnswerProgram::File(Some("run.py".into()))),
            ("", Python, AnswerProgram::File(None)),
            ("Here:\n```sh\nls\n```\n", Python, program("ls\n", Bash)),
            ("```python3\nprint(1)\n```", Bash, program("print(1)\n", Python)),
            ("python main.py --n 1", Python, program("python main.py --n 1\n", Bash)),
            ("import os\nprint(os.name)", Bash, program("import os\nprint(os.name)\n", Python)),
        ] {
            assert_eq!(find(answer, asked), expected, "{answer}");
        }
    }
}
