//! Determines which parts of the repository a solution changed, and which it may change.
//!
//! A part is a file (`config.json`, `corpus/**`), a function of a Python file (`tune.py::main`), the code of a Python
//! file outside of its functions (`tune.py::<module>`), its import statements alone (`tune.py::<imports>`), or a file
//! of an installed package (`site-packages/boruta/boruta_py.py`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::{Map, Value};

use crate::code::{CodeTokens, Module};
use crate::error::{Error, Result};
use crate::suite::GoldValues;
use crate::workspace::{ChangeKind, Changes};

/// Id of the verification result that lists the changed parts.
pub(super) const CHANGES: &str = "changes";
/// Prefix of files of installed packages.
pub(super) const PACKAGES: &str = "site-packages/";
/// Name for the code of a file that is outside of its functions. A task that permits changes of this part also permits
/// changes of [`IMPORTS`].
pub(super) const MODULE: &str = "<module>";
/// Name of a file's import statements outside of functions. They form a part of their own, because other changed code
/// often needs a new import, while other statements outside of functions set the values that the program computes with.
pub(super) const IMPORTS: &str = "<imports>";

/// Parts of the repository that a solution may change.
#[derive(Debug, Clone, Default)]
pub struct PermittedChanges {
    files: GlobSet,
    /// Functions of Python files, by file.
    functions: BTreeMap<String, BTreeSet<String>>,
}

impl PermittedChanges {
    /// Parses permitted parts. A part that names only a file, or a glob of files, permits any change of these files.
    ///
    /// # Errors
    /// Kind `Suite` for a broken glob.
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut files = GlobSetBuilder::new();
        let mut functions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for part in parts {
            if let Some((file, function)) = part.split_once("::") {
                functions.entry(file.to_owned()).or_default().insert(function.to_owned());
                continue;
            }
            files.add(Glob::new(part).map_err(|error| Error::suite(format!("`{part}` is not a glob")).because(error))?);
        }
        let files = files.build().map_err(|error| {
            Error::suite("failed to compile the globs of the parts that a solution may change").because(error)
        })?;
        Ok(Self { files, functions })
    }

    /// Whether a change of this file is used in verification. New files are used unless Python could import them or
    /// their path begins with a dot.
    #[must_use]
    pub(super) fn allows_file(&self, path: &str, is_new: bool) -> bool {
        let is_code = || {
            let name = path.rsplit('/').next().unwrap_or(path);
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            ["py", "so", "pyc", "pth", "pyd"].contains(&ending) || path.starts_with('.')
        };
        self.files.is_match(path) || self.functions.contains_key(path) || (is_new && !is_code())
    }

    /// Whether a solution may change this function, given as `file::Class.method`.
    #[must_use]
    pub(super) fn allows_function(&self, part: &str) -> bool {
        let Some((file, function)) = part.split_once("::") else { return self.files.is_match(part) };
        let allows = |name: &str| self.functions.get(file).is_some_and(|known| known.contains(name));
        self.files.is_match(file) || allows(function) || (function == IMPORTS && allows(MODULE))
    }

    /// Whether a solution may change at least one definition of this function, given as `file::Class.method`. If a file
    /// defines a function several times, the permitted parts contain the number of a definition, as in `f#2`.
    #[must_use]
    pub(super) fn allows_a_definition(&self, part: &str) -> bool {
        let is_known = |(file, function): (&str, &str)| {
            let mut known = self.functions.get(file).into_iter().flatten();
            known.any(|label| label.split_once('#').is_some_and(|(name, _)| name == function))
        };
        self.allows_function(part) || part.split_once("::").is_some_and(is_known)
    }
}

/// Lists the functions and other parts that a solution changed, in files that the agent was given (except Markdown) and
/// in those of installed packages. New files are not listed; [`PermittedChanges::allows_file`] decides about them.
pub(super) fn changed_parts(tree: &Path, changes: &Changes, patches: &Map<String, Value>) -> Vec<String> {
    let mut parts = Vec::new();
    for change in
        changes.files.iter().filter(|change| Path::new(&change.path).extension().is_none_or(|ending| ending != "md"))
    {
        let Ok(original) = std::fs::read(tree.join(&change.path)) else { continue };
        let is_file = matches!(change.kind, ChangeKind::Added | ChangeKind::Modified);
        if is_file && is_python(&change.path) {
            let names = changed_functions(original, change.bytes.clone());
            parts.extend(names.into_iter().map(|name| format!("{}::{name}", change.path)));
        } else if !is_file || original != change.bytes {
            parts.push(change.path.clone());
        }
    }
    parts.extend(patches.keys().map(|path| format!("{PACKAGES}{path}")));
    parts
}

/// Splits changed files of installed packages into those that may be changed, and the names of the others.
pub(super) fn permitted_patches(
    patches: &Map<String, Value>,
    permitted: &PermittedChanges,
) -> (Map<String, Value>, Vec<String>) {
    let is_free = |path: &str| permitted.allows_file(&format!("{PACKAGES}{path}"), false);
    let kept = patches.iter().filter(|(path, _)| is_free(path)).map(|(path, text)| (path.clone(), text.clone()));
    let left = patches.keys().filter(|path| !is_free(path)).map(|path| format!("{PACKAGES}{path}"));
    (kept.collect(), left.collect())
}

