//! `factory.json`: the tasks that were made from each package, and everything that is needed to make the same suite
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::source::SourceRecord;
use super::survey::Plan;
use crate::error::{Error, Result};
use crate::files::{hex, write_durably};
use crate::suite::{Dependencies, Gold, PaperEvidence, PartialDate};

/// Name of the list in the suite's folder.
pub const LIST: &str = "factory.json";

/// Format version of the list.
const FORMAT: u32 = 1;

/// Version of this program.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// All packages of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactoryList {
    /// Format version, 1.
    pub format: u32,
    /// Version of the program that made all packages of the suite.
    pub program: String,
    /// Settings that determine which tasks are made.
    pub settings: FactorySettings,
    /// Packages, in the order in which they were named.
    pub packages: Vec<PackageEntry>,
}

/// Settings that decide which tasks are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactorySettings {
    /// Maximum functions per package.
    pub most: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time limit of a test in seconds.
    pub test_seconds: f64,
    /// Whether agents see the tests.
    pub visible_tests: bool,
    /// Minimum mutation score of a function.
    pub least_score: f64,
    /// Mutants per function.
    pub mutants: usize,
    /// Whether doctests count as tests. If so, agents see the outputs of the examples in docstrings.
    pub doctests: bool,
    /// Whether the documentation that agents see keeps the outputs of code examples.
    pub keep_examples: bool,
    /// Whether only functions with a docstring are masked.
    #[serde(default)]
    pub documented: bool,
    /// Maximum examples of calls per function.
    #[serde(default)]
    pub examples: usize,
}

/// One package.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageEntry {
    /// The package as the user named it.
    pub package: String,
    /// Id of the package's paper, repo and env.
    pub id: String,
    /// Name in the package's metadata.
    pub name: String,
    /// Version in the package's metadata.
    pub version: String,
    /// Licence in the package's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// Where the sources came from; absent if they could not be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRecord>,
    /// Sources of the older version that `refresh` compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<SourceRecord>,
    /// Why no tasks were made from the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Counts of tests and functions.
    pub funnel: Funnel,
    /// Wall-clock minutes that all stages took for the package.
    pub minutes: f64,
    /// Wall-clock minutes that each stage took.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stages: BTreeMap<String, f64>,
    /// Bytes of the package's repo, paper and env files in the suite.
    pub bytes: u64,
    /// Bytes of the package's built environment.
    pub env_bytes: u64,
    /// Sources of the requirements that have no wheel and were copied into the repo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vendored: Vec<SourceRecord>,
    /// Requirements that were left out, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Everything that was measured; absent if there are no tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// SHA-256 in hex of each file of the suite that belongs to the package, by its path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, String>,
}

/// Counts of a package's tests and functions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Funnel {
    /// Tests that were found.
    pub tests: usize,
    /// Number of the package's own tests that were kept. Kept tests decide whether an attempt passes.
    pub tests_kept: usize,
    /// Number of tests that were added to the package's own tests to try more inputs, without those that were left out;
    /// see [`Measured::added`].
    #[serde(default)]
    pub tests_added: usize,
    /// Number of tests, own and added, for which the values that the package returns to the test are also compared with
    /// gold. Tests that were left out do not count.
    pub tests_with_values: usize,
    /// Tests left out, by reason.
    pub tests_left_out: BTreeMap<String, usize>,
    /// Number of added tests that were left out, and of functions for which no test could be made, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added_left_out: BTreeMap<String, usize>,
    /// Functions in the package's sources.
    pub functions: usize,
    /// Number of functions that are executed in at least one test that was not left out.
    pub entered: usize,
    /// Number of functions among `entered` that are suitable tasks: neither trivial nor too long, for example.
    pub candidates: usize,
    /// Number of functions among `candidates` that were masked or mutated, to check that their tests then fail.
    pub tried: usize,
    /// Functions that became maskable in the suite.
    pub kept: usize,
    /// Maskable functions that an older version did not have.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fresh: usize,
    /// Selectors of dropped functions, by reason.
    pub dropped: BTreeMap<String, Vec<String>>,
    /// For the functions in `kept`: number of mutants that were run, and number of mutants that were killed.
    pub mutants: (usize, usize),
    /// Number of pairs and triples of functions that were masked together, and number of those for which tests failed,
    /// as they should.
    pub combinations: (usize, usize),
}

/// Measurements of a package. Together with the package's sources, they determine the package's files in the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// `environment.yml`.
    pub environment: String,
    /// Lock files of the env, by name.
    pub locks: BTreeMap<String, String>,
    /// Command that builds C extensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Year of the package, for its paper.
    pub year: u16,
    /// Tag of the only interpreter that the compiled code works with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abi: Option<String>,
    /// Files of the tests.
    pub test_files: Vec<String>,
    /// Texts of the test files that were added, by path; they call functions with more inputs than the package's own
    /// tests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added: BTreeMap<String, String>,
    /// The groups of tests; each group is an experiment.
    pub(super) plan: Plan,
    /// Maskable functions of the package.
    pub functions: Vec<ListedFunction>,
    /// Results of the unmasked repo.
    pub gold: Gold,
    /// For each group of tests, the functions that the group needs.
    pub dependencies: Dependencies,
    /// For each function, the results of its mutants, and how much of its body agents can also read elsewhere in the
    /// files that they get.
    pub evidence: PaperEvidence,
}

