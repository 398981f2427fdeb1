//! The packages that a package and its tests need, from its metadata and the files in which test tools list them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex::Regex;
use toml::{Table, Value};

use super::index::normalised;
use super::requirement_files::{declared, ini, listed_in_files, literal_list, poetry_list};
use crate::draft::metadata::{self, text};
use crate::env::is_from_index;

/// Names of extras and groups that hold what tests need.
const TEST_GROUPS: [&str; 9] =
    ["test", "tests", "testing", "unittest", "pytest", "dev", "develop", "dev-dependencies", "all"];

/// Tools of developers that tests do not import: linters, documentation, coverage, releases. A name that ends in `*`
/// covers all names that begin with the part before the star.
const TOOLS: [&str; 62] = [
    "autoflake",
    "autopep8",
    "bandit",
    "black",
    "build",
    "bump*",
    "check-manifest",
    "codecov",
    "codespell",
    "cov-core",
    "coverage*",
    "coveralls",
    "docutils-*",
    "doc8",
    "flake8*",
    "flit",
    "furo",
    "hatch",
    "invoke",
    "ipython",
    "ipykernel",
    "isort",
    "jupyter*",
    "mkdocs*",
    "mypy*",
    "myst*",
    "nbsphinx*",
    "nox",
    "numpydoc",
    "pep8*",
    "pdoc*",
    "pip-tools",
    "poethepoet",
    "pre-commit*",
    "prospector",
    "pycodestyle",
    "pydocstyle",
    "pyflakes",
    "pylint*",
    "pyright",
    "pyroma",
    "pytest-black",
    "pytest-flake8",
    "pytest-mypy*",
    "pytest-ruff",
    "pytest-sugar",
    "pytest-checkdocs",
    "pytest-enabler",
    "pytest-travis*",
    "pyupgrade",
    "readme-renderer",
    "restructuredtext*",
    "ruff",
    "setuptools-git*",
    "sphinx*",
    "tox*",
    "towncrier",
    "twine",
    "types-*",
    "validate-pyproject",
    "vulture",
    "wheel",
];

/// Modules that tests often import although nothing lists them as a requirement, and the packages that have them.
const OFTEN_UNLISTED: [(&str, &str); 16] = [
    ("attr", "attrs"),
    ("dateutil", "python-dateutil"),
    ("ddt", "ddt"),
    ("freezegun", "freezegun"),
    ("hypothesis", "hypothesis"),
    ("matplotlib", "matplotlib"),
    ("mock", "mock"),
    ("networkx", "networkx"),
    ("numpy", "numpy"),
    ("pandas", "pandas"),
    ("parameterized", "parameterized"),
    ("pytz", "pytz"),
    ("scipy", "scipy"),
    ("six", "six"),
    ("sklearn", "scikit-learn"),
    ("yaml", "pyyaml"),
];

/// Requirements of a package's test environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Requirements {
    /// Requirements of the package itself.
    pub(super) own: Vec<String>,
    /// Requirements of its tests.
    pub(super) tests: Vec<String>,
    /// Requirements that were left out, with the reason.
    pub(super) left_out: Vec<String>,
}

impl Requirements {
    /// Returns all requirements: those of the package, of its tests, and pytest.
    pub(super) fn all(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let pytest = ["pytest".to_owned()];
        for one in self.own.iter().chain(&self.tests).chain(&pytest) {
            let is_known = all.contains(one) || (one == "pytest" && all.iter().any(|known| name_of(known) == "pytest"));
            if !is_known {
                all.push(one.clone());
            }
        }
        all
    }

    /// Drops requirements that are named like a module of the sources, such as a `versioneer.py` that the package
    /// brings along. Otherwise, the env would contain a second copy of the module.
    pub(super) fn drop_modules_of(&mut self, sources: &Path) {
        for list in [&mut self.tests, &mut self.own] {
            let dropped = list.extract_if(.., |one| has_module(sources, &name_of(one).replace('-', "_")));
            self.left_out.extend(dropped.map(|one| format!("{one}: the sources have a module of this name")));
        }
    }

