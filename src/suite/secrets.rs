//! The texts of a suite that no agent may see while it works: gold, and the sources in which functions are masked.

use std::path::Path;

use walkdir::WalkDir;

/// The folders of a suite that contain texts which no agent may see.
const FOLDERS: [&str; 4] = ["papers", "repos", "commands", "tasks"];
/// Maximum bytes of a file that is read. Longer ones are data.
const LONGEST: u64 = 1 << 20;

/// Returns the texts of a suite that agents must not find, each with its file's path. A Python file gives several: one
/// for each function, however nested.
#[must_use]
pub fn secrets(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        for entry in WalkDir::new(root.join(folder)).sort_by_file_name().into_iter().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy();
            let is_python = name.ends_with(".py") || name.ends_with(".ipynb");
            let is_gold = name.ends_with("gold.json") || name == "answer.json";
            let is_short = entry.metadata().is_ok_and(|about| about.is_file() && about.len() <= LONGEST);
            if !is_short || !(is_python || is_gold) {
                continue;
            }
            let Ok(text) = std::fs::read(path) else { continue };
            let label = path.strip_prefix(root).unwrap_or(path).display().to_string();
            if is_gold {
                found.push((label, text));
            } else {
                found.extend(functions(&text).into_iter().map(|function| (label.clone(), function)));
            }
        }
    }
    found
}

/// Splits a source before each function.
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
    fn gold_and_each_function_are_secrets_and_data_is_not() {
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