/// A maskable function of the suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedFunction {
    /// The function's selector.
    pub at: String,
    /// The function's description, with examples of calls.
    pub description: String,
    /// Headings in the paper's text that contain the function's name.
    pub passages: Vec<String>,
    /// Date of the release that brought the function, if an older version was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<PartialDate>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl PackageEntry {
    /// Adds the time since `begun` to a stage.
    pub(super) fn spent(&mut self, stage: &str, begun: Instant) {
        *self.stages.entry(stage.to_owned()).or_default() += minutes_since(begun);
    }
}

/// Returns the minutes since `begun`, to a hundredth.
pub(super) fn minutes_since(begun: Instant) -> f64 {
    (begun.elapsed().as_secs_f64() / 0.6).round() / 100.0
}

impl FactoryList {
    /// Makes a list without packages.
    #[must_use]
    pub fn new(settings: FactorySettings) -> Self {
        Self { format: FORMAT, program: PROGRAM.to_owned(), settings, packages: Vec::new() }
    }

    /// Reads a list.
    ///
    /// # Errors
    /// Kind `Usage` if there is no such file; `Suite` if it is broken or of another format.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::unreadable(path, error))?;
        let broken = |error: serde_json::Error| {
            Error::suite(format!("broken list of packages: {error}")).at(path, Some(error.line()))
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(broken)?;
        if value.get("format").and_then(serde_json::Value::as_u64) != Some(u64::from(FORMAT)) {
            return Err(Error::suite(format!("a list of packages of another format; this version reads {FORMAT}"))
                .at(path, None)
                .hint("update autoexperiment"));
        }
        let program = value.get("program").and_then(serde_json::Value::as_str).unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| {
            let hint =
                format!("version {program} of autoexperiment made the list, and this is {PROGRAM}: use that version");
            if program == PROGRAM { broken(error) } else { broken(error).hint(hint) }
        })
    }

    /// Checks that this version of the program may add packages to the suite. Packages that were made by different
    /// versions cannot be made again from one list, because each version has its own test runner.
    ///
    /// # Errors
    /// Kind `Usage` if the suite has packages that another version made.
    pub(super) fn require_this_program(&self) -> Result<()> {
        if self.packages.is_empty() || self.program == PROGRAM {
            return Ok(());
        }
        Err(Error::usage(format!("the suite was made with version {} of autoexperiment, not {PROGRAM}", self.program))
            .hint("continue it with that version, or name another folder"))
    }

    /// Writes the list.
    ///
    /// # Errors
    /// Kind `Machine` if it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        save_json(path, self)
    }
}

/// Writes a value as JSON, atomically.
pub(super) fn save_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::internal("failed to serialise the list of packages").because(error))?;
    text.push('\n');
    write_durably(path, text.as_bytes())
}

/// Returns the digests of a package's files in a suite, and their total bytes.
pub(super) fn digests(root: &Path, id: &str) -> Result<(BTreeMap<String, String>, u64)> {
    let mut found = BTreeMap::new();
    let mut bytes = 0;
    for part in ["papers", "repos", "envs"] {
        let walk = walkdir::WalkDir::new(root.join(part).join(id)).sort_by_file_name().into_iter();
        for entry in walk.flatten().filter(|entry| entry.file_type().is_file()) {
            let content = std::fs::read(entry.path()).map_err(|error| Error::io("read", entry.path(), error))?;
            bytes += content.len() as u64;
            let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).display().to_string();
            found.insert(path, hex(&Sha256::digest(&content)));
        }
    }
    Ok((found, bytes))
}

/// Returns the paths whose digests differ.
pub(super) fn differing(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    names.into_iter().filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

#[cfg(test)]
impl FactorySettings {
    /// Settings for tests.
    pub(super) fn small() -> Self {
        Self {
            most: 1,
            seed: 0,
            test_seconds: 5.0,
            visible_tests: false,
            least_score: 0.8,
            mutants: 10,
            doctests: false,
            keep_examples: false,
            documented: false,
            examples: 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_continued_only_by_the_version_that_made_it() {
        let mut list = FactoryList::new(FactorySettings::small());
        list.program = "0.0.1".to_owned();
        list.require_this_program().unwrap();
        list.packages.push(PackageEntry::default());
        assert!(list.require_this_program().unwrap_err().message.contains("made with version 0.0.1"));
        list.program = PROGRAM.to_owned();
        list.require_this_program().unwrap();
    }
}
