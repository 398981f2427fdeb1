//! The kind of error of a failed program, one of ML-Bench's four kinds. It follows from the program's record by fixed
//! rules, so it depends only on observations, not on a model's opinion.

use super::observe::ProgramRecord;
use crate::sandbox::Exit;

/// A kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The program does not parse or is missing.
    Syntax,
    /// The program names files, modules, commands, options or choices that do not exist.
    Hallucination,
    /// The program lacks something that was requested: it is of another kind (Bash or Python), or it leaves requested
    /// options at their defaults.
    LackOfKnowledge,
    /// Everything needed is present but used wrongly: wrong values, other options, a crash, a timeout.
    KnowledgeManipulation,
}

impl ErrorKind {
    /// All kinds of errors.
    pub const ALL: [Self; 4] = [Self::Syntax, Self::Hallucination, Self::LackOfKnowledge, Self::KnowledgeManipulation];

    /// Name of the kind, as in the measure `error_syntax`.
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

/// Phrases in error messages about something that does not exist.
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

/// Phrases in error messages about something that is missing.
const MISSING: [&str; 3] = ["arguments are required", "missing 1 required", "required positional argument"];

/// Classifies the error of a failed program. `kind` says whether the program is of the requested kind (Bash or Python).
/// `left_out` says whether the program lacks a requested value, or leaves it at its default.
#[must_use]
pub fn classify(observed: &ProgramRecord, kind: bool, left_out: bool) -> ErrorKind {
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
