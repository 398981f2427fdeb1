//! Decides which of an agent's changes are excluded from verification: changes to files that the paper protects; files
//! that would take the place of hidden files; new files that Python would import instead of a protected file or an
//! installed module; new files that the code of the repo or the env imports if they exist, such as a `psutil.py`; and
//! new files that change how hidden tests are found and imported, such as a `pytest.ini`.
//!
//! A new `cli/` beside a protected `cli.py`, or a new `json.py` in the folder of a protected script, would let the
//! agent decide what the protected code does. The guard closes these ways around the protection. It cannot make the
//! functions themselves honest: what an agent writes there runs in the same process as the code that prints the
//! results, so an agent that *knew* the results could print them. That is why no agent is given the results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use globset::GlobSet;

/// Names of files from which pytest reads its configuration or its plugins.
const PYTEST_FILES: [&str; 8] = [
    "conftest.py",
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
];

/// Endings of names of folders that describe an installed package, and may name plugins that pytest loads.
const METADATA_FOLDERS: [&str; 2] = [".egg-info", ".dist-info"];

/// Decides which of an agent's changes are excluded from verification.
pub struct Guard {
    protected: GlobSet,
    /// Paths of the files that are hidden from agents.
    hidden: Vec<String>,
    /// Folders that contain hidden files and, at any depth, no other files.
    hidden_folders: BTreeSet<String>,
    /// The unchanged repo.
    tree: PathBuf,
    /// Paths of protected Python files, without `.py`.
    modules: BTreeSet<String>,
    /// Folders from which Python imports: the repo's root, and the folders of protected scripts outside of packages.
    roots: BTreeSet<String>,
    /// Names that can be imported from the interpreter's library and the env.
    library: BTreeSet<String>,
    /// Folders of Python code: the repo, the interpreter's library and the env.
    sources: Vec<PathBuf>,
    /// Top-level names that the code in `sources` imports, whether or not such modules exist. The names are collected
    /// when they are first needed, because reading all code of an env may take long.
    imported: OnceLock<BTreeSet<String>>,
}

impl Guard {
    /// Creates the guard of a repo. `tree` is the unchanged repo, and `hidden` are the paths of its hidden files.
    /// `prefixes` are the folders of the env and of its interpreter.
    #[must_use]
    pub fn new(protected: GlobSet, hidden: Vec<String>, tree: &Path, prefixes: &[PathBuf]) -> Self {
        let mut modules = BTreeSet::new();
        let mut roots = BTreeSet::from([String::new()]);
        let mut hidden_folders: BTreeSet<String> =
            hidden.iter().flat_map(|file| folders_of(file)).map(str::to_owned).collect();
        let hidden_files: BTreeSet<&str> = hidden.iter().map(String::as_str).collect();
        for entry in walkdir::WalkDir::new(tree).into_iter().flatten() {
            let Ok(path) = entry.path().strip_prefix(tree) else { continue };
            if !entry.file_type().is_dir() && !path.to_str().is_some_and(|file| hidden_files.contains(file)) {
                for folder in path.ancestors().skip(1).filter_map(Path::to_str) {
                    hidden_folders.remove(folder);
                }
            }
            let (Some(name), true) = (path.to_str(), protected.is_match(path)) else { continue };
            let Some(module) = name.strip_suffix(".py") else { continue };
            modules.insert(module.to_owned());
            let folder = path.parent().unwrap_or(Path::new(""));
            if !tree.join(folder).join("__init__.py").exists() {
                roots.insert(folder.to_string_lossy().into_owned());
            }
        }
        let sources = std::iter::once(tree.to_owned()).chain(pythons(prefixes)).collect();
        let (tree, library) = (tree.to_owned(), library(prefixes));
        let imported = OnceLock::new();
        Self { protected, hidden, hidden_folders, tree, modules, roots, library, sources, imported }
    }

    /// Whether an agent's change to this path is excluded from verification.
    #[must_use]
    pub fn keeps_out(&self, path: &str) -> bool {
        self.protected.is_match(path)
            || self.replaces_hidden(path)
            || (!self.tree.join(path).exists() && (self.shadows(path) || self.disturbs_hidden_tests(path)))
    }