    /// Drops the requirements that an error message of pip names, and returns them. If the message names requirements
    /// of the tests, only these are dropped. Otherwise, the requirements of the package itself that the message names
    /// are dropped. Tests that need a dropped requirement fail in the first runs of all tests (`survey`) and are then
    /// left out.
    pub(super) fn drop_named(&mut self, message: &str) -> Vec<String> {
        let said = message.to_lowercase();
        let words: BTreeSet<String> = said
            .split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
            .map(|word| normalised(word.trim_matches('.')))
            .collect();
        for list in [&mut self.tests, &mut self.own] {
            let dropped: Vec<String> = list.extract_if(.., |one| words.contains(&name_of(one))).collect();
            if !dropped.is_empty() {
                return dropped;
            }
        }
        Vec::new()
    }
}

/// Returns the name of the required package, in the normalised form in which package indexes compare names.
pub(super) fn name_of(requirement: &str) -> String {
    let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    normalised(&requirement[..end.unwrap_or(requirement.len())])
}

/// Reads the requirements of the package in a folder. `name` is the package's own name, which is never required.
pub(super) fn find(folder: &Path, name: &str) -> Requirements {
    let project: Table = text(folder, "pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut extras: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut own: Vec<String> = Vec::new();
    let mut tests: Vec<String> = Vec::new();
    let poetry = project.get("tool").and_then(|tool| tool.get("poetry"));
    for (plain, named) in declared(folder).unwrap_or_default() {
        if named.is_empty() {
            own.push(plain);
        } else {
            for extra in named {
                extras.entry(extra).or_default().push(plain.clone());
            }
        }
    }
    if own.is_empty() {
        own = metadata::dependencies(folder).map(|found| found.packages).unwrap_or_default();
        own.extend(poetry_list(poetry.and_then(|poetry| poetry.get("dependencies"))));
    }
    let tables = [
        project.get("project").and_then(|project| project.get("optional-dependencies")),
        project.get("dependency-groups"),
        project.get("tool").and_then(|tool| tool.get("pdm")).and_then(|pdm| pdm.get("dev-dependencies")),
    ];
    for (group, list) in tables.into_iter().flatten().filter_map(Value::as_table).flatten() {
        let list = list.as_array().into_iter().flatten();
        for one in list {
            let entry = extras.entry(normalised(group)).or_default();
            if let Some(text) = one.as_str() {
                entry.push(text.to_owned());
            } else if let Some(other) = one.get("include-group").and_then(Value::as_str) {
                entry.push(format!("{name}[{other}]"));
            }
        }
    }
    let groups = poetry.and_then(|poetry| poetry.get("group")).and_then(Value::as_table).into_iter().flatten();
    for (group, table) in groups {
        extras.entry(normalised(group)).or_default().extend(poetry_list(table.get("dependencies")));
    }
    extras.entry("dev".to_owned()).or_default().extend(poetry_list(poetry.and_then(|it| it.get("dev-dependencies"))));
    for file in ["setup.cfg", "tox.ini"] {
        let said = text(folder, file).unwrap_or_default();
        for group in TEST_GROUPS {
            extras.entry(group.to_owned()).or_default().extend(ini(&said, "options.extras_require", group));
        }
        tests.extend(ini(&said, "options", "tests_require"));
        tests.extend(ini(&said, "testenv", "deps"));
    }
    if let Some(setup) = text(folder, "setup.py") {
        tests.extend(literal_list(&setup, "tests_require"));
        for group in TEST_GROUPS {
            tests.extend(literal_list(&setup, group));
        }
    }
    for group in TEST_GROUPS {
        tests.extend(extras.get(group).cloned().unwrap_or_default());
    }
    tests.extend(listed_in_files(folder));
    let mut found = Requirements::default().with(name, own, tests, &extras);
    let unlisted = unlisted(folder, &found);
    found.tests.extend(unlisted);
    found
}

/// Whether the sources in a folder have a module or package of this name at the top.
fn has_module(folder: &Path, name: &str) -> bool {
    ["", "src", "lib"].iter().any(|root| {
        let place = folder.join(root).join(name);
        place.join("__init__.py").is_file() || place.with_extension("py").is_file()
    })
}

/// Returns the packages of [`OFTEN_UNLISTED`] that test files import, that no requirement names, and that the sources
/// do not have themselves.
fn unlisted(folder: &Path, listed: &Requirements) -> Vec<String> {
    let Ok(import) = Regex::new(r"(?m)^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)") else { return Vec::new() };
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    let mut imported: BTreeSet<String> = BTreeSet::new();
    for file in files.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "py")) {
        let path = file.path().strip_prefix(folder).unwrap_or(file.path());
        if path.iter().any(|part| part.to_string_lossy().to_lowercase().contains("test")) {
            let code = fs::read(file.path()).unwrap_or_default();
            let code = String::from_utf8_lossy(&code);
            imported.extend(import.captures_iter(&code).map(|found| found[1].to_owned()));
        }
    }
    let names: BTreeSet<String> = listed.own.iter().chain(&listed.tests).map(|one| name_of(one)).collect();
    let needed = OFTEN_UNLISTED.iter().filter(|(module, package)| {
        imported.contains(*module) && !names.contains(*package) && !has_module(folder, module)
    });
    needed.map(|(_, package)| (*package).to_owned()).collect()
}

