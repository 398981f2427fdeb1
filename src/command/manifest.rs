//! `commands/<repo>.toml`: instructions to run a repo, each with a program that carries it out (the right program).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::calls::Leeway;
use crate::error::{Error, Result};
use crate::files::{from_toml, line_naming};
use crate::score::ml_bench::{Argument, ProgramKind, read_arguments};
use crate::suite::{PartialDate, ResultRule, Stdout};

/// The instructions of a repo.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSet {
    /// Always `command`.
    pub family: String,
    /// Title of the repo in lists and on pages.
    pub title: String,
    /// Web address of the source.
    #[serde(default)]
    pub url: String,
    /// When the instructions were published, such as `2026-11-22` or `2026-11`.
    #[serde(default)]
    pub published: Option<PartialDate>,
    /// When the code was published.
    #[serde(default)]
    pub first_commit: Option<PartialDate>,
    /// The folder in `repos/` that attempts work in; `None` if there are only the files in `commands/<id>/`, for
    /// example for a package that is part of the env.
    #[serde(default)]
    pub repo: Option<String>,
    /// The env's id.
    pub env: String,
    /// The documentation: files of `commands/<id>/`, in order. Agents see it only if the sample's context includes it.
    pub readme: Vec<String>,
    /// Python code that gets file names as arguments and prints one line of JSON about these files, for results in
    /// files of other formats. Run after the program; attempts do not see it.
    #[serde(default)]
    pub probe: String,
    /// Import names of installed packages. Calls of their functions are recorded, in addition to calls of the repo's
    /// functions.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Functions, such as `site-packages/surprise/reader.py::Reader.__init__`, whose calls are compared for Bash
    /// scripts, too. A script makes such calls only through the programs that it starts.
    #[serde(default)]
    pub functions: Vec<String>,
    /// Arguments that may have any value, each with the reason. An instruction that lists such an argument under
    /// [`Expect::parsed`] still requires its value.
    #[serde(default)]
    pub free: BTreeMap<String, String>,
    /// The instructions.
    #[serde(rename = "instruction")]
    pub instructions: Vec<Instruction>,
}

/// One instruction: a task for an agent, to write a program or command, with the right program.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// Id of the instruction within its repo, such as `c07`.
    pub id: String,
    /// The kind of program to answer with.
    pub kind: ProgramKind,
    /// The folder of the repo in which the program is run.
    #[serde(default = "root")]
    pub path: String,
    /// The request, in words.
    pub text: String,
    /// The section of the documentation that explains the task.
    pub oracle: OracleSection,
    /// The source text of the right program.
    pub gold: String,
    /// Arguments that the program must set: values by name, written as in the gold program.
    pub arguments: Map<String, Value>,
    /// Time limit of the program in seconds.
    #[serde(default = "half_a_minute")]
    pub time_limit: f64,
    /// How to read the program's result.
    #[serde(default = "json_line")]
    pub result: ResultRule,
    /// Files that the program writes and that [`CommandSet::probe`] reads. If there are any, the line of JSON that the
    /// probe prints is the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Requirements on the program's arguments and result.
    pub expect: Expect,
}

/// A section of the repo's documentation that tells agents how to carry out an instruction (the `oracle` setting).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OracleSection {
    /// The file.
    pub file: String,
    /// The section's heading, without its `#`.
    pub heading: String,
}

/// Requirements on a program's arguments and result.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Required values of arguments, as the repo's parser must return them.
    #[serde(default)]
    pub parsed: Map<String, Value>,
    /// Whether a program's result must equal the result of the right program.
    #[serde(default)]
    pub outcome: bool,
    /// Arguments that may have any value, each with the reason why that does not matter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub free: BTreeMap<String, String>,
    /// Arguments that are lists whose order does not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unordered: Vec<String>,
    /// Tolerance of numbers in the result, if two right programs may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<LooseTolerance>,
    /// Constants of the right program that may be changed without making the program fail, each with the reason. `2#3`
    /// is the third `2` in the program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub harmless: BTreeMap<String, String>,
    /// Replacement values by the argument's name. They are put into the right program to show that a change of the
    /// argument has an effect. By default, numbers are increased and texts lengthened.
    #[serde(default)]
    pub instead: BTreeMap<String, String>,
}

/// A tolerance wider than [`EXACT`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LooseTolerance {
    /// Maximum difference, relative to the right number.
    pub relative: f64,
    /// Why the results of two right programs may differ.
    pub reason: String,
}

/// Default relative tolerance of numbers in the result of a deterministic program. Whole numbers and texts must be
/// equal.
const EXACT: f64 = 1e-9;

