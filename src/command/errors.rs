//! What kind of error a failed program shows, in the four kinds of ML-Bench: told from its record by fixed rules, so a
//! label says what was seen, not what a model thought.

use super::observe::Observed;
use crate::sandbox::Exit;

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It does not parse, or there is no program.
    Syntax,
    /// It names files, modules, commands, options or choices that do not exist.
    Hallucination,
    /// What was asked for is not there: another kind of program, or options that were left at their defaults.
    LackOfKnowledge,
    /// What is needed is there and put together wrongly: wrong values, other options, a crash, no end.
    KnowledgeManipulation,
}

impl ErrorKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Syntax, Self::Hallucination, Self::LackOfKnowledge, Self::KnowledgeManipulation];

    /// Its name, as measures have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Hallucination => "hallucination",
            Self::LackOfKnowledge => "lack_of_knowledge",
            Self::KnowledgeManipulation => "knowledge_manipulation",
        }
    }
}

/// Words with which interpreters say that something does not exist.
const UNKNOWN: [&str; 12] = [
    "unrecognized arguments",
    "invalid choice",
    "no such option",
    "no such file or directory",
    "can't open file",
    "command not found",
    "modulenotfounderror",
    "importerror",
    "has no attribute",
    "is not defined",
    "unexpected keyword argument",
    "no module named",
];

/// Words with which parsers say that something is missing.
const MISSING: [&str; 3] = ["arguments are required", "missing 1 required", "required positional argument"];

/// The kind of error of a program that failed. `kind` says whether it is of the kind asked for; `left_out` whether
/// something that was asked for is at its default or nowhere.
#[must_use]
pub fn classify(observed: &Observed, kind: bool, left_out: bool) -> ErrorKind {
    let said = observed.stderr.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let failed = !matches!(observed.exit, Exit::Code(0) | Exit::TimedOut);
    if !observed.parses {
        ErrorKind::Syntax
    } else if failed && says(&UNKNOWN) {
        ErrorKind::Hallucination
    } else if !kind || left_out || (failed && says(&MISSING)) {
        ErrorKind::LackOfKnowledge
    } else {
        ErrorKind::KnowledgeManipulation
    }
}
