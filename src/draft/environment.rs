//! The env of a new paper: makes an `environment.yml` from a list of packages.

use std::fmt::Write as _;
use std::path::Path;

use crate::env::is_from_index;
use crate::error::{Error, Result};

/// Versions of Python that a new env accepts by default.
pub const PYTHON: &str = ">=3.10,<3.14";

/// Returns an `environment.yml` with these packages from pip.
#[must_use]
pub fn yml(id: &str, python: &str, requirements: &[String]) -> String {
    let quoted = |text: String| serde_json::Value::from(text).to_string();
    let python =
        if python.starts_with(|c: char| c.is_ascii_digit()) { format!("={python}") } else { python.to_owned() };
    let mut text = format!(
        "name: {id}\nchannels:\n  - conda-forge\n  - nodefaults\ndependencies:\n  - {}\n",
        quoted(format!("python{python}"))
    );
    if !requirements.is_empty() {
        text.push_str("  - pip\n  - pip:\n");
        for requirement in requirements {
            let _ = writeln!(text, "      - {}", quoted(requirement.clone()));
        }
    }
    text
}

/// Splits a list of requirements, such as `numpy==2.2.6,scipy>=1.10,<2`, at each comma before the name of a package. A
/// comma before a version constraint such as `<2`, or in brackets or quotes, is part of a requirement.
#[must_use]
pub fn split(list: &str) -> Vec<String> {
    let is_open = |text: &str| {
        let count = |letter: char| text.matches(letter).count();
        count('[') > count(']') || count('(') > count(')') || ['"', '\''].into_iter().any(|quote| count(quote) % 2 == 1)
    };
    let mut found: Vec<String> = Vec::new();
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match found.last_mut() {
            Some(last) if is_open(last) || !part.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
                last.push(',');
                last.push_str(part);
            }
            _ => found.push(part.to_owned()),
        }
    }
    found
}

/// Reads the requirements in a `requirements.txt`, without comments.
///
/// # Errors
/// Kind `Usage`, with file and line, for pip options and for packages that are not on a package index, because neither
/// can be locked.
pub fn read(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::usage(format!("failed to read `{}`", path.display())).because(error))?;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if !is_from_index(line) {
            return Err(Error::usage(format!("`{line}` cannot be locked by version and hash"))
                .at(path, Some(number + 1))
                .hint("list the packages themselves, as in `--requirements numpy==2.2.6,scipy==1.15.3`"));
        }
        found.push(line.to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_list_is_split_at_commas_except_within_version_ranges() {
        assert_eq!(
            split("numpy==2.2.6, scipy>=1.10,<2,scikit-learn"),
            ["numpy==2.2.6", "scipy>=1.10,<2", "scikit-learn"]
        );
        assert!(split(" ").is_empty());
        let grouped = ["requests[socks,use_chardet_on_py3]==2.32.3", "scipy; python_version in '3.11,3.12'", "six"];
        assert_eq!(split(&grouped.join(",")), grouped);
    }

    #[test]
    fn an_env_without_packages_asks_for_python_only() {
        insta::assert_snapshot!(yml("x", "3.11", &[]), @r#"
        name: x
        channels:
          - conda-forge
          - nodefaults
        dependencies:
          - "python=3.11"
        "#);
        assert!(yml("x", PYTHON, &["a>=1,<2".to_owned()]).ends_with("  - pip\n  - pip:\n      - \"a>=1,<2\"\n"));
    }

    #[test]
    fn lines_that_cannot_be_locked_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requirements.txt");
        std::fs::write(&path, "# all\nnumpy==2.2.6  # arrays\n\nscipy>=1,<2\n").unwrap();
        assert_eq!(read(&path).unwrap(), ["numpy==2.2.6", "scipy>=1,<2"]);
        for line in ["-r other.txt", "-e .", "x @ git+https://example.org/x", "./wheels/x.whl"] {
            std::fs::write(&path, format!("numpy\n{line}\n")).unwrap();
            assert_eq!(read(&path).unwrap_err().place.unwrap().1, Some(2), "{line}");
        }
    }
}
