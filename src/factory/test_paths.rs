//! Recognises the files of tests by their paths.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

/// Names of folders that contain tests or their data: a regular expression that matches from the beginning of a name
/// and ignores case. `package_tests.py` has the same constant.
const TEST_FOLDER: &str = r"_?(unit)?_?tests?$|test[-_]?(data|files|utils)$|testing[-_]?data$";

static FOLDER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("(?i)^(?:{TEST_FOLDER})")).ok());

/// Whether a file belongs to the tests of a package, according to its path in the package: it is in a folder for tests,
/// or has the name of a test module, or is a `conftest.py`.
pub(super) fn is_test_path(path: &Path) -> bool {
    let is_python = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("py"));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_module = ["conftest", "test", "tests"].contains(&stem.as_str())
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests");
    let mut folders = path.parent().into_iter().flat_map(Path::iter);
    let is_folder = |name: &str| FOLDER.as_ref().is_some_and(|folder| folder.is_match(name));
    (is_python && is_module) || folders.any(|part| is_folder(&part.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_folders_for_tests_and_test_modules_belong_to_the_tests() {
        for path in [
            "pkg/_tests/helpers.py",
            "pkg/unit_tests/helpers.py",
            "unittests/data/x.json",
            "Tests/helpers.py",
            "pkg/Test/x.py",
            "pkg/test_data/x.csv",
            "pkg/test_x.py",
            "pkg/x_test.py",
            "pkg/x_tests.py",
            "pkg/tests.py",
            "conftest.py",
        ] {
            assert!(is_test_path(Path::new(path)), "{path}");
        }
        for path in
            ["pkg/core.py", "pkg/testing.py", "testfixtures/compare.py", "pkg/latest/x.py", "pkg/test_x.csv", "tests"]
        {
            assert!(!is_test_path(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn the_test_runner_recognises_folders_for_tests_by_the_same_regular_expression() {
        let line = format!("TEST_FOLDER = re.compile(r\"{TEST_FOLDER}\", re.IGNORECASE)\n");
        assert!(super::super::RUNNER_CODE.contains(&line), "{line}");
    }
}
