//! Reads the requirements that a package's files list, each in its own form.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;
use toml::Value;

use super::index::normalised;
use crate::draft::metadata::metadata_fields;

/// Returns the requirements in an sdist's `PKG-INFO`, each with the extras that it belongs to; `None` if there is no
/// such file.
pub(super) fn declared(folder: &Path) -> Option<Vec<(String, Vec<String>)>> {
    let fields = metadata_fields(folder)?;
    let listed = fields.lines().filter_map(|line| line.strip_prefix("Requires-Dist:"));
    Some(listed.map(|line| without_extras(line.trim())).collect())
}

/// Removes the conditions on extras from a requirement. Also returns the names of the extras in these conditions.
fn without_extras(requirement: &str) -> (String, Vec<String>) {
    let Some((plain, condition)) = requirement.split_once(';') else { return (requirement.to_owned(), Vec::new()) };
    let Ok(extra) = Regex::new(r#"extra\s*==\s*["']([^"']*)["']"#) else { return (requirement.to_owned(), Vec::new()) };
    let named: Vec<String> = extra.captures_iter(condition).map(|found| normalised(&found[1])).collect();
    if named.is_empty() {
        return (requirement.to_owned(), named);
    }
    let mut rest = extra.replace_all(condition, "").into_owned();
    if named.len() > 1 {
        // If the condition names several extras, remove all of it, because it rarely contains anything else.
        rest.clear();
    }
    let rest = rest.trim().trim_start_matches("and ").trim_end_matches(" and").replace("()", "");
    let rest = rest.trim().trim_start_matches("and ").trim_end_matches(" and").trim();
    let text = if rest.is_empty() { plain.trim().to_owned() } else { format!("{}; {rest}", plain.trim()) };
    (text, named)
}

/// Returns the requirements in one of poetry's tables, written as `name = "^1.2"` or `name = { version = ">=1" }`.
pub(super) fn poetry_list(table: Option<&Value>) -> Vec<String> {
    let version = |text: &str| -> String {
        let text = text.trim();
        let parts = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        if text == "*" || text.contains('|') {
            // Drop the range: pip does not support alternatives (`||`), and needs no range to choose the newest
            // version.
            String::new()
        } else if let Some(rest) = text.strip_prefix('^') {
            let numbers = parts(rest);
            let first: u64 = numbers.first().and_then(|first| first.parse().ok()).unwrap_or(0);
            if first > 0 { format!(">={rest},<{}", first + 1) } else { format!(">={rest}") }
        } else if let Some(rest) = text.strip_prefix('~').filter(|rest| !rest.starts_with('=')) {
            format!(">={rest}")
        } else if text.starts_with(|c: char| c.is_ascii_digit()) {
            format!("=={text}")
        } else {
            text.to_owned()
        }
    };
    let entries = table.and_then(Value::as_table).into_iter().flatten();
    entries
        .filter(|(name, _)| *name != "python")
        .filter_map(|(name, value)| match value {
            Value::String(text) => Some(format!("{name}{}", version(text))),
            Value::Table(table) if table.get("optional").and_then(Value::as_bool) != Some(true) => {
                Some(format!("{name}{}", version(table.get("version")?.as_str()?)))
            }
            _ => None,
        })
        .collect()
}

/// Returns the lines of a key in an ini file's section.
pub(super) fn ini(said: &str, section: &str, key: &str) -> Vec<String> {
    let mut lines = said.lines().skip_while(|line| line.trim() != format!("[{section}]")).skip(1).peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next_if(|line| !line.starts_with('[')) {
        let Some((own, value)) = line.split_once(['=', ':']) else { continue };
        if line.starts_with([' ', '\t']) || own.trim() != key {
            continue;
        }
        found.push(value.trim().to_owned());
        while let Some(more) = lines.next_if(|line| line.starts_with([' ', '\t']) || line.trim().is_empty()) {
            found.push(more.trim().to_owned());
        }
    }
    // Leave out lines that apply only in some of tox's environments, such as `py38: mock`.
    let unconditional = |line: &String| !line.is_empty() && !line.starts_with(['#', '-', '{']) && !line.contains(": ");
    found.retain(unconditional);
    found.into_iter().filter_map(|line| line.split(';').next().map(str::to_owned)).collect()
}

/// Returns the strings in the literal list or tuple that is the value of a key in Python code, such as `key=["a"]` or
/// `"key": ["a"]`.
pub(super) fn literal_list(code: &str, key: &str) -> Vec<String> {
    let list = Regex::new(&format!(r#"["']?\b{key}["']?\s*[=:]\s*[\[(]([^\[\]()]*(?:\[[^\]]*\][^\[\]()]*)*)[\])]"#));
    let (Ok(list), Ok(string)) = (list, Regex::new(r#""([^"\n]+)"|'([^'\n]+)'"#)) else { return Vec::new() };
    let Some(inside) = list.captures(code).and_then(|found| found.get(1)) else { return Vec::new() };
    let lines = inside.as_str().lines().filter(|line| !line.trim_start().starts_with('#'));
    let inside = lines.collect::<Vec<_>>().join("\n");
    let found = string.captures_iter(&inside).filter_map(|one| one.get(1).or(one.get(2)));
    found.map(|one| one.as_str().trim().to_owned()).collect()
}

/// Returns the requirements in files such as `requirements-test.txt`, and in files that these include. Files outside of
/// the package are not read.
pub(super) fn listed_in_files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for place in [folder.to_owned(), folder.join("requirements"), folder.join("tests"), folder.join("test")] {
        let entries = fs::read_dir(&place).into_iter().flatten().flatten().map(|entry| entry.path());
        let in_requirements = place.ends_with("requirements");
        let in_tests = place.ends_with("tests") || place.ends_with("test");
        files.extend(entries.filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            let is_list = [".txt", ".in", ".pip"].iter().any(|ending| name.ends_with(ending));
            let is_for_tests = ["test", "dev"].iter().any(|part| name.contains(part)) || in_tests;
            is_list && is_for_tests && (name.contains("require") || in_requirements)
        }));
    }
    files.sort();
    let Ok(root) = folder.canonicalize() else { return Vec::new() };
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    while let Some(path) = files.pop() {
        // Skip files outside of the package: a file may include another by any path, such as `../../secret`. Resolve
        // links in the path's folder only, not in its last part: if a file is a link, pip looks for the files that it
        // includes beside the link.
        let (Some(beside), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let Ok(path) = beside.canonicalize().map(|beside| beside.join(name)) else { continue };
        let is_inside = path.canonicalize().is_ok_and(|target| target.starts_with(&root) && target.is_file());
        if !is_inside || !seen.insert(path.clone()) {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if let Some(other) = line.strip_prefix("--requirement").or_else(|| line.strip_prefix("-r")) {
                files.push(path.with_file_name(other.trim_matches([' ', '\t', '='])));
            } else if !line.starts_with(['-', '#']) {
                // Remove the hashes and line continuations of files that pin hashes.
                found.push(line.split(" --hash").next().unwrap_or(line).trim_end_matches('\\').trim().to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_of_the_package_are_not_read_as_lists_of_requirements() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("package");
        fs::create_dir_all(&package).unwrap();
        fs::write(folder.path().join("secret"), "a-secret\n").unwrap();
        fs::write(package.join("other.txt"), "six\n").unwrap();
        let absolute = folder.path().join("secret").display().to_string();
        let text = format!("-r other.txt\n-r ../secret\n-r {absolute}\nmock\n");
        fs::write(package.join("requirements-test.txt"), text).unwrap();
        let mut found = listed_in_files(&package);
        found.sort();
        assert_eq!(found, ["mock", "six"]);
    }

    #[test]
    fn included_lists_are_read_however_the_option_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let text = "-rone.txt\n-r two.txt\n--requirement=three.txt\n--requirement four.txt # why\n--require-hashes\n";
        fs::write(folder.path().join("requirements-test.txt"), text).unwrap();
        for (file, package) in [("one.txt", "a"), ("two.txt", "b"), ("three.txt", "c"), ("four.txt", "d")] {
            fs::write(folder.path().join(file), package).unwrap();
        }
        let mut found = listed_in_files(folder.path());
        found.sort();
        assert_eq!(found, ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_list_that_is_a_link_includes_the_files_beside_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("package");
        fs::create_dir_all(package.join("requirements")).unwrap();
        fs::write(folder.path().join("secret.txt"), "a-secret\n").unwrap();
        fs::write(package.join("requirements/all.txt"), "-r base.txt\n-r requirements-test.txt\nmock\n").unwrap();
        fs::write(package.join("base.txt"), "six\n").unwrap();
        fs::write(package.join("requirements/base.txt"), "attrs\n").unwrap();
        std::os::unix::fs::symlink("requirements/all.txt", package.join("requirements-test.txt")).unwrap();
        std::os::unix::fs::symlink("../secret.txt", package.join("requirements-dev.txt")).unwrap();
        let mut found = listed_in_files(&package);
        found.sort();
        assert_eq!(found, ["mock", "six"]);
    }
}
