//! Finds the programs that a Bash script starts, and their arguments. A verdict compares them with the programs that
//! the right program starts. It does so only if the right program, when it was run, called neither the repo's argument
//! parsers nor functions whose calls can be compared.
//!
//! Bash itself writes the commands that it runs, expanded, to a trace, and each Python process records the arguments
//! that it received from the kernel. Programs other than Python that are started by something other than Bash, for
//! example by `xargs`, are not recorded.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Beginning of each line of the trace; Bash repeats the first character for nested commands.
const PROMPT: &str = "@run@";
/// Bash commands that start no program.
const BUILTINS: [&str; 41] = [
    "((", ".", ":", "[", "[[", "alias", "bg", "break", "case", "cd", "continue", "declare", "echo", "enable", "eval",
    "exit", "export", "false", "for", "hash", "let", "local", "mapfile", "popd", "printf", "pushd", "pwd", "read",
    "readonly", "return", "select", "set", "shift", "shopt", "source", "test", "trap", "true", "type", "unset", "wait",
];

/// A program that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedProgram {
    /// Name of the program; if Python ran a script, the script's name.
    pub program: String,
    /// Arguments of the program, with `--name=value` split in two.
    pub arguments: Vec<String>,
}

/// A Python process, as recorded by itself.
#[derive(Debug, Deserialize)]
pub struct PythonProcess {
    argv: Vec<String>,
}

/// Returns Bash commands that must be run before a script. They make Bash write a trace of the script to this file, but
/// no traces of further scripts that the script starts.
#[must_use]
pub fn tracer(file: &Path) -> String {
    format!("unset BASH_ENV\nexec {{BASH_XTRACEFD}}>>'{}'\nPS4='{PROMPT} '\nset -x\n", file.display())
}

/// Extracts the programs from a trace of Bash and from the records of Python processes.
#[must_use]
pub fn started(trace: &str, processes: &[PythonProcess]) -> Vec<StartedProgram> {
    let by_python: Vec<StartedProgram> = processes.iter().filter_map(python).collect();
    let mut found = by_python.clone();
    for line in trace.lines() {
        let Some(line) = line.trim_start_matches('@').strip_prefix(&format!("{} ", &PROMPT[1..])) else { continue };
        let is_before = |word: &String| is_assignment(word) || matches!(word.as_str(), "exec" | "command");
        let mut words = words(line).into_iter().skip_while(is_before);
        let Some(program) = words.next() else { continue };
        let program = program.rsplit('/').next().unwrap_or_default().to_owned();
        // Skip Python processes in the trace: each has recorded itself, even if its script was started by the script's
        // name without `python`.
        let is_python = program.starts_with("python") || by_python.iter().any(|other| other.program == program);
        if !is_python && !BUILTINS.contains(&program.as_str()) && !program.is_empty() {
            found.push(StartedProgram { program, arguments: split(words) });
        }
    }
    found
}

fn python(process: &PythonProcess) -> Option<StartedProgram> {
    let mut words = process
        .argv
        .iter()
        .skip(1)
        .skip_while(|word| word.starts_with('-') && !matches!(word.as_str(), "-m" | "-c" | "-"));
    let first = words.next()?;
    let program = match first.as_str() {
        "-m" => format!("-m {}", words.next()?),
        "-c" | "-" => return None,
        script => script.rsplit('/').next().unwrap_or_default().to_owned(),
    };
    Some(StartedProgram { program, arguments: split(words.cloned()) })
}

fn split(words: impl Iterator<Item = String>) -> Vec<String> {
    let parts = words.flat_map(|word| match word.split_once('=') {
        Some((name, value)) if name.starts_with("--") => vec![name.to_owned(), value.to_owned()],
        _ => vec![word],
    });
    parts.map(|part| part.strip_prefix("./").map_or(part.clone(), str::to_owned)).collect()
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Splits a line of a trace into words. Bash quotes with `'...'`, `$'...'` and backslashes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(rest.by_ref().take_while(|&c| c != '\''));
            }
            '$' if rest.peek() == Some(&'\'') => {
                rest.next();
                let word = word.get_or_insert_default();
                while let Some(c) = rest.next().filter(|&c| c != '\'') {
                    word.push(match c {
                        '\\' => match rest.next() {
                            Some('n') => '\n',
                            Some('t') => '\t',
                            Some('r') => '\r',
                            other => other.unwrap_or('\\'),
                        },
                        c => c,
                    });
                }
            }
            '\\' => word.get_or_insert_default().extend(rest.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Whether two programs were started with the same arguments. The order of the arguments does not matter, except that
/// each option must be followed by the same value.
#[must_use]
pub fn is_same(right: &StartedProgram, got: &StartedProgram) -> bool {
    let is_option = |word: &str| word.starts_with('-') && word.parse::<f64>().is_err();
    let counts = |started: &StartedProgram| {
        started.arguments.iter().fold(BTreeMap::new(), |mut counts, word| {
            *counts.entry(normal(word)).or_insert(0) += 1;
            counts
        })
    };
    let follows = |started: &StartedProgram, name: &str| {
        let at = started.arguments.iter().position(|word| word == name)?;
        started.arguments.get(at + 1).filter(|word| !is_option(word)).map(|word| normal(word))
    };
    right.program == got.program
        && counts(right) == counts(got)
        && right.arguments.iter().filter(|word| is_option(word)).all(|name| {
            let (right, got) = (follows(right, name), follows(got, name));
            right.is_none() || got.is_none() || right == got
        })
}

/// Normalises numbers, so that different spellings are equal.
fn normal(word: &str) -> String {
    word.parse::<f64>().map_or_else(|_| word.to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(program: &str, arguments: &[&str]) -> StartedProgram {
        StartedProgram { program: program.to_owned(), arguments: split(arguments.iter().map(|&word| word.to_owned())) }
    }

    #[test]
    fn a_bash_trace_gives_programs_with_unquoted_arguments_and_no_builtins() {
        let trace = "@run@ cd data\n@@run@ sort -k2 'a b' $'x\\ty' it\\'s\n@run@ X=1\n@run@ python main.py\nnoise\n";
        let process = PythonProcess { argv: ["python", "-u", "main.py", "--k=10"].map(Into::into).into() };
        let found = started(trace, &[process]);
        assert_eq!(found, [run("main.py", &["--k", "10"]), run("sort", &["-k2", "a b", "x\ty", "it's"])]);
    }

    #[test]
    fn every_start_of_a_program_is_found_and_a_script_of_python_once() {
        let trace = "@run@ sort a\n@run@ ./main.py --k 1\n@run@ sort b\n";
        let process = PythonProcess { argv: ["python", "./main.py", "--k", "1"].map(Into::into).into() };
        let found = started(trace, &[process]);
        assert_eq!(found, [run("main.py", &["--k", "1"]), run("sort", &["a"]), run("sort", &["b"])]);
    }

    #[test]
    fn order_and_spelling_of_options_do_not_distinguish_commands_but_the_values_of_options_do() {
        let right = run("tool", &["in.txt", "--k", "10", "--rate", "0.5"]);
        for (arguments, same) in [
            (&["--rate=.5", "--k=10", "./in.txt"][..], true),
            (&["in.txt", "--k", "10"], false),
            (&["in.txt", "--k", "0.5", "--rate", "10"], false),
            (&["in.txt", "--k", "10", "--rate", "0.5", "--more"], false),
        ] {
            assert_eq!(is_same(&right, &run("tool", arguments)), same, "{arguments:?}");
        }
    }
}
