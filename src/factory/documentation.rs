//! The text that serves as the paper of a package: the documentation in the package's sources, without the outputs of
//! examples.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::examples::without_outputs;
use super::layout::Layout;
use super::test_paths::is_test_path;
use crate::code::{index_tree, last_part, one_spaced};
use crate::draft::metadata::PackageFacts;
use crate::draft::text::TextSource;

/// Maximum bytes of the package's own documents, and of the docstrings after them.
const MOST: (usize, usize) = (160 << 10, 60 << 10);

/// Names of documents that describe the project, such as its history, and not the package.
const NOT_ABOUT: [&str; 16] = [
    "change",
    "history",
    "news",
    "release",
    "contribut",
    "authors",
    "licen",
    "conduct",
    "security",
    "install",
    "todo",
    "credits",
    "roadmap",
    "migrat",
    "whatsnew",
    "requirements",
];

/// A package's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Documentation {
    /// The text, in Markdown.
    pub(super) text: String,
    /// Documents from which the text was made.
    pub(super) files: Vec<PathBuf>,
}

/// Writes the text: the README, the paper about the package and the other documents in its sources, as far as they
/// exist, then the docstrings of public functions in the repo that are neither masked nor in a file of tests. Documents
/// that cannot be read are left out.
pub(super) fn write(
    sources: &Path,
    repo: &Path,
    layout: &Layout,
    facts: &PackageFacts,
    test_files: &[String],
    masked: &BTreeSet<String>,
    keep_examples: bool,
) -> Documentation {
    let title = facts.title.clone().unwrap_or_else(|| layout.name.clone());
    let mut found = Documentation { text: format!("# {}\n", one_spaced(&title)), files: Vec::new() };
    for path in documents(sources) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let full = sources.join(&path);
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let text = if ending == "tex" || name == "paper.md" {
            TextSource::read(&full).map(|source| source.without_results(&[]).text)
        } else {
            Ok(fs::read_to_string(&full).unwrap_or_default())
        };
        let Ok(text) = text else { continue };
        let text = if ending == "rst" || ending.is_empty() { from_rst(&text) } else { text };
        let text = if keep_examples { text } else { without_outputs(&text).0 };
        let text = lowered(&text);
        if text.trim().is_empty() || found.text.len() + text.len() > MOST.0 {
            continue;
        }
        let _ = write!(found.text, "\n## {}\n\n{}\n", path.display(), text.trim());
        found.files.push(path);
    }
    found.text.push_str(&docstrings(repo, layout, test_files, masked));
    found
}