impl Requirements {
    fn with(
        mut self,
        name: &str,
        own: Vec<String>,
        tests: Vec<String>,
        extras: &BTreeMap<String, Vec<String>>,
    ) -> Self {
        let mut seen = BTreeSet::new();
        for (is_test, list) in [(false, own), (true, tests)] {
            let mut todo: Vec<String> = list.into_iter().rev().collect();
            while let Some(one) = todo.pop() {
                let one = one.split(" #").next().unwrap_or_default().trim().to_owned();
                if one.is_empty() || one.starts_with('#') || !seen.insert((is_test, one.clone())) {
                    continue;
                }
                let named = name_of(&one);
                if named == normalised(name) {
                    // A package may require itself in order to require its own extras. Add the requirements of these
                    // extras, but not the package, which is never installed.
                    let inside =
                        one.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(inside, _)| inside);
                    for extra in inside.unwrap_or_default().split(',') {
                        todo.extend(extras.get(&normalised(extra)).cloned().unwrap_or_default());
                    }
                    continue;
                }
                if !is_from_index(&one) || one.contains(['{', '\\']) {
                    self.left_out.push(format!("{one}: names a URL, path or option, not a package by its name"));
                } else if is_test && is_tool(&named) {
                    self.left_out.push(format!("{one}: a developer's tool"));
                } else if is_test && is_contradicted(&one, &self.own) {
                    self.left_out.push(format!("{one}: already among the package's own requirements"));
                } else if is_test {
                    // Several files may pin one tool differently; the first one counts.
                    if !self.tests.iter().any(|known| name_of(known) == named && marker(known) == marker(&one)) {
                        self.tests.push(one);
                    }
                } else {
                    self.own.push(one);
                }
            }
        }
        self
    }
}

fn marker(requirement: &str) -> &str {
    requirement.split_once(';').map_or("", |(_, marker)| marker.trim())
}

/// Whether the tested package itself requires the same package as this requirement of its tests. `own` contains the
/// tested package's requirements, whose versions take precedence.
fn is_contradicted(requirement: &str, own: &[String]) -> bool {
    own.iter().any(|known| name_of(known) == name_of(requirement))
}

