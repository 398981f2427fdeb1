//! Parses all Python files in a folder, and lists their functions.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use walkdir::{DirEntry, WalkDir};

use super::module::Module;
use super::selector::Selector;
use crate::error::{Error, Result};

/// One row of a listing of functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionRow {
    /// The function's name within the repo.
    pub selector: Selector,
    /// Line (from 1) of the function's `def`.
    pub line: usize,
    /// Number of lines from `def` to the end of the last statement.
    pub lines: usize,
    /// The calls in the function's body, in source order; see [`Module::calls`].
    pub calls: Vec<String>,
    /// The decorators as written.
    pub decorators: Vec<String>,
    /// Whether the function is an `async def`.
    #[serde(rename = "async")]
    pub is_async: bool,
    /// Whether the function is a generator.
    #[serde(rename = "generator")]
    pub is_generator: bool,
    /// The function that contains this function; `None` if it is not nested.
    pub nested_in: Option<Selector>,
    /// Whether the function has a docstring.
    pub documented: bool,
}

impl Module {
    /// Returns one row per function, in source order.
    #[must_use]
    pub fn rows(&self) -> Vec<FunctionRow> {
        let row = |(index, function): (usize, &super::Function)| FunctionRow {
            selector: self.selector(index),
            line: function.first_line,
            lines: function.lines(),
            calls: self.calls(index),
            decorators: self.decorators(index),
            is_async: function.is_async,
            is_generator: function.is_generator,
            nested_in: function.parent.map(|parent| self.selector(parent)),
            documented: function.docstring.is_some(),
        };
        self.functions().iter().enumerate().map(row).collect()
    }
}

/// Parses every `.py` file in the folder `root`, or `root` itself if it is a file. Paths are relative to `root` (for a
/// file, the file's name) and sorted. Hidden folders of version control, `__pycache__`, `node_modules`, and virtual and
/// conda environments are skipped. Symbolic links are not followed. A file or folder that cannot be read or parsed is
/// listed with its error.
#[must_use]
pub fn index_tree(root: &Path) -> Vec<(PathBuf, Result<Module>)> {
    let mut found = Vec::new();
    each_module(root, |module| module, |path, module| found.push((path, module)));
    found
}

/// Parses the same files as [`index_tree`] and calls `extract` for each of them, in parallel; then passes the results
/// to `take`, in the order of paths. To save memory, syntax trees are dropped after `extract`, and only the results of
/// a few files are kept.
pub(crate) fn each_module<T: Send>(
    root: &Path,
    extract: impl Fn(Result<Module>) -> T + Sync,
    mut take: impl FnMut(PathBuf, T),
) {
    /// Maximum number of files whose results are kept in memory.
    const AT_ONCE: usize = 256;
    if root.is_file() {
        let name = root.file_name().map(PathBuf::from).unwrap_or_default();
        let module = extract(Module::read(root.parent().unwrap_or(Path::new("")), &name));
        return take(name, module);
    }
    let mut paths: Vec<(PathBuf, Option<Error>)> = Vec::new();
    let entries = WalkDir::new(root).into_iter().filter_entry(|entry| entry.depth() == 0 || !is_left_out(entry));
    for entry in entries {
        match entry {
            Ok(entry) if entry.file_type().is_file() && entry.path().extension().is_some_and(|it| it == "py") => {
                paths.push((entry.path().strip_prefix(root).unwrap_or(entry.path()).to_path_buf(), None));
            }
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(root).to_path_buf();
                let problem = Error::machine(format!("failed to read `{}`", path.display())).because(error);
                paths.push((path.strip_prefix(root).map(Path::to_path_buf).unwrap_or(path), Some(problem)));
            }
        }
    }
    paths.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut paths = paths.into_iter();
    loop {
        let some: Vec<_> = paths.by_ref().take(AT_ONCE).collect();
        if some.is_empty() {
            return;
        }
        let read = |(path, problem): (PathBuf, Option<Error>)| {
            let extracted = extract(problem.map_or_else(|| Module::read(root, &path), Err));
            (path, extracted)
        };
        for (path, extracted) in some.into_par_iter().map(read).collect::<Vec<_>>() {
            take(path, extracted);
        }
    }
}

fn is_left_out(entry: &DirEntry) -> bool {
    let named = |names: &[&str]| names.iter().any(|name| entry.file_name() == *name);
    entry.file_type().is_dir()
        && (named(&[".git", ".hg", ".svn", "__pycache__", "node_modules", ".tox", ".nox"])
            || entry.path().join("pyvenv.cfg").exists()
            || entry.path().join("conda-meta").exists())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_tree_is_listed_sorted_without_caches_environments_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, text) in [
            ("b.py", "def f(): pass\n"),
            ("a/z.py", "def g(:\n"),
            ("a/note.txt", "def no(): pass\n"),
            (".git/x.py", ""),
            ("a/__pycache__/x.py", ""),
            ("env/pyvenv.cfg", ""),
            ("env/lib/x.py", ""),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        std::os::unix::fs::symlink(root.join("b.py"), root.join("link.py")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("loop")).unwrap();
        let found = index_tree(root);
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.to_str().unwrap()).collect();
        assert_eq!(paths, ["a/z.py", "b.py"]);
        assert!(found[0].1.is_err(), "a file with a syntax error keeps its place");
        assert_eq!(found[1].1.as_ref().unwrap().functions().len(), 1);
        assert_eq!(index_tree(&root.join("b.py"))[0].0, Path::new("b.py"));
    }

    #[test]
    fn the_files_of_a_large_tree_are_sorted_by_name_and_keep_their_own_functions() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (100..200).map(|number| format!("m{number}.py")).collect();
        for name in names.iter().rev() {
            fs::write(folder.path().join(name), format!("def of_{}(): pass\n", &name[..4])).unwrap();
        }
        let found = index_tree(folder.path());
        assert_eq!(found.len(), names.len());
        for ((path, module), name) in found.iter().zip(&names) {
            assert_eq!(path.to_str().unwrap(), name);
            assert_eq!(module.as_ref().unwrap().functions()[0].name, format!("of_{}", &name[..4]));
        }
    }

    #[test]
    fn each_function_is_listed_with_its_lines_calls_and_decorators() {
        let source = "@cache\ndef f(x=g(1)):\n    async def h():\n        yield a.b(c(x))\n    return \"\".join(x)\n";
        let module = Module::parse("p/m.py", source.into()).unwrap();
        let rows = serde_json::to_value(module.rows()).unwrap();
        assert_eq!(
            rows,
            serde_json::json!([
                {"selector": "p/m.py::f", "line": 2, "lines": 4, "calls": ["a.b", "c", ".join"],
                 "decorators": ["@cache"], "async": false, "generator": false, "nested_in": null, "documented": false},
                {"selector": "p/m.py::f.h", "line": 3, "lines": 2, "calls": ["a.b", "c"], "decorators": [],
                 "async": true, "generator": true, "nested_in": "p/m.py::f", "documented": false},
            ])
        );
    }
}
