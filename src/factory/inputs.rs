//! Adds tests that call functions with more inputs than the package's own tests use, and compare the results with those
//! of the original code. They are needed because a wrong solution often fails only for inputs that the authors of the
//! tests did not think of. Some of these calls become examples for agents, too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::RUNNER;
use super::functions::{Candidate, spread};
use super::list::FactorySettings;
use super::prepare::Prepared;
use super::survey::{Plan, Ran, StableTests, SurveyedTest, run_tests};
use crate::error::{Error, Result};
use crate::masked::ready::ReadyPaper;
use crate::run::machine::Machine;

/// Names and texts of the modules that make inputs.
const CODE: [(&str, &str); 13] = [
    ("__init__", include_str!("more_inputs/__init__.py")),
    ("calls", include_str!("more_inputs/calls.py")),
    ("changes", include_str!("more_inputs/changes.py")),
    ("examples", include_str!("more_inputs/examples.py")),
    ("helpers", include_str!("more_inputs/helpers.py")),
    ("limits", include_str!("more_inputs/limits.py")),
    ("mutants", include_str!("more_inputs/mutants.py")),
    ("recorder", include_str!("more_inputs/recorder.py")),
    ("selection", include_str!("more_inputs/selection.py")),
    ("sequences", include_str!("more_inputs/sequences.py")),
    ("signs", include_str!("more_inputs/signs.py")),
    ("sources", include_str!("more_inputs/sources.py")),
    ("test_files", include_str!("more_inputs/test_files.py")),
];

/// Names of the file that tells the test runner for which functions to make inputs, and of the file that it writes.
const REQUEST: &str = ".autoexperiment-inputs-request.json";
const OUTPUT: &str = ".autoexperiment-inputs.json";

/// `MAKING_LIMIT` is the time after which tests are made for no further function. `LIMIT` is the time limit of the
/// whole run, which also executes the package's own tests and checks the added ones. A run that reaches it gives no
/// tests at all, so it is long enough for a busy machine.
const MAKING_LIMIT: Duration = Duration::from_mins(12);
const LIMIT: Duration = Duration::from_hours(1);

/// Largest test file that is kept, in bytes.
const LARGEST_FILE: usize = 2 << 20;

/// Prefix of the names of the added test files; `package_tests.py` has the same constant.
pub(super) const ADDED: &str = "test_autoexperiment_inputs";

/// Whether a test file at this path was added by the factory.
pub(super) fn is_added(path: &str) -> bool {
    Path::new(path).file_name().is_some_and(|name| name.to_string_lossy().starts_with(ADDED))
}

/// Returns the file of a test with this id.
pub(super) fn file_of(test: &str) -> &str {
    test.split("::").next().unwrap_or_default()
}

/// Returns the common prefix of the ids of all added tests of one function, given the id of one of them; `None` for a
/// test of the package's own.
pub(super) fn added_tests_of_function(test: &str) -> Option<&str> {
    let (of_function, _) = test.rsplit_once('_')?;
    is_added(file_of(test)).then_some(of_function)
}

/// The test files to add to the package and the examples for agents, as read from the output of the test runner.
#[derive(Debug, Default, Deserialize)]
pub(super) struct AddedInputs {
    /// Texts of the test files by path.
    pub(super) files: BTreeMap<String, String>,
    /// The functions that the added tests call.
    functions: Vec<FunctionInputs>,
    /// Numbers of functions for which no tests could be made, by reason.
    #[serde(default)]
    pub(super) left_out: BTreeMap<String, usize>,
}

/// The added tests and the examples of one function.
#[derive(Debug, Deserialize)]
struct FunctionInputs {
    /// The function, as `path.py::Class.method`.
    function: String,
    /// Common prefix of the ids of the function's added tests, see [`added_tests_of_function`].
    tests: String,
    /// Lines that each show a call and its outcome, such as `mean([1, 3]) returns 2.0`.
    examples: Vec<String>,
}

impl AddedInputs {
    /// Returns the examples of a function, given as `path.py::Class.method`; none if `kept` contains no added test of
    /// the function, for example because their results vary.
    pub(super) fn examples(&self, function: &str, kept: &BTreeMap<String, SurveyedTest>) -> &[String] {
        let is_kept = |tests: &str| kept.keys().any(|id| added_tests_of_function(id) == Some(tests));
        let found = self.functions.iter().find(|one| one.function == function && is_kept(&one.tests));
        found.map_or(&[], |one| &one.examples)
    }
}

