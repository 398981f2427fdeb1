//! `commands/<repo>.toml`: a repo's instructions, and the program that is right for each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::files::{from_toml, line_naming};
use crate::score::ml_bench::{Argument, ProgramKind, read_arguments};
use crate::suite::{ResultRule, Stdout, When};

/// The instructions of a repo.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSet {
    /// Always `command`.
    pub family: String,
    /// What the repo is called in lists and on pages.
    pub title: String,
    /// Where it comes from.
    #[serde(default)]
    pub url: String,
    /// When the instructions became public, as `2026-11-22` or `2026-11`.
    #[serde(default)]
    pub published: Option<When>,
    /// When the code became public.
    #[serde(default)]
    pub first_commit: Option<When>,
    /// The folder of `repos/` that attempts work in; none where `commands/<id>/` is all there is, as for a package that
    /// the env has.
    #[serde(default)]
    pub repo: Option<String>,
    /// The env.
    pub env: String,
    /// The documentation: files of `commands/<id>/`, the first of them first. Attempts see them only where the context
    /// says so.
    pub readme: Vec<String>,
    /// Python that is given names of files and prints one line of JSON about them, for results that are files of other
    /// formats. It is run after the program, and attempts do not see it.
    #[serde(default)]
    pub probe: String,
    /// Installed packages whose functions are recorded, beside those of the repo, by the names they are imported by.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Functions whose calls are compared although a script only makes them through a command line, as
    /// `site-packages/surprise/reader.py::Reader.__init__`.
    #[serde(default)]
    pub functions: Vec<String>,
    /// Arguments that may be anything in all instructions that do not name them, each with the reason.
    #[serde(default)]
    pub free: BTreeMap<String, String>,
    /// The instructions.
    #[serde(rename = "instruction")]
    pub instructions: Vec<Instruction>,
}

/// One instruction.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// Its id within the repo, as `c07`.
    pub id: String,
    /// What the answer has to be.
    pub kind: ProgramKind,
    /// The folder of the repo that the program is run in.
    #[serde(default = "root")]
    pub path: String,
    /// What is asked, in words.
    pub text: String,
    /// Where the documentation says how.
    pub oracle: Oracle,
    /// A right program.
    pub gold: String,
    /// What it has to set, by name, as text that stands in the right program.
    pub arguments: Map<String, Value>,
    /// Seconds that the program may take.
    #[serde(default = "half_a_minute")]
    pub time_limit: f64,
    /// How the program's result is read.
    #[serde(default = "json_line")]
    pub result: ResultRule,
    /// Files that the program writes, for the repo's probe, whose line of JSON then is the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What the program must have done.
    pub expect: Expect,
}

/// A section of the documentation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oracle {
    /// The file.
    pub file: String,
    /// The section's heading, without its `#`.
    pub heading: String,
}

/// What a right program does.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Arguments as the repo's parser gives them.
    #[serde(default)]
    pub parsed: Map<String, Value>,
    /// Whether the result must be that of the right program.
    #[serde(default)]
    pub outcome: bool,
    /// Arguments that may be anything, each with the reason why that cannot change what was asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub free: BTreeMap<String, String>,
    /// Arguments that are lists whose order does not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unordered: Vec<String>,
    /// How far a number of the result may be from the right one, where two right programs differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Loose>,
    /// Constants of the right program whose change need not be noticed, each with the reason. `2#3` is the third `2`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub harmless: BTreeMap<String, String>,
    /// Other values of arguments, to show that changing them changes something; where there is none, numbers are raised
    /// and text is lengthened.
    #[serde(default)]
    pub instead: BTreeMap<String, String>,
}

/// A tolerance wider than [`EXACT`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loose {
    /// Relative to the right number.
    pub relative: f64,
    /// Why two right programs differ.
    pub reason: String,
}

/// How far a number of a deterministic program's result may be from the right one, relative to it. Whole numbers and texts
/// must be equal.
pub const EXACT: f64 = 1e-9;

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
    /// What the program has to set, as the published checks compare it.
    ///
    /// # Errors
    /// A fragment that says what is wrong.
    pub fn asked(&self) -> Result<Vec<Argument>, String> {
        read_arguments(&Value::Object(self.arguments.clone()))
    }
}

impl Expect {
    /// How far a number of the result may be from the right one, relative to it.
    #[must_use]
    pub fn relative(&self) -> f64 {
        self.tolerance.as_ref().map_or(EXACT, |loose| loose.relative)
    }
}

impl CommandSet {
    /// Reads and validates a manifest.
    ///
    /// # Errors
    /// Kind `Suite` for a broken file, a double id, and what contradicts itself.
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

    /// All that contradicts itself: what it is about, and what is wrong.
    fn faults(&self) -> Vec<(&str, String)> {
        let mut faults = Vec::new();
        if self.family != "command" {
            faults.push((self.family.as_str(), format!("family is `{}`, not `command`", self.family)));
        }
        let unexplained = |reasons: &BTreeMap<String, String>| {
            reasons.iter().find(|(_, reason)| reason.trim().is_empty()).map(|(name, _)| name.clone())
        };
        if let Some(name) = unexplained(&self.free) {
            faults.push(("free", format!("`{name}` is free without a reason")));
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
                    wrong(format!("`{name}` is {what} without a reason"));
                }
            }
            if let Some(loose) = &expect.tolerance {
                if !(loose.relative.is_finite() && loose.relative > EXACT && loose.relative < 1.0) {
                    wrong(format!("tolerance must be above {EXACT:e}, which is the default, and below 1"));
                }
                if loose.reason.trim().is_empty() {
                    wrong("a tolerance needs the reason why two right programs differ".to_owned());
                }
            }
            if let Err(what) = instruction.asked() {
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
    fn all_faults_of_a_manifest_are_told_with_their_lines() {
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
