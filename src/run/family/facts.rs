//! Descriptions of families, items and samples for pages, reports and listings.

use serde::Serialize;

use crate::score::Tolerance;
use crate::suite::PartialDate;

/// A family's names for things: singular words whose plural ends in `s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Words {
    /// Word for an item, such as "paper" or "task".
    pub item: &'static str,
    /// Word for a group of samples in reports, such as "paper" or "repo".
    pub group: &'static str,
    /// Word for a part of the repo that samples withhold from agents, such as "function" or "block".
    pub unit: &'static str,
}

impl Default for Words {
    fn default() -> Self {
        Self { item: "item", group: "group", unit: "unit" }
    }
}

/// A measure of a family's verdicts, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MeasureFacts {
    /// Name of the measure in tables. It begins with the name of the verdict that contains the measure, `reported` or
    /// `verified`, as in `verified_landmarks`.
    pub name: &'static str,
    /// Explanation of the measure, as a phrase.
    pub meaning: &'static str,
    /// Whether the measure's values are counts, rather than shares from 0 to 1.
    pub is_count: bool,
}

impl MeasureFacts {
    /// Describes a measure whose values are from 0 to 1.
    #[must_use]
    pub const fn share(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, is_count: false }
    }

    /// Describes a measure whose values are counts.
    #[must_use]
    pub const fn count(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, is_count: true }
    }
}

/// The task of a sample, for a verifier or a person who compares attempts; contains no right results.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The sample's id.
    pub sample: String,
    /// The task.
    pub task: String,
    /// The state of the repo that the attempts' diffs start from, as a phrase: "the repository without the bodies".
    pub before: String,
    /// What a right solution does, as a phrase that ends the question "which implementation most likely ...".
    pub criterion: String,
    /// Paths of the files that had to be changed; shown first if a diff is long.
    pub files: Vec<String>,
    /// The keys of the answer, each with the tolerance within which two values agree.
    pub answers: Vec<(String, Tolerance)>,
}

/// Facts about an item, for report pages.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ItemFacts {
    /// Title of the publication.
    pub title: String,
    /// Authors of the publication.
    pub authors: String,
    /// Year of publication.
    pub year: Option<u16>,
    /// Address of the publication.
    pub url: String,
    /// When the publication's first version became public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_since: Option<PartialDate>,
    /// The checks by which the item is scored.
    pub experiments: Vec<CheckFacts>,
    /// Description of missing data, if any is missing.
    pub problem: Option<String>,
    /// The text given to agents. It is not serialised, because pages load it separately.
    #[serde(skip)]
    pub text: Option<String>,
}

/// Facts about a check, for report pages.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CheckFacts {
    /// Id of the check.
    pub id: String,
    /// Description of the measurement.
    pub description: String,
    /// Command of the check.
    pub command: String,
}

/// Names of the parts that a sample withholds, and of its checks, for listings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleNames {
    /// Names of the withheld parts, in the order of [`Family::withheld`](super::Family::withheld).
    pub units: Vec<String>,
    /// Names of the checks.
    pub checks: Vec<String>,
}

/// The parts of a sample that an agent had to write, and the question it was asked.
#[derive(Debug, Clone, Default)]
pub struct SampleParts {
    /// The question that the agent was asked, if the parts do not contain it.
    pub asked: Option<String>,
    /// Heading above the parts, such as "Masked functions".
    pub heading: String,
    /// The parts.
    pub parts: Vec<WrittenPart>,
}

/// A part of the repo that an agent had to write.
#[derive(Debug, Clone, Serialize)]
pub struct WrittenPart {
    /// Name of the part: `path/file.py::Class.method`.
    pub at: String,
    /// Text of the part in the repo.
    pub original: String,
    /// Text that replaces the part in the files given to agents.
    pub masked: String,
}