/// Makes test files that call the functions in `candidates`, and up to `settings.examples` examples of each function. The
/// calls are derived from those that the tests in `plan` make. If the test runner fails or takes too long, the result
/// has no files, and its `left_out` gives the reason.
///
/// # Errors
/// Kind `Infrastructure` if the sandbox is lost.
pub(super) async fn make_test_files(
    ready: &ReadyPaper,
    prepared: &Prepared,
    plan: &Plan,
    candidates: &[Candidate],
    settings: &FactorySettings,
    machine: &Machine,
) -> Result<AddedInputs> {
    // Inputs are made in this order until their time is over. Functions are measured in the same order, so those that are
    // measured first have inputs.
    let ordered = spread(candidates, settings.seed).into_iter().map(|place| &candidates[place]);
    let functions: Vec<(&str, &str)> = ordered.filter_map(|candidate| candidate.name().split_once("::")).collect();
    let mut ids: Vec<&String> = plan.groups.values().flatten().collect();
    ids.sort_unstable();
    let request = json!({
        "ids": ids,
        "functions": functions,
        "examples": settings.examples,
        "seconds": MAKING_LIMIT.as_secs(),
        "code": BTreeMap::from(CODE),
    });
    let files = [(PathBuf::from(REQUEST), serde_json::to_vec(&request).unwrap_or_default()), plan.file()];
    let exports = prepared.layout.exports();
    let line = format!("{exports}\npython -B -I {RUNNER} inputs {REQUEST} --output {OUTPUT} >/dev/null");
    let Ran { written, .. } = run_tests(ready, &files, &line, OUTPUT, LIMIT, machine).await?;
    let failed = || AddedInputs {
        left_out: [("functions for which making inputs failed or took too long".to_owned(), functions.len())].into(),
        ..AddedInputs::default()
    };
    let mut found: AddedInputs = written.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_else(failed);
    found.files.retain(|path, text| is_added(path) && text.len() <= LARGEST_FILE);
    Ok(found)
}

/// Writes the test files of [`AddedInputs`] into a repo.
///
/// # Errors
/// Kind `Suite` if a path leaves the repo; `Machine` if a file cannot be written.
pub(super) fn write_test_files(repo: &Path, files: &BTreeMap<String, String>) -> Result<()> {
    for (path, text) in files {
        if !is_added(path) || Path::new(path).components().any(|part| !matches!(part, std::path::Component::Normal(_)))
        {
            return Err(Error::suite(format!("`{path}` is not the path of an added test file")));
        }
        fs::write(repo.join(path), text).map_err(|error| Error::io("write", &repo.join(path), error))?;
    }
    Ok(())
}

/// Removes the added test files that contain none of the tests in `tests`. Returns the remaining files.
///
/// # Errors
/// Kind `Machine` if a file cannot be removed.
pub(super) fn remove_unused(
    repo: &Path,
    files: BTreeMap<String, String>,
    tests: &StableTests,
) -> Result<BTreeMap<String, String>> {
    let (used, unused): (BTreeMap<_, _>, BTreeMap<_, _>) =
        files.into_iter().partition(|(path, _)| tests.kept.values().any(|test| test.file == *path));
    for path in unused.keys() {
        fs::remove_file(repo.join(path)).map_err(|error| Error::io("remove", &repo.join(path), error))?;
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_added_test_files_inside_the_repo_are_written() {
        let repo = tempfile::tempdir().unwrap();
        let file = |path: &str| BTreeMap::from([(path.to_owned(), "x = 1\n".to_owned())]);
        write_test_files(repo.path(), &file("test_autoexperiment_inputs_a.py")).unwrap();
        assert!(repo.path().join("test_autoexperiment_inputs_a.py").exists());
        for path in ["conftest.py", "../test_autoexperiment_inputs_a.py", "/test_autoexperiment_inputs_a.py"] {
            assert!(write_test_files(repo.path(), &file(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn added_tests_are_recognised_by_the_name_of_their_file() {
        let added = "tests/test_autoexperiment_inputs_1.py::test_6_thaw_12";
        assert_eq!(added_tests_of_function(added), Some("tests/test_autoexperiment_inputs_1.py::test_6_thaw"));
        assert_eq!(added_tests_of_function("tests/test_freeze.py::test_6_thaw_12"), None);
        assert_eq!(file_of("tests/test_freeze.py::TestA::test_b"), "tests/test_freeze.py");
    }

    #[test]
    fn a_function_has_examples_only_if_one_of_its_added_tests_was_kept() {
        let function = |name: &str| FunctionInputs {
            function: format!("p/m.py::{name}"),
            tests: format!("test_autoexperiment_inputs_1.py::test_0_{name}"),
            examples: vec![format!("{name}(1) returns 2")],
        };
        let added = AddedInputs { functions: vec![function("a"), function("b")], ..AddedInputs::default() };
        let kept = ["test_autoexperiment_inputs_1.py::test_0_b_3", "test_autoexperiment_inputs_1.py::test_0_c_0"];
        let kept = kept.map(|id| (id.to_owned(), SurveyedTest::default())).into();
        assert_eq!(added.examples("p/m.py::b", &kept), ["b(1) returns 2"]);
        assert!(["a", "c"].iter().all(|name| added.examples(&format!("p/m.py::{name}"), &kept).is_empty()));
    }

    #[test]
    fn every_python_file_in_the_folder_more_inputs_is_embedded_in_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/factory/more_inputs");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, CODE.map(|(name, _)| name));
    }

    #[test]
    fn the_code_of_the_test_runner_contains_the_prefix_of_added_test_files() {
        assert!(super::super::RUNNER_CODE.contains(&format!("ADDED = \"{ADDED}\"\n")));
    }
}
