//! The additional measures of the family [`Commands`](super::Commands), in which agents turn an instruction into a
//! command. Reports show these measures.

use crate::run::family::MeasureFacts;

/// All additional measures of the family, in the order of reports: this program's own measures, ML-Bench's published
/// measures, the kinds of errors, how the program's arguments were found, and numbers of arguments.
pub const MEASURES: [MeasureFacts; 24] = [
    MeasureFacts::share("verified_kind", "the program is of the kind that was asked for"),
    MeasureFacts::share("verified_ran", "it ends with exit code 0"),
    MeasureFacts::share("verified_arguments", "it has set all the arguments that were asked for, and no wrong ones"),
    MeasureFacts::share(
        "verified_outcome",
        "its result is that of the right program, where the instruction expects one",
    ),
    MeasureFacts::share("verified_shipped", "ML-Bench's rule as published: kind, arguments and execution together"),
    MeasureFacts::share("verified_shipped_kind", "ML-Bench's kind: `.py ` or `.sh ` is somewhere in the program"),
    MeasureFacts::share("verified_shipped_arguments", "ML-Bench's arguments: each value is a substring of the program"),
    MeasureFacts::share("verified_shipped_ran", "ML-Bench's execution: exit code 0, or a timeout"),
    MeasureFacts::share("reported_text_arguments", "each value is a whole token of the answer, outside of comments"),
    MeasureFacts::share("reported_shipped_kind", "ML-Bench's kind, of the answer's text"),
    MeasureFacts::share("reported_shipped_arguments", "ML-Bench's arguments, of the answer's text"),
    MeasureFacts::share("verified_error_syntax", "fails because its text cannot be parsed"),
    MeasureFacts::share(
        "verified_error_hallucination",
        "fails because a file, module, command, option, choice or name does not exist",
    ),
    MeasureFacts::share(
        "verified_error_lack_of_knowledge",
        "fails because it is of the wrong kind, or lacks a value or an argument",
    ),
    MeasureFacts::share("verified_error_knowledge_manipulation", "fails for any other reason"),
    MeasureFacts::share("verified_by_namespace", "arguments were compared as the repository's parser returned them"),
    MeasureFacts::share("verified_by_calls", "arguments were compared as bound to the functions that it calls"),
    MeasureFacts::share("verified_by_programs", "arguments were compared as given to the programs that it starts"),
    MeasureFacts::share("verified_by_outcome", "no arguments were recorded: result and text were compared"),
    MeasureFacts::share("verified_by_text", "arguments were compared with the text, by whole tokens"),
    MeasureFacts::count("verified_parameters", "arguments that the instruction names"),
    MeasureFacts::count("verified_parameters_hit", "of these, arguments that are right"),
    MeasureFacts::count("verified_shipped_parameters_hit", "of these, arguments that are substrings of the program"),
    MeasureFacts::count("reported_shipped_parameters_hit", "of these, arguments that are substrings of the answer"),
];
