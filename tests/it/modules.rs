//! The modules of `src`: which of them may import from which.
//!
//! 1. A module imports only from modules that come before it in the order of `src/lib.rs`.
//! 2. Within a module, the files import from each other in one direction: there is no circle of files.
//!
//! A file imports from the file that defines an item, whatever re-exports the path leads through. There is one
//! exception: a file may use items of the `mod.rs` above it. A `mod.rs` defines the types that its folder shares, and
//! its files may use them although it declares and calls these files.
//!
//! The sources are read as text, without a parser: comments, strings and unit tests are removed, then every `use` and
//! every path is followed. A glob import counts as an import from the file that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

static USE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);").unwrap());
static ANY_PATH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[A-Za-z_]\w*(?:::\w+)+").unwrap());
static NOISE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r##"(?s)r#".*?"#|\br"[^"]*"|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\])'|//[^\n]*|/\*.*?\*/"##).unwrap()
});
static TESTS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?s)#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{.*").unwrap());

/// A file by its path in `src`: `run/store` for `run/store.rs`, `run` for `run/mod.rs`.
type File = Vec<String>;

#[derive(Default)]
struct Sources {
    text: BTreeMap<File, String>,
    /// The files that are a `mod.rs`.
    shared: BTreeSet<File>,
    /// The names that each file re-exports (`pub use`), with the module that each name comes from.
    exported: BTreeMap<File, BTreeMap<String, File>>,
}

/// A parsed `use`: whether it re-exports, the path, and the name that it binds.
struct Use {
    is_export: bool,
    path: Vec<String>,
    name: String,
}

impl Sources {
    fn of(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut sources = Self::default();
        for (path, text) in files {
            let mut file: File = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if file.contains(&"tests".to_owned()) || file == ["lib"] || file == ["main"] {
                continue;
            }
            if file.last().is_some_and(|last| last == "mod") {
                file.pop();
                sources.shared.insert(file.clone());
            }
            sources.text.insert(file, plain(&text));
        }
        for (file, text) in &sources.text {
            let exports = uses(text).into_iter().filter(|it| it.is_export);
            let exports = exports.filter_map(|it| Some((it.name, sources.absolute(file, &it.path)?))).collect();
            sources.exported.insert(file.clone(), exports);
        }
        sources
    }

    /// Returns a path as seen from the crate's root; `None` if it leads out of the crate.
    fn absolute(&self, file: &File, path: &[String]) -> Option<File> {
        let mut base = file.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => return Some(rest[1..].to_vec()),
            "super" | "self" => {
                while let Some(step @ ("super" | "self")) = rest.first().map(String::as_str) {
                    if step == "super" {
                        base.pop();
                    }
                    rest = &rest[1..];
                }
            }
            child => {
                base.push(child.to_owned());
                if !self.text.contains_key(&base) {
                    return None;
                }
                rest = &rest[1..];
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// Returns the file that defines the item at a path, and whether the path names the file itself.
    fn defining(&self, path: &[String], depth: usize) -> Option<(File, bool)> {
        let length = (1..=path.len()).rev().find(|&length| self.text.contains_key(&path[..length]))?;
        let (file, rest) = path.split_at(length);
        let Some((name, rest)) = rest.split_first() else { return Some((file.to_vec(), true)) };
        if let Some(elsewhere) = self.exported[file].get(name)
            && depth < 10
        {
            return self.defining(&[elsewhere, rest].concat(), depth + 1);
        }
        Some((file.to_vec(), false))
    }

    /// Returns the files that each file imports from, each with an imported path as evidence.
    fn imports(&self) -> BTreeMap<File, BTreeMap<File, String>> {
        let mut imports: BTreeMap<File, BTreeMap<File, String>> = BTreeMap::new();
        for (file, text) in &self.text {
            let mut paths: Vec<Vec<String>> = Vec::new();
            let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for it in uses(text).into_iter().filter(|it| !it.is_export) {
                match self.absolute(file, &it.path).and_then(|path| self.defining(&path, 0)) {
                    // The path names a whole file. Which of its items are used follows from the paths below that begin
                    // with the file's name.
                    Some((_, true)) => _ = folders.insert(it.name, it.path),
                    _ => paths.push(it.path),
                }
            }
            let rest = USE.replace_all(text, "");
            for found in ANY_PATH.find_iter(&rest) {
                if rest[..found.start()].ends_with(':') {
                    continue;
                }
                let mut path: Vec<String> = found.as_str().split("::").map(str::to_owned).collect();
                if let Some(folder) = folders.get(&path[0]) {
                    path = [folder, &path[1..]].concat();
                }
                paths.push(path);
            }
            let edges = imports.entry(file.clone()).or_default();
            for path in paths {
                let defining = self.absolute(file, &path).and_then(|path| self.defining(&path, 0));
                if let Some((other, _)) = defining.filter(|(other, _)| other != file && !other.is_empty())
                    && !(self.shared.contains(&other) && file.starts_with(&other))
                {
                    edges.insert(other, path.join("::"));
                }
            }
        }
        imports
    }
}

/// Removes comments, strings and unit tests.
fn plain(text: &str) -> String {
    TESTS.replace(&NOISE.replace_all(text, " "), "").into_owned()
}

fn uses(text: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for item in USE.captures_iter(text) {
        let is_export = item.get(1).is_some();
        let mut paths = Vec::new();
        spread(&[], &item[2], &mut paths);
        found.extend(paths.into_iter().map(|(path, name)| Use { is_export, path, name }));
    }
    found
}

/// Collects the paths of a tree such as `a::{b, c::{self, d as e}}`, each with its name.
fn spread(before: &[String], tree: &str, found: &mut Vec<(Vec<String>, String)>) {
    let mut depth = 0;
    let parts = tree.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let (path, branches) = part.split_once('{').map_or((part, None), |(path, rest)| (path, Some(rest)));
        let (path, renamed) = path.split_once(" as ").map_or((path, None), |(path, name)| (path, Some(name)));
        let steps = path.split("::").map(str::trim).filter(|step| !step.is_empty()).map(str::to_owned);
        let mut path: Vec<String> = before.iter().cloned().chain(steps).collect();
        if let Some(branches) = branches {
            spread(&path, branches.trim_end().trim_end_matches('}'), found);
            continue;
        }
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let name = renamed.or(path.last().map(String::as_str)).unwrap_or_default().trim().to_owned();
        found.push((path, name));
    }
}

/// Returns the groups of files that import each other in a circle.
fn circles(imports: &BTreeMap<File, BTreeMap<File, String>>) -> Vec<BTreeSet<&File>> {
    let reach = |from: &File| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = open.pop() {
            open.extend(
                imports
                    .get(&file)
                    .into_iter()
                    .flatten()
                    .map(|(next, _)| next.clone())
                    .filter(|next| seen.insert(next.clone())),
            );
        }
        seen
    };
    let reached: BTreeMap<&File, BTreeSet<File>> = imports.keys().map(|file| (file, reach(file))).collect();
    let mut found: Vec<BTreeSet<&File>> = Vec::new();
    for (file, ahead) in reached.iter().filter(|(file, ahead)| ahead.contains(**file)) {
        if !found.iter().any(|circle| circle.contains(file)) {
            found.push(
                reached
                    .keys()
                    .filter(|other| ahead.contains(**other) && reached[**other].contains(*file))
                    .copied()
                    .collect(),
            );
        }
    }
    found
}

