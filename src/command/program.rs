//! Extracts the program from an answer: JSON that contains it or names its file, or text from which ML-Bench's
//! published rule extracts code.

use serde_json::{Map, Value};

use crate::score::ml_bench::{ProgramKind, extract_code, strict_kind};
use crate::score::{find_answer, parse_answer};

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

/// Returns the file name of a program of this kind.
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
    if let Some(object) = answer_object(text) {
        let said = |key: &str| object.get(key).and_then(Value::as_str);
        if let Some(code) = said("code") {
            let kind = said("kind").and_then(kind_named);
            // The code is the program as it is. A fence inside of it, for example in a string, belongs to the program.
            let program = if code.trim_start().starts_with("```") {
                fenced(code, kind, asked)
            } else {
                let code = code.trim();
                Program { code: format!("{code}\n"), kind: kind.or_else(|| strict_kind(code)).unwrap_or(asked) }
            };
            return AnswerProgram::Program(program);
        }
        return AnswerProgram::File(said("file").map(str::to_owned));
    }
    if text.is_empty() || kind_of_file(text).is_some() {
        return AnswerProgram::File(Some(text.to_owned()).filter(|name| !name.is_empty()));
    }
    AnswerProgram::Program(fenced(text, None, asked))
}

/// Returns the JSON object of an answer: the whole answer, or an object in a code fence or in prose that contains or
/// names the program. Returns `None` for an answer whose program is not in JSON.
pub(super) fn answer_object(answer: &str) -> Option<Map<String, Value>> {
    let text = answer.trim();
    if let Ok(Value::Object(object)) = serde_json::from_str(text) {
        return Some(object);
    }
    let object = parse_answer(text).ok()?;
    let written = find_answer(text)?;
    let (before, after) = text.rsplit_once(written)?;
    let said = |key: &str| object.get(key).and_then(Value::as_str);
    // An object that a program contains, such as the argument of an option, is not an answer. So require that it names
    // a file that verification reads, and that no quote precedes it.
    let is_answer = object.keys().all(|key| matches!(key.as_str(), "file" | "code" | "kind"))
        && (said("code").is_some() || said("file").is_some_and(|name| kind_of_file(name).is_some()))
        && !before.ends_with(['\'', '"'])
        && !has_fenced_text(&format!("{before}{after}"));
    is_answer.then_some(object)
}

/// Whether a text has a code fence that is not empty.
fn has_fenced_text(text: &str) -> bool {
    text.split("```").skip(1).step_by(2).any(|fence| {
        let (language, code) = fence.split_once('\n').unwrap_or((fence, ""));
        !code.trim().is_empty() || language.trim().contains(' ')
    })
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
            ("```json\n{\"file\": \"run.sh\"}\n```", Bash, AnswerProgram::File(Some("run.sh".into()))),
            ("I wrote it: {\"file\": \"run.sh\"}", Bash, AnswerProgram::File(Some("run.sh".into()))),
            ("So: {\"code\": \"ls -l\", \"kind\": \"bash\"}", Python, program("ls -l\n", Bash)),
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

    #[test]
    fn a_json_object_inside_a_program_is_not_taken_for_the_answer() {
        use ProgramKind::Bash;
        for code in [
            r#"tool --options '{"code": "x"}'"#,
            r#"tool --options {"file": "other.txt"}"#,
            r#"echo '{"file": "run.sh"}' > a.json"#,
        ] {
            for answer in [code.to_owned(), format!("```bash\n{code}\n```")] {
                let program = Program { code: format!("{code}\n"), kind: Bash };
                assert_eq!(find(&answer, Bash), AnswerProgram::Program(program), "{answer}");
            }
        }
        let both = "```bash\nls\n```\nIt is also in {\"file\": \"run.sh\"}";
        assert_eq!(find(both, Bash), AnswerProgram::Program(Program { code: "ls\n".into(), kind: Bash }));
    }

    #[test]
    fn the_code_of_a_json_answer_may_contain_code_fences() {
        let code = "cat > a.md <<'END'\n```python\nx = 1\n```\nEND\npython main.py\n";
        let answer = serde_json::json!({ "code": code, "kind": "bash" }).to_string();
        let program = Program { code: code.to_owned(), kind: ProgramKind::Bash };
        assert_eq!(find(&answer, ProgramKind::Bash), AnswerProgram::Program(program));
    }
}