    /// Whether a file at this path would take the place of a hidden file: because it is in a folder with the hidden
    /// file's name, or because it has the name of a folder that contains the hidden file. Agents don't see the hidden
    /// files, so this may happen by chance.
    fn replaces_hidden(&self, path: &str) -> bool {
        let is_inside = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.hidden.iter().any(|hidden| is_inside(path, hidden) || is_inside(hidden, path))
    }

    /// Whether a new file at this path may change how hidden tests are found and imported: because all files of its
    /// folder are hidden, because pytest reads settings or plugins from files of this name, or because the file turns a
    /// folder with hidden files into a package. This may happen by chance: agents add their own tests, and cannot see
    /// that hidden tests are in the same folder.
    fn disturbs_hidden_tests(&self, path: &str) -> bool {
        if self.hidden.is_empty() {
            return false;
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_above = |file: &String| {
            folder.is_empty() || file.strip_prefix(folder).is_some_and(|inside| inside.starts_with('/'))
        };
        let is_metadata = |part: &str| METADATA_FOLDERS.iter().any(|ending| part.ends_with(ending));
        let makes_package = name.split('.').next() == Some("__init__") && is_code(name);
        PYTEST_FILES.contains(&name)
            || path.split('/').any(is_metadata)
            || folders_of(path).any(|folder| self.hidden_folders.contains(folder))
            || (makes_package && self.hidden.iter().chain(&self.modules).any(is_above))
    }

    fn imported(&self) -> &BTreeSet<String> {
        self.imported.get_or_init(|| self.sources.iter().flat_map(|folder| imports(folder)).collect())
    }

    /// Whether Python would import a new file at this path: in place of a protected file or of an installed module, or
    /// because the code of the repo or the env imports a module of this name if there is one.
    fn shadows(&self, path: &str) -> bool {
        let in_the_way = self.modules.iter().any(|module| {
            path.strip_prefix(module.as_str()).is_some_and(|rest| {
                (rest.starts_with('/') && !self.tree.join(module).exists())
                    || (rest.starts_with('.') && [".so", ".pyc"].iter().any(|ending| rest.ends_with(ending)))
            })
        });
        in_the_way
            || self.roots.iter().any(|root| {
                let inside = if root.is_empty() { Some(path) } else { path.strip_prefix(&format!("{root}/")) };
                inside.is_some_and(|inside| {
                    let (first, is_folder) =
                        inside.split_once('/').map_or((inside, false), |(folder, _)| (folder, true));
                    let name = first.split('.').next().unwrap_or_default();
                    let is_module = is_folder || is_code(first);
                    is_module
                        && !(is_folder && self.tree.join(root).join(first).exists())
                        && (self.library.contains(name) || is_code(path) && self.imported().contains(name))
                })
            })
    }
}

/// Returns the folders above a path in the repo, from the innermost to the root, which is the empty path.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    Path::new(path).ancestors().skip(1).filter_map(Path::to_str)
}

/// Whether Python imports files with this extension.
fn is_code(path: &str) -> bool {
    [".py", ".so", ".pyc"].iter().any(|ending| path.ends_with(ending))
}

/// Returns the folders `lib/python3.*` of an env and of its interpreter.
fn pythons(prefixes: &[PathBuf]) -> impl Iterator<Item = PathBuf> + '_ {
    let entries =
        prefixes.iter().flat_map(|prefix| std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten());
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3")).map(|entry| entry.path())
}

/// Names that can be imported from the folders `lib/python3.*` of an env and its interpreter, and names of modules that
/// Python imports automatically.
fn library(prefixes: &[PathBuf]) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["sitecustomize", "usercustomize"].map(str::to_owned).into();
    for python in pythons(prefixes) {
        for folder in ["", "lib-dynload", "site-packages"] {
            let entries = std::fs::read_dir(python.join(folder)).into_iter().flatten().flatten();
            names.extend(entries.filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let ending = entry.path().extension().map(|ending| ending.to_string_lossy().into_owned());
                let is_module = matches!(ending.as_deref(), Some("py" | "so")) || entry.path().is_dir();
                is_module.then(|| name.split('.').next().unwrap_or_default().to_owned())
            }));
        }
    }
    names
}

/// Folders whose code is not run by any experiment.
const ASIDE: [&str; 7] = ["test", "tests", "testing", "docs", "examples", "idlelib", "__pycache__"];