fn sources() -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = walkdir::WalkDir::new(&root).into_iter().map(|entry| entry.unwrap().into_path());
    Sources::of(files.filter(|path| path.extension().is_some_and(|kind| kind == "rs")).map(|path| {
        (path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&path).unwrap())
    }))
}

#[test]
fn a_module_imports_only_from_modules_before_it_in_the_order_of_lib_rs() {
    let lib = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let order: String =
        lib.lines().filter_map(|line| line.strip_prefix("//! ")).filter(|line| line.contains('→')).collect();
    let order: Vec<&str> = order.split('→').map(str::trim).filter(|name| !name.is_empty()).collect();
    let declared: BTreeSet<&str> =
        lib.lines().filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';')).collect();
    assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), declared, "the order of lib.rs has each module");
    assert_eq!(order.len(), declared.len(), "the order of lib.rs has each module once");

    let place = |file: &File| order.iter().position(|name| *name == file[0]).unwrap();
    let imports = sources().imports();
    let wrong: Vec<String> = imports
        .iter()
        .flat_map(|(file, others)| others.iter().map(move |(other, path)| (file, other, path)))
        .filter(|(file, other, _)| place(other) > place(file))
        .map(|(file, other, path)| format!("{} imports from {}: `{path}`", file.join("/"), other.join("/")))
        .collect();
    assert!(wrong.is_empty(), "against the order of lib.rs:\n{}", wrong.join("\n"));
}

#[test]
fn no_source_files_of_this_project_import_each_other_in_a_circle() {
    let imports = sources().imports();
    let told: Vec<String> = circles(&imports)
        .iter()
        .map(|circle| {
            let edges = circle.iter().flat_map(|file| {
                let inside = imports[*file].iter().filter(|(other, _)| circle.contains(other));
                inside.map(|(other, path)| format!("  {} -> {}: `{path}`\n", file.join("/"), other.join("/")))
            });
            edges.collect()
        })
        .collect();
    assert!(told.is_empty(), "circles:\n{}", told.join("\n"));
}

#[test]
fn an_import_is_followed_through_re_exports_aliases_and_bare_paths_and_a_circle_is_found() {
    let sources = Sources::of(
        [
            ("a/mod.rs", "mod one;\nmod two;\npub use one::{One, more as Several};\npub struct Word;\nfn f() { two::go() }"),
            ("a/one.rs", "use super::Word;\n// use crate::b::Comment;\nuse crate::c::{self as other, deep::{Deep, self}};\npub struct One; fn f() { other::X; \"crate::b::String\"; }"),
            ("a/two.rs", "fn f() { let it = crate::a::One; deep::not_imported(); }\n#[cfg(test)]\nmod tests { use crate::b::Test; }"),
            ("b.rs", "use crate::a::Several;"),
            ("c/mod.rs", "pub mod deep;\npub use deep::Deep;"),
            ("c/deep.rs", "use crate::c::peer::*;\nuse super::Vocabulary;"),
            ("c/peer.rs", "fn f(it: super::Deep) {}"),
            ("c/tests.rs", "use crate::b::Test;"),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned())),
    );
    let imports = sources.imports();
    let edges: Vec<String> = imports
        .iter()
        .flat_map(|(file, others)| others.keys().map(|other| format!("{} {}", file.join("/"), other.join("/"))))
        .collect();
    assert_eq!(
        edges,
        ["a a/two", "a/one c", "a/one c/deep", "a/two a/one", "b a/one", "c/deep c/peer", "c/peer c/deep"]
    );
    let circles = circles(&imports);
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].iter().map(|file| file.join("/")).collect::<Vec<_>>(), ["c/deep", "c/peer"]);
}