fn root() -> String {
    ".".to_owned()
}

const fn half_a_minute() -> f64 {
    30.0
}

const fn json_line() -> ResultRule {
    ResultRule::JsonLine(Stdout::Stdout)
}

impl Instruction {
    /// Returns the arguments that a solution's program must set, from the instruction's `arguments`.
    ///
    /// # Errors
    /// The reason why they cannot be read, as the end of a sentence.
    pub(super) fn required_arguments(&self) -> Result<Vec<Argument>, String> {
        read_arguments(&Value::Object(self.arguments.clone()))
    }
}

impl Expect {
    /// Returns the relative tolerance of numbers in the result.
    #[must_use]
    pub fn relative(&self) -> f64 {
        self.tolerance.as_ref().map_or(EXACT, |loose| loose.relative)
    }

    /// Returns the permitted differences from the right program's arguments.
    #[must_use]
    pub(super) fn leeway(&self) -> Leeway<'_> {
        Leeway { free: &self.free, unordered: &self.unordered }
    }
}

impl CommandSet {
    /// Reads and validates a manifest.
    ///
    /// # Errors
    /// Kind `Suite` for an invalid file, a duplicate id, or contradictions.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
        let hint = "see docs/family-command.md";
        let mut set: Self = from_toml(&text, path).map_err(|error| error.hint(hint))?;
        for Instruction { expect, .. } in &mut set.instructions {
            let free = set.free.iter().filter(|(name, _)| !expect.parsed.contains_key(*name));
            let free: Vec<(String, String)> = free.map(|(name, reason)| (name.clone(), reason.clone())).collect();
            for (name, reason) in free {
                expect.free.entry(name).or_insert(reason);
            }
        }
        let faults = set.faults().into_iter();
        let faults = faults.map(|(about, what)| Error::suite(what).at(path, line_naming(&text, about)).hint(hint));
        match Error::all(faults.collect()) {
            None => Ok(set),
            Some(error) => Err(error),
        }
    }

    /// Finds contradictions: the name of the item concerned, and the fault.
    fn faults(&self) -> Vec<(&str, String)> {
        let mut faults = Vec::new();
        if self.family != "command" {
            faults.push((self.family.as_str(), format!("family is `{}`, not `command`", self.family)));
        }
        let unexplained = |reasons: &BTreeMap<String, String>| {
            reasons.iter().find(|(_, reason)| reason.trim().is_empty()).map(|(name, _)| name.clone())
        };
        if let Some(name) = unexplained(&self.free) {
            faults.push(("free", format!("the argument `{name}` in `free` has an empty reason")));
        }
        let mut ids = BTreeSet::new();
        for instruction in &self.instructions {
            let id = instruction.id.as_str();
            let mut wrong = |what: String| faults.push((id, format!("instruction `{id}`: {what}")));
            if !ids.insert(id) {
                wrong("there are two of this id".to_owned());
            }
            if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                wrong("an id has letters, digits and dashes only".to_owned());
            }
            if !instruction.time_limit.is_finite() || instruction.time_limit <= 0.0 {
                wrong("time_limit must be a number of seconds above 0".to_owned());
            }
            if Path::new(&instruction.path).components().any(|part| part == std::path::Component::ParentDir)
                || instruction.path.starts_with('/')
            {
                wrong("path leads out of the repo".to_owned());
            }
            if !instruction.files.is_empty() && self.probe.is_empty() {
                wrong("it has files, and there is no probe that reads them".to_owned());
            }
            let expect = &instruction.expect;
            for (what, reasons) in [("free", &expect.free), ("harmless", &expect.harmless)] {
                if let Some(name) = unexplained(reasons) {
                    wrong(format!("`{name}` in `{what}` has an empty reason"));
                }
            }
            if let Some(loose) = &expect.tolerance {
                if !(loose.relative.is_finite() && loose.relative > EXACT && loose.relative < 1.0) {
                    wrong(format!("tolerance must be wider than the default of {EXACT:e}, and below 1"));
                }
                if loose.reason.trim().is_empty() {
                    wrong("a tolerance needs the reason why two right programs differ".to_owned());
                }
            }
            if let Err(what) = instruction.required_arguments() {
                wrong(format!("arguments: {what}"));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_errors_of_an_instruction_manifest_are_reported_with_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.toml");
        let told = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let told = CommandSet::read(&path).unwrap_err().to_string();
            told.replace(&format!("{}/", folder.path().display()), "")
        };
        let misread = told("family = 'command'\ntitel = 'T'\nurl = 3\n");
        assert!(misread.contains("x.toml:2: unknown field `titel`") && misread.contains("x.toml:3: "), "{misread}");
    }
}