/// Top-level names that the Python files below a folder import, except names of modules in the same folder as the
/// importing file.
fn imports(folder: &Path) -> BTreeSet<String> {
    let is_aside = |name: &str| ASIDE.contains(&name);
    let walk = walkdir::WalkDir::new(folder).into_iter().filter_entry(|entry| {
        entry.depth() == 0 || !entry.file_type().is_dir() || !entry.file_name().to_str().is_some_and(is_aside)
    });
    let mut names = BTreeSet::new();
    for entry in walk.flatten().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "py")) {
        let Ok(bytes) = std::fs::read(entry.path()) else { continue };
        let beside = entry.path().parent().unwrap_or(folder);
        for name in String::from_utf8_lossy(&bytes).lines().flat_map(imported) {
            if !names.contains(name) && !beside.join(format!("{name}.py")).exists() && !beside.join(name).is_dir() {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// Words that may begin a line on which a statement follows after a colon.
const BLOCKS: [&str; 9] = ["try", "except", "else", "finally", "if", "elif", "with", "for", "while"];

/// Top-level names imported by a line: `["a", "b"]` for `import a.c as d; import b`. Empty for any other line.
fn imported(line: &str) -> Vec<&str> {
    let line = line.split('#').next().unwrap_or_default();
    line.split(';').flat_map(|statement| imported_by(statement.trim())).collect()
}

/// Top-level names imported by a statement, which may follow the header of its block on the same line.
fn imported_by(statement: &str) -> Vec<&str> {
    let word = statement.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let statement = match statement.rsplit_once(':') {
        Some((_, inside)) if BLOCKS.contains(&word) => inside.trim(),
        _ => statement,
    };
    let modules: Vec<&str> = if let Some(list) = statement.strip_prefix("import ") {
        list.split(',').map(str::trim).collect()
    } else if let Some((module, _)) = statement.strip_prefix("from ").and_then(|rest| rest.split_once(" import")) {
        vec![module.trim()]
    } else {
        Vec::new()
    };
    let plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let first = |module: &&str| {
        let words: Vec<&str> = module.split_whitespace().collect();
        matches!(words.as_slice(), [_] | [_, "as", _]) && words[0].split('.').all(plain)
    };
    // Prose may begin like an import, but contains words that cannot be modules.
    if !modules.iter().all(first) {
        return Vec::new();
    }
    modules.iter().filter_map(|module| module.split(['.', ' ']).next()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use globset::{Glob, GlobSetBuilder};

    use super::*;

    /// The protected files of [`example`].
    pub const PROTECTED: [&str; 3] = ["pkg/cli.py", "scripts/*", "data/*"];

    /// Files of [`example`] that an agent adds or changes, and whose changes are excluded from verification.
    pub const KEPT_OUT: [&str; 18] = [
        "pkg/cli.py",
        "pkg/cli/__init__.py",
        "pkg/cli.cpython-311.so",
        "data/y.csv",
        "json.py",
        "numpy/__init__.py",
        "numpy.py",
        "random.so",
        "sitecustomize.py",
        "scripts/json.py",
        "_heapq.py",
        // Modules without a file, which code of the repo or the env imports.
        "psutil.py",
        "time.py",
        "helpers/__init__.py",
        "faster.py",
        "scripts/faster/loops.py",
        "quick.py",
        "slow.py",
    ];

    /// Files of [`example`] that an agent adds or changes, and whose changes are not excluded from verification.
    pub const TAKEN: [&str; 16] = [
        "pkg/model.py",
        "pkg/new.py",
        "pkg/json.py",
        "pkg/random.py",
        "pkg/client.py",
        "notes.txt",
        "json.txt",
        "results/out.json",
        "pkg/clients/a.py",
        "comment.py",
        "sentence.py",
        "this.py",
        "near.py",
        "beside.py",
        "pkg2.py",
        "pkg/psutil.py",
    ];

    /// The hidden files of [`example_with_hidden_tests`].
    pub const HIDDEN: [&str; 4] = ["tests/test_a.py", "tests/deep/helpers.py", "pkg/test_core.py", "mixed/test_b.py"];

    /// Files of [`example_with_hidden_tests`] that an agent adds, and that are excluded from verification.
    pub const KEPT_OUT_BESIDE_HIDDEN: [&str; 18] = [
        "tests/test_a.py",
        "tests",
        "tests/test_a.py/x.txt",
        "tests/__init__.py",
        "tests/deep/new.csv",
        "tests/notes/x.txt",
        "conftest.py",
        "pkg/conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        "other/setup.cfg",
        "pyproject.toml",
        "mixed/tox.ini",
        "mixed/__init__.py",
        "__init__.py",
        "pkg.egg-info/entry_points.txt",
        "src/pkg-1.0.dist-info/METADATA",
    ];

    /// Files of [`example_with_hidden_tests`] that an agent adds, and that are not excluded from verification.
    pub const TAKEN_BESIDE_HIDDEN: [&str; 9] = [
        "mixed/notes.py",
        "mixed/new/x.txt",
        "pkg/sub/__init__.py",
        "pkg/new.py",
        "config.ini",
        "tests2/x.py",
        "tests2/__init__.py",
        "tests.md",
        "pkg/egg-info.py",
    ];

    fn touch(root: &Path, path: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    /// Creates a repo and the folder of an env.
    pub fn example(folder: &Path) -> (PathBuf, PathBuf) {
        let (tree, prefix) = (folder.join("tree"), folder.join("prefix"));
        for file in ["pkg/__init__.py", "pkg/cli.py", "pkg/model.py", "scripts/run.py", "pkg/random.py", "data/x.csv"] {
            touch(&tree, file);
        }
        for file in ["json/__init__.py", "random.py", "lib-dynload/_heapq.so", "site-packages/numpy/__init__.py"] {
            touch(&prefix.join("lib/python3.11"), file);
        }
        let code = "import time, helpers\n# import comment\ntry:\n    import psutil.extra as p\nexcept ImportError:\n    p = None\n\
                    try: import quick; import slow\nexcept ImportError: pass\n\
                    import this sentence, too\nfrom . import near\nfrom beside import x\n";
        for file in ["joblib/pool.py", "joblib/beside.py", "joblib/tests/test_pool.py"] {
            touch(&prefix.join("lib/python3.11/site-packages"), file);
        }
        std::fs::write(prefix.join("lib/python3.11/site-packages/joblib/pool.py"), code).unwrap();
        std::fs::write(prefix.join("lib/python3.11/site-packages/joblib/tests/test_pool.py"), "import pkg2\n").unwrap();
        std::fs::write(tree.join("scripts/run.py"), "from faster.loops import go\n").unwrap();
        (tree, prefix)
    }

    /// Creates the same as [`example`], and adds hidden tests, and a visible file in the folder of one of them.
    pub fn example_with_hidden_tests(folder: &Path) -> (PathBuf, PathBuf) {
        let (tree, prefix) = example(folder);
        for file in HIDDEN.iter().chain(&["mixed/data.bin"]) {
            touch(&tree, file);
        }
        (tree, prefix)
    }

    fn set(globs: &[&str]) -> GlobSet {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            set.add(Glob::new(glob).unwrap());
        }
        set.build().unwrap()
    }

    #[test]
    fn files_that_change_how_hidden_tests_are_found_or_imported_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, prefix) = example_with_hidden_tests(folder.path());
        let hidden = HIDDEN.map(str::to_owned).to_vec();
        let guard = Guard::new(set(&[&PROTECTED[..], &HIDDEN].concat()), hidden, &tree, &[prefix]);
        for path in KEPT_OUT_BESIDE_HIDDEN.iter().chain(&KEPT_OUT) {
            assert!(guard.keeps_out(path), "{path}");
        }
        for path in TAKEN_BESIDE_HIDDEN.iter().chain(&TAKEN) {
            assert!(!guard.keeps_out(path), "{path}");
        }
        // A file that agents see may be changed, even if pytest reads it: the paper decides what is protected.
        touch(&tree, "setup.cfg");
        assert!(!guard.keeps_out("setup.cfg"));
    }

    #[test]
    fn only_files_that_shadow_protected_modules_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, prefix) = example(folder.path());
        let guard = Guard::new(set(&PROTECTED), Vec::new(), &tree, &[prefix]);
        for path in KEPT_OUT {
            assert!(guard.keeps_out(path), "{path}");
        }
        for path in TAKEN {
            assert!(!guard.keeps_out(path), "{path}");
        }
    }
}