/// Finds values of the gold answer in the Python files that a solution changed and may change. Returns a part of an
/// error message for each value.
pub(super) fn written_answers(
    tree: &Path,
    changes: &Changes,
    permitted: &PermittedChanges,
    gold: &Value,
) -> Vec<String> {
    let gold = GoldValues::collect("answer", gold);
    let mut found = Vec::new();
    for change in changes.files.iter().filter(|change| is_python(&change.path)) {
        if permitted.allows_file(&change.path, !tree.join(&change.path).exists()) {
            let text = String::from_utf8_lossy(&change.bytes);
            let hits = gold.in_file(Path::new(&change.path), &text);
            found.extend(hits.into_iter().map(|hit| format!("`{}`: {}", change.path, hit.message)));
        }
    }
    found
}

fn is_python(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|ending| ending == "py")
}

/// Lists a file's functions with changed code; comments and spacing do not count. [`MODULE`] and [`IMPORTS`] are listed
/// like functions. New functions count only if they take the name of an existing one.
fn changed_functions(original: Vec<u8>, now: Vec<u8>) -> Vec<String> {
    let (Ok(original), Ok(now)) = (Module::parse("a.py", original), Module::parse("a.py", now)) else {
        return vec![MODULE.to_owned()];
    };
    let (mut before, mut after) = (parts(&original), parts(&now));
    let mut changed: Vec<String> = Vec::new();
    for (name, tokens) in std::mem::take(&mut before) {
        if after.remove(&name) != Some(tokens) {
            changed.push(name);
        }
    }
    // A new function with the name of an existing one has a label such as `name#2`. Python uses the last definition of
    // a name, so the existing function counts as changed.
    changed.extend(after.into_keys().filter_map(|label| label.split_once('#').map(|(name, _)| name.to_owned())));
    changed.dedup();
    changed
}

/// Returns the positions of the import statements outside of functions and classes.
fn imports(source: &[u8]) -> Vec<Range<usize>> {
    let mut parser = tree_sitter::Parser::new();
    let is_ready = parser.set_language(&tree_sitter_python::LANGUAGE.into()).is_ok();
    let Some(tree) = parser.parse(source, None).filter(|_| is_ready) else { return Vec::new() };
    let root = tree.root_node();
    let kinds = ["import_statement", "import_from_statement", "future_import_statement"];
    let mut cursor = root.walk();
    let statements = root.named_children(&mut cursor).filter(|node| kinds.contains(&node.kind()));
    statements.map(|node| node.byte_range()).collect()
}

/// Returns the tokens of each function that is not nested in another one, of the import statements, and of the
/// remaining code.
fn parts(module: &Module) -> BTreeMap<String, Vec<Vec<u8>>> {
    let source = module.source();
    let tokens = CodeTokens::new(source);
    let outer: Vec<_> = module.functions().iter().filter(|function| function.parent.is_none()).collect();
    let mut parts: BTreeMap<String, Vec<Vec<u8>>> = outer
        .iter()
        .map(|function| (function.label(), Vec::new()))
        .chain([MODULE, IMPORTS].map(|name| (name.to_owned(), Vec::new())))
        .collect();
    let imports = imports(source);
    for range in tokens.ranges() {
        let function = outer.iter().find(|function| function.whole.contains(&range.start));
        let is_import = || imports.iter().any(|statement| statement.contains(&range.start));
        let name = match function {
            Some(function) => function.label(),
            None if is_import() => IMPORTS.to_owned(),
            None => MODULE.to_owned(),
        };
        let line = source[..range.start].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let indent = &source[line..range.start];
        let all = parts.entry(name).or_default();
        if indent.iter().all(u8::is_ascii_whitespace) {
            all.push([b"\n", indent].concat());
        }
        all.push(source[range].to_vec());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_functions_are_found_and_changed_comments_ignored() {
        let original = "import os\n\ndef f(x):\n    return x\n\nclass A:\n    def g(self):\n        return 1\n";
        let changed = |now: &str| changed_functions(original.into(), now.into()).join(" ");
        assert_eq!(
            changed(
                "import os  # here\n\ndef f(x):\n    # why\n    return  x\n\nclass A:\n    def g(self):\n        return 1\n"
            ),
            ""
        );
        assert_eq!(changed(&original.replace("return x", "return x + 1")), "f");
        assert_eq!(changed(&original.replace("    return x", "  return x")), "f");
        assert_eq!(changed(&original.replace("return 1", "return 2")), "A.g");
        assert_eq!(changed(&original.replace("import os", "import os, sys")), "<imports>");
        assert_eq!(changed(&format!("{original}\ndef h():\n    pass\n")), "");
        assert!(changed(&format!("{original}\ndef f(x):\n    return 0\n")).contains('f'));
        assert!(changed(&format!("{original}\nf = print\n")).contains("<module>"));
    }

    #[test]
    fn only_permitted_files_reach_verification() {
        let permitted = PermittedChanges::new(["config.json", "run.py::main", "out/**"]).unwrap();
        for (path, is_new, allowed) in [
            ("config.json", false, true),
            ("run.py", false, true),
            ("lib.py", false, false),
            ("data.csv", false, false),
            ("data/new.csv", true, true),
            ("json.py", true, false),
            ("out/made.py", true, true),
            ("numpy/core.so", true, false),
        ] {
            assert_eq!(permitted.allows_file(path, is_new), allowed, "{path}");
        }
        assert!(permitted.allows_function("run.py::main") && !permitted.allows_function("run.py::score"));
        // Permission to change imports does not cover other code outside of functions.
        let imports = PermittedChanges::new(["a.py::<imports>", "b.py::<module>"]).unwrap();
        assert!(imports.allows_function("a.py::<imports>") && !imports.allows_function("a.py::<module>"));
        assert!(imports.allows_function("b.py::<imports>") && imports.allows_function("b.py::<module>"));
    }
}