/// Returns the documents of a project in their order: README, paper, then the folder of documentation.
fn documents(sources: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(usize, PathBuf)> = Vec::new();
    let walk = WalkDir::new(sources).max_depth(5).sort_by_file_name().into_iter();
    for entry in walk.flatten().filter(|entry| entry.file_type().is_file()) {
        let path = entry.path().strip_prefix(sources).unwrap_or(entry.path()).to_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let first = path.iter().next().unwrap_or_default().to_string_lossy().to_lowercase();
        let ending = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        let depth = path.iter().count();
        let in_docs =
            ["doc", "docs", "documentation", "paper", "joss", "manual"].contains(&first.as_str()) && depth > 1;
        if depth == 1 && name.starts_with("readme") && (ending(&[".md", ".rst", ".txt"]) || name == "readme") {
            found.push((0, path));
        } else if ["paper.md", "paper.tex"].contains(&name.as_str()) {
            found.push((1, path));
        } else if in_docs && ending(&[".md", ".rst"]) && !NOT_ABOUT.iter().any(|start| name.starts_with(start)) {
            found.push((2, path));
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the docstrings of public functions, with their signatures.
fn docstrings(repo: &Path, layout: &Layout, test_files: &[String], masked: &BTreeSet<String>) -> String {
    let mut text = String::new();
    let is_test = |path: &Path| is_test_path(path) || test_files.iter().any(|file| Path::new(file) == path);
    for module in index_tree(repo).into_iter().filter_map(|(_, module)| module.ok()) {
        if !layout.holds(module.path()) || is_test(module.path()) {
            continue;
        }
        for (place, function) in module.functions().iter().enumerate() {
            let at = module.selector(place).to_string();
            let is_private = function.name.split('.').any(|part| part.starts_with('_'));
            let Some(literal) = module.docstring(place) else { continue };
            if is_private || function.parent.is_some() || masked.contains(&at) {
                continue;
            }
            let inner = literal.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_matches(['"', '\'']);
            let inner: Vec<&str> = inner.lines().map(str::trim_end).collect();
            let entry = format!(
                "\n### {}\n\n`{}` in `{}`\n\n{}\n",
                last_part(&function.name),
                one_spaced(module.header(place).trim_end_matches(':')).replace('`', "'"),
                at,
                indented_as_one(&inner)
            );
            if text.len() + entry.len() > MOST.1 {
                break;
            }
            text.push_str(&entry);
        }
    }
    if text.is_empty() { text } else { format!("\n## Functions that are there\n{text}") }
}

/// Removes the common indentation of all lines but the first.
fn indented_as_one(lines: &[&str]) -> String {
    let indents = lines.iter().skip(1).filter(|line| !line.is_empty());
    let common = indents.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let rest = lines.iter().skip(1).map(|line| line.get(common..).unwrap_or_default());
    let text: Vec<&str> = lines.first().map(|first| first.trim()).into_iter().chain(rest).collect();
    text.join("\n").trim().to_owned()
}

/// Lowers headings by two levels, so that they are below the headings that this program writes. Code in fences is not
/// changed.
fn lowered(text: &str) -> String {
    let mut fenced = false;
    text.lines().fold(String::new(), |mut all, line| {
        fenced ^= line.trim_start().starts_with("```");
        let is_heading = !fenced && line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
        all.push_str(if is_heading { "##" } else { "" });
        all.push_str(line);
        all.push('\n');
        all
    })
}

/// Converts headings of reStructuredText to Markdown; other markup stays.
fn from_rst(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &str| {
        let line = line.trim_end();
        let mut letters = line.chars();
        letters
            .next()
            .is_some_and(|first| "=-~^\"'`#*+.:_".contains(first) && line.len() >= 3 && letters.all(|c| c == first))
    };
    let mut kinds: Vec<char> = Vec::new();
    let mut found = String::new();
    let mut place = 0;
    while place < lines.len() {
        let (line, next) = (lines[place], lines.get(place + 1).copied().unwrap_or_default());
        let underlined =
            !line.trim().is_empty() && !line.starts_with([' ', '\t', '.', ':']) && is_rule(next) && !is_rule(line);
        if underlined && next.trim_end().chars().count() + 2 >= line.trim_end().chars().count() {
            let kind = next.chars().next().unwrap_or('=');
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
            let level = kinds.iter().position(|known| *known == kind).unwrap_or(0) + 1;
            let _ = writeln!(found, "{} {}", "#".repeat(level.min(4)), line.trim());
            place += 2;
            continue;
        }
        // If a heading has a line of punctuation above and below it, skip the line above: the line below suffices to
        // recognise the heading.
        if is_rule(line) && place + 2 < lines.len() && is_rule(lines[place + 2]) && !next.trim().is_empty() {
            place += 1;
            continue;
        }
        found.push_str(line);
        found.push('\n');
        place += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_text_is_the_documentation_without_masked_functions_tests_and_outputs_of_examples() {
        let folder = tempfile::tempdir().unwrap();
        let write_file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write_file("README.rst", "My pkg\n======\n\nUse it.\n\n>>> f(1)\n2\n\nMore\n----\n");
        write_file("docs/guide.md", "# Guide\n\nA guide.\n");
        write_file("docs/changelog.md", "# 1.0\n");
        write_file(
            "p/__init__.py",
            "def f(x):\n    \"\"\"Twice x.\n\n    More.\n    \"\"\"\n    return 2 * x\n\n\ndef g(x):\n    \"\"\"Masked.\"\"\"\n    return 3\n",
        );
        for file in ["p/_tests/helpers.py", "p/Test/helpers.py", "p/test_f.py", "p/checks.py"] {
            write_file(file, "def check(x):\n    \"\"\"Only hidden tests say this.\"\"\"\n    return x\n");
        }
        let layout = Layout::of_package("p");
        let masked = ["p/__init__.py::g".to_owned()].into();
        let (facts, tests) = (PackageFacts::default(), ["p/checks.py".to_owned()]);
        let found = write(folder.path(), folder.path(), &layout, &facts, &tests, &masked, false);
        assert_eq!(found.files, [PathBuf::from("README.rst"), PathBuf::from("docs/guide.md")]);
        assert!(found.text.contains("### My pkg\n\nUse it.\n\n>>> f(1)\n\n#### More\n"), "{}", found.text);
        assert!(found.text.contains("### Guide") && found.text.contains("Twice x.\n\nMore."));
        assert!(!found.text.contains("Masked") && !found.text.contains("1.0"));
        assert!(!found.text.contains("hidden tests"), "{}", found.text);
    }
}
