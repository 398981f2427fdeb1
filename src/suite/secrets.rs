//! The texts of a suite that no agent may see while it works: gold, the sources in which functions are masked, and
//! hidden files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use globset::GlobSet;
use serde::Deserialize;
use walkdir::WalkDir;

use super::paper::glob_set;

/// The folders of a suite that contain texts which no agent may see.
const FOLDERS: [&str; 4] = ["papers", "repos", "commands", "tasks"];
/// Maximum bytes of a file that is read. Longer files are data and are skipped, except hidden files, of which the
/// beginning is read.
const LONGEST: u64 = 1 << 20;

/// The part of a manifest that names hidden files. Only this part is parsed, so that faults in other parts of the
/// manifest do not matter here.
#[derive(Deserialize)]
struct HiddenFiles {
    repo: String,
    #[serde(default)]
    hidden: Vec<String>,
}

/// Returns the texts of a suite that agents must not find, each with its file's path. A Python file or notebook is
/// split before each `def`, so that nearly every function, also a nested one, is a text of its own. Hidden files are
/// included whatever they contain.
#[must_use]
pub fn secrets(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let hidden = hidden_files(root);
    for folder in FOLDERS {
        for entry in WalkDir::new(root.join(folder)).sort_by_file_name().into_iter().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy();
            let is_python = name.ends_with(".py") || name.ends_with(".ipynb");
            let is_gold = name.ends_with("gold.json") || name == "answer.json";
            let is_short = entry.metadata().is_ok_and(|about| about.is_file() && about.len() <= LONGEST);
            let from_root = path.strip_prefix(root).unwrap_or(path);
            let is_hidden = entry.file_type().is_file()
                && hidden.iter().any(|(repo, globs)| {
                    let from_repo = from_root.strip_prefix("repos").and_then(|path| path.strip_prefix(repo));
                    from_repo.is_ok_and(|path| globs.is_match(path))
                });
            if !is_hidden && (!is_short || !(is_python || is_gold)) {
                continue;
            }
            let Ok(text) = beginning(path) else { continue };
            let label = from_root.display().to_string();
            if is_gold || !is_python {
                found.push((label, text));
            } else {
                found.extend(functions(&text).into_iter().map(|function| (label.clone(), function)));
            }
        }
    }
    found
}

/// Returns the hidden files of each repo, as globs of paths in the repo.
fn hidden_files(root: &Path) -> Vec<(String, GlobSet)> {
    let entries = std::fs::read_dir(root.join("papers")).into_iter().flatten().flatten();
    let manifests = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("paper.toml")).ok());
    let parsed = manifests.filter_map(|text| toml::from_str::<HiddenFiles>(&text).ok());
    parsed.filter(|paper| !paper.hidden.is_empty()).map(|paper| (paper.repo, glob_set(&paper.hidden))).collect()
}

/// Reads at most [`LONGEST`] bytes of a file.
fn beginning(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

/// Splits a source before each line that begins with `def`. An `async def` does not begin a new part.
fn functions(text: &[u8]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.trim_ascii_start().starts_with(b"def ") || parts.is_empty() {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend_from_slice(line);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_of_any_kind_are_secrets_of_their_own_repo_only() {
        let place = tempfile::tempdir().unwrap();
        let large = "9".repeat(LONGEST as usize + 10);
        for (path, text) in [
            ("papers/p/paper.toml", "title = 1\nrepo = \"r\"\nhidden = [\"tests/*\", \"expected.*\"]\n"),
            ("papers/q/paper.toml", "hidden = \"broken\"\n"),
            ("repos/r/tests/t.sh", "diff out expected.csv"),
            ("repos/r/expected.csv", large.as_str()),
            ("repos/r/shown.csv", "1,2"),
            ("repos/q/expected.csv", "1,2"),
        ] {
            std::fs::create_dir_all(place.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(place.path().join(path), text).unwrap();
        }
        let found = secrets(place.path());
        let labels: Vec<&str> = found.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(labels, ["repos/r/expected.csv", "repos/r/tests/t.sh"]);
        assert_eq!(found[0].1.len() as u64, LONGEST);
    }

    #[test]
    fn gold_and_functions_are_secrets_of_a_suite_but_data_and_paper_text_are_not() {
        let place = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("papers/p/gold.json", "{}"),
            ("papers/p/paper.md", "words"),
            ("repos/p/a.py", "import x\ndef f():\n    pass\nclass A:\n    def g(self):\n        pass\n"),
            ("repos/p/data.csv", "1,2"),
        ] {
            std::fs::create_dir_all(place.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(place.path().join(path), text).unwrap();
        }
        let found = secrets(place.path());
        let labels: Vec<&str> = found.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(labels, ["papers/p/gold.json", "repos/p/a.py", "repos/p/a.py", "repos/p/a.py"]);
        assert_eq!(found[2].1, b"def f():\n    pass\nclass A:\n");
    }
}
