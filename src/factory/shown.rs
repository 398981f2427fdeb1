//! Checks the repo that agents get before functions are measured: its code must be importable without the files that
//! are hidden from agents, and no file may give code away that is masked later.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::imports::{IMPORT_LIMIT, ImportCommand, OUTPUT, importing};
use super::inputs::file_of;
use super::layout::Layout;
use super::list::PackageEntry;
use super::prepare::Prepared;
use super::survey::{Plan, Ran, StableTests, Survey, SurveyedTest, run_tests};
use super::test_paths::is_test_path;
use super::workshop::Workshop;
use super::{PLAN, RUNNER};
use crate::audit::leaks::{self, FindingKind};
use crate::error::{Error, Result};
use crate::masked::ready::ReadyPaper;
use crate::run::event::Observer;
use crate::suite::copies;

/// Configuration files that tests and builds share. They are protected, but never hidden.
const SHARED: [&str; 6] = ["pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "PKG-INFO", "MANIFEST.in"];

/// The files of a package's tests, and the package's files that need them.
pub(super) struct TestFiles {
    /// Files of the tests. They are hidden from agents, unless agents see the tests.
    pub(super) files: Vec<String>,
    /// Files of the package that cannot be imported without hidden files. Agents could not run their functions.
    pub(super) dependent: BTreeSet<PathBuf>,
}

impl Workshop {
    /// Chooses the files of the tests. Removes tests from `tests` whose files agents could read and change, because the
    /// package needs these files.
    ///
    /// # Errors
    /// Kind `Suite` if the package cannot be imported without the files of its tests, or if agents would get a file,
    /// such as an archive, that may contain masked code.
    pub(super) async fn test_files(
        &self,
        prepared: &Prepared,
        surveyed: &Survey,
        tests: &mut StableTests,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<TestFiles> {
        let layout = &prepared.layout;
        let repo = prepared.draft.suite().repo_dir(prepared.draft.id());
        let mut files = test_files(surveyed, &tests.kept, &repo, layout);
        let mut dependent = self.dependent(prepared, &files, &tests.kept, observer).await?;
        // A file with tests that is in the package, but not named like a test, may also contain code that the package
        // needs. Then agents get the file, and its tests are left out.
        let is_apart = |file: &String| is_like_test(Path::new(file)) || !layout.holds(Path::new(file));
        if !dependent.is_empty() && !files.iter().all(is_apart) {
            files.retain(is_apart);
            dependent = self.dependent(prepared, &files, &tests.kept, observer).await?;
        }
        if let Some((name, (_, why))) = dependent.iter().find(|(name, _)| layout.modules.contains(name)) {
            let message = format!("`{name}` needs files of its tests, which are hidden from agents: {why}");
            return Err(Error::suite(message).hint("show the tests to agents: `--tests visible`"));
        }
        let count = tests.kept.len();
        tests.kept.retain(|id, _| {
            let file = file_of(id);
            files.iter().any(|hidden| hidden == file) || !surveyed.test_files.contains(file)
        });
        if tests.kept.len() < count {
            let reason = "in a file that the package needs".to_owned();
            entry.funnel.tests_left_out.insert(reason, count - tests.kept.len());
        }
        Ok(TestFiles { files, dependent: dependent.into_values().map(|(file, _)| file).collect() })
    }

    /// Returns the modules of the package that need hidden files: with all files they can be imported, but in the repo
    /// that agents get, from which `test_files` are hidden, they cannot. Each is given by its file and the reason why
    /// its import fails. Tries the package's main modules, and those with functions that tests run.
    async fn dependent(
        &self,
        prepared: &Prepared,
        test_files: &[String],
        tests: &BTreeMap<String, SurveyedTest>,
        observer: &dyn Observer,
    ) -> Result<BTreeMap<String, (PathBuf, String)>> {
        self.write_paper(prepared, test_files, &Plan::default(), &[], None)?;
        let ready = self.ready(prepared.draft.suite(), prepared.draft.id(), observer).await?;
        refuse_unsearchable(&ready)?;
        if self.settings.visible_tests {
            return Ok(BTreeMap::new());
        }
        let modules = modules(&prepared.layout, test_files, tests, ready.shown.tree());
        let exports = prepared.layout.exports();
        let all: BTreeSet<&String> = modules.keys().collect();
        let Some(usual) = self.failed_imports(&ready, &exports, &all).await? else { return Ok(BTreeMap::new()) };
        let seen = ReadyPaper { snapshot: ready.shown.clone(), ..ready };
        // Import the same modules as before, because importing one may prepare what the next needs.
        let failed = self.failed_imports(&seen, &exports, &all).await?;
        let ended = || all.iter().map(|name| ((*name).clone(), "its import ends the process".to_owned())).collect();
        let with_file = |(name, why): (String, String)| {
            if usual.contains_key(&name) {
                return None;
            }
            let file = modules.get(&name)?.clone();
            Some((name, (file, why)))
        };
        Ok(failed.unwrap_or_else(ended).into_iter().filter_map(with_file).collect())
    }

    /// Imports modules in a new sandbox. Returns those that cannot be imported, with the reason; `None` if the program
    /// that imports them gives no result.
    async fn failed_imports(
        &self,
        ready: &ReadyPaper,
        exports: &str,
        modules: &BTreeSet<&String>,
    ) -> Result<Option<BTreeMap<String, String>>> {
        let ImportCommand { files, line } = importing(modules, exports);
        let limit = Duration::from_secs_f64(IMPORT_LIMIT);
        let Ran { written, .. } = run_tests(ready, &files, &line, OUTPUT, limit, &self.machine).await?;
        Ok(written.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }
}

/// Refuses a package if the env contains the package itself, or something else with the name of one of its modules.
pub(super) fn refuse_installed(ready: &ReadyPaper) -> Result<()> {
    let listed = copies::listed(&ready.loaded);
    let mut found = listed.into_iter().chain(copies::installed(&ready.loaded, &ready.env.prefix));
    found.next().map_or(Ok(()), |error| Err(with_place(error, &ready.env.prefix)))
}

/// Refuses a package if agents would get a file that may contain masked code, but cannot be compared with it: an
/// archive of code, compiled code, or objects of git.
fn refuse_unsearchable(ready: &ReadyPaper) -> Result<()> {
    let report = leaks::measure(&ready.loaded, Some(&ready.shown))?;
    let is_fault = |kind| matches!(kind, FindingKind::Archive | FindingKind::Compiled | FindingKind::GitObjects);
    let Some(finding) = report.findings.into_iter().find(|finding| is_fault(finding.kind)) else { return Ok(()) };
    let error = with_place(finding.error, &ready.loaded.repo_dir);
    Err(Error { message: format!("agents would get {}", error.message), ..error })
}

/// Adds an error's path below `root` to its message, because a package's entry has the message only.
pub(super) fn with_place(error: Error, root: &Path) -> Error {
    let place = error.place.as_ref().map(|(path, _)| path.strip_prefix(root).unwrap_or(path));
    let Some(place) = place else { return error };
    let message = format!("{} (`{}`)", error.message, place.display());
    Error { message, place: None, ..error }
}

/// Returns the names and files of modules: the main modules of the package that exist in the folder `shown`, and those
/// with functions that tests run. Leaves out the files of the tests.
fn modules(
    layout: &Layout,
    test_files: &[String],
    tests: &BTreeMap<String, SurveyedTest>,
    shown: &Path,
) -> BTreeMap<String, PathBuf> {
    let hidden: BTreeSet<&str> = test_files.iter().map(String::as_str).collect();
    let functions = tests.values().flat_map(|test| &test.entered);
    let entered: BTreeSet<&str> = functions.filter_map(|function| Some(function.split_once("::")?.0)).collect();
    let files = entered.into_iter().filter(|file| !hidden.contains(file)).map(PathBuf::from);
    let mut found: BTreeMap<String, PathBuf> =
        files.filter_map(|file| Some((layout.module_of(&file)?, file))).collect();
    for module in &layout.modules {
        let place = layout.root.join(module.split('.').collect::<PathBuf>());
        let file = if shown.join(&place).is_dir() { place.join("__init__.py") } else { place.with_extension("py") };
        if shown.join(&place).is_dir() || shown.join(&file).is_file() {
            found.entry(module.clone()).or_insert(file);
        }
    }
    found
}

/// Whether a path has a name that files or folders of tests have. For files that the test runner lists, any name that
/// starts with `test` is enough.
fn is_like_test(path: &Path) -> bool {
    is_test_path(path) || path.iter().any(|part| part.to_string_lossy().to_lowercase().starts_with("test"))
}

/// Returns the files of the tests in the repo. Modules of the package are left out, unless they contain kept tests or
/// are named like tests.
fn test_files(survey: &Survey, kept: &BTreeMap<String, SurveyedTest>, repo: &Path, layout: &Layout) -> Vec<String> {
    let with_tests: BTreeSet<&str> = kept.keys().map(|id| file_of(id)).collect();
    let is_test = |file: &String| {
        let path = Path::new(file);
        !SHARED.contains(&file.as_str())
            && file != RUNNER
            && file != PLAN
            && repo.join(path).is_file()
            && (is_like_test(path) || !layout.holds(path) || with_tests.contains(file.as_str()))
    };
    survey.test_files.iter().filter(|file| is_test(file)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn touch(root: &Path, files: &[&str]) {
        for file in files {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
    }

    fn entering(id: &str, functions: &[&str]) -> (String, SurveyedTest) {
        let entered = functions.iter().map(|function| (*function).to_owned()).collect();
        (id.to_owned(), SurveyedTest { entered, ..SurveyedTest::default() })
    }

    #[test]
    fn helpers_and_files_with_tests_are_test_files_but_modules_of_the_package_are_not() {
        let repo = tempfile::tempdir().unwrap();
        let files = [
            "p/_tests/helpers.py",
            "p/unittests/data.json",
            "p/unit_tests/conftest.py",
            "p/Tests/helpers.py",
            "p/check_core.py",
            "p/core.py",
            "setup.cfg",
            "check_p.py",
        ];
        touch(repo.path(), &files);
        let listed = files.iter().map(|file| (*file).to_owned()).chain(["p/_tests/absent.py".to_owned()]);
        let survey = Survey { test_files: listed.collect(), ..Survey::default() };
        let kept = BTreeMap::from([entering("p/check_core.py::TestA::test_b[1::2]", &[])]);
        let mut found = test_files(&survey, &kept, repo.path(), &Layout::of_package("p"));
        found.sort();
        let expected = [
            "check_p.py",
            "p/Tests/helpers.py",
            "p/_tests/helpers.py",
            "p/check_core.py",
            "p/unit_tests/conftest.py",
            "p/unittests/data.json",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn main_modules_and_modules_that_tests_run_are_imported_but_hidden_ones_are_not() {
        let shown = tempfile::tempdir().unwrap();
        touch(shown.path(), &["p/__init__.py", "p/core.py", "p/unused.py", "single.py"]);
        let modules_named = ["p", "single", "hidden"].map(str::to_owned).to_vec();
        let layout = Layout { modules: modules_named, ..Layout::of_package("p") };
        let functions = ["p/core.py::f", "p/core.py::A.g", "p/tests/helpers.py::h", "p/__main__.py::main", "x.py::f"];
        let tests = BTreeMap::from([entering("p/tests/test_a.py::test", &functions)]);
        let found = modules(&layout, &["p/tests/helpers.py".to_owned()], &tests, shown.path());
        let expected = [("p", "p/__init__.py"), ("p.core", "p/core.py"), ("single", "single.py")];
        let expected = BTreeMap::from(expected.map(|(name, file)| (name.to_owned(), PathBuf::from(file))));
        assert_eq!(found, expected);
    }
}