fn is_tool(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.strip_suffix('*').map_or(*tool == name, |start| name.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Requirements {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        find(folder.path(), "my-pkg")
    }

    #[test]
    fn packages_of_test_extras_are_required_but_developer_tools_and_the_package_itself_are_not() {
        let info = "Name: my-pkg\nRequires-Dist: numpy>=1\nRequires-Dist: hypothesis; extra == \"test\"\n\
                    Requires-Dist: tomli; (python_version < \"3.11\") and extra == 'test'\nRequires-Dist: ruff; extra == 'dev'\n\
                    Requires-Dist: my_pkg[more]; extra == 'dev'\nRequires-Dist: attrs; extra == 'more'\n\
                    Requires-Dist: sphinx; extra == 'docs'\n\nRequires-Dist: no\n";
        let found = read(&[("PKG-INFO", info)]);
        assert_eq!(found.own, ["numpy>=1"]);
        assert_eq!(found.tests, ["hypothesis", "tomli; (python_version < \"3.11\")", "attrs"]);
        assert_eq!(found.left_out, ["ruff: a developer's tool"]);
        assert_eq!(found.all().last().unwrap(), "pytest");
    }

    #[test]
    fn requirements_of_tests_are_read_from_dependency_groups_tox_and_requirement_files() {
        let toml = "[project]\nname = 'my-pkg'\ndependencies = ['six']\n[dependency-groups]\ntest = ['pytest>=7', {include-group = 'x'}]\n\
                    x = ['mock']\n";
        let tox =
            "[testenv]\ndeps =\n    freezegun\n    py27: enum34\n    -rrequirements.txt\n    .\ncommands = pytest\n";
        let found = read(&[
            ("pyproject.toml", toml),
            ("tox.ini", tox),
            ("requirements-test.txt", "-r other.txt\nresponses==1 # why\ngit+https://x/y\n"),
            ("other.txt", "pyyaml\n"),
        ]);
        assert_eq!(found.own, ["six"]);
        let mut tests = found.tests.clone();
        tests.sort();
        assert_eq!(tests, ["freezegun", "mock", "pytest>=7", "pyyaml", "responses==1"]);
        assert_eq!(found.all().iter().filter(|one| name_of(one) == "pytest").count(), 1);
    }

    #[test]
    fn requirements_that_pip_names_as_not_installable_are_dropped() {
        let mut found = Requirements { tests: vec!["nose2>=1".into(), "mock".into()], ..Requirements::default() };
        let missing = |name: &str| format!("ERROR: No matching distribution found for {name} (from versions: none)");
        assert_eq!(found.drop_named(&missing("nose2>=1")), ["nose2>=1"]);
        assert_eq!(found.tests, ["mock"]);
        assert!(found.drop_named("no network").is_empty());
        found.own.push("docopt>=0.6".into());
        assert_eq!(found.drop_named(&missing("docopt>=0.6")), ["docopt>=0.6"]);
        assert!(found.own.is_empty());
    }

    #[test]
    fn a_requirement_is_dropped_if_the_sources_of_the_package_contain_a_module_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("versioneer.py"), "").unwrap();
        let mut found =
            Requirements { own: vec!["versioneer>=0.29".into(), "numpy".into()], ..Requirements::default() };
        found.drop_modules_of(folder.path());
        assert_eq!(found.own, ["numpy"]);
        assert_eq!(found.left_out, ["versioneer>=0.29: the sources have a module of this name"]);
    }

    #[test]
    fn packages_that_tests_import_are_added_if_nothing_lists_them() {
        let found = read(&[
            ("PKG-INFO", "Name: my-pkg\nRequires-Dist: PyYAML>=6\n\n"),
            (
                "tests/test_a.py",
                "import yaml, os\nfrom numpy.testing import assert_allclose\nimport six\nimport json\n",
            ),
            ("my_pkg/core.py", "import pandas\n"),
            ("six.py", ""),
        ]);
        assert_eq!((found.own, found.tests), (vec!["PyYAML>=6".to_owned()], vec!["numpy".to_owned()]));
    }

    #[test]
    fn version_ranges_of_poetry_are_converted_to_those_of_pip() {
        let toml = "[tool.poetry]\nname = 'my-pkg'\n[tool.poetry.dependencies]\npython = '^3.8'\na = '^1.2'\nb = {version = '>=2', optional = true}\n\
                    c = '*'\ne = '^1.2 || ^2'\n[tool.poetry.group.dev.dependencies]\nd = '1.0'\n";
        let found = read(&[("pyproject.toml", toml)]);
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        assert_eq!((found.own, found.tests), (owned(&["a>=1.2,<2", "c", "e"]), owned(&["d==1.0"])));
    }
}
