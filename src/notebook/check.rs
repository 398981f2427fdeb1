//! Checks a task without running anything.

use std::path::Path;

use regex::Regex;
use serde_json::Map;

use super::changes::{IMPORTS, MODULE, PACKAGES};
use super::loaded::LoadedTask;
use super::manifest::LandmarkCheck;
use crate::code::Module;
use crate::suite::GoldValues;

/// Files of this size in bytes or more are not searched, because such long files are data.
const LARGEST_TEXT: u64 = 1_000_000;

/// Lists the faults of a task, each as the text of an error message.
pub fn problems(task: &LoadedTask) -> Vec<String> {
    let mut found = Vec::new();
    folders(task, &mut found);
    files(task, &mut found);
    match task.gold() {
        Ok(gold) => {
            let keys = gold.as_object().into_iter().flat_map(Map::keys);
            for key in keys.filter(|key| !task.manifest.query.contains(&format!("\"{key}\""))) {
                found.push(format!("the query does not name the answer's key `{key}`"));
            }
        }
        Err(error) => found.push(error.to_string()),
    }
    may_change(task, &mut found);
    check_texts(task, &mut found);
    found
}

/// Checks that the files and functions named in `may_change` exist, and that a solution may not replace the whole entry
/// script.
fn may_change(task: &LoadedTask, found: &mut Vec<String>) {
    let manifest = &task.manifest;
    let parts = manifest.may_change.iter().filter(|part| !part.starts_with(PACKAGES));
    let missing = parts.filter_map(|part| Some((part, missing_in(&task.repo_dir, part)?)));
    found.extend(missing.map(|(part, what)| format!("`may_change` names `{part}`, and the repo has no such {what}")));
    let is_free = task.permitted.allows_function(&manifest.entry);
    if is_free && manifest.may_change.iter().any(|part| !part.contains("::")) {
        found.push(format!(
            "`may_change` lets a solution replace the whole entry script: name functions instead, such as `{}::FUNCTION`",
            manifest.entry
        ));
    }
}

/// Returns which part of `file::function` a repo does not have, `file` or `function`; `None` if it has both. A file
/// without a function may be a glob.
fn missing_in(repo: &Path, part: &str) -> Option<&'static str> {
    let Some((file, function)) = part.split_once("::") else {
        let is_glob = part.contains(['*', '?', '[', '{']);
        return (!is_glob && !repo.join(part).is_file()).then_some("file");
    };
    if !repo.join(file).is_file() {
        return Some("file");
    }
    let has_function = |module: Module| module.functions().iter().any(|known| known.label() == function);
    let is_there = [MODULE, IMPORTS].contains(&function) || Module::read(repo, Path::new(file)).is_ok_and(has_function);
    (!is_there).then_some("function")
}

/// Checks that the env and the entry script exist, and that all packages have hashes.
fn folders(task: &LoadedTask, found: &mut Vec<String>) {
    let manifest = &task.manifest;
    if !task.env_dir.join("environment.yml").is_file() {
        found.push(format!("env `{}` has no `environment.yml`", manifest.env));
    }
    if !task.repo_dir.join(&manifest.entry).is_file() {
        found.push(format!("the repo has no file `{}`, which is the entry", manifest.entry));
    }
    let list = task.wheels.as_ref().and_then(|list| std::fs::read_to_string(list).ok()).unwrap_or_default();
    for line in list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if !line.contains("--hash=sha256:") {
            let package = line.split_whitespace().next().unwrap_or(line);
            found.push(format!("package `{package}` has no hash"));
        }
    }
}

/// Checks that the manifest uses every file in the task's folders `cells` and `probes`.
fn files(task: &LoadedTask, found: &mut Vec<String>) {
    let Some(dir) = task.answer_path.parent() else { return };
    let manifest = &task.manifest;
    let cells = manifest.blocks.iter().flat_map(|block| &block.cells).map(String::as_str);
    let probes = manifest.landmarks.iter().filter_map(|landmark| match &landmark.check {
        LandmarkCheck::Probe(file) => Some(file.as_str()),
        LandmarkCheck::Entry(_) => None,
    });
    let used: Vec<&Path> = cells.chain(probes).map(Path::new).collect();
    for folder in ["cells", "probes"] {
        for entry in walkdir::WalkDir::new(dir.join(folder)).sort_by_file_name().into_iter().flatten() {
            let Ok(path) = entry.path().strip_prefix(dir) else { continue };
            if entry.file_type().is_file() && !used.contains(&path) {
                found.push(format!("`{}` is not used by any block or landmark", path.display()));
            }
        }
    }
}

/// Checks that texts which an agent gets or can print contain neither gold values nor text that matches a landmark's
/// pattern. A landmark is a pattern in the output that shows that a block is done.
fn check_texts(task: &LoadedTask, found: &mut Vec<String>) {
    let manifest = &task.manifest;
    let patterns: Vec<(&str, Regex)> = manifest
        .landmarks
        .iter()
        .filter_map(|landmark| Some((landmark.id.as_str(), Regex::new(&landmark.pattern).ok()?)))
        .collect();
    for (id, _) in patterns.iter().filter(|(_, pattern)| pattern.is_match("")) {
        found.push(format!("the pattern of landmark `{id}` matches every text"));
    }
    let gold = task.answer.as_ref().map(|gold| GoldValues::collect("answer", gold));
    let mut look = |path: &Path, text: &str| {
        let place = path.display();
        for error in gold.iter().flat_map(|gold| gold.in_file(path, text)) {
            found.push(format!("`{place}`: {}", error.message));
        }
        for (id, _) in patterns.iter().filter(|(_, pattern)| !pattern.is_match("") && pattern.is_match(text)) {
            found.push(format!("`{place}` holds what landmark `{id}` looks for: printing it hits the landmark"));
        }
    };
    let goals = manifest.blocks.iter().map(|block| &block.goal);
    let texts: Vec<&str> =
        std::iter::once(&manifest.query).chain(&manifest.instructions).chain(goals).map(String::as_str).collect();
    look(Path::new("task.toml"), &texts.join("\n"));
    for entry in walkdir::WalkDir::new(&task.repo_dir).sort_by_file_name().into_iter().flatten() {
        let is_text = entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() < LARGEST_TEXT);
        let text = if is_text { std::fs::read_to_string(entry.path()).ok() } else { None };
        if let (Some(text), Ok(path)) = (text, entry.path().strip_prefix(&task.repo_dir)) {
            look(path, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_functions_that_a_repo_does_not_have_are_found() {
        let repo = tempfile::tempdir().unwrap();
        let twice = "    def x(self):\n        pass\n";
        let source = format!("def f():\n    pass\n\nclass A:\n    def g(self):\n        pass\n{twice}{twice}");
        std::fs::write(repo.path().join("a.py"), source).unwrap();
        for part in ["a.py", "b/**", "a.py::f", "a.py::A.g", "a.py::A.x#2", "a.py::<module>", "a.py::<imports>"] {
            assert_eq!(missing_in(repo.path(), part), None, "{part}");
        }
        for part in ["a.py::g", "a.py::A", "a.py::A.x", "a.py::A.x#3"] {
            assert_eq!(missing_in(repo.path(), part), Some("function"), "{part}");
        }
        for part in ["b.py", "b.py::f", "*.py::f"] {
            assert_eq!(missing_in(repo.path(), part), Some("file"), "{part}");
        }
    }
}
