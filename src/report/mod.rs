//! Reports over stored attempts: [`summarise`] computes rows, and a module for each output format renders them.
//! [`suite_rows`] computes the rows for a suite.
//!
//! [`Merged`] reads stored runs. Nothing else here reads or writes files: records come in, text goes out, and the
//! caller prints or saves it. Text written by an agent, a model or a repo is untrusted and goes through [`clean`]
//! before it reaches a terminal.

mod clean;
mod comparability;
mod compare;
mod console;
mod course;
mod csv;
mod curriculum;
mod dates;
mod difficulty;
pub(crate) mod figures;
mod how;
pub(crate) mod html;
mod json;
mod labels;
mod leaderboard;
mod merged;
mod names;
mod parity;
mod power;
mod status;
mod suite;
mod summary;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
mod trajectory;
mod verdict;
mod verifiers;

pub(crate) use clean::cell;
pub use clean::{clean, safe_json};
pub(crate) use comparability::{accepted_changes, changes_warning, differing_conditions};
pub(crate) use compare::{Contender, ContenderComparison, compare, compare_console, contenders};
pub(crate) use console::lines_console;
pub use console::{brief_console, console};
pub(crate) use course::Course;
pub use csv::csv;
pub(crate) use csv::csv_line;
pub use curriculum::{CurriculumCourse, CurriculumPart, CurriculumRun};
pub(crate) use dates::{by_date, by_date_console};
pub(crate) use difficulty::{difficulty, difficulty_console};
pub(crate) use how::{how, how_console};
pub use json::{ReportDocument, json};
pub(crate) use labels::{Label, Labelled, Labels};
pub(crate) use leaderboard::{leaderboard, leaderboard_console};
pub(crate) use merged::{Merged, MergedRun, ks};
pub(crate) use names::end_name;
use names::full_name;
pub(crate) use parity::{Aspect, ParityDescription, parity, parity_console, parity_experiment};
pub(crate) use power::{PowerInput, power_console, power_rows};
pub(crate) use status::{Status, duration, outcome};
pub(crate) use suite::{suite_console, suite_csv, suite_markdown, suite_rows};
pub use summary::{PassAt, Summary, SummaryOptions, SummaryRow, summarise};
pub(crate) use terminal::wrap_to;
pub(crate) use trajectory::{Colour, trajectory_text};
pub(crate) use verdict::verdict_lines;
pub(crate) use verifiers::{VerifierRow, verifier_rows, verifiers_console};
